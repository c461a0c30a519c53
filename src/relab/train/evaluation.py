"""How good is the agent while it trains, and which evaluation was its best? The evidence that `best` is chosen by.

Fixed first episodes, deterministic and sampled, on worlds and random streams of their own; counted apart from training.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from relab.base.streams import world_seeds
from relab.config.run import Run
from relab.train import checkpoint, rollout
from relab.train.envs.base import Worlds


@dataclass
class Progress:
    """What the loop must remember beside the algorithm's state; part of every checkpoint."""

    next_eval: int = 0
    next_save: int = 0
    eval_steps: int = 0  # world steps spent on evaluations
    last_eval: int = -1  # step of the last evaluation
    best: dict[str, Any] | None = None


def read_progress(kept: dict[str, Any]) -> Progress:
    """What a checkpoint kept of it; ValueError where it is not what was written."""
    checkpoint.check_like(kept, asdict(Progress()))
    if kept["best"] is not None:
        checkpoint.check_like({"best": kept["best"]}, {"best": {"step": 0, "metric": "", "value": 0.0}})
    return Progress(**kept)


class Played(NamedTuple):
    """One evaluation: its rows for the record, and mean and noise by mode."""

    rows: list[dict[str, Any]]
    modes: dict[str, dict[str, float]]

    @property
    def open_ends(self) -> dict[str, int]:
        """How many episodes were cut off before their end, of how many, and after how many steps."""
        episodes = [episode for row in self.rows for episode in row["episodes"] if episode["end"] != "unused"]
        return {"cut": sum(e["end"] == "cap" for e in episodes), "n": len(episodes), "cap": rollout.STEP_CAP}


class Evaluator:
    """Plays the evaluations of one run."""

    def __init__(self, cfg: Run, env: Any):
        self.cfg, self.env = cfg, env  # the environment as configured, whatever a schedule does to that of training
        self.worlds: Worlds | None = None

    @property
    def metric(self) -> str:
        return f"eval/return_{self.cfg.eval.by}"

    def play(self, agent: Any, step: int, p: Progress) -> Played:
        """Evaluate now; `p` learns what it cost and when the next one is due."""
        cfg = self.cfg.eval
        if self.worlds is None:
            self.worlds = Worlds(self.env, 2 * cfg.episodes)
        seeds = world_seeds(self.cfg.seed, f"eval/{step}", cfg.episodes)
        found = rollout.evaluate(self.env, agent, seeds, worlds=self.worlds, cap=rollout.STEP_CAP)
        p.eval_steps += found.sim_steps
        p.last_eval = step
        p.next_eval = (step // cfg.every + 1) * cfg.every if cfg.every else 0
        modes = {mode: summary(found.world_means(mode)) for mode in found.episodes}
        rows = [{"step": step, "mode": mode, "noise": modes[mode]["noise"], "episodes": episodes}
                for mode, episodes in found.episodes.items()]  # fmt: skip
        return Played(rows, modes)

    def candidate(self, played: Played, step: int) -> dict[str, Any]:
        """The evaluation as evidence for `best`: number, noise, and how it was got."""
        by = self.cfg.eval.by
        (n,) = (len(row["episodes"]) for row in played.rows if row["mode"] == by)
        found = {"step": step, "metric": self.metric, "value": played.modes[by]["mean"]}
        found |= {"noise": played.modes[by]["noise"], "n": n}
        return found | {"protocol": f"first episodes, {by}, seeds of stream eval/{step}"}

    def reached_goal(self, step: int, p: Progress) -> bool:
        goal, best = self.cfg.eval.stop_at, p.best
        return goal is not None and best is not None and best["step"] == step and best["value"] >= goal


def summary(per_world: np.ndarray) -> dict[str, float]:
    """Mean return and its standard error over worlds: agents of one world share an episode and count as one sample."""
    noise = per_world.std(ddof=1) / math.sqrt(len(per_world)) if len(per_world) > 1 else math.nan
    return {"mean": float(per_world.mean()), "noise": float(noise)}


def note_best(p: Progress, candidate: dict[str, Any]) -> bool:
    """Keep the candidate if it is better than the best so far; was it?"""
    better = math.isfinite(candidate["value"]) and (p.best is None or candidate["value"] > p.best["value"])
    if better:
        p.best = candidate
    return better


def point_to_best(root: Path, p: Progress) -> None:
    """best.json points to the folder of the best evaluation, with the evidence for it."""
    if p.best is not None:
        name = f"step-{p.best['step']:012d}"
        if (root / name).is_dir():
            checkpoint.point(root, "best", name, **p.best)
