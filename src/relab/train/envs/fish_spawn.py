"""Where do the fish and the predator start? Laws of a school's reset; they may change between stages of a run.

A reset takes one number from the school's stream for the predator and one per slot, whatever the law: each is the seed
of a stream of its own. So a law that draws more shifts nothing else, and with one more fish the others are the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.config import envs as configs
from relab.train.envs.fish_moves import CATCH, DT, MAX_SPEED, fly
from relab.train.kernels.jit import njit
from relab.train.kernels.rng import integer, next_u64, uniform

SPAWN = 8.0  # fish start within this radius
SPEED = 1.5  # of the predator
BOOST_JITTER = math.radians(15.0)
CLEAR = CATCH + MAX_SPEED * DT  # as far from where the predator is after its first step no fish dies in it
TIME_LIMIT, DENSITY_COEF, DENSITY_TARGET, DIVERGENCE_COEF = range(4)  # rules that a school keeps until its next reset
RULES = 4


class Law(NamedTuple):
    """What resets draw from, and the rules they hand to a school."""

    fish: int
    boost: float
    spare: bool
    jitter: float
    pre_roll: int
    angle: float  # radians
    speed: float
    headings: np.ndarray  # float64[k,3]: from, to (radians), weight
    speeds: np.ndarray  # float64[k,3]
    starts: np.ndarray  # float64[k,2]
    rules: np.ndarray  # float64[RULES]


def law_of(p: configs.Fish) -> Law:
    headings, speeds = (np.array(numbers, np.float64).reshape(-1, 3) for numbers in (p.headings, p.speeds))
    headings[:, :2] = np.radians(headings[:, :2])
    cut = p.time_limit if not p.horizon or p.time_limit < p.horizon else 0  # the horizon itself is no cut
    return Law(
        p.fish or p.agents,
        float(p.escape_boost),
        bool(p.spare),
        float(p.jitter),
        p.pre_roll,
        math.radians(p.pre_roll_angle),
        float(p.pre_roll_speed),
        headings,
        speeds,
        np.array(p.starts, np.float64).reshape(-1, 2),
        np.array([cut, p.density_coef, p.density_target, p.divergence_coef], np.float64),
    )


@njit(cache=True)
def between(low, high, rng):
    return low + (high - low) * uniform(rng, 0)


@njit(cache=True)
def from_bands(bands, rng):
    """A number from one of the bands [from, to), chosen by weight."""
    left = uniform(rng, 0) * bands[:, 2].sum()
    for k in range(bands.shape[0]):
        left -= bands[k, 2]
        if left < 0.0:
            break
    return between(bands[k, 0], bands[k, 1], rng)


@njit(cache=True)
def turned(vx, vy, angle, factor):
    cos, sin = factor * math.cos(angle), factor * math.sin(angle)
    return cos * vx - sin * vy, sin * vx + cos * vy


@njit(cache=True)
def send_predator(predator, law, rng):
    """Position near the centre, heading, flight before the start, and the velocity it starts with."""
    radius, angle = between(0.0, law.jitter, rng), between(0.0, 2.0 * math.pi, rng)
    heading = from_bands(law.headings, rng) if law.headings.shape[0] else 0.0
    predator[0], predator[1] = radius * math.cos(angle), radius * math.sin(angle)
    predator[2], predator[3] = SPEED * math.cos(heading), SPEED * math.sin(heading)
    for _ in range(law.pre_roll):
        turn, factor = between(-law.angle, law.angle, rng), 1.0 + between(-law.speed, law.speed, rng)
        predator[2], predator[3] = turned(predator[2], predator[3], turn, factor)
        fly(predator)
    if law.speeds.shape[0]:
        speed, heading = from_bands(law.speeds, rng), math.atan2(predator[3], predator[2])
        predator[2], predator[3] = speed * math.cos(heading), speed * math.sin(heading)
    if law.starts.shape[0]:
        k = integer(rng, 0, law.starts.shape[0])
        predator[2], predator[3] = law.starts[k, 0], law.starts[k, 1]


@njit(cache=True)
def put_in(law, rng):
    """A fish: angle uniform, radius U(0, 8) (so dense in the middle); its velocity random, or outwards."""
    angle, radius = between(0.0, 2.0 * math.pi, rng), between(0.0, SPAWN, rng)
    if law.boost > 0.0:
        heading, speed = angle + between(-BOOST_JITTER, BOOST_JITTER, rng), MAX_SPEED * law.boost
    else:
        heading, speed = between(0.0, 2.0 * math.pi, rng), uniform(rng, 0)
    return radius * math.cos(angle), radius * math.sin(angle), speed * math.cos(heading), speed * math.sin(heading)


@njit(cache=True)
def is_clear(x, y, next_x, next_y):
    return (x - next_x) ** 2 + (y - next_y) ** 2 >= CLEAR * CLEAR


@njit(cache=True)
def begin_school(x, y, vx, vy, here, died, predator, law, rng, i):
    """A new start of school i, whose rows of the other arrays are given."""
    own, then = np.empty(1, np.uint64), np.empty(4)
    own[0] = next_u64(rng, i)
    send_predator(predator, law, own)
    then[:] = predator
    fly(then)
    for a in range(x.shape[0]):
        own[0] = next_u64(rng, i)
        here[a], died[a] = a < law.fish, 0
        x[a], y[a], vx[a], vy[a] = put_in(law, own)
        while law.spare and not is_clear(x[a], y[a], then[0], then[1]):
            x[a], y[a], vx[a], vy[a] = put_in(law, own)
