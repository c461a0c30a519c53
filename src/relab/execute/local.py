"""How do many runs share this machine? One process a run, one thread each, as many at a time as there are cores.

A job whose process is killed is started again (it resumes), a few times; Ctrl-C or SIGTERM asks the running ones to
checkpoint and leaves the rest for the next call. Jobs are commands, so that any trainer can be one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TRIES = 3
POLL_S = 0.1
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass
class Job:
    """One run to be done: `command()` is asked anew for each try, because a second try resumes."""

    name: str
    command: Callable[[], list[str]]
    done: Callable[[], bool]  # asked of the record, not of the exit code
    log: Path  # what the process prints
    tries: int = 0
    exit_codes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """What became of the jobs."""

    finished: list[str]
    failed: list[str]
    interrupted: bool


def run(jobs: Sequence[Job], workers: int, watch: Callable[[int, int], None] | None = None) -> Result:
    """Run all jobs that are not done yet; `watch(done, all)` is called when one ends."""
    waiting = [job for job in jobs if not job.done()]
    running: dict[subprocess.Popen[bytes], Job] = {}
    failed: list[str] = []
    with Stop() as stop:
        while (waiting or running) and not stop.asked:
            while waiting and len(running) < workers:
                job = waiting.pop(0)
                running[start(job)] = job
            ended = [process for process in running if process.poll() is not None]
            for process in ended:
                settle(running.pop(process), process.returncode, waiting, failed)
            if ended and watch is not None:
                watch(sum(job.done() for job in jobs), len(jobs))
            time.sleep(POLL_S)
        end(running)
    return Result([job.name for job in jobs if job.done()], failed, stop.asked)


def start(job: Job) -> subprocess.Popen[bytes]:
    job.tries += 1
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with open(job.log, "ab") as log:
        # a session of its own: Ctrl-C in the terminal reaches us alone, and we pass it on in order
        return subprocess.Popen(
            job.command(), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, **ONE_THREAD},
        )  # fmt: skip


def settle(job: Job, code: int, waiting: list[Job], failed: list[str]) -> None:
    """A process ended: done, worth another try (it was killed), or failed (a second try would fail the same way)."""
    job.exit_codes.append(code)
    if job.done():
        return
    if code < 0 and job.tries < TRIES:
        waiting.append(job)
    else:
        failed.append(job.name)


def end(running: dict[subprocess.Popen[bytes], Job], patience_s: float = 60.0) -> None:
    """Ask what still runs to checkpoint and stop; what does not listen is killed."""
    for process in running:
        process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    for process in running:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


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
