"""How long did it take? A clock that starts again, and one whose rows are in another order than that of time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import find, tfevents
from relab.record import clock
from relab.record.history import Column, History

HOUR = 3600.0


def test_each_resume_begins_at_zero_and_counts_on():
    assert clock.running(np.array([1.0, 3.0, 0.5, 2.0, 1.0])).tolist() == [1.0, 3.0, 3.5, 5.0, 6.0]


def test_a_clock_in_another_order_is_no_run_of_many_resumes():
    seconds = np.random.default_rng(0).permutation(np.linspace(0.0, HOUR, 200))
    history = History(Path("run"), columns={clock.CLOCK: Column(np.arange(200), seconds)})
    assert clock.elapsed(history) == HOUR
    assert math.isnan(clock.elapsed(History(Path("run"))))


@pytest.mark.parametrize("disorder", [2, 50])
def test_a_tensorboard_log_with_unordered_steps_takes_as_long_as_it_took(tmp_path, disorder):
    """Workers write episodes as they end: the steps go to and fro while the clock runs on."""
    rng = np.random.default_rng(0)
    steps = np.arange(1, 401) * 100
    steps[rng.choice(np.arange(60, 400), disorder, replace=False)] -= 5_050
    with tfevents.Writer(tmp_path) as writer:
        for i, step in enumerate(steps.tolist()):
            writer.scalar("charts/episodic_return", float(i), step, wall=1.7e9 + i)
    (run,) = find.load_all(tmp_path).runs
    assert clock.elapsed(run.history) == pytest.approx(399, abs=1)
    assert all(problem.read for problem in run.history.problems), "nothing of it was lost"
