"""How is JSON written so that a kill loses at most the row being written, and read so that a broken row hides no other?

Each row is one JSON line, written by one call to a file opened for appending. NaN and the infinities are written as
"NaN", "Infinity", "-Infinity" (JSON has no words for them); null means missing. Reading never writes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import platform
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from relab.base import limits
from relab.base.documents import Document
from relab.base.enclosed import NO_LINK, NO_WAIT, open_plain, own
from relab.base.enclosed import RecordError as RecordError
from relab.base.enclosed import inside as inside
from relab.base.numbers import integer

MAX_PROBLEMS = 100  # reported per file, one by one
MAX_BYTES = limits.ROWS  # read of a file
MAX_JSON = limits.JSON
PACK = 20_000  # rows held as dicts at a time
ENDLESS = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{300}")  # a number that may be too large for a double
BARE = re.compile(rb"NaN|Infinity")
NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class DiskFullError(RecordError, OSError):
    """A file that found no room; the message names it, how much was wanted, and what to do."""


class Problem(NamedTuple):
    """Something in a file that could not be read; the rest was."""

    file: str
    line: int | None  # from 1
    message: str
    read: bool = False  # all of it was: this only says how


# ---- Values


def plain(value: Any) -> Any:
    """Numpy scalars, arrays, tuples and non-finite numbers as what JSON can hold."""
    if type(value) is float:
        return value if value - value == 0.0 else _plain_float(value)  # inf - inf is NaN
    if isinstance(value, (bool, int)) or value is None:
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (float, np.floating)):
        return _plain_float(float(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {_text(str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    raise RecordError(
        f"a record holds plain numbers, text, lists and mappings, but got a {type(value).__name__}: {value!r}"
    )


def _text(value: str) -> str:
    return value if value.isascii() else value.encode("utf-8", "replace").decode()  # half a pair, from a file's name


def _plain_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def revive(value: Any) -> Any:
    """The inverse of `plain` for non-finite numbers; mappings are changed in place."""
    if isinstance(value, str):
        return NON_FINITE.get(value, value)
    if isinstance(value, dict):
        for key, item in value.items():
            if type(item) is not float:  # most are, and a call for each would double the time of reading
                value[key] = revive(item)
        return value
    return [revive(v) for v in value] if isinstance(value, list) else value


def encode(row: Mapping[str, Any], indent: bool = False) -> bytes:
    """One JSON line, line break included (orjson alone would turn NaN into null)."""
    option = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        return orjson.dumps(row if _is_plain(row) else plain(row), option=option)
    except TypeError as error:  # e.g. an integer of more than 64 bits
        raise RecordError(f"a row must fit into JSON, but {error}") from None


def _is_plain(row: Mapping[str, Any]) -> bool:
    """Whether a flat row can go to orjson as it is; most can, and `plain` takes five times as long."""
    for value in row.values():
        kind = type(value)  # inf - inf is NaN
        if not ((kind is float and value - value == 0.0) or kind is int or (kind is str and value.isascii())):
            return False
    return type(row) is dict


def loads(data: bytes, bare: bool = False) -> Any:
    """What JSON says; a number beyond every double (1e400) is infinite, where orjson alone would refuse all of it.

    `bare`: NaN and Infinity without quotes, as Python's json writes them, are numbers as well.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if not ((bare and BARE.search(data)) or ENDLESS.search(data)):
            raise
        try:
            return _loads_slowly(data, bare)
        except ValueError:
            raise error from None


def _loads_slowly(data: bytes, bare: bool) -> Any:
    constants = float if bare else _refuse
    return revive(plain(json.loads(data.decode(), parse_int=integer, parse_constant=constants)))


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def decode(line: bytes) -> Any:
    value = loads(line)
    return revive(value) if b'"NaN"' in line or b'Infinity"' in line else value


# ---- Files

PLAIN, SECRET = 0o666, 0o600  # modes before the umask


def check_regular(path: Path) -> None:
    """Opening a pipe would wait for a writer that never comes; a missing file is left to whoever opens it."""
    if path.exists() and not path.is_file():
        raise RecordError(f"{path.name} must be a file, but is a folder, a pipe, a socket or a device")


def write_atomic(
    path: str | os.PathLike[str],
    data: bytes,
    sync: bool = True,
    rename_later: bool = False,
    several: bool = False,
    mode: int = PLAIN,
) -> None:
    """Replace a file as a whole: a reader sees the old or the new content, never a part.

    `rename_later`: another write to the same folder follows, and makes this rename durable as well. `several`: other
    processes, perhaps on other machines, may write the same file at the same time; the last one counts. `mode`: SECRET
    for what nobody else may read.
    """
    path = Path(path)
    mine = f".{platform.node()}.{os.getpid()}" if several else ""
    temporary = own(path.parent, f".{path.name}{mine}.tmp")
    with writing(path, len(data)):
        _prepare(temporary, data, path, sync, mode)
        os.replace(temporary, path)
        if sync and not rename_later:
            sync_folder(path.parent)


def write_over(path: Path, data: bytes) -> None:
    """Replace a file's content where it lies, which needs no room on a full disk; OSError where it would need some.

    For the last word of a program alone: killed within, it leaves a part.
    """
    with open_plain(path, "r+b") as file:
        if len(data) > os.fstat(file.fileno()).st_blocks * 512:
            _no_room()
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def write_together(files: Mapping[Path, bytes]) -> None:
    """Replace several files of one folder, all or none: none is put in its place before all have found room."""
    waiting = {path: own(path.parent, f".{path.name}.tmp") for path in files}
    try:
        for path, temporary in waiting.items():
            with writing(path, len(files[path])):
                if path.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
                _prepare(temporary, files[path], path, sync=True)
    except BaseException:
        for temporary in waiting.values():
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise
    for path, temporary in waiting.items():
        os.replace(temporary, path)
    for folder in {path.parent for path in files}:
        sync_folder(folder)


def _prepare(temporary: Path, data: bytes, path: Path, sync: bool, mode: int = PLAIN) -> None:
    """The whole content of a file beside it; what the system refuses is told of the file itself."""
    check_regular(temporary)
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_LINK, mode)
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        if mode == SECRET:  # a file of that name may be there, with another mode
            os.fchmod(fd, mode)
        _fill(fd, data, temporary, path, sync)
    finally:
        os.close(fd)


def _fill(fd: int, data: bytes, temporary: Path, path: Path, sync: bool) -> None:
    try:
        write_row(fd, data, path)
        if sync:
            os.fsync(fd)
    except OSError:  # half a file would take the room that is missing
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make renames in a folder durable."""
    if os.name == "nt":  # Windows cannot open folders
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def open_append(folder: Path, name: str) -> int:
    return os.open(own(folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_LINK | NO_WAIT, 0o666)


def write_row(fd: int, data: bytes, path: str | os.PathLike[str]) -> None:
    """One write call; what did not fit into it (a full disk) is taken back, so that no half row stays in the file."""
    written = 0
    try:
        written = os.write(fd, data)
        while written < len(data):  # the next call says why
            written += os.write(fd, data[written:]) or _no_room()
    except OSError as error:
        if written:
            os.ftruncate(fd, os.fstat(fd).st_size - written)
        raise disk_error(error, path, len(data)) or error from None


def _no_room() -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# ---- A full disk

FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota on this disk is used up",
    errno.EFBIG: "the file may not grow any further here (`ulimit -f`)",
}
OF_RUST = re.compile(r"\(os error (\d+)\)")  # safetensors tells the system's errors in a text


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], size: int | None = None) -> Iterator[None]:
    """Inside, a file (or a folder of files) is written: a full disk becomes an error with its name and a remedy."""
    try:
        yield
    except DiskFullError:
        raise
    except Exception as error:
        raise disk_error(error, path, size) or error from None


def disk_error(error: Exception, path: str | os.PathLike[str], size: int | None = None) -> DiskFullError | None:
    """What an error of writing means, if it is a full disk."""
    match = OF_RUST.search(str(error)) if type(error).__name__ == "SafetensorError" else None
    number = int(match[1]) if match else error.errno if isinstance(error, OSError) else None
    named = getattr(error, "filename", None)
    exact = named if isinstance(named, str) and os.path.isdir(path) else path
    return disk_full(exact, size, number) if number in FULL else None


def disk_full(path: str | os.PathLike[str], needed: int | None, number: int) -> DiskFullError:
    path = Path(path)
    free = _free(path.parent) if number == errno.ENOSPC else None  # a quota leaves the disk with plenty
    sizes = {"bytes were wanted": needed, "bytes are free": free}
    parts = [f"{size:,} {what}" for what, size in sizes.items() if size is not None]
    why = f"{FULL[number]} ({', '.join(parts)})" if parts else FULL[number]
    error = DiskFullError(f"{path} could not be written: {why}; {_remedy(path)}")
    error.errno = number
    return error


def _free(folder: Path) -> int | None:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _remedy(path: Path) -> str:
    """A run goes on from its last checkpoint; anything else, pages about it for instance, is made again."""
    for folder in list(path.parents)[:3]:  # RUN/file, RUN/checkpoints/step-.../file, RUN/data/replay/file
        own = path.suffix == ".jsonl" or path.name == "meta.json"
        own = own or bool({folder / "checkpoints", folder / "data"} & set(path.parents))
        if own and (folder / "meta.json").is_file() and (folder / "config.yaml").is_file():
            again = f"`relab resume {shlex.quote(str(folder))}`"
            return f"free some space (`relab runs disk` shows what takes it), then {again}"
    return "free some space, then call it again"


# ---- Reading


def read_jsonl(path: str | os.PathLike[str], most: int = limits.KEPT) -> tuple[list[Document], list[Problem]]:
    """(rows, problems): lines that are no JSON objects are reported, not raised; a missing file has no rows."""
    problems: list[Problem] = []
    return [row for pack in read_packs(path, problems, most) for row in pack], problems


def read_packs(
    path: str | os.PathLike[str], problems: list[Problem], most: int = MAX_BYTES
) -> Iterator[list[Document]]:
    """The same rows, some thousands at a time: as dicts all rows of a long run would fill the memory."""
    path = Path(path)
    check_regular(path)
    if not path.exists():
        problems.append(Problem(path.name, None, "the file is missing"))
        return
    size, more = path.stat().st_size, 0
    if size > most:
        problems.append(Problem(path.name, None, f"only the first {most} of {size} bytes were read"))
    rows: list[Document] = []
    for line in limits.lines(path, most):
        row = _decode_row(line.data) if line.data else None
        if row is not None:
            rows.append(row)
        elif line.data is None or line.data.strip():
            more += len(problems) >= MAX_PROBLEMS  # a file of noise has millions
            if not more:
                problems.append(Problem(path.name, line.number, _what(line)))
        if len(rows) >= PACK:
            yield rows
            rows = []
    if more:
        problems.append(Problem(path.name, None, f"{more} more lines cannot be read"))
    yield rows


def _what(line: limits.Line) -> str:
    """What is wrong with a line that is no row."""
    if line.data is None:
        return f"longer than {limits.LINE:,} bytes; it was left out"
    what = "the last line is truncated" if line.last else "not a JSON object"
    return f"{what}: {line.data[:80].decode(errors='replace')!r}"


def shorten(problems: list[Problem], file: str) -> list[Problem]:
    """The first problems and the number of the others: a file of noise has millions."""
    more = len(problems) - MAX_PROBLEMS
    return (
        [*problems[:MAX_PROBLEMS], Problem(file, None, f"{more} more lines cannot be read")] if more > 0 else problems
    )


def _decode_row(line: bytes) -> Document | None:
    try:
        row = decode(line)
    except (orjson.JSONDecodeError, RecursionError):  # brackets a thousand deep
        return None
    return row if isinstance(row, dict) else None


def is_row(line: bytes) -> bool:
    return _decode_row(line) is not None


def last_line(path: Path, block: int = 1 << 12) -> tuple[int, bytes]:
    """(offset, bytes) of what follows the last line break; empty for a file that ends as it should.

    Of a line that is longer than any reader takes, the bytes are its last ones.
    """
    start, tail = path.stat().st_size, b""
    while start > 0:
        step = min(block, start)
        piece = read_at(path, start - step, step)
        start, block = start - step, min(2 * block, limits.BLOCK)
        cut = piece.rfind(b"\n")
        if cut >= 0:
            return start + cut + 1, (piece[cut + 1 :] + tail)[-limits.LINE :]
        tail = (piece + tail)[-limits.LINE :]
    return 0, tail


def read_start(path: Path, most: int) -> bytes:
    """A file, or as much of it as is wanted: read(n) alone would set n bytes aside, however short the file is."""
    with open(path, "rb") as file:
        return file.read(min(most, os.fstat(file.fileno()).st_size))


def read_at(path: Path, offset: int, size: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(size)


def read_json(folder: str | os.PathLike[str], name: str) -> Document:
    """A JSON file of the folder, with an error that names it."""
    path = inside(folder, name)
    check_regular(path)
    try:
        value = decode(limits.read_bytes(path, MAX_JSON))
    except FileNotFoundError:
        raise RecordError(f"{path} is missing; is {folder} a run folder?") from None
    except limits.TooLargeError as error:
        raise RecordError(f"{folder}: {error}") from None
    except orjson.JSONDecodeError as error:
        raise RecordError(f"{path} must hold JSON, but {error}") from None
    except RecursionError:
        raise RecordError(f"{path} must hold JSON, but is nested too deeply") from None
    if not isinstance(value, dict):
        raise RecordError(f"{path} must hold a JSON object, but holds a {type(value).__name__}")
    return value
