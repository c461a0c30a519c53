"""Does SAC act within its bounds, keep its entropy, and learn what is known?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relab.config import layers, registry
from relab.config.base import ConfigError
from relab.config.layers import Layer
from relab.config.sac import SAC
from relab.record.history import load
from relab.record.spec import Action, Spec
from relab.train.algos import sac
from relab.train.contract import Setup, Stopwatch
from small_runs import run
from train.algos.targets import HIGH, LOW, RUNGS, Target

NO_MEMORY = np.zeros((0, 0), np.float32)
TINY: dict[str, Any] = {"envs": 2, "steps": 16, "learning_starts": 64, "minibatch": 32, "hidden": (16, 16)}


def make(env: Any = "pendulum", total: int = 10_000, seed: int = 0, **cfg: Any) -> sac.State:
    if isinstance(env, str):
        env = registry.env_class(env)(registry.env_params_class(env)(name=registry.resolve_env_name(env)))
    return sac.init(Setup(env, SAC(**TINY | cfg), seed, total))


def train(s: sac.State, steps: int) -> list[dict[str, float]]:
    rows = []
    while s.counts.agent_steps < steps:
        rows.append(sac.iterate(s, Stopwatch()))
    return rows


def streams(rows: int) -> np.ndarray:
    return np.arange(rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


# ---- How it acts


def test_actions_are_in_the_box_and_the_mode_is_the_means_tanh() -> None:
    s = make(Target("both"))
    obs = np.linspace(-50, 50, 2_000, dtype=np.float32)[:, None]
    s.agent.nets.named["actor/2/weight"][:] *= 100
    acted = s.agent.act(obs, NO_MEMORY, streams(2_000), n_mode=1_000)
    mean = s.agent.outputs(s.agent.layouts.actor, obs)[:, :1]
    np.testing.assert_allclose(acted.action[:1_000], np.tanh(mean[:1_000]), atol=1e-6)
    assert np.abs(acted.action).max() <= 1
    assert (acted.action[1_000:] != np.tanh(mean[1_000:])).any()
    sent = s.agent.to_env(acted.action)
    assert sent.min() >= LOW
    assert sent.max() <= HIGH
    assert s.agent.to_env(np.array([[-1.0], [0.0], [1.0]], np.float32))[:, 0].tolist() == [LOW, -1.0, HIGH]


def test_actions_are_drawn_evenly_until_learning_starts() -> None:
    s = make(envs=50, steps=8, learning_starts=2_000, total=9_000)
    train(s, 2_000)
    drawn = s.replay.ring["action"][:40].reshape(-1)
    assert s.counts.updates == 0
    assert len(drawn) == 2_000
    assert np.abs(np.histogram(drawn, 4, (-1, 1))[0] - 500).max() < 100
    assert sac.behaviour(s) is s.agent, "and by the actor from then on"


def test_the_replay_keeps_the_squashed_action() -> None:
    s = make(Target("policy"))
    train(s, 300)
    kept = s.replay.ring[: s.replay.count]
    assert np.abs(kept["action"]).max() <= 1
    np.testing.assert_allclose(kept["reward"], 1 - np.square(kept["action"][..., 0] - 0.5), atol=1e-5)


# ---- What it learns


@pytest.mark.parametrize("rung", RUNGS)
def test_the_ladder(rung: str) -> None:
    """The first rung that fails names the broken part; entropy is worth little, so that values are those of rewards."""
    env = Target(rung, gamma=0.9)
    s = make(env, gamma=0.9, temperature=0.005, lr=3e-3, tau=0.05, hidden=(32, 32), envs=4, updates_per_step=0.5)
    train(s, 2_500)
    for known in env.known:
        obs = np.array([[known.obs]], np.float32)
        assert s.agent.value(obs, NO_MEMORY)[0] == pytest.approx(known.value, abs=0.1), f"value at {known.obs}"
        if known.action is not None:
            acted = s.agent.act(obs, NO_MEMORY, streams(1), n_mode=1)
            assert acted.action[0, 0] == pytest.approx(known.action, abs=0.1), f"action at {known.obs}"


def test_the_width_that_a_temperature_pays_for() -> None:
    """For rewards 1 - (a - c)² the best soft policy is exp(-(a - c)² / alpha): its variance is alpha / 2."""
    s = make(Target("policy"), temperature=0.02, lr=3e-3, tau=0.05, hidden=(32, 32), envs=4)
    train(s, 4_000)
    drawn = s.agent.act(np.zeros((4_000, 1), np.float32), NO_MEMORY, streams(4_000)).action
    assert drawn.std() == pytest.approx(math.sqrt(0.02 / 2), rel=0.2)
    assert drawn.mean() == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("wanted", [0.3, -1.5])
@pytest.mark.some(1)
def test_the_entropy_comes_to_its_target(wanted: float) -> None:
    s = make(Target("policy"), target_entropy=wanted, lr=3e-3, tau=0.05, hidden=(32, 32), envs=4)
    rows = train(s, 6_000)
    last = np.mean([row["policy/entropy"] for row in rows[-10:]])
    assert last == pytest.approx(wanted, abs=0.15)
    assert rows[0]["optim/temperature"] == 1.0
    assert rows[-1]["optim/temperature"] < 0.5, "rewards differ by less than one nat is worth at the start"


def test_a_fixed_temperature_has_no_loss() -> None:
    rows = train(make(temperature=0.2), 200)
    assert {row["optim/temperature"] for row in rows} == {0.2}
    assert "optim/temperature_loss" not in rows[-1]


def test_the_slow_copies_follow_the_critics() -> None:
    s = make(tau=0.25)
    start = s.target.copy()
    train(s, 64)
    assert s.counts.updates == 0
    assert (s.target == start).all()
    train(s, 66)
    first = start + np.float32(0.25) * (s.agent.nets.flat[: start.size] - start)
    assert s.counts.updates > 1
    assert (s.target != first).any()
    s.target[:] = start
    sac.follow_critics(s)
    np.testing.assert_allclose(s.target, first, atol=1e-6)


# ---- What it writes


def test_the_same_bytes_for_a_seed_and_others_for_another() -> None:
    one, same, other = (make(seed=seed) for seed in (3, 3, 4))
    rows = [train(s, 300) for s in (one, same, other)]
    assert rows[0] == rows[1]
    assert (one.agent.nets.flat == same.agent.nets.flat).all()
    assert (one.agent.nets.flat != other.agent.nets.flat).any()


def test_a_run_and_its_record(tmp_path: Path) -> None:
    settings = {"algo": "sac", "env": "pendulum", "total_steps": "640", "algo.learning_starts": "200",
                "algo.steps": "32", "algo.hidden": "[16]", "algo.minibatch": "32", "eval.every": "300",
                "eval.episodes": "2"}  # fmt: skip
    ended = run(tmp_path / "run", **{key.replace(".", "__"): value for key, value in settings.items()})
    history = load(tmp_path / "run")
    assert ended.status == "finished"
    assert history.columns["data/updates"].values[-1] == ended.step - 200
    assert history.columns["value/after_end"].values.max() == 0
    for name in ("value/q_mean", "value/critic_loss", "policy/actor_loss", "policy/entropy", "policy/std_mean",
                 "optim/temperature", "optim/temperature_loss", "data/replay_size", "return/mean"):  # fmt: skip
        assert np.isfinite(history.columns[name].values[-1]), name
    assert (tmp_path / "run" / "data" / "replay" / "fields.json").is_file()


def test_nothing_is_learned_from_beyond_a_termination() -> None:
    rows = train(make(Target("both")), 400)
    assert max(row.get("value/after_end", 0.0) for row in rows) == 0


# ---- What it refuses


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"replay": "10"}, "`replay` must hold a minibatch, but got replay = 10 and minibatch = 128"),
        ({"replay": "300", "envs": "200"}, "n_step \\+ 1 = 2 steps of every world"),
        ({"learning_starts": "2000000"}, "`learning_starts` must not exceed `replay`"),
        ({"temperature": "-1"}, "0 <= `temperature`"),
        ({"temperature": "inf"}, "`temperature` must be a finite number"),
        ({"temperature": "0.1", "target_entropy": "-1"}, "`target_entropy` steers a temperature that is learned"),
        ({"target_entropy": "inf"}, "`target_entropy` must be a finite number"),
        ({"tau": "0"}, "0 < `tau` <= 1"),
    ],
)
def test_settings_that_cannot_work_are_said_with_their_numbers(settings: dict[str, str], message: str) -> None:
    typed = {"algo": "sac", "env": "pendulum", **{f"algo.{key}": value for key, value in settings.items()}}
    with pytest.raises(ConfigError, match=message):
        layers.resolve([Layer("test", typed)])


def test_learning_that_would_start_after_the_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="`learning_starts` = 1,000 must lie before the end"):
        make(total=500, learning_starts=1_000)


def test_discrete_actions_are_refused() -> None:
    with pytest.raises(ConfigError, match="sac needs continuous actions, but cartpole-v1 has discrete ones; try algo"):
        make("cartpole")


def test_actions_without_an_end_are_refused() -> None:
    spec = Spec("open-v1", 1, Action("continuous", 2, low=(-1.0, -math.inf), high=(1.0, math.inf)))
    with pytest.raises(ConfigError, match=r"1 of the 2 components of open-v1 have none; bound them .* algo=ppo"):
        sac.make_agent(SAC(), spec, 0)


def test_another_device_is_refused() -> None:
    with pytest.raises(ConfigError, match="sac runs on the cpu"):
        sac.make_agent(SAC(), make().agent.spec, 0, device="cuda")
