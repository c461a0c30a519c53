"""reach: the environment of the steady-speed benchmark, 20 observations, 4 continuous actions, cheap physics.

Four point masses are pushed towards four targets; 20 = 4 x (position, velocity, target, offset, time-free bias).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from relab.record.spec import Action, Spec
from relab.train.envs.base import Outcomes
from relab.train.kernels.jit import njit
from relab.train.kernels.rng import uniform


@dataclass(frozen=True)
class Params:
    name: str = "reach-v1"  # id with version
    horizon: int = 200  # time limit in steps


class State(NamedTuple):
    x: np.ndarray  # float64[N,4]
    v: np.ndarray
    goal: np.ndarray
    rng: np.ndarray


@njit(cache=True)
def reset_rows(state, worlds):
    for i in range(worlds.size):
        if worlds[i]:
            for k in range(4):
                state.x[i, k], state.v[i, k] = 2 * uniform(state.rng, i) - 1, 0.0
                state.goal[i, k] = 2 * uniform(state.rng, i) - 1


@njit(cache=True)
def step_rows(state, action, reward):
    for i in range(action.shape[0]):
        gap = 0.0
        for k in range(4):
            state.v[i, k] = 0.95 * state.v[i, k] + 0.05 * min(max(action[i, 0, k], -1.0), 1.0)
            state.x[i, k] += 0.1 * state.v[i, k]
            gap += abs(state.x[i, k] - state.goal[i, k])
        reward[i, 0] = -0.1 * gap


@njit(cache=True)
def observe_rows(state, obs):
    for i in range(obs.shape[0]):
        for k in range(4):
            x, v, goal = state.x[i, k], state.v[i, k], state.goal[i, k]
            obs[i, 0, k], obs[i, 0, 4 + k], obs[i, 0, 8 + k] = x, v, goal
            obs[i, 0, 12 + k], obs[i, 0, 16 + k] = goal - x, 1.0


class Reach:
    name = "reach-v1"
    Params = Params

    def __init__(self, params: Params = Params()) -> None:  # noqa: B008
        action = Action("continuous", 4, (), (-1.0,) * 4, (1.0,) * 4)
        self.spec = Spec(params.name, 20, action, horizon=params.horizon, reward_high=0.0)

    def allocate(self, n: int) -> State:
        return State(np.zeros((n, 4)), np.zeros((n, 4)), np.zeros((n, 4)), np.zeros(n, np.uint64))

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        reset_rows(state, worlds_N)

    def step(self, state: State, alive_NA: np.ndarray, action: np.ndarray, out: Outcomes) -> None:
        step_rows(state, action, out.reward)

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        observe_rows(state, obs_NAD)
