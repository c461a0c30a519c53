"""Is a minGRU's scan the recurrence, however it is taken, and is the recurrence the paper's?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from relab.train.nets import networks, scans
from relab.train.nets.networks import Net


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).requires_grad_()


def test_two_steps_by_hand():
    """Gates of 0 mean z = 1/2; g(2) = 2.5, g(-1) = sigmoid(-1) = 0.2689."""
    gates = torch.tensor([[[0.0, 2.0]], [[0.0, -1.0]]], dtype=torch.float64)
    h = scans.min_gru(gates, torch.tensor([[4.0]], dtype=torch.float64), torch.ones(2, 1, 1, dtype=torch.float64))
    first = 0.5 * 4.0 + 0.5 * 2.5
    assert h.flatten().tolist() == pytest.approx([first, 0.5 * first + 0.5 * 0.2689414213699951])


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 16, 33])
def test_sweeps_are_the_loop(steps):
    """Values, and gradients of everything, also where the memory is cleared on the way."""
    a, b, h = torch.rand(steps, 3, 4, dtype=torch.float64).requires_grad_(), normal(steps, 3, 4), normal(3, 4, seed=1)
    keep = (torch.rand(steps, 3, 1, dtype=torch.float64) > 0.3).double()
    weight, found = normal(steps, 3, 4, seed=2).detach(), []
    for scan in (scans.scan_loop, scans.scan_parallel):
        states = scan(a * keep, b, h)
        grads = torch.autograd.grad((states * weight).sum(), (a, b, h))
        found.append((states, *grads))
    for one, other in zip(*found):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_a_new_episode_begins_without_memories():
    net = Net(obs_dim=3, out_dim=2, hidden=(8,), rnn="mingru", rnn_size=5)
    params = networks.init(net, np.random.default_rng(0))
    obs, fresh = normal(6, 4, 3).detach().float(), torch.zeros(6, 4)
    fresh[3] = 1.0
    out, v, memory = networks.unroll(net, params, obs, torch.ones(4, 5), fresh)
    tail = networks.unroll(net, params, obs[3:], torch.zeros(4, 5), torch.zeros(3, 4))
    for whole, part in zip((out[3:], v[3:], memory), tail):
        torch.testing.assert_close(whole, part)


def test_a_step_at_a_time_is_the_whole_sequence():
    """Acting goes step by step, learning over segments: the memory in between is all that it takes."""
    net = Net(obs_dim=3, out_dim=2, hidden=(8,), rnn="mingru", rnn_size=5)
    params, obs, none = (
        networks.init(net, np.random.default_rng(0)),
        normal(6, 4, 3).detach().float(),
        torch.zeros(1, 4),
    )
    out, _, _ = networks.unroll(net, params, obs, torch.zeros(4, 5), torch.zeros(6, 4))
    memory, steps = torch.zeros(4, 5), []
    for t in range(6):
        each, _, memory = networks.unroll(net, params, obs[t : t + 1], memory, none)
        steps.append(each[0])
    torch.testing.assert_close(out, torch.stack(steps))
