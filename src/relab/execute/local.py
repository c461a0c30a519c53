"""How do many runs share this machine? One process a run, one thread each, as many at a time as there are cores.

A job whose process is killed is started again (it resumes), a few times; Ctrl-C or SIGTERM asks the running ones to
checkpoint and leaves the rest for the next call. Jobs are commands, never a shell's, so that any trainer can be one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TRIES = 3
NOT_STARTED = 127  # exit code of a program that is not there, as shells give it
POLL_S = 0.1
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass
class Job:
    """One run to be done: `command()` is asked anew for each try, because a second try resumes."""

    name: str
    command: Callable[[], list[str]]
    done: Callable[[], bool]  # asked of the record, not of the exit code
    log: Path  # what the process prints
    started: Callable[[subprocess.Popen[bytes]], None] | None = None
    ended: Callable[[int, float, bool], None] | None = None  # exit code, seconds, whether it was asked to stop
    tries: int = 0
    exit_codes: list[int] = field(default_factory=list)
    since: float = 0.0  # when this try began

    def end(self, code: int, stopped: bool = False) -> None:
        self.exit_codes.append(code)
        if self.ended is not None:
            self.ended(code, time.monotonic() - self.since, stopped)


@dataclass(frozen=True)
class Result:
    """What became of the jobs."""

    finished: list[str]
    failed: list[str]
    interrupted: bool


Running = dict[subprocess.Popen[bytes], Job]


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(jobs: Sequence[Job], workers: int, watch: Callable[[int, int], None] | None = None) -> Result:
    """Run all jobs that are not done yet; `watch(done, all)` is called when one ends."""
    waiting = [job for job in jobs if not job.done()]
    running: Running = {}
    failed: list[str] = []
    with Stop() as stop:
        try:
            while (waiting or running) and not stop.asked:
                while waiting and len(running) < workers:
                    begin(waiting.pop(0), running, failed)
                ended = [process for process in running if process.poll() is not None]
                for process in ended:
                    settle(running.pop(process), process.returncode, waiting, failed)
                if ended and watch is not None:
                    watch(sum(job.done() for job in jobs), len(jobs))
                time.sleep(POLL_S)
        finally:  # also when a job cannot be started at all: no process is left behind
            end(running)
    return Result([job.name for job in jobs if job.done()], failed, stop.asked)


def begin(job: Job, running: Running, failed: list[str]) -> None:
    """Start a job; a program that is not there fails it and says so in its log."""
    command = job.command()
    job.tries += 1
    job.since = time.monotonic()
    try:
        process = start(job, command)
    except OSError as error:
        with open(job.log, "a", encoding="utf-8") as log:
            log.write(f"{command[0]} could not be started: {error.strerror}\n")
        job.end(NOT_STARTED)
        failed.append(job.name)
        return
    running[process] = job
    if job.started is not None:
        job.started(process)


def start(job: Job, command: list[str]) -> subprocess.Popen[bytes]:
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with open(job.log, "ab") as log:
        # a session of its own: Ctrl-C in the terminal reaches us alone, and we pass it on in order
        return subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, **ONE_THREAD},
        )  # fmt: skip


def settle(job: Job, code: int, waiting: list[Job], failed: list[str]) -> None:
    """A process ended: done, worth another try (it was killed), or failed (a second try would fail the same way)."""
    job.end(code)
    if job.done():
        return
    if code < 0 and job.tries < TRIES:
        waiting.append(job)
    else:
        failed.append(job.name)


def end(running: Running, patience_s: float = 60.0) -> None:
    """Ask what still runs to checkpoint and stop; what does not listen is killed."""
    for process in running:
        tell(process, signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    for process, job in running.items():
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            tell(process, signal.SIGKILL)
            process.wait()
        job.end(process.returncode, stopped=True)


def tell(process: subprocess.Popen[bytes], number: int) -> None:
    """A signal to the process and those that it has started: they share its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # ended a moment ago
        os.killpg(process.pid, number)


class Stop:
    """SIGINT and SIGTERM set `asked`; whoever loops looks at it."""

    def __init__(self) -> None:
        self.asked = False
        self.old: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            self.old[number] = signal.signal(number, self.ask)
        return self

    def ask(self, *_: object) -> None:
        self.asked = True

    def __exit__(self, *_: object) -> None:
        for number, handler in self.old.items():
            signal.signal(number, handler)
