"""What must a drone do? Hover at a point, race through rings, or carry boxes; where everybody starts.

Every task leads a drone by a hidden target, which its reward measures from. A goal is ten numbers: box (3), drop (3),
hidden target (3), the target's vertical velocity. In a race the box is the next ring's centre and the drop its normal;
the target stands 2 m behind the ring where the straight way there leads well through it, else 3 m before the ring, or
beside it where the way to that point would hit it from behind.
Pick-and-place has four phases: APPROACH the point a metre above the box until it hovers there, DESCEND behind a sinking
target until it grips, CARRY the box, which hangs half a metre below, to a metre above the drop, and DROP it there.
"""

from __future__ import annotations

import math

from relab.train.envs.drones_physics import BODY, DT, QW, VX, VY, VZ, X, Y, Z, assemble
from relab.train.envs.drones_reward import DELIVERY_PAYS, GRIP_PAYS, HOVER_PAYS
from relab.train.kernels.jit import lean
from relab.train.kernels.rng import uniform

HALF_X, HALF_Y, HALF_Z = 30.0, 30.0, 10.0  # of the box they fly in
MARGIN_XY, MARGIN_Z = 29.0, 9.0  # starts and targets lie within
GROUND = -9.5  # where boxes stand
FLOOR, FLOOR_CARRYING = -9.8, -9.7  # lower is a crash
HOVER, RACE, PICK = range(3)  # tasks
AROUND, APPROACH, DESCEND, CARRY, DROP = range(-1, 4)  # phases of pick-and-place from APPROACH on, of a race to DESCEND
BOX, LAY, LED, SINK, GOAL = 0, 3, 6, 9, 10  # of a goal: box, drop, hidden target, its vertical velocity; size
PERFORMANCE, RINGS, PERFECT_GRIP, PERFECT, TALLY = range(5)  # of a tally; size
NO_EVENT, GRIPPED, DELIVERED, DELIVERED_PERFECTLY = range(4)
STRICT = 1.01  # a tolerance up to this makes a grip or a delivery perfect
RING, RIM = 2.0, 0.5  # radius of a ring; crossing its plane within RING - RIM passes, within RING + RIM hits
MISSED, PASSED, HIT = range(3)
BEFORE, BEHIND, WELL = 3.0, 2.0, 1.0  # a race leads to this far before a ring, and behind it from where the straight
# way passes the ring's plane so near to its centre
CLEAR, PAST = 4.5, 0.5  # the point beside a ring: metres from its axis and before its plane
FROM_RIM = math.sqrt(CLEAR**2 + (BEFORE - PAST) ** 2)  # from there to the point before it
TRAIL, EVERY = 24, 4  # points of the way behind a drone, for films, and ticks between them


@lean()
def anywhere(rng, i, most):
    return most * (2.0 * uniform(rng, i) - 1.0)


@lean()
def set_out(rng, i, goal, a):
    """A new box and where it is to go; the target is a metre above the box."""
    goal[i, a, BOX], goal[i, a, BOX + 1] = anywhere(rng, i, MARGIN_XY), anywhere(rng, i, MARGIN_XY)
    goal[i, a, LAY], goal[i, a, LAY + 1] = anywhere(rng, i, MARGIN_XY), anywhere(rng, i, MARGIN_XY)
    goal[i, a, BOX + 2] = goal[i, a, LAY + 2] = GROUND
    lead(goal, i, a, goal[i, a, BOX], goal[i, a, BOX + 1], GROUND + 1.0)


@lean()
def lead(goal, i, a, x, y, z):
    """Put the hidden target there, at rest."""
    goal[i, a, LED], goal[i, a, LED + 1], goal[i, a, LED + 2], goal[i, a, SINK] = x, y, z, 0.0


@lean()
def next_ring(goal, rings, i, a, k):
    """Ring k is what drone a heads for; the target stands before it, where the way through begins."""
    for j in range(6):
        goal[i, a, j] = rings[i, k, j]
    aim(goal, i, a, -BEFORE)


@lean()
def aim(goal, i, a, along):
    """Put the hidden target that far along the axis of the ring."""
    lead(goal, i, a, goal[i, a, BOX] + along * goal[i, a, LAY], goal[i, a, BOX + 1] + along * goal[i, a, LAY + 1],
         goal[i, a, BOX + 2] + along * goal[i, a, LAY + 2])  # fmt: skip


@lean(forceinline=True)
def beside(body, goal, i, a):
    """Where a drone is, seen from its ring: (metres beside the axis, metres along it; behind the ring is positive)."""
    x, y, z = body[i, a, X] - goal[i, a, BOX], body[i, a, Y] - goal[i, a, BOX + 1], body[i, a, Z] - goal[i, a, BOX + 2]
    along = x * goal[i, a, LAY] + y * goal[i, a, LAY + 1] + z * goal[i, a, LAY + 2]
    return math.sqrt(max(x * x + y * y + z * z - along * along, 0.0)), along


@lean(forceinline=True)
def race_left(body, goal, phase, i, a):
    """The way that is left to behind the ring: through it, by the point before it, or around it before that."""
    off, along = beside(body, goal, i, a)
    if phase[i, a] == DESCEND:
        return distance(off, along - BEHIND, 0.0)
    if phase[i, a] == APPROACH:
        return distance(off, along + BEFORE, 0.0) + BEFORE + BEHIND
    return distance(off - CLEAR, along + PAST, 0.0) + FROM_RIM + BEFORE + BEHIND


@lean()
def route(off, along):
    """DESCEND through the ring where that is well possible, else APPROACH the point before it, or go AROUND it."""
    if along < 0.0 and off * BEHIND < WELL * (BEHIND - along):
        return DESCEND
    return AROUND if along > 0.0 and off * BEFORE < (RING + 2.0 * RIM) * (along + BEFORE) else APPROACH


@lean()
def lines_up(body, goal, phase, i, a):
    """Put the target where its route leads next."""
    off, along = beside(body, goal, i, a)
    now = route(off, along)
    if now == AROUND:
        aim(goal, i, a, -PAST)
        for k in range(3):  # and out from the axis, on the drone's side of it
            out = body[i, a, X + k] - goal[i, a, BOX + k] - along * goal[i, a, LAY + k]
            goal[i, a, LED + k] += CLEAR * out / max(off, 1e-6)
    elif now != phase[i, a]:
        aim(goal, i, a, BEHIND if now == DESCEND else -BEFORE)
    phase[i, a] = now


@lean()
def place_rings(rng, i, rings):
    """Rings at random poses inside of the box, each at least two radii from the one before."""
    for k in range(rings.shape[1]):
        apart = False
        while not apart:
            rings[i, k, 0], rings[i, k, 1] = (
                anywhere(rng, i, HALF_X - 2.0 * RING),
                anywhere(rng, i, HALF_Y - 2.0 * RING),
            )
            rings[i, k, 2] = anywhere(rng, i, HALF_Z - 2.0 * RING)
            apart = k == 0 or distance(rings[i, k, 0] - rings[i, k - 1, 0], rings[i, k, 1] - rings[i, k - 1, 1],
                                       rings[i, k, 2] - rings[i, k - 1, 2]) >= 2.0 * RING  # fmt: skip
        up, turn = anywhere(rng, i, 1.0), 2.0 * math.pi * uniform(rng, i)  # uniform on the sphere
        flat = math.sqrt(1.0 - up * up)
        rings[i, k, 3], rings[i, k, 4], rings[i, k, 5] = flat * math.cos(turn), flat * math.sin(turn), up


@lean(forceinline=True)
def distance(x, y, z):
    return math.sqrt(x * x + y * y + z * z)


@lean()
def start(rng, i, a, task, small, large, spread, body, build, goal, phase, tally, rings, was, trail):
    """A drone of a random size at rest at a random place, rotors still, and what it has to do."""
    assemble(rng, i, a, small + (large - small) * uniform(rng, i), spread, build)
    for k in range(BODY):
        body[i, a, k] = 0.0
    body[i, a, QW] = 1.0
    for k in range(TALLY):
        tally[i, a, k] = 0.0
    phase[i, a] = APPROACH
    apart = False
    while not apart:
        body[i, a, X], body[i, a, Y] = anywhere(rng, i, MARGIN_XY), anywhere(rng, i, MARGIN_XY)
        body[i, a, Z] = anywhere(rng, i, MARGIN_Z)
        apart = task != RACE or distance(body[i, a, X] - rings[i, 0, 0], body[i, a, Y] - rings[i, 0, 1],
                                         body[i, a, Z] - rings[i, 0, 2]) >= 2.0 * RING  # fmt: skip
    if task == PICK:
        set_out(rng, i, goal, a)
    elif task == RACE:
        next_ring(goal, rings, i, a, 0)
    else:
        for k in range(6):
            goal[i, a, k] = 0.0
        lead(goal, i, a, anywhere(rng, i, MARGIN_XY), anywhere(rng, i, MARGIN_XY), anywhere(rng, i, MARGIN_Z))
    for k in range(3):
        was[i, a, k] = body[i, a, k]
        for p in range(trail.shape[2]):
            trail[i, a, p, k] = body[i, a, k]


@lean(forceinline=True)
def carry_on(body, goal, phase, tally, rng, i, a, k):
    """One tick of pick-and-place with tolerance k: (what was paid for events, which event)."""
    if goal[i, a, SINK] < 0.0:
        bottom = goal[i, a, BOX + 2] if phase[i, a] == DESCEND else goal[i, a, LAY + 2]
        goal[i, a, LED + 2] += goal[i, a, SINK] * DT
        if goal[i, a, LED + 2] <= bottom:
            goal[i, a, LED + 2], goal[i, a, SINK] = bottom, 0.0
    x, y, z, vz = body[i, a, X], body[i, a, Y], body[i, a, Z], body[i, a, VZ]
    speed = distance(body[i, a, VX], body[i, a, VY], vz)
    if phase[i, a] == APPROACH:
        off = distance(x - goal[i, a, LED], y - goal[i, a, LED + 1], z - goal[i, a, LED + 2])
        if off < 0.4 and speed < 0.4:
            phase[i, a], goal[i, a, SINK] = DESCEND, -0.1
        return 0.0, NO_EVENT
    if phase[i, a] == DESCEND:
        aside, above = distance(x - goal[i, a, BOX], y - goal[i, a, BOX + 1], 0.0), z - goal[i, a, BOX + 2]
        if aside < 0.1 * k and 0.0 < above < 0.1 * k and speed < 0.1 * k and -0.05 * k < vz < 0.0:
            phase[i, a], tally[i, a, PERFECT_GRIP] = CARRY, k <= STRICT
            lead(goal, i, a, goal[i, a, LAY], goal[i, a, LAY + 1], goal[i, a, LAY + 2] + 1.0)
            return GRIP_PAYS, GRIPPED
        return 0.0, NO_EVENT
    goal[i, a, BOX], goal[i, a, BOX + 1], goal[i, a, BOX + 2] = x, y, z - 0.5
    return lay_down(goal, phase, tally, rng, i, a, k, x, y, z)


@lean()
def lay_down(goal, phase, tally, rng, i, a, k, x, y, z):
    """The second half of the way: over the drop, then down on it."""
    aside, above = distance(x - goal[i, a, LAY], y - goal[i, a, LAY + 1], 0.0), z - goal[i, a, LAY + 2]
    if phase[i, a] == CARRY:
        if aside < 0.4 * k and 0.7 < above < 1.3:
            phase[i, a], goal[i, a, SINK] = DROP, -0.1
            return HOVER_PAYS, NO_EVENT
        return 0.0, NO_EVENT
    if aside < 0.2 * k and above < 0.2 * k:
        perfect = k <= STRICT and tally[i, a, PERFECT_GRIP] > 0.0
        if perfect:
            tally[i, a, PERFECT] = 1.0
        phase[i, a] = APPROACH
        set_out(rng, i, goal, a)
        return DELIVERY_PAYS, DELIVERED_PERFECTLY if perfect else DELIVERED
    return 0.0, NO_EVENT


@lean(forceinline=True)
def cross(body, was, goal, i, a):
    """What the way of the last tick did to the next ring: MISSED, PASSED in the right direction, or HIT."""
    nx, ny, nz = goal[i, a, LAY], goal[i, a, LAY + 1], goal[i, a, LAY + 2]
    cx, cy, cz = goal[i, a, BOX], goal[i, a, BOX + 1], goal[i, a, BOX + 2]
    before = (was[i, a, 0] - cx) * nx + (was[i, a, 1] - cy) * ny + (was[i, a, 2] - cz) * nz
    after = (body[i, a, X] - cx) * nx + (body[i, a, Y] - cy) * ny + (body[i, a, Z] - cz) * nz
    if before * after >= 0.0:
        return MISSED
    t = before / (before - after)  # where on the way it met the ring's plane
    off = distance(was[i, a, 0] + t * (body[i, a, X] - was[i, a, 0]) - cx,
                   was[i, a, 1] + t * (body[i, a, Y] - was[i, a, 1]) - cy,
                   was[i, a, 2] + t * (body[i, a, Z] - was[i, a, 2]) - cz)  # fmt: skip
    if off < RING - RIM and before < 0.0:
        return PASSED
    return HIT if off < RING + RIM else MISSED
