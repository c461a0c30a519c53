"""What do healthy runs look like? Makes runs of SB3, CleanRL-like scripts and relab on cheap tasks, in the peers' venv.

    nice -n 19 .venv-sb3/bin/python -m benchmarks.peers.healthy_runs OUT [--parts table held-out] [--most 80]

Whether a run is healthy is its outcome, not an opinion: the learned policy plays 32 episodes that it never saw, and
must have gone three quarters of the way from random to solved (tasks.py). OUT/outcomes.jsonl holds a line for each run
that was made; the logs lie in OUT/PART/TOOL/ALGO-TASK-VARIANT-sSEED. A run that is listed is not made again; a run that
was interrupted is made anew. With both parts named they alternate.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import time
import traceback
from pathlib import Path

import torch

from benchmarks.peers import making, plan, scripts, tasks
from benchmarks.peers.healthy_listing import OUTCOMES, outcomes


def made(case: plan.Case, folder: Path, relab: Path) -> float:
    """Make one run; the mean return of what it learned."""
    if case.tool == "relab":
        return making.by_relab(case, folder, relab)
    if case.tool == "sb3":
        settings = dict(plan.SB3[case.algo][case.variant])
        settings["gamma"] = plan.gamma(case.task, settings["gamma"])
        policy = making.by_sb3(case.algo, case.task, case.seed, settings, folder, plan.SB3_LOGS[case.variant])
    else:
        settings = dict(plan.CLEANRL[case.algo][case.variant])
        settings["gamma"] = plan.gamma(case.task, settings["gamma"])
        logged = plan.CLEANRL_LOGS[case.variant]
        policy = scripts.by_script(case.algo, case.task, case.seed, settings, folder, logged)
    return making.evaluated(policy, tasks.ALL[case.task])


def add(case: plan.Case, out: Path, relab: Path) -> None:
    folder = out / case.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.process_time()
    level = made(case, folder, relab)
    healthy = tasks.reached(plan.RELAB_LEVEL.get(case.task, case.task), level)
    row = {**case._asdict(), "path": case.name, "level": level, "healthy": healthy,
           "seconds": round(time.process_time() - began, 1)}  # fmt: skip
    with (out / OUTCOMES).open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(f"{case.name}: {level:.4g}, {'healthy' if healthy else 'below its level'}, {row['seconds']} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--parts", nargs="+", choices=list(plan.TASKS), default=["table", "held-out"])
    parser.add_argument("--most", type=int, default=10**6, help="stop after that many runs")
    parser.add_argument("--relab", type=Path, default=Path(".venv/bin/relab"))
    parser.add_argument("--tools", nargs="+", default=["sb3", "cleanrl", "relab"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    listed = {row["path"] for row in outcomes(args.out)}
    left = [[c for c in plan.cases(part) if c.name not in listed and c.tool in args.tools] for part in args.parts]
    waiting = [case for turn in itertools.zip_longest(*left) for case in turn if case]
    args.out.mkdir(parents=True, exist_ok=True)
    for case in waiting[: args.most]:
        try:
            add(case, args.out, args.relab)
        except Exception:  # one that cannot be made must not keep the others waiting
            traceback.print_exc()


if __name__ == "__main__":
    main()
