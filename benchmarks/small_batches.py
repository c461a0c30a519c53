"""How many steps a second does PPO learn from where most people start? 4 worlds x 128 steps, 4 epochs x 4 minibatches.

Run as `python -m benchmarks.small_batches` on a quiet machine. Whole runs of CartPole, start and end of the
record included: every row of metrics is written, evaluations are off, kernels are compiled before the clock starts.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.common import machine, warn_if_busy, write
from relab.config import layers
from relab.config.layers import Layer
from relab.train import session

SETTINGS = {"algo": "ppo", "env": "cartpole", "algo.envs": 4, "algo.steps": 128, "algo.epochs": 4,
            "algo.minibatches": 4, "algo.hidden": [64, 64], "eval.every": 0, "save.every": 0,
            "eval.stop_at": None}  # fmt: skip
PARTS = ("collect", "update", "log")
ROUNDS = 5
STEPS = 512 * 600


def one_run(folder: Path, steps: int) -> tuple[float, dict[str, float]]:
    """(steps a second of a whole run, milliseconds of an iteration by part)."""
    cfg = layers.resolve([Layer("benchmark", SETTINGS | {"total_steps": steps})]).config
    began = time.perf_counter()
    session.start(cfg, folder, {}, {})
    elapsed = time.perf_counter() - began
    rows = [json.loads(line) for line in (folder / "timing.jsonl").read_text().splitlines()]
    parts = {part: 1e3 * statistics.median(row[f"time/{part}_s"] for row in rows) for part in PARTS}
    return steps / elapsed, parts


def main() -> None:
    warn_if_busy(started := machine())
    with tempfile.TemporaryDirectory() as root:
        one_run(Path(root) / "warm", 5120)
        runs = [one_run(Path(root) / f"run{k}", STEPS) for k in range(ROUNDS)]
    speeds = [speed for speed, _ in runs]
    parts = {part: statistics.median(each[part] for _, each in runs) for part in PARTS}
    median = statistics.median(speeds)
    print(
        f"{median:,.0f} steps/s (median of {ROUNDS} runs of {STEPS:,} steps with all metrics; best {max(speeds):,.0f})"
    )
    print("milliseconds of an iteration: " + ", ".join(f"{part} {ms:.2f}" for part, ms in parts.items()))
    result = {"steps_per_s": median, "best": max(speeds), "each": speeds, "steps": STEPS, "iteration_ms": parts}
    write("small_batches", result, started)


if __name__ == "__main__":
    main()
