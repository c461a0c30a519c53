"""Who does what waits in a queue? A worker: claims entries one by one, runs them, and writes down how they ended.

Nothing is lost and nothing is run twice: an entry is claimed by one rename, its result is written before it is moved
on, and its exit code is written by a process of its own, so that it is known even if the worker is killed meanwhile.
A worker's entries are taken over once it is dead (the kernel says so, or its heart has stopped on another machine) and
their process is gone: by their exit code where there is one, else by another try. relab's own runs then resume.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from dataclasses import replace as with_values
from pathlib import Path
from typing import Any

from relab.base import processes
from relab.base.interrupts import Interrupts
from relab.base.jsonl import RecordError
from relab.base.places import STALE_S
from relab.base.processes import RELAB
from relab.config.base import ConfigError
from relab.lab.execute import keeper
from relab.lab.execute.entry import Entry, Name
from relab.lab.execute.executor import Ended, Needs, Work
from relab.lab.execute.local import POLL_S, TRIES, Local
from relab.lab.execute.queue import ASKS, Item, Queue
from relab.lab.execute.slots import Slots, cores, machine_mb
from relab.record.run_folder import clear_begun, read_meta
from relab.runs import glance

REFRESH_S, RECOVER_S = 1.0, 2.0  # how old the lists of waiting entries and of the others, and that of the dead, may be
GRACE_S = 1.0  # a process that was being started when its worker was killed shows whose it is a moment later
CALM_S, CALM_POLL_S = 1.0, 0.1  # when nothing begins or ends for a while, it is enough to look now and then
Tell = Callable[[str, Item, str], None]  # what happened (started, done, ...), the entry, more


@dataclass
class Summary:
    """What a worker did."""

    done: int = 0
    failed: int = 0
    left: dict[str, str] = field(default_factory=dict)  # id -> why it was not started here
    interrupted: bool = False
    paused: bool = False


class Worker:
    """One worker of one queue, in this process."""

    def __init__(self, queue: Queue, workers: int | None = None, tell: Tell | None = None) -> None:
        self.queue, self.me = queue.make(), processes.myself()
        self.shares = workers is None  # with the other workers on this machine
        self.local = Local(Slots(workers or cores(), machine_mb()))
        self.tell: Tell = tell or (lambda what, item, more: None)
        self.mine: dict[str, tuple[Item, Entry]] = {}  # by attempt
        self.requests: dict[str, str] = {}  # attempt -> cancel | pause | stop
        self.waiting: list[Name] = []
        self.last_look: dict[str, float] = {}  # when lists were last made
        self.crowd: list[Needs] = []  # what others on this machine have taken
        self.busy = 0.0  # when something last began or ended
        self.haunted = 0  # entries of dead workers whose processes live here, or may
        self.gone: dict[str, float] = {}  # attempt -> since when neither its worker nor its process was seen
        self.summary = Summary()

    def run(self, stay: bool = False) -> Summary:
        """Until nothing waits (or, if it is to stay, until it is told to end)."""
        with Interrupts() as stop:
            try:
                while not stop.caught and (self.step() or stay):
                    time.sleep(POLL_S if time.monotonic() - self.busy < CALM_S else CALM_POLL_S)
            finally:
                self.requests |= {attempt: "stop" for attempt in self.mine if attempt not in self.requests}
                self.local.close()
                self.settle()
        self.summary.interrupted = bool(stop.caught)
        self.summary.paused = self.queue.paused and bool(self.queue.names("waiting"))
        return self.summary

    def step(self) -> bool:
        """One look around; whether there is anything left to wait for."""
        self.local.watch()
        self.settle()
        self.obey()
        if self.due("recover", RECOVER_S):
            self.recover()
        if self.queue.paused:
            return bool(self.mine)
        self.fill()
        return bool(self.mine or self.haunted or self.waiting)

    def due(self, what: str, every_s: float) -> bool:
        now = time.monotonic()
        if now - self.last_look.get(what, -every_s) < every_s:
            return False
        self.last_look[what] = now
        return True

    # ---- Starting

    def fill(self) -> None:
        """Claim what there is room for, in order; what can never run here is left for a larger machine."""
        if self.due("waiting", REFRESH_S if self.waiting else CALM_POLL_S):
            self.waiting = [name for name in self.queue.names("waiting") if name.id not in self.summary.left]
        if self.shares and self.due("crowd", REFRESH_S):
            self.crowd = self.others()
        while self.waiting and self.local.fits(Needs(), self.crowd):
            entry = self.look(self.waiting[0])
            if entry is not None and not self.local.fits(entry.needs, self.crowd):
                return  # it is its turn, and it waits for room
            name = self.waiting.pop(0)
            if entry is not None and (item := self.queue.claim(name, self.me)) is not None:
                self.begin(item, entry)

    def look(self, name: Name) -> Entry | None:
        """What an entry asks for, with the memory that its kind has taken; None where it is gone, or not for us."""
        item = Item(name, "waiting", self.queue.path(name, "waiting"))
        try:
            entry = self.queue.read(item)
            if entry.memory_mb is None:
                entry = with_values(entry, memory_mb=self.queue.learned_mb(entry.kind))
            self.local.slots.check(entry.needs, name.id[:8])
        except (RecordError, ConfigError) as error:
            if item.path.exists():
                self.summary.left[name.id] = str(error)
                self.tell("left", item, str(error))
            return None
        except OSError:  # claimed by somebody else
            return None
        return entry

    def others(self) -> list[Needs]:
        """What other workers' entries take on this machine, those of dead workers included."""
        taken = [Needs()] * self.haunted
        for item in self.queue.items(("running",)):
            if item.name.worker != self.me and processes.is_alive(item.name.worker):
                try:
                    taken.append(self.queue.read(item).needs)
                except (RecordError, OSError):  # it has moved on
                    continue
        return taken

    def begin(self, item: Item, entry: Entry) -> None:
        attempt = item.name.attempt
        self.busy = time.monotonic()
        self.mine[attempt] = (item, entry)
        code = self.queue.folder.resolve() / "codes" / attempt
        cwd = Path(entry.cwd)
        if not cwd.is_dir():
            self.close(item, entry, "failed", code=None, problem=f"its folder {cwd} is not there")
            return
        words = keeper.around(code, command(entry))
        log = self.queue.log(item.id)
        self.local.submit(Work(attempt, words, log, cwd, entry.env, entry.needs, beat=item.path))
        self.tell("started", item, entry.shown)

    # ---- Ending

    def settle(self) -> None:
        for ended in self.local.collect():
            item, entry = self.mine[ended.id]
            self.close(item, entry, self.how(ended), code=ended.code, seconds=ended.seconds, rss_mb=ended.rss_mb,
                       load=ended.load)  # fmt: skip

    def how(self, ended: Ended) -> str:
        """done, failed or killed; or what was asked of it, unless it had ended before that."""
        if not ended.cancelled:
            return how_by_code(ended.code)
        return {**ASKS, "stop": "stopped"}[self.requests.get(ended.id, "stop")]

    def close(self, item: Item, entry: Entry, how: str, **facts: Any) -> None:
        """The result first, then the move: whoever comes in between finds what is needed."""
        if how in ("stopped", "paused", "cancelled") and record_status(entry) == "finished":
            how = "done"
        attempt = item.name.attempt
        self.queue.write_result(item.name, how, **facts)
        moved = after(self.queue, item, how)
        self.mine.pop(attempt, None)
        self.requests.pop(attempt, None)
        self.busy = time.monotonic()
        if moved is None:  # taken away while our heart seemed to stand still
            return
        self.last_look.pop("waiting", None)  # it may stand there again
        if moved.state != "waiting":  # one that is asked of an entry which goes on stays
            self.queue.answered(item.id)
        if how == "done" and facts.get("rss_mb"):
            self.queue.learn(entry.kind, float(facts["rss_mb"]))
        self.summary.done += moved.state == "done"
        self.summary.failed += moved.state == "failed"
        self.tell(how, moved, "" if moved.state in (how, "cancelled") else f"now {moved.state}")

    def obey(self) -> None:
        """Cancel or pause what somebody asked for."""
        if not self.mine or not self.due("asks", 0.2):
            return
        requests = self.queue.requests()
        for attempt, (item, _) in list(self.mine.items()):
            if item.id in requests and attempt not in self.requests:
                self.requests[attempt] = requests[item.id]
                self.local.cancel(attempt)

    # ---- After the dead

    def recover(self, grace_s: float = GRACE_S) -> None:
        """Take over the entries of workers that are gone, once their processes are."""
        alone = {item.name.attempt: item for item in self.queue.items(("running",)) if self.ownerless(item)}
        living = {each.job for each in processes.ours()} if alone else set()
        now = time.monotonic()
        self.gone = {attempt: self.gone.get(attempt, now) for attempt in alone if attempt not in living}
        buried = [attempt for attempt, since in self.gone.items() if now - since >= grace_s]
        self.haunted = len(alone) - len(buried)
        for attempt in buried:
            self.bury(alone[attempt])

    def ownerless(self, item: Item) -> bool:
        """Its worker is dead: the kernel says so, or nothing was heard of it, or of its run, for long."""
        worker = item.name.worker
        alive = processes.is_alive(worker)
        if worker == self.me or alive:
            return False
        return alive is False or (self.queue.silent_s(item) > STALE_S and not self.run_lives(item))

    def run_lives(self, item: Item) -> bool:
        """A run on another machine may outlive its worker: then its own heart still beats."""
        try:
            entry = self.queue.read(item)
            meta = read_meta(entry.run) if entry.run else {}
        except (RecordError, OSError):
            return False
        return meta.get("status") == "running" and time.time() - glance.utc(meta.get("heartbeat")) <= STALE_S

    def bury(self, item: Item) -> None:
        """How did it end, as far as can be told?"""
        code = self.queue.code(item.name)
        known = self.queue.result(item.name).get("how")  # its worker was killed between writing and moving
        request = self.queue.requests().get(item.id)
        how = known or (how_by_code(code) if code is not None else "lost")
        how = ASKS[request] if request and how != "done" else how
        if not known:
            self.queue.write_result(item.name, how, code=code, buried_by=self.me)
        moved = after(self.queue, item, how)
        if moved is None:
            return
        self.last_look.pop("waiting", None)
        if moved.state != "waiting":
            self.queue.answered(item.id)
        self.summary.done += moved.state == "done"
        self.summary.failed += moved.state == "failed"
        self.tell(f"{how} (of a worker that is gone)", moved, f"now {moved.state}")


def after(queue: Queue, item: Item, how: str) -> Item | None:
    """Move a running entry to where it belongs by how its try ended."""
    if how in ("killed", "lost") and queue.deaths(item.name) >= TRIES:
        return queue.move(item, "failed")
    if how in ("killed", "lost", "stopped"):
        return queue.again(item)
    if how == "paused":
        return queue.again(item, "paused")
    return queue.move(item, how)


def how_by_code(code: int) -> str:
    """Exit codes above 128 are signals, as shells and relab (130) write them."""
    return "done" if code == 0 else "killed" if code < 0 or 128 < code < 193 else "failed"


# ---- relab's own runs


def command(entry: Entry) -> tuple[str, ...]:
    """The words to run: a training that left a record goes on with it."""
    if not entry.relab:
        return entry.words
    if entry.words[0] == "train" and entry.run is not None and os.path.isdir(entry.run):
        if record_status(entry) is not None:
            return (*RELAB, "resume", entry.run, "--quiet", "--trust")  # code that was named when this was added
        clear_begun(Path(entry.run))
    return (*RELAB, *entry.words)


def record_status(entry: Entry) -> str | None:
    """What the record of the run says; None where there is none."""
    try:
        return str(read_meta(entry.run).get("status")) if entry.run is not None else None
    except (RecordError, OSError):
        return None
