"""Is the fish study in order: are its questions askable, its numbers right, its page readable?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relab.config import layers
from relab.lab import experiment, studies
from relab.lab.studies import StepResult
from relab.lab.studies.fish import page, plan, steps
from relab.record.history import Column, History

QUESTIONS = sorted(path.stem for path in steps.HERE.glob("*.yaml"))


def test_every_question_belongs_to_a_step() -> None:
    assert studies.STUDIES["fish"] == "relab.lab.studies.fish"
    names = [step.name for step in plan(full=True)]
    assert set(QUESTIONS) <= set(names)
    assert sum(step.seconds for step in plan(full=False)) <= 45 * 60, "tier 1 must stay within 45 minutes of computing"
    assert [step.name for step in plan(full=False)] == names[:7]


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_can_be_asked_and_share_their_starts(name: str, tmp_path: Path) -> None:
    question = experiment.load(steps.question(name, tmp_path / name))
    assert (len(question.seeds), len(question.variants)) == (5, 2)
    base, control = (layers.read_yaml(steps.HERE / f"{each}.yaml")["base"] for each in (name, "control"))
    starts = [key for key in control if key.startswith("env.")]
    assert {key: base[key] for key in starts} == {key: control[key] for key in starts}
    settings = experiment.prepare(question, tmp_path / name)
    assert len(settings) == 10


def test_north_east_starts_are_what_they_say() -> None:
    starts = np.array(json.loads((steps.HERE / "ne_starts.json").read_text())["starts"])
    heading, speed = np.degrees(np.arctan2(starts[:, 1], starts[:, 0])), np.hypot(*starts.T)
    assert (heading.min() > 22.5, heading.max() < 67.5, speed.min() > 1.59, speed.max() < 2.81) == (True,) * 4


def test_the_floor_is_the_integral(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SCHOOLS", 400)
    floor = steps.floor(tmp_path, 1, print)
    assert floor["centre"] == pytest.approx(0.0875)
    assert floor["played"] == pytest.approx(floor["exact"], abs=4 * floor["noise"])
    assert 0.01 < floor["exact"] < 0.02


def evaluation(iteration: int, survival: float) -> dict[str, Any]:
    values = dict.fromkeys(steps.NUMBERS, 0.1) | {"avg_final": survival}
    return {"probe": "multi_eval", "iteration": iteration, "values": values}


def made_run(seed: int) -> History:
    probes = [evaluation(iteration, survival) for iteration, survival in ((8, 0.1), (24, 0.8), (32, 0.9))]
    gates = [{"kind": "gate", "decision": word} for word in ("locked", "advance", "advance", "rollback")]
    return History(Path("run"), probes=probes, events=gates, meta={"seed": seed})


def test_a_run_counts_from_iteration_24_on_and_its_stages() -> None:
    numbers = steps.of_run(made_run(3))
    assert numbers["late"]["avg_final"] == pytest.approx(0.85)
    assert (numbers["seed"], numbers["stage"], numbers["iterations"]) == (3, 1, [8, 24, 32])


def test_the_logs_columns_are_read_by_their_names() -> None:
    column = Column(np.array([8, 24]), np.array([0.2, 0.6]))
    run = History(Path("log"), columns={f"foreign/multi_eval/{name}": column for name in steps.THEIRS.values()})
    numbers = steps.of_log("theirs", run)
    assert (numbers["run"], numbers["late"]["avg_final"], numbers["iterations"]) == ("theirs", 0.6, [8, 24])


def test_the_page_says_whose_physics_it_is_and_shows_every_seed() -> None:
    answer = {"verdict": "yes", "text": "own is better", "delta": 0.1, "low": 0.05, "high": 0.15, "names": ["a", "b"]}
    arms = {"own": [steps.of_run(made_run(seed)) for seed in range(5)]}
    answers = {"control": {"question": "Better?", "answers": [answer], "arms": arms}}
    text = page({name: StepResult(x, 60.0, "abc") for name, x in answers.items()})
    assert text.count("our physics, not theirs") == 2
    assert "avg_final: 0.850 [0.850, 0.850]" in text
    assert [f"| {seed} | 0.850 |" in text for seed in range(5)] == [True] * 5
    missing = page({"log": StepResult({"missing": "../there"}, 1.0, "abc")})
    assert "is not beside the repository" in missing
