"""How does an entry get into a person's log without touching a byte of theirs? Between two marks that name it.

    <!-- relab:begin ID sha256=HASH -->
    ...
    <!-- relab:end ID -->

A second call replaces what stands between the marks of the same id. The hash tells whether a person has edited it: then
it is theirs, and stays. Everything works on bytes, so line ends, byte order marks and any encoding that keeps ASCII
survive. The file is replaced as a whole, under a lock, and only if it is still what was read.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relab.base import limits
from relab.base.jsonl import RecordError, write_atomic

MAX_BYTES = limits.TEXT  # of a file that is taken for a log

BOM = b"\xef\xbb\xbf"
MARK = re.compile(rb"<!-- relab:(begin|end) ([\w.=+-]+)(?: sha256=([0-9a-f]{12}))? -->[ \t]*\r?")
LIKE_MARK = re.compile(rb"\s*<!--\s*relab:(begin|end)")
# What an entry itself may hold: where a number comes from, and what programs must know of it. Neither can hold a mark.
OWN = r"relab:run=[^\s<>]+(?: [a-z]+=[^\s<>]+)*-->| relab:facts \{[^\n<>]*\} -->"
PATIENCE_S = 30.0  # each time that it fails another writer has got through, so that only time can be short


@dataclass(frozen=True)
class Block:
    """One entry in a log: from the first byte of its begin mark to the last of its end mark."""

    id: str
    start: int
    stop: int
    line: int
    edited: bool


def safe_id(text: str) -> str:
    """An id that can stand in a mark; texts that differ give ids that differ."""
    plain = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9_.=+-]+", "-", text)).strip("-")[:60]
    return plain if plain == text and plain else f"{plain or 'run'}-{_hash(text.encode(errors='replace'))[:6]}"


def _hash(body: bytes) -> str:
    """Of what was written; another machine's line ends and trimmed blanks at line ends are no edit."""
    lines = [line.rstrip() for line in body.split(b"\n")]
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:12]


# ---- Finding


def blocks(text: bytes, name: str = "the log") -> list[Block]:
    """All entries; RecordError with the line where marks do not pair."""
    entries: list[Block] = []
    opened: tuple[str, int, int, int, str] | None = None  # id, start, body, line, hash
    for number, start, line in _lines(text):
        mark = _mark(line, number, name)
        if mark is None:
            continue
        kind, id_, hash_ = mark
        if kind == "begin":
            _check(opened is None, name, number, f"the entry {id_} begins inside of another", opened)
            opened = (id_, start, start + len(line) + 1, number, hash_)
            continue
        _check(opened is not None and opened[0] == id_, name, number, f"an entry {id_} ends that did not begin", opened)
        assert opened is not None
        stop = start + len(line.rstrip(b"\r"))
        entries.append(Block(id_, opened[1], stop, opened[3], _hash(text[opened[2] : start]) != opened[4]))
        opened = None
    _check(opened is None, name, opened[3] if opened else 0, "the entry that begins here does not end", None)
    return entries


def _lines(text: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(number, offset, line without its \\n); a byte order mark belongs to no line."""
    offset = len(BOM) if text.startswith(BOM) else 0
    for number, line in enumerate(text[offset:].split(b"\n"), 1):
        yield number, offset, line
        offset += len(line) + 1


def _mark(line: bytes, number: int, name: str) -> tuple[str, str, str] | None:
    if not LIKE_MARK.match(line):
        return None
    match = MARK.fullmatch(line)
    _check(match is not None, name, number, f"a mark of relab is damaged: {line[:80].decode(errors='replace')!r}", None)
    assert match is not None
    return match[1].decode(), match[2].decode(), (match[3] or b"").decode()


def _check(good: bool, name: str, line: int, what: str, opened: tuple[str, int, int, int, str] | None) -> None:
    if good:
        return
    where = f" (the entry {opened[0]} began on line {opened[3]})" if opened else ""
    raise RecordError(f"{name} line {line}: {what}{where}; mend or delete these marks by hand; nothing was written")


# ---- Placing


def render(id_: str, body: str, newline: bytes = b"\n") -> bytes:
    """The block of an entry, without a line break at its end."""
    plain = re.sub(f"<!--(?!{OWN})", "&lt;!--", body)  # it can hold no mark
    inner = (plain.strip("\n") + "\n").encode(errors="replace")
    hash_ = _hash(inner)
    block = f"<!-- relab:begin {id_} sha256={hash_} -->\n".encode() + inner + f"<!-- relab:end {id_} -->".encode()
    return block.replace(b"\n", newline)


def signed(block: bytes) -> bytes:
    """A block whose body relab itself has changed, with the hash of what stands there now."""
    head, _, rest = block.partition(b"\n")
    body = rest[: rest.rindex(b"<!-- relab:end")]
    return re.sub(rb"sha256=[0-9a-f]{12}", b"sha256=" + _hash(body).encode(), head) + b"\n" + rest


def place(text: bytes, id_: str, body: str, force: bool = False, name: str = "the log") -> bytes:
    """The log with this entry: in its old place, or at the end."""
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text:
        raise RecordError(f"{name} must be text that keeps ASCII (such as UTF-8), but is not; nothing was written")
    mine = [block for block in blocks(text, name) if block.id == id_]
    if len(mine) > 1:
        lines = " and ".join(str(block.line) for block in mine)
        raise RecordError(f"{name} holds the entry {id_} more than once, on lines {lines}; delete all but one of them")
    newline = b"\r\n" if b"\r\n" in text else b"\n"
    block = render(id_, body, newline)
    if not mine:
        return text + _gap(text, newline) + block + newline
    (old,) = mine
    if text[old.start : old.stop] == block:
        return text
    if old.edited and not force:
        raise RecordError(f"{name} line {old.line}: the entry {id_} was edited by hand and is left as it is;"
                          " --force writes it anew")  # fmt: skip
    return text[: old.start] + block + text[old.stop :]


def _gap(text: bytes, newline: bytes) -> bytes:
    """An empty line between a person's last line and the entry."""
    if text in (b"", BOM) or text.endswith((b"\n\n", b"\n\r\n")):
        return b""
    return newline if text.endswith(b"\n") else 2 * newline


# ---- Writing


def write(path: Path, id_: str, body: str, force: bool = False) -> str:
    """Put the entry into the file -> added, renewed or unchanged."""
    place(read(path), id_, body, force, path.name)  # what cannot be placed makes no file
    path.parent.mkdir(parents=True, exist_ok=True)
    before, after = rewrite(path, lambda text: place(text, id_, body, force, path.name))
    if before == after:
        return "unchanged"
    return "renewed" if any(block.id == id_ for block in blocks(before)) else "added"


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> tuple[bytes, bytes]:
    """Replace the file by what `change` makes of it -> (before, after); nothing is written where it changes nothing."""
    path = path.resolve()  # a link stays a link: its target is replaced
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with locked(path) as fd:
            before = read(path)
            if fd is not None and not _same_file(fd, path):
                continue  # another writer has replaced it while we waited
            after = change(before)
            if after == before:
                return before, after
            if read(path) != before:
                continue  # an editor has saved in between
            _replace(path, after)
            return before, after
    raise RecordError(f"{path} kept changing for {PATIENCE_S:.0f} s while the entry was written; try again when others"
                      " are done")  # fmt: skip


def read(path: Path) -> bytes:
    try:
        return limits.read_bytes(path, MAX_BYTES, "name the log itself, or begin a new one")
    except FileNotFoundError:
        return b""
    except limits.TooLargeError as error:
        raise RecordError(f"{path.parent}: {error}") from None


def _replace(path: Path, text: bytes) -> None:
    mode = path.stat().st_mode & 0o7777
    write_atomic(path, text)
    os.chmod(path, mode)


def _same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def locked(path: Path) -> Iterator[int | None]:
    """Others that write entries wait; where there are no locks (Windows), the second look before writing must do."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX)
        except (ImportError, OSError):
            pass
        yield fd
    finally:
        os.close(fd)
