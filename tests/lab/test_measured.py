"""Do experiments, sweeps and loops declare their number alike, with the same errors, and write it where it was?"""

from __future__ import annotations

from pathlib import Path

import pytest

from relab import cli
from relab.lab.experiment.question import Experiment
from relab.lab.loop.plan import Loop
from relab.lab.measured import MEASURE, Measured, in_order
from relab.lab.sweep.plan import Sweep

PLANS = (Experiment, Sweep, Loop)
BASE = "question: Which?\nbase: {env: cartpole}\n"
FILES = {
    "experiment": BASE + "vary: {algo.lr: [0.001, 0.01]}\n",
    "sweep": BASE + "axes: {algo.lr: [0.001, 0.01]}\n",
    "loop": BASE + "policy: {allow: {algo.lr: {low: 1e-5, high: 1e-2, log: true}}}\n",
}


@pytest.mark.parametrize("plan", PLANS)
def test_the_six_fields_stand_in_one_class(plan):
    assert issubclass(plan, Measured)
    assert not set(MEASURE) & set(vars(plan).get("__annotations__", {}))


@pytest.mark.parametrize("plan", PLANS)
def test_a_file_begins_with_the_question(plan):
    keys = list(in_order(plan))
    assert keys[0] == "question"
    place = keys.index("metric")
    assert tuple(keys[place : place + 6]) == MEASURE
    assert place < keys.index("budget")


@pytest.mark.parametrize("command", FILES)
@pytest.mark.parametrize(("line", "says"), [
    ("at: sometimes", "`at` must be one of final, mean_last_m"),
    ("direction: up", "`direction` must be higher or lower, but got 'up'"),
    ("smallest_effect: -1", "`smallest_effect` must be a finite number of at least 0, but got -1"),
    ("smallest_effect: .inf", "`smallest_effect` must be a finite number of at least 0, but got inf"),
    ("smallest_effect: .nan", "`smallest_effect` must be a finite number of at least 0, but got nan"),
    ("at: first_step_reaching", "`at: first_step_reaching` needs a `level`"),
    ("last: 0", "`last` must be at least 1, but got 0"),
    ("level: .nan", "`level` must be a finite number, but got nan"),
])  # fmt: skip
def test_what_cannot_be_measured_is_told_alike(command, line, says, capsys):
    path = Path("plan.yaml")
    path.write_text(FILES[command] + line + "\n")
    assert cli.main([command, str(path), "--dry-run"]) == 64
    assert says in capsys.readouterr().err
