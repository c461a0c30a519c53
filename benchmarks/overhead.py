"""What do logging, evaluations and checkpoints cost? The steady benchmark as a real run: an evaluation every 1 M steps.

Run as `python -m benchmarks.overhead`. The parts are the run's own timing.jsonl.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.common import machine, warn_if_busy, write
from relab.config import layers
from relab.config.layers import Layer
from relab.record import history
from relab.train import session

SETTINGS = {
    "env": "benchmarks.reach_env:Reach", "total_steps": "4_000_000", "envs": "1024", "steps": "64", "epochs": "4",
    "minibatches": "4", "threads": "2", "eval.every": "1_000_000",
}  # fmt: skip
PARTS = ("collect", "update", "log", "eval", "save")


def main() -> None:
    warn_if_busy(started := machine())
    found = layers.resolve([Layer("benchmark", SETTINGS)])
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "run"
        outcome = session.start(found.config, folder, found.provenance, {"command": "benchmark"})
        run = history.load(folder)
    seconds = {part: float(run.column(f"time/{part}_s").values.sum()) for part in PARTS}
    elapsed = float(run.column("time/elapsed_s").values[-1])
    work = seconds["collect"] + seconds["update"]
    share = {part: seconds[part] / work for part in ("log", "eval", "save")} | {
        "all that is not work": elapsed / work - 1
    }
    print(f"{outcome.step:,} steps in {elapsed:.1f} s ({outcome.step / elapsed:,.0f}/s); of the work itself: " +
          ", ".join(f"{name} {x:.2%}" for name, x in share.items()))  # fmt: skip
    write(
        "overhead",
        {"steps": outcome.step, "elapsed_s": elapsed, "seconds": seconds, "share of the work": share},
        started,
    )


if __name__ == "__main__":
    main()
