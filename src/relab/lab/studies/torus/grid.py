"""What does the original grid hold? beta x alpha_w x offset, ten values each, over seeds: a sweep, and its buckets.

    relab study torus --full --dry-run      the cost first: it is hours
Run ids tell the settings (b0p005_aw0p02_tmos0p2778_s0_...). What runs, resumes and is analysed is `relab sweep`'s.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError
from relab.lab import sweep
from relab.lab.experiment import cells
from relab.lab.studies import Say, Step
from relab.lab.studies.torus.runs import HERE
from relab.record.history import Column, History
from relab.report.analytic import gaussian_run

SECONDS_PER_RUN = 16.0  # 200 iterations without probes
FLAT, TD_MOST, W_MOST, OFF = 1e-6, 1e6, 1e4, 1e-3  # the original report's own limits of its buckets


def step(file: Path = HERE / "grid.yaml") -> Step:
    plan = sweep.load(file)
    sizes = " x ".join(str(len(axis.levels())) for axis in plan.axes)
    what = f"{sizes} values of beta, alpha_w and offset, {len(plan.seeds)} seeds, in buckets"
    n = len(plan.points()) * len(plan.seeds)

    def run(folder: Path, workers: int, say: Say) -> Document:
        return summary(plan, folder, workers, say)

    return Step("grid", what, SECONDS_PER_RUN * n, run)


def summary(plan: sweep.Sweep, folder: Path, workers: int, say: Say) -> Document:
    """Run what is missing, then what the axes do and how many runs are in each bucket."""
    doing = sweep.prepare(plan, folder)
    winner = sweep.run(doing, workers, lambda done, todo: say(f"  {done} of {todo}"), say)
    analysis = sweep.analyse(doing, winner)
    rows = [row_of(cell, doing.ledger.points[cell.variant]) for cell in doing.cells(doing.alive, plan.seeds)]
    return {"runs": len(rows), "buckets": dict(Counter(row["bucket"] for row in rows)),
            "off_policy": sum(row["off_policy"] >= OFF for row in rows if row["off_policy"] is not None),
            "effects": analysis.to_json()["effects"], "text": analysis.text, "rows": rows}  # fmt: skip


def row_of(cell: cells.Cell, point: Settings) -> Document:
    """One run at a time is read; one that stopped with numbers that are not finite is there as well."""
    try:
        run = cells.read(cell)
    except RecordError:  # it failed before its first row
        run = History(cell.folder)
    return {"id": cell.folder.name, **point, "seed": cell.seed, "bucket": bucket(run), "off_policy": off_policy(run)}


def bucket(run: History) -> str:
    """instability, plateau or moving, by the slope and size of the loss and the size of the weights."""
    none = Column(np.zeros(0), np.zeros(0))
    td, w = (run.columns.get(name, none).values for name in ("value/td_loss", "value/w_norm"))
    broken = run.meta.get("status") == "failed" or not len(td) or not np.isfinite(td).all()
    if broken or td.max() > TD_MOST or w.max() > W_MOST:
        return "instability"
    tail = td[-20:]
    slope = float(np.polyfit(np.arange(len(tail)), tail, 1)[0]) if len(tail) > 2 else 0.0
    return "plateau" if abs(slope) < FLAT else "moving"


def off_policy(run: History) -> float | None:
    """max of the 95 % quantiles of gap and rho^2 - 1, and KL: the original report's score; off-policy from 1e-3 on."""
    known = gaussian_run(run)
    if known is None or "policy/tracking_gap" not in run.columns:
        return None
    gap, square = (run.columns[name].values for name in ("policy/tracking_gap", "policy/rho2_mean"))
    return float(max(np.quantile(gap, 0.95), np.quantile(square, 0.95) - 1.0, known.pair(float(gap[-1])).kl()))
