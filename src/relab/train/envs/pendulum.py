"""pendulum-v1: swing up and hold with little torque, Gymnasium's Pendulum-v1 to the last digits.

Known answers: standing still upright costs nothing (reward 0), hanging still costs pi^2 a step; good policies earn
about -150 in 200 steps, random torque about -1200.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.config import envs as configs
from relab.record.spec import Action, Spec
from relab.train.envs import draw
from relab.train.kernels.jit import njit, prange, wide
from relab.train.kernels.rng import uniform

GRAVITY = 10.0
MAX_SPEED = 8.0
MAX_TORQUE = 2.0
DT = 0.05
WORST = -(math.pi**2 + 0.1 * MAX_SPEED**2 + 0.001 * MAX_TORQUE**2)


class State(NamedTuple):
    body: np.ndarray  # float64[N,2]: angle (0 is upright, not wrapped), angular speed
    torque: np.ndarray  # float64[N]: the last one, for pictures
    rng: np.ndarray  # uint64[N]


@njit(cache=True)
def step_one(angle, speed, torque):
    """One semi-implicit Euler step: reward for the state it starts from, then the new state."""
    off = (angle + math.pi) % (2 * math.pi) - math.pi
    cost = off * off + 0.1 * (speed * speed) + 0.001 * (torque * torque)
    speed = speed + (3 * GRAVITY / 2 * math.sin(angle) + 3.0 * torque) * DT
    speed = min(max(speed, -MAX_SPEED), MAX_SPEED)
    return angle + speed * DT, speed, -cost


@njit(cache=True)
def step_rows(state, alive_NA, action_NAK, out):
    body, torque, reward_NA = state.body, state.torque, out.reward
    for i in range(body.shape[0]):  # it never ends by itself: all are alive
        torque[i] = min(max(np.float64(action_NAK[i, 0, 0]), -MAX_TORQUE), MAX_TORQUE)
        body[i, 0], body[i, 1], reward_NA[i, 0] = step_one(body[i, 0], body[i, 1], torque[i])


@njit(parallel=True, cache=True)
def step_rows_wide(state, alive_NA, action_NAK, out):
    body, torque, reward_NA = state.body, state.torque, out.reward
    for i in prange(body.shape[0]):
        torque[i] = min(max(np.float64(action_NAK[i, 0, 0]), -MAX_TORQUE), MAX_TORQUE)
        body[i, 0], body[i, 1], reward_NA[i, 0] = step_one(body[i, 0], body[i, 1], torque[i])


@njit(cache=True)
def reset_rows(state, worlds_N):
    body, torque, rng = state.body, state.torque, state.rng
    for i in range(worlds_N.shape[0]):
        if worlds_N[i]:
            body[i, 0] = math.pi * (2.0 * uniform(rng, i) - 1.0)
            body[i, 1] = 2.0 * uniform(rng, i) - 1.0
            torque[i] = 0.0


@njit(cache=True)
def observe_rows(state, obs_NAD):
    body = state.body
    for i in range(body.shape[0]):
        obs_NAD[i, 0, 0] = math.cos(body[i, 0])
        obs_NAD[i, 0, 1] = math.sin(body[i, 0])
        obs_NAD[i, 0, 2] = body[i, 1]


class Pendulum:
    name = "pendulum-v1"
    Params = configs.Pendulum
    collect = "relab.train.envs.whole:pendulum"

    def __init__(self, params: configs.Pendulum | None = None) -> None:
        self.params = params = params or configs.Pendulum()
        self.spec = Spec(
            env=self.name,
            obs_dim=3,
            action=Action("continuous", dim=1, low=(-MAX_TORQUE,), high=(MAX_TORQUE,)),
            horizon=params.horizon or None,
            reward_low=WORST,
            reward_high=0.0,
            renders=True,
        )

    def allocate(self, n: int) -> State:
        return State(np.zeros((n, 2)), np.zeros(n), np.zeros(n, np.uint64))

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        reset_rows(state, worlds_N)

    def step(self, state: State, alive_NA: np.ndarray, action_NAK: np.ndarray, out) -> None:
        rows = step_rows_wide if wide(len(alive_NA)) else step_rows
        rows(state, alive_NA, action_NAK, out)

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        observe_rows(state, obs_NAD)

    def render(self, state: State, i: int) -> np.ndarray:
        angle, torque = float(state.body[i, 0]), float(state.torque[i])
        canvas = draw.Canvas(400, 400, span=2.8)
        canvas.ring(0, 0, 1.0, 0.01, draw.GREY)
        canvas.line(0, 0, math.sin(angle), math.cos(angle), 0.16, draw.RED)
        canvas.disc(0, 0, 0.05, draw.INK)
        canvas.line(0, -1.25, torque / MAX_TORQUE, -1.25, 0.06, draw.BLUE)  # the torque as a bar, left or right
        return canvas.image()
