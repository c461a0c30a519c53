"""Does the herd do what its rules say: walk, graze, be caught, be fed, wait or restart, and fill each channel?"""

from __future__ import annotations

import numpy as np
import pytest

from relab.config import layers
from relab.config.envs import Herd as Params
from relab.config.layers import Layer
from relab.train import session
from relab.train.envs import herd
from relab.train.envs.base import Worlds
from relab.train.envs.herd import CAUGHT, FED, STORM, Herd

FAR = (0.9, 0.9)


def one_world(**params) -> Worlds:
    """Sheep at (-0.5, 0), (0, 0), (0.5, 0); pasture in the middle; the wolf in a corner, standing."""
    worlds = Worlds(Herd(Params(**{"wolf_speed": 0.0, **params})), 1)
    worlds.reset(np.arange(1))
    worlds.state.sheep[0, :, 1] = 0.0
    worlds.state.sheep[0, :, 0] = np.linspace(-0.5, 0.5, worlds.spec.agents)
    worlds.state.pasture[0], worlds.state.wolf[0] = (0, 0), FAR
    return worlds


def still(worlds: Worlds):
    return worlds.step(np.zeros(worlds.action_shape, np.float64 if worlds.spec.action.low else np.int64))


def play(worlds: Worlds, policy, steps: int) -> dict[str, np.ndarray]:
    found: dict[str, list] = {"end": [], "ret": [], "info": []}
    obs = worlds.obs
    for _ in range(steps):
        step = worlds.step(policy(obs))
        obs = step.obs
        if step.episodes is not None:
            for key, rows in found.items():
                rows.append(getattr(step.episodes, key))
    return {key: np.concatenate(rows, axis=-1) for key, rows in found.items()}


def straight(obs: np.ndarray) -> np.ndarray:
    return np.clip(obs[..., 2:4] * 20, -1, 1)


def test_walking_towards_the_pasture_pays_the_way_gained():
    worlds = one_world()
    action = np.zeros((1, 3, 2))
    action[0, 0, 0], action[0, 2, 0] = 1.0, 9.0  # towards it; away, and clipped
    step = worlds.step(action)
    assert worlds.state.sheep[0, :, 0].tolist() == pytest.approx([-0.45, 0.0, 0.55])
    assert step.reward[0].tolist() == pytest.approx([0.05 - 0.01, 0.1 - 0.01, -0.05 - 0.01])  # the middle one grazes


def test_discrete_actions_are_the_four_directions():
    worlds = one_world(action="discrete", agents=5)
    before = worlds.state.sheep.copy()
    worlds.step(np.arange(5)[None])
    moves = worlds.state.sheep[0] - before[0]
    assert moves.tolist() == pytest.approx(np.array([(0, 0), (0.05, 0), (0, 0.05), (-0.05, 0), (0, -0.05)]))


def test_the_field_has_walls():
    worlds = one_world()
    for _ in range(30):
        worlds.step(np.full((1, 3, 2), -1.0))
    assert worlds.state.sheep.min() == -1.0


def test_ten_steps_of_grazing_feed_a_sheep():
    worlds = one_world()
    for _ in range(9):
        step = still(worlds)
        assert step.episodes is None
    step = still(worlds)
    assert step.terminated.tolist() == [[False, True, False]]
    assert step.end[0, 1] == FED
    assert step.reward[0, 1] == pytest.approx(0.09 + 1.0)
    episodes = step.episodes
    assert episodes.success.tolist() == [True]
    assert episodes.ret[0] == pytest.approx(1.9)
    grazed, distance, meal, pace, danger = episodes.info[:, 0]
    assert (grazed, distance, meal, pace) == (10, 0, 1, 0)
    assert danger == pytest.approx(0.9 * 2**0.5)
    assert step.alive.tolist() == [[True, False, True]]


def test_the_wolf_catches_the_nearest():
    worlds = one_world(wolf_speed=0.03)
    worlds.state.wolf[0] = (-0.65, 0)
    assert still(worlds).episodes is None  # now 0.12 away
    step = still(worlds)
    assert step.terminated.tolist() == [[True, False, False]]
    assert step.end[0, 0] == CAUGHT
    assert step.reward[0, 0] == pytest.approx(-1.01)
    assert step.episodes.success.tolist() == [False]
    wolf = worlds.state.wolf[0, 0]
    still(worlds)
    assert worlds.state.wolf[0, 0] == pytest.approx(wolf + 0.03)  # it turns to the next, not to the dead


def test_alone_the_caught_sheep_starts_elsewhere():
    worlds = one_world(agent_reset="alone")
    worlds.state.wolf[0] = (-0.5, 0.05)
    step = still(worlds)
    assert step.alive.all()
    assert step.terminated.tolist() == [[True, False, False]]
    assert np.hypot(*(worlds.state.sheep[0, 0] - worlds.state.wolf[0])) >= herd.APART
    assert worlds.state.pasture[0].tolist() == [0, 0]
    assert worlds.book.tick.tolist() == [1]
    assert step.final_obs[0, 0, 0] == -0.5
    assert step.obs[0, 0, 0] != -0.5


def test_a_storm_ends_the_world_for_all():
    worlds = one_world(storm=1.0)
    step = still(worlds)
    assert step.truncated.all()
    assert (step.end == STORM).all()
    assert worlds.book.tick.tolist() == [0]
    assert step.episodes.success.tolist() == [False] * 3


def test_storms_come_as_often_as_asked():
    worlds = Worlds(Herd(Params(storm=0.05, horizon=0, wolf_speed=0.0)), 2000)
    worlds.reset(np.arange(2000))
    storms = (still(worlds).end == STORM).any(1).sum()
    assert 60 < storms < 140  # 100 expected, standard deviation 10


def test_observations_are_relative_and_see_the_living():
    worlds = one_world()
    worlds.env.observe(worlds.state, worlds.obs)
    assert worlds.obs[0, 0].tolist() == pytest.approx([-0.5, 0, 0.5, 0, 1.4, 0.9, 0.5, 0, 0])
    worlds.state.here[0, 1] = False
    worlds.env.observe(worlds.state, worlds.obs)
    assert worlds.obs[0, 0, 6] == 1.0  # the next living one
    worlds.state.here[0, 2] = False
    worlds.env.observe(worlds.state, worlds.obs)
    assert worlds.obs[0, 0, 6:8].tolist() == [0, 0]  # nobody


def test_walking_straight_feeds_most_and_standing_almost_none():
    worlds = Worlds(Herd(), 256)
    worlds.reset(np.arange(256))
    walked = play(worlds, straight, 200)
    assert 0.83 < (walked["end"] == FED).mean() < 0.93
    worlds.reset(np.arange(256))
    stood = play(worlds, lambda obs: np.zeros((256, 3, 2)), 200)
    assert (stood["end"] == FED).mean() < 0.1
    assert walked["ret"].mean() > 2 > -0.5 > stood["ret"].mean()


def test_the_picture_shows_wolf_pasture_and_sheep():
    worlds = one_world()
    image = worlds.render()
    assert image.shape == (400, 400, 3)
    assert image.dtype == np.uint8
    colours = {tuple(int(x) for x in pixel) for pixel in image.reshape(-1, 3)}
    assert {herd.draw.GREEN, herd.draw.RED, herd.draw.PAPER} <= colours
    worlds.state.here[0] = False
    assert herd.draw.PAPER not in {tuple(int(x) for x in pixel) for pixel in worlds.render().reshape(-1, 3)}


@pytest.mark.parametrize(("algo", "batch", "minibatch"), [("ppo", 32 * 32 * 3, 32 * 32 * 3 // 4), ("sac", None, None)])
def test_the_header_counts_agents(algo, batch, minibatch):
    """A minibatch of PPO is a part of a batch, of all agents; one of a replay method is drawn from rows of agents."""
    cfg = layers.resolve([Layer("test", {"algo": algo, "env": "herd"})]).config
    expected = batch or cfg.algo.envs * cfg.algo.steps * 3, minibatch or cfg.algo.minibatch
    assert (cfg.batch, cfg.minibatch) == expected
    numbers = session.derived(cfg)
    assert (numbers["batch"], numbers["minibatch"], numbers["agents"]) == (*expected, 3)
