"""What does it take to run a command somewhere? Four verbs over plain data: submit, watch, cancel, collect.

local.py does it with processes of this machine, cluster.py with the machines of a Ray cluster or of Slurm.
Nothing here knows what a run is: what a command left behind is asked of its record, by whoever submitted it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Needs:
    """What a command takes while it runs."""

    cores: int = 1
    memory_mb: float | None = None  # None: unknown


@dataclass(frozen=True)
class Work:
    """One command to be run once."""

    id: str
    words: tuple[str, ...]  # never a shell's
    log: Path  # what it prints is added there
    cwd: Path | None = None  # None: where we are
    env: dict[str, str] = field(default_factory=dict)  # beside what is set already
    needs: Needs = Needs()
    beat: Path | None = None  # a file that is touched while it runs; once it is gone, the command is ended
    code: Path | None = None  # a file that keeps its exit code, also if nobody is left to wait for it (keeper.py)
    relab: bool = False  # the words are for relab, whichever one the machine has that runs them


@dataclass(frozen=True)
class Standing:
    """How a command stands that was submitted and has not been collected."""

    id: str
    state: str  # waiting | running | ended
    pid: int | None = None
    seconds: float = 0.0  # since it was started


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    id: str
    code: int  # negative: the signal that killed it
    seconds: float
    rss_mb: float | None = None  # the most memory that one of its processes held
    load: float | None = None  # of the machine, the mean of what was seen while it ran
    cancelled: bool = False  # told to end by cancel
    again: bool = False  # its time was up, or it was preempted: another try that counts for nothing


class Executor(Protocol):
    """What a machine or a cluster must do."""

    def submit(self, work: Work) -> None:
        """Take it; it starts once there is room. ConfigError for what could never fit."""

    def watch(self) -> list[Standing]:
        """Start what fits, see what ended, keep hearts beating; cheap, called often. All that is not collected."""

    def cancel(self, id: str) -> None:
        """Ask it to end, and end it later if it does not listen; one that waits never starts."""

    def collect(self) -> list[Ended]:
        """What ended since the last call, each once."""

    def fits(self, needs: Needs, others: Collection[Needs] = ()) -> bool:
        """Whether another one may be submitted now; `others` is what somebody else on this machine has taken."""

    def going(self) -> list[str]:
        """What runs and was not asked to end."""

    def busy(self) -> bool:
        """Whether anything was submitted that has not ended."""

    def adopt(self, names: Collection[str]) -> list[str]:
        """Of these, what an earlier submitter gave away that still goes on: it is waited for, not started again."""

    def close(self) -> None:
        """Ask all to end and wait for it; how they ended is for collect."""
