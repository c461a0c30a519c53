"""Do running statistics equal those of all rows at once, and do discounted sums restart where an episode ends?"""

from __future__ import annotations

import numpy as np
import pytest

from relab.train.nets.normalise import Running, discounted_sums


def filled(sizes=(1, 5, 100, 2, 0, 31), dim: int = 3) -> tuple[Running, np.ndarray]:
    """Statistics fed in batches of these sizes, each from another distribution; and all rows."""
    rng, running, rows = np.random.default_rng(0), Running(dim), []
    for k, n in enumerate(sizes):
        rows.append((k + rng.normal(size=(n, dim)) * (1, 10, 0.1)[:dim]).astype(np.float32))
        running.update(rows[-1])
    return running, np.concatenate(rows)


def test_batches_equal_all_rows_at_once():
    running, rows = filled()
    assert running.count.tolist() == [139]
    np.testing.assert_allclose(running.mean, rows.mean(0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_allclose(running.var, rows.var(0, dtype=np.float64), rtol=1e-12)


def test_a_single_batch_is_numpys():
    running, rows = filled(sizes=(64,))
    np.testing.assert_allclose(running.mean, rows.mean(0, dtype=np.float64), rtol=1e-14)
    np.testing.assert_allclose(running.var, rows.var(0, dtype=np.float64), rtol=1e-14)


def test_a_large_mean_does_not_eat_the_variance():
    rng, running = np.random.default_rng(1), Running(1)
    rows = 1e6 + rng.normal(size=(10_000, 1))
    for part in np.array_split(rows, 100):
        running.update(part)
    np.testing.assert_allclose(running.var, rows.var(0), rtol=1e-9)


def test_scaled_rows_have_mean_zero_and_spread_one():
    running, rows = filled()
    scaled = running.apply(rows, clip=1e9)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(0), 1, rtol=1e-4)


def test_scaled_rows_are_clipped_and_the_given_ones_are_kept():
    running = Running(1)
    running.update(np.array([[0.0], [2.0]]))  # mean 1, standard deviation 1
    rows = np.array([[-9.0], [0.0], [1.0], [3.0], [9.0]], np.float32)
    np.testing.assert_allclose(running.apply(rows, clip=5.0), [[-5], [-1], [0], [2], [5]], atol=1e-6)
    assert rows[0, 0] == -9


def test_rows_are_unchanged_before_the_first_update():
    rows = np.array([[100.0, -3.0]], np.float32)
    assert np.array_equal(Running(2).apply(rows, clip=5.0), rows)


def test_a_feature_that_never_moves_stays_finite():
    running = Running(2)
    running.update(np.array([[7.0, 0.0], [7.0, 1.0]], np.float32))
    scaled = running.apply(np.array([[7.0, 1.0], [7.5, 1.0]], np.float32), clip=10.0)
    np.testing.assert_allclose(scaled, [[0, 1], [10, 1]], atol=1e-5)


def test_save_and_load_are_exact_and_share_no_memory():
    running, rows = filled()
    tree = {name: array.copy() for name, array in running.to_tree().items()}
    other = Running(3)
    other.load(tree)
    more = rows[:10] * 2
    running.update(more)
    other.update(more)
    for name, array in running.to_tree().items():
        assert np.array_equal(array, other.to_tree()[name]), name
    assert tree["count"].tolist() == [139]  # what was loaded from is not what goes on


def slow_sums(r, ended, gamma, start):
    total, out = start.astype(np.float64).copy(), np.zeros(r.shape)
    for t in range(len(r)):
        total = gamma * total + r[t]
        out[t] = total
        total = np.where(ended[t], 0.0, total)
    return out, total


@pytest.mark.parametrize("gamma", [0.9, 1.0, 0.0])
def test_discounted_sums_equal_the_slow_loop_and_carry_over(gamma):
    rng = np.random.default_rng(0)
    r, ended = rng.normal(size=(30, 4)).astype(np.float32), rng.uniform(size=(30, 4)) < 0.15
    expected, last = slow_sums(r, ended, gamma, np.zeros(4))
    carried = np.zeros(4)
    parts = [discounted_sums(r[t : t + 10], ended[t : t + 10], gamma, carried) for t in (0, 10, 20)]
    np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(carried, last, rtol=1e-6, atol=1e-9)


def test_discounted_sums_by_hand():
    r, ended, carried = np.array([[1], [2], [4]], np.float32), np.array([[False], [True], [False]]), np.array([10.0])
    assert discounted_sums(r, ended, 0.5, carried).tolist() == [[6.0], [5.0], [4.0]]
    assert carried.tolist() == [4.0]
