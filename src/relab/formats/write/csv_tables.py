"""Runs as tables: wide/RUN.csv with a column per metric, its settings beside it, and one long table of all runs.

A step stands in the column of what it counts (env_steps, updates, ...). Empty is missing; nan and inf are numbers.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from relab.config.views import flatten
from relab.config.yaml_io import format_yaml
from relab.formats.read.find import Loaded
from relab.formats.read.own_tables import LONG, WIDE
from relab.formats.write.naming import named, settings_of
from relab.formats.write.rows import rows_of, step_names
from relab.record.history import History
from relab.record.state import seed_of

HEAD = ("run", "seed", "metric", "axis", "step", "value")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would calculate a text that begins so


def write(run: Loaded, folder: Path, style: str) -> None:
    """`folder` is the run's in the target; its tables lie beside those of the others."""
    metrics = named(run.history, style)
    root = folder.parent
    view = History(run.history.folder, {m.name: m.column for m in metrics}, {m.name: m.axis for m in metrics})
    (root / WIDE).mkdir(parents=True, exist_ok=True)
    _wide(view, root / WIDE / f"{folder.name}.csv")
    flat = settings_of(run.history, style) if style == "original" else flatten(run.history.config)
    settings = {key: _plain(value) for key, value in flat.items()}
    if settings:
        (root / WIDE / f"{folder.name}.yaml").write_text(format_yaml(settings), encoding="utf-8")
    _long(view, root / LONG, folder.name, seed_of(run.history, run.name))


def _wide(view: History, path: Path) -> None:
    names, axes = list(view.columns), step_names(view)
    with open(path, "x", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*axes.values(), *(text(name) for name in names)])
        for step, axis, values in rows_of(view, names):
            steps = [step if axis == each else "" for each in axes]
            out.writerow([*steps, *(repr(values[name]) if name in values else "" for name in names)])


def _long(view: History, path: Path, run: str, seed: Any) -> None:
    new = not path.exists()
    with open(path, "a", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerows([HEAD] if new else [])
        for name, (steps, values) in view.columns.items():
            head = (text(run), "" if seed is None else text(str(seed)), text(name), view.axes[name])
            out.writerows((*head, step, repr(value)) for step, value in zip(steps.tolist(), values.tolist()))


def text(cell: str) -> str:
    """A name from a log, so that no spreadsheet takes it for a formula.

    >>> text("=1+1"), text("policy/loss")
    ("'=1+1", 'policy/loss')
    """
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, list, dict)) or value is None else str(value)
