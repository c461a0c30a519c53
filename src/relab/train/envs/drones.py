"""drones-v1: a swarm of quadrotors hovers, races through rings, or picks boxes up and carries them where they belong.

Numbers are those of a published drone-swarm experiment (a pick-and-place task on PufferLib's drones); the physics is
written afresh from them. Known answers: a drone of size 0.2 hovers at the action -0.238 on all four rotors; a tolerance
of 15 at the start of an episode is the strict 1 from tick 148 on. How it flies stands in drones_physics.py, what it has
to do in drones_tasks.py, what it is paid for in drones_reward.py, what it sees in drones_view.py.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from relab.config import envs as configs
from relab.record.spec import Action, Channel, Spec
from relab.train.envs import drones_tasks as tasks
from relab.train.envs.drones_physics import ARM, BODY, BUILD, VX, VY, VZ, WX, WY, WZ, X, Y, Z, fly
from relab.train.envs.drones_reward import (  # fmt: skip
    A_METRE,
    CLOSE,
    CRASH_COSTS,
    CROWDED,
    FAR,
    GUIDED_CRASH,
    GUIDED_RING,
    KEEP,
    RING_PAYS,
    STILL,
    STILL_HOVER,
    pick_total,
    reach,
    stillness,
    tolerance,
)
from relab.train.envs.drones_tasks import (  # fmt: skip
    DELIVERED,
    DELIVERED_PERFECTLY,
    EVERY,
    FLOOR,
    FLOOR_CARRYING,
    GRIPPED,
    HALF_X,
    HALF_Y,
    HALF_Z,
    HIT,
    HOVER,
    LED,
    PASSED,
    PERFECT,
    PERFORMANCE,
    PICK,
    RACE,
    RINGS,
    SINK,
    TRAIL,
    carry_on,
    cross,
    distance,
    lines_up,
    next_ring,
    place_rings,
    race_left,
    start,
)
from relab.train.envs.drones_view import SEEN, observe_marked, observe_rows, observe_rows_wide
from relab.train.kernels.jit import lean, njit, prange, wide
from relab.train.kernels.rng import uniform

OUT, GROUNDED, COLLISION, FINISHED = 2, 3, 4, 5  # end codes
(SCORE, PERF, CROWD, OOB, LEVEL, SUCCEEDED, GRIPS, DELIVERIES, PERFECTLY, CARRIED, COMPAT_SHARE, COMPAT_RATE,
 RING_HITS) = range(13)  # fmt: skip
CHANNELS = (
    Channel("score", "total", "sum"),  # the total itself, of which the reward is the change
    Channel("perf", "total", "mean"),  # score per step
    Channel("collisions", "share", "mean"),  # of the steps with a neighbour within a metre
    Channel("oob", "share", "last"),  # ended outside of the box or on the floor
    Channel("performance", "share", "last"),  # of the task, at the end
    Channel("succeeded", "share", "last"),
    Channel("grips", "boxes", "sum"),
    Channel("deliveries", "boxes", "sum"),  # with any tolerance
    Channel("perfect_deliveries", "boxes", "sum"),  # gripped and delivered with the strict one
    Channel("carrying", "share", "mean"),  # of the steps with a box
    Channel("compat_perfect_deliv", "share", "mean"),  # of the steps after the first perfect delivery
    Channel("compat_success_rate", "steps", "sum"),  # those steps, counted once for every drone of the world
    Channel("ring_hits", "rings", "sum"),
)
HOVERS_WELL = 0.8  # a performance from which hovering is a success
MIXED = 3  # task of an env in which each world hovers or races
TASKS = {"hover": HOVER, "race": RACE, "pick_place": PICK, "hover_race": MIXED}
ALONE = 1e9  # distance to a neighbour that is not there


class State(NamedTuple):
    body: np.ndarray  # float64[N,A,17]: where and how it flies
    build: np.ndarray  # float64[N,A,13]: what it is made of
    goal: np.ndarray  # float64[N,A,10]: box, drop, hidden target and its vertical velocity
    phase: np.ndarray  # int64[N,A]: of pick-and-place
    tally: np.ndarray  # float64[N,A,4]: performance, rings passed, perfect grip, perfect delivery
    last: np.ndarray  # float64[N,A,4]: collision, position and total reward of the last tick, and its guide
    near: np.ndarray  # float64[N,A,4]: way to the nearest drone, and its length
    was: np.ndarray  # float64[N,A,3]: position before the tick
    trail: np.ndarray  # float32[N,A,24,3]: where it was, for films
    rings: np.ndarray  # float64[N,R,6]: centres and normals
    task: np.ndarray  # int64[N]
    tick: np.ndarray  # int64[N]: since the world's reset
    rng: np.ndarray  # uint64[N]


class Law(NamedTuple):
    """What resets draw from, and what a collision is."""

    task: int
    small: float  # sizes are drawn between these
    large: float
    spread: float
    crashes: bool  # drones that touch are lost
    hits_end: bool  # a drone that hits a ring is lost; else it pays as much and flies on
    guide: float  # weight of the guide


@lean()
def meet(body, near, i):
    """The nearest neighbour of every drone of world i."""
    A = body.shape[1]
    for a in range(A):
        best, away = -1, ALONE * ALONE
        for b in range(A):
            dx, dy, dz = body[i, b, X] - body[i, a, X], body[i, b, Y] - body[i, a, Y], body[i, b, Z] - body[i, a, Z]
            d = dx * dx + dy * dy + dz * dz
            if b != a and d < away:
                best, away = b, d
        near[i, a, 0] = near[i, a, 1] = near[i, a, 2] = 0.0
        near[i, a, 3] = ALONE
        if best >= 0:
            near[i, a, 0] = body[i, best, X] - body[i, a, X]
            near[i, a, 1] = body[i, best, Y] - body[i, a, Y]
            near[i, a, 2] = body[i, best, Z] - body[i, a, Z]
            near[i, a, 3] = np.sqrt(away)


@lean()
def touches(body, build, i, a):
    """Is a neighbour nearer than both arms are long?"""
    for b in range(body.shape[1]):
        apart = distance(body[i, b, X] - body[i, a, X], body[i, b, Y] - body[i, a, Y], body[i, b, Z] - body[i, a, Z])
        if b != a and apart < build[i, a, ARM] + build[i, b, ARM]:
            return True
    return False


@lean(forceinline=True)
def total_of(body, goal, phase, near, task, tick, i, a):
    """(total, its share for the position, cost of a crowd, how still it hovers at its target, its guide)"""
    crowded = CROWDED if near[i, a, 3] < CLOSE else 0.0
    tx, ty, tz = (
        goal[i, a, LED] - body[i, a, X],
        goal[i, a, LED + 1] - body[i, a, Y],
        goal[i, a, LED + 2] - body[i, a, Z],
    )
    vx, vy, vz, sink = body[i, a, VX], body[i, a, VY], body[i, a, VZ], goal[i, a, SINK]
    spin = distance(body[i, a, WX], body[i, a, WY], body[i, a, WZ])
    if task == RACE:
        left = race_left(body, goal, phase, i, a)
        return 1.0 - left / FAR - crowded, 1.0 - left / FAR, crowded, 0.0, -A_METRE * left
    left = distance(tx, ty, tz)
    still = stillness(left, distance(vx, vy, vz - sink), spin)
    if task == HOVER:
        guide = STILL_HOVER * still - A_METRE * left
        return 1.0 - left / FAR - crowded + still, 1.0 - left / FAR, crowded, still, guide
    total, position = pick_total(tx, ty, tz, vx, vy, vz, sink, spin, reach(tick), crowded)
    return total, position, crowded, still, STILL * still - A_METRE * left


@lean()
def value(body, goal, phase, near, last, task, tick, i, a):
    """Note the total of a drone that begins, or heads for something new: its reward counts from there."""
    total, position, crowded, _, guide = total_of(body, goal, phase, near, task, tick, i, a)
    last[i, a, 0], last[i, a, 1], last[i, a, 2], last[i, a, 3] = -crowded, position, total, guide


@lean()
def reset_world(body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng, i, law, worlds_N,
                agents_NA):  # fmt: skip
    """New tasks, rings and drones for world i if it is marked; a new start for each of its drones that is."""
    changed = worlds_N[i]
    if worlds_N[i]:
        tick[i], task[i] = 0, law.task
        if law.task == MIXED:
            task[i] = HOVER if uniform(rng, i) < 0.5 else RACE
        place_rings(rng, i, rings)
    for a in range(agents_NA.shape[1]):
        if worlds_N[i] or agents_NA[i, a]:
            start(rng, i, a, task[i], law.small, law.large, law.spread, body, build, goal, phase, tally, rings, was,
                  trail)  # fmt: skip
            changed = True
    if changed:
        meet(body, near, i)
        for a in range(agents_NA.shape[1]):
            if worlds_N[i] or agents_NA[i, a]:
                value(body, goal, phase, near, last, task[i], tick[i], i, a)


@lean(forceinline=True)
def leaves(body, carrying, i, a):
    """The end code of a drone that is outside of the box or on the floor, else 0."""
    x, y, z = body[i, a, X], body[i, a, Y], body[i, a, Z]
    if abs(x) > HALF_X or abs(y) > HALF_Y or z > HALF_Z:
        return OUT
    return GROUNDED if z < (FLOOR_CARRYING if carrying else FLOOR) else 0


@lean()
def crash_cost(law):
    return CRASH_COSTS + law.guide * GUIDED_CRASH


@lean()
def fly_on(body, goal, phase, tally, last, near, rings, task, tick, i, a):
    """Count a ring that was passed and head for the next one; the end code."""
    phase[i, a] = tasks.APPROACH
    tally[i, a, RINGS] += 1.0
    tally[i, a, PERFORMANCE] = tally[i, a, RINGS] / rings.shape[1]
    if tally[i, a, RINGS] == rings.shape[1]:
        return FINISHED
    next_ring(goal, rings, i, a, int(tally[i, a, RINGS]))
    value(body, goal, phase, near, last, task, tick, i, a)
    return 0


@lean(forceinline=True)
def work_on(body, goal, phase, tally, last, near, was, rings, task, tick, rng, i, a, law, info):
    """One drone's task, after everybody has moved: (reward, end code)."""
    paid, end, event, crossing, weight = 0.0, 0, 0, 0, law.guide
    if task == PICK:
        paid, event = carry_on(body, goal, phase, tally, rng, i, a, tolerance(tick))
    elif task == RACE:
        crossing = cross(body, was, goal, i, a)
        if crossing == PASSED:  # the way that was left is behind it
            phase[i, a] = tasks.DESCEND
    total, position, crowded, still, guide = total_of(body, goal, phase, near, task, tick, i, a)
    paid += total - last[i, a, 2]
    if event == 0:  # a guide to something new counts from there
        paid += weight * (guide - last[i, a, 3])
    last[i, a, 0], last[i, a, 1], last[i, a, 2], last[i, a, 3] = -crowded, position, total, guide
    if task == HOVER:
        tally[i, a, PERFORMANCE] = KEEP * tally[i, a, PERFORMANCE] + (1.0 - KEEP) * still
    elif crossing == PASSED:
        paid += RING_PAYS + weight * GUIDED_RING
        end = fly_on(body, goal, phase, tally, last, near, rings, task, tick, i, a)
    elif crossing == HIT and law.hits_end:
        end = COLLISION
    elif task == RACE:
        paid -= crash_cost(law) if crossing == HIT else 0.0
        lines_up(body, goal, phase, i, a)
    elif task == PICK:
        tally[i, a, PERFORMANCE] = tally[i, a, PERFECT]
    info[SCORE, i, a] = info[PERF, i, a] = total
    info[CROWD, i, a] = crowded > 0.0
    info[RING_HITS, i, a] = crossing == HIT
    info[GRIPS, i, a] = event == GRIPPED
    info[DELIVERIES, i, a] = event >= DELIVERED
    info[PERFECTLY, i, a] = event == DELIVERED_PERFECTLY
    return paid, end


@lean(forceinline=True)
def tell(tally, phase, task, end, i, a, info):
    """The channels that say how the episode stands."""
    level, drones = tally[i, a, PERFORMANCE], tally.shape[1]
    info[OOB, i, a] = OUT <= end <= GROUNDED
    info[LEVEL, i, a] = level
    info[SUCCEEDED, i, a] = level >= (HOVERS_WELL if task == HOVER else 1.0)
    info[CARRIED, i, a] = phase[i, a] >= tasks.CARRY  # no race gets as far
    info[COMPAT_SHARE, i, a] = tally[i, a, PERFECT]
    info[COMPAT_RATE, i, a] = tally[i, a, PERFECT] * drones


@lean()
def step_world(body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng, i, law, alive_NA,
               action, reward, terminated, end, info):  # fmt: skip
    tick[i] += 1
    point = (tick[i] // EVERY) % TRAIL
    for a in range(alive_NA.shape[1]):
        for k in range(3):
            was[i, a, k] = trail[i, a, point, k] = body[i, a, k]
        fly(body, build, action, i, a)
    meet(body, near, i)
    for a in range(alive_NA.shape[1]):
        if not alive_NA[i, a]:
            continue
        paid, code = work_on(body, goal, phase, tally, last, near, was, rings, task[i], tick[i], rng, i, a, law,
                             info)  # fmt: skip
        code = leaves(body, phase[i, a] >= tasks.CARRY, i, a) or code
        if code == 0 and law.crashes and touches(body, build, i, a):
            code = COLLISION
        if code > 0 and code != FINISHED:
            paid -= crash_cost(law)
        reward[i, a] = paid
        terminated[i, a], end[i, a] = code > 0, code
        tell(tally, phase, task[i], code, i, a, info)


# (The state is taken apart before the loop: Numba counts a reference to every array that is taken out within.)


@njit(cache=True)
def reset_rows(state, law, worlds_N, agents_NA):
    body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng = state
    for i in range(worlds_N.shape[0]):
        reset_world(body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng, i, law, worlds_N,
                    agents_NA)  # fmt: skip


@njit(parallel=True, cache=True)
def reset_rows_wide(state, law, worlds_N, agents_NA):
    body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng = state
    for i in prange(worlds_N.shape[0]):
        reset_world(body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng, i, law, worlds_N,
                    agents_NA)  # fmt: skip


@njit(cache=True)
def step_rows(state, law, alive_NA, action, reward, terminated, end, info):
    body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng = state
    for i in range(alive_NA.shape[0]):
        step_world(body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng, i, law,
                   alive_NA, action, reward, terminated, end, info)  # fmt: skip


@njit(parallel=True, cache=True)
def step_rows_wide(state, law, alive_NA, action, reward, terminated, end, info):
    body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng = state
    for i in prange(alive_NA.shape[0]):
        step_world(body, build, goal, phase, tally, last, near, was, trail, rings, task, tick, rng, i, law,
                   alive_NA, action, reward, terminated, end, info)  # fmt: skip


class Drones:
    name: ClassVar[str] = "drones-v1"
    Params: ClassVar[type] = configs.Drones
    work: ClassVar[int] = 24

    def __init__(self, params: configs.Drones | None = None) -> None:
        self.params = params = params or configs.Drones()
        crashes = params.collision == "ends"
        self.law = Law(TASKS[params.task], params.size[0], params.size[1], params.spread, crashes,
                       params.ring_hit == "ends", params.guide)  # fmt: skip
        self.spec = Spec(
            env=self.name,
            obs_dim=SEEN,
            action=Action("continuous", dim=4, low=(-1.0,) * 4, high=(1.0,) * 4),
            agents=params.agents,
            horizon=params.horizon or None,
            agent_reset="alone",
            channels=CHANNELS,
            ends=("running", "time_limit", "out_of_bounds", "floor", "collision", "finished"),
            success_channel="succeeded",
            reward_low=-5.0 - 65.0 * params.guide,  # a crash, all stillness and ten metres lost at once
            reward_high=4.0 + 50.0 * params.guide,
            renders=True,
        )

    def allocate(self, n: int) -> State:
        rows = (n, self.params.agents)
        body, build, goal = np.zeros((*rows, BODY)), np.zeros((*rows, BUILD)), np.zeros((*rows, tasks.GOAL))
        tally, last, near, was = (np.zeros((*rows, k)) for k in (tasks.TALLY, 4, 4, 3))
        trail, rings = np.zeros((*rows, TRAIL, 3), np.float32), np.zeros((n, self.params.rings, 6))
        task, tick, rng = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.uint64)
        return State(body, build, goal, np.zeros(rows, np.int64), tally, last, near, was, trail, rings, task, tick, rng)

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        self._begin(state, worlds_N, np.zeros(state.phase.shape, bool))

    def reset_agents(self, state: State, agents_NA: np.ndarray) -> None:
        self._begin(state, np.zeros(len(agents_NA), bool), agents_NA)

    def _wide(self, state: State) -> bool:
        return wide(state.phase.size * self.work)

    def _begin(self, state: State, worlds_N: np.ndarray, agents_NA: np.ndarray) -> None:
        rows = reset_rows_wide if self._wide(state) else reset_rows
        rows(state, self.law, worlds_N, agents_NA)

    def step(self, state: State, alive_NA: np.ndarray, action: np.ndarray, out) -> None:
        rows = step_rows_wide if self._wide(state) else step_rows
        action = action.astype(np.float64)  # one kind of number: kernels are compiled once
        rows(state, self.law, alive_NA, action, out.reward, out.terminated, out.end, out.info)

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        rows = observe_rows_wide if self._wide(state) else observe_rows
        rows(state.body, state.build, state.goal, state.last, state.near, state.task, obs_NAD)

    def observe_some(self, state: State, obs_NAD: np.ndarray, worlds_N: np.ndarray) -> None:
        observe_marked(state.body, state.build, state.goal, state.last, state.near, state.task, obs_NAD, worlds_N)

    def render(self, state: State, i: int) -> np.ndarray:
        from relab.train.envs.drones_draw import picture

        return picture(state, i)

    def caption(self, state: State, i: int) -> str:
        from relab.train.envs.drones_draw import caption

        return caption(state, i)
