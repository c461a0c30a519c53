"""Does the torus do what its rules say: move, chase, catch, pick, restart, observe?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.config.envs import Torus as Params
from relab.train.envs.base import Worlds
from relab.train.envs.check import check_env
from relab.train.envs.torus import CAUGHT, EVENTS, MINUS, PLUS, RESTART, Torus, way, wrap


def one_world(n: int = 1, **params) -> Worlds:
    """Hero in the middle, ghost and goblets out of reach; without noise and restarts unless asked for."""
    worlds = Worlds(Torus(Params(**{"noise": 0.0, "p_mix": 0.0, "ghost_speed": 0.0, **params})), n, time_limit=None)
    worlds.reset(np.arange(n))
    worlds.state.hero[:], worlds.state.ghost[:] = 0.5, 0.0
    worlds.state.goblet[:], worlds.state.kind[:] = [(0.9, 0.5), (0.5, 0.1), (0.2, 0.2)], [1.0, -1.0, -1.0]
    return worlds


def go(worlds: Worlds, x: float, y: float):
    return worlds.step(np.tile(np.array([[[x, y]]]), (worlds.n, 1, 1)))


def test_wrapping_and_the_short_way():
    assert [wrap(x) for x in (0.25, 1.25, -0.25, 1.0)] == [0.25, 0.25, 0.75, 0.0]
    assert [way(*pair) for pair in ((0.1, 0.9), (0.9, 0.1), (0.2, 0.5), (0.0, 0.5))] == pytest.approx(
        [-0.2, 0.2, 0.3, -0.5]
    )


def test_a_step_moves_by_dt_times_the_velocity_and_wraps():
    worlds = one_world()
    go(worlds, 2.0, -12.0)
    assert worlds.state.hero[0] == pytest.approx([0.6, 0.9])


def test_velocities_are_cut_only_when_asked():
    worlds = one_world(clip_action=True)
    go(worlds, 2.0, -12.0)
    assert worlds.state.hero[0] == pytest.approx([0.52, 0.48])
    assert Torus(Params(clip_action=True)).spec.action.high == (0.4, 0.4)
    assert math.isinf(Torus().spec.action.high[0])
    check_env(Torus(Params(clip_action=True)), steps=50)


def test_the_ghost_takes_the_short_way_round():
    worlds = one_world(ghost_speed=0.3)
    worlds.state.hero[0], worlds.state.ghost[0] = (0.95, 0.5), (0.05, 0.5)
    go(worlds, 0.0, 0.0)
    assert worlds.state.ghost[0] == pytest.approx([0.035, 0.5])


def test_caught_pays_and_the_ghost_starts_anew():
    worlds = one_world()
    worlds.state.ghost[0] = (0.53, 0.5)
    step = go(worlds, 0.0, 0.0)
    assert step.reward[0, 0] == -1.0
    assert worlds.state.event[0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.hypot(*(worlds.state.ghost[0] - (0.53, 0.5))) > 1e-6


@pytest.mark.parametrize(("kind", "event", "pay"), [(1.0, PLUS, 1.0), (-1.0, MINUS, -1.0)])
def test_a_goblet_pays_by_its_kind(kind: float, event: int, pay: float):
    worlds = one_world()
    worlds.state.goblet[0, 1], worlds.state.kind[0, 1] = (0.52, 0.52), kind
    step = go(worlds, 0.0, 0.0)
    assert step.reward[0, 0] == pay
    assert worlds.state.event[0, event] == 1.0
    assert worlds.obs[0, 0, EVENTS + event] == 1.0
    assert worlds.state.goblet[0, 1].tolist() != [0.52, 0.52]
    assert go(worlds, 0.0, 0.0).reward[0, 0] == 0.0 or worlds.state.event[0].any()


def test_restarts_come_at_their_rate_from_a_uniform_state_and_nothing_else_happened():
    worlds = Worlds(Torus(Params(p_mix=0.05, noise=0.005)), 2000, time_limit=None)
    worlds.reset(np.arange(2000))
    restarts, places = 0, []
    for _ in range(20):
        worlds.state.ghost[:] = worlds.state.hero  # everybody is caught, unless the state is drawn anew
        go(worlds, 0.0, 0.0)
        new = worlds.state.event[:, RESTART] == 1.0
        restarts += int(new.sum())
        places.append(worlds.state.hero[new])
        assert not worlds.state.event[new, :3].any()
        assert worlds.state.event[~new, CAUGHT].all()
    n = 40_000
    assert abs(restarts / n - 0.05) < 4 * math.sqrt(0.05 * 0.95 / n)
    hero = np.concatenate(places)
    assert np.abs(hero.mean(0) - 0.5).max() < 4 * math.sqrt(1 / 12 / len(hero))


def test_noise_has_its_standard_deviation():
    worlds = one_world(20_000, noise=0.01)
    go(worlds, 0.0, 0.0)
    moved = worlds.state.hero - 0.5
    assert moved.std() == pytest.approx(0.01, rel=4 / math.sqrt(2 * moved.size))
    assert abs(moved.mean()) < 4 * 0.01 / math.sqrt(moved.size)


def test_the_observation_of_a_known_state():
    worlds = one_world()
    worlds.state.hero[0], worlds.state.ghost[0] = (0.25, 0.5), (0.0, 0.75)
    worlds.state.goblet[0] = [(0.35, 0.5), (0.9, 0.9), (0.7, 0.1)]
    worlds.env.observe(worlds.state, worlds.obs)
    want = [1, 0, 0, -1, 0, -1, 1, 0, -0.25, 0.25, 0.1, 0.0, 1.0, -1 / 3, 0, 0, 0, 0]
    assert worlds.obs[0, 0] == pytest.approx(np.array(want, np.float32), abs=1e-6)


def test_it_never_ends_but_for_the_time_limit():
    worlds = Worlds(Torus(), 3)
    worlds.reset(np.arange(3))
    for t in range(200):
        step = go(worlds, 0.1, 0.2)
        assert not step.terminated.any()
        assert step.truncated.all() == (t == 199)


def test_it_can_be_filmed():
    image = one_world().render(0)
    assert image.shape == (400, 400, 3)
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 5
