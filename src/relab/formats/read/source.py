"""What must an importer do? Recognise a folder by its files, name the runs in it, and read one as a History.

An importer is a module (one format, one file) with

    def sniff(listing: Listing) -> bool             is this mine? by names and first bytes: asked of every folder
    def sources(listing: Listing) -> list[Source]   the runs in this folder
    def read(source: Source) -> History             one of them; what cannot be read goes to history.problems
    DEEP = True                                     optional: folders below one of mine are searched as well
    LOOSE = True                                    optional: other such formats may have files in the same folder

Metrics that mean the same as one of the glossary get its name (and sign and scale); all others survive as
foreign/NAME. Config keys likewise: `algo.lr` where it is relab's `lr`, else below `foreign`. Nothing is unpickled,
nothing executed, no path outside of the given folder followed, and none of the foreign libraries is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Settings
from relab.base.jsonl import Problem
from relab.base.numbers import HUGE, MAX_STEP
from relab.record.history import Column, History

FOREIGN = "foreign/"
EVENT_FILES = "tfevents"  # in the middle of the names of TensorBoard's files
Names = Mapping[str, tuple[str, float]]  # the tool's name -> (relab's name, factor)


@dataclass(frozen=True)
class Listing:
    """One folder and what is directly in it (links left out), or one file that was given by name."""

    folder: Path
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()  # not followed
    error: str = ""  # why the folder could not be listed

    def has(self, *names: str) -> bool:
        return all(name in self.files or name in self.folders for name in names)

    def ending(self, *ends: str) -> list[str]:
        return [name for name in self.files if name.endswith(ends)]

    def start_of(self, name: str, size: int = 4096) -> bytes:
        """The first bytes of a file; empty where it cannot be read."""
        try:
            with open(self.folder / name, "rb") as file:
                return file.read(size)
        except OSError:
            return b""


@dataclass(frozen=True)
class Source:
    """One run, before it is read."""

    format: str
    path: Path  # the run's folder; for a format of one file, that file
    files: tuple[Path, ...] = ()  # what read() will open
    key: str = ""  # which run, where one file holds many
    name: str = ""  # filled in by find(): the path below the folder that was given

    @property
    def folder(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent


def name_table(text: str) -> Names:
    """The translation that a table tells: relab's name, `* factor` where sign or scale differ, then the tool's names.

    >>> name_table("policy/loss | pi_loss \\n value/loss * 0.5 | v_loss, Loss / value")
    {'pi_loss': ('policy/loss', 1.0), 'v_loss': ('value/loss', 0.5), 'Loss / value': ('value/loss', 0.5)}
    """
    names: dict[str, tuple[str, float]] = {}
    for row in text.strip().splitlines():
        ours, theirs = row.split(" | ")
        name, _, factor = ours.partition(" * ")
        names |= dict.fromkeys(map(str.strip, theirs.split(",")), (name.strip(), float(factor or 1)))
    return names


def start(source: Source) -> History:
    """An empty history of a foreign run."""
    return History(source.folder, source=source.format)


def put(
    history: History,
    name: str,
    steps: Sequence[int] | np.ndarray,
    values: Sequence[float] | np.ndarray,
    axis: str = "env_steps",
    names: Names | None = None,
) -> None:
    """Add a column under relab's name, else as foreign/NAME; rows that hold nothing are the caller's to leave out."""
    steps, values = _fitting(history, name, steps, values)
    if not len(steps):
        return
    ours, factor = (names or {}).get(name, (FOREIGN + name, 1.0))
    if ours in history.columns:  # two foreign names for one metric: the first keeps it, the other stays readable
        ours, factor = FOREIGN + name, 1.0
    with np.errstate(all="ignore"):  # the largest doubles times a factor are infinite
        history.columns[ours] = Column(steps, values if factor == 1.0 else values * factor)
    history.axes[ours] = axis
    history.mapping[name] = ours
    if factor != 1.0:
        history.factors[ours] = factor


def _fitting(
    history: History, name: str, steps: Sequence[int] | np.ndarray, values: Sequence[float] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The points as arrays; those whose step or value no column can hold are left out, and it is said."""
    try:
        at, numbers = np.asarray(steps, np.int64), np.asarray(values, np.float64)
        good = (at > -MAX_STEP) & (at < MAX_STEP)
    except OverflowError:  # an integer of more than 64 bits; one of more than 1024 as a value
        good = np.array([abs(int(step)) < MAX_STEP and abs(value) < HUGE for step, value in zip(steps, values)], bool)
        at = np.array([step for step, fits in zip(steps, good) if fits], np.int64)
        numbers = np.array([value for value, fits in zip(values, good) if fits], np.float64)
    lost = len(good) - int(good.sum())
    if lost:
        problem(history, name, f"{lost} points have a step or a value beyond every count; they were left out")
    return (at, numbers) if len(at) < len(good) or not lost else (at[good], numbers[good])


def settings(flat: Mapping[str, Any], keys: Mapping[str, str]) -> Settings:
    """Foreign config keys -> relab's nested config; keys without a counterpart stay below `foreign`."""
    nested: Settings = {}
    for key, value in flat.items():
        dotted = keys.get(key, f"foreign.{key}")
        *above, last = [*dotted.split(".")] if key in keys else ["foreign", key]
        place = nested
        for part in above:
            inner = place.setdefault(part, {})
            place = inner if isinstance(inner, dict) else {}
        place[last] = value
    return nested


def set_config(history: History, flat: Mapping[str, Any], keys: Mapping[str, str]) -> None:
    """The same as the config of a run, which also remembers what the tool calls relab's keys."""
    history.config = settings(flat, keys)
    history.keys = {key: keys[key] for key in flat if key in keys}


def problem(history: History, file: str | Path, message: str, line: int | None = None) -> None:
    history.problems.append(Problem(Path(file).name, line, message))


def remark(history: History, file: str | Path, message: str) -> None:
    """How a file was read where that is not plain; nothing of it was lost."""
    history.problems.append(Problem(Path(file).name, None, message, read=True))
