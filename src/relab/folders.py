"""Where below a path are runs, and is one of them still alive? Asked by every reading command; nothing is written."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path

from relab.history import History

DEPTH = 4  # folders below the given one that are looked into
MAX_FOLDERS = 20_000
STALE_S = 120.0  # a running run renews its heartbeat about every ten seconds
MARKS = ("meta.json", "metrics.jsonl")


def find_runs(root: Path) -> Iterator[Path]:
    """Run folders at or below root, to a limited depth; links are not followed, nothing outside is looked at."""
    todo, seen = [(root, 0)], 0
    while todo:
        folder, depth = todo.pop(0)
        seen += 1
        if any((folder / mark).is_file() for mark in MARKS):
            yield folder
        elif depth < DEPTH and seen < MAX_FOLDERS:
            todo += [(child, depth + 1) for child in _children(folder)]


def _children(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [e.name for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    except OSError:
        return []
    return [folder / name for name in sorted(found)]


def state_of(run: History, now: float | None = None) -> str:
    """finished, interrupted or failed as recorded; a run that says it is running is stale when its heart stopped."""
    status = run.meta.get("status")
    if status != "running":
        return str(status) if isinstance(status, str) else "unknown"
    now = datetime.datetime.now(datetime.UTC).timestamp() if now is None else now
    return "stale" if now - _last_sign(run) > STALE_S else "running"


def _last_sign(run: History) -> float:
    """Seconds of the last heartbeat; of the newest file where there is none."""
    try:
        beat = str(run.meta["heartbeat"]).replace("Z", "+00:00")
        return datetime.datetime.fromisoformat(beat).timestamp()
    except (KeyError, ValueError):
        pass
    times = [e.stat(follow_symlinks=False).st_mtime for e in os.scandir(run.folder)]
    return max(times, default=0.0)
