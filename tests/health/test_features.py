"""Are a curve's features the numbers that one would work out by hand?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from relab.health.features import FEATURES, METRICS, Key, curve_features, features, return_size
from relab.record import glossary
from relab.record.history import Column, History


def column(values: list[float] | np.ndarray, every: int = 10) -> Column:
    values = np.asarray(values, float)
    return Column(np.arange(len(values), dtype=np.int64) * every, values)


RISING = column(np.arange(30.0))


def test_levels_are_medians_of_thirds_of_the_steps():
    numbers = curve_features("policy/kl", column([1.0] * 10 + [5.0] * 10 + [2.0] * 10), None, None)
    assert (numbers["first"], numbers["middle"], numbers["last"]) == (1.0, 5.0, 2.0)
    assert numbers["peak"] == 5.0
    assert numbers["growth"] == pytest.approx(math.log10(2.0))


def test_thirds_are_of_steps_not_of_rows():
    """Many short episodes at the start, few long ones later."""
    steps = np.concatenate([np.arange(20), np.arange(20, 300, 20)])
    values = np.concatenate([np.full(20, 1.0), np.full(14, 7.0)])
    numbers = curve_features("policy/kl", Column(steps, values), None, None)
    assert numbers["first"] == 1.0
    assert numbers["middle"] == numbers["last"] == 7.0


def test_one_wild_row_is_no_peak():
    values = np.ones(30)
    values[12] = 1e9
    assert curve_features("policy/kl", column(values), None, None)["peak"] == 1.0


def test_what_may_be_negative_grows_by_its_difference():
    numbers = curve_features("policy/entropy", column([-2.0] * 10 + [0.0] * 10 + [1.0] * 10), None, None)
    assert numbers["growth"] == 3.0


def test_losses_are_told_in_units_of_the_returns():
    """A loss of 50 where returns have a size of 10 is half of their square; without returns its level says nothing."""
    curve = column([50.0] * 30)
    assert curve_features("value/loss", curve, None, 10.0)["last"] == 0.5
    assert curve_features("value/q_mean", curve, None, 10.0)["last"] == 5.0
    without = curve_features("value/loss", curve, None, None)
    assert "last" not in without
    assert without["growth"] == 0.0


def test_size_of_returns():
    assert return_size(column([-10.0] * 20)) == 10.0
    assert return_size(column([0.0] * 20)) is None
    assert return_size(None) is None


def test_spread_is_the_quartiles_distance_over_the_median():
    numbers = curve_features("policy/kl", column([0.0] * 20 + [1.0, 2.0, 3.0, 4.0, 5.0] * 4), None, None)
    assert numbers["spread"] == pytest.approx((4 - 2) / 3)


def test_share_at_a_bound():
    clip = curve_features("policy/clip_share", column([0.0] * 5 + [1.0] * 10 + [0.5] * 15), None, None)
    assert clip["at_bound"] == 0.5
    assert curve_features("value/explained_variance", column([0.0] * 15 + [0.3] * 15), None, None)["at_bound"] == 0.5


def test_company_of_the_return():
    up, down = column(np.linspace(0, 1, 40)), column(np.linspace(1, 0, 40))
    assert curve_features("policy/entropy", down, up, 1.0)["with_return"] == pytest.approx(-1)
    assert curve_features("policy/entropy", up, up, 1.0)["with_return"] == pytest.approx(1)
    assert "with_return" not in curve_features("policy/entropy", column([1.0] * 40), up, 1.0)


def test_rows_that_are_not_finite_are_left_out():
    values = np.where(np.arange(30) % 2 == 0, 2.0, np.nan)
    assert curve_features("policy/kl", column(values), None, None)["last"] == 2.0
    assert curve_features("policy/kl", column([np.nan] * 30), None, None) == {}


def test_a_short_curve_says_nothing():
    assert curve_features("policy/kl", column([1.0] * 7), None, None) == {}
    assert curve_features("policy/kl", Column(np.zeros(30, np.int64), np.ones(30)), None, None) == {}


def test_training_returns_come_before_evaluations():
    history = History(Path("run"), {"return/mean": column([4.0] * 30), "eval/return_det": column([8.0] * 30)})
    history.columns["value/q_mean"] = column([8.0] * 30)
    assert features(history)[Key("value/q_mean", "last")] == 2.0


def test_a_spread_in_unknown_units_gives_only_its_shape():
    history = History(Path("run"), {"foreign/train/std": column(np.geomspace(1, 1000, 30))})
    numbers = features(history)
    assert numbers[Key("policy/std_mean", "growth")] == pytest.approx(2, abs=0.2)
    assert Key("policy/std_mean", "last") not in numbers


def test_every_compared_metric_is_in_the_glossary():
    assert all(glossary.known(metric) for metric in METRICS[1:])
    assert set(curve_features("policy/kl", RISING, column(np.arange(30.0)), 1.0)) <= set(FEATURES)
