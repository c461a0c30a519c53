"""How is each part of the Dreamer study done, and when does a run count as solved and kept?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from relab.lab.studies import Say, making
from relab.record.history import History

HERE = Path(__file__).parent
SOLVED, KEPT = 475.0, 450.0  # mean of the deterministic evaluation: reached, and never below afterwards
TIMES = 3  # as many further updates as it took to reach it
SEEDS = range(5)
RECIPE: dict[str, Any] = {"algo": "dreamer", "env": "cartpole"}
SCORE = "eval/return_det"


def seeds(folder: Path, workers: int, say: Say) -> dict[str, Any]:
    """The shipped settings, seed by seed."""
    rows = []
    for seed in SEEDS:
        say(f"  seed {seed}")
        rows.append(of_run(making.one(folder / f"s{seed}", RECIPE | {"seed": seed}, "solved and kept?", "dreamer")))
    return {"runs": rows}


def ask(name: str) -> Callable[[Path, int, Say], dict[str, Any]]:
    """A step that runs the experiment NAME.yaml of this folder to its answer."""

    def run(folder: Path, workers: int, say: Say) -> dict[str, Any]:
        text, answers, runs_of = making.carry_out(HERE / f"{name}.yaml", folder, workers, say)
        arms = {arm: [of_run(run) for run in runs] for arm, runs in runs_of.items()}
        keys = ("verdict", "text", "delta", "low", "high", "names")
        return {"question": text, "answers": [{k: getattr(a, k) for k in keys} for a in answers], "arms": arms}

    return run


def of_run(run: History) -> dict[str, Any]:
    """Evaluations by step and update, and what they come to."""
    score, made = run.column(SCORE), run.column("data/updates")
    steps = [int(step) for step in score.steps]
    updates = np.interp(score.steps, [0, *made.steps], [0, *made.values])
    seconds = float(run.columns["time/elapsed_s"].values[-1]) if "time/elapsed_s" in run.columns else None
    row = {"seed": run.meta["seed"], "steps": steps, "updates": [round(float(x)) for x in updates],
           "returns": [round(float(x), 1) for x in score.values], "seconds": seconds}  # fmt: skip
    return row | judged(row["updates"], row["returns"], steps)


def judged(updates: list[int], returns: list[float], steps: list[int]) -> dict[str, Any]:
    """When it was solved, the lowest evaluation after that, for how many times as many updates it was watched."""
    first = next((i for i, x in enumerate(returns) if x >= SOLVED), None)
    if first is None:
        return {"solved_at_step": None, "solved_at_update": None, "lowest": None, "watched": 0.0, "kept": False}
    watched = (updates[-1] - updates[first]) / max(updates[first], 1)
    lowest = min(returns[first:])
    return {"solved_at_step": steps[first], "solved_at_update": updates[first], "lowest": lowest,
            "watched": round(watched, 2), "kept": bool(lowest >= KEPT and watched >= TIMES)}  # fmt: skip
