"""How do fish and predator move, who is caught, and what does a step pay? One school at a time, rows of its arrays.

Order of a step: every living fish steers and moves; the predator falls, moves and bounces; then who is nearer than 0.7
is caught. Velocities change before positions do (semi-implicit Euler).
"""

from __future__ import annotations

import math

from relab.train.envs.fish_near import COUNT, DIVERGENCE
from relab.train.kernels.jit import njit

RADIUS = 10.0  # of the pond
DT = 0.1  # seconds per step
MAX_SPEED = 2.0
THRUST = 1.0  # acceleration along the heading
BRAKE = 0.9
COS_TURN, SIN_TURN = math.cos(math.radians(30.0)), math.sin(math.radians(30.0))
STILL = 0.01  # a slower fish heads towards (1, 0)
VISION = 10.0 / 3.0
CATCH = 0.7  # sizes 0.5 and 0.2
GRAVITY = 0.5  # pulls the predator towards +y
FISH_BOUNCE, PREDATOR_BOUNCE = 0.5, 0.85  # share of the normal speed that a wall gives back
ACCELERATE, TURN_LEFT, TURN_RIGHT, SLOW_DOWN, KEEP = range(5)  # actions

TERMS = 6  # of the reward: alive, watch, wall, crowd, spread, death
SCALE = 0.1  # of every term but death
DEATH_PAYS = -50.0


@njit(cache=True)
def steered(vx, vy, action):
    """The velocity after an action."""
    if action == ACCELERATE:
        speed = math.sqrt(vx * vx + vy * vy)
        hx, hy = (vx / speed, vy / speed) if speed >= STILL else (1.0, 0.0)
        vx, vy = vx + THRUST * DT * hx, vy + THRUST * DT * hy
        speed = math.sqrt(vx * vx + vy * vy)
        if speed > MAX_SPEED:
            vx, vy = vx * MAX_SPEED / speed, vy * MAX_SPEED / speed
    elif action == TURN_LEFT:
        vx, vy = COS_TURN * vx - SIN_TURN * vy, SIN_TURN * vx + COS_TURN * vy
    elif action == TURN_RIGHT:
        vx, vy = COS_TURN * vx + SIN_TURN * vy, COS_TURN * vy - SIN_TURN * vx
    elif action == SLOW_DOWN:
        vx, vy = BRAKE * vx, BRAKE * vy
    return vx, vy


@njit(cache=True)
def moved(x, y, vx, vy, bounce):
    """One step in a straight line; beyond the wall: back onto the circle, the outward speed reversed times `bounce`."""
    x, y = x + DT * vx, y + DT * vy
    far2 = x * x + y * y
    if far2 > RADIUS * RADIUS:
        far = math.sqrt(far2)
        nx, ny = x / far, y / far
        x, y = RADIUS * nx, RADIUS * ny
        outward = vx * nx + vy * ny
        if outward > 0.0:
            vx, vy = vx - (1.0 + bounce) * outward * nx, vy - (1.0 + bounce) * outward * ny
    return x, y, vx, vy


@njit(cache=True)
def fly(predator):
    """The predator's step, in place: x, y, vx, vy."""
    vx, vy = predator[2], predator[3] + GRAVITY * DT
    predator[0], predator[1], predator[2], predator[3] = moved(predator[0], predator[1], vx, vy, PREDATOR_BOUNCE)


@njit(cache=True)
def swim(x, y, vx, vy, here, action_A):
    """Every living fish of a school; one action for all where action_A holds one."""
    shared = action_A.shape[0] < x.shape[0]
    for a in range(x.shape[0]):
        if here[a]:
            ux, uy = steered(vx[a], vy[a], action_A[0] if shared else action_A[a])
            x[a], y[a], vx[a], vy[a] = moved(x[a], y[a], ux, uy, FISH_BOUNCE)


@njit(cache=True)
def catch(x, y, here, died, age, predator):
    """Who is within reach after both moved dies, at this age of the school."""
    for a in range(x.shape[0]):
        dx, dy = x[a] - predator[0], y[a] - predator[1]
        if here[a] and dx * dx + dy * dy < CATCH * CATCH:
            here[a], died[a] = False, age


@njit(cache=True)
def pay(x, y, near, predator, density_coef, density_target, divergence_coef):
    """What a living fish earns in a step: for being alive, far from predator and wall, out of a crowd, by terms."""
    dx, dy = x - predator[0], y - predator[1]
    distance, to_wall = math.sqrt(dx * dx + dy * dy), RADIUS - math.sqrt(x * x + y * y)
    watch = 10.0 * distance / VISION if distance <= VISION else 5.0
    wall = -2.0 * max(1.0 - to_wall, 0.0)
    crowd = -density_coef * max(near[COUNT] - density_target, 0.0)
    return SCALE * 2.0, SCALE * watch, SCALE * wall, SCALE * crowd, SCALE * divergence_coef * 2.0 * near[DIVERGENCE]
