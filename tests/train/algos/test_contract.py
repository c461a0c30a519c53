"""Does every algorithm keep the contract, and does check_algo find those that do not?"""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from relab.config import registry
from relab.train.check_algo import AlgoError, check_algo, train
from relab.train.contract import ContractError, Counts, Setup, Stopwatch
from relab.train.rollout import Acted
from where import ROOT

SMALL: dict[str, dict[str, Any]] = {
    "ppo": {"env": "cartpole", "total_steps": 1024, "algo.envs": 4, "algo.steps": 32, "algo.epochs": 1,
            "eval.every": 300, "eval.episodes": 2, "eval.stop_at": "null"},
    "dqn": {"env": "cartpole", "total_steps": 700, "algo.steps": 16, "algo.learning_starts": 100,
            "algo.replay": 400, "algo.minibatch": 16, "algo.n_step": 2, "eval.every": 200, "eval.episodes": 2,
            "eval.stop_at": "null"},
    "sac": {"env": "pendulum", "total_steps": 640, "algo.envs": 2, "algo.steps": 32, "algo.learning_starts": 100,
            "algo.replay": 400, "algo.minibatch": 16, "algo.n_step": 2, "algo.hidden": [16], "eval.every": 200,
            "eval.episodes": 2},
    "dreamer": {"env": "cartpole", "total_steps": 400, "algo.envs": 2, "algo.steps": 16, "algo.learning_starts": 100,
                "algo.replay": 300, "algo.sequences": 2, "algo.length": 8, "algo.deter": 16, "algo.hidden": 8,
                "algo.stoch": 4, "algo.units": 8, "algo.imagine": 3, "algo.updates_per_step": 0.1, "algo.bins": 11,
                "eval.every": 100, "eval.episodes": 2},
    "tracking_ac": {"env": "torus", "total_steps": 8 * 32 * 4, "algo.trajectories": 4, "algo.horizon": 32,
                    "eval.every": 256, "eval.episodes": 1},
}  # fmt: skip


@pytest.mark.parametrize("name", registry.algo_names())
def test_every_algorithm_keeps_the_contract(name: str) -> None:
    check_algo({"algo": name, **SMALL[name]})


# ---- An algorithm of somebody else: fits a number to a fixed data set, on the clock of its updates


@dataclass(frozen=True)
class Config:
    """Settings of the plug-in."""

    name: str = "toy_algo:Config"  # algorithm
    lr: float = 0.1  # step size

    def check(self) -> None: ...


class Agent:
    memory_dim = 0

    def __init__(self) -> None:
        self.w = np.zeros(1)

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        return Acted(np.full((len(obs_BD), 1), int(self.w[0] > 0.5)), np.zeros(len(obs_BD)), memory_BM)

    def to_env(self, action: np.ndarray) -> np.ndarray:
        return action


class State:
    def __init__(self, lr: float) -> None:
        self.agent, self.counts, self.lr = Agent(), Counts(), lr

    def to_tree(self) -> dict[str, Any]:
        return {"params": {"w": self.agent.w}, "counts": vars(self.counts)}

    def load(self, tree: dict[str, Any]) -> None:
        self.agent.w = tree["params"]["w"].copy()
        self.counts = Counts(**tree["counts"])


def plugin(**other: Any) -> types.ModuleType:
    module = types.ModuleType("toy_algo")

    def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
        for _ in range(10):
            s.agent.w += s.lr * (1.0 - s.agent.w)
            s.counts.updates += 1
        return {"policy/loss": float(np.square(1.0 - s.agent.w).sum()), "data/updates": s.counts.updates}

    def load_agent(agent: Agent, tree: dict[str, Any]) -> None:
        agent.w = tree["params"]["w"].copy()

    parts = {"CLOCK": "updates", "Config": Config, "iterate": iterate, "load_agent": load_agent,
             "make_agent": lambda cfg, spec, seed, device="cpu", threads=1: Agent(),
             "init": lambda setup: State(setup.cfg.lr)}  # fmt: skip
    vars(module).update(parts | other)
    return module


SETTINGS = {"algo": "toy_algo:Config", "env": "cartpole", "total_steps": 100, "eval.every": 30, "eval.episodes": 2,
            "eval.stop_at": "null"}  # fmt: skip


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(**other: Any) -> None:
        monkeypatch.setitem(sys.modules, "toy_algo", plugin(**other))
        monkeypatch.setattr(Config, "__module__", "toy_algo")

    return install


def test_an_offline_algorithm_on_the_clock_of_its_updates(toy: Any) -> None:
    toy()
    assert check_algo(SETTINGS).startswith("toy_algo:Config keeps the contract on cartpole")


def test_what_it_does_not_say_is_not_made_up(toy: Any) -> None:
    """Batches and iterations are no words of this algorithm: nothing is derived from them, and a schedule says so."""
    from relab.config import layers
    from relab.config.base import ConfigError
    from relab.config.layers import Layer
    from relab.train import session
    from relab.train.screen import header

    toy()
    cfg = layers.resolve([Layer("test", {**SETTINGS, "schedule": {"total": 3, "multi_eval": {"episodes": 2}}})]).config
    assert (cfg.batch, cfg.minibatch, cfg.iterations) == (None, None, None)
    assert session.derived(cfg) == {}
    facts = {"name": "x", "algo": "toy", "env": "cartpole-v1", "seed": 0, "config_hash": "h", "derived": {}, "id": "i"}
    assert len(header(facts | {"random": None, "folder": "x"})) == 1
    with pytest.raises(ConfigError, match=r"need `envs` \(worlds\) and `batch`"):
        session.companions_of(cfg, session.make_env(cfg))


def test_every_row_and_event_is_on_its_clock(toy: Any, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from relab.base.jsonl import read_jsonl
    from relab.record.run_folder import append_event_to
    from relab.train.screen import Plain

    toy()
    train(tmp_path / "run", {key: str(value) for key, value in SETTINGS.items()}, Plain())
    append_event_to(tmp_path / "run", "evaluation", 100)
    for name in ("metrics", "evals", "timing", "events"):
        rows, _ = read_jsonl(tmp_path / "run" / f"{name}.jsonl")
        assert {row["axis"] for row in rows} == {"updates"}, name
    shown = capsys.readouterr().out
    assert "/100 updates" in shown
    assert "100 updates in" in shown
    assert " steps" not in shown


def forgetful(self: Any, tree: dict[str, Any]) -> None:
    self.counts = Counts(**tree["counts"])


def random_step(s: Any, watch: Any) -> dict[str, float]:
    s.agent.w += np.random.default_rng().normal()  # a draw from nowhere
    s.counts.updates += 10
    return {"policy/loss": float(s.agent.w[0]), "data/updates": s.counts.updates}


def standing(s: Any, watch: Any) -> dict[str, float]:
    return {"policy/loss": 0.0}


def arrays(s: Any, watch: Any) -> dict[str, Any]:
    s.counts.updates += 50
    return {"policy/loss": np.zeros(1)}


def counting_act(self: Any, obs: np.ndarray, memory: np.ndarray, rng: np.ndarray, n_mode: int = 0) -> Acted:
    self.w = self.w + 1e-6
    return Acted(np.zeros((len(obs), 1), np.int64), np.zeros(len(obs)), memory)


def test_what_does_not_keep_it_is_named(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    toy(CLOCK="seconds")
    with pytest.raises(ContractError, match="must declare CLOCK as one of agent_steps, updates, iteration"):
        check_algo(SETTINGS)
    toy(iterate=None)
    with pytest.raises(ContractError, match="lacks iterate"):
        check_algo(SETTINGS)
    toy(iterate=standing)
    with pytest.raises(ContractError, match="must move the clock"):
        check_algo(SETTINGS)
    toy(iterate=arrays)
    with pytest.raises(ContractError, match=r"must be one number, but .* gave `policy/loss` as array"):
        check_algo(SETTINGS)
    toy(iterate=random_step)
    with pytest.raises(AlgoError, match="Two runs of one config and seed must have the same bytes"):
        check_algo(SETTINGS)


def test_an_evaluation_that_leaves_a_trace_is_named(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    toy()
    monkeypatch.setattr(Agent, "act", counting_act)
    with pytest.raises(AlgoError, match="training must not depend on evaluations"):
        check_algo(SETTINGS)


def test_a_state_that_is_not_whole_is_named(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    toy()
    monkeypatch.setattr(State, "load", forgetful)
    with pytest.raises(AlgoError, match="interrupted and resumed"):
        check_algo(SETTINGS)


def test_what_acting_needs_besides_its_weights_is_named(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It resumes, for its own tree has it; another run would act otherwise with the same weights."""

    def turning(s: Any, watch: Any) -> dict[str, float]:
        s.agent.turned = 1
        s.counts.updates += 10
        return {"policy/loss": 0.0, "data/updates": s.counts.updates}

    def turned_act(self: Any, obs: np.ndarray, memory: np.ndarray, rng: np.ndarray, n_mode: int = 0) -> Acted:
        return Acted(np.full((len(obs), 1), self.turned), np.zeros(len(obs)), memory)

    def load(self: Any, tree: dict[str, Any]) -> None:
        load_agent(self.agent, tree)
        self.counts = Counts(**tree["counts"])

    def load_agent(agent: Any, tree: dict[str, Any]) -> None:
        agent.w, agent.turned = tree["params"]["w"].copy(), tree["turned"]

    tree = State.to_tree
    monkeypatch.setattr(Agent, "turned", 0, raising=False)
    monkeypatch.setattr(Agent, "act", turned_act)
    monkeypatch.setattr(State, "to_tree", lambda self: {**tree(self), "turned": self.agent.turned})
    monkeypatch.setattr(State, "load", load)
    toy(iterate=turning, load_agent=load_agent)
    with pytest.raises(AlgoError, match="outside of `params` and `obs_scale`"):
        check_algo(SETTINGS)


def test_the_stopwatch_knows_two_parts() -> None:
    watch = Stopwatch()
    with watch("collect"):
        pass
    with pytest.raises(ContractError, match="collect and update"), watch("lunch"):
        pass
    assert Setup(env=None, cfg=None, seed=0, total=1).data.lengths() == {}  # type: ignore[arg-type]


def test_the_page_on_an_algorithm_of_your_own(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module as it stands there, in a folder of somebody's own."""
    page = (ROOT / "docs" / "algorithms" / "your-own.md").read_text(encoding="utf-8")
    (tmp_path / "climber.py").write_text(page.split("```python\n")[1].split("```")[0])
    monkeypatch.syspath_prepend(tmp_path)
    check_algo({"algo": "climber:Config", "env": "cartpole", "total_steps": 3000, "eval.episodes": 2})


def test_only_probes_that_the_run_can_answer_are_offered(
    toy: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from relab import cli

    toy()
    train(tmp_path / "run", {key: str(value) for key, value in SETTINGS.items()})
    assert cli.main(["probe", str(tmp_path / "run")]) == 0
    assert "(only if its agent has `value` and its settings have `gamma`" in capsys.readouterr().out
    assert cli.main(["probe", str(tmp_path / "run"), "--trust"]) == 0
    assert capsys.readouterr().out.startswith("toy_algo:Config has no probes: its agent has no `value`")
    monkeypatch.setattr(Agent, "value", lambda self, obs, memory: np.zeros(len(obs)), raising=False)
    monkeypatch.setattr(Config, "gamma", 0.9, raising=False)
    assert cli.main(["probe", str(tmp_path / "run"), "--trust"]) == 0
    assert capsys.readouterr().out.startswith("value_vs_rerun ")
