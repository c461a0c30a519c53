"""herd-v1: sheep walk to a pasture and graze until they are fed, while a wolf hunts the nearest. A multi-agent env.

It has what tests of a multi-agent bench need: agents that end early (caught, fed), that restart alone or wait for their
world, a world that can end as a whole (storm), an info channel for every reducer, and stages that a schedule can set:
how many sheep there are and how fast the wolf is. PPO learns it in seconds.
Known answers (agents that wait for their world): walking straight to the pasture feeds 88 % of the sheep, standing
still 4 %, walking at random 10 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from relab.config import envs as configs
from relab.config.base import require_range
from relab.record.spec import Action, Channel, Spec
from relab.train.envs import draw
from relab.train.kernels.jit import njit
from relab.train.kernels.rng import uniform

SPEED = 0.05  # metres per step along each axis, on a field of [-1, 1]^2
GRAZE = 0.25  # a sheep this near to the pasture's centre grazes
MEAL = 10.0  # grazing steps until it is fed
CATCH = 0.1  # the wolf catches what is this near
APART = 0.4  # nobody starts nearer to the wolf
CAUGHT, FED, STORM = 2, 3, 4  # end codes
MOVES = SPEED * np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1)], np.float64)  # stay, right, up, left, down
GRAZED, DISTANCE, MEAL_SHARE, PACE, DANGER = range(5)  # info channels


class State(NamedTuple):
    sheep: np.ndarray  # float64[N,A,2]
    meal: np.ndarray  # float64[N,A]: steps grazed
    here: np.ndarray  # bool[N,A]: on the field, so that the wolf and the others see it
    wolf: np.ndarray  # float64[N,2]
    pasture: np.ndarray  # float64[N,2]
    rng: np.ndarray  # uint64[N]
    used: np.ndarray  # bool[N,A]: slots that hold a sheep in this episode
    wolf_speed: np.ndarray  # float64[N]: of this episode


@njit(cache=True)
def bounded(x, low, high):
    return min(max(x, low), high)


@njit(cache=True)
def norm(dx, dy):
    return math.sqrt(dx * dx + dy * dy)  # math.hypot doubled the time of a step


@njit(cache=True)
def place(rng, i, wolf_x, wolf_y):
    """A random spot that the wolf does not reach at once."""
    x, y = wolf_x, wolf_y
    while norm(x - wolf_x, y - wolf_y) < APART:
        x, y = 2.0 * uniform(rng, i) - 1.0, 2.0 * uniform(rng, i) - 1.0
    return x, y


@njit(cache=True)
def walk(sheep, here, pasture, alive_NA, velocity_NAK, reward, info):
    """The living move; their reward so far is the way gained towards the pasture."""
    for i in range(alive_NA.shape[0]):
        for a in range(alive_NA.shape[1]):
            here[i, a] = alive_NA[i, a]
            if alive_NA[i, a]:
                x, y = sheep[i, a, 0], sheep[i, a, 1]
                new_x = bounded(x + bounded(velocity_NAK[i, a, 0], -SPEED, SPEED), -1.0, 1.0)
                new_y = bounded(y + bounded(velocity_NAK[i, a, 1], -SPEED, SPEED), -1.0, 1.0)
                distance = norm(new_x - pasture[i, 0], new_y - pasture[i, 1])
                reward[i, a] = norm(x - pasture[i, 0], y - pasture[i, 1]) - distance - 0.01
                info[DISTANCE, i, a] = distance
                info[PACE, i, a] = norm(new_x - x, new_y - y)
                sheep[i, a, 0], sheep[i, a, 1] = new_x, new_y


@njit(cache=True)
def hunt(sheep, here, wolf, wolf_speed):
    """The wolf steps towards the nearest sheep."""
    for i in range(here.shape[0]):
        prey_x, prey_y, nearest = 0.0, 0.0, np.inf
        for a in range(here.shape[1]):
            x, y = sheep[i, a, 0] - wolf[i, 0], sheep[i, a, 1] - wolf[i, 1]
            if here[i, a] and norm(x, y) < nearest:
                prey_x, prey_y, nearest = x, y, norm(x, y)
        stride = min(wolf_speed[i] / max(nearest, 1e-9), 1.0)
        wolf[i, 0] += stride * prey_x
        wolf[i, 1] += stride * prey_y


@njit(cache=True)
def graze(sheep, meal, here, wolf, alive_NA, reward, terminated, end, info):
    """Who eats, who is caught, who is fed."""
    for i in range(alive_NA.shape[0]):
        for a in range(alive_NA.shape[1]):
            if not alive_NA[i, a]:
                continue
            if info[DISTANCE, i, a] < GRAZE:
                meal[i, a] += 1.0
                reward[i, a] += 0.1
                info[GRAZED, i, a] = 1.0
            info[MEAL_SHARE, i, a] = meal[i, a] / MEAL
            info[DANGER, i, a] = norm(sheep[i, a, 0] - wolf[i, 0], sheep[i, a, 1] - wolf[i, 1])
            if info[DANGER, i, a] < CATCH:
                reward[i, a] -= 1.0
                end[i, a] = CAUGHT
            elif meal[i, a] >= MEAL:
                reward[i, a] += 1.0
                end[i, a] = FED
            terminated[i, a] = end[i, a] > 0
            here[i, a] = not terminated[i, a]


@njit(cache=True)
def weather(here, rng, truncated, end, world_over, storm):
    """A storm ends the world for all who are still on the field; their task was not over, so it is a truncation."""
    for i in range(here.shape[0]):
        if uniform(rng, i) < storm:
            world_over[i] = True
            for a in range(here.shape[1]):
                if here[i, a]:
                    truncated[i, a] = True
                    end[i, a] = STORM


@njit(cache=True)
def step_rows(state, alive_NA, velocity_NAK, out, storm):
    sheep, meal, here, wolf, pasture, rng, _, wolf_speed = state
    reward, terminated, truncated, end, info, world_over = out
    walk(sheep, here, pasture, alive_NA, velocity_NAK, reward, info)
    hunt(sheep, here, wolf, wolf_speed)
    graze(sheep, meal, here, wolf, alive_NA, reward, terminated, end, info)
    if storm > 0.0:
        weather(here, rng, truncated, end, world_over, storm)


@njit(cache=True)
def reset_rows(state, worlds_N, agents_NA):
    """New wolf and pasture for the marked worlds; a new start for the marked agents."""
    sheep, meal, here, wolf, pasture, rng, _, _ = state
    for i in range(worlds_N.shape[0]):
        if worlds_N[i]:
            for k in range(2):
                wolf[i, k] = 2.0 * uniform(rng, i) - 1.0
                pasture[i, k] = 1.4 * uniform(rng, i) - 0.7
        for a in range(agents_NA.shape[1]):
            if agents_NA[i, a]:
                sheep[i, a, 0], sheep[i, a, 1] = place(rng, i, wolf[i, 0], wolf[i, 1])
                meal[i, a] = 0.0
                here[i, a] = True


@njit(cache=True)
def observe_rows(sheep, meal, here, wolf, pasture, obs_NAD):
    for i in range(obs_NAD.shape[0]):
        for a in range(obs_NAD.shape[1]):
            x, y = sheep[i, a, 0], sheep[i, a, 1]
            mate_x, mate_y, nearest = 0.0, 0.0, np.inf  # (0, 0): nobody else is left
            for b in range(obs_NAD.shape[1]):
                dx, dy = sheep[i, b, 0] - x, sheep[i, b, 1] - y
                if b != a and here[i, b] and dx * dx + dy * dy < nearest:
                    mate_x, mate_y, nearest = dx, dy, dx * dx + dy * dy
            obs_NAD[i, a, 0], obs_NAD[i, a, 1] = x, y
            obs_NAD[i, a, 2], obs_NAD[i, a, 3] = pasture[i, 0] - x, pasture[i, 1] - y
            obs_NAD[i, a, 4], obs_NAD[i, a, 5] = wolf[i, 0] - x, wolf[i, 1] - y
            obs_NAD[i, a, 6], obs_NAD[i, a, 7] = mate_x, mate_y
            obs_NAD[i, a, 8] = meal[i, a] / MEAL


class Herd:
    name = "herd-v1"
    Params = configs.Herd
    stage_keys = ("sheep", "wolf_speed")

    def __init__(self, params: configs.Herd | None = None) -> None:
        self.params = params = params or configs.Herd()
        self.sheep, self.wolf_speed = params.agents, params.wolf_speed  # what the next resets take
        stride = SPEED * math.sqrt(2.0)  # the most a step can gain or lose
        discrete = params.action == "discrete"
        self.spec = Spec(
            env=self.name,
            obs_dim=9,
            action=Action("discrete", 1, n=(5,))
            if discrete
            else Action("continuous", 2, low=(-1.0, -1.0), high=(1.0, 1.0)),
            agents=params.agents,
            horizon=params.horizon or None,
            agent_reset=params.agent_reset,
            channels=(
                Channel("grazed", "steps", "sum"),
                Channel("pasture_distance", "m", "mean"),
                Channel("meal", "share", "last"),
                Channel("pace", "m/step", "max"),
                Channel("wolf_distance", "m", "min"),
            ),
            ends=("running", "time_limit", "caught", "fed", "storm"),
            success_ends=("fed",),
            reward_low=-1.01 - stride,
            reward_high=1.09 + stride,
            renders=True,
        )

    def allocate(self, n: int) -> State:
        rows = (n, self.params.agents)
        sheep, meal, here = np.zeros((*rows, 2)), np.zeros(rows), np.zeros(rows, bool)
        wolf, pasture, rng = np.zeros((n, 2)), np.zeros((n, 2)), np.zeros(n, np.uint64)
        return State(sheep, meal, here, wolf, pasture, rng, np.ones(rows, bool), np.full(n, self.params.wolf_speed))

    def set_stage(self, values: Mapping[str, Any]) -> None:
        """How many sheep there are (slots used) and how fast the wolf is, from each world's next reset on."""
        sheep = int(values.get("sheep", self.params.agents))
        speed = float(values.get("wolf_speed", self.params.wolf_speed))
        require_range("sheep", sheep, 1, self.params.agents)
        require_range("wolf_speed", speed, 0.0)
        self.sheep, self.wolf_speed = sheep, speed

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        state.used[worlds_N] = np.arange(self.params.agents) < self.sheep
        state.here[worlds_N] = False
        state.wolf_speed[worlds_N] = self.wolf_speed
        reset_rows(state, worlds_N, worlds_N[:, None] & state.used)

    def reset_agents(self, state: State, agents_NA: np.ndarray) -> None:
        reset_rows(state, np.zeros(len(agents_NA), bool), agents_NA)

    def step(self, state: State, alive_NA: np.ndarray, action: np.ndarray, out) -> None:
        velocity_NAK = MOVES[action] if self.params.action == "discrete" else SPEED * action.astype(np.float64)
        step_rows(state, alive_NA, velocity_NAK, out, self.params.storm)

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        observe_rows(state.sheep, state.meal, state.here, state.wolf, state.pasture, obs_NAD)

    def render(self, state: State, i: int) -> np.ndarray:
        (pasture_x, pasture_y), (wolf_x, wolf_y) = state.pasture[i], state.wolf[i]
        canvas = draw.Canvas(400, 400, span=2.3, paper=(233, 240, 224))
        canvas.disc(pasture_x, pasture_y, GRAZE, draw.GREEN)
        for a in range(self.params.agents):
            x, y = state.sheep[i, a]
            if state.here[i, a]:
                canvas.disc(x, y, 0.06, draw.INK)
                canvas.disc(x, y, 0.05, draw.PAPER)
                canvas.disc(x, y, 0.05 * min(state.meal[i, a] / MEAL, 1.0), draw.GREEN)  # fills up as it eats
            elif state.used[i, a]:
                canvas.ring(x, y, 0.05, 0.01, draw.GREY)
        canvas.ring(wolf_x, wolf_y, CATCH, 0.008, draw.RED)
        canvas.disc(wolf_x, wolf_y, 0.05, draw.RED)
        return canvas.image()
