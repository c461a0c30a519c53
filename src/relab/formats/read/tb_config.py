"""Which settings, ends and restarts do event files tell? The hparams plug-in, CleanRL's table, names of files."""

from __future__ import annotations

import datetime
import itertools
import re
from typing import Any

from relab.base.documents import Document, Settings
from relab.formats.read import cleanrl, tb_merge
from relab.formats.read import protobuf as pb
from relab.formats.read.source import problem
from relab.formats.read.tfevents import Events, Other
from relab.record.history import History

STATUS = {1: "finished", 2: "failed", 3: "running"}  # SessionEndInfo.status
FILE_NAME = re.compile(r"tfevents\.(?P<unix>\d+)\.(?P<host>.+?)\.(?P<pid>\d+)\.(?P<number>\d+)(\.\w+)?$")


def settings_in(history: History, files: list[Events]) -> Settings:
    """Flat settings: those of hparams, then CleanRL's table; status goes to meta, other texts to the events."""
    flat: Settings = {}
    for events in files:
        for other in events.others:
            try:
                flat |= _one(history, other)
            except pb.MalformedError as error:
                problem(history, events.path, f"`{other.tag}` could not be read: {error}")
    return flat


def _one(history: History, other: Other) -> Settings:
    if other.plugin == "hparams":
        return _hparams(history, other.content)
    text = other.content.decode("utf-8", "replace")
    if other.tag.split("/")[0] == cleanrl.TABLE_TAG:
        return cleanrl.table(text)
    texts = history.meta.setdefault("texts", {})
    texts.setdefault(other.tag, text[:10_000])
    return {}


def _hparams(history: History, content: bytes) -> Settings:
    """HParamsPluginData{3 session_start_info{1 hparams}, 4 session_end_info{1 status}}."""
    hparams: Settings = {}
    for number, value in pb.fields(content):
        if number == 3:
            entries = [part for inner, part in pb.fields(pb.message(value)) if inner == 1]
            hparams |= dict(_entry(pb.message(entry)) for entry in entries)
        elif number == 4:
            ends = dict(pb.fields(pb.message(value)))
            if ends.get(1) in STATUS:
                history.meta["status"] = STATUS[ends[1]]  # type: ignore[index]
    return hparams


def _entry(data: bytes) -> tuple[str, Any]:
    """A map entry: 1 key, 2 google.protobuf.Value."""
    parts = dict(pb.fields(data))
    return pb.text(parts.get(1, b"")), _json_value(pb.message(parts.get(2, b"")))


def _json_value(data: bytes) -> Any:
    """google.protobuf.Value: 2 number, 3 text, 4 bool; whole numbers come back as int."""
    for number, value in pb.fields(data):
        if number == 2:
            amount = pb.double(value)
            return int(amount) if amount.is_integer() and abs(amount) < 2**53 else amount
        if number == 3:
            return cleanrl.typed(pb.text(value))
        if number == 4:
            return bool(value)
    return None


# ---- Times


def iso(wall: float) -> str:
    """A time as text, UTC."""
    try:
        return datetime.datetime.fromtimestamp(wall, datetime.UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return ""


def resumes(files: list[Events]) -> list[Document]:
    """A `resume` for each file in which another process went on with the same tags; `start` where it began anew.

    The process id is in the file's name.
    """
    files = sorted((f for f in files if f.scalars), key=tb_merge.began)
    events: list[Document] = []
    for before, after in itertools.pairwise(files):
        same = before.scalars.keys() & after.scalars.keys()
        if same and _process(before) != _process(after) and _last(before) <= tb_merge.began(after):
            step = _first(after)
            kind = "start" if step <= _first(before) else "resume"
            events.append({"kind": kind, "step": step, "file": after.path.name, "t": iso(tb_merge.began(after))})
    return events


def _first(events: Events) -> int:
    return min(int(min(series.steps)) for series in events.scalars.values())


def _process(events: Events) -> tuple[str, str]:
    match = FILE_NAME.search(events.path.name)
    return (match["host"], match["pid"]) if match else ("", events.path.name)


def _last(events: Events) -> float:
    return max(series.walls[-1] for series in events.scalars.values())
