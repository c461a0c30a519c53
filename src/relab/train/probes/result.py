"""What does a probe give back? A number, its noise, how many samples it rests on, and what else it saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relab.base.documents import Document


@dataclass(frozen=True)
class ProbeResult:
    """One row of probes.jsonl."""

    probe: str
    metric: str  # what `value` is called
    value: float
    noise: float  # standard error of the value; NaN where there is none to give
    n: int  # samples
    unit: str = ""
    more: dict[str, Any] = field(default_factory=dict)  # further numbers of the same measurement

    def row(self, step: int, iteration: int) -> Document:
        about = {"step": step, "iteration": iteration, "probe": self.probe, "metric": self.metric}
        return about | {"value": self.value, "noise": self.noise, "n": self.n, "unit": self.unit} | self.more


def error_of_mean(x_TB: np.ndarray) -> float:
    """Standard error of the mean of [T, B] numbers: a trajectory's steps hang together, so trajectories are counted."""
    per_world = x_TB.mean(0)
    return float(per_world.std(ddof=1) / np.sqrt(len(per_world))) if len(per_world) > 1 else float("nan")
