"""When is a world model surprised, and who waits then?"""

from __future__ import annotations

import math

import pytest

from relab.config.base import ConfigError
from relab.config.dreamer import Dreamer
from relab.train.algos import dreamer
from relab.train.algos.dreamer import learning
from relab.train.algos.dreamer.surprise import PARTS, READY, Focus, Surprise
from relab.train.contract import Setup
from relab.train.envs.cartpole import CartPole

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


def test_a_model_that_still_learns_falls_and_one_that_stands_does_not():
    surprise = settled()
    assert surprise.fall == 0.0
    for k in range(200):  # a hundredth less in every update: means over the last updates lie behind
        surprise.note(dict.fromkeys(PARTS, 0.99**k))
    assert surprise.fall > 0.2
    for _ in range(3000):
        surprise.note(dict.fromkeys(PARTS, 0.1))
    assert surprise.fall < 0.01
    assert Surprise().fall == math.inf  # nothing is known yet


def standing(**settings: object) -> learning.State:
    cfg = Dreamer(envs=1, steps=8, deter=8, hidden=8, units=8, stoch=4, bins=11, learning_starts=32, sequences=2,
                  length=8, imagine=3, **settings)  # type: ignore[arg-type]  # fmt: skip
    return dreamer.init(Setup(CartPole(), cfg, 0, 1000))


def test_the_ratio_comes_down_to_one_as_the_model_settles():
    s = standing(model_updates=4, settles=0.2)
    assert learning.model_updates(s) == 4  # nothing is known yet
    s.surprise.updates, s.surprise.mean = READY, {"slow": math.exp(0.1), "total": 1.0}
    assert learning.model_updates(s) == 1 + round(3 * 0.5)
    turns = []
    for s.counts.updates in range(6):
        turns.append(learning.turn_of(s).actor > 0)
    assert turns == [True, False, False, True, False, False]  # every third
    s.surprise.mean = {"slow": 1.0, "total": 1.0}
    assert learning.model_updates(s) == 1
    assert learning.model_updates(standing(model_updates=4)) == 4  # without `settles`: always


def test_settling_needs_a_ratio_to_come_down_from():
    with pytest.raises(ConfigError, match="`model_updates` is 1 already"):
        Dreamer(settles=0.2).check()


def test_the_step_size_falls_along_a_line_or_a_cosine():
    for shape, quarter in (("line", 1 - 0.9 * 0.25), ("cosine", 1 - 0.9 * 0.5 * (1 - math.cos(math.pi / 4)))):
        s = standing(lr_final=0.1, lr_shape=shape)
        s.counts.agent_steps = 250
        assert learning.pace_of(s) == pytest.approx(quarter)
        s.counts.agent_steps = 1000
        assert learning.pace_of(s) == pytest.approx(0.1)
