"""Do averaged weights act, and does a checkpoint hold them?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from relab.config.dreamer import Dreamer
from relab.train.algos import dreamer
from relab.train.algos.dreamer.agent import streams_of
from relab.train.contract import Setup, Stopwatch
from relab.train.envs.cartpole import CartPole
from relab.train.kernels.rng import mix

SMALL = Dreamer(envs=2, steps=16, deter=8, hidden=8, units=8, stoch=4, bins=11, learning_starts=32, sequences=2,
                length=8, imagine=3, lr=1e-2, lr_warmup=0, acting_rate=0.25, updates_per_step=0.25)  # fmt: skip


def begun(cfg: Dreamer) -> dreamer.State:
    return dreamer.init(Setup(CartPole(), cfg, 0, 1000))


def test_the_acting_weights_follow_by_their_rate():
    agent = begun(SMALL).agent
    first = agent.acting.flat.clone()
    assert torch.equal(first, agent.params.flat)
    agent.params.flat.add_(1.0)
    agent.follow(updates=99)
    assert torch.allclose(agent.acting.flat - first, torch.tensor(0.25), atol=1e-5)
    agent.follow(updates=0)  # the first update: what was drawn at the start is forgotten
    assert torch.allclose(agent.acting.flat, agent.params.flat)


def test_they_act_and_not_the_newest():
    agent = begun(SMALL).agent
    obs, rng = np.ones((3, 4), np.float32), np.arange(1, 4, dtype=np.uint64)
    memory = np.zeros((3, agent.memory_dim), np.float32)
    before = agent.act(obs, memory, rng.copy(), 3)
    agent.params.flat.mul_(-3.0)
    after = agent.act(obs, memory, rng.copy(), 3)
    assert np.array_equal(before.memory, after.memory)
    agent.follow(updates=0)
    assert not np.array_equal(before.memory, agent.act(obs, memory, rng.copy(), 3).memory)


def test_the_weights_that_learn_collect_where_that_is_set():
    s, average = begun(replace(SMALL, collects="learned")), begun(SMALL)
    obs, rng = np.ones((3, 4), np.float32), np.arange(1, 4, dtype=np.uint64)
    memory = np.zeros((3, s.agent.memory_dim), np.float32)
    s.counts.agent_steps = average.counts.agent_steps = SMALL.learning_starts
    for each in (s, average):
        each.agent.params.flat.mul_(-3.0)
    policy = dreamer.behaviour_of(s)
    assert dreamer.behaviour_of(average) is average.agent
    learned, evaluated = (each.act(obs, memory, rng.copy(), 3).memory for each in (policy, s.agent))
    assert not np.array_equal(learned, evaluated)
    assert torch.equal(s.agent.collecting.flat, s.agent.params.flat)
    assert torch.equal(average.agent.collecting.flat, average.agent.acting.flat)
    s.agent.follow(updates=0)  # the average has caught up
    assert np.array_equal(learned, s.agent.act(obs, memory, rng.copy(), 3).memory)


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_a_checkpoint_holds_them(rate):
    s, other = begun(replace(SMALL, acting_rate=rate)), begun(replace(SMALL, acting_rate=rate))
    s.agent.params.flat.add_(0.5)
    s.agent.follow(updates=3)
    whole = s.to_tree()
    parts = [name for name in ("params", "slow", "acting") if name in whole]
    tree = {name: {key: x.numpy().copy() for key, x in whole[name].items()} for name in parts}
    assert ("acting" in tree) == (rate < 1)
    dreamer.load_agent(other.agent, tree)
    assert torch.equal(other.agent.acting.flat, s.agent.acting.flat)


def test_the_mode_draws_latents_by_what_is_seen_and_takes_the_likeliest_action():
    s = begun(SMALL)
    agent, rows = s.agent, 64
    obs = np.random.default_rng(0).normal(size=(rows, 4)).astype(np.float32)
    memory = np.zeros((rows, agent.memory_dim), np.float32)
    first, second = (agent.act(obs, memory, mix(np.arange(rows) + k), rows) for k in (0, 99))
    np.testing.assert_array_equal(first.memory, second.memory)  # whatever the streams are
    np.testing.assert_array_equal(first.action, second.action)
    feature = torch.from_numpy(first.memory[:, : agent.cfg.deter + agent.model.latent])
    np.testing.assert_array_equal(first.action, agent.actions.mode(agent.chooses.policy(feature)).numpy())
    again = agent.act(np.repeat(obs[:1], rows, 0), memory, mix(np.arange(rows)), rows)
    assert (again.memory == again.memory[0]).all()  # the same where the same is seen
    drawn = streams_of(obs)
    assert len(np.unique(drawn)) == rows


def test_the_logged_step_size_warms_up_as_the_steps_do():
    s = begun(replace(SMALL, lr_warmup=32))
    rows = [dreamer.iterate(s, Stopwatch()) for _ in range(6)]  # of 32 steps, the first before learning starts
    made = [row["data/updates"] for row in rows]
    assert made == [0, 8, 16, 24, 32, 40]
    assert [row["optim/lr"] for row in rows] == pytest.approx([1e-2 * min(1, n / 32) for n in made])
    alone = begun(replace(SMALL, mode="behaviour", lr_actor=2e-3))  # the model rests, and its step is nobody's
    assert [dreamer.iterate(alone, Stopwatch())["optim/lr"] for _ in range(2)] == [2e-3, 2e-3]
