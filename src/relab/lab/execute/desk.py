"""What do a submitter and the machines that work for it have in common? A folder of files on a file system they share.

FOLDER/engine/work/ID.json    what is to be run             FOLDER/engine/asks/ID    it is to end (or never to begin)
FOLDER/engine/alive/ID        touched while it runs         FOLDER/engine/ends/ID.json    how it ended
FOLDER/engine/sent/JOB.json    which orders a job of the engine has

ID is a run's name and the number of its try. Nothing here is needed to go on: where a run stands is read from its own
folder. Deleting `engine` while nothing runs loses nothing.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from relab.base import processes
from relab.base.documents import Document
from relab.base.enclosed import subfolder
from relab.base.jsonl import SECRET, RecordError, encode, read_json, write_atomic

PARTS = ("work", "asks", "alive", "ends", "sent")
SILENT_S = 20.0  # after so long without a sign a try is dead: it gives one every second
NAME = re.compile(r"(.+)\.(\d+)")


@dataclass(frozen=True)
class Order:
    """One command, as the machine that runs it reads it."""

    id: str
    words: list[str]
    relab: bool  # the words are for relab, whichever one that machine has
    log: str
    cwd: str
    env: dict[str, str] = field(default_factory=dict)
    minutes: float | None = None
    silent_s: float = SILENT_S  # after so long without a sign an earlier try is dead
    source: str = ""  # relab's version and code at home (release.py): another one refuses
    vain: int = 0  # time limits in a row, before this try, that were over before the run had come any further

    @property
    def name(self) -> str:
        return name_of(self.id)


@dataclass(frozen=True)
class End:
    """How a try ended."""

    code: int
    seconds: float
    host: str = ""
    rss_mb: float | None = None
    cancelled: bool = False
    again: bool = False  # its time was up, or it was preempted: another try that counts for nothing
    problem: str = ""  # why it could not be begun at all; that holds for all others as well
    place: str = ""  # what the engine calls the machine
    vain: int = 0  # time limits in a row that were over before the run had come any further


@dataclass(frozen=True)
class Sign:
    """Who works on a try."""

    host: str
    pid: int
    job: str  # of the engine
    since: float
    silent_s: float = 0.0  # how long ago it was last heard of


@dataclass(frozen=True)
class Dispatch:
    """To whom a try was given."""

    job: str  # of the engine
    since: float
    by: str = ""  # the submitter


class Desk:
    """The folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder)) / "engine"
        self.tries: dict[str, int] | None = None  # of each name, once somebody has counted

    def make(self) -> Desk:
        for part in PARTS:
            (self.folder / part).parent.mkdir(parents=True, exist_ok=True)
            subfolder(self.folder, part)
        return self

    def new_id(self, name: str) -> str:
        """The next try of a name: files of earlier ones stay what they are."""
        if self.tries is None:
            self.tries = {}
            for file in self._files("work"):
                if match := NAME.fullmatch(Path(file).stem):
                    self.tries[match[1]] = max(int(match[2]), self.tries.get(match[1], 0))
        self.tries[name] = self.tries.get(name, 0) + 1
        return f"{name}.{self.tries[name]}"

    def put(self, order: Order) -> None:
        file = self.folder / "work" / f"{order.id}.json"
        write_atomic(file, encode(asdict(order)), several=True, sync=False, mode=SECRET)  # `env` may hold a token

    def order(self, id_: str) -> Order:
        return Order(**read_json(self.folder / "work", f"{id_}.json"))

    # ---- Asking a try to end

    def ask(self, id_: str) -> None:
        (self.folder / "asks" / id_).touch()

    def is_to_end(self, id_: str) -> bool:
        return (self.folder / "asks" / id_).exists()

    # ---- Signs of life

    def live(self, id_: str, job: str, host: str) -> None:
        row = {"host": host, "pid": os.getpid(), "job": job, "since": time.time()}
        write_atomic(self.folder / "alive" / id_, encode(row), several=True, sync=False)

    def beat(self, id_: str) -> bool:
        """False once somebody has taken the sign away."""
        try:
            os.utime(self.folder / "alive" / id_)
        except FileNotFoundError:
            return False
        except OSError:  # a file system that does not answer is no reason to end anything
            pass
        return True

    def sign(self, id_: str) -> Sign | None:
        path = self.folder / "alive" / id_
        try:
            row, seen = read_json(path.parent, id_), path.stat().st_mtime
        except (RecordError, OSError):
            return None
        known = {key: row.get(key) for key in ("host", "pid", "job", "since")}
        return Sign(**known, silent_s=max(0.0, self.clock() - seen))  # type: ignore[arg-type]

    def alive(self, id_: str, silent_s: float = SILENT_S) -> list[str]:
        """Tries of the same run that gave a sign of life a moment ago and have not ended; this one too, where an engine
        has started its job a second time."""
        tries = [other for other in self._files("alive") if name_of(other) == name_of(id_)]
        return [other for other in tries if self.end(other) is None and self._is_fresh(other, silent_s)]

    def _is_fresh(self, id_: str, silent_s: float) -> bool:
        sign = self.sign(id_)
        return sign is not None and sign.silent_s <= silent_s

    def clock(self) -> float:
        """The time as the file system has it: machines may not agree about it."""
        path = self.folder / f".clock-{os.getpid()}"
        path.touch()
        try:
            return path.stat().st_mtime
        finally:
            path.unlink(missing_ok=True)

    # ---- How it ended

    def write_end(self, id_: str, end: End) -> None:
        write_atomic(self.folder / "ends" / f"{id_}.json", encode(asdict(end)), several=True, sync=False)

    def end(self, id_: str) -> End | None:
        try:
            return End(**read_json(self.folder / "ends", f"{id_}.json"))
        except (RecordError, OSError, TypeError):
            return None

    # ---- Which job of the engine has it

    def sent(self) -> dict[str, str]:
        """Id -> job, of an earlier submitter too."""
        return {id_: dispatch.job for id_, dispatch in self.dispatches().items()}

    def dispatches(self) -> dict[str, Dispatch]:
        """Id -> to whom it was given, and when."""
        jobs: dict[str, Dispatch] = {}
        for file in self._files("sent"):
            try:
                row: Document = read_json(self.folder / "sent", file)
                since = (self.folder / "sent" / file).stat().st_mtime
            except (RecordError, OSError):
                continue
            dispatch = Dispatch(str(row.get("job")), since, str(row.get("by") or ""))
            jobs |= dict.fromkeys(map(str, row.get("ids", ())), dispatch)
        return jobs

    def keep_sent(self, job: str, ids: Sequence[str]) -> None:
        """A file for each job: with a hundred thousand of them, one for all would be written again and again."""
        row = {"job": job, "ids": list(ids), "by": processes.myself()}
        write_atomic(self.folder / "sent" / f"{ids[0]}.json", encode(row), several=True, sync=False)

    def _files(self, part: str) -> Iterable[str]:
        try:
            return sorted(file for file in os.listdir(self.folder / part) if not file.startswith("."))
        except FileNotFoundError:
            return []


def name_of(id_: str) -> str:
    """The run that a try is of.

    >>> name_of("lr=0.1-s3.2")
    'lr=0.1-s3'
    """
    match = NAME.fullmatch(id_)
    return match[1] if match else id_
