"""Are the random streams the published ones, uniform, normal, and independent of how rows are batched?"""

from __future__ import annotations

import numpy as np
import pytest

from relab.train.kernels import rng

# splitmix64 seeded with 0: its first three outputs, from the reference implementation (Vigna, splitmix64.c)
FIRST = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)


def draws(function, n: int, *args) -> np.ndarray:
    stream = rng.mix(np.arange(1))
    return np.array([function(stream, 0, *args) for _ in range(n)])


def test_next_u64_is_splitmix64():
    stream = np.zeros(1, np.uint64)
    assert tuple(int(rng.next_u64(stream, 0)) for _ in range(3)) == FIRST


def test_mix_is_the_first_output_and_keeps_the_shape():
    assert int(rng.mix(0)) == FIRST[0]
    assert rng.mix([0, 0]).tolist() == [FIRST[0]] * 2
    assert rng.mix(np.zeros((2, 3))).shape == (2, 3)


def test_mix_spreads_neighbours():
    mixed = rng.mix(np.arange(2000))
    assert len(set(mixed.tolist())) == 2000
    flipped = np.array([int(a ^ b).bit_count() for a, b in zip(mixed[1:], mixed[:-1])])
    assert abs(flipped.mean() - 32) < 1  # half the bits; 4 standard errors are 0.36


def test_uniform_fills_the_unit_interval():
    u = draws(rng.uniform, 20_000)
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.histogram(u, bins=50, range=(0, 1))[0]
    assert ((counts - 400) ** 2 / 400).sum() < 100  # chi-square with 49 degrees of freedom: 99.99 % below 97
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.03


def test_integers_are_even_and_bounded():
    counts = np.bincount(draws(rng.integer, 12_000, 6), minlength=6)
    assert len(counts) == 6
    assert ((counts - 2000) ** 2 / 2000).sum() < 26  # 5 degrees of freedom: 99.99 % below 25.7


@pytest.mark.parametrize("size", [1, 4, 5])
def test_normals_have_the_right_moments(size):
    out = np.empty((20_000, size))
    rng.fill_normal(rng.mix(np.arange(len(out))), out)
    assert abs(out.mean()) < 0.03
    assert abs(out.std() - 1) < 0.03
    assert abs((out**4).mean() - 3) < 0.3
    if size > 1:  # both halves of a pair are used, and do not depend on each other
        assert abs(np.corrcoef(out.T)[0, 1]) < 0.03


def test_normal_is_the_first_of_fill_normal():
    out = np.empty((1, 1))
    rng.fill_normal(rng.mix([7]), out)
    assert rng.normal(rng.mix([7]), 0) == out[0, 0]


@pytest.mark.parametrize("fill", [rng.fill_uniform, rng.fill_normal])
def test_rows_do_not_depend_on_the_batch(fill):
    whole, parts = np.empty((10, 3)), np.empty((10, 3))
    streams = rng.mix(np.arange(10))
    fill(rng.mix(np.arange(10)), whole)
    for rows in (slice(0, 1), slice(1, 4), slice(4, 10)):
        fill(streams[rows], parts[rows])
    assert whole.tobytes() == parts.tobytes()
    assert len(np.unique(whole)) == whole.size


def test_streams_move_on():
    stream, first, second = rng.mix(np.arange(4)), np.empty((4, 2)), np.empty((4, 2))
    rng.fill_uniform(stream, first)
    rng.fill_uniform(stream, second)
    assert (first != second).all()
