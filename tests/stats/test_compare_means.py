"""Do the tests behind an answer hold their error, tell what is there, and cover? scipy as oracle, small simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as oracle

from relab import stats
from relab.stats import compare_means, humps, looks, permutation, simulate, simulate_power

RNG = np.random.default_rng(11)
REPS = 1000


# ---- Counts


@pytest.mark.parametrize(("x", "y", "n", "m"), [(1, 5, 5, 5), (2, 8, 8, 8), (0, 3, 5, 7), (4, 9, 10, 10), (5, 6, 8, 6)])
def test_barnards_p_is_scipys(x, y, n, m):
    want = oracle.barnard_exact([[x, y], [n - x, m - y]]).pvalue
    assert humps.barnard(n, m)[x, y] == pytest.approx(want, rel=2e-3)


def test_five_of_five_against_one_by_hand():
    """At a common rate of 1/2: (5, 0), (5, 1), (4, 0) and their mirrors have 2 (1 + 5 + 5) of 1024 ways."""
    assert humps.barnard(5, 5)[1, 5] == pytest.approx(22 / 1024)
    assert humps.barnard(5, 5)[0, 5] == pytest.approx(2 / 1024)


def test_fisher_with_a_coin_uses_all_of_alpha():
    calls = humps.fisher_with_a_coin(6, 9, 0.05)
    for total in (3, 7, 12):
        x = np.arange(max(0, total - 9), min(6, total) + 1)
        assert calls[x, total - x] @ oracle.hypergeom(15, total, 6).pmf(x) == pytest.approx(0.05)


def test_counts_lead_at_five_seeds_and_2_5_percent_but_not_at_5():
    assert humps.counts_tell_enough(5, 5, 0.025)
    assert not humps.counts_tell_enough(5, 5, 0.05), "no table lies between 2.15 and 5 %"
    assert all(humps.counts_tell_enough(n, n, alpha) for n in (10, 15) for alpha in (0.05, 0.025))


def test_two_humps_are_cut_at_the_widest_gap_whoever_is_in_them():
    a, b = np.array([[20.0, 21, 19, 500, 498]]), np.array([[499.0, 500, 500, 18, 497]])
    split = humps.humps(a, b)
    assert (split.two[0], split.high_a[0], split.high_b[0]) == (True, 2, 4)
    assert split.gap[0] == pytest.approx(np.mean([500, 498, 499, 500, 500, 497]) - np.mean([20, 21, 19, 18]))
    assert not humps.humps(np.arange(5.0)[None], np.arange(5.0)[None] + 0.5).two[0]
    assert not humps.humps(np.array([[0.0, 0, 0, 0, 9]]), np.zeros((1, 5))).two[0], "one run is no hump"


# ---- Deals


def test_deals_leave_out_0_where_scipys_permutation_test_does():
    def t(x, y, axis):
        return oracle.ttest_ind(y, x, equal_var=False, axis=axis).statistic

    for _ in range(10):
        a, b = RNG.normal(0, 1, 5), RNG.normal(1.5, 1, 5)
        p = oracle.permutation_test((a, b), t, permutation_type="independent", n_resamples=252).pvalue
        seen = t(a, b, 0)
        for alpha in (0.02, 0.05, 0.2):
            low, high = permutation.critical(a[None], b[None], alpha)
            assert (seen > high[0] or seen < low[0]) == (p <= alpha)


def test_no_deal_is_rarer_than_the_finest_p():
    a, b = np.arange(5.0)[None], np.arange(5.0)[None] + 100
    assert permutation.finest(5, 5) == 2 / 252
    assert permutation.critical(a, b, 0.9 * 2 / 252)[1][0] == np.inf
    assert permutation.critical(a, b, 2 / 252)[1][0] < np.inf
    assert stats.difference(a[0], b[0], 1 - 1e-4).low > 0, "where deals end, Welch's t goes on"


def test_drawn_deals_are_the_same_every_time_and_begin_with_what_was():
    rows = permutation.deals(12, 12)
    assert len(rows) == permutation.DEALS
    assert rows[0].tolist() == [0.0] * 12 + [1.0] * 12
    assert set(rows.sum(1)) == {12.0}
    assert permutation.deals(5, 5)[0].tolist() == [0.0] * 5 + [1.0] * 5


def test_ties_decide_nothing():
    """All runs but one at the ceiling: every deal is as good as another, up to rounding."""
    a, b = np.array([1.0, 1, 1, 1, 0.97]), np.ones(5)
    interval = stats.difference(a, b, 0.95)
    assert interval.low <= 0 <= interval.high


# ---- The interval


def test_an_interval_tells_what_its_tests_tell():
    a = np.array([0.02, -0.01, 0.0, 0.01, 1.02])
    b = np.array([1.01, 0.98, 1.0, 1.02, 0.99])
    interval = stats.difference(a, b, 0.975)
    assert interval.low > 0, "five solved against one: p is 2.15 %"
    assert stats.difference(a, b, 0.98).low <= 0


FAR = np.array([100.0, 101, 99, 102, 98]), np.array([20.0, 21, 19, 22, 18])


def test_two_tight_groups_far_apart_have_the_interval_of_two_groups():
    """It was -80 [-82.75, -23.3], as if runs of one were known to end in the other's group now and then."""
    mid, low, high, *_ = stats.difference(*FAR, 0.975)
    half = oracle.t.ppf(0.9875, 8) * FAR[0].std() / 2 * math.sqrt(2)
    assert (mid, low, high) == pytest.approx((-80, -80 - half, -80 + half), abs=1e-3)


@pytest.mark.parametrize("bounds", [(0.0, 102.0), (18.0, math.inf)])
def test_a_group_at_a_bound_is_solved_or_failed_and_few_seeds_can_miss_the_other_outcome(bounds):
    mid, _, high, *_ = stats.difference(*FAR, 0.975, bounds)
    assert high == pytest.approx(mid + 80 * (2 - 2 * 0.0125**0.1), abs=1), "rates d apart: ((1 + d) / 2)^10"
    many = stats.difference(np.linspace(98, 102, 30), np.linspace(18, 22, 30), 0.975, bounds)
    assert many.high - many.mid < 25


def test_groups_that_one_arm_shares_are_counts_whatever_is_known_of_bounds():
    split = humps.humps(np.array([[0.0, 0, 0, 0, 1]]), np.array([[1.0, 1, 1, 1, 1]]))
    assert split.mixed[0]
    apart = humps.humps(FAR[0][None], FAR[1][None])
    assert (bool(apart.two[0]), bool(apart.mixed[0])) == (True, False)
    assert not humps.counted(FAR[0][None], FAR[1][None], apart)[0]


@pytest.mark.parametrize(("n", "m"), [(5, 5), (8, 8), (5, 15)])
def test_ends_of_two_rates_hold_at_all_rates(n, m):
    """Exact coverage, summed over all tables: never below the level."""
    low, high = humps.rate_ends(n, m, 0.95)
    for p in (0.01, 0.1, 0.2, 0.5, 0.8):
        for q in (0.05, 0.3, 0.5, 0.9, 0.99):
            mass = np.outer(oracle.binom.pmf(range(n + 1), n, p), oracle.binom.pmf(range(m + 1), m, q))
            assert (mass * ((low <= q - p) & (q - p <= high))).sum() >= 0.95 - 1e-9
            assert (mass * (high < q - p)).sum() <= 0.025 + 1e-9, "each side errs in half of it at most"


def test_labels_play_no_part():
    """Swapped arms give the mirrored interval."""
    for a, b in ((RNG.normal(size=7), RNG.normal(1, 3, 9)), (RNG.random(6) < 0.3, RNG.random(6) < 0.9)):
        one, other = stats.difference(a * 1.0, b * 1.0), stats.difference(b * 1.0, a * 1.0)
        assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-9)


@pytest.mark.parametrize("case", simulate_power.CASES, ids=lambda case: f"{case.name} {case.b}")
@pytest.mark.some(2)
def test_power_and_error_at_five_seeds(case):
    """A small table at 2.5 %: it errs no more than it may and tells at least 80 % of what the best valid test tells."""
    reps = 6000
    cells = {c.method: c for c in simulate_power._cells(case, 5, "", 0.025, reps, np.random.default_rng(3))}
    assert cells["A/A error"].value <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / reps)
    least = 0.7 if case.name == "outliers" else 0.8  # at five seeds: docs/statistics.md, limits
    if cells["answer"].value > 0.1:  # below, a share of hardly anything is noise
        assert cells["share of the best"].value >= least - 3 * cells["answer"].error
    if "unknown" not in case.name:  # groups that nothing says are solve or fail: docs/statistics.md, limits
        assert cells["coverage"].value >= 0.93 - 3 * cells["coverage"].error


def test_solved_or_failed_is_told_more_often_than_before():
    case = next(case for case in simulate_power.CASES if case.b == ".2 to .9")
    cells = {c.method: c.value for c in simulate_power._cells(case, 5, "", 0.025, REPS, np.random.default_rng(4))}
    assert cells["answer"] > 0.48
    assert cells["before"] < 0.25


# ---- Looks


def test_bounds_of_declared_sizes_hold_their_error_in_a_simulated_walk():
    sizes = (5, 8, 15)
    steps = np.random.default_rng(0).normal(size=(200_000, 15)).cumsum(1)
    crossed = np.zeros(len(steps), bool)
    for k, n in enumerate(sizes):
        level = looks.sized_alpha(sizes[: k + 1], 15)
        crossed |= np.abs(steps[:, n - 1]) / math.sqrt(n) > oracle.norm.ppf(1 - level / 2)
        assert crossed.mean() == pytest.approx(looks.spent_by(n / 15), abs=4 * math.sqrt(0.05 / len(steps)))


@pytest.mark.slow
def test_looks_one_by_one_at_solve_or_fail_err_no_more_than_declared():
    """It was .053 to .059, because the test changed from look to look; .034 where counts decide at nearly all."""
    rng, sizes, reps = np.random.default_rng(7), tuple(range(5, 16)), 2000
    a, b = ((rng.random((reps, 15)) < 0.2) + 0.02 * rng.normal(size=(reps, 15)) for _ in range(2))
    called = np.zeros(reps, bool)
    for k, n in enumerate(sizes):
        low, high = compare_means.ends(a[:, :n], b[:, :n], 1 - looks.sized_alpha(sizes[: k + 1], 15), simulate.DEALS)
        called |= (low > 0) | (high < 0)
    assert called.mean() < 0.045


def test_the_simulations_deals_tell_what_those_of_an_answer_tell():
    """500 deals told .52 below a ceiling where an answer tells .56: the tables were of a weaker test."""
    rng = np.random.default_rng(11)
    a, b = (np.minimum(rng.normal(mean, 1.0, (REPS, 10)), 1.0) for mean in (1.0, 3.0))
    few, many = (
        float((compare_means.ends(a, b, 0.95, deals, (-math.inf, 1.0))[0] > 0).mean())
        for deals in (simulate.DEALS, permutation.DEALS)
    )
    assert few == pytest.approx(many, abs=0.012)


def test_one_declared_size_is_the_plain_level():
    assert looks.sized_alpha((12,), 12) == pytest.approx(0.05, rel=1e-3)
    assert looks.sized_alpha((6,), 12, 0.01) == pytest.approx(
        2 * oracle.norm.sf(oracle.norm.isf(0.005) * 2**0.5), rel=1e-2
    )


# ---- A mean over seeds


def test_a_mean_over_seeds_is_students_for_symmetric_numbers_and_cut_at_bounds():
    x = [1.0, 2, 3, 4, 5]
    mean = stats.mean_over_seeds(x)
    want = oracle.t.interval(0.95, 4, 3.0, oracle.sem(x))
    assert (mean.low, mean.high) == pytest.approx(want, rel=1e-4)
    assert stats.mean_over_seeds(x, (1.5, 4.5))[1:3] == (1.5, 4.5)
    assert stats.mean_over_seeds(x, (-math.inf, 2.0)).high == 3.0, "never under what was measured"


def test_under_five_seeds_there_is_a_range_and_no_interval():
    mean = stats.mean_over_seeds([283.7, 500.0, math.nan])
    assert not mean.known
    assert (mean.n, mean.least, mean.most, mean.gone) == (2, 283.7, 500.0, 1)
    assert stats.mean_over_seeds([]).n == 0


# ---- Seeds needed, overstatement


@pytest.mark.parametrize(("effect", "alpha"), [(1.0, 0.05), (1.5, 0.025), (2.0, 0.0125)])
def test_seeds_needed_are_enough_for_the_method_itself(effect, alpha):
    n = max(stats.seeds_for(effect, 1.0, alpha), 5)
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(REPS, n)), rng.normal(effect, 1.0, (REPS, n))
    power = float((compare_means.ends(a, b, 1 - alpha, 1000)[0] > 0).mean())
    assert power >= 0.8 - 3 * math.sqrt(0.16 / REPS)
    fewer = max(n - 3, 5)
    assert fewer == 5 or (compare_means.ends(a[:, :fewer], b[:, :fewer], 1 - alpha, 1000)[0] > 0).mean() < 0.85


@pytest.mark.parametrize(("rates", "alpha"), [((0.2, 0.9), 0.025), ((0.3, 0.7), 0.05), ((0.1, 0.6), 0.0125)])
def test_seeds_needed_of_solve_or_fail_are_enough_for_the_exact_test(rates, alpha):
    """By simulation of the method itself; the formula for normal means would give a power of .6 to .76 here."""
    n = humps.seeds_for_rates(rates, alpha, 5)
    rng = np.random.default_rng(6)
    a, b = ((rng.random((REPS, n)) < rate) + 0.02 * rng.normal(size=(REPS, n)) for rate in rates)
    told = float((compare_means.ends(a, b, 1 - alpha, 1000)[0] > 0).mean())
    assert told == pytest.approx(humps.power(n, rates, alpha), abs=0.05)
    assert told >= 0.8 - 3 * math.sqrt(0.16 / REPS)
    assert humps.seeds_for_rates((0.5, 0.52), alpha, 5) is None


@pytest.mark.slow
def test_a_range_of_seeds_for_counts_holds_the_number_for_the_true_rates():
    rng, hits = np.random.default_rng(2), 0
    for _ in range(60):
        a, b = ((rng.random(8) < rate) + 0.02 * rng.normal(size=8) for rate in (0.2, 0.9))
        low, high = stats.seeds_range(0.7, a, b, 0.025)
        hits += low <= humps.seeds_for_rates((0.2, 0.9), 0.025, 5) <= high
    assert hits >= 48, "four of five, as the 80 % interval of the common rate says"


def test_overstatement_is_the_mean_of_what_is_told():
    """Of normal arms by the method itself: the bar is not one number, for the errors are estimated anew each time."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(8000, 5)), rng.normal(1.2, 1.0, (8000, 5))
    delta = b.mean(1) - a.mean(1)
    for level, least in ((0.975, 0.0), (0.95, 1.5)):
        told = (compare_means.ends(a, b, level)[0] > 0) & (delta >= least)
        factor = stats.overstatement(1.2, math.sqrt(2 / 5), 8, level, least)
        assert factor == pytest.approx(delta[told].mean() / 1.2, rel=0.04)
    assert stats.overstatement(10.0, 0.7, 8, 0.95) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("level", [0.975, 0.95])
@pytest.mark.parametrize("sd", [2.0, 3.0, 5.0])
def test_a_small_arm_that_is_wider_is_not_called_different(sd, level):
    """Five seeds against twenty of the same mean: deals alone erred in 4 to 6 % where 2.5 % are allowed."""
    rng = np.random.default_rng(1)
    low, high = compare_means.ends(rng.normal(0, sd, (2000, 5)), rng.normal(0, 1, (2000, 20)), level, 500)
    alpha = 1 - level
    assert np.mean((low > 0) | (high < 0)) <= alpha + 3 * math.sqrt(alpha * level / 2000)
