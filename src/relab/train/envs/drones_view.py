"""What does a drone see? Itself, the way to its target, its last rewards, its nearest neighbour, and its task.

42 numbers: velocity in its own frame / 50 (3), in the world's, clipped to +-1 (3), rates of rotation / 50 (3), where
its top points (3), attitude (4), rotor speeds / limit (4), position / half-size of the box (3), way to the target
clipped to +-1 (3) and / half-size (3), last collision, position and total reward (3), way to the nearest
drone clipped to +-1 (3), box and drop in its own frame / half-size (6; hover: zeros), and 1 in pick-and-place, else 0.
In a race those six are the ring, as its way d / (2 m + |d|), and its normal: half a metre beside a ring that is near
decides, and / half-size it would be a sixtieth.
"""

from __future__ import annotations

import numpy as np

from relab.train.envs.drones_physics import FASTEST, LIMIT, QW, QX, QY, QZ, ROTOR, SPIN, VX, VY, VZ, WX, X, Y, Z, cut
from relab.train.envs.drones_tasks import BOX, HALF_X, HALF_Y, HALF_Z, LAY, LED, PICK, RACE, RING, distance
from relab.train.kernels.jit import lean, njit, prange

SEEN = 42
PER_SPEED, PER_SPIN, PER_X, PER_Y, PER_Z = 1 / FASTEST, 1 / SPIN, 1 / HALF_X, 1 / HALF_Y, 1 / HALF_Z


@lean(forceinline=True)
def frame(qw, qx, qy, qz):
    """The rotation matrix of an attitude, row by row: body to world."""
    return (
        1.0 - 2.0 * (qy * qy + qz * qz), 2.0 * (qx * qy - qw * qz), 2.0 * (qx * qz + qw * qy),
        2.0 * (qx * qy + qw * qz), 1.0 - 2.0 * (qx * qx + qz * qz), 2.0 * (qy * qz - qw * qx),
        2.0 * (qx * qz - qw * qy), 2.0 * (qy * qz + qw * qx), 1.0 - 2.0 * (qx * qx + qy * qy),
    )  # fmt: skip


@lean(forceinline=True)
def own(r, x, y, z):
    """A direction of the world in the body's frame."""
    return r[0] * x + r[3] * y + r[6] * z, r[1] * x + r[4] * y + r[7] * z, r[2] * x + r[5] * y + r[8] * z


@lean(forceinline=True)
def see(body, build, goal, last, near, task, i, a, obs):
    """All that drone a of world i observes."""
    r = frame(body[i, a, QW], body[i, a, QX], body[i, a, QY], body[i, a, QZ])
    x, y, z, vx, vy, vz = body[i, a, X], body[i, a, Y], body[i, a, Z], body[i, a, VX], body[i, a, VY], body[i, a, VZ]
    bx, by, bz = own(r, vx, vy, vz)
    obs[i, a, 0], obs[i, a, 1], obs[i, a, 2] = bx * PER_SPEED, by * PER_SPEED, bz * PER_SPEED
    obs[i, a, 3], obs[i, a, 4], obs[i, a, 5] = cut(vx, 1.0), cut(vy, 1.0), cut(vz, 1.0)
    for k in range(3):
        obs[i, a, 6 + k] = body[i, a, WX + k] * PER_SPIN
    obs[i, a, 9], obs[i, a, 10], obs[i, a, 11] = r[2], r[5], r[8]
    per_limit = 1.0 / build[i, a, LIMIT]
    for k in range(4):
        obs[i, a, 12 + k] = body[i, a, QW + k]
        obs[i, a, 16 + k] = body[i, a, ROTOR + k] * per_limit
    obs[i, a, 20], obs[i, a, 21], obs[i, a, 22] = x * PER_X, y * PER_Y, z * PER_Z
    tx, ty, tz = goal[i, a, LED] - x, goal[i, a, LED + 1] - y, goal[i, a, LED + 2] - z
    obs[i, a, 23], obs[i, a, 24], obs[i, a, 25] = cut(tx, 1.0), cut(ty, 1.0), cut(tz, 1.0)
    obs[i, a, 26], obs[i, a, 27], obs[i, a, 28] = tx * PER_X, ty * PER_Y, tz * PER_Z
    for k in range(3):
        obs[i, a, 29 + k] = last[i, a, k]
        obs[i, a, 32 + k] = cut(near[i, a, k], 1.0)
    see_task(r, goal, task[i], x, y, z, i, a, obs)


@lean(forceinline=True)
def see_task(r, goal, task, x, y, z, i, a, obs):
    """The last seven: what lies where, seen from the drone."""
    if task != PICK and task != RACE:
        for k in range(35, SEEN):
            obs[i, a, k] = np.float32(0.0)
        return
    bx, by, bz = own(r, goal[i, a, BOX] - x, goal[i, a, BOX + 1] - y, goal[i, a, BOX + 2] - z)
    if task == PICK:
        obs[i, a, 35], obs[i, a, 36], obs[i, a, 37] = bx * PER_X, by * PER_Y, bz * PER_Z
        lx, ly, lz = own(r, goal[i, a, LAY] - x, goal[i, a, LAY + 1] - y, goal[i, a, LAY + 2] - z)
        obs[i, a, 38], obs[i, a, 39], obs[i, a, 40] = lx * PER_X, ly * PER_Y, lz * PER_Z
        obs[i, a, 41] = np.float32(1.0)
    else:
        nearness = 1.0 / (RING + distance(bx, by, bz))
        obs[i, a, 35], obs[i, a, 36], obs[i, a, 37] = bx * nearness, by * nearness, bz * nearness
        nx, ny, nz = own(r, goal[i, a, LAY], goal[i, a, LAY + 1], goal[i, a, LAY + 2])
        obs[i, a, 38], obs[i, a, 39], obs[i, a, 40] = nx, ny, nz
        obs[i, a, 41] = np.float32(0.0)


@njit(cache=True)
def observe_rows(body, build, goal, last, near, task, obs):
    for i in range(obs.shape[0]):
        for a in range(obs.shape[1]):
            see(body, build, goal, last, near, task, i, a, obs)


@njit(cache=True)
def observe_marked(body, build, goal, last, near, task, obs, worlds_N):
    for i in range(obs.shape[0]):
        if worlds_N[i]:
            for a in range(obs.shape[1]):
                see(body, build, goal, last, near, task, i, a, obs)


@njit(parallel=True, cache=True)
def observe_rows_wide(body, build, goal, last, near, task, obs):
    for i in prange(obs.shape[0]):
        for a in range(obs.shape[1]):
            see(body, build, goal, last, near, task, i, a, obs)
