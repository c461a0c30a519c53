"""Are the numbers of a comparison right? scipy and simulation as judges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate
from scipy import stats as oracle

from relab.comparison import leading, numbers, pairs, profile, render
from relab.comparison.numbers import Measure
from relab.comparison.outcomes import Outcome
from relab.record.history import Column, History
from relab.runs.grouping import make_run
from relab.stats import means
from where import TESTS

FINAL = Measure("eval/return_det", "final", 5, None, "higher")
REPS = 4000


def run(name: str = "x", **columns: np.ndarray):
    """A run that was never on a disk."""
    history = History(TESTS, source="test")
    for key, values in columns.items():
        history.columns[key.replace("__", "/")] = Column(np.arange(len(values)) * 10, np.asarray(values, float))
    return make_run(history, name)


def arm(values) -> list[Outcome]:
    return [Outcome(float(v), i) for i, v in enumerate(values)]


# ---- Against scipy


@pytest.mark.parametrize("k", [2, 5, 31])
def test_the_largest_of_k_normal_numbers(k):
    exact = integrate.quad(lambda x: x * k * oracle.norm.pdf(x) * oracle.norm.cdf(x) ** (k - 1), -9, 9)[0]
    assert numbers.expected_maximum(k) == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize(("p", "n", "k"), [(0.975, 200, 6), (0.5, 10, 3), (1.0, 20, 5), (0.8, 1, 4)])
def test_the_best_of_k_success_rates(p, n, k):
    x = np.arange(n + 1)
    below = oracle.binom.cdf(x, n, p) ** k
    exact = float(np.sum(x * np.diff(below, prepend=0.0))) / n
    assert numbers.expected_best_rate(p, n, k) == pytest.approx(exact, abs=1e-9)


def test_rank_correlation_with_ties():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, 40).astype(float), rng.normal(size=40)
    assert leading.spearman(x, y) == pytest.approx(oracle.spearmanr(x, y).statistic)
    assert leading.spearman(np.ones(5), np.arange(5.0)) == 0.0


def test_area_is_the_mean_height_over_the_shared_range():
    steps, values = np.array([0, 10, 30, 40]), np.array([0.0, 4.0, 2.0, 6.0])
    curved = run()
    curved.history.columns["eval/return_det"] = Column(steps, values)
    grid = np.array([5.0, 10, 30, 35])
    exact = integrate.trapezoid(np.interp(grid, steps, values), grid) / 30
    assert numbers.area(curved, "eval/return_det", 5.0, 35.0) == pytest.approx(exact)
    assert np.isnan(numbers.area(curved, "eval/return_det", 5.0, 90.0)), "it does not reach so far"


def test_the_interval_of_symmetric_numbers_is_students():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    interval = numbers.interval(arm(x), FINAL)
    low, high = oracle.t.interval(0.95, 4, x.mean(), oracle.sem(x))
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert numbers.interval(arm(x), FINAL._replace(bounds=(-math.inf, 4.0))).high == 4.0
    assert np.isnan(numbers.interval(arm(x[:4]), FINAL).low), "four seeds are too few"


# ---- By simulation


@pytest.mark.parametrize("shape", ["normal", "skewed", "ceiling"])
@pytest.mark.parametrize("n", [5, 10])
def test_the_interval_of_a_variant_covers(shape, n):
    """At least 93 %, less three standard errors of the simulation; a skewed mean at least what Student's has, 88 %."""
    rng = np.random.default_rng([n, len(shape)])
    draw = {"normal": rng.normal, "skewed": lambda size: rng.exponential(size=size) - 1.0,
            "ceiling": lambda size: np.minimum(rng.normal(size=size), 0.5)}[shape]  # fmt: skip
    truth = 0.0 if shape != "ceiling" else float(oracle.norm.expect(lambda x: min(x, 0.5)))
    low, high = means.widened(means.one_sample(draw(size=(REPS, n))), 0.95)
    inside = float(np.mean((low <= truth) & (truth <= high)))
    assert inside >= (0.88 if shape == "skewed" else 0.93) - 3 * 0.004


@pytest.mark.slow
def test_declared_comparisons_of_variants_that_are_alike_seldom_err():
    """Three declared against one control, all the same: Holm errs where the clearest passes at alpha / 3."""
    rng, names = np.random.default_rng(3), [("base", other) for other in ("a", "b", "c")]
    drawn = rng.normal(size=(4, REPS, 5))
    ends = [means.widened(means.two_samples(drawn[0], each), 1 - 0.05 / 3) for each in drawn[1:]]
    wrong = np.any([(low > 0) | (high < 0) for low, high in ends], axis=0)
    assert wrong.mean() <= 0.05
    some = [*np.flatnonzero(wrong)[:3], *np.flatnonzero(~wrong)[:3]]
    for i in some:  # and the procedure calls exactly those
        arms = dict(zip(("base", "a", "b", "c"), (arm(each[i]) for each in drawn)))
        items = [pairs.Item(arms, pair, FINAL) for pair in names]
        assert any(p.adjusted < 0.05 for p in pairs.test(items, 0.0)) == wrong[i]


def series(rng, lag: int | None) -> object:
    """Smooth curves; with a lag the metric moves first and the return follows."""
    cause = np.cumsum(rng.normal(size=40))
    effect = np.cumsum(rng.normal(size=40)) if lag is None else np.roll(cause, lag) + 0.3 * rng.normal(size=40)
    return run(policy__entropy=cause, eval__return_det=effect)


@pytest.mark.slow
def test_leading_indicators_find_what_moved_before_and_seldom_what_did_not():
    rng = np.random.default_rng(0)
    leads = leading.leading([series(rng, 2) for _ in range(3)], "eval/return_det", reps=199)
    assert (leads[0].metric, leads[0].lag) == ("policy/entropy", 2)
    assert leads[0].rho > 0.5
    assert leads[0].adjusted <= 0.01
    false = [leading.leading([series(rng, None) for _ in range(2)], "eval/return_det", reps=99)[0].p <= 0.05
             for _ in range(50)]  # fmt: skip
    assert np.mean(false) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 50)


def test_a_profile_weighs_tasks_alike_and_has_no_interval_under_five_runs():
    scores = {"x": [np.array([1.0] * 5), np.array([0.0] * 15)], "y": [np.array([1.0, 0.2]), np.array([0.6, 0.6])]}
    x, y = profile.profile(scores)
    half = {each.label: {s.tau: s for s in each.shares}[0.5] for each in (x, y)}
    assert half["x"].share == 0.5
    wilson = oracle.binomtest(10, 20).proportion_ci(method="wilson")
    assert (half["x"].low, half["x"].high) == pytest.approx(tuple(wilson)), "runs that all agree are not certain"
    assert half["y"].share == 0.75
    assert np.isnan(half["y"].low)
    assert "iqm" not in x.to_dict(), "two tasks are not many"
    many = profile.profile({"x": [np.array([0.1, 0.4, 0.5, 0.6, 0.9])] * 8})[0]
    assert many.to_dict()["iqm"][0] == pytest.approx(oracle.trim_mean([0.1, 0.4, 0.5, 0.6, 0.9] * 8, 0.25))


def test_the_peak_is_told_with_what_chance_adds():
    """Evaluations of one and the same policy: the mean of the peaks lies as far above the truth as it says."""
    rng, k, error = np.random.default_rng(1), 20, 2.0
    gaps, said = [], []
    for _ in range(150):
        episodes = 50.0 + rng.normal(size=(k, 10)) * error * np.sqrt(10)
        history = History(TESTS, source="test")
        history.evals = [
            {"step": i, "mode": "det", "episodes": [{"seed": j, "return": v, "length": 1, "success": None, "end": "x"}
                                                    for j, v in enumerate(row)]} for i, row in enumerate(episodes)
        ]  # fmt: skip
        peak = numbers.peak(make_run(history, "x"), "eval/return_det", 5, 1)
        gaps.append(peak.peak - 50.0)
        said.append(peak.bias)
    assert np.mean(said) == pytest.approx(np.mean(gaps), rel=0.15)


# ---- Runs that were cut off, and names


def lasting(steps: int, first: int = 10, state: str = "ended"):
    """A run whose evaluations are made every `first` steps, up to `steps`."""
    history = History(TESTS, source="sb3")
    at = np.arange(first, steps + 1, first)
    history.columns["eval/return_det"] = Column(at, np.linspace(9.0, 90.0, len(at)))
    return replace(make_run(history, "x"), state=state)


@pytest.mark.parametrize(
    ("lengths", "step"),
    [((20, 20, 90, 120), 90),  # two of four died: the other two are compared
     ((20, 90, 120), 90),
     ((20, 120), 20),  # one alone is no comparison
     ((20, 20, 20, 120, 120), 20)],  # as long as most are
)  # fmt: skip
def test_runs_that_died_do_not_cut_the_others(lengths, step):
    arms = [[lasting(length)] for length in lengths]
    assert numbers.common_step(arms, "eval/return_det")[0] == step
    done = [[lasting(length, state="finished")] for length in lengths]
    assert numbers.common_step(done, "eval/return_det")[0] == min(lengths), "these were meant to be so long"


def test_one_finished_run_does_not_cut_many():
    """Two variants of fourteen runs each are not compared at 30 of 100 because one more was meant to be short."""
    arms = [[lasting(100, state="finished")] * 14, [lasting(100, state="finished")] * 14]
    short = [[lasting(30, state="finished")]]
    assert numbers.common_step(arms + short, "eval/return_det") == (100, False)
    assert numbers.common_step(arms[:1] + short, "eval/return_det") == (30, True), "else there is nothing to compare"


def test_a_first_number_after_the_common_step_is_not_called_missing():
    late = numbers.outcome(lasting(90, first=30), FINAL, 20, True)
    assert math.isnan(late.value)
    assert late.note == "its first eval/return_det is at step 30, after step 20"


def test_a_last_tenth_has_one_name_in_the_command_and_in_python():
    measure = Measure("return/mean", "mean_last_m", 8, None, "higher", tenth=True)
    outcomes = {name: [Outcome(float(i), i) for i in range(5)] for name in "ab"}
    answer = pairs.ask(outcomes, ("a", "b"), measure, 0.0)
    assert measure.words == "mean of the last tenth of return/mean"
    assert measure.words in answer.text
    assert answer.m is None


def test_what_reads_as_one_number_is_one_place_of_the_strip():
    assert render.dots([500.0, 499.99999], 499.99999, 500.0, 5) == "··•··"
    assert render.dots([1.0, 2.0], 1.0, 2.0, 5) == "∙···∙"
