"""Are numbers seen in units of their spread, from the first update on, and after a checkpoint too?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from relab.config.dreamer import Dreamer
from relab.train.algos import dreamer
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import learning, sequences
from relab.train.contract import Setup
from relab.train.envs.cartpole import CartPole

SMALL = Dreamer(envs=2, steps=16, deter=8, hidden=8, units=8, stoch=4, bins=11, learning_starts=32, sequences=2,
                length=8, imagine=3, norm_obs=True, updates_per_step=0.25)  # fmt: skip


def gathered() -> dreamer.State:
    s = dreamer.init(Setup(CartPole(), SMALL, 0, 1000))
    while s.counts.agent_steps < SMALL.learning_starts:
        s.gathering.step(dreamer.Even(s.agent), s.counts)
    return s


def test_the_first_update_measures_what_was_seen():
    s = gathered()
    seen = learning.first_rows(s)
    assert s.agent.units.tolist() == [[0.0] * 4, [1.0] * 4]
    learning.update(s)
    first = s.agent.units.clone()
    assert np.allclose(first[0], seen.mean(0), atol=1e-5)
    assert np.allclose(first[1], seen.std(0, ddof=1), rtol=1e-4)
    row = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    assert torch.allclose(s.agent.model.target(row), eq.symlog((row - first[0]) / first[1]))
    for _ in range(20):
        s.gathering.step(s.agent, s.counts)
    learning.update(s)
    assert torch.equal(s.agent.units, first)


def test_what_never_changes_keeps_its_unit_and_a_checkpoint_holds_them():
    s, other = gathered(), gathered()
    s.agent.measure(np.array([[1.0, 2.0, 0.0, 5.0], [3.0, 2.0, 0.0, 9.0]]))
    assert torch.allclose(s.agent.units, torch.tensor([[2.0, 2.0, 0.0, 7.0], [2**0.5, 1.0, 1.0, 8**0.5]]))
    tree = s.to_tree()
    dreamer.load_agent(other.agent, {name: {key: x.numpy().copy() for key, x in tree[name].items()}
                                     for name in ("params", "slow", "obs_scale")})  # fmt: skip
    assert torch.equal(other.agent.units, s.agent.units)
    assert torch.equal(other.agent.sees.target(torch.ones(1, 4)), s.agent.model.target(torch.ones(1, 4)))


def test_the_size_of_numbers_is_seen_and_not_their_proportions_alone():
    """The encoder's first layer is normalised: a cart at the track's end looked like one a tenth as far away."""
    model = gathered().agent.model
    near = torch.tensor([[0.2, 0.02, 0.01, 0.02]])
    far = eq.symexp(10 * eq.symlog(near))  # the same proportions, as the encoder sees them
    seen_near, seen_far = model.see(near).detach(), model.see(far).detach()
    assert float((seen_near - seen_far).norm() / seen_far.norm()) > 0.05


def test_the_reconstruction_weighs_as_set():
    plain, heavy = (dreamer.init(Setup(CartPole(), replace(SMALL, obs_scale=scale), 0, 1000)) for scale in (1.0, 100.0))
    rows = sequences.blank(plain.gathering.replay.ring, SMALL.length, SMALL.sequences)
    rows.obs[:], rows.valid[:] = 0.5, 1.0
    losses = [s.agent.model.losses(batch, s.agent.model.observe(batch, torch.full((8, 2, 4), 0.5)))
              for s in (plain, heavy) for batch in [learning.batch_of(s.agent, rows)]]  # fmt: skip
    assert torch.allclose(losses[1]["obs"], 100 * losses[0]["obs"])
    assert all(torch.equal(losses[0][name], losses[1][name]) for name in ("reward", "continue", "dyn", "rep"))
