"""SwanLab: run-ID/run-ID.swanlab, a log of protobuf records framed as W&B's; swanlab is not needed.

Scalars and the run's name come from the log, settings from files/config.yaml beside it. SwanLab 0.6
and 0.7 call the file backup.swanlab, and its records are JSON. The JSON files that the mode `local` adds in logs/ say
the same under numbers instead of names, and are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, inside, read_start
from relab.config.base import ConfigError
from relab.config.views import flatten
from relab.formats.read import protobuf as pb
from relab.formats.read import settings_files, wandb_file
from relab.formats.read.jsonl_file import decode
from relab.formats.read.source import Listing, Source, problem, start
from relab.record.history import History

END = ".swanlab"
HEADER = (b":SWL", 0xE1D6)
MAX_BYTES = 1 << 29
START, FINISH, SCALAR = 10, 11, 13  # fields of Record
STATES = {0: "running", 1: "finished", 2: "failed", 3: "interrupted"}
FACTS = {1: "project", 2: "workspace", 4: "name", 5: "description", 7: "group", 10: "id"}  # fields of StartRecord


@dataclass
class Log:
    """What the records of a file say."""

    rows: dict[int, Document] = field(default_factory=dict)  # by step
    facts: dict[str, str] = field(default_factory=dict)
    status: str = "running"
    notes: list[str] = field(default_factory=list)


def sniff(listing: Listing) -> bool:
    return bool(_logs(listing))


def _logs(listing: Listing) -> list[str]:
    return [name for name in listing.ending(END) if listing.start_of(name, 4) == HEADER[0]]


def sources(listing: Listing) -> list[Source]:
    names = _logs(listing)
    place = listing.folder if len(names) == 1 else None
    return [Source("swanlab", place or listing.folder / name, (listing.folder / name,)) for name in names]


def read(source: Source) -> History:
    history, (file,) = start(source), source.files
    log = read_file(file)
    for note in log.notes[:20]:
        problem(history, file, note)
    rows = ({**row, "_step": step} for step, row in sorted(log.rows.items()))
    wandb_file.columns(history, wandb_file.Rows.of(file.name, rows))
    settings_files.use(history, source, _settings(history, source.folder))
    facts = {"id": log.facts.get("id"), "name": log.facts.get("name"), "notes": log.facts.get("description")}
    history.meta |= {key: value for key, value in facts.items() if value} | {"status": log.status}
    history.meta |= {"swanlab": log.facts} if log.facts else {}
    return history


def _settings(history: History, folder: Path) -> Settings:
    """files/config.yaml: under each key its value, a description and a place in the list."""
    name = "files/config.yaml"
    try:
        path = inside(folder, name)
        document = settings_files.read_settings(path) if path.is_file() else {}
    except (RecordError, ConfigError, OSError, UnicodeDecodeError, RecursionError) as error:
        problem(history, name, str(error), getattr(error, "line", None))
        return {}
    return flatten(
        {key: entry["value"] for key, entry in document.items() if isinstance(entry, dict) and "value" in entry}
    )


# ---- Records


def read_file(path: Path) -> Log:
    """Every record that can be read; a torn tail or a wrong checksum is noted, not raised."""
    log = Log()
    data = read_start(path, MAX_BYTES)
    if len(data) < wandb_file.HEADER.size or wandb_file.HEADER.unpack_from(data)[:2] != HEADER:
        log.notes.append("the file does not begin as a .swanlab file does")
        return log
    for payload in wandb_file.records(data, log.notes):
        try:
            _old_record(payload, log) if payload.startswith(b"{") else _record(payload, log)
        except (pb.MalformedError, ValueError, OverflowError) as error:
            if len(log.notes) < wandb_file.MAX_NOTES:
                log.notes.append(f"a record could not be read: {error}")
    return log


def _old_record(payload: bytes, log: Log) -> None:
    """{"model_type": "Scalar", "data": {"key", "step", "metric": {"data"}}}; no message of protobuf begins like it."""
    row = decode(payload) or {}
    kind, data = str(row.get("model_type", "")).lower(), row.get("data")
    if not isinstance(data, dict):
        raise ValueError("it is neither a message nor a JSON object with data")
    if kind == "scalar":
        metric, step = data.get("metric"), data.get("step")
        value = metric.get("data") if isinstance(metric, dict) else None
        if type(step) is int and isinstance(value, (int, float, str)):
            log.rows.setdefault(step, {})[str(data.get("key"))] = float(value)  # NaN and INF are words
    elif kind in ("project", "experiment"):
        names = {"project": {"name": "project", "workspace": "workspace"},
                 "experiment": {"name": "name", "description": "description", "id": "id"}}[kind]  # fmt: skip
        log.facts |= {ours: data[key] for key, ours in names.items() if isinstance(data.get(key), str)}
    elif kind == "footer":
        log.status = "finished" if data.get("success") is True else "failed"


def _record(payload: bytes, log: Log) -> None:
    for number, value in pb.fields(payload):
        if number == SCALAR:
            _scalar(pb.message(value), log)
        elif number == START:
            inner = pb.fields(pb.message(value))
            log.facts |= {FACTS[part]: pb.text(content) for part, content in inner if part in FACTS}
        elif number == FINISH:
            states = [part for inner, part in pb.fields(pb.message(value)) if inner == 1 and isinstance(part, int)]
            log.status = STATES.get(states[0] if states else 0, "running")


def _scalar(data: bytes, log: Log) -> None:
    """ScalarRecord{1 key, 2 step, 5 value{1 number}}; a number that is 0 is not written at all."""
    key, step, number = "", 0, 0.0
    for field_number, value in pb.fields(data):
        if field_number == 1:
            key = pb.text(value)
        elif field_number == 2 and isinstance(value, int):
            step = pb.signed(value)
        elif field_number == 5:
            number = next((pb.double(part) for inner, part in pb.fields(pb.message(value)) if inner == 1), 0.0)
    log.rows.setdefault(step, {})[key] = number
