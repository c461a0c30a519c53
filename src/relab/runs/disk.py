"""How much disk does a run take, and what of it can go? Checkpoints that neither best nor last point to."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from relab.base import limits
from relab.config.base import require
from relab.base.enclosed import listed, own
from relab.base.jsonl import RecordError
from relab.runs import glance
from relab.runs.moves import check_idle, held

STEP = re.compile(r"step-([0-9]{12,15})")
POINTERS = {"best": "best.json", "last": "latest.json"}
GOING = ".going-"
LEFT = re.compile(r"\.writing-[0-9]+|\.going-step-[0-9]{12,15}")  # by a process that was killed


@dataclass
class Use:
    """The disk use of one run, in bytes."""

    total: int = 0
    checkpoints: int = 0
    removable: list[Path] = field(default_factory=list)  # checkpoint folders that would go
    free: int = 0  # bytes of these
    why_not: str = ""  # why nothing of it may go


def check_keep(words: Sequence[str]) -> None:
    require(bool(words) and set(words) <= set(POINTERS), "`--keep` must be best, last or both (best,last), but is"
            f" {','.join(words)!r}")  # fmt: skip


def use(folder: Path, keep: Sequence[str] = ("best", "last")) -> Use:
    """What a run takes, and what could go if `keep` stays. Nothing is changed."""
    taken = Use(glance.size_of(os.fsencode(folder)))
    try:
        taken.checkpoints = glance.size_of(os.fsencode(own(folder, "checkpoints")))
        kept = kept_folders(folder, keep)
    except RecordError as error:
        taken.why_not = str(error)
        return taken
    taken.removable = [path for path in _checkpoints(folder) if path.name not in kept]
    taken.free = sum(glance.size_of(os.fsencode(path)) for path in taken.removable)
    return taken


def idle_use(folder: Path, keep: Sequence[str]) -> Use:
    """What of a run's checkpoints could go; of one that is running none, and it says why not."""
    taken = use(folder, keep)
    try:
        check_idle(folder)
    except RecordError as error:
        taken.why_not = str(error)
    return taken


def kept_folders(folder: Path, keep: Sequence[str]) -> set[str]:
    """Names of the checkpoints that stay. The last one always does while a run could be resumed."""
    meta = glance.read_meta(os.fsencode(folder))
    done = isinstance(meta, dict) and meta.get("status") == "finished"
    steps = [path for path in _checkpoints(folder) if STEP.fullmatch(path.name)]
    newest = max(steps, key=lambda path: int(path.name[5:]), default=None)
    kept = set()
    for word in POINTERS:
        pointed = _pointed(folder / "checkpoints" / POINTERS[word])
        if word in keep or (word == "last" and not done):
            kept |= {pointed} if pointed else {newest.name} if newest and word == "last" else set()
    if steps and not kept & {path.name for path in steps}:
        raise RecordError(f"none of its checkpoints is {' or '.join(keep)}, so that none would stay")
    return kept


def _pointed(file: Path) -> str | None:
    """The folder that latest.json or best.json points to; a file that cannot be read is an error, not a licence."""
    try:
        pointer: Any = orjson.loads(limits.read_bytes(file, limits.SETTINGS, plain=True))
        return str(pointer["folder"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{file.name} cannot be read ({type(error).__name__}), so that nothing is removed") from None


def prune(folder: Path, keep: Sequence[str]) -> int:
    """Remove the checkpoints that need not stay -> bytes freed. The pointer to one that goes, goes first."""
    with held(folder):
        taken = use(folder, keep)
        gone = {path.name for path in taken.removable}
        for file in (folder / "checkpoints" / name for name in POINTERS.values()):
            if _pointed(file) in gone:
                file.unlink()
        for path in taken.removable:
            going = path if path.name.startswith(".") else path.with_name(GOING + path.name)
            os.rename(path, going)  # half a checkpoint is never taken for one
            shutil.rmtree(going)
        return taken.free


def _checkpoints(folder: Path) -> list[Path]:
    """Checkpoint folders, and what a killed process left of one."""
    there = [path for path in listed(folder, "checkpoints") if path.is_dir()]
    return [path for path in there if STEP.fullmatch(path.name) or LEFT.fullmatch(path.name)]
