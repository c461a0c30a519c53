"""How much work is an action in a folder of many runs? Counted in folders asked and runs read, not in seconds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import made_up
from relab.base.errors import NotFoundError
from relab.formats.read import find
from relab.web import advising, examining
from relab.web.claims import Claims
from relab.web.watching import examinable
from web.conftest import Served

LOGS = 40


@pytest.fixture
def loose(tmp_path: Path, shelf_of: Callable[..., Served]) -> Served:
    """Many logs beside each other in one folder."""
    for i in range(LOGS):
        rows = "".join(f"{k * 10},{k + i}\n" for k in range(5))
        (tmp_path / f"run_{i // 5}_seed{i % 5}.csv").write_text(f"step,return\n{rows}")
    return shelf_of()


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """What a function is called with from now on."""
    calls: list[Any] = []
    plain = getattr(module, name)

    def call(*words: Any, **more: Any) -> Any:
        calls.append(words)
        return plain(*words, **more)

    monkeypatch.setattr(module, name, call)
    return calls


def test_a_folder_is_asked_once_for_all_runs_in_it(loose: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was asked once for each: with 400 logs in a folder each click took minutes."""
    asked = counted(monkeypatch, find, "claimed")
    assert len(examinable(loose.bench.shelf)) == LOGS
    assert loose.get("/today/more").status_code == 200
    assert loose.get("/notebook/more").status_code == 200
    assert loose.act("seen", {}).status_code == 200
    for group in loose.bench.shelf.every():
        assert loose.get(f"/group/{group.key}").status_code == 200
    assert len(asked) == 1


def test_what_came_and_what_went_is_noticed(loose: Served) -> None:
    shelf = loose.bench.shelf
    before = shelf.listed("run_0_seed0.csv")
    assert shelf.claims.source(before).name == before.name
    (loose.root / "run_0_seed0.csv").unlink()
    (loose.root / "run_9_seed0.csv").write_text("step,return\n1,2\n2,3\n")
    with pytest.raises(NotFoundError, match="no longer there"):
        shelf.claims.source(before)
    shelf.refresh()
    assert shelf.claims.source(shelf.listed("run_9_seed0.csv")).name == "run_9_seed0.csv"
    assert len(examinable(shelf)) == LOGS


def test_a_run_that_a_store_got_is_noticed_though_its_folder_did_not_change(
    loose: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database gets runs without a new file: what is not known is looked for once more."""
    shelf, claims = loose.bench.shelf, Claims(loose.root)
    listed = shelf.listed("run_0_seed0.csv")
    with monkeypatch.context() as before:
        before.setattr(find, "claimed", lambda *words: ([], True))
        assert claims.sources([listed]) == []
    assert claims.source(listed).path == listed.folder
    assert [source.name for source in claims.sources([listed])] == [listed.name]


def test_what_is_seen_needs_no_run_to_be_read(loose: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    loose.bench.watcher.desk = loose.bench.desk
    loose.bench.watcher.look()
    loose.bench.watcher.look()
    document = loose.bench.watcher.health.document
    assert document is not None
    asked = counted(monkeypatch, loose.bench.desk, "ask")
    assert loose.act("seen", {}).status_code == 200
    assert not asked, "what stands on the page is seen; nothing is examined for it"
    again = loose.bench.watcher.health.document
    assert again is not None
    assert again["since"]
    assert not any(finding["new"] for finding in again["findings"])
    assert not examining.examined(str(loose.root), examinable(loose.bench.shelf))["new_runs"]


def test_too_many_runs_to_examine_are_seen_as_well(loose: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examining, "MOST", 3)
    assert "The last day" in loose.get("/today").text
    loose.act("seen", {})
    assert "Since your last look" in loose.get("/today").text


def test_a_decision_examines_the_runs_of_its_experiment_alone(
    tmp_path: Path, shelf_of: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(3):
        variants = "{a: {algo.lr: 0.001}, b: {algo.lr: %g}}" % (0.002 + i / 1000)
        made_up.answered(tmp_path, f"e{i}", variants, [100.0, 400.0])
    served = shelf_of()
    assert served.get("/notebook/more").status_code == 200
    said = served.bench.said(advising.advice)
    (wanted, *_) = [one["id"] for one in said if one["id"] and one["runs_here"]]
    examined = counted(monkeypatch, advising, "examine_loaded")
    assert served.act("refuse", {"id": wanted}).status_code == 200
    assert not examined
    assert served.act("undo", {}).status_code == 200
    answer = served.act("approve", {"id": wanted})
    assert answer.status_code == 200, answer.text
    assert [len(loaded.runs) for loaded, _ in examined] == [10]


def test_what_was_tried_is_read_once_for_all_experiments(
    tmp_path: Path, shelf_of: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(4):
        made_up.answered(tmp_path, f"e{i}", "{a: {algo.lr: 0.001}, b: {algo.lr: 0.003}}", [100.0, 400.0], seeds=1)
    served = shelf_of()
    read = counted(monkeypatch, advising.log, "earlier")
    assert served.get("/notebook/more").status_code == 200
    assert len(read) == 1


def test_a_broken_run_is_not_read_again(loose: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails after a minute of reading would fail so for each question."""

    def fails(*_: Any) -> Any:
        raise ValueError("no such luck")

    every = examinable(loose.bench.shelf)
    monkeypatch.setattr(find, "read", fails)
    examining._kept.clear()
    assert len(examining.loaded(str(loose.root), every).broken) == LOGS
    read = counted(monkeypatch, find, "read")
    assert len(examining.loaded(str(loose.root), every).broken) == LOGS
    assert not read
    os.utime(loose.root / "run_0_seed0.csv", (1, 1))
    examining.loaded(str(loose.root), every)
    assert len(read) == 1
    examining._kept.clear()
