"""How does a machine of a cluster work through its orders? One command after the other, each in a session of its own.

python -m relab.lab.execute.node DESK JOB ID...     what a batch system calls; Ray calls carry_out in its own worker

A try waits until earlier tries of the same run are dead, gives a sign of life every second, ends its command when it is
asked to, when its time is up or when the batch system says so (SIGTERM, SIGUSR1), and writes down how it ended. The
command, and all that it starts, dies with this process (Linux): a machine that was cut off leaves nobody behind who
writes.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType

from relab.base import processes, writers
from relab.base.enclosed import open_plain
from relab.base.leash import TIED, die_with
from relab.base.processes import RELAB
from relab.lab.execute.desk import Desk, End, Order
from relab.lab.execute.engine_error import EngineError
from relab.lab.execute.local import NOT_STARTED, ONE_THREAD
from relab.lab.execute.release import difference

POLL_S, BEAT_S = 0.02, 1.0
WAITS = 3  # times the silence after which it is dead: so long an earlier try may take to end
PATIENCE_S = 25.0  # from "please end" to "end": batch systems give half a minute
INTERRUPTED = 130  # exit code of a relab that somebody asked to stop
AGAIN = 75  # exit code of a job that is to be requeued
REFUSED = 78  # exit code: this machine cannot run it
VAIN = 3  # time limits in a row that may be over before a run has come any further
TOO_SHORT = 124  # exit code of a run that its limit always ends before that, as of timeout(1)
WRITTEN_ANEW = ("meta.json", "events.jsonl", "provenance.json")  # by every try, however far it comes
STOPS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


@dataclass
class Stop:
    """Whether the batch system wants its machine back."""

    caught: list[int] = field(default_factory=list)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.caught.append(number)


def carry_out(desk_folder: str, ids: Sequence[str], job: str = "", stop: Stop | None = None, place: str = "") -> None:
    """All orders that have not ended yet, in turn; how each ended is on the desk when this returns.

    `place`: what the engine calls this machine.
    """
    if not os.path.isdir(desk_folder):
        raise EngineError(f"{host()} does not see {Path(desk_folder).parent}: put it on a file system that all machines"
                          " share, or let runs travel (Ray, `execute: {shared: false}`)")  # fmt: skip
    desk, stop = Desk(Path(desk_folder).parent), stop or Stop()
    for id_ in ids:
        if stop.caught and not desk.is_to_end(id_):
            desk.write_end(id_, End(-signal.SIGTERM, 0.0, host(), again=True))
        elif desk.end(id_) is None or desk.end(id_).again:  # type: ignore[union-attr]
            with unwritable_is_an_error(desk):
                Try(desk, desk.order(id_), job, stop, place).run()


@contextlib.contextmanager
def unwritable_is_an_error(desk: Desk) -> Iterator[None]:
    """Inside, a desk that this machine cannot even write to, to say so, becomes an error that the engine passes on."""
    try:
        yield
    except OSError as error:
        raise EngineError(cannot_write(desk, error)) from error


def cannot_write(desk: Desk, error: OSError) -> str:
    return f"{host()} cannot write to {error.filename or desk.folder} ({error.strerror})"


@dataclass
class Try:
    """One order on this machine."""

    desk: Desk
    order: Order
    job: str
    stop: Stop
    place: str = ""
    host: str = field(default_factory=lambda: host())

    def run(self) -> None:
        began = time.monotonic()
        alone = self.alone()
        problem = self.cannot() if alone else ""
        if problem:
            end = End(REFUSED, 0.0, self.host, problem=problem)
        elif self.desk.is_to_end(self.order.id):
            end = End(-signal.SIGTERM, 0.0, self.host, cancelled=True)
        elif not alone:
            end = End(-signal.SIGKILL, time.monotonic() - began, self.host, again=True)
        else:
            end = self.work()
        self.desk.write_end(self.order.id, replace(end, place=self.place))

    def cannot(self) -> str:
        """Why nothing of this experiment can run here; empty where it can."""
        if wrong := difference(self.order.source, self.host):
            return wrong
        try:
            self.desk.live(self.order.id, self.job, self.host)
            Path(self.order.log).parent.mkdir(parents=True, exist_ok=True)
            open_plain(self.order.log, "ab").close()
        except OSError as error:
            return cannot_write(self.desk, error)
        return "" if os.path.isdir(self.order.cwd) else f"{self.host} does not see the folder {self.order.cwd}"

    def alone(self) -> bool:
        """Wait until nobody else who works on the run gives signs of life, or writes its record; False if somebody goes
        on doing so."""
        silent_s, record = self.order.silent_s, self.desk.folder.parent / "runs" / self.order.name / "events.jsonl"
        until = time.monotonic() + WAITS * silent_s
        while self.desk.alive(self.order.id, silent_s) or writers.is_locked(record):
            if time.monotonic() > until or self.stop.caught:
                return False
            time.sleep(min(BEAT_S, silent_s / 4))
        return True

    def work(self) -> End:
        began, before = time.monotonic(), self.reached()
        try:
            process = start(self.order)
        except OSError as error:
            with open_plain(self.order.log, "ab") as log:
                log.write(f"{self.order.words[0]} could not be started: {error.strerror}\n".encode())
            return End(NOT_STARTED, 0.0, self.host)
        why, rss_mb = self.wait(process, began)
        code = -signal.SIGINT if process.returncode == INTERRUPTED else process.returncode
        again = code != 0 and why != "asked" and (why in ("time", "stop") or bool(self.stop.caught))
        end = End(code, time.monotonic() - began, self.host, rss_mb, why == "asked", again)
        return self.in_vain(end) if why == "time" and end.again and self.reached() == before else end

    def reached(self) -> dict[str, int]:
        """How far the run came: its files and their sizes. Of programs that are not relab's nothing is known."""
        folder = self.desk.folder.parent / "runs" / self.order.name
        paths = [path for path in folder.rglob("*") if path.name not in WRITTEN_ANEW] if self.order.relab else []
        return {str(path): path.stat().st_size for path in paths if path.is_file()}

    def in_vain(self, end: End) -> End:
        """Its time was up before it came any further: some times in a row, and it would go on like this for ever."""
        if not self.order.relab:
            return end
        last = self.desk.end(self.order.id)  # of the same job, which Slurm has put into its line again
        vain = 1 + max(self.order.vain, 0 if last is None else last.vain)
        if vain < VAIN:
            return replace(end, vain=vain)
        with open_plain(self.order.log, "ab") as log:
            log.write(f"relab: {vain} times in a row the time limit was over before the run had come any further;"
                      " give it more `minutes`\n".encode())  # fmt: skip
        return replace(end, code=TOO_SHORT, again=False, vain=vain)

    def wait(self, process: subprocess.Popen[bytes], began: float) -> tuple[str, float]:
        """why it was told to end (empty where it was not), and the most memory that one of its processes held."""
        why, beat, told_at = "", began, 0.0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return why, usage.ru_maxrss / 1024
            now = time.monotonic()
            if not why and (why := self.reason(now - began, due=now - beat >= BEAT_S)):
                told_at = now
                processes.tell(process.pid, signal.SIGTERM)
            if now - beat >= BEAT_S:
                beat = now
                self.desk.beat(self.order.id)
            if why and now - told_at > PATIENCE_S:
                processes.tell(process.pid, signal.SIGKILL)
            time.sleep(POLL_S)

    def reason(self, seconds: float, due: bool) -> str:
        if self.stop.caught and self.desk.is_to_end(self.order.id):
            return "asked"  # what was asked to end does not go on because the machine is wanted back as well
        if self.stop.caught:
            return "time" if signal.SIGUSR1 in self.stop.caught else "stop"  # a batch system says so before its limit
        if self.order.minutes is not None and seconds > 60 * self.order.minutes:
            return "time"
        return "asked" if due and self.desk.is_to_end(self.order.id) else ""


def host() -> str:
    """What people call this machine: Slurm may have a name of its own for it."""
    return os.environ.get("SLURMD_NODENAME") or platform.node()


def start(order: Order) -> subprocess.Popen[bytes]:
    words = [*RELAB, *order.words] if order.relab else order.words
    marks = {processes.JOB: order.id, processes.OWNER: processes.myself(), TIED: "1"}
    with open_plain(order.log, "ab") as log:
        return subprocess.Popen(
            words, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            cwd=order.cwd, env={**os.environ, **ONE_THREAD, **order.env, **marks},
            preexec_fn=partial(die_with, os.getpid(), signal.SIGTERM),
        )  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Exit code 0 where every order has ended, 75 where one is to go on: then the job is to be requeued."""
    desk_folder, job, *ids = words
    stop = Stop()
    for number in STOPS:
        signal.signal(number, stop)
    carry_out(desk_folder, ids, job, stop, os.environ.get("SLURMD_NODENAME", ""))
    desk = Desk(Path(desk_folder).parent)
    return AGAIN if any((end := desk.end(id_)) is None or end.again for id_ in ids) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
