"""Do the five rungs have the values and actions they claim? Played, for every observation and action."""

from __future__ import annotations

import numpy as np
import pytest

from relab.train.envs.base import Worlds
from relab.train.envs.ladder import Backprop, Both, Discount, Policy, Value

RUNGS = [Value, Backprop, Discount, Policy, Both]
GAMMA = 0.9


def play(env, action: int) -> tuple[np.ndarray, np.ndarray]:
    """Discounted return from every step of the first episode of 64 worlds, and the observation there."""
    worlds = Worlds(env, 64)
    obs, seen, rewards = worlds.reset(np.arange(64)), [], []
    while True:
        seen.append(obs[:, 0, 0].copy())
        step = worlds.step(np.full((64, 1), action))
        rewards.append(step.reward[:, 0].copy())
        assert step.terminated.all() or not step.terminated.any()
        if step.terminated.all():
            break
        obs = step.obs
    returns, value = [], np.zeros(64)
    for reward in reversed(rewards):
        value = reward + GAMMA * value
        returns.append(value)
    return np.concatenate(seen), np.concatenate(returns[::-1])


@pytest.mark.parametrize("rung", RUNGS)
def test_known_answers_are_what_playing_gives(rung):
    env = rung()
    answers = env.known_answers()
    best: dict[float, tuple[float, int]] = {}
    for action in range(env.spec.action.n[0]):
        for obs, value in zip(*play(env, action)):
            best[float(obs)] = max(best.get(float(obs), (-np.inf, -1)), (float(value), action))
    assert sorted(best) == sorted(answer.obs for answer in answers)
    for answer in answers:
        value, action = best[answer.obs]
        assert value == pytest.approx(answer.value(GAMMA))
        assert answer.action in (None, action)
        assert (answer.action is None) == (env.spec.action.n == (1,))


@pytest.mark.parametrize("rung", [Backprop, Both])
def test_both_signs_are_seen_equally_often(rung):
    obs = Worlds(rung(), 4000).reset(np.arange(4000))
    assert set(np.unique(obs)) == {-1.0, 1.0}
    assert abs(obs.mean()) < 0.07


@pytest.mark.parametrize("rung", [Policy, Both])
def test_the_right_action_is_a_success(rung):
    worlds = Worlds(rung(), 8)
    obs = worlds.reset(np.arange(8))
    right = np.ones((8, 1), np.int64) if rung is Policy else (obs[..., 0] > 0).astype(np.int64)
    right[:4] = 1 - right[:4]
    episodes = worlds.step(right).episodes
    assert episodes.success.tolist() == [False] * 4 + [True] * 4
    assert episodes.ret.tolist() == [-1] * 4 + [1] * 4
