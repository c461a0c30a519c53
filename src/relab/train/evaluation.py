"""How good is the agent while it trains, and which evaluation was its best? The evidence that `best` is chosen by.

Fixed first episodes, deterministic and sampled, on worlds and random streams of their own; counted apart from training.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from relab.base.documents import Document
from relab.base.streams import world_seeds
from relab.config.run import RunConfig
from relab.record.evaluations import Evaluation, evaluation, judging_metric
from relab.train import checkpoint, rollout
from relab.train.envs.base import Worlds


@dataclass
class Progress:
    """What the loop must remember beside the algorithm's state; part of every checkpoint."""

    next_eval: int = 0
    next_save: int = 0
    eval_steps: int = 0  # world steps spent on evaluations
    last_eval: int = -1  # step of the last evaluation
    best: Document | None = None
    owed: dict[str, float] | None = None  # the row whose evaluation was cut short; it is judged when the run goes on


def read_progress(kept: Document) -> Progress:
    """What a checkpoint kept of it; ValueError where it is not what was written."""
    kept = {"owed": None, **kept}  # which there was not always
    checkpoint.check_like(kept, asdict(Progress()))
    if kept["owed"] is not None:
        checkpoint.check_like(kept["owed"], dict.fromkeys(kept["owed"], 0.0))
    if kept["best"] is not None:
        checkpoint.check_like({"best": kept["best"]}, {"best": {"step": 0, "metric": "", "value": 0.0}})
    return Progress(**kept)


class Played(NamedTuple):
    """One evaluation: its rows for the record, and what they say by mode."""

    rows: list[Document]
    modes: dict[str, Evaluation]

    @property
    def open_ends(self) -> dict[str, int]:
        """How many episodes were cut off before their end, of how many, and after how many steps."""
        episodes = [episode for row in self.rows for episode in row["episodes"] if episode["end"] != "unused"]
        return {"cut": sum(e["end"] == "cap" for e in episodes), "n": len(episodes), "cap": rollout.STEP_CAP}


class Evaluator:
    """Plays the evaluations of one run."""

    def __init__(self, cfg: RunConfig, env: Any):
        self.cfg, self.env = cfg, env  # the environment as configured, whatever a schedule does to that of training
        self.worlds: Worlds | None = None

    @property
    def metric(self) -> str:
        """What `best` and `eval.stop_at` go by: the outcome that the environment declares."""
        return judging_metric(self.outcome, self.cfg.eval.by)

    @property
    def outcome(self) -> str:
        return str(self.env.spec.outcome)

    def play(self, agent: Any, step: int, p: Progress, before_step: rollout.Frames | None = None) -> Played:
        """Evaluate now; `p` learns what it cost and when the next one is due. `before_step` may cut it short."""
        cfg = self.cfg.eval
        if self.worlds is None:
            self.worlds = Worlds(self.env, 2 * cfg.episodes)
        seeds = world_seeds(self.cfg.seed, f"eval/{step}", cfg.episodes)
        batch = rollout.evaluate(self.env, agent, seeds, frames=before_step, worlds=self.worlds, cap=rollout.STEP_CAP)
        p.eval_steps += batch.sim_steps
        p.last_eval = step
        p.next_eval = (step // cfg.every + 1) * cfg.every if cfg.every else 0
        rows = [self.row(step, mode, episodes) for mode, episodes in batch.episodes.items()]
        levels = {row["mode"]: evaluation(row, self.outcome) for row in rows}
        return Played(rows, {mode: level for mode, level in levels.items() if level is not None})

    def row(self, step: int, mode: str, episodes: list[Document]) -> Document:
        """As in evals.jsonl; `noise` is the standard error, which readers can make of the episodes as well."""
        made: Document = {"step": step, "mode": mode, "noise": math.nan, "episodes": episodes}
        level = evaluation(made, self.outcome)
        return made | {"noise": level.se if level else math.nan}

    def candidate(self, played: Played, step: int) -> Document:
        """The evaluation as evidence for `best`: number, noise, and how it was got."""
        by = self.cfg.eval.by
        level = played.modes[by]
        evidence = {"step": step, "metric": self.metric, "value": level.mean, "noise": level.se, "n": level.n}
        return evidence | {"protocol": f"first episodes, {by}, seeds of stream eval/{step}"}

    def reached_goal(self, step: int, p: Progress) -> bool:
        goal, best = self.cfg.eval.stop_at, p.best
        return goal is not None and best is not None and best["step"] == step and best["value"] >= goal


def note_best(p: Progress, candidate: Document) -> bool:
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
