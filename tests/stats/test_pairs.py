"""Are pairs told apart as often as a valid test would, and does their interval hold?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as oracle

from relab import stats
from relab.stats import means, pairs, planning, simulate_pairs

RNG = np.random.default_rng(0)


def test_flipped_signs_are_scipys_permutation_test():
    d = RNG.normal(0.6, 1.0, 9)
    found = oracle.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert pairs.flipped(d[None])[0] == pytest.approx(found.pvalue)


def test_drawn_flips_are_the_same_every_time_and_begin_with_what_was():
    assert (pairs.signs(20)[0] == 1).all()
    assert len(pairs.signs(20)) == pairs.FLIPS
    np.testing.assert_array_equal(pairs.signs(20), pairs.signs.__wrapped__(20))


def test_five_pairs_that_vary_alike_have_students_interval():
    """One difference unlike the others: t widened by Hall's correction held 0, and reached twice as far as any
    difference that was seen."""
    a, d = np.arange(5.0), np.array([4.0, 4.2, 3.9, 4.1, 0.5])
    interval = stats.paired_difference(a, a + d, 0.975)
    assert interval[1:3] == pytest.approx(oracle.ttest_1samp(d, 0).confidence_interval(0.975))
    assert means.widened(means.one_sample(d), 0.975)[0] < 0 < interval.low


def test_where_only_the_test_leaves_0_out_the_end_is_close_to_0():
    """One variant varies 2.8 times as much as the other: the widened interval holds 0, the test does not."""
    a, b = np.array([0.2, -0.6, 0.0, 0.3, -0.6]), np.array([3.6, 3.6, 4.0, 1.2, 2.0])
    assert means.widened(means.one_sample(b - a), 0.975)[0] < 0
    assert oracle.ttest_rel(b, a).pvalue < 0.025
    assert stats.paired_difference(a, b, 0.975).low == pytest.approx(0.05 * 3.02)


def test_a_variant_that_varies_five_times_as_much_needs_the_widened_interval():
    """Of a solved variant and a skewed one of the same mean, t alone calls a winner in 10 % where 2.5 % are allowed."""
    rng, reps = np.random.default_rng(1), 4000
    a, b = 1 + 0.02 * rng.normal(size=(reps, 5)), rng.lognormal(0, 0.8, (reps, 5)) - math.exp(0.32) + 1
    low, high = pairs.ends(a, b, 0.975)
    assert ((low > 0) | (high < 0)).mean() < 0.075
    plain = means.plain(means.one_sample(b - a), 0.975)
    assert ((plain[0] > 0) | (plain[1] < 0)).mean() > 0.08


@pytest.mark.parametrize("name", simulate_pairs.SPREAD)
@pytest.mark.parametrize("n", [5, 8])
def test_pairs_keep_their_error_and_four_fifths_of_the_best_power(name, n):
    """Before, when the widened interval decided, normal pairs had two thirds of the power of t at five."""
    reps = 4000
    cells = {c.method: c for c in simulate_pairs._cells(name, n, reps, np.random.default_rng(3))}
    assert cells["A/A error"].value <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / reps)
    assert cells["coverage"].value >= 0.93
    assert cells["share of the best"].value >= 0.8
    if name == "normal":
        assert cells["before"].value < 0.85 * cells["answer"].value


@pytest.mark.parametrize(("effect", "alpha"), [(1.0, 0.05), (1.5, 0.025), (2.0, 0.0125)])
def test_pairs_needed_are_enough_for_the_method_itself(effect, alpha):
    n, reps = max(planning.pairs_for(effect, 1.0, alpha), 5), 4000
    a = np.random.default_rng(4).normal(size=(reps, n))
    b = a + np.random.default_rng(5).normal(effect, 1.0, (reps, n))
    assert (pairs.ends(a, b, 1 - alpha)[0] > 0).mean() >= 0.8 - 3 * math.sqrt(0.16 / reps) - 0.02


def test_a_range_of_pairs_holds_the_number_for_the_true_spread():
    rng, truth = np.random.default_rng(2), planning.pairs_for(1.0, 1.0, 0.025)
    ranges = [stats.pairs_range(1.0, rng.normal(size=8), 0.025) for _ in range(300)]
    assert np.mean([low <= truth <= high for low, high in ranges]) > 0.75
