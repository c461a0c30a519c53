"""Are runs compared at equal cost where that is asked for? Steps of another counter in place of the runs' own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import relab
from relab import cli
from relab.comparison import axis
from relab.record.run_folder import Record
from report.made import episodes


def write(folder: Path, means: list[float], seed: int, each: int, kind: str) -> None:
    """Iterations that cost `each` steps of the simulator."""
    config = {"algo": {"name": "finetune", "advantage": kind}, "env": {"name": "made-v1"}, "total_steps": 3}
    with Record.create(folder, {**config, "seed": seed}, {}, {"seed": seed, "axis": "iteration"}) as record:
        for step, mean in enumerate(means):
            if step:
                record.append_metrics(step, {"data/sim_steps": each * step, "data/env_steps": 10 * step})
            record.append_eval({"step": step, "mode": "det", "noise": 0.0, "episodes": episodes(mean, 1.0)})
        record.update_meta(status="finished")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Dear iterations climb faster by iteration, cheap ones by simulator step."""
    for seed in range(5):
        write(tmp_path / f"dear-s{seed}", [10.0, 40 + seed, 60 + seed, 80 + seed], seed, 1000, "rerollout")
        write(tmp_path / f"cheap-s{seed}", [10.0, 30 + seed, 50 + seed, 70 + seed], seed, 100, "gae")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert cli.main(["compare", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_at_equal_simulator_steps_the_cheap_one_wins(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_iteration = json.loads(told(capsys, runs, "--json"))["tasks"][0]
    by_cost = json.loads(told(capsys, runs, "--axis", "sim_steps", "--json"))["tasks"][0]
    assert by_iteration["step"] == 3
    assert by_iteration["variants"][0]["settings"]["algo.advantage"] == "rerollout"
    assert (by_cost["step"], by_cost["cut"], by_cost["axis"]) == (300, True, "sim_steps")
    best = by_cost["variants"][0]
    assert (best["settings"]["algo.advantage"], best["mean"]["mid"]) == ("gae", pytest.approx(72.0))
    assert by_cost["variants"][1]["mean"]["mid"] == pytest.approx(10.0), "its last row up to step 300 is the start"
    text = told(capsys, runs, "--axis", "sim_steps")
    assert "at simulator steps 0 to 300, the last up to 300" in text
    assert "note: start, nothing learned yet: up to step 300, the last that all have" in " ".join(text.split())
    assert "steps count data/sim_steps: steps of all worlds, those of evaluations and re-rollouts included" in text
    assert "simulator steps to 65" in told(capsys, runs, "--axis", "sim_steps", "--level", "65", "--markdown")


def test_a_counter_that_there_is_not(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", str(runs), "--axis", "nonsense"]) == 64
    known = "sim_steps, env_steps, agent_steps, updates, episodes, iteration"
    said = " ".join(capsys.readouterr().err.split())
    assert f"`--axis` must be one of {known}, but got 'nonsense'" in said


def test_a_level_costs_simulator_steps(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--at", "first_step_reaching", "--level", "60", "--axis", "sim_steps", "--json")
    medians = {
        v["label"]: v["threshold"]["median"] for v in json.loads(told(capsys, runs, *words))["tasks"][0]["variants"]
    }
    assert sorted(medians.values()) == [300, 2000]


def test_runs_are_left_as_they_were(runs: Path) -> None:
    loaded = relab.load(runs)
    relab.compare(loaded, axis="sim_steps")
    assert {run.history.columns["eval/return_det"].steps[-1] for run in loaded} == {3}


def test_a_counter_that_nobody_logged_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", str(runs), "--axis", "updates"]) == 2
    assert "`--axis updates` needs the metric data/updates, but none of the 10 runs has it" in capsys.readouterr().err


def test_between_two_rows_the_counter_rises_evenly(runs: Path) -> None:
    history = next(iter(relab.load(runs))).history
    assert axis.moved(history, "env_steps").columns["eval/return_det"].steps.tolist() == [0, 10, 20, 30]
    assert axis.moved(history, "env_steps").axes["eval/return_det"] == "env_steps"
    assert [row["step"] for row in axis.moved(history, "env_steps").evals] == [0, 10, 20, 30]
