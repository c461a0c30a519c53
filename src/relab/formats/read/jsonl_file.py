"""Files of JSON lines: an object per step, nested ones flattened with slashes. One file is one run, as with CSV."""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relab.base import limits
from relab.base.documents import Document
from relab.base.jsonl import MAX_PROBLEMS, Problem, loads, revive, shorten
from relab.formats.read import common, first_lines, table, tabular
from relab.formats.read.run_lists import names_a_folder
from relab.formats.read.source import Listing, Source
from relab.formats.read.table import KEYS, Packed, Table, join, pack
from relab.record.history import History

LOOSE = True
DEEP = True
ENDS = (".jsonl", ".ndjson", ".jsonlines")
LINES_IN_JSON = ("progress.json", "metrics.json", "log.json", "result.json", "stats.json")  # JSON lines by habit
HEAD_BYTES = 1 << 18
LINE_BYTES = 1 << 24  # of a first line that is longer than that: settings, a picture in base64
MAX_COLUMNS = 20_000
MAX_NESTING = 8


def sniff(listing: Listing) -> bool:
    return any(is_log(listing, name) for name in candidates(listing))


def candidates(listing: Listing) -> list[str]:
    return [name for name in listing.files if name.endswith(ENDS) or name in LINES_IN_JSON]


def is_log(listing: Listing, name: str) -> bool:
    """An object in the first line that can be read, with a step or a metric in it; any will do for a file alone."""
    row = _first(_head(listing, name))
    names_metrics = any(common.step_axis(key) or common.meaning(key) for key in row)
    return bool(row) and (names_metrics or listing.files == (name,)) and not lists_runs(listing, name)


def lists_runs(listing: Listing, name: str) -> bool:
    """Whether its lines are about runs beside it, one each."""
    return bool(listing.folders) and names_a_folder(listing, _first(_head(listing, name)))


def _head(listing: Listing, name: str) -> bytes:
    begin = listing.start_of(name, HEAD_BYTES)
    whole = b"\n" in begin or len(begin) < HEAD_BYTES
    return begin if whole else listing.start_of(name, LINE_BYTES)


def _first(data: bytes) -> Document:
    """The first row with a number, flat; a file that has settings alone so far is known by them."""
    rows = [(row, 0) for line in data.removeprefix(codecs.BOM_UTF8).split(b"\n")[:20] if (row := decode(line))]
    for row, _ in (*first_lines.taken_out(rows)[1], *rows):
        flat = dict(flatten(row))
        if any(isinstance(value, (int, float)) for value in flat.values()):
            return flat
    return {}


def decode(line: bytes) -> Document | None:
    """One object; NaN without quotes, as Python's json writes it, and numbers beyond every double are read as well."""
    line = line.strip()
    if not line.startswith(b"{"):
        return None
    try:
        row = revive(loads(line, bare=True))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def flatten(row: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Nested objects as group/name; lists are left out: a histogram is no metric."""
    for key, value in row.items():
        if isinstance(value, Mapping):
            if depth < MAX_NESTING:
                yield from flatten(value, f"{prefix}{key}/", depth + 1)
        elif not isinstance(value, list):
            yield f"{prefix}{key}", value


# ---- Runs


def sources(listing: Listing) -> list[Source]:
    return tabular.runs(listing, [name for name in candidates(listing) if is_log(listing, name)], load)


def read(source: Source) -> History:
    return tabular.read(source, load)


def load(path: Path) -> Table:
    return tabular.load(path, parse)


# ---- Cells


def parse(data: bytes | Iterable[bytes], file: str, drop: Sequence[str] = ()) -> Table:
    """The rows of a file that is given whole, or in blocks; `drop` names parts of a row that are no metrics."""
    parsed, parts = Table(file, lines=array("q")), Parts()
    problems: list[Problem] = []
    every = ((_without(row, drop), line) for row, line in _rows(data, file, problems))
    parsed.settings, rows = first_lines.taken_out(every)
    for row, line in rows:
        append(parsed, parts, row, line)
        if parsed.is_full(len(parsed.lines), len(parsed.cells), line):
            break
    parts.finish(parsed)
    parsed.problems += shorten(problems, file) if len(problems) > MAX_PROBLEMS else problems
    return parsed


def _without(row: Document, drop: Sequence[str]) -> Document:
    return {key: value for key, value in row.items() if key not in drop}


def _rows(data: bytes | Iterable[bytes], file: str, problems: list[Problem]) -> Iterator[tuple[Document, int]]:
    """Each object with its line; what is none is added to the problems."""
    readable = False
    for line in limits.split(_plain([data] if isinstance(data, bytes) else data)):
        row = decode(line.data) if line.data else None
        if row is not None:
            readable = True
            yield row, line.number
        elif line.data is None or line.data.strip():
            problems.append(Problem(file, line.number, _what(line)))
            if len(problems) > 10 * MAX_PROBLEMS and not readable:
                problems.append(Problem(file, line.number, "no line so far is a JSON object; the rest was not read"))
                break


def _plain(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for number, block in enumerate(blocks):
        yield block if number else block.removeprefix(codecs.BOM_UTF8)


def _what(line: limits.Line) -> str:
    if line.data is None:
        return f"longer than {limits.LINE:,} bytes; it was left out"
    what = "the last line is cut" if line.last else "not a JSON object"
    return f"{what}: {line.data[:80].decode(errors='replace')!r}"


class Parts:
    """Rows that were read before those in the table's cells; their numbers take 8 bytes each."""

    def __init__(self) -> None:
        self.rows = 0
        self.columns: dict[str, list[Any]] = {}

    def take(self, target: Table) -> None:
        """All rows of the table so far, whose columns are empty afterwards."""
        count = len(target.lines) - self.rows
        for name, cells in target.cells.items():
            before = self.columns.setdefault(name, [])
            if not before and self.rows:
                before.append(Packed(np.full(self.rows, np.nan), np.ones(self.rows, bool)))
            cells += [None] * (count - len(cells))
            before.append(cells if common.plain(name) in KEYS else pack(cells))
            target.cells[name] = []
        self.rows = len(target.lines)

    def finish(self, target: Table) -> None:
        if self.rows:
            self.take(target)
            for name in target.cells:
                target.cells[name] = join(self.columns.pop(name))
        for column in target.cells.values():
            if isinstance(column, list):
                column += [None] * (len(target.lines) - len(column))


def append(target: Table, parts: Parts, row: Mapping[str, Any], line: int) -> None:
    """One row; columns that come in later are empty before it."""
    if len(target.lines) - parts.rows >= table.PACK:
        parts.take(target)
    at = len(target.lines) - parts.rows
    target.lines.append(line)  # type: ignore[attr-defined]
    for name, value in flatten(row):
        column = target.cells.get(name)
        if column is None:
            if len(target.cells) >= MAX_COLUMNS:
                _too_wide(target, line)
                continue
            column = target.cells[name] = []
        if len(column) <= at:  # the same name twice after flattening: the first stays
            column += [None] * (at - len(column))
            column.append(value)


def _too_wide(target: Table, line: int) -> None:
    message = f"there are more than {MAX_COLUMNS} names; those that came later were left out"
    if not any(p.message == message for p in target.problems):
        target.problems.append(Problem(target.file, line, message))
