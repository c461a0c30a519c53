"""Where does a loop stand? One journal of events, a row each; all else follows from it and from the runs' folders.

A row is written once its event is complete, in one call, so that a kill leaves the rows before it. Whatever was not
written down yet is worked out again, from the same runs, to the same result.

    begin      the loop began: its mode, which evaluation decides, which sampler
    noise      the A/A set is complete: how much runs differ that are alike
    proposed   a change passed its checks
    refused    a change did not, and why; nothing ran
    first      its first seeds are there: go on, or not
    further    its fresh seeds cannot tell, and it is ahead: as many again are worth their time
    decided    its fresh seeds are there: keep it, or not
    stands     a kept change on yet other seeds: it stands, or is withdrawn
    scored     its prediction against what was measured
    void       a run that does not count, and why
    restored   a resumed run had lost its start and was stopped; the start is what it was
    ended      a call came to its end, and why; says nothing about the state
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.jsonl import encode, last_line, open_append, read_jsonl, write_row
from relab.config.base import ConfigError
from relab.lab.loop.plan import BASE
from relab.record.run_folder import now

FILE = "journal"  # JSON lines; no ending that would make it a log of runs
STRIDE = 1000  # seeds of a proposal: k * 1000 and on
OFFSETS = {"first": 0, "confirm": 100, "further": 200, "again": 300, "again_further": 400, "stands": 500}

Cell = tuple[str, int]  # config, seed


@dataclass
class Trial:
    """One proposal and what became of it."""

    k: int
    parent: str
    proposal: Document
    first: Document | None = None
    further: Document | None = None
    decided: Document | None = None
    stands: Document | None = None
    scored: Document | None = None

    @property
    def name(self) -> str:
        return f"p{self.k:03d}"

    @property
    def stage(self) -> str:
        """What is to be done next: first, confirm, further, stands, score, done."""
        if self.first is None:
            return "first"
        if self.first["go_on"] and self.decided is None:
            return "confirm" if self.further is None else "further"
        if self.decided is not None and self.decided["keep"] and self.stands is None:
            return "stands"
        return "score" if self.scored is None else "done"

    @property
    def kept(self) -> bool:
        return bool(self.stands and self.stands["stands"])

    @property
    def verdict(self) -> str:
        """In one word: running, dropped, not kept, withdrawn, kept."""
        if self.first is None or (self.first["go_on"] and self.decided is None):
            return "running"
        if not self.first["go_on"]:
            return "dropped"
        if self.decided is not None and not self.decided["keep"]:
            return "not kept"
        return "running" if self.stands is None else "kept" if self.kept else "withdrawn"

    def seeds(self, stage: str, n: int) -> list[int]:
        """The seeds of one of its stages: no two stages, and no two proposals, share one."""
        start = self.k * STRIDE + OFFSETS[stage]
        return list(range(start, start + n))


@dataclass
class State:
    """What the journal says."""

    begin: Document | None = None
    noise: Document | None = None
    trials: list[Trial] = field(default_factory=list)
    refused: list[Document] = field(default_factory=list)
    void: list[Document] = field(default_factory=list)
    restored: list[Document] = field(default_factory=list)

    @property
    def best(self) -> str:
        """The config that changes are made to: the last that was kept, else the base."""
        return next((trial.name for trial in reversed(self.trials) if trial.kept), BASE)

    @property
    def open(self) -> Trial | None:
        return next((trial for trial in self.trials if trial.stage != "done"), None)

    def tests(self) -> list[int]:
        """The proposals that came to a decision: only these could have been kept."""
        return [trial.k for trial in self.trials if trial.decided is not None]

    def measured(self, config: str) -> list[int]:
        """Seeds of a config that had no part in choosing it: the A/A set, or what it was measured on once kept; and
        those beside every confirmation since."""
        trial = next((each for each in self.trials if each.name == config), None)
        first = (self.noise or {}).get("seeds", []) if trial is None else (trial.stands or {}).get("seeds", [])
        again = [seed for each in self.trials if each.parent == config and each.decided
                 for seed in each.decided["again"]]  # fmt: skip
        return [*first, *again]

    def cells(self) -> dict[str, list[Cell]]:
        """All runs that are complete, in groups of one config: kept, dropped and repeated ones alike."""
        groups: dict[str, list[Cell]] = {BASE: [(BASE, seed) for seed in self.measured(BASE)]}
        for each in self.trials:
            stages = [each.first, each.decided, each.stands]
            seeds = [seed for row in stages if row for seed in row["seeds"]]
            again = [seed for seed in self.measured(each.name) if seed not in seeds] if each.kept else []
            groups[each.name] = [(each.name, seed) for seed in (*seeds, *again)]
        return groups


Fold = Callable[[State, Document], None]


def _trial(state: State, row: Document) -> Trial:
    return next(each for each in state.trials if each.k == row["k"])


def _known(state: State, row: Document) -> bool:
    """A proposal that stands there twice counts once."""
    return any(each.k == row["k"] for each in state.trials)


def _new(row: Document) -> Trial:
    return Trial(row["k"], row["proposal"]["parent_config"], row["proposal"])


def _set(key: str) -> Fold:
    return lambda state, row: setattr(_trial(state, row), key, row)


FOLDS: dict[str, Fold] = {
    "begin": lambda state, row: setattr(state, "begin", state.begin or row),
    "noise": lambda state, row: setattr(state, "noise", row),
    "proposed": lambda state, row: None if _known(state, row) else state.trials.append(_new(row)),
    "refused": lambda state, row: state.refused.append(row),
    "void": lambda state, row: state.void.append(row),
    "restored": lambda state, row: state.restored.append(row),
    **{event: _set(event) for event in ("first", "further", "decided", "stands", "scored")},
    "ended": lambda state, row: None,
}  # fmt: skip


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Inside of it this process alone goes on with the loop; where another one does, an error."""
    folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY)
    try:
        try:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"another process goes on with the loop in {folder}: wait for its end, or choose another"
                              " --name or --root") from None  # fmt: skip
        except (ImportError, OSError):  # no locks here (some network mounts)
            pass
        yield
    finally:
        os.close(fd)


def running(folder: Path) -> bool:
    """Whether a process goes on with the loop; False where there are no locks to tell by."""
    try:
        with claimed(folder):
            return False
    except ConfigError:
        return True


class Journal:
    """The journal of one loop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = State()
        self.rows: list[Document] = []
        if (folder / FILE).is_file():
            for row in read_jsonl(folder / FILE)[0]:
                self._take(row)

    def add(self, event: str, **facts: Any) -> Document:
        """Write an event down, then count it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        row = {"event": event, "time": now(), **facts}
        self._mend()
        fd = open_append(self.folder, FILE)
        try:
            write_row(fd, encode(row), self.folder / FILE)
        finally:
            os.fsync(fd)
            os.close(fd)
        return self._take(row)

    def _mend(self) -> None:
        """Half a row, of a call that was killed while it wrote, is cut off."""
        path = self.folder / FILE
        if path.is_file():
            start, rest = last_line(path)
            if rest:
                with open(path, "r+b") as file:
                    file.truncate(start)

    def _take(self, row: Document) -> Document:
        fold = FOLDS.get(str(row.get("event")))
        if fold is not None:  # one of a newer relab is passed over
            fold(self.state, row)
            self.rows.append(row)
        return row
