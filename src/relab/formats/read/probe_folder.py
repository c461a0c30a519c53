"""Runs with probes of their own: learning_curves.csv (a row per iteration), probes/NAME.csv, config.json, params.json.

A probe's row becomes {"step", "probe", "value", "noise", "n", ...}: the value is its first column behind the step, the
noise the column of that name with _std, n a count of samples among its columns; every other cell stays in the row
under its own name, text included. So a `converged` of False is not lost for being no number.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, read_start
from relab.base.numbers import MAX_STEP
from relab.config.views import flatten
from relab.formats.read import cleanrl, common, csv_file, settings_files, table
from relab.formats.read.source import Listing, Names, Source, problem, remark, start
from relab.record.history import Column, History

CURVES = "learning_curves.csv"
PROBES = "probes"
REPORT = "run_report.md"  # written when the run ended; its `timestamp` says when that was
STAMP = re.compile(r"^- timestamp: (\S{10,40})$", re.M)
COUNTS = ("n", "n_samples", "num_samples", "batch_size", "cache_batch_size", "samples")
NAMES: Names = {"clip_fraction": ("foreign/clip_fraction", 1)}  # of importance weights, not of PPO's ratio
PLANNED = ("outer_iters", "iterations", "total_iterations", "num_iterations", "max_iterations")


def sniff(listing: Listing) -> bool:
    return CURVES in listing.files and PROBES in listing.folders


def sources(listing: Listing) -> list[Source]:
    folder = listing.folder
    probes = sorted(p for p in (folder / PROBES).glob("*.csv") if p.is_file() and not p.is_symlink())
    own = [folder / name for name in (CURVES, "config.json", "params.json", REPORT) if name in listing.files]
    return [Source("probes", folder, (*own, *probes))]


def read(source: Source) -> History:
    history, files = start(source), {path.name: path for path in source.files}
    table.fill(history, csv_file.load(files[CURVES]), NAMES)
    for path in source.files:
        if path.parent.name == PROBES and path.parent != source.path:
            _probe(history, path)
    _drop_unmeasured(history)
    flat = {**_settings(history, files.get("config.json")), **_settings(history, files.get("params.json"))}
    settings_files.use(history, source, flat)
    _say_end(history, flat)
    if REPORT in files and (stamp := STAMP.search(read_start(files[REPORT], 4096).decode("utf-8", "replace"))):
        history.meta["ended"] = stamp[1]
    return history


def _drop_unmeasured(history: History) -> None:
    """Curves repeat what probes measured and hold NaN in between: there a NaN is no number that went wrong."""
    measured = np.array(sorted({row["step"] for row in history.probes}), np.int64)
    for name, (steps, values) in history.columns.items():
        empty, is_measured = np.isnan(values), np.isin(steps, measured)
        if empty.any() and not empty.all() and is_measured[~empty].all():
            keep = ~empty | is_measured
            history.columns[name] = Column(steps[keep], values[keep])


def _settings(history: History, path: Path | None) -> Settings:
    try:
        return flatten(settings_files.read_settings(path)) if path else {}
    except (RecordError, OSError) as error:
        problem(history, path or "", str(error))
        return {}


def _say_end(history: History, flat: Settings) -> None:
    """Finished when the last iteration is the planned one; else it stopped before."""
    planned = next((flat[key] for key in PLANNED if isinstance(flat.get(key), int)), None)
    last = max((int(c.steps.max()) for c in history.columns.values() if len(c.steps)), default=None)
    if planned is None or last is None:
        return
    history.meta["status"] = "finished" if last + 1 >= planned else "interrupted"
    if last + 1 < planned:
        remark(history, CURVES, f"{planned} iterations were planned, but the run ends after {last + 1}")


# ---- Probes


def _probe(history: History, path: Path) -> None:
    cells = csv_file.load(path)
    history.problems += cells.problems
    names = cells.names
    axis = next((name for name in names if common.step_axis(name)), None)
    if axis is None:
        problem(history, path, f"no column counts the steps; there are {', '.join(names[:6])}")
        return
    values, lost = [name for name in names if name != axis], 0
    for i in range(len(cells.lines)):
        row = {name: _cell(cells.cells[name][i]) for name in names}
        if type(row[axis]) is int and abs(row[axis]) < MAX_STEP:
            history.probes.append(_row(path.stem, row, axis, values))
        else:
            lost += 1
    if lost:
        problem(history, path, f"{lost} rows have no whole step that a count can reach; they were left out")


def _row(probe: str, row: Document, axis: str, values: list[str]) -> Document:
    first = values[0] if values else axis
    noise = row.get(f"{first}_std")
    count = next((row[name] for name in COUNTS if isinstance(row.get(name), int)), None)
    about = {"step": row[axis], "axis": common.step_axis(axis), "probe": probe, "metric": first}
    rest = {name: row[name] for name in values if name not in about and name not in ("value", "noise", "n")}
    return {**about, "value": row.get(first), "noise": noise, "n": count, **rest}


def _cell(cell: Any) -> Any:
    """A number where it is one, True and False as such, nothing as None."""
    if not isinstance(cell, str):
        return cell
    return cleanrl.typed(cell.strip()) if cell.strip() else None
