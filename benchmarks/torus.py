"""How long does the config of the original torus report take, and where does the time go? (There it took 40 min 18 s.)

Run as `python -m benchmarks.torus [ITERATIONS]`: 200 iterations of 16 x 200 steps, 2,048 features, four probes at 40
of them, on two threads. Processor seconds stand beside wall seconds: on a busy machine only they mean something.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import machine, warn_if_busy, write
from relab.config import layers
from relab.config.layers import Layer
from relab.lab.studies.torus.steps import ORIGINAL
from relab.record import history
from relab.train import session

DOCUMENT_S, TARGET_S = 40 * 60 + 18, 60
PARTS = ("collect", "update", "probes", "log", "save", "eval")


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(iterations: int = 200, threads: int = 2) -> None:
    warn_if_busy(started := machine())
    settings = {"threads": threads, "total_steps": iterations * 3200}
    found = layers.resolve([Layer("benchmark", ORIGINAL | settings)])
    with tempfile.TemporaryDirectory() as root:
        begin, before = time.perf_counter(), cpu()
        session.start(found.config, Path(root) / "run", found.provenance, {"command": "benchmark"})
        wall, used = time.perf_counter() - begin, cpu() - before
        run = history.load(Path(root) / "run")
    parts = {name: round(float(run.columns[f"time/{name}_s"].values.sum()), 2) for name in PARTS}
    rounds = sum(row["probe"] == "fixed_point" for row in run.probes)
    results = {"wall_s": round(wall, 1), "cpu_s": round(used, 1), "threads": threads, "rounds_of_probes": rounds,
               "iterations": iterations, "wall_s_by_part": parts, "document_s": DOCUMENT_S, "target_s": TARGET_S,
               "ms_per_iteration": round(1000 * (parts["collect"] + parts["update"]) / iterations, 1),
               "s_per_round": round(parts["probes"] / rounds, 2)}  # fmt: skip
    print(f"{wall:.1f} s ({used:.1f} s of processor time), {rounds} rounds of probes: {parts}")
    write("torus", results, started)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
