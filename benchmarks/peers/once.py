"""Which runs are made already? A folder that holds its last file is not made again; the peers' scripts share this."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def once(folder: Path, last: str, make: Callable[[Path], None], name: str = "") -> float:
    """Make a run unless its last file is there, and say how long it took; returns the seconds."""
    if (folder / last).exists():
        return 0.0
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    make(folder)
    spent = time.perf_counter() - began
    print(f"{name or folder.name}: {spent:.0f} s", flush=True)
    return spent
