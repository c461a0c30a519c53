"""Whose turn is it in an update, and how large is it? And the parts of Dreamer that few settings use, by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from relab.config import registry
from relab.config.dreamer import Dreamer
from relab.train.algos.dreamer import layers, make_agent
from relab.train.algos.dreamer.agent import Agent
from relab.train.algos.dreamer.learning import entropy_weight, turn_of
from relab.train.algos.dreamer.surprise import Focus
from relab.train.contract import Counts

SMALL = Dreamer(
    deter=24, hidden=20, units=28, stoch=6, classes=3, bins=11, learning_starts=64, blocks=4, slow_rate=0.25
)


def state(updates: int = 0, share: float = 0.0, smoothed: float = 0.0, kl: float = 0.0, **settings: Any) -> Any:
    surprise = SimpleNamespace(smoothed=smoothed, kl=kl, fall=0.0)
    return SimpleNamespace(cfg=Dreamer(**settings), counts=Counts(updates=updates), share_done=share,
                           focus=Focus(None, 20, 50), surprise=surprise)  # fmt: skip


def agent_of(**changes: Any) -> Agent:
    """All weights a little away from where they begin: no scale is 1 and no bias 0."""
    env = registry.env_class("cartpole-v1")(registry.env_params_class("cartpole-v1")())
    agent = make_agent(replace(SMALL, **changes), env.spec, 0)
    agent.params.flat.add_(0.1 * torch.randn(agent.params.flat.shape, generator=torch.Generator().manual_seed(1)))
    return agent


def test_four_updates_of_the_model_for_one_of_actor_and_critic():
    turns = [turn_of(state(updates=n, model_updates=4)) for n in range(8)]
    assert [turn.model for turn in turns] == [1.0] * 8
    assert [turn.actor for turn in turns] == [turn.critic for turn in turns] == [1, 0, 0, 0, 1, 0, 0, 0]


def test_the_model_alone_warms_up():
    assert [turn_of(state(updates=n, warmup_updates=2)).actor for n in range(4)] == [0, 0, 1, 1]


@pytest.mark.parametrize(("mode", "turn"), [("full", (1, 1, 1)), ("model", (1, 0, 0)), ("behaviour", (0, 1, 1))])
def test_what_learns_in_a_mode(mode: str, turn: tuple[int, int, int]):
    assert turn_of(state(mode=mode)) == turn


def test_surprise_makes_the_steps_of_actor_and_critic_smaller():
    assert turn_of(state(surprise_scale=10.0, smoothed=0.2)) == pytest.approx((1.0, 1 / 3, 1 / 3))


def test_they_pause_while_the_kl_is_far_above_its_mean():
    assert [turn_of(state(pause_kl=0.5, kl=kl)).actor for kl in (0.4, 0.6)] == [1, 0]
    assert turn_of(state(kl=0.6)).actor == 1  # where nobody asked for it


def test_the_weight_of_the_entropy_falls_along_a_cosine():
    weights = [entropy_weight(state(share=x, entropy=0.01, entropy_final=0.001)) for x in (0.0, 0.25, 0.5, 1.0)]
    assert weights == pytest.approx([0.01, 0.001 + 0.009 * (1 + 0.5**0.5) / 2, 0.0055, 0.001])
    assert entropy_weight(state(share=0.7, entropy=0.01)) == 0.01


def test_every_block_of_the_memory_sees_itself_a_summary_and_the_input():
    agent = agent_of(core="blocks")
    p, m = agent.params, agent.model
    g = torch.Generator().manual_seed(2)
    h, x = torch.randn(3, 24, generator=g), torch.randn(3, 20, generator=g)
    whole, own = layers.layer(p, "model/blocks/whole", h), h.split(6, -1)
    weight = p["model/blocks/inside/weight"]
    inside = torch.cat([torch.cat((own[k], whole, x), -1) @ weight[k].T for k in range(4)], -1)
    inside = torch.nn.functional.silu(layers.norm(p, "model/blocks/inside", inside))
    blocks = inside.split(inside.shape[-1] // 4, -1)
    gates = [(blocks[k] @ p["model/blocks/gates/weight"][k].T).split(6, -1) for k in range(4)]
    by_hand = (
        torch.cat([torch.cat([gate[i] for gate in gates], -1) for i in range(3)], -1) + p["model/blocks/gates/bias"]
    )
    assert torch.allclose(m.gates_in_blocks(h, x), by_hand, atol=1e-5)


def test_returns_of_real_rewards_end_in_what_dreams_earn():
    b = agent_of(gamma=0.9, lam=0.5).behaviour
    reward, starts = np.array([9.0, 1.0, 2.0, 3.0, 4.0]), np.array([7.0, 6.0, 5.0, 8.0, 2.0])
    terminal, last = np.array([0.0, 0, 1, 0, 0]), np.array([0.0, 0, 1, 0, 0])  # an episode ends in the third row
    made = lambda x: torch.from_numpy(x.astype(np.float32))[:, None]  # noqa: E731
    batch = SimpleNamespace(reward=made(reward), terminal=made(terminal), last=made(last))
    returns = b.replay_returns(batch, SimpleNamespace(starts=made(starts)))[:, 0]  # type: ignore[arg-type]
    by_hand, after = np.zeros(4), starts[-1]
    for t in range(3, -1, -1):
        lam = 0.5 * (1 - last[t + 1])
        after = reward[t + 1] + 0.9 * (1 - terminal[t + 1]) * ((1 - lam) * starts[t + 1] + lam * after)
        by_hand[t] = after
    assert returns.tolist() == pytest.approx(by_hand.tolist(), 1e-5)
    assert by_hand[1] == 2.0  # nothing comes after the end


def test_a_slow_copy_pulls_at_the_critic_and_follows_it():
    b = agent_of(slow_scale=0.5).behaviour
    g = torch.Generator().manual_seed(3)
    feature, target = torch.randn(5, 24 + 18, generator=g), 20 * torch.rand(5, generator=g)
    logits, slow = b.critic(feature), b.slow_value(feature)
    by_hand = b.support.loss(logits, target) + 0.5 * b.support.loss(logits, slow)
    assert torch.allclose(b.critic_loss(logits, feature, target), by_hand, rtol=1e-4)
    alone = agent_of(slow_scale=0.0).behaviour
    assert torch.allclose(alone.critic_loss(logits, feature, target), b.support.loss(logits, target), rtol=1e-5)
    before, newest = b.slow.flat.clone(), b.params.flat[-b.slow.flat.numel() :]
    b.follow()
    assert torch.allclose(b.slow.flat, before + 0.25 * (newest.detach() - before), atol=1e-6)
