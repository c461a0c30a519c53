"""Are the peers' tasks what their levels say? The expert reaches them, the random policy does not."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from benchmarks.peers import tasks
from benchmarks.peers.worlds import Alone, GymWorlds

OWN = [name for name, make in tasks.ALL.items() if not issubclass(make, GymWorlds)]


@pytest.mark.parametrize("name", OWN)
def test_levels_are_those_of_random_and_expert(name):
    low, top = tasks.LEVELS[name]
    random, expert = (tasks.played(tasks.ALL[name], by_expert, episodes=200, seed=3) for by_expert in (False, True))
    assert abs(random - low) < 0.15 * (top - low)
    assert abs(expert - top) < 0.15 * (top - low)
    assert tasks.reached(name, expert)
    assert not tasks.reached(name, random)


def test_levels_of_gymnasium_are_those_that_relab_measured():
    from relab.record import levels

    for name in set(tasks.ALL) - set(OWN):
        measured = levels.measured()[name]
        assert tasks.LEVELS[name][0] == pytest.approx(measured.random["return_mean"], rel=0.02)
        assert measured.solved in (None, tasks.LEVELS[name][1])


def test_a_return_that_is_no_number_reached_nothing():
    assert not tasks.reached("GridWorld-v0", float("nan"))


def test_no_task_is_in_both_parts():
    assert not set(tasks.TABLE) & set(tasks.HELD_OUT)
    assert len(tasks.TABLE) >= 12
    assert len(tasks.HELD_OUT) >= 10
    assert set(tasks.LEVELS) == set(tasks.ALL)


@pytest.mark.parametrize("name", OWN)
def test_worlds_keep_their_word(name):
    """Sizes as declared, the same seed gives the same worlds, an end and a cut are never both."""
    first, second = (tasks.ALL[name](6, seed=5) for _ in range(2))
    assert np.array_equal(first.reset(), second.reset())
    for _ in range(150):
        action, _ = first.random(), second.random()  # both draw alike
        a, b = first.step(action), second.step(action)
        assert a.obs.shape == (6, first.inputs)
        assert a.obs.dtype == a.reward.dtype == np.float32
        assert not (a.terminated & a.truncated).any()
        assert [e.world for e in a.episodes] == np.flatnonzero(a.terminated | a.truncated).tolist()
        assert np.array_equal(a.obs, b.obs)


def test_an_account_of_an_episode_is_the_sum_of_its_rewards():
    worlds = tasks.ALL["GridWorld-v0"](1, seed=0)
    worlds.reset()
    rewards, lengths = 0.0, 0
    for _ in range(200):
        now = worlds.step(worlds.random())
        rewards, lengths = rewards + float(now.reward[0]), lengths + 1
        if now.episodes:
            assert now.episodes[0].total == pytest.approx(rewards, abs=1e-5)
            assert now.episodes[0].length == lengths
            assert not np.array_equal(now.final, now.obs)
            return
    raise AssertionError("no episode ended")


@pytest.mark.filterwarnings("ignore:.*Box observation space")
def test_one_world_is_a_gymnasium_environment():
    from gymnasium.utils.env_checker import check_env

    check_env(Alone(tasks.ALL["PointReach-v0"]), skip_render_check=True)
