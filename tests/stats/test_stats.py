"""Are the intervals those of the books, and do they hold the truth as often as they say?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special
from scipy import stats as reference

from relab import stats
from relab.base import jsonl
from relab.commands import coverage
from relab.stats import means, rates, simulate, simulate_pairs, simulate_power
from where import ROOT

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
    interval = stats.mean_interval(x, level)
    low, high = reference.t.interval(level, n - 1, loc=x.mean(), scale=reference.sem(x))
    assert (interval.n, interval.level) == (n, level)
    np.testing.assert_allclose([interval.mid, interval.low, interval.high], [x.mean(), low, high], rtol=1e-9)


def test_mean_interval_by_hand():
    """1, 2, 3: mean 2, sd 1, t_{0.975, 2} = 4.302653."""
    interval = stats.mean_interval(np.array([1, 2, 3]))
    assert interval.mid == 2.0
    assert interval.high - interval.mid == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert interval.mid - interval.low == pytest.approx(interval.high - interval.mid)


def test_too_few_samples_have_no_interval():
    one, none = stats.mean_interval(np.array([5.0])), stats.mean_interval(np.array([]))
    assert one.mid == 5.0
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert (one.n, none.n) == (1, 0)
    assert math.isnan(none.mid)


def test_equal_samples_have_an_interval_of_no_width():
    interval = stats.mean_interval(np.full(5, 7.0))
    assert (interval.low, interval.mid, interval.high) == (7.0, 7.0, 7.0)


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


# ---- Two means

RNG = np.random.default_rng(7)
X, Y = RNG.normal(0, 1, 8), RNG.normal(1, 3, 13)


def test_plain_ends_are_welchs():
    ends = means.plain(means.two_samples(X, Y), 0.95)
    want = reference.ttest_ind(Y, X, equal_var=False).confidence_interval(0.95)
    np.testing.assert_allclose(ends, (want.low, want.high), rtol=1e-9)


def test_plain_ends_of_pairs_are_students():
    ends = means.plain(means.one_sample(Y[:8] - X), 0.9)
    want = reference.ttest_rel(Y[:8], X).confidence_interval(0.9)
    np.testing.assert_allclose(ends, (want.low, want.high), rtol=1e-9)


def test_halls_ends_take_the_skewness_out():
    """g(t) = t + k t² / 3 + k² t³ / 27 + k / 6 of each end is the t quantile again (Hall 1992)."""
    moments = means.two_samples(RNG.lognormal(0, 1, 9), RNG.normal(0, 1, 9))
    low, high = means.hall(moments, 0.95)
    quantile, k = reference.t.ppf(0.975, moments.df), moments.skew
    for end, want in ((low, quantile), (high, -quantile)):
        t = (moments.mid - end) / np.sqrt(moments.var)
        assert t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6 == pytest.approx(want, rel=1e-9)
    assert abs(moments.skew) > 0.01


def test_the_skewness_is_scipys_unbiased_one():
    x = RNG.lognormal(0, 1, 10)
    assert means.one_sample(x).skew == pytest.approx(reference.kstat(x, 3) / reference.kstat(x, 2) ** 1.5 / 10**0.5)


def test_symmetric_data_are_not_widened():
    a, b = np.array([1.0, 2, 3, 4, 5]), np.array([3.0, 4, 5, 6, 7])
    np.testing.assert_allclose(
        means.widened(means.two_samples(a, b), 0.95), means.plain(means.two_samples(a, b), 0.95), atol=1e-5
    )


def test_widening_reaches_as_far_as_halls_end_up_to_two_and_a_half_times_the_plain_one():
    """One run of five far off: a skewness of 1, so that Hall's end is 3 (cbrt(t + 1/6 - 1) + 1) standard errors out. A
    skewness of 0.25 turns the sign under the cube root, and Hall's end would be four times as far as t."""
    moments = means.two_samples(np.zeros(5) + 1e-9 * X[:5], np.array([0, 0, 0, 0, 1.0]))
    t = reference.t.ppf(0.9875, 4)
    far = 3 * (np.cbrt(t + 1 / 6 - 1) + 1)
    assert means.widened(moments, 0.975)[1] == pytest.approx(0.2 + 0.2 * far, rel=1e-5)
    some = moments._replace(skew=np.array(0.33))
    assert means.hall(some, 0.975)[1] > 0.2 + 3.5 * 0.2 * t
    assert means.widened(some, 0.975)[1] == pytest.approx(0.2 + 2.5 * 0.2 * t, rel=1e-5)


def test_unequal_numbers_borrow_the_larger_spread():
    """Five equal seeds against twenty of which five failed: Welch knows of no spread in the first, pooling does."""
    a, b = np.ones(5), np.r_[np.ones(15), np.zeros(5)]
    careful, plain = means.careful(a, b), means.two_samples(a, b)
    pooled = 19 * b.var(ddof=1) / 23
    assert careful.var == pytest.approx(pooled * (1 / 5 + 1 / 20))
    assert (careful.mid, careful.df) == (plain.mid, plain.df)
    assert careful.skew == pytest.approx(plain.skew * (plain.var / careful.var) ** 1.5)
    assert means.careful(b, b) == means.two_samples(b, b)
    assert stats.difference(a, b).high > 0 > means.widened(plain, 0.95)[1]


def test_constant_arms_that_differ_are_no_certainty():
    """5 of 5 against 0 of 5, by hand: rates d apart show it with a chance of ((1 + d) / 2)^10 at most, which is 2.5 %
    at d = 0.383; ends are taken from a grid of hundredths."""
    mid, low, high, *_ = stats.difference(np.full(5, 2.0), np.full(5, 3.0))
    assert (mid, high) == (1.0, 1.0)
    assert low == pytest.approx(2 * 0.025**0.1 - 1, abs=0.01)


@pytest.mark.parametrize("bad", [[1.0], [], [1.0, math.nan], [1.0, math.inf]])
def test_a_difference_needs_finite_numbers(bad):
    with pytest.raises(ValueError, match="two or more finite numbers"):
        stats.difference(np.array(bad), np.ones(5))


def test_pairs_of_unequal_number_are_an_error():
    with pytest.raises(ValueError, match="got 8 and 13"):
        stats.paired_difference(X, Y)


def test_interpolated_quantiles_are_close_to_scipys():
    df = np.array([1.0, 1.7, 4, 6.3, 8, 29.5, 1000])
    for p in (0.975, 0.9875, 0.9996):
        np.testing.assert_allclose(stats.t_quantiles(p, df), reference.t.ppf(p, df), rtol=1e-4)


# ---- Many tasks, ranks


@pytest.mark.parametrize("n", [1, 3, 4, 5, 10, 23])
def test_iqm_equals_scipys_trimmed_mean(n):
    x = np.random.default_rng(n).normal(size=n)
    assert stats.iqm(x) == pytest.approx(reference.trim_mean(x, 0.25))


def test_iqm_interval_depends_on_the_seed_alone_and_draws_within_tasks():
    tasks = [RNG.normal(0, 0.01, 10), RNG.normal(100, 0.01, 10)]
    interval = stats.iqm_interval(tasks, seed=1)
    assert interval == stats.iqm_interval(tasks, seed=1)
    assert interval != stats.iqm_interval(tasks, seed=2)
    assert interval.low < interval.mid < interval.high
    assert interval.high - interval.low < 1, "tasks that lie 100 apart were mixed"


def test_improvement_equals_the_mann_whitney_share():
    share = stats.improvement(X, Y)
    assert share.mid == pytest.approx(reference.mannwhitneyu(Y, X).statistic / (len(X) * len(Y)))
    assert 0 < share.low < share.mid < share.high < 1


def test_improvement_ends_solve_their_equation():
    """(θ - mid)² = z² θ (1 - θ) (1 + (N - 1) ((1 - θ) / (2 - θ) + θ / (1 + θ))) / nm with N = (n + m) / 2."""
    mid, n, m = 0.8, 6, 10
    for theta in np.ravel(means.improvement_ends(np.array([mid]), n, m, 0.95)):
        tie = 1 + ((n + m) / 2 - 1) * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        assert (theta - mid) ** 2 == pytest.approx(1.959964**2 * theta * (1 - theta) * tie / (n * m), rel=1e-5)


def test_improvement_of_arms_that_do_not_overlap_is_not_certain():
    share = stats.improvement(np.arange(5.0), np.arange(10.0, 15))
    assert share.mid == 1.0
    assert share.low < 0.8
    assert share.high == pytest.approx(1.0)
    assert stats.improvement(np.ones(5), np.ones(5)).mid == 0.5


# ---- Rates


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 10), (10, 10), (99, 250)])
def test_wilson_equals_scipys(k, n):
    want = reference.binomtest(k, n).proportion_ci(0.95, method="wilson")
    assert stats.wilson(k, n)[1:3] == pytest.approx((want.low, want.high), abs=1e-9)


def test_an_impossible_rate_is_an_error():
    with pytest.raises(ValueError, match="got 6 of 5"):
        stats.wilson(6, 5)
    with pytest.raises(ValueError, match="0 <= successes <= episodes"):
        stats.clustered_rate([3, 21], [20, 20])


def test_episodes_that_do_not_depend_on_the_seed_count_fully_and_those_that_do_count_as_seeds():
    assert stats.effective_episodes([10, 10, 10, 10], [20] * 4) == 80
    assert stats.effective_episodes([20, 0, 20, 0], [20] * 4) == pytest.approx(4)
    assert stats.effective_episodes([20, 20, 20, 20], [20] * 4) == 4  # cannot be seen: the careful end


def test_rho_of_simulated_beta_binomials_is_theirs():
    """Beta(a, b) has a correlation of 1 / (a + b + 1) between episodes: 1 / 11 here."""
    rng = np.random.default_rng(0)
    hits = rng.binomial(20, rng.beta(8, 2, 4000)).astype(float)
    assert rates.clusters(hits, np.full(4000, 20.0)).rho == pytest.approx(1 / 11, abs=0.01)


def test_newcombes_difference_by_his_example():
    """56/70 and 48/80, without clusters: 0.2 [0.0524, 0.3339] (Newcombe 1998, table II, method 10)."""
    (low_a, high_a), (low_b, high_b) = stats.wilson(48, 80)[1:3], stats.wilson(56, 70)[1:3]
    assert 0.2 - math.hypot(0.8 - low_b, high_a - 0.6) == pytest.approx(0.0524, abs=1e-4)
    assert 0.2 + math.hypot(high_b - 0.8, 0.6 - low_a) == pytest.approx(0.3339, abs=1e-4)
    many = 2000  # seeds of one episode each are independent, and t is z
    a = np.r_[np.ones(1200), np.zeros(800)]
    b = np.r_[np.ones(1600), np.zeros(400)]
    low, high = stats.rate_difference(a, np.ones(many), b, np.ones(many))[1:3]
    (low_a, high_a), (low_b, high_b) = stats.wilson(1200, many)[1:3], stats.wilson(1600, many)[1:3]
    assert low == pytest.approx(0.2 - math.hypot(0.8 - low_b, high_a - 0.6), abs=1e-4)
    assert high == pytest.approx(0.2 + math.hypot(high_b - 0.8, 0.6 - low_a), abs=1e-4)


# ---- Time to a level

TIMES, REACHED = np.array([3.0, 5, 5, 8, 10, 12]), np.array([True, True, False, True, False, False])


def test_kaplan_meier_equals_scipys():
    data = reference.CensoredData(uncensored=TIMES[REACHED], right=TIMES[~REACHED])
    want = reference.ecdf(data).sf
    steps, share = stats.kaplan_meier(TIMES, REACHED)
    np.testing.assert_allclose(share, want.evaluate(steps))
    assert steps.tolist() == [3, 5, 8]


def test_restricted_mean_by_hand():
    """1 until 3, 5/6 until 5, 4/6 until 8, 4/6 * 2/3 until 10."""
    assert stats.restricted_mean(TIMES, REACHED, 10) == pytest.approx(3 + 2 * 5 / 6 + 3 * 4 / 6 + 2 * 4 / 9)


def test_median_time_and_never():
    assert stats.median_time(TIMES, REACHED) == 8
    assert stats.median_time(TIMES, TIMES < 5) == math.inf


def test_pseudo_times_without_early_censoring_are_the_times():
    times, reached = np.array([2.0, 5, 9, 9]), np.array([True, True, False, False])
    assert stats.pseudo_times(times, reached, 9).tolist() == [2, 5, 9, 9]
    assert stats.pseudo_times(times, reached, 4).tolist() == [2, 4, 4, 4]


def test_the_general_pseudo_times_agree_with_the_short_cut():
    times, reached = np.array([2.0, 5, 9, 9]), np.array([True, True, False, False])
    n, whole = 4, stats.restricted_mean(times, reached, 9)
    for i, want in enumerate(stats.pseudo_times(times, reached, 9)):
        without = stats.restricted_mean(np.delete(times, i), np.delete(reached, i), 9)
        assert n * whole - (n - 1) * without == pytest.approx(want)
    early = stats.pseudo_times(TIMES, REACHED, 10)
    assert early.tolist() != np.minimum(TIMES, 10).tolist()
    assert early.mean() == pytest.approx(stats.restricted_mean(TIMES, REACHED, 10), rel=0.05)


def test_the_horizon_is_where_both_curves_are_known():
    there, some = np.array([True, True]), np.array([True, False])
    assert stats.common_horizon(([5.0, 7.0], there), ([5.0, 90.0], some)) == 90
    assert stats.common_horizon(([5.0, 70.0], some), ([5.0, 90.0], some)) == 70
    assert stats.common_horizon(([5.0, 7.0], there), ([5.0, 9.0], there)) == 9


def test_logrank_statistic_is_scipys_and_its_p_close():
    rng = np.random.default_rng(3)
    a, b = rng.exponential(1.0, 15), rng.exponential(2.5, 15)
    ra, rb = a < 2, b < 2
    a, b = np.minimum(a, 2), np.minimum(b, 2)
    want = reference.logrank(reference.CensoredData(a[ra], right=a[~ra]), reference.CensoredData(b[rb], right=b[~rb]))
    p = stats.logrank_p(a, ra, b, rb)
    assert p == pytest.approx(want.pvalue, abs=0.02)
    assert p == stats.logrank_p(a, ra, b, rb)
    assert stats.logrank_p(a, ra, a, ra) == 1.0


# ---- Slopes


def test_a_slope_without_autocorrelation_equals_scipys():
    x = np.arange(40.0)
    rest = np.tile([1.0, -1.0], 20)  # neighbours differ: counted as independent, not as more
    trend = stats.slope(x, 0.3 * x + rest)
    want = reference.linregress(x, 0.3 * x + rest)
    assert (trend.rho, trend.n_eff) == (0.0, 40.0)
    assert trend.slope == pytest.approx(want.slope)
    assert trend.p == pytest.approx(want.pvalue, rel=1e-6, abs=1e-14)
    assert trend.high - trend.slope == pytest.approx(reference.t.ppf(0.975, 38) * want.stderr)


def test_a_random_drift_is_rarely_called_a_slope():
    """AR(1) with 0.7: plain OLS calls 40 % of flat curves a slope; the correction must bring it near 5 %."""
    rng, plain, corrected = np.random.default_rng(5), 0, 0
    for _ in range(300):
        noise, y = rng.normal(size=60), np.zeros(60)
        for t in range(1, 60):
            y[t] = 0.7 * y[t - 1] + noise[t]
        plain += reference.linregress(np.arange(60), y).pvalue < 0.05
        corrected += stats.slope(np.arange(60), y).p < 0.05
    assert plain / 300 > 0.25
    assert corrected / 300 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


def test_a_slope_of_too_little_has_no_interval():
    assert math.isnan(stats.slope([1, 2], [1, 2]).slope)
    assert math.isnan(stats.slope([1, 1, 1], [1, 2, 3]).slope)
    wave = stats.slope(np.arange(12), np.sin(np.arange(12) / 4))  # its residuals are one wave: hardly a point's worth
    assert math.isfinite(wave.slope)
    assert wave.n_eff < 3
    assert math.isnan(wave.p)
    assert stats.slope([0, 1, math.nan, 3, 4], [0, 1, 2, 3, 4]).n == 4


# ---- Planning


def test_holm_by_hand():
    """Sorted .005, .01, .03, .04 times 4, 3, 2, 1, never falling."""
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]
    assert stats.holm([]) == []


@pytest.mark.parametrize("effect", [0.5, 1.0, 2.0])
def test_seeds_for_gives_the_power_asked_for(effect):
    n = stats.seeds_for(effect, 1.0)
    assert power(n, effect) >= 0.79
    assert power(n - 1, effect) < 0.81


def power(n, effect):
    """Of a two-sample t test, by the noncentral t."""
    return reference.nct.sf(reference.t.ppf(0.975, 2 * n - 2), 2 * n - 2, effect * math.sqrt(n / 2))


def test_seeds_range_holds_the_number_for_the_true_spread_and_narrows():
    rng = np.random.default_rng(0)
    few = stats.seeds_range(1.0, rng.normal(size=5), rng.normal(size=5))
    many = stats.seeds_range(1.0, rng.normal(size=200), rng.normal(size=200))
    assert few[0] <= 17 <= few[1]
    assert many[1] - many[0] < few[1] - few[0]
    assert stats.seeds_range(100.0, rng.normal(size=5), rng.normal(size=5)) == (5, 5)


def test_a_spread_beyond_floats_has_no_number_of_seeds():
    huge = np.array([1.0, 2.0, 1e308, 1e308, -1e308])
    assert stats.seeds_range(1.0, np.zeros(5), huge) is None
    assert stats.pairs_range(1.0, huge) is None


@pytest.mark.parametrize("df", [4, 8, 40])
def test_chi2_quantile_is_close_to_scipys(df):
    for p in (0.1, 0.9):
        assert stats.chi2_quantile(p, df) == pytest.approx(reference.chi2.ppf(p, df), rel=0.02)


@pytest.mark.parametrize("looks", [None, 1, 2, 7])
def test_looks_spend_no_more_than_alpha(looks):
    spent = [stats.look_alpha(i, looks) for i in range(1, (looks or 40) + 1)]
    assert sum(spent) == pytest.approx(0.05)
    assert min(spent) > 0
    if looks:
        with pytest.raises(ValueError, match="declare more"):
            stats.look_alpha(looks + 1, looks)


def test_look_number_counts_different_sizes():
    assert stats.look_number([], (5, 5)) == 1
    assert stats.look_number([[5, 5], [10, 10]], (5, 5)) == 1
    assert stats.look_number([(5, 5), (5, 5)], (5, 6)) == 2


# ---- What the documents promise


@pytest.fixture(scope="module")
def cells() -> list[simulate.Cell]:
    return simulate.table(reps=1000, seed=1)


@pytest.mark.slow
def test_the_answers_intervals_cover(cells):
    """Each cell of the table at 93 % less three standard errors; the pairs that no interval can hold are listed."""
    kinds = {"mean", "mean, ceiling known", "mean, n and 4n", "time", "P(B > A)", "success rate"}
    ours = [c for c in cells if c.kind in kinds and c.method not in ("plain Welch", "shown")]
    checked = [c for c in ours if c.kind != "mean" or (c.a, c.b) not in simulate.UNSEEN]
    assert len(checked) == 4 * (10 + 2 + 5 + 5 + 3 + 8)
    assert [cell for cell in checked if cell.value < simulate.LEAST_COVER - 3 * cell.error] == []


@pytest.mark.slow
def test_looking_again_keeps_the_error_and_naive_looking_does_not(cells):
    spent = [c for c in cells if c.kind == "looks" and c.method != "5 % at each look"]
    naive = [c for c in cells if c.kind == "looks" and c.method == "5 % at each look" and c.n == 4 and c.a == "normal"]
    assert {c.method for c in spent} == {"halves", "declared 5, 8, 15", "declared one by one to 15"}
    assert [cell for cell in spent if cell.value > 0.05 + 3 * cell.error] == []
    assert naive[0].value > 0.08


@pytest.mark.slow
def test_several_variants_keep_the_error_and_uncorrected_ones_do_not(cells):
    shared = [c for c in cells if c.kind == "family" and c.method == "5 % shared"]
    naive = [c for c in cells if c.kind == "family" and c.method != "5 % shared" and c.b == "4 alike" and c.n == 15]
    assert len(shared) == 3 * 2 * 4
    assert [cell for cell in shared if cell.value > 0.05 + 3 * cell.error] == []
    assert min(cell.value for cell in naive) > 0.08


def test_the_table_depends_on_its_seed_alone():
    assert simulate.rate_cells(200, 3, (5,)) == simulate.rate_cells(200, 3, (5, 10))[::2]
    assert simulate.rate_cells(200, 3, (5,)) != simulate.rate_cells(200, 4, (5,))


@pytest.mark.slow
def test_the_documented_table_is_the_commands(capsys):
    """Rows of docs/statistics.md by a fresh simulation: same rows, numbers within the errors of both."""
    assert coverage.main(["--reps", "600", "--seed", "2"]) == 0
    fresh, stored = rows_of(capsys.readouterr().out), rows_of((ROOT / "docs" / "statistics.md").read_text("utf-8"))
    assert list(fresh) == list(stored)
    same = [key for key in fresh if "share of" not in key[3]]  # a share of a small power is mostly noise
    far = {key: (fresh[key], stored[key]) for key in same if np.max(np.abs(fresh[key] - stored[key])) > 0.1}
    assert far == {}


def rows_of(text):
    """{(of, A, B, method): numbers} of the tables that the command prints."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    lines = [cells for cells in rows if len(cells) > 6 and " ± " in cells[4]]
    return {
        tuple(cells[:4]): np.array([float(cell.split(" ±")[0]) for cell in cells[4:] if " ±" in cell])
        for cells in lines
    }


def test_coverage_as_json(capsys, monkeypatch):
    monkeypatch.setattr(simulate, "table", lambda reps, seed: simulate.rate_cells(reps, seed, (5,)))
    monkeypatch.setattr(simulate_power, "CASES", simulate_power.CASES[:1])
    monkeypatch.setattr(simulate_pairs, "SPREAD", {"normal": 1.0})
    assert coverage.main(["--reps", "100", "--json"]) == 0
    document = jsonl.decode(capsys.readouterr().out.encode())
    assert document["reps"] == 100
    assert {"kind", "method", "a", "b", "n", "value", "reps", "mark", "error"} == set(document["cells"][0])


def test_what_a_race_saves_as_json(capsys):
    assert coverage.main(["--race", "--reps", "100", "--json"]) == 0
    rows = jsonl.decode(capsys.readouterr().out.encode())["races"]
    assert len(rows) == 18
    assert set(rows[0]) == {"case", "arms", "saved", "lost"}


def test_quantiles_of_a_ratio_of_variances_are_scipys():
    from relab.stats.student import f_quantile

    for p, df, other in ((0.9, 4, 12), (0.5, 7, 3), (0.99, 14, 56)):
        assert f_quantile(p, df, other) == pytest.approx(reference.f.ppf(p, df, other), rel=1e-9)
