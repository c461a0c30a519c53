"""Which options do the verbs of `relab queue` have?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from relab.commands.options import AsJson, DryRun

if TYPE_CHECKING:
    from relab.lab.execute.queue import Queue

VARIABLE = "RELAB_QUEUE"
SHOWN = 20


@dataclass(frozen=True)
class Common:
    """What every verb has."""

    queue: Path | None = None
    """the queue's folder; default: $RELAB_QUEUE, else `queue` in this folder"""
    json: AsJson = False

    @property
    def folder(self) -> Path:
        return self.queue or Path(os.environ.get(VARIABLE) or "queue")

    def open(self) -> Queue:
        from relab.lab.execute.queue import Queue

        return Queue(self.folder).check()


@dataclass(frozen=True)
class Doing(Common):
    """What every verb that changes something has."""

    dry_run: DryRun = False


@dataclass(frozen=True)
class List(Common):
    """Show a queue: files in a folder, which any number of submitters and workers may share, on network mounts too.

    A verb as the first word does something with it: add, work, pause, resume, cancel, retry, show, clear, orphans.
    """

    top: int = SHOWN
    """entries to show of each state; 0 shows all"""


@dataclass(frozen=True)
class Add(Doing):
    """Add a command of relab (`add train ppo env=cartpole`) or, after two dashes, any program (`add -- python x.py`).

    The options of `add` stand before the command. It will run in this folder, with the worker's environment.
    """

    priority: int = 0
    """-999 to 999; higher ones run first, equal ones in the order in which they came"""
    cores: int = 1
    """cores that it takes"""
    memory: float | None = None
    """MB that it takes; default: what the largest of its kind took, 512 before one has ended"""
    elsewhere: bool = False
    """it may need more than this machine has: a worker on another one will run it"""
    paused: bool = False
    """it waits until `relab queue resume ID`"""


@dataclass(frozen=True)
class Work(Doing):
    """Run what waits, in the foreground, until nothing does. Ctrl-C asks what runs to checkpoint and puts it back."""

    workers: int | None = None
    """cores for this worker; default: those that no other worker of the queue uses on this machine"""
    stay: bool = False
    """wait for more when nothing is left"""


@dataclass(frozen=True)
class Ids(Doing):
    """Some entries."""

    ids: tyro.conf.Positional[tuple[str, ...]] = ()
    """ids, or how they begin"""


@dataclass(frozen=True)
class Pause(Ids):
    """Start nothing new from this queue; or, with ids, pause these: one that runs checkpoints and is put aside."""


@dataclass(frozen=True)
class Resume(Ids):
    """Go on with a paused queue; or, with ids, with these entries."""


@dataclass(frozen=True)
class Cancel(Ids):
    """Take entries out of the queue; one that runs is asked to end, and ended after a minute; `retry` undoes it."""


@dataclass(frozen=True)
class Retry(Ids):
    """Try entries again that failed or were cancelled."""

    failed: bool = False
    """all that failed"""


@dataclass(frozen=True)
class Show(Ids):
    """All that is known about entries, and the end of their logs."""


@dataclass(frozen=True)
class Clear(Doing):
    """Forget entries that are done or cancelled, with their logs. The runs that they made stay."""

    failed: bool = False
    """those that failed as well"""


@dataclass(frozen=True)
class Orphans(Doing):
    """Processes that a killed relab left running on this machine: of queues, experiments and sweeps."""

    end: bool = False
    """ask them to checkpoint and end, and end those that do not listen within a minute"""
