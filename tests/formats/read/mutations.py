"""How is a log damaged so that it is still a file of its format? Mutations of JSON, CSV, YAML, protobuf, SQLite, zip.

Flipped bits die at the first checksum or bracket. These changes keep the container whole and put into it what no tool
writes: other types, numbers beyond every limit, rows that came twice, names that are paths or markup.
"""

from __future__ import annotations

import copy
import io
import json
import re
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

import numpy as np

from relab.formats.read import protobuf as pb
from relab.formats.read import tfrecords, wandb_file

ODD: list[Any] = [
    None, True, False, 0, -1, 0.5, -0.0, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 1e300, -1e300,
    10**400, float("nan"), float("inf"), -float("inf"), "", "x", "NaN", "-Infinity", "1e400", "9" * 400, "²", "1_0",
    "٣", "a\x00b", "\ud800", "<script>alert(1)</script>", "\x1b[31mred\u202e\n", "../../x", [], {}, [[]],
    [1, "x", None], {"a": {"b": {"c": 1}}}, {"": ""}, [float("nan")] * 3, "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00",
]  # fmt: skip
WORDS = [str(value) for value in ODD] + ['"', "#", ",", ";", "\t", "-", "- - -", "!!python/object:os.system x", "*a"]


def odd(rng: Random) -> Any:
    """A copy: what is put into a tree may be changed there, and the next example must find it as it was."""
    return copy.deepcopy(rng.choice(ODD))


def odd_text(rng: Random) -> str:
    return rng.choice(WORDS).encode("utf-8", "replace").decode()


# ---- JSON


def json_file(data: bytes, rng: Random) -> bytes:
    return _dumped(_tree(json.loads(data), rng))


def json_lines(data: bytes, rng: Random) -> bytes:
    lines = data.splitlines()
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines)) if lines else 0
        lines[at : at + 1] = _line(lines[at] if lines else b"{}", rng)
    return b"\n".join(lines) + b"\n" * rng.randint(0, 1)


def _line(line: bytes, rng: Random) -> list[bytes]:
    kind = rng.randrange(6)
    if kind == 0:
        return [line, line]
    if kind == 1:
        return [line[: rng.randint(0, len(line))]]
    try:
        row = json.loads(line)
    except ValueError:
        return [line]
    return [_dumped(_tree(row, rng))] if kind < 5 else [line, _dumped(odd(rng))]


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def _tree(value: Any, rng: Random) -> Any:
    """One to three nodes replaced, left out, renamed or doubled."""
    for _ in range(rng.randint(1, 3)):
        value = _node(value, rng)
    return value


def _node(value: Any, rng: Random) -> Any:
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.05:
        return odd(rng)
    key = rng.choice(sorted(value)) if isinstance(value, dict) else rng.randrange(len(value))
    kind = rng.randrange(8)
    if kind > 2:
        value[key] = _node(value[key], rng)
    elif kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, dict):
        value[odd_text(rng)] = value.pop(key)
    else:
        return [value, value] if rng.random() < 0.2 else ([*value, value[key]] if isinstance(value, list) else value)
    return value


# ---- Text


def csv_file(data: bytes, rng: Random) -> bytes:
    rows = [line.split(",") for line in data.decode("utf-8", "replace").splitlines()] or [[""]]
    for _ in range(rng.randint(1, 4)):
        row = rng.choice(rows)
        at, kind = rng.randrange(len(row)), rng.randrange(6)
        if kind < 3:
            row[at] = odd_text(rng)
        elif kind == 3:
            del row[at:]
            row.append(odd_text(rng))
        elif kind == 4:
            rows.insert(rng.randint(0, len(rows)), list(rng.choice(rows)))
        else:
            row.extend(row)
    return "\n".join(",".join(row) for row in rows).encode("utf-8", "replace") + b"\n" * rng.randint(0, 1)


TOKEN = re.compile(r"[^\s│╭╰:=]+")


def words(data: bytes, rng: Random) -> bytes:
    """Logs, YAML, plain files: some words are others, some lines come twice or not at all."""
    lines = data.decode("utf-8", "replace").splitlines() or [""]
    for _ in range(rng.randint(1, 4)):
        at, kind = rng.randrange(len(lines)), rng.randrange(6)
        if kind == 0:
            lines.insert(rng.randint(0, len(lines)), lines[at])
        elif kind == 1:
            lines[at] = odd_text(rng)
        else:
            tokens = list(TOKEN.finditer(lines[at]))
            if tokens:
                match = rng.choice(tokens)
                lines[at] = lines[at][: match.start()] + odd_text(rng) + lines[at][match.end() :]
    return "\n".join(lines).encode("utf-8", "replace") + b"\n" * rng.randint(0, 1)


# ---- Protobuf


def message(data: bytes, rng: Random) -> bytes:
    """A message with some fields changed; what is inside of a field is taken for a message where it can be one."""
    try:
        fields = list(pb.fields(data))
    except pb.MalformedError:
        fields = []
    if not fields or rng.random() < 0.1:
        return rng.choice(
            [b"", rng.randbytes(4), data * 2, data[: len(data) // 2], b"\xff" * 12, _dumped(rng.choice(ODD))]
        )
    at = rng.randrange(len(fields))
    number, value = fields[at]
    kind = rng.randrange(10)
    if kind == 0:
        del fields[at]
    elif kind == 1:
        fields.insert(at, fields[at])
    elif kind == 2:
        fields[at] = (rng.choice([0, 1, 2, 3, 5, 8, 9, 16, 17, 2**28]), value)
    elif isinstance(value, int):
        fields[at] = (number, rng.choice([0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 7]))
    elif len(value) == 8 and rng.random() < 0.5:
        fields[at] = (number, struct.pack("<d", rng.choice([float("nan"), 1e300, -1e300, float("inf"), 0.0])))
    else:
        fields[at] = (number, message(value, rng))
    return b"".join(_field(*field) for field in fields)


def _field(number: int, value: int | bytes) -> bytes:
    """Fixed-size fields are told apart by their size alone, which is right most of the time."""
    if isinstance(value, int):
        return pb.put_varint(number << 3 | pb.VARINT) + pb.put_varint(value)
    if len(value) in (4, 8) and number in (1, 2):
        return pb.put_varint(number << 3 | (pb.FIXED32 if len(value) == 4 else pb.FIXED64)) + value
    return pb.put_bytes(number, value)


def events(data: bytes, rng: Random) -> bytes:
    """A TensorBoard file whose checksums are right and whose messages are not."""
    return b"".join(tfrecords.pack(payload) for payload in _records(payloads(io.BytesIO(data)) or [b""], rng))


def payloads(file: BinaryIO) -> list[bytes]:
    return [payload for block in tfrecords.blocks(file, tfrecords.Scan()) for payload in block.payloads]


def wandb(data: bytes, rng: Random) -> bytes:
    return framed(data, _records(list(wandb_file.records(data, [])) or [b""], rng))


def framed(header: bytes, bodies: list[bytes]) -> bytes:
    """A W&B or SwanLab file of these records, behind the header of another one."""
    out = bytearray(header[: wandb_file.HEADER.size])
    for payload in bodies:
        _frame(out, payload)
    return bytes(out)


def _records(bodies: list[bytes], rng: Random) -> list[bytes]:
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(bodies))
        bodies[at : at + 1] = [bodies[at]] * 2 if rng.random() < 0.2 else [message(bodies[at], rng)]
    return bodies


def _frame(out: bytearray, payload: bytes) -> None:
    """LevelDB's chunks: a record is cut where a block of 32 KiB ends."""
    first = True
    while True:
        left = wandb_file.BLOCK - len(out) % wandb_file.BLOCK
        if left < wandb_file.CHUNK.size:
            out += b"\0" * left
            continue
        part, payload = payload[: left - wandb_file.CHUNK.size], payload[left - wandb_file.CHUNK.size :]
        kind = (1 if first else 4) if not payload else (2 if first else 3)
        body = bytes([kind]) + part
        out += struct.pack("<IH", zlib.crc32(body), len(part)) + body
        first = False
        if not payload:
            return


# ---- SQLite


def database(path: Path, rng: Random) -> None:
    """Cells, columns and tables of a base changed by SQL; what SQLite itself refuses is tried no further."""
    base = sqlite3.connect(path)
    try:
        for _ in range(rng.randint(1, 4)):
            try:
                base.execute(*_statement(base, rng))
            except (sqlite3.Error, OverflowError, UnicodeEncodeError):
                continue
        base.commit()
    finally:
        base.close()


def _statement(base: sqlite3.Connection, rng: Random) -> tuple[str, tuple[Any, ...]]:
    tables = sorted(name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
    table = rng.choice(tables)
    column = rng.choice([row[1] for row in base.execute(f'PRAGMA table_info("{table}")')])
    value = rng.choice([v for v in ODD if not isinstance(v, (list, dict))] + [b"\xff\x00", "x" * 1000])
    kind = rng.randrange(8)
    if kind == 0:
        return f'DELETE FROM "{table}" WHERE rowid % 2', ()
    if kind == 1:
        return f'DROP TABLE "{table}"', ()
    if kind == 2:
        return f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "was {column}"', ()
    if kind == 3:
        return f'ALTER TABLE "{table}" RENAME TO "was {table}"', ()
    return f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE rowid % 3 = {rng.randrange(3)}', (value,)


# ---- Zip and npz

ARRAYS: list[Callable[[], np.ndarray]] = [
    lambda: np.zeros(0), lambda: np.zeros((2, 0)), lambda: np.array(7), lambda: np.array(["a", "b"]),
    lambda: np.array([{}], object), lambda: np.full((3, 2), np.nan), lambda: np.full((3, 2), np.inf),
    lambda: np.array([2**63 - 1, 2**63, 5], np.uint64), lambda: np.array([-5, 3, 2], np.int8),
    lambda: np.array([1 + 2j]), lambda: np.array(["2020-01-01"], "M8[D]"), lambda: np.zeros((1, 2, 3)),
]  # fmt: skip


def zip_file(data: bytes, rng: Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = rng.choice(sorted(members))
    kind = rng.randrange(5)
    if kind == 0:
        members["../" + chosen] = members.pop(chosen)
    elif kind == 1:
        members[chosen] = members[chosen][: rng.randint(0, len(members[chosen]))]
    elif chosen.endswith(".npy"):
        members[chosen] = _npy(rng)
    elif members[chosen][:1] == b"{":
        members[chosen] = json_file(members[chosen], rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def _npy(rng: Random) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, rng.choice(ARRAYS)(), allow_pickle=True)
    return out.getvalue()


# ---- Bytes


def noise(data: bytes, rng: Random) -> bytes:
    at, kind = rng.randint(0, len(data)), rng.randrange(6)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + rng.randbytes(20) + data[at:]
    if kind == 2:
        return data[:at] + data[at + rng.randint(1, 200) :]
    if kind == 3:
        return data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-16-le", "utf-8-sig", "utf-32"]))
    if kind == 4:
        return data * 2
    flipped = bytearray(data or b"\0")
    for _ in range(rng.randint(1, 10)):
        flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def damage(path: Path, rng: Random) -> None:
    """Change one file on disk as its kind allows; in one case of six its bytes, whatever they mean."""
    data = path.read_bytes()
    if rng.randrange(6) == 0:
        path.write_bytes(noise(data, rng))
    elif data.startswith(b"SQLite format 3"):
        database(path, rng)
    else:
        path.write_bytes(_mutator(path.name, data)(data, rng))


def _mutator(name: str, data: bytes) -> Callable[[bytes, Random], bytes]:
    if "tfevents" in name:
        return events
    ends: dict[str, Callable[[bytes, Random], bytes]] = {
        **{".wandb": wandb, ".swanlab": wandb, ".csv": csv_file},
        **{".zip": zip_file, ".npz": zip_file, ".jsonl": json_lines},
    }
    by_ending = next((mutator for end, mutator in ends.items() if name.endswith(end)), None)
    if by_ending is None and data[:1] == b"{":
        return json_lines if data.count(b"\n{") else json_file
    return by_ending or words
