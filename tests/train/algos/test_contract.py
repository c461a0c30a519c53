"""Does every algorithm keep the contract, and does check_algo find those that do not?"""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from relab.base.errors import UserError
from relab.config import registry
from relab.record.spec import Action
from relab.train import session
from relab.train.check_acting import check_acting
from relab.train.check_algo import AlgoError, Interrupter, check_algo, train
from relab.train.contract import ContractError, Counts, Setup, Stopwatch
from relab.train.envs.cartpole import CartPole
from relab.train.fresh import load_agent as load_checkpoint
from relab.train.kernels.rng import fill_uniform
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
                "algo.acting_rate": 1.0,  # another run takes the weights that learn, not their average
                "eval.every": 100, "eval.episodes": 2},
    "critic": {"env": "ladder-both", "total_steps": 8, "algo.envs": 12, "algo.steps": 8, "algo.hidden": [16],
               "algo.minibatches": 2, "eval.every": 2, "eval.episodes": 2},
    "finetune": {"env": "ladder-both", "total_steps": 8, "algo.envs": 8, "algo.steps": 8, "algo.hidden": [16],
                 "algo.epochs": 2, "algo.minibatches": 2, "algo.critic": "start", "eval.every": 2,
                 "eval.episodes": 2},
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


# ---- Mistakes that are the plug-in's are told as such


def without(*keys: str, **more: Any) -> Any:
    return lambda self: {k: v for k, v in TREE(self).items() if k not in keys} | more


def gives(**parts: Any) -> Any:
    """An `act` whose result has these parts instead."""

    def act(self: Any, obs: np.ndarray, memory: np.ndarray, rng: np.ndarray, n_mode: int = 0) -> Any:
        acted = Acted(np.zeros((len(obs), 1), np.int64), np.zeros(len(obs)), memory)
        return parts.get("itself", acted) if "itself" in parts else replace(acted, **parts)

    return act


TREE = State.to_tree
SLIPS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    # what is wrong -> parts of the module, of the State, of the Agent, what is said
    "no params": ({}, {"to_tree": without("params")}, {}, "must hold the weights by name below `params`"),
    "no weights": ({}, {"to_tree": without(params={})}, {}, "toy_algo:Config gave a tree .* `params` is empty"),
    "params is a list": ({}, {"to_tree": without(params=[1])}, {}, "`params` is a list"),
    "no counts": ({}, {"to_tree": without("counts")}, {}, "below `counts`, with its clock `updates`"),
    "too deep": ({}, {"to_tree": without(a={"b": {"c": np.ones(2)}})}, {}, "cannot be written .* optimiser of torch"),
    "a generator": ({}, {"to_tree": without(a=np.random.default_rng())}, {}, "cannot be written .* a Generator"),
    "numbers for names": ({}, {"to_tree": without(a={0: np.ones(2)})}, {}, "cannot be written"),
    "objects": ({}, {"to_tree": without(a=np.array([None]))}, {}, "an array of object, not of numbers"),
    "no row": (
        {"iterate": lambda s, watch: vars(s.counts).update(updates=50)},
        {},
        {},
        "toy_algo:Config returned None",
    ),
    "no name": (
        {"iterate": lambda s, watch: vars(s.counts).update(updates=50) or {1: 2.0}},
        {},
        {},
        "gave one called 1",
    ),
    "half steps": ({"iterate": lambda s, watch: vars(s.counts).update(updates=0.5) or {}}, {}, {}, "stands at 0.5"),
    "no state": ({"init": lambda setup: None}, {}, {}, "returned None without agent, counts, to_tree, load"),
    "no memory": ({}, {}, {"memory_dim": 4, "act": gives(memory=None)}, r"\[rows, memory_dim\] = \[\d+, 4\], .* None"),
    "no Acted": ({}, {}, {"act": gives(itself=np.zeros(3))}, "must return a relab.train.rollout.Acted"),
    "one action": ({}, {}, {"act": gives(action=np.zeros((1, 1), np.int64))}, "an action for each of the 4 rows"),
    "no such action": ({}, {}, {"to_env": lambda self, a: a + 7}, "must be in 0..1, .* mend `act` or `to_env`"),
    "too few actions": ({}, {}, {"to_env": lambda self, a: a[:1]}, r"`to_env` must give actions .* shape \(1, 1\)"),
    "no memory_dim": ({}, {}, {"memory_dim": None}, "made a Agent without memory_dim"),
    "other words": ({}, {}, {"act": lambda self, obs: None}, r"must take \(obs_BD, memory_BM, rng_B, n_mode\)"),
    "short maker": (
        {"make_agent": lambda cfg, spec: Agent()},
        {},
        {},
        r"must take \(cfg, spec, seed, device, threads\)",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_of_a_plug_in_is_told_with_its_name_and_the_remedy(
    slip: str, toy: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, state, agent, said = SLIPS[slip]
    toy(**module)
    for owner, parts in ((State, state), (Agent, agent)):
        for name, part in parts.items():
            monkeypatch.setattr(owner, name, part)
    typed = {key: str(value) for key, value in SETTINGS.items()}
    with pytest.raises(UserError, match=said) as caught:
        train(tmp_path / "run", typed)
    assert caught.value.exit_code == 64


def test_a_config_without_a_name_is_told(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "nameless.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Config:\n    lr: float = 1\n"
    )
    with pytest.raises(UserError, match=r'field `name: str`, .* add `name: str = "nameless:Config"`'):
        registry.algo_config_class("nameless:Config")
    (tmp_path / "slip.py").write_text("def x(:\n")
    with pytest.raises(UserError, match=r"must be importable as slip:Config, but SyntaxError: .* line 1"):
        registry.algo_config_class("slip:Config")


def test_weights_that_load_agent_does_not_find_are_the_plug_ins(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "algorithms" / "your-own.md").read_text(encoding="utf-8")
    text = (
        page.split("```python\n")[1]
        .split("```")[0]
        .replace('agent.w = tree["params"]["w"]', 'agent.w = tree["params"]["v"]')
    )
    (tmp_path / "climbing.py").write_text(text.replace("climber:Config", "climbing:Config"))
    monkeypatch.syspath_prepend(tmp_path)
    typed = {"algo": "climbing:Config", "env": "cartpole", "total_steps": "50", "eval.episodes": "2"}
    train(tmp_path / "run", typed)
    with pytest.raises(UserError, match=r"by the plug-in climbing:Config \(.*climbing.py:\d+\): KeyError: 'v'; `load`"):
        load_checkpoint(tmp_path / "run", "latest", trust=True)


# ---- Agents and states that train, and are not what they seem


def drawing(spec: Any = None, *, streams: Any = None, mode: bool = True, advance: bool = True) -> Any:
    """An `act` that draws one of two actions a row."""

    def act(self: Any, obs: np.ndarray, memory: np.ndarray, rng: np.ndarray, n_mode: int = 0) -> Acted:
        u = np.empty((len(obs), 1))
        fill_uniform(rng if advance else rng.copy(), u)
        u = u if streams is None else streams(u)
        action = (u > 0.5).astype(np.int64)
        action[: n_mode if mode else 0] = 0
        return Acted(action, np.zeros(len(obs)), memory)

    return act


def by_rows(self: Any, obs: np.ndarray, memory: np.ndarray, rng: np.ndarray, n_mode: int = 0) -> Acted:
    return Acted((obs[:, :1] > obs[:, :1].mean()).astype(np.int64), np.zeros(len(obs)), memory)


def in_place(self: Any, obs: np.ndarray, memory: np.ndarray, rng: np.ndarray, n_mode: int = 0) -> Acted:
    obs -= 1.0
    return Acted((obs[:, :1] > 0).astype(np.int64), np.zeros(len(obs)), memory)


def by_calls(self: Any, obs: np.ndarray, memory: np.ndarray, rng: np.ndarray, n_mode: int = 0) -> Acted:
    self.calls = getattr(self, "calls", 0) + 1
    return Acted(np.full((len(obs), 1), self.calls % 2), np.zeros(len(obs)), memory)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"act": by_rows}, "must not depend on the other rows, .* a mean over the rows"),
        ({"act": drawing(streams=lambda u: np.broadcast_to(u[:1], u.shape))}, "must not depend on the other rows"),
        ({"act": drawing(mode=False)}, "the mode must not depend on the random streams"),
        ({"act": drawing(advance=False)}, "must advance the streams that it draws from"),
        ({"act": in_place}, "must leave the observations as they are"),
        ({"act": by_calls}, "must give the same for the same observations"),
        ({"value": lambda self, obs, memory: np.zeros((len(obs), 1))}, r"one number for each row, .* \(64, 1\)"),
    ],
)
def test_an_agent_that_acts_otherwise_is_named(
    parts: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, part in parts.items():
        monkeypatch.setattr(Agent, name, part, raising=False)
    spec = CartPole().spec
    with pytest.raises(AlgoError, match=said):
        check_acting(Agent(), spec, "toy")


def test_a_sound_agent_is_let_pass_and_one_outside_of_its_box_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Agent, "act", drawing())
    check_acting(Agent(), CartPole().spec, "toy")
    spec = replace(CartPole().spec, action=Action("continuous", 1, low=(-0.5,), high=(0.5,)))
    with pytest.raises(AlgoError, match=r"actions between \[-0.5\] and \[0.5\], but toy gave 0 to 1"):
        check_acting(Agent(), spec, "toy")
    monkeypatch.setattr(Agent, "act", flagged)
    with pytest.raises(AlgoError, match="the first n_mode rows must take the mode"):
        check_acting(Agent(), CartPole().spec, "toy")


def flagged(self: Any, obs: np.ndarray, memory: np.ndarray, rng: np.ndarray, n_mode: int = 0) -> Acted:
    return drawing()(self, obs, memory, rng, len(obs) if n_mode else 0)


def stepping(seed: int | None = None, env_steps: int = 20, window: bool = False, **row: float) -> Any:
    """An `iterate` that walks through worlds; `seed`: its own, whatever the run's; `window`: of returns, in no tree."""

    def iterate(s: Any, watch: Any) -> dict[str, float]:
        k = s.counts.iteration = s.counts.iteration + 1
        drawn = np.random.default_rng([s.seed if seed is None else seed, k]).normal()
        s.counts.updates, s.counts.env_steps = s.counts.updates + 10, s.counts.env_steps + env_steps
        s.counts.agent_steps += 20
        s.recent = [*getattr(s, "recent", []), drawn] if k % 4 == 1 else getattr(s, "recent", [])
        more = {"return/mean_100": float(np.mean(s.recent))} if window and s.recent else {}
        return {"policy/loss": drawn, "data/updates": s.counts.updates} | more | row

    return iterate


@pytest.mark.parametrize(
    ("iterate", "said"),
    [
        (stepping(), ""),
        (stepping(seed=3), "another seed must give another run"),
        (stepping(env_steps=7), "must be counted in `counts.env_steps`"),
        (
            stepping(**{"policy/exploration": 7.0}),
            "`policy/exploration` must lie between 0 and 1 .* logged 7 at step 10",
        ),
        (stepping(window=True), "interrupted and resumed"),
    ],
)
def test_a_state_that_is_not_what_it_seems_is_named(
    iterate: Any, said: str, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(setup: Any) -> State:
        state = State(0.1)
        state.seed = setup.seed  # type: ignore[attr-defined]
        return state

    toy(iterate=iterate, init=init)
    if not said:
        check_algo(SETTINGS)
        return
    with pytest.raises(AlgoError, match=said):
        check_algo(SETTINGS)


def test_the_stopwatch_knows_its_parts() -> None:
    watch = Stopwatch()
    with watch("collect"):
        pass
    with pytest.raises(ContractError, match="collect, advantage, update"), watch("lunch"):
        pass
    assert Setup(env=None, cfg=None, seed=0, total=1).data.lengths() == {}  # type: ignore[arg-type]


def test_the_page_on_an_algorithm_of_your_own(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module as it stands there, in a folder of somebody's own."""
    write_page(tmp_path, monkeypatch)
    check_algo({"algo": "climber:Config", "env": "cartpole", "total_steps": 3000, "eval.episodes": 2})
    with pytest.raises(UserError, match="climber needs one discrete choice per step, but pendulum-v1 has continuous"):
        train(tmp_path / "run", {"algo": "climber:Config", "env": "pendulum", "total_steps": "100"})


def write_page(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "algorithms" / "your-own.md").read_text(encoding="utf-8")
    for name, part in zip(("climber", "imitator"), page.split("```python\n")[1:]):
        (folder / f"{name}.py").write_text(part.split("```")[0])
    monkeypatch.syspath_prepend(folder)


@pytest.mark.slow
def test_the_pages_second_one_learns_from_another_runs_data(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write_page(tmp_path, monkeypatch)
    train(tmp_path / "dqn", {"algo": "dqn", **{key: str(value) for key, value in SMALL["dqn"].items()}})
    settings = {"algo": "imitator:Config", "algo.data": tmp_path / "dqn", "env": "cartpole", "total_steps": 80,
                "algo.minibatch": 8, "eval.every": 30, "eval.episodes": 2}  # fmt: skip
    check_algo(settings)
    typed = {key: str(value) for key, value in settings.items()}
    train(tmp_path / "run", typed, Interrupter(2))
    rows = next((tmp_path / "dqn" / "data" / "replay").glob("*.rows"))
    rows.write_bytes(rows.read_bytes()[::-1])
    with pytest.raises(UserError, match=r"imitator.py:\d+\): ValueError: .* holds other data than those that the run"):
        session.resume(tmp_path / "run", trust=True)


def test_steps_that_are_not_counted_are_named(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write_page(tmp_path, monkeypatch)
    text = (tmp_path / "climber.py").read_text().replace("climber:Config", "idler:Config")
    (tmp_path / "idler.py").write_text(
        text.replace("env_steps += played.sim_steps", "env_steps += 7 + played.sim_steps")
    )
    with pytest.raises(AlgoError, match=r"two iterations of idler:Config took \d+ and counted \d+"):
        check_algo({"algo": "idler:Config", "env": "cartpole", "total_steps": 1500, "eval.episodes": 2})


def test_data_that_are_copied_in_the_first_iteration_come_back(toy: Any) -> None:
    """As the page says it of a data set that may go away."""

    def init(setup: Any) -> State:
        state = State(setup.cfg.lr)
        state.kept = setup.data.replay("kept", {"x": ((), np.float32)}, 100, 2)  # type: ignore[attr-defined]
        return state

    def iterate(s: Any, watch: Any) -> dict[str, float]:
        if s.counts.iteration == 0:
            for k in range(40):
                s.kept.add(x=np.array([k, 2 * k], np.float32))
        s.counts.iteration, s.counts.updates = s.counts.iteration + 1, s.counts.updates + 10
        rows = s.kept.uniform(np.random.default_rng(s.counts.updates), 8)
        s.agent.w = s.agent.w + 0.1 * s.kept.gather(rows, "x").mean()
        return {"policy/loss": float(s.agent.w[0]), "data/updates": s.counts.updates}

    toy(init=init, iterate=iterate)
    check_algo(SETTINGS)


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
