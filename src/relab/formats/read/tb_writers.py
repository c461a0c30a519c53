"""Which event files of one folder are one run? Those of one process, and those that take up what another left.

Two processes that log the same tags into one folder at the same time are two runs, and so is one that begins again from
nothing when another had come as far: joined they would be a curve that nobody's agent went through.
"""

from __future__ import annotations

import re
from pathlib import Path

from relab.formats.read import tfevents
from relab.formats.read.tfevents import Ends

SHARED = 0.5  # of the tags of the smaller file make two files tell the same story
AT_ONCE = 0.1  # of the shorter one's time; a writer may be closed late
AS_FAR = 0.9  # of the later one's steps make an earlier file a run of its own
PROCESS = re.compile(r"tfevents\.\d+\.(?P<process>.+\.\d+)\.\d+(\.v2)?$")


def runs(files: list[Path]) -> list[list[Path]]:
    """The files of each run, in the order in which the runs began; nearly always all of them together."""
    if len(files) < 2:
        return [files]
    known = {file: ends for file in files if (ends := tfevents.ends(file)) is not None}
    groups: list[list[Path]] = []
    for file in sorted(known, key=lambda file: known[file].began):
        fitting = [group for group in groups if all(_together(known, file, other) for other in group)]
        if fitting:
            max(fitting, key=lambda group: _nearness(file, group, known)).append(file)
        else:
            groups.append([file])
    empty = [file for file in files if file not in known]
    return [sorted([*group, *(empty if n == 0 else [])]) for n, group in enumerate(groups)] or [files]


def _together(known: dict[Path, Ends], file: Path, earlier: Path) -> bool:
    """Whether a file may belong to the run of one that began before it."""
    new, old = known[file], known[earlier]
    if len(new.tags & old.tags) < SHARED * min(len(new.tags), len(old.tags)):
        return True  # another writer of the same program
    shorter = min(new.ended - new.began, old.ended - old.began)
    at_once = min(new.ended, old.ended) - max(new.began, old.began) > AT_ONCE * max(shorter, 1e-3)
    if at_once:
        return process(file) == process(earlier) or new.first > old.last or old.first > new.last
    anew = new.first <= old.first and old.last > old.first
    return not (anew and old.last >= AS_FAR * new.last)


def _nearness(file: Path, group: list[Path], known: dict[Path, Ends]) -> tuple[bool, float]:
    """The run of the same process first, then the one whose last file ended latest before this one."""
    return any(process(file) == process(other) for other in group), max(known[other].ended for other in group)


def process(file: Path) -> str:
    """Host and process of an event file's name; empty where it tells none.

    >>> process(Path("events.out.tfevents.1700000000.box.42.0")), process(Path("tfevents.1"))
    ('box.42', '')
    """
    match = PROCESS.search(file.name)
    return match["process"] if match else ""
