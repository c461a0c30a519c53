"""MLflow: runs in an SQLite store (mlflow.db) or in a file store (mlruns/EXPERIMENT/RUN/); mlflow is not needed.

In SQLite a NaN is stored as 0 with is_nan, and infinity as the largest double. The base is opened read-only and as
immutable: nothing is written beside it, not even a lock. Deleted runs and the trash are left out.
"""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from relab.base import limits
from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, read_start
from relab.base.numbers import MAX_STEP
from relab.config.base import ConfigError
from relab.config.yaml_io import parse_yaml
from relab.formats.read import cleanrl, common, settings_files, table
from relab.formats.read.databases import BROKEN, databases, is_plain, opened, rows_outside
from relab.formats.read.source import Listing, Source, problem, put, remark, start
from relab.formats.read.tb_config import iso
from relab.record.history import History

DEEP = True  # a base may lie beside a file store
TABLES = {"runs", "metrics", "params", "experiments"}
HUGE = 1.797e308
NO_RUNS = "runs"  # the key of a base whose runs cannot be listed
LONGEST = 100  # characters of a name
SHORT = 8  # characters of a run's id that tell it apart
STATUS = {"1": "running", "2": "running", "3": "finished", "4": "failed", "5": "interrupted",
          "RUNNING": "running", "SCHEDULED": "running", "FINISHED": "finished", "FAILED": "failed",
          "KILLED": "interrupted"}  # fmt: skip
MAX_BYTES = 1 << 28


def sniff(listing: Listing) -> bool:
    return bool(_bases(listing)) or _is_run(listing)


def sources(listing: Listing) -> list[Source]:
    if _is_run(listing):
        logs = [file for name in ("metrics", "params") for file in _files(listing.folder / name)]
        return [Source("mlflow", listing.folder, (listing.folder / "meta.yaml", *logs))]
    runs = []
    for name in _bases(listing):
        path = listing.folder / name
        runs += [Source("mlflow", path, (path,), key) for key in _run_keys(path)]
    return runs


def read(source: Source) -> History:
    return _read_base(source) if source.key else _read_folder(source)


# ---- SQLite


def _bases(listing: Listing) -> list[str]:
    return [name for name in databases(listing) if _tables(listing.folder / name) >= TABLES]


def _tables(path: Path) -> set[str]:
    try:
        with opened(path) as base:
            return {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except BROKEN:
        return set()


def _run_keys(path: Path) -> list[str]:
    """EXPERIMENT/NAME-ID of each run that is not deleted; ID is the beginning of its id."""
    query = ("SELECT e.name, r.name, r.run_uuid FROM runs r JOIN experiments e ON e.experiment_id = r.experiment_id"
             " WHERE r.lifecycle_stage = 'active' ORDER BY r.start_time, r.run_uuid")  # fmt: skip
    try:
        with opened(path) as base:
            if not all(is_plain(base, name) for name in TABLES):
                return [NO_RUNS]
            return [f"{_word(name)}/{_word(run)}-{str(uuid)[:SHORT]}" for name, run, uuid in base.execute(query)]
    except BROKEN:
        return [NO_RUNS]  # read() says what is wrong with it


def _word(name: Any) -> str:
    return str(name or "run").replace("/", "_")[:LONGEST]


def _read_base(source: Source) -> History:
    history, short = start(source), source.key[-SHORT:]
    try:
        with opened(source.path) as base:
            strange = [name for name in sorted(TABLES) if not is_plain(base, name)]
            if strange:
                raise sqlite3.Error(f"the table {strange[0]} has columns that are computed, not stored")
            query = "SELECT name, status, start_time, end_time, run_uuid FROM runs WHERE substr(run_uuid, 1, ?) = ?"
            *about, uuid = base.execute(query, (SHORT, short)).fetchone() or (None, None, None, None, short)
            params = dict(base.execute("SELECT key, value FROM params WHERE run_uuid = ?", (uuid,)))
            rows = base.execute("SELECT key, step, value, is_nan FROM metrics WHERE run_uuid = ?"
                                " ORDER BY step, timestamp", (uuid,)).fetchall()  # fmt: skip
    except BROKEN as error:
        raise RecordError(f"{source.path.name} cannot be read: {error}") from None
    good = [row for row in rows if type(row[1]) is int and isinstance(row[2], (int, float))]
    if len(good) < len(rows):
        problem(history, source.path, f"{len(rows) - len(good)} rows have no step or no number; they were left out")
    _put(history, [(str(key), step, _number(value, is_nan)) for key, step, value, is_nan in good])
    if outside := rows_outside(source.path):
        problem(history, source.path, outside)
    name, status, began, ended = about
    _finish(history, source, params, {"run_name": name, "status": status, "start_time": began, "end_time": ended})
    return history


def _number(value: float, is_nan: int) -> float:
    if is_nan:
        return math.nan
    return math.copysign(math.inf, value) if abs(value) >= HUGE else float(value)


# ---- Files


def _is_run(listing: Listing) -> bool:
    return "meta.yaml" in listing.files and {"metrics", "params"} <= set(listing.folders) and (
        b"run_id" in (start_of := listing.start_of("meta.yaml")) or b"run_uuid" in start_of
    )  # fmt: skip


def _read_folder(source: Source) -> History:
    history, folder = start(source), source.path
    try:
        about = parse_yaml(limits.read_text(folder / "meta.yaml", limits.YAML, errors="replace"), "meta.yaml")
    except (ConfigError, OSError) as error:
        problem(history, "meta.yaml", str(error), getattr(error, "line", None))
        about = {}
    rows: list[tuple[str, int, float]] = []
    for path in _files(folder / "metrics"):
        rows += _metric_rows(history, path, path.relative_to(folder / "metrics").as_posix())
    _put(history, rows)
    params = {p.relative_to(folder / "params").as_posix(): _text(p) for p in _files(folder / "params")}
    _finish(history, source, params, about)
    return history


def _files(root: Path) -> list[Path]:
    """Files below a folder; links are not followed."""
    files, todo = [], [root]
    while todo:
        for path in sorted(todo.pop().iterdir()):
            if not path.is_symlink():
                todo += [path] if path.is_dir() else []
                files += [path] if path.is_file() else []
    return files


def _text(path: Path) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(10_000).strip()


def _metric_rows(history: History, path: Path, name: str) -> list[tuple[str, int, float]]:
    """Lines of `timestamp value step`; old stores leave the step out."""
    rows, bad = [], 0
    lines = read_start(path, MAX_BYTES).splitlines()
    for number, line in enumerate(lines):
        words = line.split()
        try:
            rows.append((name, int(words[2]) if len(words) > 2 else number, float(words[1])))
        except (ValueError, IndexError):
            bad += bool(words)
    if bad:
        problem(history, path, f"{bad} lines are not `timestamp value step`; they were left out")
    return rows


# ---- Both


def _put(history: History, rows: list[tuple[str, int, float]]) -> None:
    columns: dict[str, list[tuple[int, float]]] = {}
    for name, step, value in rows:
        columns.setdefault(name, []).append((step, value))
    for name, points in columns.items():
        pairs = [pair for pair in points if abs(pair[0]) < MAX_STEP]
        if len(pairs) < len(points):
            problem(history, name, f"{len(points) - len(pairs)} steps are beyond every count; they were left out")
        steps, values = np.array([s for s, _ in pairs], np.int64), np.array([v for _, v in pairs])
        order, said = common.in_order(steps)
        put(history, name, steps[order], values[order], "env_steps", table.translation(name, values))
        if said:
            remark(history, name, said)


def _without_id(name: str, about: Document) -> str:
    """The name that somebody gave the run, in its experiment: those without settings that share it belong together."""
    own = about.get("run_name") or about.get("name")
    return f"{name.rpartition('/')[0]}/{_word(own)}".strip("/") if own else name


def _finish(history: History, source: Source, params: Settings, about: Document) -> None:
    settings_files.use(history, replace(source, name=_without_id(source.name, about)),
                       {key: cleanrl.typed(str(value)) for key, value in params.items()})  # fmt: skip
    facts = {"name": about.get("run_name") or about.get("name"), "status": STATUS.get(str(about.get("status")))}
    for key, time in (("created", about.get("start_time")), ("ended", about.get("end_time"))):
        facts[key] = iso(time / 1000) if isinstance(time, (int, float)) else None
    history.meta |= {key: value for key, value in facts.items() if value}
