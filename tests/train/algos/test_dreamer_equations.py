"""DreamerV3's equations against hand numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from relab.train.algos.dreamer import equations as eq


def test_symlog_and_symexp_are_inverse():
    x = torch.tensor([-1e4, -1.0, 0.0, 0.5, 333.3], dtype=torch.float64)
    assert torch.allclose(eq.symexp(eq.symlog(x)), x)
    assert float(eq.symlog(torch.tensor(math.e - 1))) == pytest.approx(1.0)


class TestSupport:
    LOG = eq.Support(eq.symexp(torch.arange(-5.0, 6.0)))  # eleven bins from symexp(-5) to symexp(5)

    def test_the_largest_number_of_eleven_bins(self):
        assert self.LOG.high == pytest.approx(147.41, abs=0.01)

    def test_two_hot_and_its_mean_are_inverse(self):
        x = torch.tensor([-147.0, -3.2, 0.0, 1.0, 1.718281828, 99.9])
        hot = self.LOG.two_hot(x)
        assert torch.allclose(hot.sum(-1), torch.ones(6))
        assert torch.allclose(hot @ self.LOG.values, x, atol=1e-4)
        assert int((hot > 0).sum(-1).max()) == 2

    def test_a_reward_of_one_lies_between_two_bins_and_costs_068_nats_at_least(self):
        hot = self.LOG.two_hot(torch.tensor([1.0]))
        assert float(hot.max()) == pytest.approx(1 / (math.e - 1), abs=1e-4)
        assert float(eq.entropy_of(hot)) == pytest.approx(0.6796, abs=1e-4)
        logits = hot.clamp(min=1e-30).log()
        assert float(self.LOG.loss(logits, torch.tensor([1.0]))) == pytest.approx(0.6796, abs=1e-4)

    def test_what_lies_beyond_an_end_is_told(self):
        x = torch.tensor([259.1, 100.0, -148.0])
        assert self.LOG.outside(x).tolist() == [True, False, True]
        assert float(self.LOG.two_hot(x)[0] @ self.LOG.values) == pytest.approx(147.41, abs=0.01)

    def test_a_linear_one_has_even_bins(self):
        assert eq.Support.of(-2, 2, 5, "linear").values.tolist() == [-2, -1, 0, 1, 2]


class TestLambdaReturns:
    def test_a_reward_of_one_for_ever_without_a_critic_is_the_sum_of_discounts(self):
        ones, gamma = torch.ones(16, 1), 0.9
        returns = eq.lambda_returns(ones, gamma * ones, torch.zeros(16, 1), lam=1.0)
        assert float(returns[0]) == pytest.approx(sum(gamma**k for k in range(15)), rel=1e-6)

    def test_a_value_moves_the_return_of_the_row_before_it_and_not_its_own(self):
        gamma, lam, i = 0.9, 0.95, 4
        zeros = torch.zeros(10, 1)
        value = zeros.clone()
        value[i + 1] = 1.0
        returns = eq.lambda_returns(zeros, gamma * torch.ones(10, 1), value, lam)
        assert float(returns[i]) == pytest.approx(gamma * (1 - lam))
        assert float(returns[i + 1]) == 0.0

    def test_the_last_row_bootstraps_whole(self):
        zeros, value = torch.zeros(3, 1), torch.tensor([[0.0], [0.0], [10.0]])
        assert eq.lambda_returns(zeros, torch.full((3, 1), 0.5), value, 0.95)[1].item() == pytest.approx(5.0)

    def test_an_end_cuts_what_comes_after_it(self):
        reward, value = torch.ones(4, 1), torch.full((4, 1), 7.0)
        live = torch.tensor([[1.0], [1.0], [0.0], [1.0]])
        returns = eq.lambda_returns(reward, live, value, 1.0)
        assert returns[:, 0].tolist() == [2.0, 1.0, 8.0]

    def test_a_cut_by_time_bootstraps_from_the_value_there(self):
        reward, value, live = torch.ones(3, 1), torch.tensor([[0.0], [7.0], [100.0]]), torch.ones(3, 1)
        trust = torch.tensor([[1.0], [0.0], [1.0]])  # row 1 is the last of its episode
        assert eq.lambda_returns(reward, live, value, trust)[0].item() == pytest.approx(8.0)


class TestKL:
    def test_it_is_summed_over_the_latents(self):
        p = torch.tensor([[0.9], [0.1]]).expand(2, 3)
        q = torch.full((2, 3), 0.5)
        one = 0.9 * math.log(1.8) + 0.1 * math.log(0.2)
        assert float(eq.kl(p, q)) == pytest.approx(3 * one, rel=1e-5)

    def test_free_bits_by_hand(self):
        nats = torch.tensor([0.2, 0.84, 3.0], requires_grad=True)
        clamped = eq.free_bits(nats, 1.0)
        assert clamped.tolist() == [1.0, 1.0, 3.0]
        assert torch.autograd.grad(clamped.sum(), nats)[0].tolist() == [0.0, 0.0, 1.0]
        straight = eq.straight_free_bits(nats, 1.0)
        assert straight.tolist() == [1.0, 1.0, 3.0]
        assert torch.autograd.grad(straight.sum(), nats)[0].tolist() == [1.0, 1.0, 1.0]

    def test_unimix_leaves_no_probability_at_zero(self):
        probs = eq.unimix(torch.tensor([1000.0, 0.0, 0.0, 0.0]), 0.01)
        assert probs.tolist() == pytest.approx([0.9925, 0.0025, 0.0025, 0.0025])


class TestSample:
    def test_draws_follow_the_probabilities(self):
        probs = torch.tensor([0.2, 0.5, 0.3]).view(1, 3, 1).expand(30_000, 3, 1)
        uniform = torch.from_numpy(np.random.default_rng(0).random((30_000, 1), np.float32))
        shares = eq.sample(probs, uniform).mean((0, 2))
        assert shares.tolist() == pytest.approx([0.2, 0.5, 0.3], abs=0.01)

    def test_gradients_pass_straight_through(self):
        logits = torch.zeros(1, 2, 1, requires_grad=True)
        hot = eq.sample(logits.softmax(-2), torch.tensor([[0.1]]))
        assert hot.tolist() == [[[1.0], [0.0]]]
        hot[0, 0, 0].backward()
        assert logits.grad.tolist() == [[[0.25], [-0.25]]]


class TestReturnScale:
    def test_it_is_the_spread_of_returns_and_never_under_one(self):
        scale = eq.ReturnScale()
        scale.update(torch.linspace(0, 100, 101))
        assert scale.value == pytest.approx(90.0)
        scale.update(torch.linspace(0, 200, 101))
        assert scale.value == pytest.approx((90 * 0.99 + 180) / 1.99)
        small = eq.ReturnScale()
        small.update(torch.linspace(0, 0.1, 11))
        assert small.value == 1.0
