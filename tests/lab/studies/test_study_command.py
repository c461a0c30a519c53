"""Does `relab study` say the cost first, keep each step, and go on after a stop?"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from relab.base.interrupts import Interrupted
from relab.cli import main
from relab.lab import studies
from relab.lab.studies import Step, making


@pytest.fixture
def steps_done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A study of two steps; the second can be told to stop."""
    calls: list[str] = []

    def count(folder: Path, workers: int, say: Any) -> dict[str, Any]:
        calls.append(folder.name)
        if folder.name == "second" and calls.count("second") == 1:
            raise Interrupted
        return {"workers": workers, "calls": len(calls)}

    def page(results: dict[str, Any]) -> str:
        return f"# Made\n\n{', '.join(results)}\n"

    steps = [Step("first", "one thing", 61.0, count), Step("second", "another", 2.0, count, again=count)]
    module = types.ModuleType("made_study")
    more = [*steps, Step("third", "the rest", 9e6, count)]
    vars(module).update(SUMMARY="a study made for tests", page=page, plan=lambda full: more if full else steps)
    monkeypatch.setitem(sys.modules, "made_study", module)
    monkeypatch.setitem(studies.STUDIES, "made", "made_study")
    return calls


def test_studies_are_listed_with_their_summary(steps_done: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study"]) == 0
    assert "made     a study made for tests" in capsys.readouterr().out
    assert main(["study", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] == "a study made for tests"


def test_the_cost_is_told_before_anything_runs(
    steps_done: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "made", "--plan", "--full", "--root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "1m01s" in out
    assert "left: 104.2 days" in out
    assert main(["study", "made", "--root", str(tmp_path)]) == 64, "nobody can be asked"
    assert steps_done == []


def test_a_stopped_study_goes_on_with_what_is_missing(
    steps_done: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["study", "made", "--yes", "--workers", "1", "--root", str(tmp_path)]
    assert main(words) == 130
    assert "1 of 2 steps are done" in capsys.readouterr().err
    assert main(words) == 0
    assert steps_done == ["first", "second", "second"]
    assert (tmp_path / "made" / "results.md").read_text() == "# Made\n\nfirst, second\n"
    kept = json.loads((tmp_path / "made" / "first.json").read_text())
    assert kept["found"] == {"workers": 1, "calls": 1}
    assert main(words) == 0
    assert len(steps_done) == 3, "all done: nothing runs again"


def test_an_unknown_study_names_the_nearest(steps_done: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "mode"]) == 64
    assert "'made'" in capsys.readouterr().err


def test_questions_are_asked_once_more_in_a_folder_of_their_own(
    steps_done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["study", "made", "--fresh", "--yes", "--workers", "1", "--root", str(tmp_path)]
    assert [main(words), main(words)] == [130, 0]
    assert steps_done == ["second", "second"], "the other step asks nothing"
    assert (tmp_path / "made-fresh" / "results.md").read_text() == "# Made\n\nsecond\n"
    assert not (tmp_path / "made").exists()
    vars(sys.modules["made_study"]).update(plan=lambda full: [Step("first", "no question", 1.0, lambda *_: {})])
    assert main(words) == 64
    assert "declares no question that can be asked again" in capsys.readouterr().err


def test_a_question_is_asked_again_on_seeds_that_had_no_part_in_it(tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text(
        "question: any?\nbase: {algo: ppo, env: ladder-policy, total_steps: 4096}\nvariants: {a: {}, b: {lr: 1e-3}}\n"
        "metric: eval/return_det\nat: final\ndirection: higher\nsmallest_effect: 0.1\nseeds: [3]\n"
    )
    _, _, runs_of = making.carry_out(tmp_path / "q.yaml", tmp_path / "q", 2, lambda _: None, fresh=True)
    assert {arm: [run.meta["seed"] for run in runs] for arm, runs in runs_of.items()} == {"a": [10000], "b": [10000]}
