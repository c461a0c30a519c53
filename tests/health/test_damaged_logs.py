"""Does a healthy run whose log is damaged get statements that its own numbers refute?"""

from __future__ import annotations

import numpy as np
import pytest
from test_rules_foreign import asked, made

from relab.health.engine import Finding
from relab.health.outcome import hardly_gained
from relab.runs.course import course_of

SAC = {"algo": {"name": "sac"}}


@pytest.mark.parametrize(
    ("bad", "when"),
    [([7], "at step 7,000 (1 of 30"), ([7, 9], "first at step 7,000 (2 of"), ([28, 29], "from step 28,000 on")],
)
def test_a_value_that_is_finite_again_is_not_called_lost_from_there_on(bad, when):
    values = np.linspace(1, 2, 30)
    values[bad] = np.nan
    assert when in asked("non-finite", made({"value/loss": values})).message


def test_steps_over_no_time_at_all_say_nothing_about_learning():
    speed = np.r_[np.inf, np.full(29, 900.0)]
    assert asked("non-finite", made({"time/sps_mean": speed})) is None
    assert asked("non-finite", made({"value/loss": speed})).severity == "warning"


def test_a_cost_that_evaluations_saw_fall_is_not_said_to_have_stayed():
    """Rows out of order: training's first third is as its last."""
    rows = np.tile([-80.0, -60.0, -40.0, -20.0, -11.0], 12)
    view = made({"return/mean": rows}, SAC)
    assert hardly_gained(view) is not None
    evals = [{"step": 6000 * i, "mode": "det", "episodes": [{"return": x + j} for j in range(4)]}
             for i, x in enumerate(np.linspace(-80, -11, 10))]  # fmt: skip
    judged = made({"return/mean": rows}, SAC)
    judged.history.evals = evals
    assert hardly_gained(judged) is None
    assert not isinstance(asked("has-not-learned", judged), Finding)


def test_a_count_of_updates_that_ends_at_0_is_not_taken_for_none():
    counts = np.r_[np.arange(59.0) * 10, 0.0]
    assert not isinstance(asked("learning-never-started", made({"data/updates": counts}, SAC)), Finding)
    assert isinstance(asked("learning-never-started", made({"data/updates": 0 * counts}, SAC)), Finding)


def test_losses_in_the_log_refute_that_learning_never_started():
    """Steps that are counted in thousands: 1,000 is beyond the last of them."""
    config = SAC | {"foreign": {"learning_starts": 1000}}
    rows = (np.arange(20), np.linspace(1, 2, 20))
    assert isinstance(asked("learning-never-started", made({"return/mean": rows}, config)), Finding)
    assert asked("learning-never-started", made({"return/mean": rows, "value/critic_loss": rows}, config)) is None


def test_a_rolling_mean_that_moved_has_an_episode_more():
    """Steps counted in thousands: by them and the length of an episode, hardly one ended between two rows."""
    rng = np.random.default_rng(1)
    means = 0.9 + 0.01 * rng.normal(size=40)
    columns = {"return/mean_100": (np.arange(40), means), "return/length": (np.arange(40), np.full(40, 1e6))}
    assert course_of(made(columns).history).points[-1].se < 1
