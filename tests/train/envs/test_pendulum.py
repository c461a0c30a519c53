"""Is pendulum-v1 Gymnasium's Pendulum-v1, digit by digit?"""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

from relab.config.envs import Pendulum as Params
from relab.train.envs import draw
from relab.train.envs.base import Worlds
from relab.train.envs.pendulum import WORST, Pendulum

N = 10_000


def theirs(body_N2: np.ndarray, action_N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.reset(seed=0)
    after, reward = np.empty_like(body_N2), np.empty(N)
    for i in range(N):
        env.state = body_N2[i].copy()
        _, reward[i], terminated, truncated, _ = env.step(action_N[i : i + 1])
        assert not terminated
        assert not truncated
        after[i] = env.state
    return after, reward


def test_transitions_are_gymnasiums():
    draws = np.random.default_rng(0)
    body, action = draws.uniform((-12, -8), (12, 8), (N, 2)), draws.uniform(-3, 3, N)  # beyond +-2 both clip
    after, reward = theirs(body, action)
    worlds = Worlds(Pendulum(), N)
    worlds.reset(np.arange(N))
    worlds.state.body[:] = body
    step = worlds.step(action.reshape(N, 1, 1))
    assert np.abs(worlds.state.body - after).max() < 1e-12
    assert np.abs(step.reward[:, 0] - reward).max() < 1e-12
    assert not step.terminated.any()
    assert not step.truncated.any()


def test_observation_is_gymnasiums():
    worlds, env = Worlds(Pendulum(), 1), gymnasium.make("Pendulum-v1").unwrapped
    worlds.reset(np.arange(1))
    env.reset(seed=0)
    env.state = np.array([0.7, -3.0])
    worlds.state.body[0] = env.state
    worlds.env.observe(worlds.state, worlds.obs)
    assert worlds.obs[0, 0].tolist() == env._get_obs().tolist()


def test_starts_are_uniform():
    worlds = Worlds(Pendulum(), 4000)
    worlds.reset(np.arange(4000))
    angle, speed = worlds.state.body.T
    assert np.abs(angle).max() <= math.pi
    assert np.abs(speed).max() <= 1
    assert abs(angle.std() - math.pi / 3**0.5) < 0.05
    assert abs(speed.std() - 1 / 3**0.5) < 0.02


def test_known_rewards():
    worlds = Worlds(Pendulum(), 3)
    worlds.reset(np.arange(3))
    worlds.state.body[:] = [(0, 0), (math.pi, 0), (math.pi, 8)]
    step = worlds.step(np.array([0.0, 0.0, 2.0]).reshape(3, 1, 1))
    assert step.reward[:, 0].tolist() == pytest.approx([0, -(math.pi**2), WORST])
    assert (worlds.spec.reward_low, worlds.spec.reward_high) == (WORST, 0.0)


def test_time_limit_is_a_parameter():
    assert (Pendulum().spec.horizon, Pendulum(Params(horizon=0)).spec.horizon) == (200, None)


def test_the_picture_shows_angle_and_torque():
    worlds = Worlds(Pendulum(), 1)
    worlds.reset(np.arange(1))
    worlds.state.body[0], worlds.state.torque[0] = (math.pi / 2, 0), -2.0
    image = worlds.render().astype(int)
    assert image.shape == (400, 400, 3)
    rod, bar = (np.nonzero((image == colour).all(2))[1] for colour in (draw.RED, draw.BLUE))
    assert rod.max() > 330
    assert rod.min() > 180
    assert bar.min() < 70
    assert bar.max() < 210
