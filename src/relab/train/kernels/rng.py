"""Where does each random number come from? One counter stream per row: splitmix64 (Steele, Lea, Flood 2014).

A stream is a single uint64, so it can be stored, copied and restored as plain data. Row i of an array of streams is
advanced by row i's draws alone: a world gives the same numbers in any batch, in any slot, on any number of threads.
(Numba's disk cache watches only the file a kernel stands in: after editing this one, delete the *.nbi files.)
"""

from __future__ import annotations

import math

import numpy as np

from relab.train.kernels.jit import njit

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MUL_A = np.uint64(0xBF58476D1CE4E5B9)
MUL_B = np.uint64(0x94D049BB133111EB)
SHIFT_A, SHIFT_B, SHIFT_C = np.uint64(30), np.uint64(27), np.uint64(31)
TO_53_BITS, LOW_32_BITS = np.uint64(11), np.uint64(32)
TWO_PI = 2.0 * math.pi


def mix(seeds) -> np.ndarray:
    """Spread seeds (0, 1, 2 ... are fine) over all 64 bits: the streams to begin with. uint64, same shape."""
    z = np.array(seeds, dtype=np.uint64, ndmin=1) + GAMMA
    z = (z ^ (z >> SHIFT_A)) * MUL_A
    z = (z ^ (z >> SHIFT_B)) * MUL_B
    return (z ^ (z >> SHIFT_C)).reshape(np.shape(seeds))


@njit(cache=True)
def next_u64(rng, i):
    """64 random bits from stream i, which moves on by one."""
    rng[i] = rng[i] + GAMMA
    z = rng[i]
    z = (z ^ (z >> SHIFT_A)) * MUL_A
    z = (z ^ (z >> SHIFT_B)) * MUL_B
    return z ^ (z >> SHIFT_C)


@njit(cache=True)
def uniform(rng, i):
    """A float64 in [0, 1), 53 bits."""
    return np.float64(next_u64(rng, i) >> TO_53_BITS) * 2.0**-53


@njit(cache=True)
def integer(rng, i, n):
    """An int64 in [0, n), n < 2**32: the high 32 bits times n, shifted down (bias below n / 2**32)."""
    return np.int64(((next_u64(rng, i) >> LOW_32_BITS) * np.uint64(n)) >> LOW_32_BITS)


@njit(cache=True)
def normal(rng, i):
    """A standard normal float64 (Box-Muller); takes two uniforms."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(rng, i)))
    return radius * math.cos(TWO_PI * uniform(rng, i))


@njit(cache=True)
def normal_pair(rng, i):
    """Two standard normals from the same two uniforms (both halves of Box-Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(rng, i)))
    angle = TWO_PI * uniform(rng, i)
    return radius * math.cos(angle), radius * math.sin(angle)


@njit(cache=True)
def fill_uniform(rng_B, out_BK):
    """out_BK ~ U[0, 1) in place; row b draws from rng_B[b] alone. float64 (a float32 buffer could round up to 1)."""
    for b in range(out_BK.shape[0]):
        for k in range(out_BK.shape[1]):
            out_BK[b, k] = uniform(rng_B, b)


@njit(cache=True)
def fill_normal(rng_B, out_BK):
    """out_BK ~ N(0, 1) in place; row b draws from rng_B[b] alone, both halves of each Box-Muller pair are used."""
    size = out_BK.shape[1]
    for b in range(out_BK.shape[0]):
        for k in range(0, size, 2):
            out_BK[b, k], second = normal_pair(rng_B, b)
            if k + 1 < size:
                out_BK[b, k + 1] = second
