"""cartpole-v1: keep the pole up (Barto, Sutton, Anderson 1983), Gymnasium's CartPole-v1 to the last digits.

Known answers: a policy that never lets it fall earns `horizon`; pushing at random earns about 22.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.config import envs as configs
from relab.record.spec import Action, Spec
from relab.train.envs import cartpole_pixels, draw
from relab.train.kernels.jit import njit, prange, wide
from relab.train.kernels.rng import uniform

GRAVITY = 9.8
MASS_POLE = 0.1
MASS = 0.1 + 1.0  # pole and cart
HALF_LENGTH = 0.5
POLE_MOMENT = MASS_POLE * HALF_LENGTH
FORCE = 10.0
DT = 0.02
MAX_ANGLE = 12 * 2 * math.pi / 360
MAX_X = 2.4
OFF_TRACK, FELL = 2, 3  # end codes


class State(NamedTuple):
    body: np.ndarray  # float64[N,4]: x, x', angle, angle'
    rng: np.ndarray  # uint64[N]


@njit(cache=True)
def step_one(x, x_dot, angle, angle_dot, action):
    """One Euler step of one world: the new body and the end code (0: still up)."""
    force = FORCE if action == 1 else -FORCE
    cos, sin = math.cos(angle), math.sin(angle)
    push = (force + POLE_MOMENT * (angle_dot * angle_dot) * sin) / MASS
    angle_acc = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4.0 / 3.0 - MASS_POLE * (cos * cos) / MASS))
    x_acc = push - POLE_MOMENT * angle_acc * cos / MASS
    x, x_dot = x + DT * x_dot, x_dot + DT * x_acc
    angle, angle_dot = angle + DT * angle_dot, angle_dot + DT * angle_acc
    end = 0
    if angle < -MAX_ANGLE or angle > MAX_ANGLE:
        end = FELL
    elif x < -MAX_X or x > MAX_X:
        end = OFF_TRACK
    return x, x_dot, angle, angle_dot, end


@njit(cache=True)
def step_rows(state, alive_NA, action_NAK, out):
    body, reward_NA, terminated_NA, end_NA = state.body, out.reward, out.terminated, out.end
    for i in range(body.shape[0]):  # the only agent of a world is always alive
        body[i, 0], body[i, 1], body[i, 2], body[i, 3], end = step_one(
            body[i, 0], body[i, 1], body[i, 2], body[i, 3], action_NAK[i, 0, 0]
        )
        reward_NA[i, 0], terminated_NA[i, 0], end_NA[i, 0] = 1.0, end > 0, end


@njit(parallel=True, cache=True)
def step_rows_wide(state, alive_NA, action_NAK, out):
    body, reward_NA, terminated_NA, end_NA = state.body, out.reward, out.terminated, out.end
    for i in prange(body.shape[0]):
        body[i, 0], body[i, 1], body[i, 2], body[i, 3], end = step_one(
            body[i, 0], body[i, 1], body[i, 2], body[i, 3], action_NAK[i, 0, 0]
        )
        reward_NA[i, 0], terminated_NA[i, 0], end_NA[i, 0] = 1.0, end > 0, end


@njit(cache=True)
def reset_rows(state, worlds_N):
    body, rng = state.body, state.rng
    for i in range(worlds_N.shape[0]):
        if worlds_N[i]:
            for k in range(4):
                body[i, k] = -0.05 + 0.1 * uniform(rng, i)


@njit(cache=True)
def observe_rows(state, obs_NAD):
    for i in range(state.body.shape[0]):
        for k in range(4):
            obs_NAD[i, 0, k] = state.body[i, k]


class CartPole:
    name = "cartpole-v1"
    Params = configs.CartPole
    collect = "relab.train.envs.whole:cartpole"

    def __init__(self, params: configs.CartPole | None = None) -> None:
        self.params = params = params or configs.CartPole()
        self.spec = Spec(
            env=self.name,
            obs_dim=params.pixels**2 if params.pixels else 4,
            action=Action("discrete", dim=1, n=(2,)),
            horizon=params.horizon or None,
            ends=("running", "time_limit", "off_track", "fell"),
            reward_low=1.0,
            reward_high=1.0,
            renders=True,
            obs_shape=(params.pixels, params.pixels, 1) if params.pixels else (),
        )
        if params.pixels:
            self.observe = self.show  # type: ignore[method-assign]  # so that nobody takes `collect` for its verbs

    def allocate(self, n: int) -> State:
        return State(np.zeros((n, 4)), np.zeros(n, np.uint64))

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        reset_rows(state, worlds_N)

    def step(self, state: State, alive_NA: np.ndarray, action_NA: np.ndarray, out) -> None:
        rows = step_rows_wide if wide(len(alive_NA)) else step_rows
        rows(state, alive_NA, action_NA.reshape(-1, 1, 1), out)

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        observe_rows(state, obs_NAD)

    def show(self, state: State, obs_NAD: np.ndarray) -> None:
        cartpole_pixels.observe_rows(state.body, self.params.pixels or 0, obs_NAD)

    def render(self, state: State, i: int) -> np.ndarray:
        x, _, angle, _ = (float(v) for v in state.body[i])
        canvas = draw.Canvas(400, 600, span=2.2 * MAX_X)
        canvas.line(-MAX_X, -0.6, MAX_X, -0.6, 0.02, draw.GREY)
        canvas.box(-MAX_X, -0.6, 0.03, 0.2, draw.GREY)
        canvas.box(MAX_X, -0.6, 0.03, 0.2, draw.GREY)
        canvas.box(x, -0.6, 0.5, 0.28, draw.INK)
        tip = (x + 2 * HALF_LENGTH * math.sin(angle), -0.5 + 2 * HALF_LENGTH * math.cos(angle))
        canvas.line(x, -0.5, *tip, 0.1, draw.WOOD)
        canvas.disc(x, -0.5, 0.045, draw.BLUE)
        return canvas.image()
