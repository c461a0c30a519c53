"""What must an algorithm offer, so that loop, evaluation, checkpoints and probes can serve it? Four small types.

An algorithm is a module (or an object) with CLOCK, make_agent, load_agent, init and iterate. Its State holds all that a
run needs to go on. Nothing in the loop knows an algorithm's name, and `check_algo` (check_algo.py) holds any of them,
relab's own or a plug-in's, against what is written here. docs/algorithms/your-own.md leads through it.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from relab.base.documents import Tree
from relab.record.spec import Spec
from relab.train.acting import ContractError as ContractError
from relab.train.acting import Policy
from relab.train.envs.base import Env
from relab.train.replay import Data

CLOCKS = ("agent_steps", "updates", "iteration")  # what a run's steps can count
PARTS = ("collect", "advantage", "update")  # of an iteration, timed apart


class DivergedError(Exception):
    """Parameters or losses are no longer numbers; nothing after this could mean anything."""


@dataclass
class Counts:
    """The counters of a run; the one that the algorithm's CLOCK names is the step axis of its record."""

    agent_steps: int = 0  # steps of living agents in training
    env_steps: int = 0  # steps of worlds in training; those of evaluations are counted apart
    iteration: int = 0
    updates: int = 0  # steps of the optimiser
    episodes: int = 0  # that ended in training
    rerun_steps: int = 0  # steps of worlds that were stepped besides: re-rollouts, and other policies' data


@dataclass(frozen=True)
class Setup:
    """What a run is made of; all that `init` gets."""

    env: Env
    cfg: Any  # the algorithm's settings
    seed: int
    total: int  # where the run ends, on the algorithm's clock
    device: str = "cpu"
    threads: int = 1
    runs: Path = Path("runs")  # where the names of other runs are looked up
    data: Data = field(default_factory=Data)  # rows that checkpoints do not copy: replay, fixed data sets


class State(Protocol):
    """All that a run needs to go on."""

    # The one door by which evaluation, probes and films ask it to act. Where it has value(obs_BD, memory_BM) -> [B] as
    # well, probes ask what a state is worth; `value_of = "det"` where that is the worth of its mode, not of its draws.
    agent: Policy
    counts: Counts

    def to_tree(self) -> Tree:
        """Arrays and plain values, one or two levels deep, for a checkpoint.

        `params` holds the weights by name, `obs_scale` the scale of observations where there is one: what another run
        may start from. `reward_scale`, where there is one, holds the variance `var` whose root rewards are divided by.
        """
        ...

    def load(self, tree: Tree) -> None:
        """Stand where `to_tree` stood, to the bit."""
        ...


Tell = Callable[[str, int, int], None]  # what is being done, how many of it are done, of how many


def silent(what: str, done: int, total: int) -> None:
    """Nobody listens."""


class Stopwatch:
    """Seconds by part of an iteration: `with watch("collect"): ...`; `watch.tell` says how far a long part is."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.tell: Tell = silent
        self.within: dict[str, float] = {}  # of "collect", where it is known: env_s, act_s, copy_s

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        if part not in self.seconds:
            raise ContractError(f"the parts of an iteration are {', '.join(PARTS)}, but got {part!r}")
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] += time.perf_counter() - began

    def split(self, whole: float) -> dict[str, float]:
        """Seconds of an iteration by part, as timing.jsonl names them; what no part claims is learning."""
        collect, advantage = self.seconds["collect"], self.seconds["advantage"]
        rare = {"advantage_s": advantage} if advantage else {}
        return {"collect_s": collect, "update_s": whole - collect - advantage, **rare}


class Algorithm(Protocol):
    """A module that learns."""

    # and, where they apply:
    # def check(self, setup)                  ConfigError for settings, environment and total that cannot go together
    # def first_time(self) -> str             what takes long once, for the screen, before the run begins
    # def follow_weights(self, state)         `params` were set from another run: slow copies of them follow
    # def close(self, state)                  the run ends or is interrupted: end the processes that it has started
    # def resets(self, cfg) -> str            what a run that goes on begins anew, for the screen; empty: nothing
    # def borrowed(self, cfg) -> tuple        parts of `params` that never learn: another run must give them whole
    # def then(self, folder, cfg) -> str      the command that uses what has been learned; without: relab eval
    # def begins(self, cfg) -> str            what is done to another run's weights at the start, for the screen
    # SHOWN = ("value/loss", ...)             metrics that stand on the screen in place of the return
    # POLICY_STAYS = True                     nothing of the policy learns: no evaluation is the best one
    # WHOLE = True                            weights of another size are an error with `start_from`, not left fresh;
    #                                         or the parts of `params` for which that holds
    CLOCK: str  # one of CLOCKS: what total_steps, eval.every, save.every and every row's step count

    def make_agent(self, cfg: Any, spec: Spec, seed: int, device: str = "cpu", threads: int = 1) -> Policy:
        """The acting part alone, as it begins; ConfigError for a space or device that it cannot serve."""
        ...

    def load_agent(self, agent: Any, tree: Tree) -> None:
        """Put the acting part of a checkpoint's tree into an agent."""
        ...

    def init(self, setup: Setup) -> State:
        """A run before its first iteration; every random draw comes from a named stream of the seed."""
        ...

    def iterate(self, state: Any, watch: Stopwatch) -> dict[str, float]:
        """Act and learn a little, moving the clock on; returns the row of metrics, named as in the glossary."""
        ...


VERBS = {  # what an algorithm offers, and what each verb is called with
    "make_agent": ("cfg", "spec", "seed", "device", "threads"),
    "load_agent": ("agent", "tree"),
    "init": ("setup",),
    "iterate": ("state", "watch"),
}


def unlike(verb: Any, words: tuple[str, ...]) -> str:
    """Why a function cannot be called with these arguments, in their order; empty where it can."""
    try:
        inspect.signature(verb).bind(*words)
    except TypeError as error:
        return str(error)
    except ValueError:  # some that are compiled do not say
        return ""
    return ""


def clock_of(algo: Any, name: str) -> str:
    """The algorithm's clock; ContractError where it declares none that exists, or lacks a verb."""
    clock = getattr(algo, "CLOCK", None)
    if clock not in CLOCKS:
        raise ContractError(f"an algorithm must declare CLOCK as one of {', '.join(CLOCKS)}, but {name} has {clock!r}")
    lacking = [verb for verb in VERBS if not callable(getattr(algo, verb, None))]
    if lacking:
        raise ContractError(f"an algorithm must offer make_agent, load_agent, init and iterate, but {name} lacks"
                            f" {', '.join(lacking)} (relab.train.contract says what each does)")  # fmt: skip
    for verb, words in VERBS.items():
        if why := unlike(getattr(algo, verb), words):
            raise ContractError(f"`{verb}` must take ({', '.join(words)}), but that of {name} does not: {why}")
    return str(clock)
