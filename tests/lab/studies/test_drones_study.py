"""Is the drone study in order: do its runs resume, are its numbers those of the episodes, is its page readable?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relab.config import layers
from relab.config.layers import Layer
from relab.lab import studies
from relab.lab.studies import StepResult
from relab.lab.studies.drones import figure, page, plan, steps, stills

TINY = {"total_steps": 1024, "eval.every": 1024, "eval.episodes": 1, "env.horizon": 16, "envs": 2, "steps": 16,
        "hidden": [4], "minibatches": 2}  # fmt: skip


def test_courses_are_steps_and_the_usual_ones_stay_within_their_time() -> None:
    assert studies.STUDIES["drones"] == "relab.lab.studies.drones"
    assert {step.name for step in plan(full=True)} == set(steps.COURSES)
    assert sum(step.seconds for step in plan(full=False)) <= 3 * 3600, "three hours of one core"


@pytest.mark.parametrize("name", steps.COURSES)
def test_courses_can_be_trained(name: str) -> None:
    config = layers.resolve([Layer("course", steps.COURSES[name] | {"seed": 3})]).config
    config.algo.check()
    assert (config.env.name, config.seed) == ("drones-v1", 3)


@pytest.mark.parametrize("task", ["hover_race", "pick_place"])
@pytest.mark.slow
def test_a_course_trains_plays_and_is_not_trained_twice(task: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(steps, "WORLDS", 2)
    monkeypatch.setitem(steps.COURSES, "tiny", {"algo": "ppo", "env": "drones", "env.task": task} | TINY)
    step = steps.trained("tiny", (7,))
    first = step(tmp_path, 1, str)
    before = (tmp_path / "s7" / "metrics.jsonl").stat().st_mtime_ns
    assert step(tmp_path, 1, str) == first
    assert (tmp_path / "s7" / "metrics.jsonl").stat().st_mtime_ns == before
    (run,) = first["runs"]
    assert (run["seed"], run["steps"], run["curve"]["steps"]) == (7, 1024, [0, 1024])
    assert set(run["played"]) == set(steps.PLAYS[task])
    for modes in run["played"].values():
        assert [(modes[mode]["n"], sum(modes[mode]["ends"].values())) for mode in ("det", "sampled")] == [(16, 16)] * 2


def episodes(level: float) -> list[dict[str, Any]]:
    info = dict.fromkeys(steps.NUMBERS, level)
    return [{"info": info, "success": level > 0.5, "end": "time_limit"}]


def test_means_are_over_episodes() -> None:
    made = steps.summary(episodes(0.2) + episodes(0.8))
    assert (made["performance"], made["success"], made["ends"], made["n"]) == (0.5, 0.5, {"time_limit": 2}, 2)


def made_run(seed: int, tasks: tuple[str, ...], level: float) -> dict[str, Any]:
    modes = {mode: steps.summary(episodes(level)) for mode in ("det", "sampled")}
    curve = {"steps": [0, 1_000_000]} | {name: [0.0, level] for name in steps.NUMBERS}
    return {"seed": seed, "steps": 1_000_000, "seconds": 60.0, "per_second": 16_667.0, "per_second_training": 2e4,
            "curve": curve, "played": dict.fromkeys(tasks, modes)}  # fmt: skip


def results() -> dict[str, StepResult]:
    runs = [made_run(seed, tuple(steps.PLAYS["hover_race"]), 0.9 + 0.01 * seed) for seed in range(5)]
    both = StepResult({"task": "hover_race", "runs": runs}, 60.0, "0123456789abcdef")
    one = StepResult({"task": "pick_place", "runs": [made_run(0, ("pick_place",), 0.25)]}, 60.0, "0123456789abcdef")
    return {"hover_race": both, "pick_place_long": one}


def test_the_page_shows_every_seed_the_interval_and_what_is_missing() -> None:
    text = page(results())
    assert "| 3 | 0.930 | 0.930 | 0.930 |" in text
    assert "**0.92** [" in text
    assert "**0.25** |" in text, "one seed has no interval"
    assert "time limit 5." in text
    assert "Not run: pick_place, hover_race_long, hover_race_full, pick_place_full." in text


def test_the_figure_draws_every_seed() -> None:
    drawn = figure.figure_of({name: result.numbers["runs"] for name, result in results().items()})
    assert [len(axes.lines) for axes in drawn.axes] == [6, 2]  # seeds, and the bar


@pytest.mark.slow
def test_stills_show_both_tasks(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(steps, "WORLDS", 1)
    monkeypatch.setattr(stills, "TICKS", {"race": (1, 2), "pick_place": (1, 3)})
    for task in ("hover_race", "pick_place"):
        monkeypatch.setitem(steps.COURSES, task, {"algo": "ppo", "env": "drones", "env.task": task} | TINY)
        steps.trained(task, (0,))(tmp_path / task, 1, str)
    stills.main(tmp_path / "both.png", tmp_path / "hover_race" / "s0", tmp_path / "pick_place" / "s0")
    from matplotlib import image

    height, width = image.imread(tmp_path / "both.png").shape[:2]
    assert (height > 300, width > 600) == (True, True)
