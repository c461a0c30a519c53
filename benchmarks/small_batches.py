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

from benchmarks import common
from relab.config import layers
from relab.config.layers import Layer
from relab.train import session

SETTINGS = {"algo": "ppo", "env": "cartpole", "algo.envs": 4, "algo.steps": 128, "algo.epochs": 4,
            "algo.minibatches": 4, "algo.hidden": [64, 64], "eval.every": 0, "save.every": 0,
            "eval.stop_at": None}  # fmt: skip
PARTS = ("collect", "update", "log")
ROUNDS = 5
PEER = common.ROOT / ".venv-rejax" / "bin" / "python"
PEER_SCRIPT = common.ROOT / "benchmarks" / "peers" / "rejax_cartpole.py"
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


def peer() -> list[float]:
    """Steps a second of rejax at the same geometry, evaluation off; empty where it is not installed."""
    if not PEER.exists():
        return []
    said = common.timed([PEER, PEER_SCRIPT, "--steps", str(STEPS), "--rounds", "2"]).stdout
    return list(json.loads(said.splitlines()[-1])["each"])


def main() -> None:
    common.warn_if_busy(started := common.machine())
    runs, peers = [], []
    with tempfile.TemporaryDirectory() as root:
        one_run(Path(root) / "warm", 5120)
        for k in range(ROUNDS):
            runs.append(one_run(Path(root) / f"run{k}", STEPS))
            peers += peer()
    speeds = [speed for speed, _ in runs]
    parts = {part: statistics.median(each[part] for _, each in runs) for part in PARTS}
    result = {"steps_per_s": statistics.median(speeds), "each": speeds, "steps": STEPS, "iteration_ms": parts}
    print(f"relab  {result['steps_per_s']:9,.0f} steps/s: median of {ROUNDS} runs of {STEPS:,} steps with all metrics")
    print("       milliseconds of an iteration: " + ", ".join(f"{part} {ms:.2f}" for part, ms in parts.items()))
    if peers:
        result |= {"rejax_steps_per_s": statistics.median(peers), "rejax_each": peers}
        print(f"rejax  {result['rejax_steps_per_s']:9,.0f} steps/s: compiled before, no evaluation, no metrics")
    common.write("small_batches", result, started)


if __name__ == "__main__":
    main()
