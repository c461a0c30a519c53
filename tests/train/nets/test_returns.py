"""Are advantages and returns what the equations say? Hand numbers first, then a slow loop over many random cases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.train.nets import returns

GAMMA, LAM = 0.9, 0.8


def column(*numbers) -> np.ndarray:
    return np.array(numbers, np.float32)[:, None]


def flags(*bits) -> np.ndarray:
    return np.array(bits, bool)[:, None]


def random_batch(seed: int, T: int = 40, B: int = 7):
    """Rewards, values, successor values (0 where terminated, fresh ones where cut), and the two kinds of end."""
    rng = np.random.default_rng(seed)
    r, v, final = rng.normal(size=(3, T, B)).astype(np.float32)
    u = rng.uniform(size=(T, B))
    terminated, truncated = u < 0.1, (u >= 0.1) & (u < 0.2)
    after = np.concatenate((v[1:], rng.normal(size=(1, B)).astype(np.float32)))
    vn = np.where(terminated, 0, np.where(truncated, final, after)).astype(np.float32)
    return r, v, vn, terminated | truncated


def slow_gae(r, v, vn, ended, gamma, lam):
    """The definition: a sum of discounted TD errors up to the end of the episode or of the batch."""
    T, B = r.shape
    adv = np.zeros((T, B))
    for t in range(T):
        for b in range(B):
            weight = 1.0
            for k in range(t, T):
                delta = float(r[k, b]) + gamma * float(vn[k, b]) - float(v[k, b])
                adv[t, b] += weight * delta
                weight *= gamma * lam
                if ended[k, b]:
                    break
    return adv


def slow_returns(r, vn, ended, gamma):
    """The definition: discounted rewards up to the end of the episode or of the batch, then what the critic says."""
    T, B = r.shape
    g = np.zeros((T, B))
    for t in range(T):
        for b in range(B):
            k, weight = t, 1.0
            while True:
                g[t, b] += weight * float(r[k, b])
                weight *= gamma
                if ended[k, b] or k == T - 1:
                    break
                k += 1
            g[t, b] += weight * float(vn[k, b])
    return g


def test_gae_by_hand():
    # deltas: 1 + 0.9*2 - 1 = 1.8;  0 + 0.9*3 - 2 = 0.7;  2 + 0.9*4 - 3 = 2.6
    r, v, vn = column(1, 0, 2), column(1, 2, 3), column(2, 3, 4)
    adv = returns.gae(r, v, vn, flags(0, 0, 0), GAMMA, LAM)
    a1 = 0.7 + 0.72 * 2.6
    np.testing.assert_allclose(adv[:, 0], [1.8 + 0.72 * a1, a1, 2.6], rtol=1e-6)
    assert adv.dtype == np.float32


def test_termination_and_truncation_differ_by_the_bootstrap_alone():
    """Both stop the chain; only a cut lets the value of what was left behind in."""
    r, v = column(1, 1, 1), column(5, 5, 5)
    ended = flags(0, 1, 0)
    terminated = returns.gae(r, v, column(5, 0, 7), ended, GAMMA, LAM)
    cut = returns.gae(r, v, column(5, 6, 7), ended, GAMMA, LAM)
    # t=1: terminated 1 - 5 = -4, cut 1 + 0.9*6 - 5 = 1.4; t=0: 1 + 4.5 - 5 = 0.5 plus 0.72 of that
    np.testing.assert_allclose(terminated[:, 0], [0.5 - 0.72 * 4, -4, 1 + 6.3 - 5], rtol=1e-6)
    np.testing.assert_allclose(cut[:, 0], [0.5 + 0.72 * 1.4, 1.4, 1 + 6.3 - 5], rtol=1e-6)


def test_monte_carlo_by_hand():
    r, vn = column(1, 2, 3), column(10, 20, 30)
    running = returns.discounted(r, vn, flags(0, 0, 0), GAMMA)
    np.testing.assert_allclose(running[:, 0], [1 + 0.9 * (2 + 0.9 * 30), 2 + 0.9 * 30, 30], rtol=1e-6)
    terminated = returns.discounted(r, column(10, 0, 30), flags(0, 1, 0), GAMMA)
    np.testing.assert_allclose(terminated[:, 0], [1 + 0.9 * 2, 2, 30], rtol=1e-6)
    cut = returns.discounted(r, vn, flags(0, 1, 0), GAMMA)
    np.testing.assert_allclose(cut[:, 0], [1 + 0.9 * 20, 20, 30], rtol=1e-6)
    assert cut.dtype == np.float32


@pytest.mark.parametrize(("gamma", "lam"), [(0.9, 0.8), (0.99, 0.95), (1.0, 1.0), (0.9, 0.0), (0.0, 0.7)])
def test_against_the_slow_loop(gamma, lam):
    r, v, vn, ended = random_batch(seed=1)
    np.testing.assert_allclose(
        returns.gae(r, v, vn, ended, gamma, lam), slow_gae(r, v, vn, ended, gamma, lam), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        returns.discounted(r, vn, ended, gamma), slow_returns(r, vn, ended, gamma), rtol=1e-5, atol=1e-5
    )


def test_lambda_one_is_monte_carlo():
    """With lam = 1 the values in between cancel: A_t + v_t = G_t (where vn_t is v_{t+1} inside an episode)."""
    r, v, vn, ended = random_batch(seed=2)
    adv = returns.gae(r, v, vn, ended, GAMMA, 1.0)
    np.testing.assert_allclose(adv + v, returns.discounted(r, vn, ended, GAMMA), rtol=1e-5, atol=1e-5)


def test_lambda_zero_is_the_td_error():
    r, v, vn, ended = random_batch(seed=3)
    np.testing.assert_allclose(returns.gae(r, v, vn, ended, GAMMA, 0.0), r + GAMMA * vn - v, rtol=1e-5, atol=1e-6)


def test_rows_are_independent():
    r, v, vn, ended = random_batch(seed=4)
    whole = returns.gae(r, v, vn, ended, GAMMA, LAM)
    r2 = r.copy()
    r2[:, 3] += 100
    other = returns.gae(r2, v, vn, ended, GAMMA, LAM)
    rest = [b for b in range(r.shape[1]) if b != 3]
    assert np.array_equal(whole[:, rest], other[:, rest])
    assert not np.array_equal(whole[:, 3], other[:, 3])


def test_explained_variance_by_hand():
    target = np.array([1, 2, 3, 4], np.float32)  # variance 1.25
    assert returns.explained_variance(target, target) == 1.0
    assert returns.explained_variance(np.zeros(4, np.float32), target) == 0.0
    assert returns.explained_variance(target + 100, target) == 1.0  # a constant error is not variance
    assert returns.explained_variance(-target, target) == pytest.approx(-3.0)  # Var(2 x) = 4 Var(x)
    assert returns.explained_variance(np.array([1, 2, 3, 2], np.float32), target) == pytest.approx(1 - 0.75 / 1.25)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [0.0, 1.0, 0.1, -1 / 3, 1e6 / 7])
def test_constant_targets_leave_nothing_to_explain(dtype, number):
    """0.1 a thousand times has a computed variance of 2e-34, by which nothing may be divided."""
    v = np.linspace(0, 1, 1000).astype(dtype)
    assert math.isnan(returns.explained_variance(v, np.full(1000, number, dtype)))


def test_explained_variance_of_large_targets_keeps_its_digits():
    """A thousand float32 numbers around 1e4: a float32 mean would lose the variance."""
    rng = np.random.default_rng(0)
    target = (1e4 + rng.normal(size=100_000)).astype(np.float32)
    v = (target + 0.5 * rng.normal(size=target.size)).astype(np.float32)
    assert returns.explained_variance(v, target) == pytest.approx(0.75, abs=0.01)
