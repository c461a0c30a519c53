"""Which processes did relab start, is one still the one it was, and which of them has outlived the relab that did?

A process is known by its id and by the time at which the kernel started it: ids are used again. What relab starts
carries the name of its job and of its owner in its environment, which the kernel shows to the same user; so the list of
our own is never out of date, and nobody else's process can get onto it. Where there is no /proc, nothing is known.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

# How relab starts Python: -P keeps the working folder off the front of the path, where a user's queue.py or random.py
# would stand in for the standard library's. A module that he names is found there all the same (registry.py).
from relab.base.documents import Document

PYTHON = (sys.executable, "-P")
RELAB = (*PYTHON, "-m", "relab.cli")
SAFE = "PYTHONSAFEPATH"  # the same by the environment, for children that are started by somebody else's code
JOB, OWNER = "RELAB_JOB", "RELAB_OWNER"  # in the environment of what relab starts
PATIENCE_S = 60.0  # from "please end" to "end": a run writes a checkpoint in between


@dataclass(frozen=True)
class Ours:
    """A process group that relab started on this machine."""

    pid: int  # of the group: a signal to it reaches all of its members
    member: int  # one that lives
    birth: str  # of that one
    job: str
    owner: str
    command: str

    @property
    def place(self) -> str:
        """Its working folder; empty where the kernel does not tell."""
        try:
            return os.readlink(f"/proc/{self.member}/cwd")
        except OSError:
            return ""

    def to_json(self) -> Document:
        return asdict(self)


# ---- One process


def birth(pid: int) -> str | None:
    """When a living process was started, in the kernel's ticks; None where there is none."""
    fields = stat(pid)
    return fields[19] if fields else None


def stat(pid: int) -> list[str]:
    """What the kernel tells of a living process, from its state on; empty where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return fields if fields[0] != "Z" else []


def lives(pid: int, born: str | None) -> bool:
    return born is not None and birth(pid) == born


# ---- Names of owners


@functools.cache
def place() -> str:
    """This machine since it was switched on, as far as process ids reach: another container is another place."""
    parts = [platform.node()]
    for read in (lambda: Path("/proc/sys/kernel/random/boot_id").read_text(), lambda: os.readlink("/proc/self/ns/pid")):
        with contextlib.suppress(OSError):
            parts.append(read())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def myself() -> str:
    """host_place_pid_birth: who I am, for those who later ask whether I still live."""
    host = re.sub(r"[^A-Za-z0-9-]+", "-", platform.node())[:40] or "host"
    return f"{host}_{place()}_{os.getpid()}_{birth(os.getpid()) or 0}"


def is_alive(owner: str) -> bool | None:
    """Whether an owner lives; None for one on another machine, or where the kernel does not tell."""
    match = re.fullmatch(r"[A-Za-z0-9-]+_([0-9a-f]{8})_(\d+)_(\d+)", owner)
    if match is None or match[1] != place() or match[3] == "0":
        return None
    return lives(int(match[2]), match[3])


# ---- Children of multiprocessing


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Python processes that are started meanwhile do not put the working folder first on their path.

    multiprocessing starts `python -c ...`, which imports half of the standard library before it takes over our path.
    """
    before = os.environ.get(SAFE)
    os.environ[SAFE] = "1"
    try:
        yield
    finally:
        del os.environ[SAFE]
        if before is not None:
            os.environ[SAFE] = before


# ---- All of ours


def ours() -> list[Ours]:
    """What relab has started on this machine as this user and what still lives, a row for each process group."""
    groups: dict[int, Ours] = {}
    for pid in _ids():
        try:
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:  # ended a moment ago, or not ours
            continue
        marks = {JOB.encode(): "", OWNER.encode(): ""}
        marks |= {key: value.decode(errors="replace") for key, _, value in (w.partition(b"=") for w in words)
                  if key in marks}  # fmt: skip
        fields = stat(pid) if all(marks.values()) else []
        if fields:
            group = int(fields[2])
            job, owner = marks.values()
            groups.setdefault(group, Ours(group, pid, fields[19], job, owner, command_of(pid)))
    return list(groups.values())


def _ids() -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from sorted(int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def orphans() -> list[Ours]:
    """Those whose owner was killed: they go on, and nobody waits for them."""
    return [each for each in ours() if is_alive(each.owner) is False]


def end(process: Ours, patience_s: float = PATIENCE_S) -> bool:
    """Ask a group to end, end it if it does not listen; whether it is gone. What is no longer ours is left alone."""
    for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 5.0)):
        if not is_there(process):
            return True
        tell(process.pid, number)
        until = time.monotonic() + wait_s
        while is_there(process) and time.monotonic() < until:
            time.sleep(0.05)
    return not is_there(process)


def is_there(process: Ours) -> bool:
    """Whether any member of the group lives: the one that was seen, or another with the same job and owner."""
    if lives(process.member, process.birth):
        return True
    return any(x.pid == process.pid and (x.job, x.owner) == (process.job, process.owner) for x in ours())


def tell(group: int, number: int) -> None:
    """A signal to a process and those that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # ended a moment ago
        os.killpg(group, number)
