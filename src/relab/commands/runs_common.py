"""What do the verbs of `relab runs` share? The runs that words mean, and doing something with one after the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from relab.base.errors import refusal
from relab.commands.progress import Progress
from relab.commands.runs_text import clean
from relab.config.base import require

if TYPE_CHECKING:
    from relab.formats.read.hints import Hints
    from relab.runs.index import Index
    from relab.runs.listing import ListedRun

Words = tyro.conf.Positional[tuple[str, ...]]


def opened(path: Path, rebuild: bool = False, hints: Hints | None = None) -> Index:
    """The index of a folder, brought up to date; `hints`: what the user knows besides other tools' logs."""
    from relab.runs.index import Index

    if not path.is_dir():
        what = "is a file; give its folder" if path.exists() else "does not exist"
        raise FileNotFoundError(f"{path} {what}; `relab runs FOLDER` lists the runs below a folder")
    index = Index(path, rebuild, hints)
    with Progress("reading run") as tell:
        index.refresh(tell)
    return index


def ask(question: str, yes: bool) -> bool:
    """Whether to go on; where nobody can answer, only --yes does."""
    if yes:
        return True
    if not sys.stdin.isatty():
        print("nothing was removed: add --yes to do it")
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


@dataclass(frozen=True)
class Target:
    """A run that a word means."""

    name: str
    folder: Path  # or the file, for a format of one file
    key: str = ""
    format: str = "relab"
    copies: tuple[str, ...] = ()


# ---- Which runs


def targets(words: Sequence[str], root: Path) -> list[Target]:
    """The runs that words mean, each once; what an earlier call left half-done is put right first."""
    from relab.runs import listing

    require(bool(words), "name at least one run")
    chosen: dict[tuple[Path, str], Target] = {}
    index = None
    for word in words:
        if is_run(Path(word)):
            each = [Target(Path(word).name, Path(os.path.abspath(word)))]
        elif Path(word).is_dir() and os.sep in word:
            each = [of_row(row) for row in listing.select(mended(Path(word)), listing.Query()).rows]
            require(len(each) == 1, f"{word} must be one run, but holds {len(each)}")
        else:
            index = index or mended(root)
            each = [of_row(row) for row in listing.find(index, word)]
        chosen |= {(target.folder, target.key): target for target in each}
    return list(chosen.values())


def is_run(path: Path) -> bool:
    from relab.runs import glance

    return glance.is_relab(glance.read_meta(os.fsencode(path)))


def of_row(run: ListedRun) -> Target:
    return Target(run.name, run.folder, run.key, run.format, tuple(run.copies))


def mended(root: Path) -> Index:
    """The index of a folder, after what a kill left behind has been put right."""
    from relab.runs import moves

    index = opened(root)
    repairs = moves.mend_each(index.trash, index.half_renamed())
    for line in repairs:
        print(clean(line))
    if repairs:
        index.refresh()
    return index


def ours(target: Target) -> Path:
    """The folder of a run that may be changed; other tools' runs may not."""
    from relab.base.jsonl import RecordError

    if target.format != "relab":
        raise RecordError(
            f"{target.name} was written by another tool ({target.format}): relab renames, moves and removes nothing of"
            " theirs. Tags, stars and notes are kept in your cache folder and can be given"
        )
    return target.folder


def each(chosen: Sequence[Target], what: str, do: Callable[[Target], str]) -> int:
    """Do it for one run after the other; one that refuses does not stop the rest. Exit code 2 if any did."""
    from relab.base.jsonl import RecordError

    bad = 0
    for target in chosen:
        try:
            print(clean(f"{target.name}: {do(target)}"))
        except (RecordError, OSError) as error:
            reason = refusal(error) if isinstance(error, OSError) else str(error)
            print(clean(f"relab: {target.name} was not {what}: {reason}"), file=sys.stderr)
            bad += 1
        else:
            for copy in target.copies:
                print(clean(f"  its copy at {copy} stays as it is"))
    return 2 if bad else 0
