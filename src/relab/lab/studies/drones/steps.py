"""How are the runs of the drone study made, and what is each worth on worlds that it never saw?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.lab.studies import Say, making
from relab.record.history import History

SEEDS = (0, 1, 2, 3, 4)
WORLDS = 32  # of a fresh evaluation, 8 drones each
NUMBERS = ("performance", "score", "compat_perfect_deliv", "oob", "grips", "deliveries", "perfect_deliveries")
HOVER_RACE: dict[str, Any] = {"algo": "ppo", "env": "drones", "env.task": "hover_race"}
PICK: dict[str, Any] = {"algo": "ppo", "env": "drones", "env.task": "pick_place"}
PLAYS: dict[str, dict[str, list[str]]] = {  # task -> what its policies play, and how the environment is set for it
    "hover_race": {
        "hover": ["env.task=hover"],
        "race": ["env.task=race", "env.ring_hit=costs"],  # as PufferLib counts: a ring that is hit costs
        "race_to_the_hit": ["env.task=race", "env.ring_hit=ends"],
    },
    "pick_place": {"pick_place": ["env.task=pick_place"]},
}
COURSES: dict[str, dict[str, Any]] = {
    "hover_race": HOVER_RACE | {"total_steps": 20_000_000},
    "pick_place": PICK | {"total_steps": 20_000_000},
    "hover_race_long": HOVER_RACE | {"total_steps": 50_000_000},
    "pick_place_long": PICK | {"total_steps": 100_000_000},
    "hover_race_full": HOVER_RACE | {"total_steps": 90_000_000},
    "pick_place_full": PICK | {"total_steps": 100_000_000},
}


def trained(name: str, seeds: tuple[int, ...]) -> Callable[[Path, int, Say], Document]:
    """A step that trains a course with these seeds and plays each policy that came of it."""

    def run(folder: Path, workers: int, say: Say) -> Document:
        rows = []
        for seed in seeds:
            say(f"  seed {seed}")
            run = making.one(folder / f"s{seed}", COURSES[name] | {"seed": seed}, "what does a swarm learn?", "drones")
            rows.append(of_run(run) | {"played": played(run.folder, COURSES[name]["env.task"])})
        return {"task": COURSES[name]["env.task"], "runs": rows}

    return run


def of_run(run: History) -> Document:
    """Its size, its speed, and how its evaluations went."""
    clock, sps = run.column("time/elapsed_s").values, run.column("time/sps_train").values
    steps = int(run.column("data/updates").steps[-1])
    return {
        "seed": run.meta["seed"], "steps": steps, "seconds": float(clock[-1]), "per_second": steps / float(clock[-1]),
        "per_second_training": float(np.median(sps)), "curve": curve(run),
    }  # fmt: skip


def curve(run: History) -> Document:
    """Means of the deterministic evaluations that were made on the way: every episode's numbers, by step."""
    rows = [row for row in run.evals if row["mode"] == "det"]
    means = {name: [mean(row["episodes"], name) for row in rows] for name in NUMBERS}
    return {"steps": [row["step"] for row in rows], **means}


def mean(episodes: list[Document], name: str) -> float:
    return float(np.mean([episode["info"][name] for episode in episodes]))


def played(folder: Path, task: str) -> Document:
    """The newest weights on fresh worlds: for each task and mode the means over all first episodes, and the ends."""
    from relab.train import fresh

    parts = {}
    for each, changes in PLAYS[task].items():
        episodes = fresh.fresh(folder, "latest", WORLDS, 0, changes)["episodes"]
        parts[each] = {mode: summary(rows) for mode, rows in episodes.items()}
    return parts


def summary(episodes: list[Document]) -> Document:
    success = float(np.mean([episode["success"] for episode in episodes]))
    ends = dict(Counter(episode["end"] for episode in episodes).most_common())
    return {name: mean(episodes, name) for name in NUMBERS} | {"success": success, "ends": ends, "n": len(episodes)}
