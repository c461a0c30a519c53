"""How busy is the machine, and what waits? Load, memory, disk and the queue, as they are now."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from relab.base.text import duration, size
from relab.lab.execute.outlook import Outlook, describe, time_left
from relab.lab.execute.queue import Queue

SHOWN = 8


@dataclass(frozen=True)
class Machine:
    """Numbers in words."""

    load: str
    memory: str
    disk: str
    counts: dict[str, int] = field(default_factory=dict)  # of the queue; empty where there is none
    paused: bool = False
    left: str = ""
    rows: list[tuple[str, str, str]] = field(default_factory=list)  # state, words, how far or why


def look(root: Path, queue: Path) -> Machine:
    cores = os.cpu_count() or 1
    load = f"{os.getloadavg()[0]:.1f} of {cores} cores" if hasattr(os, "getloadavg") else f"{cores} cores"
    free = shutil.disk_usage(root).free
    plain = Machine(load, _memory(), f"{size(free)} free")
    if not (queue / "waiting").is_dir() or queue.is_symlink():
        return plain
    line = Queue(queue)
    counts = line.counts()
    left = time_left(line, counts)
    states = ("running", "waiting", "failed")
    rows = [_row(describe(line, item)) for state in states for item in [*line.items((state,))][:SHOWN]]
    return Machine(plain.load, plain.memory, plain.disk, counts, line.paused, duration(left) if left else "", rows)


def _row(outlook: Outlook) -> tuple[str, str, str]:
    progress, words = outlook.progress, outlook.entry.shown if outlook.entry else "not readable"
    far = f"{progress.step / max(progress.total_steps, 1):.0%}, {duration(progress.eta_s)} left" if progress else ""
    return outlook.item.state, words, outlook.problem or far


def _memory() -> str:
    """Linux says it in a file; elsewhere nothing is said."""
    try:
        rows = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free, every = (float(rows[key].split()[0]) * 1024 for key in ("MemAvailable", "MemTotal"))
    except (OSError, KeyError, ValueError, IndexError):
        return ""
    return f"{size(free)} of {size(every)} free"
