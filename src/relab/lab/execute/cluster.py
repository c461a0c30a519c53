"""How do commands run on other machines? Put on the desk, given to an engine in packs, and read back from the desk.

What is particular to an engine is its border: send a pack, say which of its jobs are still there, drop one. Everything
else is the same for all of them: one end a try, the same words to stop it, and a job that is gone without an end was
lost with its machine.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from relab.base.enclosed import open_plain
from relab.config.base import ConfigError
from relab.lab.execute.desk import SILENT_S, Desk, End, Order, name_of
from relab.lab.execute.engine_error import EngineError
from relab.lab.execute.executor import Ended, Needs, Standing, Work
from relab.lab.execute.release import release
from relab.lab.execute.where import Where

PATIENCE_S = 600.0  # with an engine that does not answer any more
SETTLE_S = 3.0  # after a job is gone its last words may still be on their way through the file system


@dataclass(frozen=True)
class JobState:
    """How a job of an engine stands."""

    state: str  # waiting | running
    why: str = ""  # it waits
    host: str = ""


class Border(Protocol):
    """What an engine must do; tests put another one here, and nothing else."""

    every_s: float  # how often it may be asked
    limits: bool  # it tells a job itself when its time is up

    def send(self, desk: Desk, ids: Sequence[str], avoid: Collection[str] = ()) -> str:
        """Have one job carry these orders out, on no machine that is to be avoided; its name."""

    def places(self) -> int:
        """How many machines there are to choose from."""

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        """Those of the jobs that wait or run; who is missing has ended or was lost."""

    def drop(self, job: str) -> None:
        """End a job that has not begun; of one that runs nothing is left behind."""

    def room(self) -> int:
        """Runs that it could work on at the same time."""

    def close(self) -> None: ...


@dataclass
class Sent:
    """A try that an engine has."""

    id: str
    name: str
    job: str
    since: float
    work: Work | None = None  # None: adopted from an earlier submitter
    cancelled: bool = False
    gone_since: float | None = None  # its job is not there any more


class Cluster:
    """An executor over a border."""

    def __init__(self, border: Border, folder: Path, where: Where, at_once: int | None = None) -> None:
        self.border, self.where, self.desk = border, where, Desk(folder).make()
        self.at_once = at_once or where.at_once or max(1, border.room()) * where.pack
        self.waiting: dict[str, Work] = {}
        self.sent: dict[str, Sent] = {}  # by name
        self.ended: list[Ended] = []
        self.jobs: dict[str, JobState] = {}
        self.avoid: dict[str, str] = {}  # name -> the machine on which it failed
        self.vain: dict[str, int] = {}  # name -> its time limits in a row that were over before it came any further
        self.next_look = 0.0
        self.silent_since: float | None = None  # the engine does not answer
        self.closing = False

    # ---- The four verbs, and what `run` needs besides

    def submit(self, work: Work) -> None:
        self.waiting[work.id] = work

    def watch(self) -> list[Standing]:
        self._send()
        self._look()
        for each in list(self.sent.values()):
            self._see(each)
        now = time.monotonic()
        standings = [Standing(name, "waiting") for name in self.waiting]
        standings += [Standing(x.name, self._state(x), None, now - x.since) for x in self.sent.values()]
        return standings + [Standing(x.id, "ended", None, x.seconds) for x in self.ended]

    def cancel(self, id: str) -> None:
        if self.waiting.pop(id, None) is not None:
            self.ended.append(Ended(id, -signal.SIGTERM, 0.0, cancelled=True))
            return
        each = self.sent.get(id)
        if each is not None and not each.cancelled:
            each.cancelled = True
            self.desk.ask(each.id)

    def collect(self) -> list[Ended]:
        ended, self.ended = self.ended, []
        return ended

    def fits(self, needs: Needs, others: Collection[Needs] = ()) -> bool:
        return len(self.waiting) + len(self.sent) < self.at_once

    def going(self) -> list[str]:
        """Runs that somebody works on and that were not asked to end."""
        return [x.name for x in self.sent.values() if not x.cancelled and self._state(x) == "running"]

    def busy(self) -> bool:
        return bool(self.waiting or self.sent)

    def close(self) -> None:
        """Ask all to end and wait for it; what waits in the engine's line is taken out of it."""
        self.closing = True
        for name in [*self.waiting, *self.sent]:
            self.cancel(name)
        begun = {x.job for x in self.sent.values() if self._state(x) != "waiting"}  # they end what they were asked to
        for job in {x.job for x in self.sent.values()} - begun:
            self.border.drop(job)
        while self.sent:
            self.watch()
            time.sleep(0.05)
        self.border.close()

    def adopt(self, names: Collection[str]) -> list[str]:
        """Runs that an engine still has from an earlier submitter: they are waited for, not sent again."""
        open_ = {id_: job for id_, job in self.desk.sent().items()
                 if name_of(id_) in names and ((end := self.desk.end(id_)) is None or end.again)}  # fmt: skip
        there = self.border.states(set(open_.values())) if open_ else {}
        now = time.monotonic()
        for id_, job in open_.items():
            if job in there:
                self.sent[name_of(id_)] = Sent(id_, name_of(id_), job, now)
        self.jobs = there
        return list(self.sent)

    # ---- Inside

    def _send(self) -> None:
        """What waits, in packs; the job of each is written down at once, for whoever comes after us."""
        works = [work for work in self.waiting.values() if work.id not in self.avoid]
        packs = [works[start : start + self.where.pack] for start in range(0, len(works), self.where.pack)]
        packs += [[work] for work in self.waiting.values() if work.id in self.avoid]
        for pack in packs:
            ids = [self._put(work) for work in pack]
            job = self.border.send(self.desk, ids, [self.avoid[work.id] for work in pack if work.id in self.avoid])
            for id_, work in zip(ids, pack):
                self.sent[work.id] = Sent(id_, work.id, job, time.monotonic(), work)
                del self.waiting[work.id]
            self.jobs[job] = JobState("waiting")
            self.desk.keep_sent(job, ids)

    def _put(self, work: Work) -> str:
        id_, cwd = self.desk.new_id(work.id), work.cwd or Path.cwd()
        self.desk.put(Order(id_, list(work.words), work.relab, str(work.log.absolute()), str(cwd.absolute()),
                            {**self.where.env, **work.env}, None if self.border.limits else self.where.minutes,
                            SILENT_S, release(), self.vain.get(work.id, 0)))  # fmt: skip
        return id_

    def _look(self) -> None:
        """Ask the engine, but not more often than it likes."""
        now = time.monotonic()
        if not self.sent or now < self.next_look:
            return
        try:
            self.jobs, self.silent_since = self.border.states({x.job for x in self.sent.values()}), None
        except EngineError:  # a controller that is being begun again: what runs goes on meanwhile
            self.silent_since = self.silent_since or now
            if now - self.silent_since > PATIENCE_S:
                raise
        self.next_look = time.monotonic() + self.border.every_s

    def _see(self, each: Sent) -> None:
        """Has it ended, or was it lost with its machine?"""
        end, there = self.desk.end(each.id), each.job in self.jobs
        if end is not None and not (end.again and there):  # an engine may put a job into its line again by itself
            self._close(each, end)
        elif there:
            each.gone_since = None
        else:
            each.gone_since = each.gone_since or time.monotonic()
            if time.monotonic() - each.gone_since > max(SETTLE_S, self.border.every_s):
                self._close(each, self.desk.end(each.id) or End(-signal.SIGKILL, time.monotonic() - each.since))

    def _close(self, each: Sent, end: End) -> None:
        del self.sent[each.name]
        self.vain[each.name] = end.vain
        if end.problem:
            self.ended.append(Ended(each.name, end.code, end.seconds))
            if not self.closing:  # once is enough: the others are still waited for
                raise ConfigError(end.problem)
            return
        if end.code > 0 and not each.cancelled and self._elsewhere(each, end):
            return
        cancelled = end.cancelled or (each.cancelled and end.code != 0)
        self.ended.append(Ended(each.name, end.code, end.seconds, end.rss_mb, None, cancelled, end.again))

    def _elsewhere(self, each: Sent, end: End) -> bool:
        """Whether one that failed gets one more try, on another machine: it may be the machine that is broken."""
        if each.work is None or not end.place or each.name in self.avoid or self.closing or self.border.places() < 2:
            return False
        self.avoid[each.name] = end.place
        self.waiting[each.name] = each.work
        with open_plain(each.work.log, "ab") as log:
            log.write(f"relab: it failed on {end.host} (exit code {end.code}); one more try, elsewhere\n".encode())
        return True

    def _state(self, each: Sent) -> str:
        """Running from its first sign of life on: a job of many has some that wait for their turn."""
        return "running" if self.desk.sign(each.id) is not None else "waiting"
