"""When was a level reached? Not by one lucky episode; and what is compared is said where evaluations tell otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from relab.comparison import arrival, build, render
from relab.comparison.numbers import Measure
from relab.comparison.task import Options
from relab.record.history import Column, History
from relab.runs.grouping import Run, make_run

TRAINING = Measure("return/mean", "mean_last_m", 5, 475.0, "higher")
LUCKY = [500.0 if i == 20 else 100.0 + i for i in range(200)]  # one episode of 500, the rest far below
MEANS = [90.0 + i for i in range(200)]


def run(name: str, lr: float = 0.1, evaluated: tuple[float, ...] = (), rolling: bool = False, seed: int = 0) -> Run:
    rows = [{"step": 1000 * (i + 1), "mode": "det", "episodes": [{"seed": k, "return": x, "length": 9} for k in (0, 1)]}
            for i, x in enumerate(evaluated)]  # fmt: skip
    config = {"env": {"name": "CartPole-v1"}, "algo": {"name": "ppo", "lr": lr}, "seed": seed}
    history = History(Path(name), evals=rows, config=config, source="sb3", meta={"spec": {"env": "CartPole-v1"}})
    steps = 50 * np.arange(1, 201, dtype=np.int64)
    history.columns["return/mean"] = Column(steps, np.array(LUCKY))
    if rolling:
        history.columns["return/mean_100"] = Column(steps, np.array(MEANS))
    return make_run(history, name, now=2e9)


def test_evaluations_tell_first_then_means_of_100_episodes_then_tenths():
    assert arrival.of(run("a", evaluated=(100.0, 480.0, 300.0)), TRAINING, 475.0) == (2000.0, True, "evaluations")
    assert arrival.of(run("b", rolling=True), TRAINING, 475.0) == (10_000.0, False, "means of 100 episodes")
    assert arrival.of(run("b", rolling=True), TRAINING, 190.0) == (5050.0, True, "means of 100 episodes")
    assert arrival.of(run("c"), TRAINING, 475.0) == (10_000.0, False, "means of tenths of training")


def test_the_screen_names_the_source_and_why_evaluations_were_left_aside():
    runs = [run(f"good_s{i}", 0.001, (100.0, 480.0, 389.0), seed=i) for i in range(3)]
    runs += [run(f"sick_s{i}", 0.1, rolling=True, seed=i) for i in range(3)]
    screen = render.text(build.compare(runs, Options()))
    assert "2,000 (3 of 3, evaluations)" in screen
    assert "(0 of 3, means of 100 episodes)" in screen
    assert "were not evaluated; evaluations ended at: " in screen
    assert "389" in screen
