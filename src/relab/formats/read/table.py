"""How does a table of cells (CSV, JSON lines) become columns? Steps by name, text apart from numbers, runs told apart.

The rules are in docs/importers.md. What cannot be read is reported with its first line, never raised.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from relab.base.documents import Settings
from relab.base.jsonl import Problem
from relab.base.numbers import integer
from relab.base.text import plural
from relab.formats.read import common, step_axis
from relab.formats.read.source import Names, problem, put, remark
from relab.record.history import History

MAX_CELLS = 60_000_000  # of a file, empty ones too: a few short lines below a wide one would fill any memory
PACK = 50_000  # rows that are held as they were read; beyond, numbers take 8 bytes each
MAX_STEP = 2**53  # larger integers do not survive a float
RUN_KEYS = ("run", "run_id", "run_name", "trial", "trial_id", "variant", "method")
FACT_KEYS = ("algo", "algorithm", "env", "env_id", "env_name", "task")
KEYS = (*RUN_KEYS, *FACT_KEYS, "seed")
WORDS = {"true": 1.0, "false": 0.0}
Cell = str | float | int | bool | None


@dataclass(frozen=True)
class Packed:
    """A column of numbers, some of which may be missing."""

    values: np.ndarray  # float64
    empty: np.ndarray | None = None  # bool; None where no cell is missing

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, (int, np.integer)):
            return None if self.empty is not None and self.empty[at] else float(self.values[at])
        return Packed(self.values[at], None if self.empty is None else self.empty[at])

    def __iter__(self) -> Iterator[float | None]:
        return (self[i] for i in range(len(self)))


@dataclass(frozen=True)
class Coded:
    """A column of words, each of which is kept once."""

    words: list[str]
    codes: np.ndarray  # int32: number of each cell's word

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at: Any) -> Any:
        return self.words[self.codes[at]] if isinstance(at, (int, np.integer)) else Coded(self.words, self.codes[at])

    def __iter__(self) -> Iterator[str]:
        return map(self.words.__getitem__, self.codes.tolist())


def pack(cells: Sequence[Cell]) -> Packed | Sequence[Cell]:
    """A column as numbers where all its cells are numbers or missing, else as it is."""
    try:
        return Packed(np.fromiter(map(float, cells), np.float64, len(cells)))  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        pass  # a cell is missing, or a word
    read = [_number(cell) for cell in cells]
    if any(value is False for value in read):
        return cells
    empty = np.array([value is None for value in read], bool)
    return Packed(np.array([np.nan if value is None else value for value in read], np.float64), empty)


@dataclass(frozen=True)
class Joined:
    """Parts of one column below each other: words among them, or numbers here and words there."""

    parts: list[Any]

    @cached_property
    def ends(self) -> np.ndarray:
        return np.cumsum([len(part) for part in self.parts])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        at = int(at) % len(self)
        part = int(np.searchsorted(self.ends, at, "right"))
        return self.parts[part][at - int(self.ends[part]) + len(self.parts[part])]

    def __iter__(self) -> Iterator[Any]:
        return (cell for part in self.parts for cell in part)


def join(parts: Sequence[Any]) -> Packed | Joined | list[Cell]:
    """Parts of one column below each other; as numbers where all of them are."""
    if not any(isinstance(part, (Packed, Coded)) for part in parts):
        return [cell for part in parts for cell in part]
    if not all(isinstance(part, Packed) for part in parts):
        return Joined(list(parts))
    values = np.concatenate([part.values for part in parts])
    if all(part.empty is None for part in parts):
        return Packed(values)
    empty = [np.zeros(len(part), bool) if part.empty is None else part.empty for part in parts]
    return Packed(values, np.concatenate(empty))


@dataclass
class Table:
    """The cells of one file, column by column; None and "" are missing."""

    file: str
    cells: dict[str, Any] = field(default_factory=dict)  # lists of cells, or Packed
    lines: Sequence[int] = field(default_factory=lambda: array("q"))  # of each row, from 1
    problems: list[Problem] = field(default_factory=list)
    settings: Settings = field(default_factory=dict)  # flat: what lines before the first row say of the run

    @property
    def names(self) -> list[str]:
        return list(self.cells)

    def is_full(self, rows: int, columns: int, line: int) -> bool:
        """Whether so many cells are too many; says so once, at the line where reading stops."""
        if rows * columns <= MAX_CELLS:
            return False
        message = f"{rows} rows of {columns} columns are more than {MAX_CELLS} cells; the rest was left out"
        self.problems.append(Problem(self.file, line, message))
        return True

    def rows(self, at: Sequence[int]) -> Table:
        """The same file, fewer rows; what was wrong with the file stays with it."""
        if len(at) == len(self.lines):  # all of them, in order: nothing is copied
            return Table(self.file, self.cells, self.lines, list(self.problems), self.settings)
        cells = {name: column[np.asarray(at)] if isinstance(column, (Packed, Coded)) else [column[i] for i in at]
                 for name, column in self.cells.items()}  # fmt: skip
        return Table(self.file, cells, array("q", (self.lines[i] for i in at)), list(self.problems), self.settings)


@dataclass(frozen=True)
class Numbers:
    """What could be read of a column."""

    at: np.ndarray  # rows that hold a number
    values: np.ndarray
    bad: Sequence[int]  # rows that hold something else


def numbers(cells: Sequence[Cell]) -> Numbers:
    if isinstance(cells, Coded):
        return _coded_numbers(cells)
    if isinstance(cells, Joined):
        parts, starts = [numbers(part) for part in cells.parts], [0, *cells.ends.tolist()]
        there = np.concatenate([each.at + start for each, start in zip(parts, starts)])
        bad = array("q", (i + start for each, start in zip(parts, starts) for i in each.bad))
        return Numbers(there, np.concatenate([each.values for each in parts]), bad)
    if isinstance(cells, Packed):
        there = np.arange(len(cells)) if cells.empty is None else np.flatnonzero(~cells.empty)
        return Numbers(there, cells.values if cells.empty is None else cells.values[there], [])
    if None not in cells and "" not in cells:
        try:
            return Numbers(np.arange(len(cells)), np.asarray(cells, np.float64).reshape(len(cells)), [])
        except (ValueError, TypeError, OverflowError):
            pass  # text among the numbers: cell by cell
    read = [_number(cell) for cell in cells]
    at = [i for i, value in enumerate(read) if isinstance(value, float)]
    values = np.array([read[i] for i in at], np.float64)
    return Numbers(np.array(at, np.int64), values, [i for i, value in enumerate(read) if value is False])


def _coded_numbers(cells: Coded) -> Numbers:
    read = [_number(word) for word in cells.words]
    good = np.array([isinstance(value, float) for value in read], bool)[cells.codes]
    bad = np.array([value is False for value in read], bool)[cells.codes]
    values = np.array([value if isinstance(value, float) else np.nan for value in read], np.float64)[cells.codes]
    return Numbers(np.flatnonzero(good), values[good], array("q", np.flatnonzero(bad).astype(np.int64).tobytes()))


def _number(cell: Cell) -> float | bool | None:
    """None where the cell is empty, False where it holds something else."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    if not isinstance(cell, (str, int, float)):
        return False
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return WORDS.get(str(cell).strip().lower(), False)


# ---- Several runs in one file


def key_columns(table: Table) -> list[str]:
    """Columns that say which run a row belongs to, of those that hold more than one value."""
    return [name for name in table.cells if common.plain(name) in KEYS and len(_values(table, name)) > 1]


def _values(table: Table, name: str) -> set[str]:
    column = table.cells[name]
    parts = column.parts if isinstance(column, Joined) else [column]
    cells = [[part.words[i] for i in np.unique(part.codes)] if isinstance(part, Coded) else part for part in parts]
    return {_text(cell) for part in cells for cell in part if cell not in (None, "")}


def _text(cell: Cell) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def split(table: Table) -> dict[str, Sequence[int]]:
    """Run's key -> its rows, in the order in which they appear; one key "" where the file holds one run."""
    columns = sorted(key_columns(table), key=lambda name: KEYS.index(common.plain(name)))
    if not columns:
        return {"": range(len(table.lines))}
    rows_by_key: dict[str, Any] = {}
    for i in range(len(table.lines)):
        parts = [_part(name, table.cells[name][i]) for name in columns]
        rows_by_key.setdefault("/".join(parts), []).append(i)
    return rows_by_key


def _part(name: str, cell: Cell) -> str:
    text = _text(cell) if cell not in (None, "") else "none"
    text = text.replace("/", "_")[:80]
    return f"{common.plain(name)}={text}" if common.plain(name) in ("seed", "run", "trial") else text


def facts(table: Table) -> Settings:
    """What every row of a run says alike about the run itself: seed, algorithm, environment."""
    shared: Settings = {}
    for name in table.cells:
        word = common.plain(name)
        if word in (*FACT_KEYS, "seed") and len(_values(table, name)) == 1:
            text = _values(table, name).pop()
            shared[word] = integer(text) if word == "seed" and text.isdecimal() else text
    return shared


# ---- Steps and columns


@dataclass(frozen=True)
class Steps:
    """What the rows of a table count."""

    column: str  # "" for the number of the row
    axis: str
    at: np.ndarray  # rows that have a step
    steps: np.ndarray  # int64, one per row of `at`
    refused: tuple[str, ...] = ()  # columns that are called steps and are none, with the reason


def find_steps(table: Table, taken: Callable[[str], bool] = lambda name: False) -> Steps:
    """The step of each row: the best column by name that counts upwards, else the row's number."""
    candidates = [name for name in table.cells if common.step_axis(name) and not taken(name)]
    refused = []
    for name in sorted(candidates, key=common.preference):
        read = numbers(table.cells[name])
        values = _single_steps(read.values, common.step_factor(name))
        why = _no_count(values)
        if why:
            refused.append(f"`{name}` {why}")
            continue
        good = (values == np.floor(values)) & (np.abs(values) < MAX_STEP)
        at, steps = read.at[good], values[good].astype(np.int64)
        if _counts(steps, len(table.lines)):
            return Steps(name, str(common.step_axis(name)), at, steps)
    rows = np.arange(len(table.lines))
    return Steps("", "iteration", rows, rows.astype(np.int64), refused=tuple(refused))


def _single_steps(values: np.ndarray, factor: float) -> np.ndarray:
    """What a log counts in thousands, say, as single steps: the nearest whole ones, 4.5 thousand being 4,500."""
    if factor == 1.0:
        return values
    with np.errstate(over="ignore"):  # a factor may be absurd
        return np.rint(values * factor)


def _no_count(values: np.ndarray) -> str:
    """Why a column that rises is no count of steps all the same; empty where it may be one."""
    size, few = len(values), step_axis.FEW * len(values)
    below, parts = int((values < 0).sum()), int(((values != np.floor(values)) & np.isfinite(values)).sum())
    if below > few:
        return f"is below 0 in {below} of {size} rows"
    return (
        f"holds fractions in {parts} of {size} rows, as thousands would"
        if parts > few and size >= step_axis.FEWEST
        else ""
    )


def _counts(steps: np.ndarray, rows: int) -> bool:
    """Whether a column counts: integers in most rows that mostly go up, or one way at large if not row by row.

    The length of an episode has the same names as a step, but goes nowhere.
    """
    if len(steps) * 2 < rows or not len(steps):
        return False
    if rows == 1 or steps.max() == steps.min():
        return rows == 1
    upward = float((np.diff(steps) >= 0).mean())
    return upward >= 0.8 or abs(float(np.corrcoef(steps, np.arange(len(steps)))[0, 1])) > 0.9


def fill(history: History, table: Table, names: Names | None = None, prefix: str = "") -> None:
    """Add every numeric column of a table; `prefix` is a group that the file stands for, e.g. eval/."""
    history.problems += table.problems
    if not table.lines:
        return
    steps = find_steps(table)
    history.counters[steps.column] = steps.axis
    _report_steps(history, table, steps)
    steps = _in_place(history, steps)
    row_step = np.full(len(table.lines), -1, np.int64)
    has_step = np.zeros(len(table.lines), bool)
    row_step[steps.at], has_step[steps.at] = steps.steps, True
    wrong: dict[str, list[str]] = {}
    for name, cells in table.cells.items():
        if name != steps.column and common.plain(name) not in KEYS:
            said = _add(history, table, prefix + name, cells, (row_step, has_step, steps.axis), names)
            wrong.setdefault(said, []).append(name)
    for said, columns in wrong.items():
        if said:
            more = f" (in {len(columns)} columns, first `{columns[0]}`)" if len(columns) > 1 else f" (`{columns[0]}`)"
            remark(history, table.file, said + more)


def _rises(cells: Sequence[Cell]) -> bool:
    """Whether a column may be a count under an odd name: whole numbers from 0 on that rise in every row."""
    values = numbers(cells).values
    if len(values) < len(cells) or len(values) < step_axis.FEWEST or values[0] < 0:
        return False
    return bool((values == np.floor(values)).all() and (np.diff(values) > 0).all())


def _in_place(history: History, steps: Steps) -> Steps:
    """Without the rows whose step cannot be theirs."""
    bad = step_axis.strays(steps.steps) if steps.column else np.zeros(0, bool)
    if not bad.any():
        return steps
    step_axis.note(history, steps.steps[bad])
    return replace(steps, at=steps.at[~bad], steps=steps.steps[~bad])


def _report_steps(history: History, table: Table, steps: Steps) -> None:
    if not steps.column:
        examples = "step, global_step, iteration or episode"
        message = f"no column counts steps (e.g. {examples}); rows are counted instead"
        if steps.refused:
            message = f"{steps.refused[0]}, so that rows are counted instead"
            history.meta.setdefault(step_axis.DOUBT, message)
        rising = next((name for name, cells in table.cells.items() if _rises(cells)), "NAME")
        remark(history, table.file, f"{message}; if one does, say which: --mapping '{rising}=step'")
    elif len(steps.at) < len(table.lines):
        lost = np.setdiff1d(np.arange(len(table.lines)), steps.at)
        message = f"{plural(len(lost), 'row')} without an integer step in `{steps.column}` left out"
        problem(history, table.file, message, table.lines[int(lost[0])])


def _add(
    history: History,
    table: Table,
    name: str,
    cells: Sequence[Cell],
    at_step: tuple[np.ndarray, np.ndarray, str],
    names: Names | None,
) -> str:
    """Add one column; returns what was wrong with its steps."""
    row_step, has_step, axis = at_step
    read = numbers(cells)
    if not len(read.at):  # text: no metric, and nothing is wrong with it
        return ""
    _report_cells(history, table, name, cells, read.bad)
    at, values = row_step, read.values
    if len(read.at) < len(row_step) or not has_step.all():  # else the columns share one array of steps
        good = has_step[read.at]
        at, values = row_step[read.at[good]], read.values[good]
    order, said = common.in_order(at)
    if said:
        at, values = at[order], values[order]
    if len(order):
        put(history, name, at, values, axis, translation(name, values, names))
    return said


def _report_cells(history: History, table: Table, name: str, cells: Sequence[Cell], bad: Sequence[int]) -> None:
    if bad:
        what = f"`{name}` is no number in {plural(len(bad), 'row')}, first {cells[bad[0]]!r:.80}"
        problem(history, table.file, what, table.lines[bad[0]])


def translation(name: str, values: np.ndarray, names: Names | None = None) -> Names:
    """relab's name for this column: by the format's own table, else by the common one."""
    if names and name in names:
        return names
    ours = common.meaning(name)
    if ours == "policy/kl" and bool((values < -1e-6).any()):
        ours = "policy/kl_k1"  # an estimate that goes below 0 is the mean of -ln r
    return {name: (ours, 1.0)} if ours else {}
