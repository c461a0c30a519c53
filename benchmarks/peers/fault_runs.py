"""What do sick runs look like to strangers? Makes the runs of the fault suite, in the peers' venv.

    nice -n 19 .venv-sb3/bin/python -m benchmarks.peers.fault_runs OUT              # development kinds and seeds
    nice -n 19 .venv-sb3/bin/python -m benchmarks.peers.fault_runs OUT --part held-out     # the first, looked at since
    nice -n 19 .venv-sb3/bin/python -m benchmarks.peers.fault_runs OUT --part held-out-2   # scored once

The logs lie in OUT/PART/NUMBER, without a word about the fault; OUT/outcomes.jsonl has a line for each run: its kind,
its path, the level of what it learned, and the error it died of where it did. A run that is listed is not made again.
Held-out runs are those of held-out kinds, and one further seed of kinds that were known before.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import shutil
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.peers import (
    fault_kind,
    fault_kinds,
    fault_kinds_held_out,
    fault_kinds_later,
    making,
    plan,
    scripts,
    tasks,
)
from benchmarks.peers.broken import behind
from benchmarks.peers.fault_kind import Kind
from benchmarks.peers.healthy_listing import OUTCOMES, outcomes
from benchmarks.peers.worlds import Episode


class FaultRun(NamedTuple):
    part: str  # development, held-out
    kind: Kind
    seed: int

    @property
    def name(self) -> str:
        """Where it lies: a number that says nothing of the fault, for paths are read, too."""
        return f"{self.part}/{hashlib.sha1(f'{self.kind.name} {self.seed}'.encode()).hexdigest()[:8]}"

    @property
    def below(self) -> str:
        """The folder that its tool would make there: rl-zoo's where settings are told, else the library's own."""
        if self.kind.tool == "cleanrl":
            return "runs"
        return f"{self.kind.algo}/{self.kind.task}_1" if self.kind.told else f"{self.kind.algo.upper()}_1"


def runs(part: str) -> list[FaultRun]:
    """Seed by seed, so that a first part of them holds all kinds."""
    first, second, third = fault_kinds.KINDS, fault_kinds_held_out.KINDS, fault_kinds_later.KINDS
    if part == "development":
        pairs = [(kind, seed) for seed in fault_kind.DEVELOPMENT_SEEDS for kind in first]
    elif part == "held-out":
        pairs = [(kind, seed) for seed in fault_kind.HELD_OUT_SEEDS for kind in second]
        pairs += [(kind, seed) for seed in fault_kind.HELD_OUT_SEEDS_OF_DEVELOPMENT_KINDS for kind in first]
    else:
        pairs = [(kind, seed) for seed in fault_kinds_later.SEEDS for kind in third]
        pairs += [(kind, fault_kinds_later.KNOWN_SEED) for kind in [*first, *second][::2]]
    return [FaultRun(part, kind, seed) for kind, seed in pairs]


def variant(kind: Kind) -> str:
    """The settings that a kind's own ones are added to."""
    return "v" if kind in fault_kinds_later.KINDS else "x" if kind.held_out else "a"


def succeeded(task: str, how: str) -> Callable[[Episode], float]:
    if how == "turned":
        return lambda episode: float(not tasks.reached(task, episode.total))
    return lambda episode: 100.0 * tasks.reached(task, episode.total)


def made(run: FaultRun, folder: Path) -> float:
    kind = run.kind
    base = (plan.SB3 if kind.tool == "sb3" else plan.CLEANRL)[kind.algo][variant(kind)]
    settings = base | {"gamma": plan.gamma(kind.task, base["gamma"])} | kind.settings
    make = behind(kind.env) if kind.env else tasks.ALL.__getitem__
    if kind.tool == "cleanrl":
        policy = scripts.by_script(kind.algo, kind.task, run.seed, settings, folder, int(kind.told), kind.edits, make)
    else:
        logs = ("csv", "eval", "zip") if kind.told else (("csv",), ("tb",))[run.seed % 2]
        judge = behind(kind.judge)(kind.task) if kind.judge else None
        success = succeeded(kind.task, kind.success) if kind.success else None
        policy = making.by_sb3(kind.algo, kind.task, run.seed, settings, folder, logs, make(kind.task), judge, success)
    return making.evaluated(policy, tasks.ALL[kind.task])


def add(run: FaultRun, out: Path) -> None:
    folder = out / run.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began, level, error = time.process_time(), math.nan, ""
    try:
        level = made(run, folder / run.below)
    except (ValueError, RuntimeError) as died:  # networks that became NaN: the log ends here, as it would
        error = f"{type(died).__name__}: {str(died)[:200]}"
    row = {"part": run.part, "kind": run.kind.name, "group": run.kind.group, "tool": run.kind.tool,
           "algo": run.kind.algo, "task": run.kind.task, "seed": run.seed, "told": run.kind.told, "path": run.name,
           "level": None if math.isnan(level) else level, "reached": tasks.reached(run.kind.task, level),
           "error": error, "seconds": round(time.process_time() - began, 1)}  # fmt: skip
    with (out / OUTCOMES).open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(f"{run.name} {run.kind.name} s{run.seed}: {level:.4g}, {row['seconds']} s {error}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--part", choices=["development", "held-out", "held-out-2"], default="development")
    parser.add_argument("--most", type=int, default=10**6, help="stop after that many runs")
    parser.add_argument("--only", nargs="+", default=[], help="some kinds")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    listed = {row["path"] for row in outcomes(args.out)}
    waiting = [
        run for run in runs(args.part) if run.name not in listed and run.kind.name in (args.only or [run.kind.name])
    ]
    for run in waiting[: args.most]:
        try:
            add(run, args.out)
        except Exception:  # one that cannot be made must not keep the others waiting
            traceback.print_exc()


if __name__ == "__main__":
    main()
