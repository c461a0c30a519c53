"""Is DQN's step the one its equation says, and does it learn what is known?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relab.config import layers, registry
from relab.config.base import ConfigError
from relab.config.dqn import DQN
from relab.config.layers import Layer
from relab.record.history import load
from relab.train.algos import dqn
from relab.train.algos.gathering import due
from relab.train.contract import Counts, Setup, Stopwatch
from relab.train.nets import q_learning
from relab.train.nets.mlps import Networks, follow
from small_runs import run


def make(name: str, total: int = 10_000, seed: int = 0, **cfg: Any) -> dqn.State:
    params = registry.env_params_class(name)(name=registry.resolve_env_name(name))
    return dqn.init(Setup(registry.env_class(name)(params), DQN(**cfg), seed, total))


# ---- One step, against automatic differentiation


def torch_q(nets: Networks, flat: torch.Tensor, x: torch.Tensor, dueling: bool) -> torch.Tensor:
    net = nets.layouts["q"]
    for layer in range(len(net.sizes) - 1):
        rows, cols = int(net.sizes[layer + 1]), int(net.sizes[layer])
        weight = flat[net.weight[layer] : net.weight[layer] + rows * cols].reshape(rows, cols)
        x = x @ weight.T + flat[net.bias[layer] : net.bias[layer] + rows]
        x = torch.relu(x) if layer < len(net.sizes) - 2 else x
    return x[:, -1:] + x[:, :-1] - x[:, :-1].mean(1, keepdim=True) if dueling else x


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
def test_the_gradient_is_that_of_the_equation(double: bool, dueling: bool) -> None:
    rng, rows, choices = np.random.default_rng(3), 17, 3
    nets = Networks({"q": (4, 16, 8, choices + dueling)}, "relu", rng)
    target = nets.flat + rng.normal(0, 0.1, nets.flat.size).astype(np.float32)
    obs, after = (rng.normal(size=(rows, 4)).astype(np.float32) for _ in range(2))
    action, ret = rng.integers(choices, size=rows), rng.normal(0, 2, rows).astype(np.float32)
    discount = np.where(rng.random(rows) < 0.3, 0, 0.9).astype(np.float32)
    grad, stats = np.empty_like(nets.flat), np.empty(6)
    room = q_learning.room(rows, nets.layouts["q"])
    ended = discount == 0
    q_learning.q_gradient(nets.flat, target, nets.layouts["q"], obs, action, ret, discount, after, ended, double,
                          dueling, *room, grad, stats)  # fmt: skip

    theta = torch.tensor(nets.flat, requires_grad=True)
    with torch.no_grad():
        slow = torch_q(nets, torch.tensor(target), torch.tensor(after), dueling)
        chosen = torch_q(nets, theta, torch.tensor(after), dueling) if double else slow
        y = torch.tensor(ret) + torch.tensor(discount) * slow.gather(1, chosen.argmax(1, keepdim=True))[:, 0]
    q = torch_q(nets, theta, torch.tensor(obs), dueling).gather(1, torch.tensor(action)[:, None])[:, 0]
    loss = torch.nn.functional.smooth_l1_loss(q, y)
    loss.backward()
    assert theta.grad is not None
    np.testing.assert_allclose(grad, theta.grad.numpy(), rtol=1e-4, atol=1e-6)
    found = q_learning.QStats(*stats)
    assert found.loss == pytest.approx(loss.item(), rel=1e-4)
    assert (found.q_mean, found.target_mean) == pytest.approx((q.mean().item(), y.mean().item()), rel=1e-4, abs=1e-6)
    assert found.after_end == 0
    q_learning.q_gradient(nets.flat, target, nets.layouts["q"], obs, action, ret, np.full_like(discount, 0.9), after,
                          ended, double, dueling, *room, grad, stats)  # fmt: skip
    assert q_learning.QStats(*stats).after_end > 0, "a mask that is missing shows"


def test_the_target_follows() -> None:
    target, theta = np.zeros(3, np.float32), np.ones(3, np.float32)
    follow(target, theta, 0.25)
    assert target.tolist() == [0.25] * 3
    follow(target, theta, 1.0)
    assert target.tolist() == [1.0] * 3


# ---- When


def test_updates_fall_due_by_agent_steps() -> None:
    counts = Counts(agent_steps=90)
    assert due(counts, 100, 0.5) == 0
    counts.agent_steps = 110
    assert due(counts, 100, 0.5) == 5
    counts.updates = 3
    assert due(counts, 100, 0.5) == 2


def test_exploration_falls_in_a_line() -> None:
    cfg = DQN(epsilon=1.0, epsilon_final=0.1, epsilon_until=0.5)
    assert [dqn.exploration(cfg, used) for used in (0, 0.25, 0.5, 1)] == pytest.approx([1.0, 0.55, 0.1, 0.1])


def test_the_share_of_random_actions_and_the_greedy_rows() -> None:
    s = make("cartpole")
    obs = np.zeros((20_000, 4), np.float32)
    s.agent.nets.named["q/2/bias"][:] = [0.0, 1.0]
    s.agent.nets.named["q/2/weight"][:] = 0
    s.agent.epsilon = 0.3
    streams = np.arange(20_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    acted = s.agent.act(obs, np.zeros((0, 0), np.float32), streams, n_mode=5_000)
    assert (acted.action[:5_000] == 1).all()
    assert (acted.action[5_000:] == 0).mean() == pytest.approx(0.15, abs=0.01)
    assert np.exp(acted.logp[5_000:][acted.action[5_000:, 0] == 1]) == pytest.approx(0.85)


# ---- What it stores


def test_successors_at_ends_are_what_the_agent_saw() -> None:
    s = make("cartpole", envs=6, steps=50, learning_starts=9_000)
    for _ in range(12):
        dqn.iterate(s, Stopwatch())
    ring = s.replay.ring[: s.replay.count]
    over = ring["terminated"] | ring["truncated"]
    assert ring["terminated"].any()
    follows = ring["next_obs"][:-1] == ring["obs"][1:]
    assert follows.all(-1)[~over[:-1]].all()
    assert not follows.all(-1)[over[:-1]].any()
    fallen = np.abs(ring["next_obs"][ring["terminated"]])
    assert ((fallen[:, 0] > 2.4) | (fallen[:, 2] > 0.2)).all(), "a pole that fell is seen fallen"


# ---- What it learns


@pytest.mark.parametrize("rung", ["value", "backprop", "discount", "policy", "both"])
def test_the_ladder(rung: str) -> None:
    s = make(f"ladder-{rung}", envs=8, steps=32, learning_starts=100, updates_per_step=0.5, minibatch=32, lr=3e-3,
             gamma=0.9, target_every=20, hidden=(32, 32), epsilon_until=0.5, total=6_000)  # fmt: skip
    while s.counts.agent_steps < 6_000:
        dqn.iterate(s, Stopwatch())
    for answer in s.gathering.worlds.env.answers:  # type: ignore[attr-defined]
        obs = np.array([[answer.obs]], np.float32)
        value = s.agent.value(obs, np.zeros((0, 0), np.float32))[0]
        assert value == pytest.approx(answer.value(0.9), abs=0.1)
        if answer.action is not None:
            acted = s.agent.act(obs, np.zeros((0, 0), np.float32), np.zeros(1, np.uint64), n_mode=1)
            assert acted.action[0, 0] == answer.action


def test_a_run_and_its_record(tmp_path: Path) -> None:
    settings = {"algo": "dqn", "total_steps": "1200", "algo.learning_starts": "200", "algo.steps": "32",
                "algo.updates_per_step": "0.25", "eval.every": "400", "eval.episodes": "2",
                "eval.stop_at": "null"}  # fmt: skip
    ended = run(tmp_path / "run", **{key.replace(".", "__"): value for key, value in settings.items()})
    history = load(tmp_path / "run")
    assert ended.status == "finished"
    assert history.columns["data/updates"].values[-1] == pytest.approx((ended.step - 200) * 0.25, abs=1)
    assert history.columns["value/after_end"].values.max() == 0
    for name in ("value/q_mean", "value/critic_loss", "policy/exploration", "data/replay_size", "return/mean"):
        assert np.isfinite(history.columns[name].values[-1])
    assert (tmp_path / "run" / "data" / "replay" / "fields.json").is_file()


# ---- What it refuses


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"replay": "10"}, "`replay` must hold a minibatch"),
        ({"replay": "100", "envs": "64", "minibatch": "64", "n_step": "1"}, "n_step \\+ 1 = 2 steps of every world"),
        ({"learning_starts": "200000"}, "`learning_starts` must not exceed `replay`"),
        ({"hidden": "[9999999]"}, "at most 65,536 units"),
        ({"replay": "99999999999"}, "at most 1,073,741,824 transitions"),
    ],
)
def test_settings_that_cannot_work_are_said_with_their_numbers(settings: dict[str, str], message: str) -> None:
    typed = {"algo": "dqn", "env": "cartpole", **{f"algo.{key}": value for key, value in settings.items()}}
    with pytest.raises(ConfigError, match=message):
        layers.resolve([Layer("test", typed)])


def test_learning_that_would_start_after_the_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="`learning_starts` = 1,000 must lie before the end"):
        make("cartpole", total=500)


def test_continuous_actions_are_refused() -> None:
    message = (
        "dqn needs one discrete choice per step, but an action of pendulum-v1 is continuous and has 1 component; try"
    )
    with pytest.raises(ConfigError, match=message):
        make("pendulum")
