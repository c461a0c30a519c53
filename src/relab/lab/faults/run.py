"""How does a fault become runs? Trains with the fault in place, several runs where the fault is about several."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relab.config import layers
from relab.config.layers import Layer
from relab.lab.faults.catalogue import BASE, FAULTS
from relab.lab.faults.seams import Replace, planted
from relab.record import provenance
from relab.train import session
from relab.train.screen import Silent

SEEDS_APART = 1000  # the further seeds of a fault that needs several: no case uses another's


@dataclass(frozen=True)
class Member:
    """One run of a case."""

    folder: str  # below the case's folder; empty: the case's folder itself
    settings: dict[str, str]
    seed: int
    planted: bool = True


class HalfWay(Silent):
    """Asks the run to stop, as Ctrl-C would, once half of its steps are done."""

    stopped = False

    def iteration(self, row: Mapping[str, Any]) -> None:
        if not self.stopped and 2 * row["step"] >= row["total_steps"]:
            self.stopped = True
            signal.raise_signal(signal.SIGINT)


def members(name: str | None, env: str, seed: int) -> list[Member]:
    """The runs that a case consists of; without a fault, one healthy run."""
    if name is None:
        return [Member("", BASE[env], seed)]
    fault = FAULTS[name]
    settings = fault.settings_on(env)
    if fault.kind == "seeds":
        return [Member(f"s{k}", settings, seed + k * SEEDS_APART) for k in range(3)]
    if fault.kind == "arms":
        seeds = [(k, seed + k * SEEDS_APART) for k in range(2)]
        plain = [Member(f"a-s{k}", BASE[env], number, planted=fault.both) for k, number in seeds]
        return plain + [Member(f"b-s{k}", settings, number) for k, number in seeds]
    return [Member("", settings, seed)]


def make(name: str | None, env: str, seed: int, folder: Path, kind: str = "run") -> None:
    """Train all runs of a case into a new folder. `kind` is asked of healthy cases only (run, resume)."""
    fault = None if name is None else FAULTS[name]
    seams = {} if fault is None else fault.seams
    for member in members(name, env, seed):
        one(member, folder / member.folder, seams if member.planted else {}, fault.kind if fault else kind)


def one(member: Member, folder: Path, seams: Mapping[str, Replace], kind: str) -> None:
    settings = member.settings | {"seed": str(member.seed)}
    resolved = layers.resolve([Layer("command line", {"algo": "ppo"} | settings)])
    command = shlex.join(["relab", "train", "ppo", *(f"{key}={value}" for key, value in settings.items())])
    meta = {"command": command, "parent": None, "intent": None, "packages": provenance.packages()}
    half = HalfWay() if kind == "resume" else None
    with planted({} if half else seams):
        outcome = session.start(resolved.config, folder, resolved.provenance, meta, half)
    if half is not None and half.stopped:
        with planted(seams):
            outcome = session.resume(folder)
    if outcome.status == "interrupted":  # by the user: training has swallowed the signal, and the suite must end too
        raise KeyboardInterrupt
