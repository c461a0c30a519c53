"""Is the verdict the one that DESIGN asks for, and is everything said that a reader must know?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from relab import stats
from relab.base import jsonl
from relab.comparison.answer import NO, OPEN, YES, answer
from relab.comparison.outcomes import Outcome, outcome
from relab.comparison.wording import beside
from relab.record.history import Column, History

NAN = math.nan


def arm(*values: float, start: int = 0) -> list[Outcome]:
    return [Outcome(float(v), seed=start + i, run=f"run{start + i}") for i, v in enumerate(values)]


A = arm(100, 104, 96, 102, 98)
BETTER = arm(150, 154, 146, 152, 148)


# ---- Verdicts


def test_a_clear_and_large_effect_is_a_yes():
    reply = answer(A, BETTER, smallest_effect=20)
    assert (reply.verdict, reply.delta, reply.n, reply.look) == (YES, 50.0, (5, 5), 1)
    assert 0 < reply.low < 50 < reply.high
    assert reply.seeds_needed is None
    assert reply.text.startswith("Yes: B is better than A, by +50 [")


def test_the_interval_is_that_of_stats_at_the_level_of_the_first_look():
    reply = answer(A, BETTER, smallest_effect=20)
    x, y = (np.array([o.value for o in each]) for each in (A, BETTER))
    want = stats.difference(x, y, level=0.975)
    assert (reply.low, reply.high, reply.level) == (want.low, want.high, 0.975)


def test_a_clear_effect_that_is_too_small_to_matter_is_a_no():
    reply = answer(A, arm(101, 105, 97, 103, 99), smallest_effect=20)
    assert (reply.verdict, reply.delta) == (NO, 1.0)
    assert reply.high < 20
    assert "not better than A by the 20 that matters" in reply.text


def test_a_worse_variant_is_a_no_and_is_called_worse():
    reply = answer(BETTER, A, smallest_effect=20)
    assert (reply.verdict, reply.delta) == (NO, -50.0)
    assert reply.text.startswith("No: B is worse than A")


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_outcomes_whose_spread_is_beyond_floats_are_answered_without_a_number_of_seeds(paired: bool):
    reply = answer(A, arm(150, 154, 1e308, 1e308, -1e308), smallest_effect=20, paired=paired)
    assert (reply.verdict, reply.seeds_needed) == (OPEN, None)
    assert reply.text.startswith("Cannot tell yet")


def test_noise_cannot_tell_and_says_how_many_seeds_would():
    reply = answer(arm(100, 20, 180, 60, 140), arm(110, 30, 190, 70, 150), smallest_effect=20)
    assert reply.verdict == OPEN
    low, high = reply.seeds_needed
    assert 5 < low < high
    assert f"{low} to {high} seeds a variant should tell" in reply.text


def test_better_for_sure_but_perhaps_not_by_enough_cannot_tell():
    reply = answer(A, arm(110, 114, 106, 112, 108), smallest_effect=12)
    assert reply.low > 0
    assert reply.delta < 12 < reply.high
    assert reply.verdict == OPEN
    assert reply.seeds_needed[0] > 5


@pytest.mark.parametrize("n", [1, 2, 4])
def test_no_answer_under_five_seeds_whatever_the_numbers(n):
    reply = answer(A, BETTER[:n], smallest_effect=1)
    assert reply.verdict == OPEN
    assert math.isnan(reply.low)
    assert reply.text.startswith(f"No answer under 5 seeds a variant: A has 5, B has {n}")


def test_an_empty_arm_is_no_error():
    reply = answer(A, [], smallest_effect=1)
    assert (reply.verdict, reply.n) == (OPEN, (5, 0))
    assert math.isnan(reply.delta)


def test_lower_is_better_turns_the_sign():
    reply = answer(BETTER, A, smallest_effect=20, direction="lower")
    mirror = answer(A, BETTER, smallest_effect=20)
    assert (reply.verdict, reply.delta) == (YES, 50.0)
    assert (reply.low, reply.high) == pytest.approx((mirror.low, mirror.high))


# ---- Missing numbers


def test_a_run_without_a_number_is_left_out_and_said():
    reply = answer(A, [*BETTER, Outcome(NAN, 5, "run5", note="1 of its last 1 values not finite")], smallest_effect=5)
    assert reply.n == (5, 5)
    assert reply.delta == 50.0
    assert any("seed 5 has no number (1 of its last 1 values not finite)" in note for note in reply.notes)


def test_a_yes_that_rests_on_dropping_a_diverged_run_is_withdrawn():
    """Without seed 5 B wins by 8; had that run been as bad as the worst run seen, it would not be clear."""
    b = arm(108, 112, 104, 110, 106)
    assert answer(A, b, smallest_effect=0).verdict == YES
    reply = answer(A, [*b, Outcome(NAN, 5)], smallest_effect=0)
    assert reply.verdict == OPEN
    assert any("gone against it" in note for note in reply.notes)


def test_a_yes_that_holds_even_then_stays():
    b = arm(*np.linspace(200, 210, 20))
    a = arm(*np.linspace(100, 110, 20))
    assert answer(a, [*b, Outcome(NAN, 99)], smallest_effect=10).verdict == YES


def test_a_no_is_held_to_the_same():
    b = arm(100, 104, 96, 102, 98)
    assert answer(A, b, smallest_effect=5.7).verdict == NO
    assert answer([*A, Outcome(NAN, 9)], b, smallest_effect=5.7).verdict == OPEN


def test_a_seed_twice_counts_once():
    reply = answer(A, [Outcome(500.0, 4, "before"), *BETTER], smallest_effect=20)
    assert reply.n == (5, 5)
    assert [x.value for x in reply.b] == [x.value for x in BETTER]
    assert any("seed 4 is there more than once; before is left out" in note for note in reply.notes)


def test_where_every_effect_matters_none_is_quoted():
    assert answer(A, BETTER, smallest_effect=0).text.endswith("5 and 5 seeds).")
    assert answer(A, BETTER, smallest_effect=20).text.endswith("; that is at least the 20 that matters.")


def test_seeds_that_all_agree_come_with_a_warning():
    reply = answer(arm(*[500] * 5), arm(*[500] * 5), smallest_effect=10)
    assert (reply.verdict, reply.delta, reply.reason) == (OPEN, 0.0, "ties")
    assert any("up to 45% of its runs could end elsewhere unseen" in note for note in reply.notes)


# ---- Pairs and looks


def test_pairs_gain_from_shared_seeds():
    luck = [0, 40, -30, 70, -60]
    a, b = arm(*(100 + x for x in luck)), arm(*(112 + x + e for x, e in zip(luck, (1, -1, 0, 2, -2))))
    assert answer(a, b, smallest_effect=5).verdict == OPEN
    reply = answer(a, list(reversed(b)), smallest_effect=5, paired=True)
    assert (reply.verdict, reply.delta) == (YES, 12.0)


def test_pairs_leave_out_runs_without_a_partner():
    reply = answer(arm(1, 2, 3, 4, 5, 6), arm(2, 3, 4, 5, 6, 7, start=1), smallest_effect=1, paired=True)
    assert reply.n == (5, 5)
    assert reply.notes[0] == "2 runs without a partner of the same seed are left out"


def test_a_pair_with_a_diverged_run_counts_against_the_verdict():
    b = [*arm(106, 110, 102, 108, 104), Outcome(NAN, 5)]
    reply = answer([*A, Outcome(110.0, 5)], b, smallest_effect=1, paired=True)
    assert reply.n == (5, 5)
    assert reply.verdict == OPEN


def test_looking_again_widens_and_the_same_seeds_are_the_same_look():
    first = answer(A, BETTER, smallest_effect=20)
    again = answer(A, BETTER, smallest_effect=20, looked_at=[(5, 5)])
    third = answer(A, BETTER, smallest_effect=20, looked_at=[(3, 3), (6, 6), (7, 7), (6, 6)])
    assert (again.look, again.level) == (1, first.level)
    assert (third.look, third.level) == (3, 1 - 0.05 / 8)
    assert third.high - third.low > first.high - first.low


def test_one_declared_look_is_the_plain_interval_and_a_second_gives_no_answer():
    assert answer(A, BETTER, smallest_effect=20, looks=1).level == 0.95
    reply = answer(A, BETTER, smallest_effect=20, looks=1, looked_at=[(4, 4), (6, 6)])
    assert reply.verdict == OPEN
    assert "the declared looks are used up" in reply.text


def test_declared_sizes_spend_little_early_and_nearly_all_at_the_last():
    early, late = answer(A, BETTER, 20, looks=[5, 8, 15]), arm(*range(15))
    last = answer(late, late, 20, looks=[5, 8, 15], looked_at=[(5, 5), (8, 8)])
    assert 1 - early.level < 0.001 < 0.045 < 1 - last.level < 0.05
    assert (last.look, last.looks, last.spending) == (3, [5, 8, 15], "O'Brien-Fleming-like (Lan and DeMets)")
    beyond = arm(*range(16))
    assert answer(beyond, beyond, 20, looks=[5, 8, 15], looked_at=[(15, 15)]).reason == "spent"


def test_a_yes_says_whether_it_shows_0_or_what_matters():
    a, b = arm(*np.linspace(100, 110, 12)), arm(*np.linspace(120, 130, 12))
    clear, unsure = answer(a, b, 5), answer(a, b, 19)
    assert (clear.verdict, clear.shows) == (unsure.verdict, "smallest effect") == (YES, "smallest effect")
    assert clear.low >= 5
    assert "that is at least the 5 that matters" in clear.text
    assert unsure.shows == "above 0"
    assert 0 < unsure.low < 19
    assert "better for sure, but not for sure by the 19 that matters" in unsure.text
    assert answer(b, a, 5).shows == "below 0"
    assert answer(a, a, 50).shows == "smallest effect", "of a no: not better by what matters"


def test_a_yes_at_few_seeds_says_how_much_it_tends_to_overstate():
    b = arm(108, 112, 104, 110, 106)
    reply = answer(A, b, 0)
    assert reply.verdict == YES
    assert reply.overstates_at == 4.0
    assert 1.5 < reply.overstates < 3
    assert any("a yes tends to overstate: were half of it true (4)" in note for note in beside(reply.notes))
    many = answer(arm(*np.linspace(0, 1, 30)), arm(*np.linspace(5, 6, 30)), 0)
    assert not any("overstate" in note for note in many.notes)


def test_an_open_answer_says_where_it_is_better_for_sure():
    a, b = arm(*np.linspace(100, 110, 12)), arm(*np.linspace(120, 130, 12))
    reply = answer(a, b, 22)
    assert (reply.verdict, reply.shows) == (OPEN, "above 0")
    assert "better for sure, but not for sure by the 22 that matters" in reply.text
    gone = answer(a, [*b, Outcome(NAN, 99, note="no episode ended")], 22)
    assert (gone.verdict, gone.shows) == (OPEN, ""), "a run without a number may speak against it"
    assert "for sure" not in gone.text


# ---- No answer


def never(step: float) -> list[Outcome]:
    return [Outcome(step, i, reached=False, note="never at 40") for i in range(5)]


def test_nobody_reached_the_level_is_no_answer():
    reply = answer(never(1000.0), never(1000.0), 10, at="first_step_reaching", reach=40.0, names=("a", "b"))
    assert (reply.verdict, reply.reason, reply.seeds_needed) == (OPEN, "unreached", None)
    assert "no run of a or b reached 40" in reply.text


def test_a_difference_finer_than_the_grid_of_evaluations_is_no_answer():
    a = [Outcome(1000.0, i, grid=500.0) for i in range(6)]
    b = [*a[:5], Outcome(1500.0, 9, grid=500.0)]
    reply = answer(a, b, 10_000, at="first_step_reaching")
    assert (reply.verdict, reply.reason) == (OPEN, "grid")
    assert "no more than lies between two evaluations (500 steps)" in reply.text
    apart = [Outcome(9000.0 + 500 * i, i, grid=500.0) for i in range(6)]
    assert answer(apart, a, 100, at="first_step_reaching").verdict == YES


def test_a_ceiling_that_both_reach_is_no_answer():
    a, b = arm(500, 500, 499, 500, 500), arm(500, 500, 500, 500, 500)
    reply = answer(a, b, 10, bounds=(1.0, 500.0))
    assert (reply.verdict, reply.reason) == (OPEN, "ceiling")
    assert "both reach the highest value there can be (500)" in reply.text
    assert answer(arm(100, 104, 96, 102, 98), b, 10, bounds=(1.0, 500.0)).verdict == YES


def test_an_interval_is_no_wider_than_what_is_possible():
    reply = answer(arm(0, 1, 0, 1, 0), arm(1, 0, 1, 0, 1), 0.1, bounds=(0.0, 1.0))
    assert -1 <= reply.low < reply.high <= 1


def test_diverged_runs_are_read_both_ways():
    gone = [Outcome(NAN, 9, note="diverged: nan in the last row"), Outcome(NAN, 8, note="diverged: nan")]
    reply = answer(A, [*BETTER, *gone], 20, bounds=(0.0, 500.0))
    left, worst = reply.readings["left out"], reply.readings["as the worst"]
    assert left[0] == 50.0
    assert worst[0] == pytest.approx(5 * 150 / 7 - 100), "each counts as the lowest return there can be"
    assert any("read both ways" in note for note in reply.notes)
    assert answer(A, BETTER, 20).readings == {}


def test_a_reading_without_an_interval_has_no_brackets_and_seeds_that_diverged_alike_are_named_once():
    """It said "+50 [+nan, +nan] without them", one line for each seed, and "all 5 seeds of B agree" beside them."""
    gone = [Outcome(NAN, seed, note="diverged: nan in the last row") for seed in (8, 9)]
    few = answer(A, [*BETTER[:4], *gone], 20, bounds=(0.0, 500.0))
    assert "diverged runs are read both ways: +50.5 without them, " in " ".join(few.notes)
    assert "B: seeds 8, 9 have no number (diverged: nan in the last row) and are left out of delta" in few.notes
    none = answer(A, [Outcome(NAN, seed, note="diverged: nan") for seed in range(5)], 20)
    assert "diverged runs are read both ways: - without them, " in " ".join(none.notes)
    assert "nan]" not in " ".join([*few.notes, *none.notes, few.text, none.text])
    alike = arm(150, 150.1, 149.9, 150.2, 149.8)
    assert any("5 seeds of B agree" in note for note in answer(A, alike, 20).notes)
    assert not any("seeds of B agree" in note for note in answer(A, [*alike, gone[0]], 20).notes)


def test_what_an_answer_shows_holds_in_both_readings():
    """It was "at least the 10 that matters" where that held with the diverged run left out alone."""
    a, b = arm(96.4, 81.07, 98.32, 110.1, 103.3, 96.88), arm(132.7, 160.2, 146.6, 140.8, 134.9)
    gone = Outcome(NAN, 9, note="diverged: nan")
    reply = answer(a, [*b, gone], 10)
    assert (reply.verdict, reply.shows) == (YES, "above 0")
    assert reply.low > 10 > reply.readings["as the worst"][1] > 0
    assert "better for sure, but not for sure by the 10 that matters" in reply.text
    assert [note.partition(":")[0] for note in beside(reply.notes)] == ["diverged runs are read both ways"]
    worse = answer([*b, gone], a, 10)
    assert (worse.verdict, worse.shows) == (NO, "below 0")
    slightly = answer(
        arm(10.0, 10.2, 9.8, 10.1, 9.9), [*arm(9.5, 9.7, 9.3, 9.6, 9.4), Outcome(NAN, 9, note="no row")], 50
    )
    assert (slightly.verdict, slightly.shows) == (NO, "smallest effect"), "its run without a number may be a good one"
    assert "not better than A by the 50 that matters" in slightly.text


@pytest.mark.slow
def test_identical_arms_are_rarely_called_different():
    """The whole path at two looks (5, 10 seeds): at most 2.5 % a yes; 200 trials leave room up to 5.8 %."""
    rng, called = np.random.default_rng(0), 0
    for _ in range(200):
        x, y = rng.lognormal(0, 0.8, (2, 10))
        first = answer(arm(*x[:5]), arm(*y[:5]), 0.0)
        again = answer(arm(*x), arm(*y), 0.0, looked_at=[first.n])
        called += YES in (first.verdict, again.verdict)
    assert called / 200 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 200)


# ---- Several comparisons


def test_each_of_several_comparisons_gets_its_share():
    alone, shared = answer(A, BETTER, 20), answer(A, BETTER, 20, comparisons=3)
    assert (alone.level, shared.level) == (1 - 0.05 / 2, 1 - 0.05 / 2 / 3)
    assert shared.low < alone.low < alone.high < shared.high
    assert "99.17 % interval, 5 and 5 seeds, corrected for 3 comparisons)" in shared.text
    assert "corrected" not in alone.text
    with pytest.raises(ValueError, match="`comparisons` must be at least 1, but is 0"):
        answer(A, BETTER, 20, comparisons=0)


def test_more_comparisons_need_more_seeds():
    noisy = arm(100, 20, 180, 60, 140), arm(110, 30, 190, 70, 150)
    one, many = (answer(*noisy, 20, comparisons=k).seeds_needed for k in (1, 6))
    assert many[0] > one[0]


@pytest.mark.slow  # a simulation; that of two arms stays
def test_three_alike_variants_rarely_get_a_winner_and_verdicts_follow_their_intervals():
    """The whole path: a control and two variants of one shape, one look of 2.5 %; 300 trials leave room up to 5.2 %."""
    rng, called = np.random.default_rng(1), 0
    for _ in range(300):
        control, *others = (arm(*row) for row in rng.normal(100, 10, (3, 6)))
        replies = [answer(control, other, 0.0, comparisons=2) for other in others]
        called += any(x.low > 0 or x.high < 0 for x in replies)
        assert all((x.verdict == YES) == (x.low > 0) and (x.verdict == NO) == (x.high < 0) for x in replies)
    assert called / 300 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 300)


# ---- Other outcomes


def test_steps_to_a_level_count_fewer_as_better_and_keep_runs_that_never_get_there():
    slow = [Outcome(v, i, reached=v < 1000) for i, v in enumerate((700, 800, 1000, 1000, 900))]
    fast = [Outcome(v, i) for i, v in enumerate((100.0, 150, 120, 130, 140))]
    reply = answer(slow, fast, smallest_effect=100, at="first_step_reaching")
    assert (reply.verdict, reply.delta) == (YES, 880 - 128)
    assert "steps saved until" in reply.text
    assert answer(fast, slow, smallest_effect=100, at="first_step_reaching").verdict == NO


def test_the_sentence_says_how_many_values_and_which_level():
    assert "(mean of the last 3 eval/return_det, + is better" in answer(A, BETTER, 20, at="mean_last_m", m=3).text
    reply = answer(BETTER, A, 20, at="first_step_reaching", reach=475.0)
    assert "(steps saved until eval/return_det reaches 475, + is better" in reply.text
    assert answer(A, BETTER, 20, m=3).m is None, "the last value is not a mean of three"


def test_a_mean_knows_its_episodes():
    history = run([1.0, 2.0])
    history.columns["eval/episodes"] = Column(np.array([0, 100]), np.array([20.0, 30.0]))
    assert outcome(history).episodes == 30
    assert outcome(history, metric="none").episodes == 0


def test_what_several_seeds_share_is_said_once():
    slow = [Outcome(1000.0, i, reached=False, note="never at 40") for i in range(5)]
    reply = answer(slow, arm(100, 110, 120, 130, 140), smallest_effect=10, at="first_step_reaching", reach=40.0)
    assert [note for note in reply.notes if "never at" in note] == ["A: never at 40 (seeds 0, 1, 2, 3, 4)"]


def test_pairs_say_so():
    assert "97.5 % interval, 5 pairs)" in answer(A, BETTER, 20, paired=True).text


def test_success_rates_use_the_episodes():
    a = [Outcome(0.2, i, episodes=20) for i in range(5)]
    b = [Outcome(v, i, episodes=20) for i, v in enumerate((0.9, 0.95, 0.85, 0.9, 1.0))]
    reply = answer(a, b, smallest_effect=0.1, at="success_rate")
    want = stats.rate_difference([4] * 5, [20] * 5, [18, 19, 17, 18, 20], [20] * 5, 0.975)
    assert (reply.verdict, reply.low, reply.high) == (YES, want.low, want.high)
    assert reply.delta == pytest.approx(0.72)


def test_perfect_success_on_both_sides_still_has_a_width():
    both = [Outcome(1.0, i, episodes=20) for i in range(5)]
    reply = answer(both, both, smallest_effect=0.05, at="success_rate")
    assert reply.verdict == OPEN
    assert reply.low < 0 < reply.high


def test_an_answer_is_plain_data():
    reply = answer(A, BETTER[:3], smallest_effect=20)
    back = jsonl.decode(jsonl.encode(reply.to_dict()))
    assert back["verdict"] == OPEN
    assert [run["value"] for run in back["b"]] == [150.0, 154.0, 146.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"smallest_effect": -1}, "must be a number >= 0"),
        ({"smallest_effect": NAN}, "must be a number >= 0"),
        ({"at": "best"}, r"`at` must be one of final.*got 'best'"),
        ({"direction": "up"}, r"higher or lower, but got .*'up'"),
        ({"paired": True, "at": "success_rate"}, "leave it out"),
    ],
)
def test_impossible_questions_are_errors(change, message):
    with pytest.raises(ValueError, match=message):
        answer(A, BETTER, **{"smallest_effect": 1.0, **change})


# ---- A run's number


def run(values, steps=None, **more) -> History:
    steps = np.arange(len(values)) * 100 if steps is None else steps
    column = Column(np.asarray(steps, np.int64), np.asarray(values, np.float64))
    return History(Path("runs/x"), {"eval/return_det": column}, meta={"seed": 3}, **more)


def test_final_and_mean_of_last():
    history = run([1, 2, 3, 4, 10])
    assert outcome(history) == Outcome(10.0, 3, "x", step=400)
    assert outcome(history, "mean_last_m", m=2).value == 7.0
    short = outcome(history, "mean_last_m", m=50)
    assert (short.value, short.note) == (4.0, "only 5 of 50 values")


def test_a_run_that_ended_in_nan_has_no_number():
    number = outcome(run([1, 2, NAN]))
    assert math.isnan(number.value)
    assert number.note == "diverged: 1 of its last 1 values not finite"


def test_a_training_return_is_taken_from_the_rows_in_which_episodes_ended():
    history = run([1.0])
    steps = np.arange(6, dtype=np.int64)
    history.columns["return/mean"] = Column(steps, np.array([1, 2, 3, 5, NAN, NAN]))
    history.columns["return/episodes"] = Column(steps, np.array([2.0, 2, 2, 2, 0, 0]))
    assert outcome(history, "mean_last_m", "return/mean", m=2).value == 4.0
    history.columns["value/loss"] = Column(steps, np.array([1, 1, 1, 1, 1, NAN]))
    assert outcome(history, "mean_last_m", "return/mean", m=2).note == "diverged: 2 of its last 2 values not finite"
    history.columns["return/mean"] = Column(steps, np.full(6, NAN))
    del history.columns["value/loss"]
    history.columns["return/episodes"] = Column(steps, np.zeros(6))
    assert outcome(history, metric="return/mean").note == "no number in `return/mean`: no episode ended"


def test_a_tools_own_name_for_a_return_says_what_its_number_is():
    """The sentence said "final score" of the mean of the last tenth."""
    a, b = ([outcome(rising(top + seed), metric="foreign/score") for seed in range(5)] for top in (100.0, 200.0))
    assert a[0].by_end
    assert "(mean of the last tenth of score, + is better" in answer(a, b, 1, metric="score").text
    assert not outcome(rising(100.0), at="mean_last_m", metric="foreign/score").by_end


def rising(top: float) -> History:
    steps = np.arange(1, 41)
    return History(Path("r"), {"foreign/score": Column(steps, top * steps / 40)}, {}, {})


def test_a_missing_metric_is_said():
    number = outcome(run([1.0]), metric="eval/return_sampled")
    assert math.isnan(number.value)
    assert number.note == "no `eval/return_sampled` in its record"


def test_first_step_reaching_and_never():
    history = run([1, NAN, 5, 4, 9])
    assert outcome(history, "first_step_reaching", reach=5).value == 200.0
    never = outcome(history, "first_step_reaching", reach=10)
    assert (never.value, never.reached, never.note) == (400.0, False, "never at 10")
    assert outcome(history, "first_step_reaching", reach=4, direction="lower").value == 0.0
    with pytest.raises(ValueError, match="give `reach`"):
        outcome(history, "first_step_reaching")


def episode(success, end="goal"):
    return {"return": 1.0, "length": 1, "success": success, "end": end}


def test_success_rate_is_that_of_the_last_deterministic_evaluation():
    last = [episode(True), episode(False), episode(True), episode(None, "unused")]
    rows = [
        {"step": 0, "mode": "det", "episodes": [episode(False)]},
        {"step": 100, "mode": "det", "episodes": last},
        {"step": 100, "mode": "sampled", "episodes": [episode(False)]},
    ]
    rate = outcome(run([1.0], evals=rows), "success_rate")
    assert (rate.value, rate.episodes) == (pytest.approx(2 / 3), 3)


def test_success_that_is_not_known_is_said():
    rows = [{"step": 0, "mode": "det", "episodes": [episode(None), episode(True)]}]
    rate = outcome(run([1.0], evals=rows), "success_rate")
    assert math.isnan(rate.value)
    assert rate.note == "its 2 episodes do not all say if they succeeded"
    assert "no deterministic evaluation" in outcome(run([1.0]), "success_rate").note


# ---- What a statistician tried


def diverging(*values: float) -> list[Outcome]:
    return [Outcome(float(v), i, note="diverged: nan" if math.isnan(v) else "") for i, v in enumerate(values)]


def test_all_successes_against_none_is_a_yes_at_five_seeds():
    none, every = ([Outcome(rate, i, episodes=20) for i in range(5)] for rate in (0.0, 1.0))
    reply = answer(none, every, 0.1, at="success_rate")
    assert reply.verdict == YES
    assert 0 < reply.low < reply.delta == reply.high == 1
    assert answer(every, none, 0.1, at="success_rate").shows == "below 0"


def test_alike_success_rates_are_rarely_called_different():
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(300):
        a, b = ([Outcome(rng.binomial(20, p) / 20, i, episodes=20) for i, p in enumerate(rng.beta(0.5, 0.5, 5))]
                for _ in range(2))  # fmt: skip
        reply = answer(a, b, 0.0, at="success_rate")
        wrong += reply.low > 0 or reply.high < 0
    assert wrong / 300 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 300)


@pytest.mark.parametrize(
    ("a", "b", "direction", "verdict"),
    [
        ((20, 21, 22, 23, 24, 25), (10, 11, 12, 13, 14, NAN), "lower", OPEN),
        ((20, 21, 22, 23, 24, 25), (100, 101, 102, 103, 104, NAN), "higher", OPEN),
        ((100, 101, 102, 103, 104), (20, 21, 22, NAN, 24, 25), "higher", NO),
    ],
)
def test_diverged_runs_decide_only_where_both_readings_agree(a, b, direction, verdict):
    reply = answer(diverging(*a), diverging(*b), 0.0, direction=direction, bounds=(0, 500))
    assert reply.verdict == verdict
    (_, low, high), (_, worst_low, worst_high) = reply.readings.values()
    assert (verdict == NO) == (high < 0 and worst_high < 0)
    assert not (low > 0 and worst_low > 0)


def test_one_evaluation_apart_in_every_seed_is_no_answer_and_zero_has_no_sign():
    early, late = ([Outcome(t, i, grid=1000.0) for i in range(5)] for t in (5000.0, 6000.0))
    assert answer(early, late, 0.0, at="first_step_reaching", reach=1.0).reason == "grid"
    never = [Outcome(9000.0, i, reached=False) for i in range(5)]
    assert "-0" not in answer(never, never, 0.0, at="first_step_reaching", reach=1.0).text


def test_an_answer_keeps_both_bounds():
    reply = answer(A, BETTER, 20, bounds=(0, 500))
    assert (reply.bottom, reply.top) == (0, 500)


def test_where_no_run_went_another_way_than_the_others_there_is_no_interval():
    """It was "0 [0, 0]", as if five seeds that agree were certain."""
    never = [Outcome(1e5, seed, reached=False) for seed in range(5)]
    solved = arm(499, 500, 500, 498, 500)
    for reply in (
        answer(arm(*[7] * 5), arm(*[7] * 5), 1),
        answer(solved, solved, 1, bounds=(0.0, 500.0)),
        answer(never, never, 1, at="first_step_reaching", reach=3),
    ):
        assert reply.reason
        assert math.isnan(reply.low)
        assert math.isnan(reply.high)
        assert "[" not in reply.text
        assert reply.text.endswith("5 and 5 seeds).")


def test_groups_far_apart_say_what_their_interval_allows_for():
    a, b = arm(100, 101, 99, 102, 98), arm(20, 21, 19, 22, 18)
    numbers, counts = answer(a, b, 5), answer(a, b, 5, bounds=(0.0, 102.0))
    assert numbers.high < -75 < -25 < counts.high < 0
    assert any("does not allow for runs that end in the other's group" in note for note in numbers.notes)
    assert any("count as solved or failed, 5 of 5 against 0 of 5" in note for note in counts.notes)


def test_runs_that_count_as_solved_or_failed_are_counted_in_words():
    reply = answer(arm(29, 19, 493, 23, 12, 22, 14, 27), arm(480, 496, 494, 496, 497, 488, 497, 483), 100)
    said = "runs end in two groups and count as solved or failed: 1 of 8 of A and 8 of 8 of B in the upper one"
    assert said in beside(reply.notes)
    assert not any("two groups" in note for note in answer(A, arm(99, 101, 103, 97, 100), 5).notes)


def test_a_level_that_one_variant_never_reaches_is_solve_or_fail():
    """Runs that never got there are at the horizon; where all got there, times are numbers."""
    quick, slow = ([Outcome(at + 100.0 * i, i) for i in range(5)] for at in (2e4, 5e4))
    never = [Outcome(1e5, i, reached=False) for i in range(5)]
    assert answer(never, quick, 5, at="first_step_reaching", reach=3).low < 3e4
    assert answer(slow, quick, 5, at="first_step_reaching", reach=3).low > 2.9e4
