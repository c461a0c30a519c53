"""When is a world model surprised, and who waits then?"""

from __future__ import annotations

import math

import pytest

from relab.train.algos.dreamer.surprise import PARTS, READY, Focus, Surprise

EVEN = dict.fromkeys(PARTS, 1.0)


def settled() -> Surprise:
    surprise = Surprise()
    for _ in range(READY):
        surprise.note(EVEN)
    return surprise


def test_nothing_surprises_before_there_is_a_mean():
    surprise = Surprise()
    surprise.note(EVEN)
    surprise.note(EVEN | {"obs": 100.0})
    assert surprise.total == 0.0
    assert surprise.metrics()["model/surprise_ready"] == 0.0


def test_a_loss_twice_its_mean_is_a_surprise_of_ln_2():
    surprise = settled()
    surprise.note(dict.fromkeys(PARTS, 2.0))
    row = surprise.metrics()
    assert row["model/surprise_total"] == pytest.approx(math.log(2))
    surprise.note(EVEN | {"dyn": 4.0})
    row = surprise.metrics()
    assert row["model/surprise_max"] == row["model/surprise_dyn"] > 1.3
    assert row["model/surprise_obs"] < 0  # the mean has risen a little


def test_smoothed_surprise_fades_by_a_tenth():
    surprise = settled()
    surprise.note(dict.fromkeys(PARTS, 2.0))
    surprise.note(EVEN)
    assert surprise.smoothed == pytest.approx(0.9 * math.log(2))


def test_focus_lets_every_fourth_update_learn_and_rests_afterwards():
    surprise, focus = settled(), Focus(bar=0.5, updates=8, cooldown=3)
    surprise.note(dict.fromkeys(PARTS, 2.0))
    learns = []
    for _ in range(13):
        focus.note(surprise)  # which stays surprised
        learns.append((focus.on, focus.lets_learn()))
    assert [on for on, _ in learns] == [True] * 8 + [False] * 4 + [True]
    assert sum(learned for on, learned in learns[:8] if on) == 2


def test_a_bar_below_the_noise_is_on_whenever_it_may_be():
    surprise, focus, on = settled(), Focus(bar=-1.0, updates=20, cooldown=0), 0
    for _ in range(100):
        surprise.note(EVEN)
        focus.note(surprise)
        on += focus.on
    assert on > 90
