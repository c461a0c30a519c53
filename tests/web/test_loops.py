"""Can a loop be told what to try next from the dashboard, with the checks that it makes itself?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.loop.loops import prepare, write
from relab.advise.proposal import FILE
from relab.config import layers
from relab.lab import loop
from relab.lab.loop import outside
from shelves import tree
from web.conftest import Served

NAME = "loops/l"


@pytest.fixture
def looped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shelf_of: Callable[..., Served]) -> Served:
    """A loop that has made its noise floor."""
    monkeypatch.chdir(tmp_path)
    prepare(write()).go(0)
    return shelf_of()


def test_a_loop_is_shown_with_what_may_change_in_it(looped: Served) -> None:
    text = looped.get("/notebook/more").text
    assert f'data-loop="{NAME}"' in text
    assert "Which x is best?" in text
    assert "0 proposals, 0 kept; the best config is base" in text
    assert "0.01 to 10" in text
    assert "none waits to be approved" in text


def test_a_change_is_dropped_checked_taken_back_and_taken_by_the_loop(looped: Served) -> None:
    folder = looped.root / NAME
    answer = looped.act("drop", {"loop": NAME, "values": {"x": "1.0", "y": "1"}, "rationale": "其他 <b>"})
    assert "waits in next_config.yaml" in answer.json()["said"]
    assert layers.read_yaml(folder / FILE)["set"] == {"x": 1.0}
    text = looped.get("/notebook/more").text
    assert "A change waits" in text
    assert 'value="1"' in text
    assert looped.act("undo", {}).status_code == 200
    assert not (folder / FILE).exists()
    looped.act("drop", {"loop": NAME, "values": {"x": "1.0"}})
    looping = prepare()
    looping.go(1)
    trial = looping.state.trials[-1]
    assert trial.proposal["source"] == "dropped"
    assert trial.proposal["diff"]["x"]["to"] == 1.0
    assert "the loop has taken it" in looped.act("undo", {}).json()["error"]


@pytest.mark.parametrize(
    ("values", "why"),
    [({"x": "20"}, "0.01"), ({"x": "0.1"}, "every value is that of"), ({"seed": "3"}, "may not change"), ({}, "every"),
     ({"x": "many"}, "x"), ({"x": "9"}, "largest_step")],
)  # fmt: skip
def test_what_the_loop_would_refuse_is_not_dropped(looped: Served, values: dict[str, str], why: str) -> None:
    before = tree(looped.root)
    answer = looped.act("drop", {"loop": NAME, "values": values})
    assert answer.status_code == 400
    assert why in answer.json()["error"]
    assert "as a loop writes them" not in answer.json()["error"]
    assert tree(looped.root) == before


def test_what_waits_is_taken_away_and_brought_back(looped: Served) -> None:
    path = looped.root / NAME / FILE
    path.write_text("set: {x: 0.5}\n")
    assert looped.act("withdraw", {"loop": NAME}).status_code == 200
    assert not path.exists()
    looped.act("undo", {})
    assert path.read_text() == "set: {x: 0.5}\n"
    path.write_text("set: {x: 500}\n")
    assert "would be refused" in looped.get("/notebook/more").text


@pytest.mark.parametrize("name", ["../l", "/etc", "", "loops", "loops/l/runs"])
def test_a_loop_is_looked_for_in_the_list(looped: Served, name: str) -> None:
    assert looped.act("drop", {"loop": name, "values": {"x": "1.0"}}).status_code == 404
    assert looped.act("withdraw", {"loop": name}).status_code == 404


def test_nothing_is_written_through_a_link(looped: Served, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.yaml"
    (looped.root / NAME / FILE).symlink_to(outside)
    assert looped.act("drop", {"loop": NAME, "values": {"x": "1.0"}}).status_code == 400
    assert looped.act("withdraw", {"loop": NAME}).status_code == 400
    assert not outside.exists()


def test_a_loop_that_is_broken_says_so(looped: Served) -> None:
    (looped.root / NAME / "loop.yaml").write_text("question: [")
    text = looped.get("/notebook/more").text
    assert 'class="problem"' in text
    assert f'data-loop="{NAME}"' not in text


def test_a_loop_that_goes_on_is_told_so(looped: Served) -> None:
    with loop.claimed(looped.root / NAME):
        assert "running: " in looped.get("/notebook/more").text
        assert "before its next proposal" in looped.act("drop", {"loop": NAME, "values": {"x": "1"}}).json()["said"]


@pytest.mark.parametrize(
    ("base", "variants"),
    [("env: {name: 'evilmod:make'}\nalgo: {name: ppo, lr: 0.1}\n", "base"),
     ("env: 'evilmod:make'\nalgo: {name: ppo, lr: 0.1}\n", "base"),
     ("env: {name: 'gym:evilmod:Make-v0'}\nalgo: {name: ppo, lr: 0.1}\n", "base"),
     ("env: {name: cartpole-v1}\nalgo: {name: 'evilmod:Config', lr: 0.1}\n", "base"),
     ("env: {name: 'evilmod:make'}\nalgo: {name: ppo, lr: 0.1}\n", "p001")],
)  # fmt: skip
def test_looking_at_a_strangers_loop_runs_no_code_of_it(
    base: str, variants: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shelf_of: Callable[..., Served]
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(write()).go(0)
    folder = Path(NAME)
    Path("evilmod.py").write_text("open('ran', 'w').close()\n")
    values = layers.read_yaml(folder / "loop.yaml")
    del values["command"], values["range"]
    values |= {"base": {"env": "evilmod:make"}, "policy": {"allow": {"algo.lr": {"low": 0.01, "high": 1}}}}
    (folder / "loop.yaml").write_text(layers.format_yaml(values))
    (folder / "variants/base.yaml").write_text("env: {name: cartpole-v1}\nalgo: {name: ppo, lr: 0.1}\n")
    (folder / f"variants/{variants}.yaml").write_text(base)
    (folder / FILE).write_text(f"parent: {variants}\nset: {{algo.lr: 0.2}}\n")
    served = shelf_of()
    text = served.get("/notebook/more").text
    (row,) = outside.standing(str(tmp_path), [folder])
    assert (row["problem"], row["waits"], row["why_not"]) == ("", True, "")
    assert "name code of its own, which looking at it does not run" in text
    served.act("drop", {"loop": NAME, "values": {"algo.lr": "0.3"}})
    assert not Path("ran").exists()
    assert "evilmod" not in sys.modules


def _link(path: Path) -> None:
    (path.parents[2] / "secret.yaml").write_text("set: {hunter2: 1}\nsesame: 1\n")
    path.symlink_to(path.parents[2] / "secret.yaml")


@pytest.mark.parametrize(
    ("put", "kind"),
    [(_link, "a link"), (os.mkfifo, "a pipe"), (Path.mkdir, "a folder"),
     (lambda p: p.symlink_to("/dev/zero"), "a link")],
)  # fmt: skip
def test_what_is_no_file_is_named_and_never_opened(looped: Served, put: Callable[[Path], None], kind: str) -> None:
    folder = looped.root / NAME
    put(folder / FILE)
    (row,) = outside.standing(str(looped.root), [folder])
    assert row["problem"] == ""
    assert f"must be a file, but is {kind}; put the file itself there" in row["why_not"]
    text = looped.get("/notebook/more").text
    assert f"must be a file, but is {kind}" in text
    assert "hunter2" not in text
    assert "sesame" not in text
    for deed in ("drop", "withdraw"):
        answer = looped.act(deed, {"loop": NAME, "values": {"x": "1.0"}})
        assert answer.status_code == 400
        assert kind in answer.json()["error"]
    assert os.path.lexists(folder / FILE)


ROW = {"event": "proposed", "k": 1, "proposal": {"source": "sampler", "parent_config": "base", "diff": {}}}


@pytest.mark.parametrize(
    "rows",
    [[ROW | {"proposal": {"parent_config": "base", "diff": {}}}], [ROW | {"proposal": {"source": "sampler"}}],
     [ROW | {"k": "one"}], [ROW | {"proposal": 3}], [ROW, {"event": "first", "k": 1}],
     [ROW | {"proposal": ROW["proposal"] | {"diff": {"x": 3}}}]],
)  # fmt: skip
def test_a_journal_that_lacks_something_is_an_error_in_words(looped: Served, rows: list[dict[str, object]]) -> None:
    folder = looped.root / NAME
    with open(folder / "journal", "a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    answer = looped.act("drop", {"loop": NAME, "values": {"x": "1.0"}})
    assert answer.status_code == 400, answer.text
    assert "journal" in answer.json()["error"]
    assert not (folder / FILE).exists()
    assert looped.get("/notebook/more").status_code == 200
