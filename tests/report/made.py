"""Small run folders with known contents, for the tests of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from relab.record.run_folder import Record

RANDOM = {"return_mean": 20.0, "return_std": 8.0, "n": 100}


def write_run(
    folder: Path,
    evals: Sequence[float] = (),
    seed: int = 0,
    spread: float = 2.0,
    status: str = "finished",
    config: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    every: int = 1000,
) -> Path:
    """A run with these evaluation means, 10 episodes each, half of them `spread` above and half below."""
    settings = {
        "algo": {"name": "ppo", "lr": 0.001},
        "env": {"name": "made-v1"},
        "total_steps": 10_000,
        **(config or {}),
    }
    about = {"seed": seed, "command": f"relab train ppo seed={seed}", "spec": {"random": RANDOM}, **(meta or {})}
    with Record.create(folder, {**settings, "seed": seed}, {"algo.lr": "command line"}, about) as record:
        record.append_event("start", 0)
        for i, mean in enumerate(evals):
            record.append_eval({"step": i * every, "mode": "det", "noise": 0.0, "episodes": episodes(mean, spread)})
            record.append_metrics(i * every, {"return/mean": mean, "policy/entropy": 0.5 - i / 100})
            record.append_timing(i * every, {"time/elapsed_s": 2.0 * i, "time/collect_s": 0.5, "time/update_s": 0.5})
        record.update_meta(status=status)
    return folder


def episodes(mean: float, spread: float) -> list[dict[str, Any]]:
    values = [mean + spread * (1 if k % 2 else -1) for k in range(10)]
    return [{"seed": k, "return": v, "length": 5, "success": None, "end": "fell"} for k, v in enumerate(values)]
