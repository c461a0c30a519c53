"""Is the floor of step-one deaths the one that schools really have?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.config.envs import Fish as Params
from relab.schedules.spawn import covered, floor_after_moves, step_one_floor
from relab.train.envs.base import Worlds
from relab.train.envs.fish import Fish
from relab.train.envs.fish_moves import KEEP

N = 2000  # schools of 25: 50,000 fish


def test_at_the_centre_it_is_reach_over_spawn():
    assert step_one_floor(0.0) == pytest.approx(0.7 / 8, abs=1e-12)


@pytest.mark.parametrize("rho", [1.5, 2.0, 3.0, 5.0, 6.9])
def test_further_out_it_falls_like_one_over_the_distance(rho):
    assert step_one_floor(rho) == pytest.approx(0.0306 / rho, rel=0.05)  # 0.49 pi / (16 pi) = 0.0306


@pytest.mark.parametrize("rho", [0.3, 0.699, 0.701, 1.0, 4.0, 7.5, 8.6])
def test_the_integral_is_exact(rho):
    r = 8 * (np.arange(1_000_000) + 0.5) / 1_000_000
    assert step_one_floor(rho) == pytest.approx(covered(r, rho).mean(), abs=1e-7)


def test_out_of_reach_nobody_dies():
    assert step_one_floor(8.7) == 0.0
    with pytest.raises(ValueError, match="rho"):
        step_one_floor(-1.0)


@pytest.mark.parametrize("boost", [0.0, 0.75])
@pytest.mark.parametrize("rho", [0.0, 0.5, 1.5, 3.0])
@pytest.mark.some(1)
def test_schools_lose_as_many_in_their_first_step(rho, boost):
    """The predator stands so that after its first step it is at distance rho; fish keep their velocity."""
    worlds = Worlds(Fish(Params(escape_boost=boost)), N)
    worlds.reset(np.arange(N))
    worlds.state.predator[:] = (rho, 0.0, 0.0, -0.05)  # gravity stops it
    lost = worlds.step(np.full(worlds.action_shape, KEEP)).terminated.mean()
    floor = floor_after_moves(rho, boost)
    assert lost == pytest.approx(floor, abs=4 * math.sqrt(floor * (1 - floor) / (25 * N)) + 2e-5)


def test_no_policy_gets_under_what_the_fastest_fish_could():
    """Whatever the five actions do, a first step is at most 0.11 long (speed 1 and one acceleration)."""
    worlds = Worlds(Fish(), N)
    worlds.reset(np.arange(N))
    snap = worlds.snapshot()
    doomed = np.ones((N, 25), bool)
    for action in range(5):
        worlds.restore(snap)
        doomed &= worlds.step(np.full(worlds.action_shape, action)).terminated
    rho = math.hypot(0.15, 0.005)
    assert step_one_floor(rho, reach=0.7 - 0.11) < doomed.mean() < floor_after_moves(rho)
