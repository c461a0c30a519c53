"""What would the next run cost? From the clock alone, where a record times no parts of a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relab.advise.predict import cost
from relab.health.view import View
from relab.record.history import Column, History


def test_a_clock_alone_tells_the_cost_also_of_a_run_that_was_resumed():
    history = History(Path("run"), config={"total_steps": 20_000}, source="sb3")
    steps = np.array([5000, 10_000, 15_000, 20_000])
    history.columns["time/elapsed_s"] = Column(steps, np.array([7.0, 14.0, 6.0, 13.0]))
    history.columns["return/mean"] = Column(steps, np.array([1.0, 2.0, 3.0, 4.0]))
    view = View(history, "run")
    assert cost(view, {"algo.lr": (0.1, 0.01)}).seconds == pytest.approx(27.0)
    assert cost(view, {"algo.epochs": (10, 5)}).seconds is None
    del history.columns["time/elapsed_s"]
    assert cost(View(history, "run"), {"algo.lr": (0.1, 0.01)}).seconds is None
