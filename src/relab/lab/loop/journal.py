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
    accepted   somebody has taken the rows before this one as they stood (--accept)

Every row carries a seal (seal.py), so that a program which the loop runs cannot write decisions into it unnoticed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from relab.base import limits
from relab.base.documents import Document
from relab.base.enclosed import own
from relab.base.jsonl import (  # fmt: skip
    RecordError,
    check_regular,
    decode,
    encode,
    is_row,
    open_append,
    read_jsonl,
    write_atomic,
    write_row,
)
from relab.config.base import ConfigError
from relab.lab.loop import keys
from relab.lab.loop.keys import Key
from relab.lab.loop.plan import BASE
from relab.lab.loop.seal import KEY as SEAL
from relab.lab.loop.seal import ForgedError, checked, loop_of, sealed_row
from relab.record.run_folder import now

FILE = "journal"  # JSON lines; no ending that would make it a log of runs
ACCEPT = "Or look through it and call the loop with --accept, which takes all of its rows as they stand"
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
    accepted: list[Document] = field(default_factory=list)

    @property
    def lock(self) -> str:
        """The digest of the lock that was last taken; empty where an earlier relab began the loop."""
        return next((str(row["lock"]) for row in [*reversed(self.accepted), self.begin] if row and row.get("lock")), "")

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
    proposal = row["proposal"]
    if not (isinstance(row["k"], int) and all(isinstance(proposal[key], str) for key in ("source", "parent_config"))
            and isinstance(proposal["diff"], Mapping)):  # fmt: skip
        raise TypeError("it must have k, source, parent_config and diff")
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
    "accepted": lambda state, row: state.accepted.append(row),
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
    """The journal of one loop. Without a key it can be read but not written to, and nobody vouches for what it says."""

    def __init__(self, folder: Path, key: Key | None = None) -> None:
        self.folder = folder
        self.key = key
        self.state = State()
        self.rows: list[Document] = []
        lines, self.half = lines_of(folder)
        self.size, self.last = sum(map(len, lines)), ""  # bytes, and the seal of the last row
        if key is not None:
            self.last = vouched(folder, lines, key)
            key.rows = len(lines)
        for line in lines:
            self._take(without_seal(decode(line) if is_row(line) else {}))

    def add(self, event: str, **facts: Any) -> Document:
        """Write an event down, then count it."""
        assert self.key is not None
        row = {"event": event, "time": now(), **facts}
        line, self.last = sealed_row(encode(row), self.key, self.last)
        self._mend()
        fd = open_append(self.folder, FILE)
        try:
            write_row(fd, line, self.folder / FILE)
        finally:
            os.fsync(fd)
            os.close(fd)
        self.size += len(line)
        self.key.rows += 1
        self.key.write()  # after the row: a journal may have one more than the key says, and never one less
        return self._take(row)

    def _mend(self) -> None:
        """Half a row, of a call that was killed while it wrote, is cut off; anything else is not the loop's."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = own(self.folder, FILE)
        size = path.stat().st_size if path.exists() else 0
        forged(size == self.size + self.half, f"{path} must have {self.size + self.half:,} bytes, as this loop left it,"
               f" but has {size:,}: another program wrote to it meanwhile; call the loop again, which says which rows"
               " are not its own")  # fmt: skip
        if self.half:
            os.truncate(path, self.size)
            self.half = 0

    def _take(self, row: Document) -> Document:
        fold = FOLDS.get(str(row.get("event")))
        if fold is not None:  # one of a newer relab is passed over
            try:
                fold(self.state, row)
            except (LookupError, TypeError, StopIteration) as error:
                raise RecordError(
                    f"the {row['event']} in {self.folder / FILE} cannot follow what stands before it ({error!r:.80}):"
                    " take it out, or begin another loop with --name"
                ) from None
            self.rows.append(row)
        return row


# ---- Whose rows they are


def lines_of(folder: Path) -> tuple[list[bytes], int]:
    """The rows of a journal as they stand there, and how many bytes follow the last one: half a row, of a kill."""
    path = own(folder, FILE)
    check_regular(path)
    *lines, half = (limits.read_bytes(path, limits.KEPT) if path.exists() else b"").split(b"\n")
    return [line + b"\n" for line in lines], len(half)


def opened(folder: Path, tell: Callable[[str], None] = lambda line: None) -> Journal:
    """The journal of the loop in a folder, every row of it vouched for; a new loop gets its key."""
    lines, _ = lines_of(folder)
    if not lines:
        return Journal(folder, _first_key(folder))
    key = key_of(folder, lines)
    journal = Journal(folder, key)  # every row is vouched for before the key says where the loop lies
    if key.folder != str(folder.resolve()):
        tell(f"the loop was moved here from {key.folder}; it goes on")
        journal.key = keys.moved(key, folder)
    return journal


def looked_at(folder: Path) -> Journal:
    """The same for a look: nothing is written, and a loop that has not begun has no key."""
    lines, _ = lines_of(folder)
    return Journal(folder, key_of(folder, lines) if lines else None)  # the key first: meanwhile rows may be added


def key_of(folder: Path, lines: list[bytes]) -> Key:
    """The key that these rows were sealed with; ForgedError where this user has none, or the folder is a copy."""
    loop = loop_of(lines[0])
    forged(bool(loop), f"the rows of {folder / FILE} must carry this loop's seal, but the first of {len(lines)} has"
           f" none: an earlier relab wrote it, or another program did. {ACCEPT}")  # fmt: skip
    key = keys.named(loop)
    if key is None:
        raise ForgedError(
            f"the journal of {folder} was sealed by loop {loop}, but this user has no key of it ({keys.place()}): it is"
            f" another machine or another user, or the key is gone. {ACCEPT}"
        )
    before = Path(key.folder)
    there = lines_of(before)[0] if before.is_dir() and not _same(before, folder) else []
    forged(not there or loop_of(there[0]) != loop, f"{folder} is a copy of the loop in {before}, and one journal cannot"
           f" go on in two places: call the loop there. {ACCEPT}")  # fmt: skip
    return key


def vouched(folder: Path, lines: list[bytes], key: Key) -> str:
    """The last seal of a journal that has all rows its loop wrote, and no others."""
    seals = checked(lines, key)
    whole = len(seals.good) >= key.rows
    back = "put the journal back from a backup, or begin another loop with --name"
    remedy = "take these rows out of it" if whole else back
    rows = ", ".join(map(str, seals.other[:5])) + (" ..." if len(seals.other) > 5 else "")
    forged(not seals.other, f"every row of {folder / FILE} must carry this loop's seal, but {len(seals.other)} of"
           f" {len(lines)} do not (row {rows}): they were written or changed by another program, a run of this loop"
           f" perhaps; {remedy}. {ACCEPT}")  # fmt: skip
    forged(whole, f"{folder / FILE} must have the {key.rows} rows that this loop wrote, but has {len(lines)}: the"
           f" others were taken out; {back}. {ACCEPT}")  # fmt: skip
    return seals.last


def accepted(folder: Path, tell: Callable[[str], None] = lambda line: None) -> Journal:
    """A journal whose rows somebody has looked at, as it stands there, sealed anew; it says so ever after."""
    with contextlib.suppress(ForgedError):
        return opened(folder, tell)  # nothing is wrong with it
    rows = [without_seal(row) for row in read_jsonl(own(folder, FILE))[0]]
    key, text, last = keys.made(folder), b"", ""
    for row in rows:
        line, last = sealed_row(encode(row), key, last)
        text += line
    write_atomic(own(folder, FILE), text)
    journal = Journal(folder, replace(key, rows=len(rows)))
    journal.add("accepted", rows=len(rows))
    tell(f"the {len(rows)} rows of {folder / FILE} were taken as they stand")
    return journal


def without_seal(row: Document) -> Document:
    return {name: value for name, value in row.items() if name != SEAL}


def _first_key(folder: Path) -> Key:
    """A loop without a journal begins, unless there was one: rows were made in its folder before."""
    known = keys.of_folder(folder)
    most = max((key.rows for key in known), default=0)
    ran = any(True for _ in (folder / "runs").glob("*"))
    forged(not (ran and most), f"{folder / FILE} must have the {most} rows that this loop wrote, but it is gone; put it"
           " back from a backup, or begin another loop with --name")  # fmt: skip
    return next((key for key in known if key.rows == 0), None) or keys.made(folder)


def _same(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()


def forged(holds: bool, message: str) -> None:
    if not holds:
        raise ForgedError(message)
