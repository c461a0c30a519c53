"""What does the document's grid hold? beta x alpha_w x offset, ten values each, over seeds, sorted into buckets.

    relab study torus --full --plan      the cost first: it is days
Run ids tell the settings (b0p005_aw0p02_tmos0p2778_s0_...); a run that is there is not repeated.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from relab.history import History
from relab.report.analytic import seen
from relab.studies import Say, Step
from relab.studies.torus import runs

SEEDS = (0, 1, 2)
SECONDS_PER_RUN = 16.0  # 200 iterations without probes
FLAT, TD_MOST, W_MOST, OFF = 1e-6, 1e6, 1e4, 1e-3  # the document's own limits of its buckets


class Point(NamedTuple):
    """One run of the grid."""

    beta: float
    alpha_w: float
    offset: float
    seed: int

    @property
    def id(self) -> str:
        """b{beta}_aw{alpha_w}_tmos{offset}_s{seed}_{hash}, with p for the point and m for minus."""
        text = f"b{self.beta:.4g}_aw{self.alpha_w:.4g}_tmos{self.offset:.4g}_s{self.seed}"
        digest = hashlib.md5(json.dumps(self._asdict(), sort_keys=True).encode(), usedforsecurity=False).hexdigest()
        return f"{text.replace('.', 'p').replace('-', 'm')}_{digest[:8]}"

    def settings(self) -> dict[str, Any]:
        return {"algo": "tracking_ac", "env": "torus", "seed": self.seed, "eval.episodes": 2, "algo.beta": self.beta,
                "algo.alpha_w": self.alpha_w, "algo.theta_mu_offset_scale": self.offset}  # fmt: skip


def points(size: int = 10, seeds: tuple[int, ...] = SEEDS) -> list[Point]:
    beta, alpha, offset = np.geomspace(5e-4, 0.5, size), np.geomspace(0.02, 200.0, size), np.linspace(0.0, 0.5, size)
    axes = ([float(f"{x:.4g}") for x in axis] for axis in (beta, alpha, offset))
    return [Point(b, a, o, seed) for b, a, o in itertools.product(*axes) for seed in seeds]


def step(size: int = 10, seeds: tuple[int, ...] = SEEDS) -> Step:
    every = points(size, seeds)
    what = f"{size} x {size} x {size} values of beta, alpha_w and offset, {len(seeds)} seeds, in buckets"

    def run(folder: Path, workers: int, say: Say) -> dict[str, Any]:
        return summary(folder, every, say)

    return Step("grid", what, SECONDS_PER_RUN * len(every), run)


def summary(folder: Path, every: list[Point], say: Say, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run what is missing, then count the buckets; a run that diverged is kept as that."""
    rows = []
    for k, point in enumerate(every):
        say(f"  {k + 1} of {len(every)}: {point.id}")
        run = runs.one(folder / point.id, point.settings() | (settings or {}), "the document's grid")
        rows.append({"id": point.id, **point._asdict(), "bucket": bucket(run), "off_policy": off_policy(run)})
    return {"runs": len(rows), "buckets": dict(Counter(row["bucket"] for row in rows)), "rows": rows}


def bucket(run: History) -> str:
    """instability, learning or plateau, by the slope and size of the loss and the weights."""
    td, w = run.columns["value/td_loss"].values, run.columns["value/w_norm"].values
    if run.meta.get("status") == "failed" or not np.isfinite(td).all() or td.max() > TD_MOST or w.max() > W_MOST:
        return "instability"
    tail = td[-20:]
    slope = float(np.polyfit(np.arange(len(tail)), tail, 1)[0]) if len(tail) > 2 else 0.0
    return "plateau" if abs(slope) < FLAT else "moving"


def off_policy(run: History) -> float:
    """max of the 95 % quantiles of gap and rho^2 - 1: the document's score; off-policy from 1e-3 on."""
    known = seen(run)
    gap, square = (run.columns[name].values for name in ("policy/tracking_gap", "policy/rho2_mean"))
    assert known is not None, "a run of tracking_ac"
    return float(max(np.quantile(gap, 0.95), np.quantile(square, 0.95) - 1.0, known.pair(float(gap[-1])).kl()))
