"""Is nothing kept that luck could have made, and what is better all the same? Hand numbers and whole loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.stats import keeping, simulate_loop


def test_the_shares_of_all_proposals_stay_below_the_whole_error():
    assert keeping.share(1, 20) == pytest.approx(0.05 * 0.8 / 20)
    assert math.fsum(keeping.share(k, 20) for k in range(1, 21)) == pytest.approx(0.04)
    assert math.fsum(keeping.share(k, 20) for k in range(1, 2001)) <= 0.05 * (1 + 1e-9)
    assert keeping.by_chance([1, 3, 21], 20) == pytest.approx(0.002 + 0.002 + 0.0004)
    with pytest.raises(ValueError, match="count from 1"):
        keeping.share(0, 20)


def test_noise_is_pooled_within_configs_over_all_of_them():
    spread = keeping.pooled([np.array([0.0, 2.0]), np.array([100.0, 104.0, np.nan]), np.array([7.0])])
    assert spread == (pytest.approx(math.sqrt((2 + 8) / 2)), 2)
    assert keeping.pooled([np.array([1.0])]).freedom == 0
    assert keeping.floor(keeping.pooled([np.array([1.0])]), 3, 3, 0.01) == math.inf, (
        "nothing is beyond an unknown noise"
    )


def test_the_floor_is_the_quantile_of_a_difference_of_two_groups_that_are_alike():
    # t(0.975, 4) = 2.776445; sd 2; sqrt(1/2 + 1/8) = 0.790569
    assert keeping.floor(keeping.Spread(2.0, 4), 2, 8, 0.025) == pytest.approx(2.776445 * 2 * 0.790569, rel=1e-5)


def test_the_first_look_asks_for_half_a_standard_error_and_half_of_what_matters():
    base, spread = np.zeros(8), keeping.Spread(1.0, 20)
    error = math.sqrt(1 / 8 + 1 / 2)
    assert keeping.first_look(base, np.full(2, 0.6 * error), spread).go_on
    assert not keeping.first_look(base, np.full(2, 0.4 * error), spread).go_on
    assert not keeping.first_look(base, np.full(2, 0.6 * error), spread, smallest=2.0).go_on
    assert not keeping.first_look(base, np.zeros(2), keeping.Spread(0.0, 5)).go_on, "equal is not better"


def test_a_decision_needs_its_interval_the_floor_and_what_matters():
    base = np.array([0.1, -0.2, 0.3, 0.0, -0.1, 0.2, -0.3, 0.0])
    spread = keeping.pooled([base])
    better = base[:6] + 3.0
    kept = keeping.decide(base, better, 0.001, spread)
    assert kept.keep
    assert 0 < kept.low < kept.delta < kept.high
    assert keeping.decide(base, base[:6], 0.001, spread).reason == "noise"
    assert keeping.decide(base, better, 0.001, spread, smallest=5.0).reason == "small"
    assert keeping.decide(base, better, 0.001, keeping.Spread(50.0, 40)).reason == "floor", "others vary far more"
    assert keeping.decide(base, better[:1], 0.001, spread).reason == "few"
    assert keeping.decide(np.ones(8), np.ones(6), 0.001, keeping.Spread(0.0, 10)).reason == "noise", "all are alike"


def test_what_is_ahead_and_cannot_be_told_is_worth_as_many_seeds_again():
    open_ = keeping.Decision(False, 3.0, -1.0, 7.0, 1.0, 0.001, "noise")
    assert keeping.ahead(open_, error=1.4, smallest=0.0)
    assert not keeping.ahead(open_, error=1.6, smallest=0.0)
    assert not keeping.ahead(open_, error=1.0, smallest=4.0)
    assert not keeping.ahead(open_._replace(keep=True), error=1.0, smallest=0.0)


def test_simulated_loops_keep_what_is_better_and_hardly_any_luck():
    """The table of docs/loop.md is `relab coverage --loop`; this is a corner of it."""
    normal = {"normal": simulate_loop.SHAPES["normal"]}
    null, large = simulate_loop.table(12, 0, normal, {"null": 0.0, "+3 sd": 3.0})
    assert null.false_keeps <= 1 / 12
    assert null.naive_keeps > 1, "a loop that keeps whatever came out higher keeps luck"
    assert large.kept_share > 0.8
    assert "keeps by luck a loop" in simulate_loop.markdown([null, large], 0)
