"""Do labels and the archive change by a page as by `relab runs`, and does undo bring back what was?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from relab.runs import labels
from web.conftest import Served


def label(served: Served, name: str = "wide-s0") -> labels.Labels:
    return labels.read(served.root / "runs" / name / labels.FILE)


def test_star_tag_and_note_are_written_and_taken_back(served: Served) -> None:
    assert served.act("star", {"groups": [served.key("wide")], "on": True}).status_code == 200
    assert served.act("tag", {"runs": ["runs/wide-s0"], "tag": "base line"}).status_code == 200
    assert served.act("note", {"runs": ["runs/wide-s0"], "text": "看一下 <b>"}).status_code == 200
    assert label(served) == labels.Labels(("base", "line"), True, "看一下 <b>")
    assert label(served, "wide-s4").star
    for expected in (labels.Labels(("base", "line"), True), labels.Labels((), True), labels.Labels()):
        assert served.act("undo", {}).status_code == 200
        assert label(served) == expected
    assert "nothing to take back" in served.act("undo", {}).json()["said"]


@pytest.mark.parametrize("body", [{"runs": 5}, {"runs": True}, {"groups": 3.5}])
def test_names_that_are_no_list_are_refused_in_words(served: Served, body: dict) -> None:
    answer = served.act("star", {**body, "on": True})
    assert answer.status_code == 400
    assert "must be lists of names" in answer.text


def test_undo_leaves_a_label_that_came_from_elsewhere(served: Served) -> None:
    from relab.runs import moves

    served.act("tag", {"runs": ["runs/wide-s0"], "tag": "mine"})
    moves.relabel(served.root / "runs" / "wide-s1", labels.starred(True))
    served.act("undo", {})
    assert label(served, "wide-s1").star
    assert label(served).tags == ()


def test_archive_and_back(served: Served) -> None:
    folder = served.root / "runs" / "narrow-s1"
    assert served.act("archive", {"runs": ["runs/narrow-s1"]}).status_code == 200
    assert not folder.exists()
    served.bench.shelf.refresh()
    assert "runs/narrow-s1" not in served.get("/runs").text
    assert "narrow-s1" in served.get("/runs?q=is:archived").text
    served.act("undo", {})
    assert folder.is_dir()


@pytest.mark.parametrize(
    ("verb", "body"),
    [("star", {"runs": ["nobody"]}), ("star", {}), ("tag", {"runs": ["runs/wide-s0"], "tag": "<b>"}), ("fly", {}),
     ("note", {"runs": ["runs/wide-s0"], "text": "x" * 3000}), ("archive", {"runs": ["../wide-s0"]}),
     ("star", {"groups": ["nothing"]})],
)  # fmt: skip
def test_what_cannot_be_done_is_said_and_changes_nothing(served: Served, verb: str, body: dict[str, object]) -> None:
    answer = served.act(verb, body)
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]
    assert label(served) == labels.Labels()


def test_another_tools_run_keeps_its_labels_in_the_cache(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "progress.csv").write_text("step,return\n1,2\n2,3\n")
    served = shelf_of()
    name = served.bench.shelf.every()[0].runs[0].name
    assert served.act("star", {"runs": [name], "on": True}).status_code == 200
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["progress.csv"]
    served.bench.shelf.refresh()
    assert served.bench.shelf.listed(name).star
    assert served.act("archive", {"runs": [name]}).status_code == 400


def test_a_run_that_trains_is_not_archived(served: Served) -> None:
    import made_up
    from relab.record.run_folder import now

    made_up.run(served.root / "runs" / "busy-s0", 5.0, {"status": "running", "heartbeat": now()}, seed=9)
    served.bench.shelf.refresh()
    from shelves import set_meta

    set_meta(served.root / "runs" / "busy-s0", status="running", heartbeat=now())
    assert served.act("archive", {"runs": ["runs/busy-s0"]}).status_code == 400
