"""Which loops lie below the folder, and how is what was dropped into one taken back?

What may be dropped a loop says itself (relab.lab.loop.outside), which the desk's process asks by name: the pages import
nothing that trains.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from relab.base import limits
from relab.base.documents import Document
from relab.base.jsonl import write_atomic
from relab.config.base import require
from relab.runs.listing import ListedRun

MOST = 20  # loops that are shown
LOOP, JOURNAL = "loop.yaml", "journal"
STANDING, DROP, WITHDRAW = (f"relab.lab.loop.outside:{name}" for name in ("standing", "drop", "withdraw"))


def homes(runs: Iterable[ListedRun]) -> list[Path]:
    """The folders of the loops that these runs belong to."""
    known: dict[str, Path | None] = {}
    for run in runs:
        above = run.path.rpartition(os.sep)[0]
        if above not in known:  # once for all runs that lie beside each other
            known[above] = _home(Path(above))
    return list(dict.fromkeys(home for home in known.values() if home is not None))[:MOST]


def _home(folder: Path) -> Path | None:
    """Runs lie in LOOP/runs, those of a program in a folder of their own there."""
    for place in (folder, folder.parent):
        if place.name == "runs" and all((place.parent / name).is_file() for name in (LOOP, JOURNAL)):
            return place.parent
    return None


def take_back(done: Document) -> None:
    """As it was before; what the loop has taken stays taken."""
    path, before = done["path"], done["before"]
    now = limits.read_bytes(path, limits.TEXT) if path.is_file() else None
    require(now == done["after"], f"{path.name} is not what it was: the loop has taken it, or somebody changed it")
    if before is None:
        path.unlink(missing_ok=True)
    else:
        write_atomic(path, before)
