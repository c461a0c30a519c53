"""A run as the .wandb file of an offline run, which `wandb sync FOLDER` uploads; its form: formats/read/wandb_file.py.

W&B wants a step that never repeats: rows are counted, and the run's own steps are logged as env_steps, updates, ...
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from relab.base.jsonl import plain
from relab.formats.read import protobuf as pb
from relab.formats.read import wandb_file as wb
from relab.formats.read.find import Loaded
from relab.formats.write.naming import Clock, named, settings_of
from relab.formats.write.rows import rows_of, step_names
from relab.record.history import History

PROJECT, VERSION = "relab", 0
PREFIX = "offline-"  # of the run's folder: `wandb sync` passes over folders that are called otherwise
FAILED = ("failed", "interrupted")


def write(run: Loaded, folder: Path, style: str) -> None:
    folder.mkdir(parents=True)
    run_id = hashlib.sha256(folder.name.removeprefix(PREFIX).encode()).hexdigest()[:8]
    with open(folder / f"run-{run_id}.wandb", "xb") as file:
        file.write(framed(_records(run, folder.name.removeprefix(PREFIX), run_id, style)))


def framed(payloads: Iterator[bytes]) -> bytes:
    """Records in chunks that never cross a block of 32 KiB."""
    out = bytearray(wb.HEADER.pack(*wb.MAGIC, VERSION))
    for number, payload in enumerate(payloads):
        _append(out, pb.put_varint(1 << 3) + pb.put_varint(number) + payload)  # Record.num, then what it holds
    return bytes(out)


def _append(out: bytearray, data: bytes) -> None:
    at, begun = 0, False
    while at < len(data) or not begun:
        left = wb.BLOCK - len(out) % wb.BLOCK
        if left < wb.CHUNK.size:
            out += bytes(left)
            left = wb.BLOCK
        part = data[at : at + left - wb.CHUNK.size]
        last = at + len(part) == len(data)
        kind = (wb.LAST if begun else wb.FULL) if last else (wb.MIDDLE if begun else wb.FIRST)
        out += wb.CHUNK.pack(zlib.crc32(bytes([kind]) + part), len(part), kind) + part
        at, begun = at + len(part), True


def _records(run: Loaded, name: str, run_id: str, style: str) -> Iterator[bytes]:
    history, clock = run.history, Clock(run.history)
    config = b"".join(pb.put_bytes(1, _item(key, value)) for key, value in settings_of(history, style).items())
    facts = {1: run_id, 3: PROJECT, 8: name}
    about = b"".join(pb.put_bytes(number, text.encode("utf-8", "replace")) for number, text in facts.items())
    began = pb.put_bytes(17, pb.put_varint(1 << 3) + pb.put_varint(int(clock.begin)))  # start_time.seconds
    yield pb.put_bytes(wb.RUN, about + pb.put_bytes(4, config) + began)
    metrics = named(history, style)
    view = History(history.folder, {m.name: m.column for m in metrics}, {m.name: m.axis for m in metrics})
    axes = step_names(view)
    for number, (step, axis, values) in enumerate(rows_of(view, list(view.columns))):
        row = {axes[axis]: step, **values, "_step": number}
        items = b"".join(pb.put_bytes(1, _item(key, value)) for key, value in row.items())
        yield pb.put_bytes(wb.HISTORY, items + pb.put_bytes(2, pb.put_varint(1 << 3) + pb.put_varint(number)))
    code = 1 if history.meta.get("status") in FAILED else 0
    yield pb.put_bytes(wb.EXIT, pb.put_varint(1 << 3) + pb.put_varint(code))


def _item(key: str, value: Any) -> bytes:
    content = orjson.dumps(plain(value))
    return pb.put_bytes(1, key.encode("utf-8", "replace")) + pb.put_bytes(16, content)
