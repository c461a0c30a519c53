"""Are fine-tuning's equations right? Each against numbers made by hand, or against another program's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats as oracle

from relab.train.algos.finetune import awr, equations
from relab.train.algos.finetune.equations import certainty, cut_bias, expectile_loss, n_step_returns, spearman


def test_weights_grow_exponentially_up_to_the_cap() -> None:
    w = equations.awr_weights(np.array([-1.0, 0.0, 0.5, 100.0]), beta=0.5, cap=20.0)
    np.testing.assert_allclose(w, [math.exp(-2), 1.0, math.e, 20.0], rtol=1e-6)


def test_effective_share_by_hand() -> None:
    assert equations.effective_share(np.array([2.0, 2.0, 2.0])) == pytest.approx(1.0)
    assert equations.effective_share(np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert equations.effective_share(np.array([3.0, 1.0])) == pytest.approx(16 / (2 * 10))


def test_weights_of_standard_normal_advantages_are_those_of_the_formula() -> None:
    """beta 0.5, cap 20: 6.7 % capped, mean 3.62, effective share 0.289, whatever the advantages were before."""
    w = equations.awr_weights(np.random.default_rng(0).standard_normal(400_000), 0.5, 20.0)
    told = awr.weight_metrics(w, 20.0)
    assert told["policy/weight_capped"] == pytest.approx(0.067, abs=0.002)
    assert told["policy/weight_mean"] == pytest.approx(3.62, abs=0.03)
    assert told["policy/weight_ess"] == pytest.approx(0.289, abs=0.004)


def test_expectile_loss_by_hand_and_at_its_lowest() -> None:
    np.testing.assert_allclose(expectile_loss(torch.tensor([2.0, -2.0]), 0.9), [3.6, 0.4], rtol=1e-6)
    q = torch.tensor([0.0, 1.0])  # the 0.9-expectile of a fair coin is 0.9
    levels = torch.linspace(0, 1, 101)
    losses = torch.stack([expectile_loss(q - v, 0.9).mean() for v in levels])
    assert float(levels[losses.argmin()]) == pytest.approx(0.9)


def test_returns_of_n_steps_end_with_their_episode() -> None:
    """Rewards 1, 2, 4, 8 of one world; the episode terminates after the third."""
    r = np.array([[1.0], [2.0], [4.0], [8.0]])
    terminated = np.array([[False], [False], [True], [False]])
    got = n_step_returns(r, terminated, terminated, n=2, gamma=0.5)
    np.testing.assert_allclose(got.total[:, 0], [2.0, 4.0, 4.0, 8.0])
    np.testing.assert_allclose(got.discount[:, 0], [0.25, 0.0, 0.0, 0.5])
    np.testing.assert_array_equal(got.last[:, 0], [1, 2, 2, 3])
    cut = n_step_returns(r, np.zeros_like(terminated), terminated, n=3, gamma=0.5)  # cut by time: bootstrapped
    np.testing.assert_allclose(cut.discount[:, 0], [0.125, 0.25, 0.5, 0.5])
    np.testing.assert_array_equal(cut.last[:, 0], [2, 2, 2, 3])


def test_rank_correlation_is_scipys() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(5, size=60).astype(float), rng.standard_normal(60)
    assert spearman(x, y) == pytest.approx(oracle.spearmanr(x, y).statistic)
    assert math.isnan(spearman(np.ones(4), y[:4]))


def test_noise_and_signal_of_made_advantages() -> None:
    """Signal of variance 1, noise of variance (0.5 + 0.5) / 8 in the mean: the ratio is 8."""
    rng = np.random.default_rng(2)
    true = rng.standard_normal((4000, 1))
    q, v = true + 0.5**0.5 * rng.standard_normal((4000, 8)), 0.5**0.5 * rng.standard_normal((4000, 8))
    sure = certainty(q, v, common=False)
    assert sure.noise == pytest.approx((1 / 8) ** 0.5, rel=0.02)
    assert sure.snr == pytest.approx(8, rel=0.08)
    assert sure.rank == pytest.approx(0.8, abs=0.03)  # of halves: 1 / (1 + 1/4)
    assert math.isnan(certainty(q[:, :1], v[:, :1], common=False).noise)


def test_common_random_numbers_take_shared_noise_out() -> None:
    rng = np.random.default_rng(3)
    shared = rng.standard_normal((500, 4))
    q, v = 0.1 * rng.standard_normal((500, 1)) + shared, shared
    assert certainty(q, v, common=True).noise == pytest.approx(0.0, abs=1e-9)
    assert certainty(q, v, common=False).noise > 0.5


def test_of_antithetic_samples_the_mean_of_two_is_one() -> None:
    """Pairs 1, -1 and 3, -3 have no noise at all; as four samples they would have much."""
    q, v = np.array([[1.0, -1.0, 3.0, -3.0], [3.0, 1.0, 5.0, -1.0]]), np.zeros((2, 4))
    sure = certainty(q, v, common=True, antithetic=True)
    assert (sure.noise, sure.rank) == (0.0, 1.0)
    assert certainty(q, v, common=True).noise > 1.0
    assert math.isnan(certainty(q[:, :2], v[:, :2], True, True).noise)


def test_what_a_cut_can_cost() -> None:
    assert cut_bias(0.8, 25, 0.0, 1.0, None) == pytest.approx(0.8**25 * 5)
    assert cut_bias(0.8, 25, -3.0, 1.0, 26) == pytest.approx(0.8**25 * 3)  # one step is left
    assert cut_bias(1.0, 10, 0.0, 1.0, 50) == pytest.approx(40)
    assert cut_bias(0.9, 50, 0.0, 1.0, 50) == 0.0
