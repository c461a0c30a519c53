"""Does a race drop only what its interval says, however often one looks? And does the winner's luck come out?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.comparison.answer import Outcome
from relab.lab.sweep import race, trials
from relab.lab.sweep.axis import Axis
from relab.lab.sweep.plan import Racing, Sweep


def a_sweep(**settings) -> Sweep:
    return Sweep("which?", (Axis("a", (1, 2)),), {}, **{"seeds": tuple(range(15)), "racing": Racing(5, 3), **settings})


def outcomes(rows) -> dict[str, list[Outcome]]:
    return {f"t{i}": [Outcome(float(v), seed) for seed, v in enumerate(row)] for i, row in enumerate(rows)}


def test_looks_are_spread_over_the_seeds():
    assert [len(seeds) for seeds in race.rounds(a_sweep())] == [5, 8, 12, 15]
    assert [len(seeds) for seeds in race.rounds(a_sweep(racing=None))] == [15]
    assert [len(seeds) for seeds in race.rounds(a_sweep(seeds=tuple(range(6))))] == [5, 6]


def test_a_trial_is_dropped_when_even_its_upper_end_stays_behind():
    """By hand: leader 100, the others 50, 98 and 93, all of sd 1.12, so that a difference is known to ± 0.71 t, with
    t = 3.9 for 8 degrees of freedom at 99.58 %: ± 2.8. Effects under 5 do not matter: -7 + 2.8 > -5."""
    noise = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
    by_trial = outcomes([100 + noise, 50 + noise, 98 + noise, 93 + noise])
    looks: list[list[int]] = []
    gone = race.drop(a_sweep(smallest_effect=5.0), by_trial, looks, 4)
    assert list(gone) == ["t1"]
    assert gone["t1"]["delta"] == pytest.approx(-50)
    assert gone["t1"]["level"] == pytest.approx(1 - 0.05 / 2 / 6), "the first look's half, shared by all six pairs"
    assert looks == [[5, 4]]
    assert list(race.drop(a_sweep(smallest_effect=0.0), by_trial, looks, 4)) == ["t1", "t3"]
    assert looks == [[5, 4]], "the same numbers again are the same look"


def test_lower_may_be_better():
    noise = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
    by_trial = outcomes([100 + noise, 50 + noise])
    assert list(race.drop(a_sweep(direction="lower"), by_trial, [], 2)) == ["t0"]


def test_nothing_is_dropped_under_five_seeds_or_for_a_failed_one():
    by_trial = outcomes([[100, 101, 102, 103], [1, 2, 3, 4]])
    assert race.drop(a_sweep(), by_trial, [], 2) == {}
    failed = outcomes([[100, 101, 102, 103, 104], [math.nan, 101, 102, 103, 100]])
    assert race.drop(a_sweep(), failed, [], 2) == {}


def test_a_trial_does_not_win_by_failing():
    by_trial = outcomes([[10, 11, 12], [math.nan, math.nan, 20], [math.nan] * 3])
    assert trials.scores(a_sweep(), by_trial) == {"t0": 11, "t1": pytest.approx(40 / 3)}
    by_trial = outcomes([[10, 11, 12], [math.nan, math.nan, 12.5], [-5.0] * 3])
    assert trials.best(a_sweep(), by_trial) == "t0", "two of three failed: each counts as -5, the worst of all"


def test_alike_trials_are_hardly_ever_dropped():
    """Six trials that are all the same, looked at three times: any drop is an error, at most 5 % of races."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(100):
        rows, looks = rng.normal(size=(6, 15)), []
        gone = [race.drop(a_sweep(), outcomes(rows[:, :n]), looks, 6) for n in (5, 8, 12)]
        wrong += any(gone)
    assert wrong / 100 <= 0.05


def test_the_winner_of_many_alike_is_flattered():
    """Twenty trials of the same worth: the best of them on five seeds looks better by the expected maximum of twenty
    means, 1.87 / sqrt(5) = 0.84 (hand), which fresh seeds do not repeat."""
    rng, luck = np.random.default_rng(1), []
    for _ in range(300):
        rows = rng.normal(size=(20, 5))
        winner = trials.best(a_sweep(), outcomes(rows))
        luck.append(rows[int(str(winner)[1:])].mean() - rng.normal(size=5).mean())
    assert np.mean(luck) == pytest.approx(1.867 / math.sqrt(5), abs=0.1)
