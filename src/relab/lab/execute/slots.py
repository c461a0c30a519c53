"""What fits at once? Slots by core and by memory: as many commands as have room for both."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from relab.config.base import require
from relab.lab.execute.executor import Needs
from relab.record.provenance import memory_mb

UNKNOWN_MB = 512.0  # what a run is taken to need until one of its kind has ended


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_mb() -> float | None:
    """Memory of the machine, or of the container where that is less; None where the system does not tell."""
    limits_mb = [float(total)] if (total := memory_mb()) is not None else []
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        limits_mb += [int(limit) / 2**20] if limit.isdigit() else []
    except OSError:  # no such limit here
        pass
    return min(limits_mb, default=None)


@dataclass
class Slots:
    """Cores and memory, and who has them."""

    cores: int
    memory_mb: float | None  # None: not counted
    taken: dict[str, Needs] = field(default_factory=dict)

    def check(self, needs: Needs, who: str) -> None:
        """What could never run here is an error, now."""
        require(
            needs.cores <= self.cores,
            f"{who} needs {needs.cores} cores, but there are {self.cores} here; ask for fewer, or give it to a larger"
            " machine",
        )
        mb = needs.memory_mb or 0.0
        require(
            self.memory_mb is None or mb <= self.memory_mb,
            f"{who} needs {mb:,.0f} MB, but there are {self.memory_mb or 0:,.0f} MB here; ask for less, or give it to a"
            " larger machine",
        )

    def fits(self, needs: Needs, others: Collection[Needs] = ()) -> bool:
        """Whether there is room now; `others` is what somebody else on this machine has taken."""
        there = [*self.taken.values(), *others]
        if needs.cores > self.cores - sum(each.cores for each in there):
            return False
        if self.memory_mb is None or not there:  # alone it may try, however little is known about it
            return True
        return _mb(needs) + sum(map(_mb, there)) <= self.memory_mb

    def take(self, id: str, needs: Needs) -> None:
        self.taken[id] = needs

    def free(self, id: str) -> None:
        self.taken.pop(id, None)


def _mb(needs: Needs) -> float:
    return UNKNOWN_MB if needs.memory_mb is None else needs.memory_mb
