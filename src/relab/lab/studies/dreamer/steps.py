"""How is each part of the Dreamer study done, and when does a run count as solved and kept?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from relab.lab.studies import Carry, Say, making
from relab.record.history import History

HERE = Path(__file__).parent
SOLVED, KEPT = 475.0, 450.0  # mean of the deterministic evaluation: reached, and never below afterwards
TIMES = 3  # as many further updates as it took to reach it
SEEDS = range(60, 65)  # others have been looked at with other settings
RECIPE: dict[str, Any] = {"algo": "dreamer", "env": "cartpole"}
SCORE = "eval/return_det"


def seeds(folder: Path, workers: int, say: Say) -> dict[str, Any]:
    """The shipped settings, seed by seed."""
    rows = []
    for seed in SEEDS:
        say(f"  seed {seed}")
        settings = RECIPE | {"seed": seed}
        rows.append(of_run(making.one(folder / f"s{seed}", settings, "solved and kept?", "dreamer")))
    return {"runs": rows}


def ask(name: str, fresh: bool = False) -> Carry:
    """A step that runs the experiment NAME.yaml of this folder to its answer."""

    def run(folder: Path, workers: int, say: Say) -> dict[str, Any]:
        file, finished = HERE / f"{name}.yaml", trained(folder.parent)
        text, answers, runs_of = making.carry_out(file, folder, workers, say, finished, fresh)
        arms = {arm: [of_run(run) for run in runs] for arm, runs in runs_of.items()}
        keys = ("verdict", "text", "delta", "low", "high", "names")
        return {"question": text, "answers": [{k: getattr(a, k) for k in keys} for a in answers], "arms": arms}

    return run


def trained(root: Path) -> list[Path]:
    """Runs of the steps before: an arm of the shipped settings is not trained for each question anew."""
    return sorted(path for pattern in ("seeds/s*", "*/runs/*") for path in root.glob(pattern) if path.is_dir())


def of_run(run: History) -> dict[str, Any]:
    """Evaluations by step and update, and what they come to."""
    score, made = run.column(SCORE), run.column("data/updates")
    steps = [int(step) for step in score.steps]
    updates = np.interp(score.steps, [0, *made.steps], [0, *made.values])
    row = {"seed": run.meta["seed"], "steps": steps, "updates": [round(float(x)) for x in updates],
           "returns": [round(float(x), 1) for x in score.values], "seconds": seconds_at(run, steps)}  # fmt: skip
    return row | judged(row["updates"], row["returns"], steps)


def seconds_at(run: History, steps: list[int]) -> list[float] | None:
    """Of the clock, from the start of the run to each evaluation; other work may have slowed it down."""
    clock = run.columns.get("time/elapsed_s")
    if clock is None:
        return None
    return [round(float(x), 1) for x in np.interp(steps, [0, *clock.steps], [0, *clock.values])]


def judged(updates: list[int], returns: list[float], steps: list[int]) -> dict[str, Any]:
    """When it was solved, the lowest evaluation after that, for how many times as many updates it was watched."""
    first = next((i for i, x in enumerate(returns) if x >= SOLVED), None)
    if first is None:
        return {"solved_at_step": None, "solved_at_update": None, "lowest": None, "further": 0, "watched": 0.0,
                "kept": False}  # fmt: skip
    further = updates[-1] - updates[first]
    watched, lowest = further / max(updates[first], 1), min(returns[first:])
    return {"solved_at_step": steps[first], "solved_at_update": updates[first], "lowest": lowest, "further": further,
            "watched": round(watched, 2), "kept": bool(lowest >= KEPT and watched >= TIMES)}  # fmt: skip
