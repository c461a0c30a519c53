"""Does an algorithm keep the contract? `check_algo(settings)` trains it a few times for a moment and raises AlgoError.

    from relab.train.check_algo import check_algo
    check_algo({"algo": "my_package.my_algo:Config", "env": "cartpole", "total_steps": 2_000})

It ends on its clock, logs numbers that can be, counts what it steps, gives the same bytes twice and others for another
seed, is not disturbed by evaluations, goes on to the same bytes when it is interrupted, starts from the weights of
another run, and acts row by row (check_acting.py). The error says what must hold, what was found and the probable
cause.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relab.base.jsonl import read_jsonl
from relab.config import layers
from relab.config.layers import Layer
from relab.config.registry import algo_module
from relab.record import glossary
from relab.record.run_folder import read_meta
from relab.train import checkpoint, session, weights
from relab.train.check_acting import ROWS, AlgoError, acted, check_acting, observations, streams
from relab.train.contract import Stopwatch, clock_of
from relab.train.envs.base import Worlds
from relab.train.loop import Ending
from relab.train.screen import Silent

COUNTED = ("data/eval_steps", "data/sim_steps")  # what evaluations may change in a row
ITERATIONS = 6  # of which evaluations and an interruption are made
ROUNDING = 1e-6  # of single precision: an estimate of a number that is 0 may come out a little below


class Interrupter(Silent):
    """Asks the run to stop after so many iterations, as a user's Ctrl-C would."""

    def __init__(self, after: int):
        self.left = after

    def iteration(self, row: Mapping[str, Any]) -> None:
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)


def check_algo(settings: Mapping[str, Any], seed: int = 0) -> str:
    """Every check, in an order in which the first to fail is nearest to the cause -> a line that says what was held."""
    typed = {key: str(value) for key, value in settings.items()} | {"seed": str(seed)}
    name = layers.resolve([Layer("check_algo", typed)]).config.algo.name
    clock_of(algo_module(name), name)
    with tempfile.TemporaryDirectory() as root:
        first = check_ends(Path(root) / "one", typed, name)
        check_numbers(first, name)
        check_same(Path(root) / "two", typed, first)
        check_seeds(Path(root) / "other", typed, first)
        check_undisturbed(Path(root) / "apart", typed, first)
        check_resumed(Path(root) / "parts", typed, first)
        check_follows(typed, first, name)
        check_counted(typed, name)
        check_started(Path(root), typed, first)
    return (f"{name} keeps the contract on {typed.get('env')}: it ends on its clock, repeats, is not disturbed"
            " by evaluations, resumes to the same bytes, starts from another run's weights, and acts row by"
            " row")  # fmt: skip


def train(folder: Path, typed: Mapping[str, str], screen: Silent | None = None) -> Ending:
    resolved = layers.resolve([Layer("check_algo", dict(typed))])
    return session.start(resolved.config, folder, resolved.provenance, {"command": "check_algo"}, screen)


def check_ends(folder: Path, typed: Mapping[str, str], name: str) -> Path:
    """The run ends where its clock says, with rows that move on."""
    ended = train(folder, typed)
    total = layers.resolve([Layer("check_algo", dict(typed))]).config.total_steps
    steps = [row["step"] for row in read_jsonl(folder / "metrics.jsonl")[0]]
    if ended.status != "finished" or ended.step < total:
        raise AlgoError(f"{name} must end at {total:,} on its clock, but is {ended.status} at {ended.step:,}:"
                        f" {ended.why}")  # fmt: skip
    if steps != sorted(set(steps)) or len(steps) < ITERATIONS:
        raise AlgoError(f"{name} must log a row for each iteration, at steps that rise, and {ITERATIONS} of them for"
                        f" this check, but logged steps {steps[:8]}; give check_algo a longer total_steps, or smaller"
                        " iterations")  # fmt: skip
    return folder


def check_numbers(first: Path, name: str) -> None:
    """Every metric lies in the range that the glossary declares, and steps of worlds are counted."""
    for row in read_jsonl(first / "metrics.jsonl")[0]:
        for key, value in row.items():
            if key in ("step", "axis") or math.isnan(float(value)):
                continue
            declared = glossary.metric(key)
            if not declared.low - ROUNDING <= float(value) <= declared.high + ROUNDING:
                raise AlgoError(f"`{key}` must lie between {declared.low:g} and {declared.high:g} ({declared.meaning}),"
                                f" but {name} logged {value:g} at step {row['step']:,}; probable cause: another number"
                                " under that name, or a sign or a scale that is turned")  # fmt: skip
    root = first / "checkpoints"
    counts = checkpoint.load(root, checkpoint.last(root) or "")[0]["counts"]
    agents = read_meta(first)["spec"].get("agents", 1)
    if counts["agent_steps"] > counts["env_steps"] * agents:
        raise AlgoError(f"steps of worlds must be counted in `counts.env_steps`, those of all agents in"
                        f" `counts.agent_steps`, but {name} counts {counts['env_steps']:,} steps of worlds with"
                        f" {agents} agents, and {counts['agent_steps']:,} of agents; probable cause: a counter that"
                        " `iterate` does not move on")  # fmt: skip


def check_seeds(folder: Path, typed: Mapping[str, str], first: Path) -> None:
    """Whatever meets worlds does so otherwise with another seed; one iteration tells."""
    train(folder, {**typed, "seed": str(int(typed["seed"]) + 1)}, Interrupter(1))
    rows = [read_jsonl(each / "metrics.jsonl")[0][0] for each in (first, folder)]
    inits = [read_meta(each)["init"] for each in (first, folder)]
    if rows[0] == rows[1] and inits[0] == inits[1] and rows[0].get("data/sim_steps", 0) > rows[0]["data/eval_steps"]:
        raise AlgoError("another seed must give another run, but the first iteration of seeds"
                        f" {typed['seed']} and {int(typed['seed']) + 1} is the same; probable cause: a stream that does"
                        " not come from `setup.seed` (relab.base.streams)")  # fmt: skip


def check_same(folder: Path, typed: Mapping[str, str], first: Path) -> None:
    train(folder, typed)
    require_alike(folder, first, "Two runs of one config and seed", "a draw that comes from no named stream of the seed"
                  " (relab.base.streams), from the clock, or from the order of a set")  # fmt: skip


def check_undisturbed(folder: Path, typed: Mapping[str, str], first: Path) -> None:
    """Evaluations draw from streams of their own and leave no trace in training."""
    train(folder, {**typed, "eval.every": "0", "eval.episodes": "1", "eval.stop_at": "null"})
    rows = [[{k: v for k, v in row.items() if k not in COUNTED} for row in read_jsonl(each / "metrics.jsonl")[0]]
            for each in (first, folder)]  # fmt: skip
    if rows[0] != rows[1]:
        at = next(a["step"] for a, b in zip(*rows) if a != b) if len(rows[0]) == len(rows[1]) else "the end"
        raise AlgoError(f"training must not depend on evaluations, but with others its rows differ from step {at} on;"
                        " probable cause: `agent.act` changes something (counts, scales, a random stream)")  # fmt: skip


def check_resumed(folder: Path, typed: Mapping[str, str], first: Path) -> None:
    """Interrupted early, again before another checkpoint than that, and late, when episodes have ended."""
    late = max(1, len(read_jsonl(first / "metrics.jsonl")[0]) * 3 // 4 - 4)
    train(folder, typed, Interrupter(2))
    for after in (2, late, 0):
        if read_meta(folder)["status"] == "interrupted":
            session.resume(folder, Interrupter(after), trust=True)  # the caller named the code
    require_alike(folder, first, "A run that was interrupted and resumed, and one that was not,", "something that"
                  " `to_tree` leaves out or `load` does not put back (a stream, the optimiser, a scale, the returns of"
                  " the last episodes)")  # fmt: skip


# ---- What it costs


@contextlib.contextmanager
def worlds_made() -> Iterator[list[Worlds]]:
    """Inside, every `Worlds` that is made is noted, to be asked for the steps that it took."""
    made, original = list[Worlds](), Worlds.__init__

    def noted(self: Worlds, *args: Any, **more: Any) -> None:
        original(self, *args, **more)
        made.append(self)

    Worlds.__init__ = noted  # type: ignore[method-assign]
    try:
        yield made
    finally:
        Worlds.__init__ = original  # type: ignore[method-assign]


def check_counted(typed: Mapping[str, str], name: str) -> None:
    """Every step of a world that two iterations take is counted, those of trials and re-rollouts too."""
    cfg = layers.resolve([Layer("check_algo", dict(typed))]).config
    env, algo = session.make_env(cfg), algo_module(name)
    with worlds_made() as made:
        state = algo.init(session.setup_of(cfg, env))
        for _ in range(2):
            algo.iterate(state, Stopwatch())
        taken = sum(worlds.sim_steps for worlds in made)
    getattr(algo, "close", lambda state: None)(state)
    counted = state.counts.env_steps + state.counts.rerun_steps
    if 0 < taken != counted:  # worlds that are not relab's tell nothing
        raise AlgoError(f"every step of a world in training must be counted in `counts.env_steps`, or in"
                        f" `counts.rerun_steps` where nothing of it is a batch, but two iterations of {name} took"
                        f" {taken:,} and counted {counted:,}; probable cause: trials or re-rollouts that `iterate` does"
                        " not count (`sim_steps` of what was played has them)")  # fmt: skip


# ---- Another run's weights


def check_follows(typed: Mapping[str, str], first: Path, name: str) -> None:
    """Nothing outside of `params` still holds the weights that a state was born with, once it was given others."""
    cfg = layers.resolve([Layer("check_algo", {**typed, "start_from": str(first)})]).config
    env, algo = session.make_env(cfg), algo_module(name)
    state, inherited = algo.init(session.setup_of(cfg, env)), session.inherited_by(cfg, env, first.parent)
    assert inherited is not None, "the config names a run to start from"
    before = {key: array.copy() for key, array in checkpoint.split(state.to_tree())[0].items()}
    weights.put(algo, state, inherited)
    after = checkpoint.split(state.to_tree())[0]
    born = np.concatenate([array.ravel() for key, array in before.items() if key.startswith("params.")])
    stale = [key for key, array in before.items() if not key.startswith("params.") and is_copy(array, born)
             and np.array_equal(array, after[key])]  # fmt: skip
    if stale:
        raise AlgoError(f"a state that is given other weights must not keep a copy of its own, but {', '.join(stale)}"
                        f" still holds those that {name} was born with; probable cause: a slow copy of the network"
                        " that `follow_weights(state)` should bring along")  # fmt: skip
    check_acts_alike(algo, cfg, env, state.agent, first, name)


def check_acts_alike(algo: Any, cfg: Any, env: Any, agent: Any, first: Path, name: str) -> None:
    """With another run's weights an agent does what that one did: nothing that acting needs lies outside of them."""
    root = first / "checkpoints"
    other = algo.make_agent(cfg.algo, env.spec, cfg.seed, cfg.device, cfg.threads)
    algo.load_agent(other, checkpoint.load(root, checkpoint.last(root) or "")[0])
    check_acting(other, env.spec, name)
    obs = observations(env.spec)
    here, there = (acted(each, obs, streams(), ROWS).action for each in (agent, other))
    if not np.array_equal(here, there):
        raise AlgoError(f"a run with `start_from` must act as the run that it started from did, but {name} does not;"
                        " probable cause: something that acting needs lies outside of `params` and `obs_scale` of the"
                        " tree, which are all that another run takes")  # fmt: skip


def is_copy(array: np.ndarray, weights: np.ndarray) -> bool:
    """Whether an array holds weights and nothing else; one that is all zeros tells nothing."""
    numbers = array.dtype.kind == "f" and array.size > 1 and np.ptp(array) > 0
    return bool(numbers) and bool(np.isin(array, weights).all())


def check_started(root: Path, typed: Mapping[str, str], first: Path) -> None:
    """A run that starts from another one begins with its weights, and goes on without it."""
    started = {**typed, "start_from": str(first)}
    train(root / "started", started)
    name = checkpoint.last(first / "checkpoints") or ""
    params = checkpoint.load(first / "checkpoints", name)[0]["params"]
    if read_meta(root / "started")["init"] != checkpoint.fingerprint(params):
        raise AlgoError("a run with `start_from` must begin with the weights of that run, but begins with others;"
                        " probable cause: `load` does not take `params` from the tree it is given")  # fmt: skip
    train(root / "again", started, Interrupter(2))
    first.rename(root / "gone")
    session.resume(root / "again", trust=True)
    require_alike(root / "again", root / "started", "A run with another's weights that was interrupted, and one that"
                  " was not,", "something that `follow_weights` changes and `to_tree` leaves out")  # fmt: skip


# ---- Bytes


def require_alike(a: Path, b: Path, whose: str, cause: str) -> None:
    left, right = fingerprint(a), fingerprint(b)
    other = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
    if other:
        raise AlgoError(f"{whose} must have the same bytes, but {', '.join(other)} differ; probable cause: {cause}")


def fingerprint(folder: Path) -> dict[str, str]:
    """Hashes of everything that must not depend on when and how often a run was interrupted."""
    last = sorted((folder / "checkpoints").glob("step-*"))[-1]
    files = [folder / name for name in ("config.yaml", "metrics.jsonl", "evals.jsonl", "probes.jsonl")]
    files += [last / "weights.safetensors", last / "state.safetensors"]
    files += sorted(path for path in (folder / "data").rglob("*") if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files} | {"last": last.name}
