"""How does a quadrotor fly? Four rotors with lag, attitude as a quaternion, drag, gyroscopic terms; Runge-Kutta.

A body is 17 numbers: position (3), velocity (3), both in the world's frame, attitude (4, w first), rates of rotation in
the body's frame (3), rotor speeds (4). A build is 13: what the drone is made of. Units: m, kg, s, rad.

Known answers: a rotor's thrust is k speed^2, so a drone of size 0.2 hovers at the share sqrt(9.81 / 4 / 3e-5) / 750 =
0.381 of its rotors' limit, which is the action -0.238 on each. Without drag a fall is g t^2 / 2 to the last bits.
"""

from __future__ import annotations

import math

from relab.train.kernels.jit import lean
from relab.train.kernels.rng import uniform

DT = 0.05  # seconds of a tick: one step of Runge-Kutta
FASTEST, SPIN = 50.0, 50.0  # each component of velocity (m/s) and of rotation (rad/s) is cut to +- this
X, Y, Z, VX, VY, VZ, QW, QX, QY, QZ, WX, WY, WZ, ROTOR = range(14)  # of a body; four rotors from ROTOR on
BODY = ROTOR + 4
MASS, IX, IY, IZ, ARM, THRUST, DAMPING, YAW, DRAG, GRAVITY, LIMIT, LAG, SPINNER = range(13)  # of a build
BUILD = 13
BASE_ARM = 0.1


@lean()
def assemble(rng, i, a, size, spread, build):
    """A drone of this size, each of its numbers drawn from 1 +- spread times what its size makes it."""
    arm = 0.5 * size
    r = arm / BASE_ARM
    mass = r**3 * around(rng, i, spread)
    heavy = mass * r * r  # of inertia: mass times the square of the length
    build[i, a, MASS], build[i, a, ARM] = mass, arm
    build[i, a, IX] = 0.01 * heavy * around(rng, i, spread)
    build[i, a, IY] = 0.01 * heavy * around(rng, i, spread)
    build[i, a, IZ] = 0.02 * heavy * around(rng, i, spread)
    build[i, a, THRUST] = 3e-5 * mass * r * around(rng, i, spread)
    build[i, a, DAMPING] = 0.2 * (build[i, a, IX] + build[i, a, IY] + build[i, a, IZ]) / 0.04 * around(rng, i, spread)
    build[i, a, YAW] = 1e-6 * r * r * around(rng, i, spread)
    build[i, a, DRAG] = 0.1 * r * r * around(rng, i, spread)
    build[i, a, GRAVITY] = 9.81 * around(rng, i, 0.01 if spread > 0.0 else 0.0)
    build[i, a, LIMIT] = 750.0 / r * around(rng, i, spread)
    build[i, a, LAG] = 0.1 * around(rng, i, spread)
    build[i, a, SPINNER] = 1e-5 * heavy * around(rng, i, spread)


@lean()
def around(rng, i, spread):
    """U(1 - spread, 1 + spread)."""
    return 1.0 + spread * (2.0 * uniform(rng, i) - 1.0)


@lean(forceinline=True)
def prepared(b):
    """A build for `slopes`: what every stage would divide by is divided by once."""
    mass, ix, iy, iz, arm, thrust, damping, yaw, drag, gravity, _, lag, spinner = b
    return (1.0 / mass, 1.0 / ix, 1.0 / iy, 1.0 / iz, arm, thrust, damping, yaw, drag, gravity, iy - iz, iz - ix,
            ix - iy, 1.0 / lag, spinner)  # fmt: skip


@lean(forceinline=True)
def slopes(s, u, c):
    """d/dt of a body s, whose rotors are driven towards the speeds u; c is the build, prepared."""
    _, _, _, vx, vy, vz, qw, qx, qy, qz, wx, wy, wz, r0, r1, r2, r3 = s
    per_kg, per_ix, per_iy, per_iz, arm, thrust, damping, yaw, drag, gravity, i_yz, i_zx, i_xy, quick, spinner = c
    f0, f1, f2, f3 = (u[0] - r0) * quick, (u[1] - r1) * quick, (u[2] - r2) * quick, (u[3] - r3) * quick
    t0, t1, t2, t3 = thrust * r0 * r0, thrust * r1 * r1, thrust * r2 * r2, thrust * r3 * r3
    lift, slow = (t0 + t1 + t2 + t3) * per_kg, drag * per_kg
    roll = arm * (t1 - t3) - damping * wx + i_yz * wy * wz
    pitch = arm * (t2 - t0) - damping * wy + i_zx * wz * wx
    turn = yaw * (t0 - t1 + t2 - t3) + spinner * (f0 - f1 + f2 - f3) - damping * wz + i_xy * wx * wy
    return (
        vx, vy, vz,
        2.0 * (qx * qz + qw * qy) * lift - slow * vx,
        2.0 * (qy * qz - qw * qx) * lift - slow * vy,
        (qw * qw - qx * qx - qy * qy + qz * qz) * lift - slow * vz - gravity,
        -0.5 * (qx * wx + qy * wy + qz * wz), 0.5 * (qw * wx + qy * wz - qz * wy),
        0.5 * (qw * wy - qx * wz + qz * wx), 0.5 * (qw * wz + qx * wy - qy * wx),
        roll * per_ix, pitch * per_iy, turn * per_iz, f0, f1, f2, f3,
    )  # fmt: skip


@lean(forceinline=True)
def ahead(s, k, h):
    """s + h k"""
    return (
        s[0] + h * k[0], s[1] + h * k[1], s[2] + h * k[2], s[3] + h * k[3], s[4] + h * k[4], s[5] + h * k[5],
        s[6] + h * k[6], s[7] + h * k[7], s[8] + h * k[8], s[9] + h * k[9], s[10] + h * k[10], s[11] + h * k[11],
        s[12] + h * k[12], s[13] + h * k[13], s[14] + h * k[14], s[15] + h * k[15], s[16] + h * k[16],
    )  # fmt: skip


@lean(forceinline=True)
def runge_kutta(s, u, b, dt):
    """One step of order 4. The attitude is brought back to length 1 after it; within, that would cost two orders."""
    c = prepared(b)
    k1 = slopes(s, u, c)
    k2 = slopes(ahead(s, k1, 0.5 * dt), u, c)
    k3 = slopes(ahead(s, k2, 0.5 * dt), u, c)
    k4 = slopes(ahead(s, k3, dt), u, c)
    s = ahead(ahead(ahead(ahead(s, k1, dt / 6.0), k2, dt / 3.0), k3, dt / 3.0), k4, dt / 6.0)
    n = 1.0 / math.sqrt(s[6] * s[6] + s[7] * s[7] + s[8] * s[8] + s[9] * s[9])
    return (s[0], s[1], s[2], s[3], s[4], s[5], n * s[6], n * s[7], n * s[8], n * s[9], s[10], s[11], s[12],
            s[13], s[14], s[15], s[16])  # fmt: skip


@lean(forceinline=True)
def cut(x, most):
    return min(max(x, -most), most)


@lean(forceinline=True)
def driven(action, limit):
    """The rotor speed that an action in [-1, 1] asks for; what lies beyond is clipped."""
    return 0.5 * (min(max(action, -1.0), 1.0) + 1.0) * limit


@lean(forceinline=True)
def fly(body, build, action, i, a):
    """Drone a of world i flies one tick."""
    b = (build[i, a, 0], build[i, a, 1], build[i, a, 2], build[i, a, 3], build[i, a, 4], build[i, a, 5],
         build[i, a, 6], build[i, a, 7], build[i, a, 8], build[i, a, 9], build[i, a, 10], build[i, a, 11],
         build[i, a, 12])  # fmt: skip
    s = (body[i, a, 0], body[i, a, 1], body[i, a, 2], body[i, a, 3], body[i, a, 4], body[i, a, 5], body[i, a, 6],
         body[i, a, 7], body[i, a, 8], body[i, a, 9], body[i, a, 10], body[i, a, 11], body[i, a, 12], body[i, a, 13],
         body[i, a, 14], body[i, a, 15], body[i, a, 16])  # fmt: skip
    limit = b[LIMIT]
    u = (driven(action[i, a, 0], limit), driven(action[i, a, 1], limit), driven(action[i, a, 2], limit),
         driven(action[i, a, 3], limit))  # fmt: skip
    s = runge_kutta(s, u, b, DT)
    body[i, a, 0], body[i, a, 1], body[i, a, 2] = s[0], s[1], s[2]
    body[i, a, 3], body[i, a, 4], body[i, a, 5] = cut(s[3], FASTEST), cut(s[4], FASTEST), cut(s[5], FASTEST)
    body[i, a, 6], body[i, a, 7], body[i, a, 8], body[i, a, 9] = s[6], s[7], s[8], s[9]
    body[i, a, 10], body[i, a, 11], body[i, a, 12] = cut(s[10], SPIN), cut(s[11], SPIN), cut(s[12], SPIN)
    body[i, a, 13], body[i, a, 14], body[i, a, 15], body[i, a, 16] = s[13], s[14], s[15], s[16]
