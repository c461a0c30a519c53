"""How did each variant do in each stage? The metric between events of one kind (stage, gate, or a tool's own)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from relab.base.documents import Document
from relab.comparison.numbers import column_of
from relab.runs.grouping import Run

BOOKKEEPING = {
    "start", "resume", "finish", "stop", "interrupt", "error", "checkpoint", "best", "evaluation", "warning",
    "tail_dropped", "tail_completed", "profile",
}  # fmt: skip
LABELS = ("stage", "phase", "name", "to", "label", "decision", "value")  # what an event may call the part it opens


def kinds(runs: Sequence[Run]) -> list[str]:
    """Kinds of events that cut a run into parts, the most frequent first."""
    counts: dict[str, int] = {}
    for run in runs:
        for event in run.history.events:
            kind = event.get("kind")
            if isinstance(kind, str) and kind not in BOOKKEEPING and isinstance(event.get("step"), int):
                counts[kind] = counts.get(kind, 0) + 1
    return sorted(counts, key=lambda kind: -counts[kind])


def parts(run: Run, kind: str) -> list[tuple[str, float, float]]:
    """(label, from, to) of each part; events that follow each other with one label are one part."""
    events = [e for e in run.history.events if e.get("kind") == kind and isinstance(e.get("step"), int)]
    spans: list[tuple[str, float, float]] = []
    for number, event in enumerate(sorted(events, key=lambda e: e["step"]), 1):
        label = next((str(event[key]) for key in LABELS if event.get(key) not in (None, "")), str(number))
        if spans and spans[-1][0] == label:
            continue
        if spans:
            spans[-1] = (*spans[-1][:2], float(event["step"]))
        elif event["step"] > 0:
            spans.append((f"before the first {kind}", -math.inf, float(event["step"])))
        spans.append((label, float(event["step"]), math.inf))
    return spans


def table(arms: Mapping[str, Sequence[Run]], kind: str, metric: str) -> list[Document]:
    """A row for each part: for each arm the mean over its runs of the metric's mean there, and how many runs had it."""
    cells: dict[str, dict[str, list[float]]] = {}
    for label, runs in arms.items():
        for run in runs:
            column = column_of(run, metric)
            for name, low, high in parts(run, kind) if column is not None else ():
                inside = (column.steps >= low) & (column.steps < high) & np.isfinite(column.values)  # type: ignore[union-attr]
                if inside.any():
                    mean = float(column.values[inside].mean())  # type: ignore[union-attr]
                    cells.setdefault(name, {}).setdefault(label, []).append(mean)
    return [
        {"part": name, "arms": {label: {"mean": float(np.mean(v)), "runs": len(v)} for label, v in of_arms.items()}}
        for name, of_arms in cells.items()
    ]
