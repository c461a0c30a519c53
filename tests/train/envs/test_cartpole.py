"""Is cartpole-v1 Gymnasium's CartPole-v1, digit by digit?"""

from __future__ import annotations

import gymnasium
import numpy as np

from relab.config.envs import CartPole as Params
from relab.train.envs import cartpole
from relab.train.envs.base import Worlds
from relab.train.envs.cartpole import CartPole

N = 10_000


def random_bodies() -> np.ndarray:
    """States all over the legal range and a little beyond, so that both ends are met."""
    return np.random.default_rng(0).uniform((-2.5, -3, -0.25, -3), (2.5, 3, 0.25, 3), (N, 4))


def theirs(body_N4: np.ndarray, action_N: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    env = gymnasium.make("CartPole-v1").unwrapped
    after, terminated, reward = np.empty_like(body_N4), np.empty(N, bool), np.empty(N)
    for i in range(N):
        env.reset(seed=0)
        env.state = body_N4[i].copy()
        _, reward[i], terminated[i], truncated, _ = env.step(int(action_N[i]))
        assert not truncated
        after[i] = env.state
    return after, terminated, reward


def test_transitions_are_gymnasiums():
    body, action = random_bodies(), np.random.default_rng(1).integers(0, 2, (N, 1))
    after, terminated, reward = theirs(body, action[:, 0])
    worlds = Worlds(CartPole(Params(horizon=0)), N)
    worlds.reset(np.arange(N))
    worlds.state.body[:] = body
    env = worlds.env
    env.step(worlds.state, worlds.alive, action, worlds._out)
    assert np.abs(worlds.state.body - after).max() < 1e-12
    assert (worlds._out.terminated[:, 0] == terminated).all()
    assert 1000 < terminated.sum() < 9000
    assert (worlds._out.reward[:, 0] == reward).all()


def test_observation_is_the_state_in_single_precision():
    worlds = Worlds(CartPole(), 4)
    obs = worlds.reset(np.arange(4))
    assert obs.dtype == np.float32
    assert (obs[:, 0] == worlds.state.body.astype(np.float32)).all()


def test_starts_are_uniform_within_a_twentieth():
    worlds = Worlds(CartPole(), 4000)
    worlds.reset(np.arange(4000))
    body = worlds.state.body
    assert np.abs(body).max() <= 0.05
    assert np.abs(body.mean(0)).max() < 0.002
    assert np.abs(body.std(0) - 0.1 / 12**0.5).max() < 0.001


def test_end_codes_say_how_it_ended():
    worlds = Worlds(CartPole(), 2)
    worlds.reset(np.arange(2))
    worlds.state.body[:] = [(2.39, 2, 0, 0), (0, 0, 0.2094, 1)]
    episodes = worlds.step(np.ones((2, 1), np.int64)).episodes
    assert [worlds.spec.ends[code] for code in episodes.end] == ["off_track", "fell"]
    assert episodes.success is None


def test_time_limit_is_a_parameter():
    assert CartPole().spec.horizon == 500
    assert CartPole(Params(horizon=7)).spec.horizon == 7
    assert CartPole(Params(horizon=0)).spec.horizon is None


def test_random_pushes_earn_about_22():
    worlds, draw, returns = Worlds(CartPole(), 256), np.random.default_rng(0), []
    worlds.reset(np.arange(256))
    for _ in range(200):
        episodes = worlds.step(draw.integers(0, 2, (256, 1))).episodes
        returns += [] if episodes is None else episodes.ret.tolist()
    assert 20 < np.mean(returns) < 24


def test_the_picture_shows_cart_and_pole():
    worlds = Worlds(CartPole(), 1)
    worlds.reset(np.arange(1))
    worlds.state.body[0] = (0, 0, 0, 0)
    upright = worlds.render()
    worlds.state.body[0] = (1, 0, 0.2, 0)
    leaning = worlds.render()
    assert upright.shape == (400, 600, 3)
    assert upright.dtype == np.uint8
    assert (upright == upright[:, ::-1]).all()  # standing in the middle it is symmetric
    wood = np.abs(leaning.astype(int) - cartpole.draw.WOOD).sum(2) == 0
    rows, columns = np.nonzero(wood)
    assert (
        columns[rows.argmin()] > columns[rows.argmax()] > 300
    )  # the tip is right of the foot, which is right of centre
