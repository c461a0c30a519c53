"""Does lint() find what cannot work, and leave alone what can? Known answers, and all small cases by brute force."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from relab.schedules import chance
from relab.schedules.alert import Alert
from relab.schedules.bounds import bound, conflict, implies, opposite
from relab.schedules.gate import Condition, Gate, parse_condition
from relab.schedules.lint import lint
from relab.schedules.schedule import Schedule
from relab.schedules.stage import parse_curriculum, parse_queue


def on(text, of="death", **more):
    return parse_condition(text, of=of, **more)


def lints_of(*success, failure=(), n=None, **more):
    gate = Gate("g", tuple(success), tuple(failure), **more)
    return {(each.slug, each.exact, each.blocks): each for each in lint(Schedule([gate]), n)}


# ---- Dualities


def test_a_share_below_a_step_is_a_quantile():
    """P(T < 100) <= 0.1 is p10 >= 100: a bar at 70 is vacuous, one at 120 is not."""
    share = on("early_death_100 <= 0.1")
    (each,) = lints_of(share, on("p10 >= 70")).values()
    assert each.slug == "redundant-threshold"
    assert "p10 >= 70 adds nothing: early_death_100 <= 0.1 means p10 >= 100" in each.message
    (other,) = lints_of(share, on("p10 >= 120")).values()
    assert other.conditions[0] == share, "now the share is the laxer one"
    assert lints_of(on("early_death_100 <= 0.15"), on("p10 >= 70")) == {}, "a laxer share says nothing of p10"


def test_the_tighter_share_implies_too():
    assert implies(bound(on("early_100 <= 0.05")), bound(on("p10 >= 100")))
    assert not implies(bound(on("early_100 <= 0.05")), bound(on("p10 >= 101")))
    assert implies(bound(on("early_150 <= 0.1")), bound(on("early_100 <= 0.1")))


def test_metrics_of_different_things_are_not_compared():
    assert lints_of(on("early_death_100 <= 0.1"), on("p10 >= 70", of="speed")) == {}
    assert lints_of(parse_condition("early_death_100 <= 0.1"), parse_condition("p10 >= 70")) == {}


def test_windows_that_differ_are_said():
    (each,) = lints_of(on("median(3) early_100 <= 0.1"), on("median(4) p10 >= 70")).values()
    assert (each.slug, each.exact) == ("redundant-threshold", False)
    assert "median(3) and median(4)" in each.note


def test_smoothing_a_bar_is_no_redundancy():
    assert lints_of(on("early_100 <= 0.1"), on("median(3) early_100 <= 0.1")) == {}


def test_a_count_is_a_ratio_once_its_trials_are_known():
    pair = (on("hit_count <= 18", of="hit"), on("hit_ratio <= 0.02", of="hit"))
    assert lints_of(*pair) == {}
    (each,) = lints_of(*pair, n=1152).values()
    assert each.message == "hit_ratio <= 0.02 adds nothing: hit_count <= 18 of 1152 is 0.0156"
    (other,) = lints_of(*pair, n=800).values()
    assert other.conditions[0] == pair[0], "18 of 800 is laxer than 0.02"
    assert lints_of(replace(pair[0], n=1152), pair[1]).keys() == {("redundant-threshold", True, False)}


CUTS = list(itertools.combinations_with_replacement(range(11), 4))  # all distributions over 0 to 4, in tenths
BELOW = np.array([[0, *cut, 10] for cut in CUTS]) / 10  # P(T < t) for t = 0 to 5
SHARES = [f"s_{t} {sign} {c}" for t in (1, 2, 3) for sign in ("<=", ">", "<", ">=") for c in (0.1, 0.2, 0.4)]
QUANTILES = [f"p20 {sign} {t}" for sign in (">=", "<") for t in (1, 2, 3)]


@functools.cache
def holds(text: str) -> np.ndarray:
    """On which distributions the condition holds; the quantile is the largest t with P(T < t) <= q."""
    condition = parse_condition(text)
    if condition.metric == "p20":
        values = [max(t for t in range(6) if below[t] <= 0.2) for below in BELOW]
    else:
        values = BELOW[:, int(condition.metric[2:])].tolist()
    return np.array([condition.look({condition.metric: [value]}).met for value in values])


@pytest.mark.parametrize("text", SHARES + QUANTILES)
def test_implication_and_conflict_hold_on_every_distribution(text):
    a = on(text, of="t")
    assert holds(text).any(), "else nothing is tested"
    for other in SHARES + QUANTILES:
        b = on(other, of="t")
        if implies(bound(a), bound(b)):
            assert holds(other)[holds(text)].all(), f"{a} does not imply {b}"
        if conflict(bound(a), bound(b)):
            assert not (holds(other) & holds(text)).any(), f"{a} and {b} are met together"
        assert (holds(str(opposite(b))) == ~holds(other)).all()


def test_what_holds_on_every_distribution_is_found():
    """The other way round, for bars of one kind on one side: nothing that implies is overlooked."""
    for text, other in itertools.permutations([t for t in SHARES if "<=" in t] + ["p20 >= 1", "p20 >= 2"], 2):
        if holds(other)[holds(text)].all():
            assert implies(bound(on(text, of="t")), bound(on(other, of="t"))), f"{text} implies {other}"


# ---- Contradictions


def test_an_empty_region_is_a_contradiction():
    low = lints_of(on("early_100 <= 0.1"), failure=[on("p10 >= 90")])
    assert low.keys() == {("gate-contradiction", True, True)}
    plain = lints_of(parse_condition("x >= 5"), parse_condition("x <= 4"))
    assert "no value has both" in plain["gate-contradiction", True, True].message
    assert lints_of(parse_condition("x >= 5"), parse_condition("x <= 5")) == {}
    assert lints_of(parse_condition("x >= 5"), parse_condition("x < 5")).keys() == {("gate-contradiction", True, True)}
    assert lints_of(on("win_rate >= 1.2", of="win")).keys() == {("gate-contradiction", True, True)}
    assert lints_of(on("win_rate >= 1", of="win")) == {}


def test_over_different_windows_nothing_is_impossible():
    assert lints_of(parse_condition("x >= 5"), parse_condition("median(3) x <= 4")).keys() == {
        ("gate-contradiction", False, False)
    }


def test_a_success_bar_below_the_failure_bar_is_out_of_order():
    """70 below 95: the gate can open, but the bar at 70 decides nothing."""
    (each,) = lints_of(on("p10 >= 70"), failure=[on("p10 < 95")]).values()
    assert (each.slug, each.blocks) == ("gate-contradiction", False)
    assert each.message == "bars out of order: success asks p10 >= 70, failure is p10 < 95"
    assert lints_of(on("p10 >= 95"), failure=[on("p10 < 95")]) == {}
    assert lints_of(on("p10 >= 95"), failure=[on("p10 < 70")]) == {}
    assert lints_of(on("p10 >= 70"), failure=[on("p10 < 95")], first="success") == {}


# ---- Floors and chance


def test_a_bar_under_a_given_floor():
    """18 of 1152 where 23.4 are expected: P = 0.15 a check, 0.02 twice in a row."""
    (each,) = lints_of(on("hit_count <= 18", floor=23.43, n=1152), required=2).values()
    assert each.slug == "bar-under-floor"
    assert each.numbers["once"] == pytest.approx(stats.binom.cdf(18, 1152, 23.43 / 1152))
    assert each.numbers["once"] == pytest.approx(0.15, abs=0.005)
    assert each.numbers["in_a_row"] == pytest.approx(0.023, abs=0.001)
    (share,) = lints_of(on("hit_ratio <= 0.015625", floor=0.0203, n=1152), required=2).values()
    assert share.numbers["bar"] == 18
    assert lints_of(on("hit_count <= 24", floor=23.43, n=1152)) == {}
    assert lints_of(on("hit_count <= 18", floor=23.43)) == {}, "without trials nothing is known"


def test_counts_that_stay_the_same():
    counts = [25, 22, 19, 29, 16, 24, 29]
    same = chance.constancy(counts, [1152] * 7, rare=True)
    assert (same.df, round(same.chi2, 2), round(same.p, 2)) == (6, 6.05, 0.42)
    assert same.expected == pytest.approx(23.43, abs=0.01)
    assert same.trend > 0
    assert chance.constancy([33, 30, 28, 26, 24, 22, 20], [1000] * 7, rare=True).trend < -1.5
    up, down = [chance.constancy(x, [640] * 4).trend for x in ([10, 14, 15, 30], [30, 15, 14, 10])]
    assert up == pytest.approx(-down)
    exact = chance.constancy([157, 192, 162, 155], [1152] * 4)
    table = np.array([[157, 192, 162, 155], [1152 - x for x in (157, 192, 162, 155)]])
    assert exact.p == pytest.approx(stats.chi2_contingency(table).pvalue)


@pytest.mark.parametrize("df", [1, 2, 6, 40, 200])
@pytest.mark.parametrize("x", [0.0, 0.01, 1.0, 6.05, 41.0, 300.0])
def test_chi_square_tails(x, df):
    assert chance.chi2_above(x, df) == pytest.approx(stats.chi2.sf(x, df), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("k", "n", "p"), [(18, 1152, 0.0203), (0, 10, 0.5), (10, 10, 0.5), (-1, 5, 0.5), (3, 5, 0.0)])
def test_binomial_below_a_bar(k, n, p):
    assert chance.binomial_up_to(k, n, p) == pytest.approx(stats.binom.cdf(k, n, p))


def test_large_samples_are_as_good_by_approximation():
    assert chance.chi2_above(1100, 1000) == pytest.approx(stats.chi2.sf(1100, 1000), rel=1e-2)
    assert chance.binomial_up_to(49_700, 100_000, 0.5) == pytest.approx(stats.binom.cdf(49_700, 100_000, 0.5), rel=1e-2)


def test_samples_near_a_bar():
    """0.115 is told from a bar at 0.1 by Wilson's interval after 1,537 trials, and not after 1,152."""
    from relab.stats import wilson

    n = chance.samples_to_tell(0.115, 0.1)
    assert n == 1537
    assert wilson(0.115 * n, n).low >= 0.1 > wilson(0.115 * (n - 5), n - 5).low
    assert chance.samples_to_tell(0.115, 0.1, power=0.8) > 2 * n
    assert chance.undecided(0.1, n) == pytest.approx(0.015, rel=1e-3)
    with pytest.raises(ValueError, match="distance"):
        chance.samples_to_tell(0.1, 0.1)


def test_power_is_what_it_says():
    n = chance.samples_to_tell(0.13, 0.1, power=0.8)
    low = math.ceil(n * 0.1 + 1.959964 * math.sqrt(n * 0.09))
    assert stats.binom.sf(low - 1, n, 0.13) == pytest.approx(0.8, abs=0.02)


def test_rates_give_their_trials_away():
    assert chance.common_trials([k / 1152 for k in (25, 22, 19, 29, 16, 24, 29)]) == 1152
    assert chance.common_trials([k / 2304 for k in (25, 22, 19)]) == 2304
    assert chance.common_trials([0.1234567891]) is None
    assert chance.common_trials([np.float32(25 / 1152)]) is None, "too few digits to tell"
    assert chance.common_trials([math.pi / 4]) is None
    assert chance.common_trials([0.5, math.nan]) is None


# ---- Alerts and stages


def test_patience_beyond_the_run():
    alert = Alert("low", Condition("left", "<=", 0.5), patience=8, cadence=8)
    (each,) = lint(Schedule(alerts=[alert], total=60))
    assert (each.slug, each.blocks) == ("alert-unreachable", True)
    assert "64 > 60" in each.message
    assert lint(Schedule(alerts=[alert], total=64)) == []
    assert lint(Schedule(alerts=[alert])) == []


def test_stages_that_add_up_to_more_than_the_run():
    queue = parse_queue("8:a;15:a;24:b;16:b;25:c;20:d", "tail")
    (each,) = lint(Schedule(plans=[queue], total=60))
    assert each.message == "tail adds up to 108 iterations, the run has 60: stages 5 to 6 of 6 cannot start"
    (cut,) = lint(Schedule(plans=[parse_curriculum("15:9,20:10")], total=18))
    assert cut.message == "curriculum adds up to 19 iterations, the run has 18"
    assert lint(Schedule(plans=[parse_curriculum("15:9,20:10")], total=19)) == []


# ---- Units


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step_one_count <= 0.02", "as a share of 1,152 it would be 23"),
        ("step_one_share <= 18", "so that it always holds: the bar reads like a count; as a count out of 1,152 it"
         " would be 0.01562"),
        ("early_death_100 < 10", "always holds"),
        ("min_final >= 50", "never holds"),
    ],
)  # fmt: skip
def test_a_count_read_as_a_share_is_found(text, said):
    by_slug = {each.slug: each for each in lint(Schedule([Gate("g", (on(text),), ())]), 1152)}
    assert said in by_slug["count-read-as-share"].message


@pytest.mark.parametrize("text", ["step_one_count <= 18", "step_one_share <= 0.02", "step_one_count <= 0", "p10 >= 70",
                                  "early_death_100 <= 0.1", "min_final >= 1"])  # fmt: skip
def test_bars_in_their_own_unit_are_left_alone(text):
    assert "count-read-as-share" not in {each.slug for each in lint(Schedule([Gate("g", (on(text),), ())]), 1152)}
