"""fish-v1: a school in a round pond keeps out of the way of a predator that flies like a stone; the dead stay dead.

Numbers are those of a published fish-school experiment; the physics is written afresh from them. Known answers: a fish
starts within reach of a predator at the centre with probability 0.7 / 8 = 0.0875, whatever it does (relab.schedules.
spawn has the integral for any place); the predator loses energy at the wall only, and ends up swinging along it
around (0, 10).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from relab.config import envs as configs
from relab.config.base import require
from relab.record.spec import Action, Channel, Spec
from relab.train.envs.fish_moves import DEATH_PAYS, MAX_SPEED, RADIUS, SCALE, TERMS, VISION, catch, fly, pay, swim
from relab.train.envs.fish_near import FELT, feel
from relab.train.envs.fish_spawn import (  # fmt: skip
    DENSITY_COEF,
    DENSITY_TARGET,
    DIVERGENCE_COEF,
    RULES,
    TIME_LIMIT,
    begin_school,
    law_of,
)
from relab.train.kernels.jit import njit, prange, wide

CAUGHT, CUT = 2, 3  # end codes
SEEN = 11  # what a fish sees, before what it feels of its neighbours
SURVIVED, AGE, STEP_ONE, HEADING, PACE, FIRST = range(TERMS, TERMS + 6)  # info channels after the terms of the reward
CHANNELS = (
    *(Channel(f"reward_{name}", "reward", "sum") for name in ("alive", "watch", "wall", "crowd", "spread", "death")),
    Channel("survived", "share", "last"),  # alive when the episode ended, be it at the horizon or at a forced cut
    Channel("death_step", "steps", "last"),  # when it died; for survivors the episode's last step
    Channel("step_one", "share", "max"),  # died in the first step
    Channel("predator_heading", "degrees", "last"),  # at the start
    Channel("predator_speed", "m/s", "last"),  # at the start
    Channel("first_death", "steps", "last", quantile=0.1),  # when the first of a school died: one fish says it, else 0
)
STAGE_KEYS = ("fish", "starts", "headings", "speeds", "time_limit", "escape_boost", "spare", "jitter", "pre_roll",
              "pre_roll_angle", "pre_roll_speed", "density_coef", "density_target", "divergence_coef")  # fmt: skip


class State(NamedTuple):
    x: np.ndarray  # float64[N,S], S slots for fish
    y: np.ndarray
    vx: np.ndarray
    vy: np.ndarray
    here: np.ndarray  # bool[N,S]: lives
    died: np.ndarray  # int64[N,S]: age of the school at its death; 0: lives
    near: np.ndarray  # float64[N,S,7]: what it feels of its neighbours
    predator: np.ndarray  # float64[N,4]: x, y, vx, vy
    start: np.ndarray  # float64[N,2]: the predator's heading (degrees) and speed at the start
    rules: np.ndarray  # float64[N,4]: what the school was handed at its reset
    age: np.ndarray  # int64[N]: steps since then
    leader: np.ndarray  # int64[N]: the fish whose eyes and action count under shared control
    used: np.ndarray  # bool[N,A]
    rng: np.ndarray  # uint64[N]


@njit(cache=True)
def reset_one(state, i, law):
    x, y, vx, vy, here, died, near, predator, start, rules, age, leader, used, rng = state
    begin_school(x[i], y[i], vx[i], vy[i], here[i], died[i], predator[i], law, rng, i)
    start[i, 0] = math.degrees(math.atan2(predator[i, 3], predator[i, 2]))
    start[i, 1] = math.sqrt(predator[i, 2] ** 2 + predator[i, 3] ** 2)
    rules[i, :] = law.rules
    age[i], leader[i] = 0, 0
    for a in range(used.shape[1]):
        used[i, a] = here[i, a]  # with one slot it is the leader's, who always starts
    feel(x[i], y[i], vx[i], vy[i], here[i], near[i])


@njit(cache=True)
def reset_rows(state, worlds_N, law):
    for i in range(worlds_N.shape[0]):
        if worlds_N[i]:
            reset_one(state, i, law)


@njit(cache=True)
def advance(state, i, action_A):
    """Move school i on by a step: who moves where, who dies, what the survivors feel."""
    x, y, vx, vy, here, died, near, predator, _, _, age = state[:11]
    age[i] += 1
    swim(x[i], y[i], vx[i], vy[i], here[i], action_A)
    fly(predator[i])
    catch(x[i], y[i], here[i], died[i], age[i], predator[i])
    feel(x[i], y[i], vx[i], vy[i], here[i], near[i])


@njit(cache=True)
def terms_of(state, i, a):
    """The terms of fish a's reward: it lives, or has just died."""
    if not state.here[i, a]:
        return 0.0, 0.0, 0.0, 0.0, 0.0, DEATH_PAYS
    x, y, near, predator, rules = state.x[i, a], state.y[i, a], state.near[i, a], state.predator[i], state.rules[i]
    paid = pay(x, y, near, predator, rules[DENSITY_COEF], rules[DENSITY_TARGET], rules[DIVERGENCE_COEF])
    return paid[0], paid[1], paid[2], paid[3], paid[4], 0.0


@njit(cache=True)
def tell(state, i, a, info):
    """The channels of row a that say how a school's episode goes, beside the reward."""
    info[HEADING, i, a], info[PACE, i, a] = state.start[i, 0], state.start[i, 1]
    info[AGE, i, a] = state.age[i]


@njit(cache=True)
def first_victim(died_S, age):
    """The slot of a school's first death, if that is now (of several at once the first slot); else -1."""
    victim = -1
    for a in range(died_S.shape[0]):
        if 0 < died_S[a] < age:
            return -1
        if died_S[a] == age and victim < 0:
            victim = a
    return victim


@njit(cache=True)
def step_own(state, i, alive_NA, action_NA, reward, terminated, end, info, world_over):
    """Every fish acts for itself."""
    state.here[i, :] = alive_NA[i]
    advance(state, i, action_NA[i])
    cut, victim = state.age[i] == state.rules[i, TIME_LIMIT], first_victim(state.died[i], state.age[i])
    world_over[i] = cut
    for a in range(alive_NA.shape[1]):
        if not alive_NA[i, a]:
            continue
        terms = terms_of(state, i, a)
        for k in range(TERMS):
            info[k, i, a] = terms[k]
            reward[i, a] += terms[k]
        tell(state, i, a, info)
        lives = state.here[i, a]
        info[SURVIVED, i, a], info[STEP_ONE, i, a] = lives, state.died[i, a] == 1
        info[FIRST, i, a] = state.age[i] if a == victim else 0
        terminated[i, a] = not lives
        end[i, a] = CAUGHT if not lives else CUT if cut else 0


@njit(cache=True)
def step_shared(state, i, alive_NA, action_NA, reward, terminated, end, info, world_over):
    """The leader's action moves all; the row earns the mean over all fish, of which the dead earn 0."""
    if not alive_NA[i, 0]:
        return
    before = state.here[i].copy()
    advance(state, i, action_NA[i])
    here, died, slots = state.here[i], state.died[i], before.shape[0]
    members, living, first, ages, earliest = 0, 0, 0, 0, 0
    for a in range(slots):
        if not (here[a] or died[a] > 0):
            continue
        members, living, first = members + 1, living + here[a], first + (died[a] == 1)
        ages += state.age[i] if here[a] else died[a]
        if died[a] > 0 and (earliest == 0 or died[a] < earliest):
            earliest = died[a]
        if before[a]:
            terms = terms_of(state, i, a)
            for k in range(TERMS):
                info[k, i, 0] += terms[k]
    for k in range(TERMS):
        info[k, i, 0] /= members
        reward[i, 0] += info[k, i, 0]
    tell(state, i, 0, info)
    info[SURVIVED, i, 0], info[STEP_ONE, i, 0], info[AGE, i, 0] = living / members, first / members, ages / members
    info[FIRST, i, 0] = earliest
    cut = state.age[i] == state.rules[i, TIME_LIMIT] and living > 0
    terminated[i, 0], world_over[i] = living == 0, cut
    end[i, 0] = CAUGHT if living == 0 else CUT if cut else 0
    state.leader[i] = next_leader(here, state.leader[i])


@njit(cache=True)
def next_leader(here, leader):
    """The next living fish in turn."""
    for k in range(1, here.shape[0] + 1):
        if here[(leader + k) % here.shape[0]]:
            return (leader + k) % here.shape[0]
    return leader


@njit(cache=True)
def step_world(state, i, alive_NA, action_NA, reward, terminated, end, info, world_over, shared):
    if shared:
        step_shared(state, i, alive_NA, action_NA, reward, terminated, end, info, world_over)
    else:
        step_own(state, i, alive_NA, action_NA, reward, terminated, end, info, world_over)


@njit(cache=True)
def step_rows(state, alive_NA, action_NA, reward, terminated, end, info, world_over, shared):
    for i in range(alive_NA.shape[0]):
        step_world(state, i, alive_NA, action_NA, reward, terminated, end, info, world_over, shared)


@njit(parallel=True, cache=True)
def step_rows_wide(state, alive_NA, action_NA, reward, terminated, end, info, world_over, shared):
    for i in prange(alive_NA.shape[0]):
        step_world(state, i, alive_NA, action_NA, reward, terminated, end, info, world_over, shared)


@njit(cache=True)
def see(x, y, vx, vy, here, near, predator, obs_D):
    """What one fish observes; zeros for the dead."""
    obs_D[:] = 0.0
    if not here:
        return
    obs_D[0], obs_D[1], obs_D[2], obs_D[3] = x / RADIUS, y / RADIUS, vx / MAX_SPEED, vy / MAX_SPEED
    obs_D[4] = (RADIUS - math.sqrt(x * x + y * y)) / RADIUS
    dx, dy = predator[0] - x, predator[1] - y
    distance = math.sqrt(dx * dx + dy * dy)
    if distance <= VISION:
        obs_D[5], obs_D[6], obs_D[7] = 1.0, dx / VISION, dy / VISION
        obs_D[8], obs_D[9], obs_D[10] = predator[2] / MAX_SPEED, predator[3] / MAX_SPEED, distance / VISION
    for k in range(FELT):
        obs_D[SEEN + k] = near[k]


@njit(cache=True)
def observe_rows(x, y, vx, vy, here, near, predator, leader, obs_NAD):
    shared = obs_NAD.shape[1] < x.shape[1]
    for i in range(obs_NAD.shape[0]):
        for row in range(obs_NAD.shape[1]):
            a = leader[i] if shared else row
            see(x[i, a], y[i, a], vx[i, a], vy[i, a], here[i, a], near[i, a], predator[i], obs_NAD[i, row])


class Fish:
    name: ClassVar[str] = "fish-v1"
    Params: ClassVar[type] = configs.Fish
    work: ClassVar[int] = 16
    stage_keys: ClassVar[tuple[str, ...]] = STAGE_KEYS

    def __init__(self, params: configs.Fish | None = None) -> None:
        self.params = params = params or configs.Fish()
        self.staged, self.law = params, law_of(params)
        self.spec = Spec(
            env=self.name,
            obs_dim=SEEN + FELT,
            action=Action("discrete", dim=1, n=(5,)),
            agents=params.actors,
            horizon=params.horizon or None,
            channels=CHANNELS,
            ends=("running", "time_limit", "caught", "cut"),
            success_ends=("time_limit",),  # alive at the horizon; a forced cut is no success
            reward_low=DEATH_PAYS,
            reward_high=SCALE * (2.0 + 10.0 + 4.0 * abs(params.divergence_coef)),
            renders=True,
        )

    def set_stage(self, values: Mapping[str, Any]) -> None:
        """What later resets draw from; schools that have not been reset go on as they are.

        Keys: `stage_keys`; those not given stay as an earlier stage left them. `starts` may be an array [k,2].
        """
        unknown = sorted(set(values) - set(STAGE_KEYS))
        require(not unknown, f"a stage of fish-v1 may set {', '.join(STAGE_KEYS)}, but got {', '.join(unknown)}")
        plain = {key: _plain(key, value) for key, value in values.items()}
        staged = dataclasses.replace(self.staged, **plain)
        staged.check()
        self.staged, self.law = staged, law_of(staged)

    def allocate(self, n: int) -> State:
        rows = (n, self.params.agents)
        x, y, vx, vy = (np.zeros(rows) for _ in range(4))
        here, died, near = np.zeros(rows, bool), np.zeros(rows, np.int64), np.zeros((*rows, FELT))
        age, leader, used = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, self.spec.agents), bool)
        predator, start, rules = np.zeros((n, 4)), np.zeros((n, 2)), np.zeros((n, RULES))
        return State(x, y, vx, vy, here, died, near, predator, start, rules, age, leader, used, np.zeros(n, np.uint64))

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        reset_rows(state, worlds_N, self.law)

    def step(self, state: State, alive_NA: np.ndarray, action_NA: np.ndarray, out) -> None:
        rows = step_rows_wide if wide(state.x.size * self.work) else step_rows
        shared = self.params.control == "shared"
        rows(state, alive_NA, action_NA, out.reward, out.terminated, out.end, out.info, out.world_over, shared)

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        x, y, vx, vy, here, _, near, predator, *_ = state
        observe_rows(x, y, vx, vy, here, near, predator, state.leader, obs_NAD)

    def render(self, state: State, i: int) -> np.ndarray:
        from relab.train.envs.fish_draw import picture

        return picture(
            state.x[i], state.y[i], state.vx[i], state.vy[i], state.here[i], state.died[i], state.predator[i]
        )


def _plain(key: str, value: Any) -> Any:
    """A stage's value as the parameter holds it."""
    if key in ("starts", "headings", "speeds"):
        return tuple(float(x) for x in np.asarray([] if value is None else value, np.float64).reshape(-1))
    return 0 if value is None else value
