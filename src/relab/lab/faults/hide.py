"""What does the examiner get to see? A copy of the runs in which nothing tells which fault was planted."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from relab.base.jsonl import decode, encode


class LeakError(Exception):
    """A copy that still tells what was planted."""


def hide(original: Path, copy: Path, fault: str | None) -> None:
    """Copy the runs of a case under other ids; raises LeakError where a byte or a path still names the fault."""
    shutil.copytree(original, copy)
    for meta in sorted(copy.rglob("meta.json")):
        rename(meta)
    if fault is not None and (leaks := leaks_in(copy, [fault])):
        shutil.rmtree(copy)
        raise LeakError(f"the copy of a case must not name its fault, but {', '.join(leaks[:3])} holds {fault!r}")


def rename(meta: Path) -> None:
    """Name and id of a run as if nobody had made it on purpose: from where the copy lies."""
    facts = decode(meta.read_bytes())
    facts |= {"name": meta.parent.name, "id": hashlib.sha256(str(facts["id"]).encode()).hexdigest()[:12]}
    meta.write_bytes(encode(facts, indent=True))


def leaks_in(folder: Path, names: Iterable[str]) -> list[str]:
    """Files and folders whose path or bytes hold one of the names, in any spelling (-, _ or blank between words)."""
    spelt = [b"[-_ ]?".join(re.escape(word.encode()) for word in name.split("-")) for name in names]
    pattern = re.compile(b"|".join(spelt), re.IGNORECASE)
    leaks = []
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder).as_posix()
        if pattern.search(below.encode()) or (path.is_file() and pattern.search(path.read_bytes())):
            leaks.append(below)
    return leaks
