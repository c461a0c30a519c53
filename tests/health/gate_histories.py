"""Where do the histories with gates come from? make_histories.py makes them when the tests start.

A made run: 40 iterations, an evaluation of 20 episodes with 32 animals each every five of them, a gate on when the
animals die, a curriculum, a queue of starts and an alert on what is left of it. Death steps are drawn, all metrics
follow from them, and the gate's events are what relab's own gate decides. Each fault changes the command or the draws.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relab.schedules import parse_command, replay

ITERATIONS, EVERY, EPISODES, ANIMALS, LONGEST = 40, 5, 20, 32, 500
FLAGS = {
    "total_iterations": "40", "curriculum": "10:20,20:20", "multi_eval_interval": "5",
    "eval_multi_fish": "32", "eval_multi_episodes": "20",
    "penalty_gate_required_successes": "2", "penalty_gate_success_step_one": "16",
    "penalty_gate_success_early_death": "0.2", "penalty_gate_success_early_death_window": "3",
    "penalty_gate_failure_p10": "10", "penalty_gate_failure_tolerance": "2", "penalty_gate_freeze_iterations": "2",
    "tail_seed_stage_spec": "'20:first.json|type=near;20:second.json|type=far'",
    "tail_stage_warn_ratio": "0.5", "tail_stage_warn_patience": "3", "learning_rate": "3e-4",
}  # fmt: skip


@dataclass
class Made:
    """What the run was told, and how likely an animal dies at once or early at each of its eight evaluations."""

    flags: dict[str, str] = field(default_factory=lambda: dict(FLAGS))
    at_once: np.ndarray = field(default_factory=lambda: np.linspace(0.06, 0.005, ITERATIONS // EVERY))
    early: np.ndarray = field(default_factory=lambda: np.linspace(0.5, 0.03, ITERATIONS // EVERY))
    used: float = 1 / ITERATIONS  # share of the queue used in an iteration

    @property
    def command(self) -> str:
        return "python train.py " + " ".join(f"--{name} {value}" for name, value in self.flags.items())


def draw(made: Made, k: int, rng: np.random.Generator) -> dict[str, float]:
    """One evaluation: the step at which each animal dies, and what follows from it."""
    n = EPISODES * ANIMALS
    step = np.where(rng.random(n) < 0.4, rng.integers(100, LONGEST, n), LONGEST)
    step = np.where(rng.random(n) < made.early[k], rng.integers(2, 100, n), step)
    step = np.where(rng.random(n) < made.at_once[k], 1, step)
    final = (step.reshape(EPISODES, ANIMALS) == LONGEST).mean(1)
    return {"step_one_death_count": float((step == 1).sum()), "step_one_death_ratio": float((step == 1).mean()),
            "early_death_fraction_100": float((step < 100).mean()), "p10": float(np.quantile(step, 0.1)),
            "min_final_survival_rate": float(final.min()), "survival_fraction": float(final.mean())}  # fmt: skip


def write(made: Made, folder: Path) -> None:
    rng = np.random.default_rng(7)
    checks = {at: draw(made, k, rng) for k, at in enumerate(range(EVERY, ITERATIONS + 1, EVERY))}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps(meta(made, folder.name)) + "\n")
    (folder / "config.yaml").write_text("seed: 0\n")
    rows = [row(made, at, checks.get(at, {})) for at in range(1, ITERATIONS + 1)]
    write_rows(folder / "metrics.jsonl", rows)
    write_rows(folder / "events.jsonl", events(made, checks))


def meta(made: Made, name: str) -> dict[str, Any]:
    return {"name": name, "status": "finished", "seed": 0, "command": made.command, "packages": {"relab": "0.1.0"}}


def row(made: Made, at: int, check: dict[str, float]) -> dict[str, Any]:
    left = {"queue/tail_queue_remaining_ratio": max(0.0, 1 - made.used * at)}
    return {"step": at, "axis": "iteration", **{f"foreign/{key}": value for key, value in (left | check).items()}}


def events(made: Made, checks: dict[int, dict[str, float]]) -> list[dict[str, Any]]:
    (gate,) = parse_command(made.command).gates
    values = {metric: [check[metric] for check in checks.values()] for metric in gate.metrics}
    found = replay(gate, list(checks), values)
    return [{"kind": "gate", "step": d.at, "axis": "iteration", "decision": d.outcome, "stage": d.state.stage}
            for d in found]  # fmt: skip


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


# ---- Faults


def out_of_order(made: Made) -> None:
    """Success asks for a lower tenth than failure."""
    made.flags |= {"penalty_gate_success_p10": "7"}


def never(made: Made) -> None:
    """A bar that this policy does not come near to."""
    made.flags |= {"penalty_gate_success_early_death": "0.02"}


def floor(made: Made) -> None:
    """How many die at once is a matter of the starts, and the bar lies below it."""
    made.at_once[:] = 0.04


def implied(made: Made) -> None:
    """A ratio beside the count: 16 of 640 is 0.025."""
    made.flags |= {"penalty_gate_success_step_one_ratio": "0.04"}


def too_late(made: Made) -> None:
    """The queue is used more slowly than planned and falls below the bar one iteration before the end."""
    made.used = 0.5 / (ITERATIONS - 1)


def too_long(made: Made) -> None:
    """The second size is planned to the sixtieth iteration."""
    made.flags |= {"curriculum": "10:20,20:20,40:20"}


def fewer(made: Made) -> None:
    """Twice as many episodes are quoted as were played."""
    made.flags |= {"eval_multi_episodes": str(2 * EPISODES)}


FAULTS: dict[str, Callable[[Made], None]] = {
    "gate-contradiction": out_of_order, "gate-never-advances": never, "bar-under-floor": floor,
    "redundant-threshold": implied, "alert-unreachable": too_late, "schedule-overrun": too_long,
    "implied-sample-size": fewer,
}  # fmt: skip


def make(root: Path) -> None:
    write(Made(), root / "healthy" / "gated")
    for slug, fault in FAULTS.items():
        made = Made()
        fault(made)
        write(made, root / "faulty" / slug)
