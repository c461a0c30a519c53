"""Weights & Biases: the .wandb file of a run, offline or not; wandb itself is not needed.

The file is a header of 7 bytes, then LevelDB's log framing (blocks of 32 KiB; chunks of u32 crc, u16 length, u8 type),
then one Record message per logged row. A row is a list of items: a key, or a list of nested keys, and JSON.
"""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from relab.base.documents import Document, Settings
from relab.base.jsonl import read_start, revive
from relab.base.numbers import integer
from relab.config.views import flatten
from relab.formats.read import jsonl_file, libraries, settings_files, table
from relab.formats.read import protobuf as pb
from relab.formats.read.source import Listing, Source, problem, start
from relab.record.history import History

DEEP = True
END = ".wandb"
HEADER = struct.Struct("<4sHB")
MAGIC = (b":W&B", 0xBEE1)
BLOCK, CHUNK = 1 << 15, struct.Struct("<IHB")
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
HISTORY, SUMMARY, CONFIG, RUN, EXIT = 2, 3, 5, 17, 18  # fields of Record
MAX_BYTES = 1 << 29
MAX_NOTES = 100
OWN = ("_step", "_runtime", "_timestamp", "_wandb")
RUN_FACTS = {1: "id", 3: "project", 6: "group", 8: "display_name", 9: "notes"}  # fields of RunRecord


def sniff(listing: Listing) -> bool:
    return any(listing.start_of(name, 4) == MAGIC[0] for name in listing.ending(END))


def sources(listing: Listing) -> list[Source]:
    names = [name for name in listing.ending(END) if listing.start_of(name, 4) == MAGIC[0]]
    place = listing.folder if len(names) == 1 else None
    return [Source("wandb", place or listing.folder / name, (listing.folder / name,)) for name in names]


class Rows:
    """Rows of a log on their way to a table, so that a long one is never held as dicts."""

    def __init__(self, file: str) -> None:
        self.table, self.parts, self.full = table.Table(file, lines=array("q")), jsonl_file.Parts(), False

    def __len__(self) -> int:
        return len(self.table.lines)

    def append(self, row: Document) -> None:
        if self.full:
            return
        flat = {_renamed(name): value for name, value in jsonl_file.flatten(row)}
        kept = {name: value for name, value in flat.items() if not name.startswith(("_wandb", "_timestamp"))}
        jsonl_file.append(self.table, self.parts, kept, len(self.table.lines) + 1)
        self.full = self.table.is_full(len(self.table.lines), len(self.table.cells), len(self.table.lines))

    def finish(self) -> table.Table:
        self.parts.finish(self.table)
        return self.table

    @classmethod
    def of(cls, file: str, rows: Iterable[Document]) -> table.Table:
        collected = cls(file)
        for row in rows:
            collected.append(row)
        return collected.finish()


def _renamed(name: str) -> str:
    return "time_elapsed" if name == "_runtime" else name


@dataclass
class Log:
    """What the records of a file say."""

    rows: Rows
    config: Settings = field(default_factory=dict)
    sums: list[bytes] = field(default_factory=list)  # updates of the summary, taken apart when all are there
    facts: dict[str, str] = field(default_factory=dict)
    exit: int | None = None
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)


def read(source: Source) -> History:
    history, (file,) = start(source), source.files
    log = read_file(file)
    for note in log.notes[:20]:
        problem(history, file, note)
    columns(history, log.rows.finish())
    flat = {k: v for k, v in flatten(log.config).items() if not k.startswith("_wandb")}
    settings_files.use(history, source, flat)
    try:
        _facts(history, log)
    except (pb.MalformedError, ValueError) as error:
        problem(history, file, f"the summary could not be read: {error}")
    return history


def columns(history: History, rows: table.Table) -> None:
    """Rows over the best step among their keys: a count of the program's own, else the tool's _step."""
    counted = table.find_steps(rows).column if rows.lines else ""
    if counted != "_step":
        rows.cells.pop("_step", None)
    dialect = libraries.dialect_of(rows.cells)
    table.fill(history, rows, dialect.names if dialect is not None else None)
    if dialect is not None and counted == "_step" and len(dialect.library.axes) == 1:  # the library's own step
        history.axes |= {ours: dialect.axes[name] for name, ours in history.mapping.items() if name in dialect.axes}


def _facts(history: History, log: Log) -> None:
    facts = log.facts
    named_facts = {"id": facts.get("id"), "name": facts.get("display_name"), "notes": facts.get("notes")}
    history.meta |= {key: value for key, value in named_facts.items() if value}
    history.meta |= {"wandb": facts} if facts else {}
    summary = {k: v for k, v in flatten(last_values(log)).items() if not k.startswith(OWN)}
    history.meta |= {"summary": summary} if summary else {}
    if log.exit is not None:
        history.meta["status"] = "finished" if log.exit == 0 else "failed"


def last_values(log: Log) -> Document:
    """The summary: of each key the last value; most rows update it, so only what counts is decoded."""
    latest: dict[tuple[str, ...], bytes] = {}
    for data in log.sums:
        for number, value in pb.fields(data):
            if number == 1:
                path, content = _raw_item(pb.message(value))
                latest[tuple(path)] = content
    summary: Document = {}
    for keys, last in latest.items():
        _place(summary, list(keys), _value(last) if last else None)
    return summary


# ---- Framing


def read_file(path: Path) -> Log:
    """Every record that can be read; a torn tail or a wrong checksum is noted, not raised."""
    log = Log(Rows(path.name))
    data = read_start(path, MAX_BYTES)
    if len(data) < HEADER.size or HEADER.unpack_from(data)[:2] != MAGIC:
        log.notes.append("the file does not begin as a .wandb file does")
        return log
    for payload in records(data, log.notes):
        try:
            _record(payload, log)
        except (pb.MalformedError, ValueError, RecursionError) as error:
            log.note(f"a record could not be read: {error}")
    return log


def records(data: bytes, notes: list[str]) -> Iterator[bytes]:
    """The payloads, put together from their chunks. The header counts as part of the first block."""
    parts: list[bytes] = []
    for at, kind, chunk in _chunks(data, notes):
        if kind in (FULL, FIRST) and parts:
            notes.append(f"the record before byte {at} has no end; it was left out")
        if kind in (MIDDLE, LAST) and not parts:
            notes.append(f"the record at byte {at} has no beginning; it was left out")
            continue
        if kind in (FULL, FIRST):
            parts = []
        parts.append(chunk)
        if kind in (FULL, LAST):
            yield b"".join(parts)
            parts = []
    if parts:
        notes.append("the last record has no end; it was left out")


def _chunks(data: bytes, notes: list[str]) -> Iterator[tuple[int, int, bytes]]:
    at, size = HEADER.size, len(data)
    while at + CHUNK.size <= size:
        left = BLOCK - at % BLOCK
        if left < CHUNK.size:
            at += left
            continue
        crc, length, kind = CHUNK.unpack_from(data, at)
        begin, end = at + CHUNK.size, at + CHUNK.size + length
        if kind == 0 and length == 0:  # the rest of a block, filled with zeros
            at += left
            continue
        if end > size:
            notes.append(f"truncated at byte {at} of {size}: the last chunk is not whole")
            return
        if kind > LAST or length > left - CHUNK.size or zlib.crc32(data[begin - 1 : end]) != crc:
            notes.append(f"the chunk at byte {at} has a wrong checksum; the rest of its block was skipped")
            at += left
            continue
        yield at, kind, data[begin:end]
        at = end
    if at < size and BLOCK - at % BLOCK >= CHUNK.size:  # less is what fills a block
        notes.append(f"truncated at byte {at} of {size}: the last chunk is not whole")


# ---- Messages


def _record(payload: bytes, log: Log) -> None:
    for number, value in pb.fields(payload):
        if number == HISTORY:
            if row := _items(pb.message(value)):
                log.rows.append(row)
        elif number == SUMMARY:
            log.sums.append(pb.message(value))
        elif number == CONFIG:
            log.config |= _items(pb.message(value))
        elif number == RUN:
            _run(pb.message(value), log)
        elif number == EXIT:
            codes = [part for inner, part in pb.fields(pb.message(value)) if inner == 1 and isinstance(part, int)]
            log.exit = pb.signed(codes[0]) if codes else 0


def _run(data: bytes, log: Log) -> None:
    for number, value in pb.fields(data):
        if number == 4:
            log.config |= _items(pb.message(value))
        elif number in RUN_FACTS:
            log.facts[RUN_FACTS[number]] = pb.text(value)


def _items(data: bytes) -> Document:
    """HistoryRecord, SummaryRecord and ConfigRecord: field 1 is a list of items, history's field 2 the step."""
    row: Document = {}
    for number, value in pb.fields(data):
        if number == 1:
            path, content = _item(pb.message(value))
            _place(row, path, content)
        elif number == 2 and isinstance(value, bytes):
            steps = [part for inner, part in pb.fields(value) if inner == 1 and isinstance(part, int)]
            if steps:
                row.setdefault("_step", pb.signed(steps[0]))
    return row


def _item(data: bytes) -> tuple[list[str], Any]:
    path, content = _raw_item(data)
    return path, _value(content) if content else None


def _raw_item(data: bytes) -> tuple[list[str], bytes]:
    """Item{1 key, 2 nested_key*, 16 value_json}."""
    key, nested, content = "", [], b""
    for number, value in pb.fields(data):
        if number == 1:
            key = pb.text(value)
        elif number == 2:
            nested.append(pb.text(value))
        elif number == 16:
            content = pb.message(value)
    return nested or [key], content


def _value(data: bytes) -> Any:
    """JSON; NaN and Infinity come with quotes or without."""
    try:
        return revive(orjson.loads(data))
    except orjson.JSONDecodeError:
        return json.loads(data, parse_int=integer)


def _place(row: Document, path: list[str], content: Any) -> None:
    for part in path[:-1]:
        inner = row.setdefault(part, {})
        row = inner if isinstance(inner, dict) else {}
    row[path[-1]] = content
