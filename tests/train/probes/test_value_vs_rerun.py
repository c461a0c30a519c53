"""Does the probe find what the critic promises too much, and does a run not notice that it was asked?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from relab.base.jsonl import read_jsonl
from relab.commands.probe import untaught
from relab.config.base import ConfigError
from relab.config.probes import Probes, ValueVsRerun
from relab.config.run import RunConfig
from relab.train import fresh, probes, session
from relab.train.check_algo import check_algo
from relab.train.contract import Counts
from relab.train.envs import ladder
from relab.train.envs.cartpole import CartPole
from relab.train.envs.herd import Herd
from relab.train.probes.companion import ProbeCompanion
from relab.train.probes.round import Round
from relab.train.probes.value_vs_rerun import per_world, reward_scale, steps_of, value_vs_rerun, visited
from relab.train.rollout import Acted, RandomPolicy
from small_runs import resolve, run

DQN = {
    "algo": "dqn",
    "total_steps": "1000",
    "algo__steps": "16",
    "algo__learning_starts": "100",
    "algo__minibatch": "16",
}


class Believer(RandomPolicy):
    """A policy with an opinion of every state."""

    def __init__(self, action: Any, opinion: Any):
        super().__init__(action)
        self.opinion = opinion

    def value(self, obs_BD: np.ndarray, memory_BM: np.ndarray) -> np.ndarray:
        return np.asarray(self.opinion(obs_BD))


@dataclass
class State:
    agent: Any
    counts: Counts = field(default_factory=Counts)
    tree: dict[str, Any] = field(default_factory=dict)

    def to_tree(self) -> dict[str, Any]:
        return self.tree


def asked(env: Any, opinion: Any, gamma: float = 0.9, **settings: Any) -> Any:
    agent = Believer(env.spec.action, opinion)
    cfg = Probes(value_vs_rerun=ValueVsRerun(**settings))
    return Round(env, State(agent), cfg, seed=1, gamma=gamma, step=0)


# ---- Known answers


def test_a_critic_that_is_right_has_no_gap() -> None:
    right = lambda obs: np.where(obs[:, 0] == 0.0, 0.9, 1.0)  # noqa: E731
    (found,) = value_vs_rerun(asked(ladder.Discount(), right, spread=8))
    assert (found.value, found.noise, found.n, found.unit) == (pytest.approx(0.0), pytest.approx(0.0), 32, "return")
    assert found.more["correlation"] == pytest.approx(1.0)
    assert found.more["capped_share"] == 0.0


def test_a_critic_that_promises_too_much_is_told_by_how_much() -> None:
    (found,) = value_vs_rerun(asked(ladder.Discount(), lambda obs: np.full(len(obs), 2.0), spread=8))
    seen = asked(ladder.Discount(), None, spread=8)
    starts = visited(seen, seen.state.agent, 32, 8, "value_vs_rerun").obs_BD[:, 0]
    assert 0 < starts.mean() < 1, "both kinds of state are looked at"
    assert found.value == pytest.approx(2.0 - np.where(starts == 0.0, 0.9, 1.0).mean())
    assert found.more["correlation"] is None, "an opinion that does not vary knows no state from another"


def test_noise_is_the_standard_error_over_worlds() -> None:
    (found,) = value_vs_rerun(asked(ladder.Policy(), lambda obs: np.zeros(len(obs)), starts=64, reruns=1, spread=1))
    assert found.noise == pytest.approx(1 / math.sqrt(64), rel=0.05), "a fair coin of +-1"
    assert abs(found.value) < 4 * found.noise


def test_a_policy_is_rolled_as_its_value_means_it() -> None:
    env = ladder.Policy()
    at = asked(env, lambda obs: np.ones(len(obs)), spread=1)

    def act(obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        return Acted(np.full((len(obs_BD), 1), int(n_mode == len(obs_BD))), np.zeros(len(obs_BD)), memory_BM)

    at.state.agent.act = act
    assert value_vs_rerun(at)[0].value == 2.0
    at.state.agent.value_of = "det"
    assert value_vs_rerun(at)[0].value == 0.0


def test_a_critic_of_scaled_rewards_is_asked_in_returns() -> None:
    at = asked(ladder.Value(), lambda obs: np.full(len(obs), 0.5), spread=1)
    assert value_vs_rerun(at)[0].value == pytest.approx(-0.5)
    at.state.tree = {"reward_scale": {"mean": np.zeros(1), "var": np.array([4.0]), "count": np.array([7.0])}}
    assert reward_scale(at) == pytest.approx(2.0)
    assert value_vs_rerun(at)[0].value == pytest.approx(0.0, abs=1e-6)
    at.state.tree["reward_scale"]["count"][:] = 0
    assert reward_scale(at) == 1.0, "before the first reward nothing was divided"


def test_reruns_go_past_a_time_limit_that_cuts() -> None:
    at = asked(CartPole(), lambda obs: np.zeros(len(obs)), starts=4, reruns=2, spread=1, cap=40)
    at.state.agent.act = lambda obs, memory, rng, n_mode=0: Acted(
        (obs[:, 2:3] + 0.5 * obs[:, 3:4] > 0).astype(np.int64), np.zeros(len(obs)), memory
    )
    object.__setattr__(at.env.spec, "horizon", 5)
    assert value_vs_rerun(at)[0].more["return_mean"] == pytest.approx((1 - 0.9**40) / 0.1)
    object.__setattr__(at.env.spec, "timeout_is_terminal", True)
    assert value_vs_rerun(at)[0].more["return_mean"] == pytest.approx((1 - 0.9**5) / 0.1)


def test_agents_of_a_world_are_one_sample() -> None:
    assert per_world(np.array([1.0, 3.0, np.nan, 5.0, np.nan, np.nan]), 2).tolist() == [2.0, 5.0]
    (found,) = value_vs_rerun(asked(Herd(), lambda obs: np.zeros(len(obs)), starts=4, reruns=2, spread=5, cap=20))
    assert found.n == 4
    assert math.isfinite(found.value)


def test_the_discount_says_how_far_it_looks() -> None:
    assert [steps_of(gamma, 1000) for gamma in (0.0, 0.9, 0.99, 0.9999, 1.0)] == [1, 66, 688, 1000, 1000]


def test_the_bridge_to_gymnasium_is_asked_too() -> None:
    from relab.config import registry
    from relab.config.layers import Layer
    from relab.config.layers import resolve as resolved

    cfg = resolved([Layer("test", {"env": "gym:CartPole-v1"})]).config
    env = registry.env_class(cfg.env.name)(cfg.env)
    at = asked(env, lambda obs: np.zeros(len(obs)), starts=6, reruns=2, spread=30, cap=20)
    assert value_vs_rerun(at)[0].more["return_mean"] > 1.0


# ---- In a run


@pytest.mark.parametrize("settings", [{}, {"algo__rnn": "gru", "algo__bptt": "4"}, {"algo__norm_return": "true"}, DQN],
                         ids=["ppo", "recurrent", "scaled", "dqn"])  # fmt: skip
@pytest.mark.some(1)
def test_a_run_does_not_notice_it(settings: dict[str, str], tmp_path: Path) -> None:
    few = {"probes__value_vs_rerun__starts": "4", "probes__value_vs_rerun__reruns": "2", "probes__every": "3"}
    run(tmp_path / "without", **settings)
    run(tmp_path / "with", **settings, **few)
    for name in ("metrics.jsonl", "evals.jsonl"):
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "without" / name).read_bytes(), name
    rows = read_jsonl(tmp_path / "with" / "probes.jsonl")[0]
    last = read_jsonl(tmp_path / "with" / "metrics.jsonl")[0][-1]
    assert rows[-1]["step"] == last["step"], "the last iteration has one as well"
    assert [row["iteration"] for row in rows[:2]] == [4, 7]
    assert {row["metric"] for row in rows} == {"value_gap"}


def test_a_checkpoint_is_asked_as_training_asked(tmp_path: Path) -> None:
    run(tmp_path / "run", probes__every="0", probes__value_vs_rerun__starts="4")
    (row,) = read_jsonl(tmp_path / "run" / "probes.jsonl")[0]
    (again,) = fresh.probe(tmp_path / "run", "latest", probes.check("value_vs_rerun", "ppo"), {})
    assert {key: row[key] for key in again} == again


@pytest.mark.slow
def test_resumed_it_writes_the_same_probes() -> None:
    check_algo({"algo": "ppo", "env": "cartpole", "total_steps": 1024, "algo.envs": 4, "algo.steps": 32,
                "algo.epochs": 1, "eval.every": 300, "eval.episodes": 2, "eval.stop_at": "null", "probes.every": 2,
                "probes.value_vs_rerun.starts": 3, "probes.value_vs_rerun.reruns": 2,
                "probes.plateau.enabled": "true", "probes.plateau.window": 3, "probes.plateau.z": 9.0,
                "probes.plateau.min_iter": 3})  # fmt: skip


# ---- Algorithms without


def companion(cfg: RunConfig) -> ProbeCompanion:
    made: Any = session.companions_of(cfg, session.make_env(cfg))["probes"]
    return made


def test_an_algorithm_without_values_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from relab.train.algos import dqn

    monkeypatch.delattr(dqn.Agent, "value")
    with pytest.raises(ConfigError, match="its agent has no `value`"):
        companion(resolve(**DQN, probes__every="5").config)


def test_without_a_loss_there_is_no_plateau_and_it_says_so() -> None:
    made = companion(resolve(probes__plateau__enabled="true", probes__plateau__window="3").config)
    said: list[str] = []
    trainer = SimpleNamespace(warn=lambda about, message: said.append(message))
    for iteration in range(1, 25):
        made.note_loss(trainer, iteration, {"return/mean": 1.0})
    assert "value/critic_loss" in said[0]
    made.note_loss(trainer, 25, {"value/loss": 2.0, "policy/loss": 3.0})
    assert made.losses == [2.0]


def test_a_critic_that_nobody_taught_is_said_to_be_as_it_began():
    assert "actor and critic are as they began" in untaught({"name": "dreamer", "mode": "model"}, "value_vs_rerun")
    assert untaught({"name": "dreamer", "mode": "full"}, "value_vs_rerun") == ""
    assert untaught({"name": "dreamer", "mode": "model"}, "open_loop") == ""
