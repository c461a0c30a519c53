"""Files of JSON lines: an object per step, nested ones flattened with slashes. One file is one run, as with CSV."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from relab.history import History
from relab.importers import common, tabular
from relab.importers.source import Listing, Source
from relab.importers.table import Table
from relab.jsonl import MAX_PROBLEMS, Problem, revive, shorten
from relab.numbers import integer

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
    told = any(common.step_axis(key) or common.meaning(key) for key in row)
    return bool(row) and (told or listing.files == (name,))


def _head(listing: Listing, name: str) -> bytes:
    begin = listing.start_of(name, HEAD_BYTES)
    whole = b"\n" in begin or len(begin) < HEAD_BYTES
    return begin if whole else listing.start_of(name, LINE_BYTES)


def _first(data: bytes) -> dict[str, Any]:
    for line in data.removeprefix(codecs.BOM_UTF8).split(b"\n")[:20]:
        row = decode(line)
        flat = dict(flatten(row or {}))
        if any(isinstance(value, (int, float)) for value in flat.values()):
            return flat
    return {}


def decode(line: bytes) -> dict[str, Any] | None:
    """One object; NaN without quotes, as Python's json writes it, is read as well."""
    line = line.strip()
    if not line.startswith(b"{"):
        return None
    try:
        row = revive(orjson.loads(line))
    except (orjson.JSONDecodeError, RecursionError):
        try:
            row = json.loads(line, parse_int=integer) if b"NaN" in line or b"Infinity" in line else None
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


def parse(data: bytes, file: str, drop: Sequence[str] = ()) -> Table:
    """The rows of a file; `drop` names parts of a row that are no metrics."""
    found = Table(file)
    lines = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    problems = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = decode(line)
        if row is None:
            what = "the last line is cut" if number == len(lines) else "not a JSON object"
            problems.append(Problem(file, number, f"{what}: {line[:80].decode(errors='replace')!r}"))
            if len(problems) > 10 * MAX_PROBLEMS and not found.lines:
                problems.append(Problem(file, number, "no line so far is a JSON object; the rest was not read"))
                break
        else:
            _append(found, {key: value for key, value in row.items() if key not in drop}, number)
            if found.is_full(len(found.lines), len(found.cells), number):
                break
    for column in found.cells.values():
        column += [None] * (len(found.lines) - len(column))
    found.problems += shorten(problems, file) if len(problems) > MAX_PROBLEMS else problems
    return found


def _append(found: Table, row: Mapping[str, Any], line: int) -> None:
    """One row; columns that come in later are empty before it."""
    at = len(found.lines)
    found.lines.append(line)
    for name, value in flatten(row):
        column = found.cells.get(name)
        if column is None:
            if len(found.cells) >= MAX_COLUMNS:
                _too_wide(found, line)
                continue
            column = found.cells[name] = []
        if len(column) <= at:  # the same name twice after flattening: the first stays
            column += [None] * (at - len(column))
            column.append(value)


def _too_wide(found: Table, line: int) -> None:
    message = f"there are more than {MAX_COLUMNS} names; those that came later were left out"
    if not any(p.message == message for p in found.problems):
        found.problems.append(Problem(found.file, line, message))
