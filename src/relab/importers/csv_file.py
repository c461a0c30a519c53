"""Plain CSV files: a header, a row per step. One file is one run, or several that a `seed` or `run` column tells apart.

Files of one folder that are named for their part in a run (train.csv and eval.csv) are read as one run together.
"""

from __future__ import annotations

import codecs
import csv
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relab.history import History
from relab.importers import common, tabular
from relab.importers.source import Listing, Source
from relab.importers.table import KEYS, Table
from relab.jsonl import MAX_PROBLEMS, Problem

LOOSE = True
DEEP = True  # a summary in the folder above must not hide the runs below
ENDS = (".csv", ".tsv")
DELIMITERS = ",;\t"
HEAD_BYTES = 1 << 18
MAX_COLUMNS = 20_000
PACK = 50_000  # rows that are held as text
LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")  # io.StringIO would take four bytes for each character


def sniff(listing: Listing) -> bool:
    return any(is_log(listing, name) for name in listing.ending(*ENDS))


def is_log(listing: Listing, name: str) -> bool:
    """A header with a step or a metric in it; above numbers, any header will do for a file that is there alone."""
    begin = listing.start_of(name, HEAD_BYTES)
    header = header_of(begin)
    told = any(common.step_axis(cell) or common.meaning(cell) for cell in header)
    return bool(header) and (told or (listing.files == (name,) and _has_numbers(begin)))


def _has_numbers(data: bytes) -> bool:
    lines = [line for line in text_of(data).splitlines() if line.strip() and line[0] != "#"]
    return any(is_number(cell.strip()) for line in lines[1:20] for cell in line.split(delimiter(lines[0])))


def text_of(data: bytes) -> str:
    """UTF-8, or UTF-16 that says so, as the shell of Windows writes it."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if wide else "utf-8-sig", "replace")


def header_of(data: bytes) -> list[str]:
    """The names in the first line; none where it is no header."""
    text = text_of(data)
    if "\0" in text:
        return []
    line = next((li for li in text.splitlines() if li.strip() and li[0] != "#"), "")
    try:
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter(line)), [])]
    except csv.Error:
        return []
    return cells if _are_names(cells) else []


def _are_names(cells: list[str]) -> bool:
    """Text in every cell but the first: pandas leaves the name of its index empty."""
    return bool(cells) and len(cells) <= MAX_COLUMNS and all(cells[1:]) and not any(is_number(cell) for cell in cells)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def delimiter(line: str) -> str:
    return max(DELIMITERS, key=line.count)


# ---- Runs


def sources(listing: Listing) -> list[Source]:
    return tabular.runs(listing, [name for name in listing.ending(*ENDS) if is_log(listing, name)], load)


def read(source: Source) -> History:
    return tabular.read(source, load)


def load(path: Path) -> Table:
    return tabular.load(path, parse)


# ---- Cells


def parse(data: bytes, file: str) -> Table:
    found = Table(file)
    text = text_of(data)
    rows = _rows(found, text)
    names = header_of(data[:HEAD_BYTES])
    if not names:
        found.problems.append(Problem(file, 1, "the first line must name the columns, but does not"))
        return found
    names = _unique(found, names)
    body = _body(found, rows, names)
    if body.rows and not text.endswith(("\n", "\r")):
        body.rows.pop()
        message = "the last line has no line break and may be cut; it was left out"
        found.problems.append(Problem(file, body.lines.pop(), message))
    found.lines, found.cells = body.lines, body.columns()
    return found


@dataclass
class Body:
    """The rows below a header; those of a large file are kept as numbers, at a seventh of what their text takes."""

    names: list[str]
    lines: list[int] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)  # the last ones, as they were read
    packed: dict[str, Any] = field(default_factory=dict)

    def add(self, line: int, cells: list[str]) -> None:
        if len(self.rows) >= PACK:
            self.packed, self.rows = self.columns(), []
        self.lines.append(line)
        self.rows.append(cells)

    def columns(self) -> dict[str, Any]:
        parts = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(self.names)
        large = len(self.lines) >= PACK
        return {name: _joined(self.packed.get(name), part, large and common.plain(name) not in KEYS)
                for name, part in zip(self.names, parts, strict=True)}  # fmt: skip


def _joined(before: Any, part: tuple[str, ...], as_numbers: bool) -> Any:
    """A column and what comes behind it; as numbers as long as all its cells are."""
    if as_numbers and (before is None or isinstance(before, array)):
        try:
            more = array("d", map(float, part))
        except ValueError:  # a blank, or a word
            return [*(before or ()), *part]
        return more if before is None else before + more
    return [*(before or ()), *part]


def _rows(found: Table, text: str) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every line that holds something; comments before the header are left out."""
    first = next((line for line in text[:HEAD_BYTES].splitlines() if line.strip() and line[0] != "#"), "")
    reader = csv.reader((match[0] for match in LINE.finditer(text)), delimiter=delimiter(first))
    begun, line = False, 0
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if len(found.problems) < MAX_PROBLEMS:
                found.problems.append(Problem(found.file, line, f"cannot be read as CSV: {error}"))
            continue
        if any(cell.strip() for cell in cells) and (begun or not cells[0].startswith("#")):
            begun = True
            yield line, [cell.strip() for cell in cells]


def _unique(found: Table, names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for i, name in enumerate(names):
        name = name or f"unnamed_{i}"
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    twice = [name for name, count in seen.items() if count > 1]
    if twice:
        message = f"{len(twice)} names are given to several columns, first `{twice[0]}`; the later ones got a number"
        found.problems.append(Problem(found.file, 1, message))
    return unique


def _body(found: Table, rows: Iterator[tuple[int, list[str]]], names: list[str]) -> Body:
    """Rows of equal length below the header; a header that comes again is left out."""
    body = Body(names)
    odd: dict[str, list[int]] = {"shorter": [], "longer": [], "again": []}
    next(rows, None)  # the header itself
    width = len(names)
    for line, cells in rows:
        if cells[0] == names[0] and _are_names(cells):
            odd["again"].append(line)
        elif len(cells) == width:
            body.add(line, cells)
        else:
            odd["shorter" if len(cells) < width else "longer"].append(line)
            body.add(line, (cells + [""] * width)[:width])
        if found.is_full(len(body.lines), width, line):
            break
    _report_odd(found, odd, width)
    return body


def _report_odd(found: Table, odd: dict[str, list[int]], width: int) -> None:
    says = {
        "shorter": f"rows are shorter than the header of {width}; their missing cells count as empty",
        "longer": f"rows are longer than the header of {width} (did columns come in later?); the rest was left out",
        "again": "lines are a header again, as after a restart, and were left out",
    }
    for kind, lines in odd.items():
        if lines:
            found.problems.append(Problem(found.file, lines[0], f"{len(lines)} {says[kind]}"))
