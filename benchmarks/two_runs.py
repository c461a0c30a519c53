"""Do two trainings at once on two cores do nearly twice the work of one at a time? Target: 1.8 times.

Run as `python -m benchmarks.two_runs [ROUNDS]`, with two cores to spare. Two runs of PPO on CartPole with one
thread each go through relab's executor, one after the other and both at once, in turns. Wall seconds include imports
and everything else; processor seconds per run tell how much the two get in each other's way whatever else is running.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import machine, summary, warn_if_busy, write
from relab.lab.execute import local

ROUNDS = 5
STEPS = 200_000
TRAIN = [sys.executable, "-m", "relab.cli", "train", "ppo", "env=cartpole", f"total_steps={STEPS}", "threads=1",
         "eval.every=100_000"]  # fmt: skip


def pair(root: Path, name: str, workers: int) -> dict[str, float]:
    """Two runs, `workers` at a time: wall seconds, processor seconds, load before."""
    folders = [root / f"{name}-{i}" for i in range(2)]
    jobs = [
        local.Job(f.name, lambda f=f: [*TRAIN, f"seed={f.name[-1]}", "--quiet", "--runs", str(root), "--name", f.name],  # type: ignore[misc]
                  lambda f=f: (f / "checkpoints" / "latest.json").exists() and done(f), root / f"{f.name}.log")
        for f in folders
    ]  # fmt: skip
    load, before, start = os.getloadavg()[0], cpu(), time.perf_counter()
    result = local.run(jobs, workers)
    if result.failed or result.interrupted:
        raise RuntimeError(f"{result}: {jobs[0].log.read_text()[-500:]}")
    return {"seconds": time.perf_counter() - start, "cpu_s": cpu() - before, "load": load}


def done(folder: Path) -> bool:
    return '"status": "finished"' in (folder / "meta.json").read_text()


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    warn_if_busy(started := machine())
    rounds: list[dict[str, Any]] = []
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as root:
        pair(Path(root), "warm", 2)  # kernels compiled, files in memory
        for k in range(count):
            one, two = pair(Path(root), f"one{k}", 1), pair(Path(root), f"two{k}", 2)
            ratio = one["seconds"] / two["seconds"]
            rounds.append({"one at a time": one, "both at once": two, "throughput": ratio})
            print(f"round {k}: {one['seconds']:.1f} s one at a time, {two['seconds']:.1f} s at once: {ratio:.2f} x"
                  f" (load {one['load']:.1f}, {two['load']:.1f})", flush=True)  # fmt: skip
    waste = statistics.median(r["both at once"]["cpu_s"] / r["one at a time"]["cpu_s"] for r in rounds)
    found = summary([r["throughput"] for r in rounds], 3)
    print(
        f"two at once do {found['median']:.2f} times the work of one; a run costs {waste:.2f} times the processor time"
    )
    more = {"processor seconds at once / one at a time": round(waste, 3), "rounds": rounds}
    write("two_runs", {"target": "1.8 times", "steps": STEPS, "throughput ratio": found, **more}, started)


if __name__ == "__main__":
    main()
