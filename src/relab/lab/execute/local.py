"""How do many runs share this machine? One process a run, one thread each, as many at a time as there is room for.

`Local` is the executor of this machine. `run` drives it for jobs that know from their record whether they are done: one
whose process is killed is started again (it resumes), a few times; Ctrl-C or SIGTERM asks the running ones to
checkpoint and leaves the rest for the next call. Jobs are commands, never a shell's, so that any trainer can be one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from relab.base import leash, processes
from relab.base.enclosed import open_plain, subfolder
from relab.base.interrupts import Interrupts
from relab.config.base import require
from relab.lab.execute import keeper
from relab.lab.execute.executor import Ended, Executor, Needs, Standing, Work
from relab.lab.execute.slots import Slots, cores, machine_mb

__all__ = ["Job", "Local", "Result", "Slots", "cores", "machine_mb", "run"]

TRIES = 3
NOT_STARTED = 127  # exit code of a program that is not there, as shells give it
POLL_S = 0.02
BEAT_S = 10.0
LOOK_S = 15.0
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


# ---- The executor of this machine


@dataclass
class Started:
    """A process of ours."""

    work: Work
    process: subprocess.Popen[bytes]
    since: float
    beat: float  # when its heart beat last
    loads: list[float]
    cancelled_at: float | None = None  # when it was told to end


class Local:
    """Processes of this machine, in slots by core and memory, each in a session of its own."""

    def __init__(self, slots: Slots, patience_s: float = processes.PATIENCE_S) -> None:
        self.slots, self.patience_s, self.me = slots, patience_s, processes.myself()
        self.waiting: dict[str, Work] = {}
        self.running: dict[str, Started] = {}
        self.ended: list[Ended] = []

    def submit(self, work: Work) -> None:
        self.slots.check(work.needs, work.id)
        self.waiting[work.id] = work
        self._fill()

    def watch(self) -> list[Standing]:
        now = time.monotonic()
        for each in list(self.running.values()):
            self._see(each, now)
        self._fill()
        standings = [Standing(id_, "waiting") for id_ in self.waiting]
        standings += [Standing(id_, "running", x.process.pid, now - x.since) for id_, x in self.running.items()]
        return standings + [Standing(x.id, "ended", None, x.seconds) for x in self.ended]

    def cancel(self, id: str) -> None:
        if id in self.waiting:
            del self.waiting[id]
            self.ended.append(Ended(id, -signal.SIGTERM, 0.0, cancelled=True))
            return
        each = self.running.get(id)
        if each is None or each.cancelled_at is not None:
            return
        self._see(each, time.monotonic())  # one that has ended already was not ended by us
        if id in self.running:
            each.cancelled_at = time.monotonic()
            processes.tell(each.process.pid, signal.SIGTERM)

    def collect(self) -> list[Ended]:
        ended, self.ended = self.ended, []
        return ended

    def fits(self, needs: Needs, others: Collection[Needs] = ()) -> bool:
        return not self.waiting and self.slots.fits(needs, others)

    def going(self) -> list[str]:
        return [name for name, each in self.running.items() if each.cancelled_at is None]

    def busy(self) -> bool:
        return bool(self.waiting or self.running)

    def adopt(self, names: Collection[str]) -> list[str]:
        return []  # whoever started them is gone, and so is their line; their records tell how far they came

    def close(self) -> None:
        """Ask all to end and wait for it; what does not listen is killed. The rest is for collect."""
        for id_ in [*self.waiting, *self.running]:
            self.cancel(id_)
        while self.running:
            self.watch()
            time.sleep(POLL_S)

    def _fill(self) -> None:
        for work in list(self.waiting.values()):
            if not self.slots.fits(work.needs):
                return  # in order: a large one is not passed by small ones for ever
            del self.waiting[work.id]
            self._start(work)

    def _start(self, work: Work) -> None:
        now = time.monotonic()
        try:
            process = start(work, self.me)
        except OSError as error:
            with open(work.log, "a", encoding="utf-8") as log:
                log.write(f"{work.words[0]} could not be started: {error.strerror}\n")
            self.ended.append(Ended(work.id, NOT_STARTED, 0.0))
            return
        self.slots.take(work.id, work.needs)
        self.running[work.id] = Started(work, process, now, now, [load()])

    def _see(self, each: Started, now: float) -> None:
        """Has it ended, does its heart beat, does it listen?"""
        pid, status, usage = os.wait4(each.process.pid, os.WNOHANG)
        if pid:
            self._close(each, os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024, now)
            return
        if now - each.beat >= BEAT_S:
            each.beat = now
            each.loads.append(load())
            if each.work.beat is not None and not touch(each.work.beat):
                self.cancel(each.work.id)  # somebody has taken it away
                return
        if each.cancelled_at is not None and now - each.cancelled_at > self.patience_s:
            processes.tell(each.process.pid, signal.SIGKILL)

    def _close(self, each: Started, code: int, rss_mb: float, now: float) -> None:
        each.process.returncode = code  # Popen was not asked, and would wait for a process that is gone
        code = code if each.work.code is None else keeper.signed(code)
        del self.running[each.work.id]
        self.slots.free(each.work.id)
        mean = sum(each.loads) / len(each.loads)
        self.ended.append(Ended(each.work.id, code, now - each.since, rss_mb, mean, each.cancelled_at is not None))


def start(work: Work, owner: str) -> subprocess.Popen[bytes]:
    subfolder(work.log.parent.parent, work.log.parent.name)
    marks = {processes.JOB: work.id, processes.OWNER: owner}
    words, tie = work.words, leash.tie(signal.SIGTERM)
    if work.code is not None:  # a shell stands between: it hears nothing, and what ends it ends the program below
        tie = leash.tie(signal.SIGKILL)
        keeper.check_program(words[0], work.cwd)
        words = keeper.around(work.code, words, tied=tie is not None)
    with open_plain(work.log, "ab") as log:
        # a session of its own: Ctrl-C in the terminal reaches us alone, and we pass it on in order
        return subprocess.Popen(
            words, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            cwd=work.cwd, env={**os.environ, **ONE_THREAD, **work.env, **marks}, preexec_fn=tie,
        )  # fmt: skip


def touch(path: Path) -> bool:
    """Whether it is there; its time is now. A file system that does not answer is no reason to end anything."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:
        pass
    return True


def load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


# ---- Jobs that know whether they are done


@dataclass
class Job:
    """One run to be done: `command()` is asked anew for each try, because a second try resumes. No words: it is done,
    by a process that outlived an earlier call."""

    name: str
    command: Callable[[], list[str]]
    done: Callable[[], bool]  # asked of the record, not of the exit code
    log: Path  # what the process prints
    started: Callable[[subprocess.Popen[bytes]], None] | None = None
    ended: Callable[[int, float, bool], None] | None = None  # exit code, seconds, whether it was asked to stop
    tries: int = 0
    exit_codes: list[int] = field(default_factory=list)
    needs: Needs = field(default_factory=Needs)
    code: Path | None = None  # where its exit code is kept, if `done` has to know it
    elsewhere: list[str] = field(default_factory=list)  # words that do it on any machine, from its folder alone
    relab: bool = True  # these are for relab, whichever one that machine has

    def end(self, ended: Ended) -> None:
        self.exit_codes.append(ended.code)
        if self.ended is not None:
            self.ended(ended.code, ended.seconds, ended.cancelled)


@dataclass(frozen=True)
class Result:
    """What became of the jobs."""

    finished: list[str]
    failed: list[str]
    interrupted: bool
    stopped: list[str] = field(default_factory=list)  # because `look` said so


Look = Callable[[Collection[str]], Collection[str]]


def run(
    jobs: Sequence[Job],
    workers: int,
    watch: Callable[[int, int], None] | None = None,
    look: Look | None = None,
    every_s: float = LOOK_S,
    at: Executor | None = None,
    env: Mapping[str, str] | None = None,
) -> Result:
    """Run all jobs that are not done yet; `watch(done, all)` is called when one ends.

    `look(names)` is asked about the running ones every few seconds, and answers with those that are to be stopped.
    `at`: where; by default processes of this machine. `env`: variables that are set for these.
    """
    names = [job.name for job in jobs]
    require(workers >= 1, f"`workers` must be at least 1, but is {workers}")
    require(len(set(names)) == len(names), f"jobs need different names, but got {', '.join(sorted(names))}")
    going = _Going({job.name: job for job in jobs}, [job for job in jobs if not job.done()], env or {})
    known = any(job.needs.memory_mb is not None for job in jobs)  # else the number of workers is all there is to go by
    at, looked = at or Local(Slots(workers, machine_mb() if known else None)), Pace(every_s)
    going.leave(at.adopt([job.name for job in going.waiting]))
    with Interrupts() as stop:
        try:
            while (going.waiting or at.busy()) and not stop.caught:
                going.begin(at)
                at.watch()
                if look is not None and at.busy() and looked.due():
                    with looked:
                        going.stop(at, look(at.going()))
                if going.settle(at) and watch is not None:
                    watch(sum(job.done() for job in jobs), len(jobs))
                time.sleep(POLL_S)
        finally:  # also when a job cannot be started at all: no process is left behind
            at.close()
            for ended in at.collect():
                if isinstance(at, Local):
                    going.jobs[ended.id].end(ended)
    failed = [name for name in names if name in going.failed]  # in the order of the jobs, not of their ends
    return Result([job.name for job in jobs if job.done()], failed, bool(stop.caught), going.stopped)


@dataclass
class _Going:
    """The jobs of one call of `run`."""

    jobs: dict[str, Job]
    waiting: list[Job]
    env: Mapping[str, str]
    failed: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def leave(self, names: Collection[str]) -> None:
        """Somebody does these already."""
        self.waiting = [job for job in self.waiting if job.name not in names]

    def begin(self, at: Executor) -> None:
        """Start what there is room for; a job's command is made when it starts, because that may prepare its folder."""
        while self.waiting and at.fits(self.waiting[0].needs):
            job = self.waiting.pop(0)
            if job.done():  # by a process that outlived an earlier call, and ended meanwhile
                continue
            if not isinstance(at, Local):
                job.tries += 1
                at.submit(Work(job.name, tuple(job.elsewhere), job.log, needs=job.needs, relab=job.relab))
                continue
            words = tuple(job.command())
            if not words:  # it ended since `done` was asked
                continue
            job.tries += 1
            at.submit(Work(job.name, words, job.log, env=dict(self.env), needs=job.needs, code=job.code))
            if job.started is not None and job.name in at.running:
                job.started(at.running[job.name].process)

    def stop(self, at: Executor, names: Collection[str]) -> None:
        for name in names:
            at.cancel(name)

    def settle(self, at: Executor) -> bool:
        """Ended: done, stopped as asked, worth another try (it was killed), or failed (it would fail again)."""
        ended = at.collect()
        for each in ended:
            job = self.jobs[each.id]
            if isinstance(at, Local):  # elsewhere, whoever did it has written down how it ended
                job.end(each)
            if each.cancelled:
                self.stopped.append(each.id)
            elif job.done():
                continue
            elif each.again or (each.code < 0 and job.tries < TRIES):
                job.tries -= each.again
                self.waiting.append(job)
            else:
                self.failed.append(each.id)
        return bool(ended)


class Pace:
    """When to look again: every few seconds, and never for more than a twentieth of the time."""

    def __init__(self, every_s: float) -> None:
        self.every_s, self.next = every_s, time.monotonic() + every_s

    def due(self) -> bool:
        return time.monotonic() >= self.next

    def __enter__(self) -> None:
        self.since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        now = time.monotonic()
        self.next = now + max(self.every_s, 20 * (now - self.since))
