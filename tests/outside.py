"""Who reaches outside? The paths below a folder that Python opens, lists, makes, moves or removes, while watched."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The last part of these paths is not followed: a link there is itself opened (and refused), moved or removed.
LINKS_THEMSELVES = {"os.remove", "os.rename", "os.rmdir", "os.mkdir"}
WATCHED = {
    "open",
    "sqlite3.connect",
    "os.listdir",
    "os.scandir",
    "os.truncate",
    "os.utime",
    "os.chmod",
    *LINKS_THEMSELVES,
}

_forbidden: list[str] = []  # the folder that is watched; empty while nobody watches
_seen: list[str] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _forbidden or event not in WATCHED:
        return
    paths = args[:2] if event == "os.rename" else args[:1]
    _seen.extend(f"{event} {path!r}" for path in paths if _reaches(event, path, args))


def _reaches(event: str, path: Any, args: tuple[Any, ...]) -> bool:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    text = os.fsdecode(path).removeprefix("file://").removeprefix("file:").partition("?")[0]
    itself = event in LINKS_THEMSELVES or (event == "open" and bool((args[2] or 0) & os.O_NOFOLLOW))
    parent = os.path.realpath(os.path.dirname(text) or ".")
    leads_to = os.path.join(parent, os.path.basename(text)) if itself else os.path.realpath(text)
    return leads_to == _forbidden[0] or leads_to.startswith(_forbidden[0] + os.sep)


sys.addaudithook(_hook)


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """What reaches into the folder during the block, an entry each."""
    _seen.clear()
    _forbidden[:] = [os.path.realpath(folder)]
    try:
        yield _seen
    finally:
        _forbidden.clear()


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file and folder below: its bytes, and when it was changed."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.lstat().st_mtime_ns)
        for path in [folder, *sorted(folder.rglob("*"))]
    }
