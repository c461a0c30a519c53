"""Are the intervals those of Student's t, and do they hold the truth as often as they say?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special
from scipy import stats as reference

from relab import stats

DEGREES = (1, 2, 3, 4, 9, 19, 29.5, 99, 1000, 1e5, 1e7)


@pytest.mark.parametrize("df", DEGREES)
def test_t_quantile_equals_scipys(df):
    for p in (0.0005, 0.025, 0.3, 0.5, 0.51, 0.6, 0.9, 0.975, 0.995, 0.9995, 1 - 1e-9):
        assert stats.t_quantile(p, df) == pytest.approx(reference.t.ppf(p, df), rel=1e-6, abs=1e-9), (p, df)


@pytest.mark.parametrize("df", DEGREES)
def test_t_cdf_equals_scipys(df):
    for t in (0.0, 0.1, 1.0, 1.96, 5.0, 100.0, 1e6):
        assert stats.t_cdf(t, df) == pytest.approx(reference.t.cdf(t, df), abs=1e-8), (t, df)


def test_beta_share_equals_scipys():
    for a in (0.5, 1, 2.5, 30, 400):
        for b in (0.5, 1, 3, 50):
            for x in (0.0, 1e-6, 0.1, 0.5, 0.9, 0.999, 1.0):
                expected = special.betainc(a, b, x)
                assert stats.beta_share(a, b, x) == pytest.approx(expected, rel=1e-9, abs=1e-15), (a, b, x)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_an_impossible_probability_is_an_error(p):
    with pytest.raises(ValueError, match=r"between 0 and 1.*got"):
        stats.t_quantile(p, 5)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [2, 3, 10, 500])
def test_mean_interval_equals_scipys(n, level):
    x = np.random.default_rng(n).normal(3, 2, n)
    found = stats.mean_interval(x, level)
    low, high = reference.t.interval(level, n - 1, loc=x.mean(), scale=reference.sem(x))
    assert (found.n, found.level) == (n, level)
    np.testing.assert_allclose([found.mid, found.low, found.high], [x.mean(), low, high], rtol=1e-9)


def test_mean_interval_by_hand():
    """1, 2, 3: mean 2, sd 1, t_{0.975, 2} = 4.302653."""
    found = stats.mean_interval(np.array([1, 2, 3]))
    assert found.mid == 2.0
    assert found.high - found.mid == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert found.mid - found.low == pytest.approx(found.high - found.mid)


def test_too_few_samples_have_no_interval():
    one, none = stats.mean_interval(np.array([5.0])), stats.mean_interval(np.array([]))
    assert one.mid == 5.0
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert (one.n, none.n) == (1, 0)
    assert math.isnan(none.mid)


def test_equal_samples_have_an_interval_of_no_width():
    found = stats.mean_interval(np.full(5, 7.0))
    assert (found.low, found.mid, found.high) == (7.0, 7.0, 7.0)


def test_a_missing_number_is_not_hidden():
    assert math.isnan(stats.mean_interval(np.array([1.0, math.nan, 3.0])).mid)


@pytest.mark.parametrize("n", [2, 5, 20])
def test_coverage_of_normal_data_is_the_level(n):
    """20,000 repetitions: a standard error of 0.15 %; four of them are allowed."""
    trials, level = 20_000, 0.95
    x = np.random.default_rng(n).normal(1.0, 2.0, (trials, n))
    half = stats.mean_interval(x[0], level)
    factor = (half.high - half.mid) / x[0].std(ddof=1)  # what the interval is in standard deviations, for this n
    mid, sd = x.mean(1), x.std(1, ddof=1)
    covered = np.mean(np.abs(mid - 1.0) <= factor * sd)
    sample = [stats.mean_interval(row, level) for row in x[:200]]
    np.testing.assert_allclose([i.high - i.mid for i in sample], factor * sd[:200], rtol=1e-9)
    assert abs(covered - level) < 4 * math.sqrt(level * (1 - level) / trials)
