"""torus-v1: an adventurer on a torus picks goblets, good ones and bad ones, while a ghost chases him. It never ends.

    p <- wrap(p + dt a + N(0, noise^2 I))                      the action is a velocity
    g <- wrap(g + dt ghost_speed unit(p - g) + N(0, noise^2 I))   the ghost takes the short way round
caught when |g - p| <= 0.05 (the ghost starts anew), a goblet within 0.04 is picked (it starts anew, and with chance 1/2
its kind is drawn again). With chance `p_mix` the whole state is drawn anew, and nothing happened in that step.
The reward is that of the events alone: +1 good goblet, -1 bad one, -1 caught. A teacher's reward that is a function of
an algorithm's features is that algorithm's business (algos/tracking_ac.py).
Known answers: a step moves by dt |a| and noise; restarts come at the rate p_mix, from a uniform state.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.config import envs as configs
from relab.record.spec import Action, Channel, Spec
from relab.train.envs import draw
from relab.train.kernels.jit import njit
from relab.train.kernels.rng import normal_pair, uniform

CATCH, PICK = 0.05, 0.04  # distances
GOBLETS = 3
OBS = 18
CAUGHT, PLUS, MINUS, RESTART = range(4)  # events of the last step, at obs[EVENTS:]; also the info channels
EVENTS = 14
TWO_PI = 2.0 * math.pi


class State(NamedTuple):
    hero: np.ndarray  # float64[N,2] in [0, 1)
    ghost: np.ndarray  # float64[N,2]
    goblet: np.ndarray  # float64[N,3,2]
    kind: np.ndarray  # float64[N,3]: +1 good, -1 bad
    event: np.ndarray  # float64[N,4]: what happened in the last step
    rng: np.ndarray  # uint64[N]


@njit(cache=True)
def wrap(x):
    """Into [0, 1)."""
    y = x - math.floor(x)
    return y if y < 1.0 else 0.0


@njit(cache=True)
def way(a, b):
    """The short way round from a to b, in [-1/2, 1/2)."""
    d = b - a
    return d - math.floor(d + 0.5)


@njit(cache=True)
def draw_kind(rng, i, plus):
    return 1.0 if uniform(rng, i) < plus else -1.0


@njit(cache=True)
def draw_state(hero, ghost, goblet, kind, rng, i, plus):
    """Everything uniform on the torus."""
    for k in range(2):
        hero[i, k], ghost[i, k] = uniform(rng, i), uniform(rng, i)
    for j in range(GOBLETS):
        goblet[i, j, 0], goblet[i, j, 1] = uniform(rng, i), uniform(rng, i)
        kind[i, j] = draw_kind(rng, i, plus)


@njit(cache=True)
def move(hero, ghost, rng, i, vx, vy, dt, noise, ghost_speed):
    """One step of the adventurer, then of the ghost, towards where he is now."""
    ex, ey = normal_pair(rng, i)
    hero[i, 0], hero[i, 1] = wrap(hero[i, 0] + dt * vx + noise * ex), wrap(hero[i, 1] + dt * vy + noise * ey)
    dx, dy = way(ghost[i, 0], hero[i, 0]), way(ghost[i, 1], hero[i, 1])
    stride = dt * ghost_speed / max(math.sqrt(dx * dx + dy * dy), 1e-12)
    ex, ey = normal_pair(rng, i)
    ghost[i, 0], ghost[i, 1] = (
        wrap(ghost[i, 0] + stride * dx + noise * ex),
        wrap(ghost[i, 1] + stride * dy + noise * ey),
    )


@njit(cache=True)
def nearest(hero, goblet, i):
    """The nearest goblet: its index, and the way to it."""
    best, bx, by, least = 0, 0.0, 0.0, np.inf
    for j in range(GOBLETS):
        dx, dy = way(hero[i, 0], goblet[i, j, 0]), way(hero[i, 1], goblet[i, j, 1])
        if dx * dx + dy * dy < least:
            best, bx, by, least = j, dx, dy, dx * dx + dy * dy
    return best, bx, by


@njit(cache=True)
def happen(state, i, plus):
    """Who is caught, what is picked; both start anew elsewhere."""
    hero, ghost, goblet, kind, event, rng = state
    dx, dy = way(ghost[i, 0], hero[i, 0]), way(ghost[i, 1], hero[i, 1])
    if dx * dx + dy * dy <= CATCH * CATCH:
        event[i, CAUGHT] = 1.0
        ghost[i, 0], ghost[i, 1] = uniform(rng, i), uniform(rng, i)
    j, dx, dy = nearest(hero, goblet, i)
    if dx * dx + dy * dy <= PICK * PICK:
        event[i, PLUS if kind[i, j] > 0 else MINUS] = 1.0
        goblet[i, j, 0], goblet[i, j, 1] = uniform(rng, i), uniform(rng, i)
        if uniform(rng, i) < 0.5:
            kind[i, j] = draw_kind(rng, i, plus)


@njit(cache=True)
def step_rows(state, action_NAK, reward_NA, info_CNA, dt, noise, ghost_speed, p_mix, plus, most):
    hero, ghost, goblet, kind, event, rng = state
    for i in range(hero.shape[0]):
        vx, vy = np.float64(action_NAK[i, 0, 0]), np.float64(action_NAK[i, 0, 1])
        vx, vy = min(max(vx, -most), most), min(max(vy, -most), most)
        for k in range(4):
            event[i, k] = 0.0
        move(hero, ghost, rng, i, vx, vy, dt, noise, ghost_speed)
        happen(state, i, plus)
        if uniform(rng, i) < p_mix:
            draw_state(hero, ghost, goblet, kind, rng, i, plus)
            event[i, CAUGHT] = event[i, PLUS] = event[i, MINUS] = 0.0
            event[i, RESTART] = 1.0
        reward_NA[i, 0] = event[i, PLUS] - event[i, MINUS] - event[i, CAUGHT]
        for k in range(4):
            info_CNA[k, i, 0] = event[i, k]


@njit(cache=True)
def reset_rows(state, worlds_N, plus):
    hero, ghost, goblet, kind, event, rng = state
    for i in range(worlds_N.shape[0]):
        if worlds_N[i]:
            draw_state(hero, ghost, goblet, kind, rng, i, plus)
            for k in range(4):
                event[i, k] = 0.0


@njit(cache=True)
def observe_rows(hero, ghost, goblet, kind, event, obs_NAD):
    """sin and cos of both places, ways to ghost and nearest goblet, its kind, the mean kind, the last step's events."""
    for i in range(obs_NAD.shape[0]):
        for k in range(2):
            obs_NAD[i, 0, k], obs_NAD[i, 0, 2 + k] = math.sin(TWO_PI * hero[i, k]), math.cos(TWO_PI * hero[i, k])
            obs_NAD[i, 0, 4 + k], obs_NAD[i, 0, 6 + k] = math.sin(TWO_PI * ghost[i, k]), math.cos(TWO_PI * ghost[i, k])
            obs_NAD[i, 0, 8 + k] = way(hero[i, k], ghost[i, k])
        j, dx, dy = nearest(hero, goblet, i)
        obs_NAD[i, 0, 10], obs_NAD[i, 0, 11], obs_NAD[i, 0, 12] = dx, dy, kind[i, j]
        obs_NAD[i, 0, 13] = (kind[i, 0] + kind[i, 1] + kind[i, 2]) / GOBLETS
        for k in range(4):
            obs_NAD[i, 0, EVENTS + k] = event[i, k]


class Torus:
    name = "torus-v1"
    Params = configs.Torus

    def __init__(self, params: configs.Torus | None = None) -> None:
        self.params = params = params or configs.Torus()
        self.most = params.v_max if params.clip_action else math.inf
        self.spec = Spec(
            env=self.name,
            obs_dim=OBS,
            action=Action("continuous", 2, low=(-self.most,) * 2, high=(self.most,) * 2),
            horizon=params.horizon or None,
            channels=(
                Channel("caught", "times", "sum"),
                Channel("good_goblets", "", "sum"),
                Channel("bad_goblets", "", "sum"),
                Channel("restarts", "times", "sum"),
            ),
            reward_low=-2.0,
            reward_high=1.0,
            renders=True,
        )

    def allocate(self, n: int) -> State:
        hero, ghost, goblet, kind = (
            np.zeros((n, 2)),
            np.zeros((n, 2)),
            np.zeros((n, GOBLETS, 2)),
            np.zeros((n, GOBLETS)),
        )
        return State(hero, ghost, goblet, kind, np.zeros((n, 4)), np.zeros(n, np.uint64))

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        reset_rows(state, worlds_N, self.params.plus)

    def step(self, state: State, alive_NA: np.ndarray, action: np.ndarray, out) -> None:
        p = self.params
        step_rows(state, action, out.reward, out.info, p.dt, p.noise, p.ghost_speed, p.p_mix, p.plus, self.most)

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        observe_rows(state.hero, state.ghost, state.goblet, state.kind, state.event, obs_NAD)

    def render(self, state: State, i: int) -> np.ndarray:
        """The torus cut open at its edges."""
        canvas = draw.Canvas(400, 400, span=1.0)
        for j in range(GOBLETS):
            colour = draw.GREEN if state.kind[i, j] > 0 else draw.RED
            x, y = state.goblet[i, j] - 0.5
            canvas.disc(x, y, PICK, colour)
        x, y = state.ghost[i] - 0.5
        canvas.ring(x, y, CATCH, 0.008, draw.GREY)
        x, y = state.hero[i] - 0.5
        canvas.disc(x, y, 0.015, draw.INK)
        return canvas.image()
