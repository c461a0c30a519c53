"""What does a curve show by itself, where the log holds no settings? Each with a run in which it must be silent."""

from __future__ import annotations

import numpy as np
import pytest
from test_rules_foreign import asked, made

from relab.formats.read import tb_merge
from relab.formats.read.tb_merge import Place, Points
from relab.health.engine import Finding, NotChecked

RISES = np.linspace(10, 100, 40) + np.sin(np.arange(40))
FLAT = 10 + np.sin(np.arange(40) * 2.0)
GAUSS = {"algo": {"name": "ppo_continuous_action"}}
PPO = {"algo": {"name": "ppo"}}


def told(slug, columns, config=None, meta=None):
    """The severity of a finding; None where there is none."""
    answer = asked(slug, made(columns, config or PPO, meta))
    assert not isinstance(answer, NotChecked), answer
    return answer.severity if isinstance(answer, Finding) else None


@pytest.mark.parametrize(
    ("kl", "returns", "expected"), [(0.3, FLAT, "warning"), (0.3, RISES, "info"), (0.03, FLAT, None)]
)
def test_a_large_kl_needs_no_target(kl, returns, expected):
    assert told("update-too-large", {"policy/kl": np.full(40, kl), "return/mean": returns}) == expected


@pytest.mark.parametrize(("start", "end", "expected"), [(2.8, 3.6, "warning"), (2.8, 2.9, None), (-1.2, 0.5, None)])
def test_a_gaussian_that_widens_needs_no_coefficient(start, end, expected):
    columns = {"policy/entropy": np.linspace(start, end, 40), "return/mean": RISES}
    assert told("entropy-runaway", columns, GAUSS) == expected


@pytest.mark.parametrize(("end", "expected"), [(3950.0, "warning"), (1.8, None)])
def test_a_spread_that_grows_needs_no_range(end, expected):
    assert told("std-exceeds-action-range", {"foreign/train/std": np.linspace(1.5, end, 40)}, GAUSS) == expected


@pytest.mark.parametrize(
    ("ev", "returns", "expected"), [(-3.0, RISES, "warning"), (0.0, RISES, None), (0.0, -RISES, "warning")]
)
def test_a_critic_worse_than_nothing_counts_whatever_the_return_does(ev, returns, expected):
    columns = {"value/explained_variance": np.full(40, ev), "return/mean": returns}
    assert told("critic-not-learning", columns) == expected


@pytest.mark.parametrize(("loss", "expected"), [(1e9, "warning"), (2e4, "info"), (50.0, None)])
def test_a_value_loss_out_of_all_scale_is_a_warning(loss, expected):
    answer = asked("value-loss-blow-up", made({"value/loss": np.full(40, loss), "return/mean": RISES}, PPO))
    severity = (answer.severity or "info") if isinstance(answer, Finding) else None
    assert severity == expected


@pytest.mark.parametrize(("returns", "expected"), [(FLAT, "warning"), (RISES, "info")])
def test_random_actions_to_the_end_count_where_nothing_was_learned(returns, expected):
    columns = {"policy/exploration": np.ones(40), "return/mean": returns}
    assert told("exploration-never-ends", columns, {"algo": {"name": "dqn"}}) == expected


def test_a_rate_printed_as_zero_in_a_run_that_learned_is_a_remark():
    rate = np.r_[np.full(5, 1e-3), np.zeros(35)]
    assert told("learning-rate-zero", {"optim/lr": rate, "return/mean": RISES}) == "warning"
    assert told("learning-rate-zero", {"optim/lr": np.zeros(40), "return/mean": RISES}) == "info"
    assert told("learning-rate-zero", {"optim/lr": np.linspace(1e-3, 0, 40), "return/mean": RISES}) is None


def test_a_short_discount_is_the_business_of_ppo_too():
    columns = {"return/mean": FLAT, "return/length": np.full(40, 60.0)}
    assert told("discount-out-of-range", columns, {"algo": {"name": "ppo", "gamma": 0.2}}) == "warning"
    assert told("discount-out-of-range", columns, {"algo": {"name": "ppo", "gamma": 0.99}}) is None


def test_a_weight_of_zero_leaves_the_critic_untrained():
    assert told("setting-out-of-range", {}, {"algo": {"name": "ppo", "value_coef": 0.0}}) == "warning"
    assert told("setting-out-of-range", {}, {"algo": {"name": "ppo", "value_coef": 0.5}}) is None


def test_a_fall_among_few_long_episodes_is_seen_by_its_steps():
    """A thousand short episodes, then forty long ones over half of the steps, which earn nothing."""
    steps = np.r_[np.arange(1000) * 10, 10_000 + np.arange(40) * 250]
    returns = np.r_[np.minimum(np.arange(1000) / 300, 1.0), np.full(40, -2.0)] + 0.01 * np.sin(np.arange(1040) * 1.7)
    assert told("peak-then-collapse", {"return/mean": (steps, returns)}) == "warning"
    assert told("peak-then-collapse", {"return/mean": (steps[:1000], returns[:1000])}) is None


def test_steps_that_a_file_wrote_twice_are_told():
    steps = np.r_[np.arange(0, 50, 10), np.arange(0, 50, 10)]
    merged = tb_merge.Merged()
    tb_merge._in_order(Points(steps, steps * 1.0, steps * 1.0), merged, Place("events", "x"))
    again = merged.again
    assert again is not None
    assert (again.step, again.points) == (0, 5)
    columns = {"return/mean": FLAT}
    assert told("steps-not-monotone", columns, meta={"steps_again": {"step": 0, "points": 5, "tags": 1}}) == "warning"
    assert told("steps-not-monotone", columns) is None
