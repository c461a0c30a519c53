"""What happened in a run? A run folder as columns, read once; what could not be read is listed, not hidden."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from relab.base import masks
from relab.base.documents import Document, Settings
from relab.base.jsonl import MAX_PROBLEMS, Problem, RecordError, check_regular, inside, read_jsonl, read_packs
from relab.base.near import hint
from relab.base.numbers import MAX_STEP
from relab.base.text import plural
from relab.config.base import ConfigError
from relab.record import run_folder
from relab.record.evaluations import evaluation

COLUMN_FILES = ("metrics.jsonl", "timing.jsonl")
MAX_COLUMNS = 20_000  # metrics of a file
LOSS = re.compile("loss", re.IGNORECASE)
LEARNER = re.compile("loss|^policy/|^value/|^optim/", re.IGNORECASE)  # numbers that are NaN when the networks are
EARNED = re.compile(r"(?i)(?:^|[^a-z])(?:return|returns|reward|rewards|rew|score|episodic_return)(?![a-z])")
SILENT_ROWS = 4  # under which nobody knows how often a metric has a number
END = 0.1  # share of the rows of a training curve that a run is judged by


class Column(NamedTuple):
    """One metric over the run; rows that lack it (or hold null) are left out."""

    steps: np.ndarray  # int64[n]
    values: np.ndarray  # float64[n]


@dataclass(repr=False)
class History:
    """A run: metrics and timing as columns, the rest as rows."""

    folder: Path
    columns: dict[str, Column] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)  # metric -> what its steps count
    evals: list[Document] = field(default_factory=list)
    probes: list[Document] = field(default_factory=list)
    events: list[Document] = field(default_factory=list)
    config: Settings = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)
    meta: Document = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    source: str = "relab"  # the format it was read from
    mapping: dict[str, str] = field(default_factory=dict)  # foreign runs: the tool's name -> the column's
    factors: dict[str, float] = field(default_factory=dict)  # column -> what the tool's number was multiplied with
    keys: dict[str, str] = field(default_factory=dict)  # foreign runs: the tool's config key -> relab's
    files: tuple[Path, ...] = ()  # foreign runs: what it was read from
    counters: dict[str, str] = field(default_factory=dict)  # tables: the column of the steps -> what it counts
    explained: set[str] = field(default_factory=set)  # columns of it that a user's mapping was asked about

    def __repr__(self) -> str:
        rows = ", ".join(
            plural(*each)
            for each in ((len(self.columns), "metric"), (len(self.evals), "evaluation"), (len(self.events), "event"))
        )
        return f"History({str(self.folder)!r}, {self.source}: {rows})"

    @property
    def trained_by_relab(self) -> bool:
        """Whether relab's own trainer made it and can go on with it: other programs write run folders too."""
        return self.source == "relab" and not self.meta.get("logger")

    def column(self, name: str) -> Column:
        """A metric's column; KeyError with the nearest name where the run has none."""
        if name not in self.columns:
            raise KeyError(_no_column(name, self))
        return self.columns[name]


def _no_column(name: str, history: History) -> str:
    close = hint(name, history.columns, f"; the nearest of its {len(history.columns)} is `{{}}`")
    return f"{history.folder} has no metric `{name}`{close if history.columns else '; it has none'}"


def end_rows(steps: np.ndarray) -> int:
    """How many rows are the end of a training curve: those of the last tenth of its steps, and at least five, for one
    row is one noisy episode. Of a short curve five would be too much of it: there an eighth is the end.

    Of steps, not of rows: a log of single episodes has few rows where episodes are long, and many where they are short.

    >>> [end_rows(np.arange(n) + 1) for n in (1, 3, 16, 20, 49, 200)]
    [1, 1, 2, 2, 5, 20]
    """
    n = len(steps)
    if n < 2:
        return 1
    gap = float(steps[-1] - steps[0]) / (n - 1)
    starts = np.r_[float(steps[0]) - gap, steps[:-1]]  # a row is about the steps before it
    span = gap * n
    last = int(np.sum(starts >= float(steps[-1]) - END * span * (1 + 1e-9)))
    return max(1, min(5, n // 8), last if span > 0 else int(END * n))


def flaw(values: np.ndarray, last: int) -> str:
    """Why the last values give no number; empty where they do. A run that ends so has diverged, for every command.

    The values are those of `measured`, so that rows without an episode are none of them.
    """
    bad = int(np.sum(~np.isfinite(values[-last:])))
    return f"{bad} of its last {len(values[-last:])} values not finite" if bad else ""


def lost_at(column: Column) -> int | None:
    """The step of the first row that is not finite and after which none is; None where the column ends with a number.

    >>> lost_at(Column(np.arange(5), np.array([1, np.nan, 2, np.nan, np.inf])))
    3
    """
    good = np.flatnonzero(np.isfinite(column.values))
    first = int(good[-1]) + 1 if len(good) else 0
    return int(column.steps[first]) if first < len(column.values) else None


def silent_since(history: History, metric: str) -> int | None:
    """The step of a metric's last number where the run goes on long after it; None where it has numbers to its end.

    Long is over a tenth of the run, and over three times as far as from any number before it to the next.
    """
    column = history.columns[metric]
    steps = column.steps[np.isfinite(column.values)]
    axis = history.axes.get(metric)
    beside = [c.steps[-1] for name, c in history.columns.items() if len(c.steps) and history.axes.get(name) == axis]
    if len(steps) < SILENT_ROWS or not beside:
        return None
    end = int(max(beside))
    tail, longest = end - int(steps[-1]), int(np.diff(steps).max())
    return int(steps[-1]) if tail > max((end - int(steps[0])) / 10, 3 * longest) else None


def measured(history: History, metric: str) -> Column:
    """A metric in the rows that measured it: many loggers write NaN as the return where no episode ended.

    Only a training return has such rows, and only while what is learned is finite: where that is NaN the run diverged.
    """
    column = history.columns[metric]
    gaps = np.isnan(column.values)
    if not gaps.any() or not _may_have_gaps(metric) or _learner_diverged(history):
        return column
    keep = ~(gaps & _without_episodes(history, column))
    return column if keep.all() else Column(column.steps[keep], column.values[keep])


def _may_have_gaps(metric: str) -> bool:
    return metric.startswith("return/") or bool(EARNED.search(metric) and not metric.startswith("eval/"))


def _without_episodes(history: History, column: Column) -> np.ndarray:
    """The rows in which no episode ended: by their count, else all gaps of a run that shows that it went on.

    It does where what it learns is logged and finite, or where numbers follow upon gaps: such a log writes NaN between.
    """
    counts = history.columns.get("return/episodes")
    if counts is not None:
        return ~np.isin(column.steps, counts.steps[counts.values > 0])
    finite = np.flatnonzero(np.isfinite(column.values))
    between = bool(len(finite)) and not np.isfinite(column.values[: finite[-1]]).all()
    learner = [c for name, c in history.columns.items() if LEARNER.search(name) and len(c.values)]
    return np.full(len(column.steps), between or any(not flaw(c.values, end_rows(c.steps)) for c in learner))


def _learner_diverged(history: History) -> bool:
    losses = (column for name, column in history.columns.items() if LOSS.search(name))
    return any(flaw(column.values, end_rows(column.steps)) for column in losses)


def load(folder: str | os.PathLike[str]) -> History:
    """Read a run folder; nothing is written, no code of the run is imported, broken rows go to `problems`."""
    history = History(Path(folder))
    if not any((history.folder / name).is_file() for name in ("meta.json", "metrics.jsonl")):
        raise RecordError(f"{folder} is no run folder: it has neither meta.json nor metrics.jsonl")
    _read_heads(history)
    for name in COLUMN_FILES:
        _read_columns(history, name)
    history.evals = _rows(history, "evals.jsonl")
    add_evals(history)
    history.probes = _rows(history, "probes.jsonl")
    history.events = _rows(history, "events.jsonl")
    if not history.trained_by_relab:  # other programs write what they have
        history.problems = [p for p in history.problems if "is missing" not in p.message]
    return history


def _read_heads(history: History) -> None:
    readers = {"meta": run_folder.read_meta, "provenance": run_folder.read_provenance, "config": run_folder.read_config}
    for attr, read in readers.items():
        file = {"meta": "meta.json", "provenance": "provenance.json", "config": "config.yaml"}[attr]
        try:
            check_regular(inside(history.folder, file))
            setattr(history, attr, read(history.folder))
        except (RecordError, ConfigError, OSError) as error:
            history.problems.append(Problem(file, getattr(error, "line", None), str(error)))
    mask_heads(history)
    keys = history.meta.get("keys")  # of a record that another program wrote
    history.keys = {k: ours for k, ours in keys.items() if isinstance(ours, str)} if isinstance(keys, dict) else {}


def mask_heads(history: History) -> None:
    """Settings, command and intent without secrets, before anybody shows, compares or exports them; of another tool's
    run all that it says of itself.

    The patch is left to those who show it: it is long, and relab's own records hold it masked.
    """
    history.config = masks.masked(history.config)
    words = ("command", "intent") if history.trained_by_relab else tuple(key for key in history.meta if key != "patch")
    shown = {key: history.meta[key] for key in words if history.meta.get(key)}
    history.meta |= masks.of_meta(shown)
    if not history.trained_by_relab:
        history.meta["spec"] = masks.masked(history.meta.get("spec") or {})
        history.events = masks.masked(history.events)
    history.problems = [p._replace(file=masks.mask(p.file), message=masks.mask(p.message)) for p in history.problems]
    _mask_names(history)


def _mask_names(history: History) -> None:
    """Names of metrics without secrets: whoever logs a dict of settings makes names of them."""
    new = {name: masked for name in history.columns if (masked := masks.mask(name)) != name}
    for i, (name, masked) in enumerate(new.items()):
        new[name] = masked if masked not in history.columns else f"{masked}_{i}"
        history.columns[new[name]] = history.columns.pop(name)
        history.axes[new[name]] = history.axes.pop(name, "env_steps")
        history.factors[new[name]] = history.factors.pop(name, 1.0)
    for names in (history.mapping, history.keys):
        for theirs, ours in [*names.items()]:
            del names[theirs]
            names[masks.mask(theirs)] = new.get(ours, masks.mask(ours))
    history.counters = {masks.mask(name): axis for name, axis in history.counters.items()}


def _rows(history: History, name: str) -> list[Document]:
    try:
        rows, problems = read_jsonl(inside(history.folder, name))
    except (RecordError, OSError) as error:
        rows, problems = [], [Problem(name, None, str(error))]
    history.problems += problems
    return rows


# ---- Rows to columns


def add_evals(history: History, file: str = "evals.jsonl", axis: str = "agent_steps") -> None:
    """eval/* columns from the episodes in history.evals: the record keeps each of them, and the means follow."""
    pairs_by_name: dict[str, list[tuple[int, float]]] = {}
    for i, row in enumerate(history.evals):
        try:
            numbers = _eval_numbers(row)
        except ValueError as error:
            history.problems.append(Problem(file, i + 1, f"no evaluation: {error}"))
            continue
        for name, value in numbers.items():
            pairs_by_name.setdefault(name, []).append((row["step"], value))
    for name, pairs in pairs_by_name.items():
        history.columns[name] = Column(np.array([s for s, _ in pairs], np.int64), np.array([v for _, v in pairs]))
        history.axes[name] = str(history.evals[-1].get("axis", axis))


def _eval_numbers(row: Document) -> dict[str, float]:
    if not is_step(row.get("step")):
        raise ValueError(f"step {row.get('step')!r}")
    level = evaluation(row)
    if level is None:
        return {}
    numbers = {"return": level.mean, "std": level.spread, "length": level.length, "success": level.success}
    named = {f"eval/{name}_{level.mode}": value for name, value in numbers.items() if value is not None}
    return named | ({"eval/episodes": float(level.n)} if level.mode == "det" else {})


def is_step(value: Any) -> bool:
    """JSON has integers that a column of steps cannot hold."""
    return type(value) is int and abs(value) < MAX_STEP


class _Piece(NamedTuple):
    """Values of one metric from rows that had the same keys."""

    at: np.ndarray  # int64: numbers of the rows
    values: np.ndarray


def _read_columns(history: History, file: str) -> None:
    """A file of metrics as columns, some thousands of rows at a time."""
    columns = _Columns(history, file)
    try:
        for rows in read_packs(inside(history.folder, file), history.problems):
            columns.add(rows)
    except (RecordError, OSError) as error:
        history.problems.append(Problem(file, None, str(error)))
    columns.finish()


class _Columns:
    """Rows of metrics on their way to columns; rows of one kind convert at C speed."""

    def __init__(self, history: History, file: str):
        self.history, self.file, self.count, self.lost = history, file, 0, 0
        self.steps: list[np.ndarray] = []
        self.pieces: dict[str, list[_Piece]] = {}
        self.axes: dict[str, str] = {}

    def add(self, rows: list[Document]) -> None:
        steps = np.zeros(len(rows), np.int64)
        groups: dict[tuple[str, ...], tuple[list[int], list[list[Any]]]] = {}
        for i, row in enumerate(rows):
            step, axis = row.pop("step", None), row.pop("axis", "agent_steps")
            if not is_step(step):
                self._no_step(i, step)
                continue
            steps[i] = step
            at, values = groups.setdefault((*row, str(axis)), ([], []))
            at.append(self.count + i)
            values.append(list(row.values()))
        self.steps.append(steps)
        self.count += len(rows)
        for (*names, axis), (numbers, values) in sorted(groups.items(), key=lambda item: item[1][0][-1]):
            for name, piece in _pieces(self.history, self.file, tuple(names), np.array(numbers, np.int64), values):
                if name in self.pieces or len(self.pieces) < MAX_COLUMNS:
                    self.pieces.setdefault(name, []).append(piece)
                    self.axes |= {name: axis} if piece.at.size else {}

    def _no_step(self, i: int, step: Any) -> None:
        self.lost += 1
        if self.lost <= MAX_PROBLEMS:
            message = f"row {self.count + i + 1} needs an integer step, but has {step!r:.80}"
            self.history.problems.append(Problem(self.file, None, message))

    def finish(self) -> None:
        """All pieces as columns of the history."""
        if self.lost > MAX_PROBLEMS:
            more = f"{self.lost - MAX_PROBLEMS} more rows have no integer step"
            self.history.problems.append(Problem(self.file, None, more))
        if len(self.pieces) >= MAX_COLUMNS:
            more = f"there are more than {MAX_COLUMNS} names; those that came later were left out"
            self.history.problems.append(Problem(self.file, None, more))
        steps = np.concatenate(self.steps) if self.steps else np.zeros(0, np.int64)
        for name in list(self.pieces):
            parts = self.pieces.pop(name)
            at, values = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
            if at.size:  # a name without a single number is a problem that was noted, not a column
                order = np.argsort(at, kind="stable")
                self.history.columns[name] = Column(steps[at[order]], values[order])
                self.history.axes[name] = self.axes[name]


def _pieces(
    history: History, file: str, names: tuple[str, ...], at: np.ndarray, values: list[list[Any]]
) -> list[tuple[str, _Piece]]:
    if not any(None in row for row in values):  # numpy would read null as NaN
        try:
            table = np.array(values, np.float64)
            if table.ndim != 2:
                raise ValueError("lists of one length make a block, not a table")
            return [(name, _Piece(at, np.ascontiguousarray(table[:, i]))) for i, name in enumerate(names)]
        except (ValueError, TypeError):
            pass  # text or lists among the numbers: cell by cell
    return [(name, _cells(history, file, name, at, [row[i] for row in values])) for i, name in enumerate(names)]


def _cells(history: History, file: str, name: str, at: np.ndarray, cells: list[Any]) -> _Piece:
    good = [i for i, cell in enumerate(cells) if isinstance(cell, (int, float))]
    bad = [cell for cell in cells if cell is not None and not isinstance(cell, (int, float))]
    if bad:
        said = f"`{name}` is no number in {plural(len(bad), 'row')}, first {bad[0]!r:.80}"
        history.problems.append(Problem(file, None, said))
    return _Piece(at[good], np.array([cells[i] for i in good], np.float64))
