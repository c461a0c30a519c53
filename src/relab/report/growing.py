"""How did a run get where it is? Its curves as a film that grows from left to right, with its stages and gates.

Two pictures are drawn, one with the curves and one without; every frame takes the first up to a column and the second
beyond it, so that a film of any length costs two drawings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relab.base.documents import Document
from relab.base.media import write_film
from relab.config.base import require
from relab.record.history import History

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EARLY = "multi/early_death_"  # and a step
CHOICES = (("multi/avg_final", EARLY, "return/mean_100"), ("eval/return_det", "return/mean_100"))
MARKS = {"stage": "#b0b4be", "gate": "#ca8a54"}  # events that are drawn, and their colours
MOST_SET = 2  # settings that are drawn below what the run is judged by
FRAMES, HOLD, FPS = 60, 12, 12  # pictures while it grows, pictures of the end


def film(run: History, path: Path, metrics: Sequence[str] = ()) -> Document:
    """Write the film (.gif or .mp4) of these metrics, by default of what the run is judged by."""
    names = list(metrics) or chosen(run)
    missing = [name for name in names if name not in run.columns]
    require(bool(names) and not missing, f"{run.folder.name} has no {', '.join(missing) or 'metric to draw'}")
    empty, full, edges = pictures(run, names)
    frames = write_film(path, grown(empty, full, edges), FPS)
    return {"path": str(path), "metrics": names, "frames": frames}


def chosen(run: History) -> list[str]:
    """The first choice of which the run has something, and what its gates or phases set: the penalty."""
    early = next((name for name in run.columns if name.startswith(EARLY)), EARLY)  # by the first bar that was set
    present = ([name for name in (early if name == EARLY else name for name in names) if name in run.columns]
               for names in CHOICES)  # fmt: skip
    return [*next((names for names in present if names), []), *penalties(run)]


def penalties(run: History) -> list[str]:
    """What a schedule set by its gates and phases, e.g. stage/density_coef; of a foreign log the like column."""
    plan = run.config.get("schedule")
    plan = plan if isinstance(plan, dict) else {}
    gates = plan["gates"].values() if isinstance(plan.get("gates"), dict) else ()
    keys = [key for gate in gates if isinstance(gate, dict) for key in gate.get("sets") or {}]
    names = dict.fromkeys(f"stage/{key}" for key in (*keys, *(plan.get("phases") or {})))
    theirs = [name for name in run.columns if name.startswith("foreign/schedule/") and "penalty" in name]
    return [name for name in (*names, *theirs) if name in run.columns][:MOST_SET]


def grown(empty: np.ndarray, full: np.ndarray, edges: tuple[int, int]) -> Iterator[np.ndarray]:
    for column in np.linspace(*edges, FRAMES).astype(int):
        frame = empty.copy()
        frame[:, :column] = full[:, :column]
        yield frame
    for _ in range(HOLD):
        yield full


def pictures(run: History, names: list[str]) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """(without curves, with them, first and last column of the curves)"""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 1.6 * len(names) + 0.6), dpi=100)
    canvas, last = FigureCanvasAgg(figure), max(run.columns[name].steps[-1] for name in names)
    for row, name in enumerate(names):
        frame_of(figure, run, name, (len(names), 1, row + 1), last)
    figure.tight_layout()
    empty = pixels(canvas)
    for axes, name in zip(figure.axes, names):
        steps, values = run.columns[name]
        axes.plot(steps, values, color="#426eb4", lw=1.4, marker="o" if len(steps) < 40 else "", ms=3)
        for event in run.events:
            if event.get("kind") in MARKS:
                axes.axvline(event["step"], color=MARKS[event["kind"]], lw=0.6, zorder=0)
    left, right = (figure.axes[0].transData.transform((step, 0))[0] for step in (0, last))
    return empty, pixels(canvas), (int(left), int(right) + 3)


def frame_of(figure: Figure, run: History, name: str, place: tuple[int, int, int], last: int) -> None:
    """Axes that already have the range of the whole curve."""
    values = run.columns[name].values[np.isfinite(run.columns[name].values)]
    axes, low, high = figure.add_subplot(*place), float(values.min()), float(values.max())
    pad = 0.06 * (high - low) or 0.5
    axes.set(xlim=(0, 1.02 * last), ylim=(low - pad, high + pad))
    axes.set_title(name, fontsize=9, loc="left")
    axes.tick_params(labelsize=8)
    if place[2] == place[0]:
        axes.set_xlabel(run.axes.get(name, "steps").replace("_", " "), fontsize=8)


def pixels(canvas: Any) -> np.ndarray:
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
