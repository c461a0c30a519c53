"""How often does the examiner warn about healthy runs? Asks it about each run, and about each folder of one task.

    python -m benchmarks.peers.score_healthy FOLDER... [--json OUT]

A folder holds runs, or folders of runs, of any format that relab reads. A run of a task with a known level counts as
healthy when its last evaluation reached it; those that did not are told apart and not counted. Runs of one algorithm
and task are copied side by side and examined together, as their owner would.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.score_faults import share
from relab.base.jsonl import RecordError
from relab.formats.read import find
from relab.lab.faults.suite import Alarm, alarms
from relab.record.history import History

# What a run must reach in its last evaluation to count as healthy: Gymnasium's own thresholds where it has them.
REACHED = {"cartpole": 475.0, "acrobot": -100.0, "mountaincar": -110.0, "pendulum": -250.0}


class Run(NamedTuple):
    """A run's folder, what it is, and how it ended."""

    folder: Path
    task: str  # ALGO on ENV
    last: float  # mean return of the last evaluation
    reached: bool


def runs_below(root: Path) -> Iterator[Run]:
    for source in find.find(root):
        try:
            history = find.read(source)
        except RecordError as error:
            print(f"{source.folder}: left out: {error}")
            continue
        yield judged(source.folder, history)


def judged(folder: Path, history: History) -> Run:
    env = str(history.config.get("env", {}).get("name", "?"))
    algo = str(history.config.get("algo", {}).get("name", "?"))
    last = last_evaluation(history)
    level = next((x for name, x in REACHED.items() if name in env.lower()), -math.inf)
    return Run(folder, f"{algo} on {env}", last, last >= level if math.isfinite(level) else True)


def last_evaluation(history: History) -> float:
    rows = [row for row in history.evals if row.get("mode") == "det"]
    if rows:
        returns = [e["return"] for e in rows[-1]["episodes"]]
        return float(sum(returns) / len(returns))
    column = history.columns.get("eval/return_det")
    return float(column.values[-1]) if column is not None and len(column.values) else math.nan


def examined(runs: list[Run], room: Path) -> list[Alarm]:
    """An alarm count per task: copies side by side, so that nothing else lies in the folder."""
    found = []
    for task in dict.fromkeys(run.task for run in runs):
        folder = room / task.replace("/", "_").replace(":", "_")
        for run in (r for r in runs if r.task == task):
            shutil.copytree(run.folder, folder / f"{run.folder.parent.name}_{run.folder.name}")
        found.append(alarms(folder, task))
    return found


def lines(found: list[Alarm]) -> list[str]:
    rows = ["| runs of | healthy runs | with a warning or an error | which |", "| --- | --- | --- | --- |"]
    rows += [f"| {a.folder} | {a.runs} | {a.alarmed} | {', '.join(a.slugs) or 'none'} |" for a in found]
    n, loud = sum(a.runs for a in found), sum(a.alarmed for a in found)
    return [*rows, "", f"runs: {share(loud, n)}; folders: {share(sum(a.folder_alarmed for a in found), len(found))}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    runs = [run for folder in args.folders for run in runs_below(folder)]
    with tempfile.TemporaryDirectory() as room:
        found = examined([run for run in runs if run.reached], Path(room) / "healthy")
        rest = examined([run for run in runs if not run.reached], Path(room) / "rest")
    print("\n".join(lines(found)))
    print(f"\nbelow their task's level, not counted: {sum(not r.reached for r in runs)}")
    print("\n".join(f"  {r.folder.name}: {r.last:.4g}" for r in runs if not r.reached))
    print("\n".join(f"  {a.folder}: {a.alarmed} of {a.runs} with a warning, {', '.join(a.slugs)}" for a in rest))
    if args.json:
        told: dict[str, Any] = {"healthy": [a.to_json() for a in found], "not_reached": [a.to_json() for a in rest]}
        args.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
