"""Why is a file that is called like a log none? What was found instead, and at which byte where that is known."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from relab.formats.read import csv_file, jsonl_file, strange_names, table
from relab.formats.read.csv_cells import MAX_COLUMNS, delimiter, header_of, parse, text_of
from relab.formats.read.csv_file import ENDS as TABLES
from relab.formats.read.databases import BROKEN, DATABASES, SQLITE, connect
from relab.formats.read.jsonl_file import HEAD_BYTES, LINE_BYTES, decode
from relab.formats.read.source import EVENT_FILES, Listing
from relab.formats.read.swanlab_file import END as SWANLAB
from relab.formats.read.wandb_file import END as WANDB

TO_UTF8 = "convert it, as with `iconv -t utf-8`"


def is_log(listing: Listing, name: str) -> bool:
    """Could the file be read, if another format had not been first?"""
    if EVENT_FILES in name:
        return True
    if name.endswith(TABLES):
        return csv_file.is_log(listing, name)
    return name in jsonl_file.candidates(listing) and jsonl_file.is_log(listing, name)


def reason(listing: Listing, name: str) -> str:
    """What the beginning of a file says, by what its name promises; JSON lines where it promises nothing else."""
    checks = {
        WANDB: _no_wandb,
        SWANLAB: _no_swanlab,
        **dict.fromkeys(DATABASES, _no_database),
        **dict.fromkeys(TABLES, _no_table),
    }
    check = next((check for end, check in checks.items() if name.endswith(end)), _no_lines)
    begin = listing.start_of(name, HEAD_BYTES)
    if (csv_file if name.endswith(TABLES) else jsonl_file).lists_runs(listing, name):
        return "a list of runs: each line names a folder, which is read instead"
    if begin:
        return check(listing.folder / name, begin)
    return "empty: whatever opened it wrote nothing" if _size(listing.folder / name) == 0 else "cannot be opened"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _no_wandb(path: Path, begin: bytes) -> str:
    return f"does not begin as a .wandb file does: byte 0 on is {begin[:4]!r}, not b':W&B'"


def _no_swanlab(path: Path, begin: bytes) -> str:
    return f"does not begin as a .swanlab file does: byte 0 on is {begin[:4]!r}, not b':SWL'"


def _no_database(path: Path, begin: bytes) -> str:
    if not begin.startswith(SQLITE):
        return f"called a database, but byte 0 on is {begin[:8]!r}, not SQLite's beginning"
    try:
        with closing(connect(path)) as base:
            rows = base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    except BROKEN as error:
        return f"a database that cannot be opened: {error}; it may be cut at its end, byte {_size(path)}"
    some = ", ".join(str(name)[:40] for (name,) in rows[:4]) + (" ..." if len(rows) > 4 else "")
    return f"a database with tables of no format that relab reads: {some or 'none'}"


def _no_table(path: Path, begin: bytes) -> str:
    if lack := _no_text(begin, wide=True) or _too_wide(begin):
        return lack
    if header_of(begin):
        strange = strange_names.advice(_numbers(path, begin))
        return (
            strange or "its first line names no step and no metric that relab knows (docs/importers.md lists the names)"
        )
    return "its first line must name the columns, but does not"


def _numbers(path: Path, begin: bytes) -> dict[str, list[float]]:
    """The columns of numbers at the beginning of a table."""
    cells = parse([begin], path.name).cells
    read = {name: table.numbers(column) for name, column in cells.items()}
    return {name: each.values.tolist() for name, each in read.items() if len(each.at) and not len(each.bad)}


def _too_wide(begin: bytes) -> str:
    line = (text_of(begin).splitlines() or [""])[0]
    cut = len(begin) >= HEAD_BYTES and len(line) == len(text_of(begin))
    columns = line.count(delimiter(line)) + 1
    if columns > MAX_COLUMNS:
        at_least = "at least " if cut else ""
        return f"its first line names {at_least}{columns:,} columns; a table of more than {MAX_COLUMNS:,} is not read"
    return f"its first line has more than {HEAD_BYTES:,} bytes" if cut else ""


def _no_lines(path: Path, begin: bytes) -> str:
    if no_text := _no_text(begin, wide=False):
        return no_text
    with open(path, "rb") as file:
        line = file.readline(LINE_BYTES)
    if len(line) == LINE_BYTES:
        return f"its first line has more than {LINE_BYTES:,} bytes, and no more are looked at"
    lack = "holds no step or metric that relab knows" if decode(line) else "is no JSON object, or nested too deeply"
    return f"line 1 {lack}"


def _no_text(data: bytes, wide: bool) -> str:
    """Where the bytes stop being UTF-8; of a CSV in another 8-bit code only names suffer: no reason there."""
    zero = data.find(b"\0")
    if zero >= 0:
        return f"byte {zero} is 0: binary, or UTF-16 without its mark; {TO_UTF8}"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if not wide and error.start < len(data) - 4:  # the last character may be cut by the end of the block
            return f"not UTF-8 from byte {error.start} on; {TO_UTF8}"
    return ""
