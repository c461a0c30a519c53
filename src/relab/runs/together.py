"""Which runs lie below several paths? Each under a name that says which path it came from, and what was not read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from relab.base.jsonl import RecordError
from relab.formats.read import find
from relab.formats.read.source import Source
from relab.record.history import History
from relab.record.state import NAMED, SEED_IN_NAME, seedless
from relab.runs.grouping import Run, of_loaded


@dataclass
class Together:
    """The runs of several paths, as if they lay below one."""

    runs: list[Run] = field(default_factory=list)
    origins: dict[int, str] = field(default_factory=dict)  # id of a run -> the path it was found below
    gone: list[str] = field(default_factory=list)  # what could not be read, with the reason


def below(paths: Sequence[Path], load: Callable[[Path], find.LoadedRuns] = find.load_all) -> Together:
    """All runs at or below the paths; RecordError where none could be read."""
    together = Together()
    for path, loaded in zip(paths, _each(paths, load)):
        together.gone += [f"{source.name}: {why}" for source, why in loaded.broken] + [str(x) for x in loaded.unread]
        for each in loaded.runs:
            together.runs.append(of_loaded(each, each.name))
            together.origins[id(together.runs[-1])] = str(path)
    if not together.runs:
        raise RecordError(f"no run at or below {', '.join(map(str, paths))} could be read: {together.gone[0]}")
    return together


def loaded_below(paths: Sequence[Path], load: Callable[[Path], find.LoadedRuns] = find.load_all) -> find.LoadedRuns:
    """The same as they were read, each under a name that says which path it came from."""
    together = find.LoadedRuns()
    for loaded in _each(paths, load):
        together.runs += loaded.runs
        together.broken += loaded.broken
        together.unread += loaded.unread
    return together


def _each(paths: Sequence[Path], load: Callable[[Path], find.LoadedRuns]) -> list[find.LoadedRuns]:
    """What lies below each path; of several paths under names, and in groups, that say which."""
    every = [load(path) for path in paths]
    if len(paths) == 1:
        return every
    for path, label, loaded in zip(paths, called(paths), every):
        for each in loaded.runs:
            _group_below(label if each.name != path.name else label.rpartition("/")[0], each.history)
            each.source = _under(path, label, each.source)
        loaded.broken = [(_under(path, label, source), why) for source, why in loaded.broken]
    return every


def _under(path: Path, label: str, source: Source) -> Source:
    return replace(source, name=label if source.name == path.name else f"{label}/{source.name}")


def _group_below(above: str, history: History) -> None:
    """Runs that names alone put into groups are not of one group where they lie below different paths."""
    key = str(history.meta.get("config_hash", ""))
    own = key.removeprefix(NAMED)
    if above and key.startswith(NAMED) and not f"{own}/".startswith(f"{above}/"):
        history.meta["config_hash"] = NAMED + seedless(f"{above}/{own}").strip("/")


def called(paths: Sequence[Path]) -> list[str]:
    """As much of the end of each path as tells them all apart, and as is more than a seed.

    >>> called([Path("/a/x"), Path("/b/y")]), called([Path("/a/x"), Path("/b/x")]), called([Path("/a/s0"), Path("/b/y")])
    (['x', 'y'], ['a/x', 'b/x'], ['a/s0', 'y'])
    """
    parts = [Path(os.path.abspath(path)).parts[1:] for path in paths]
    ends = ["/".join(each[-1:]) for each in parts]
    for length in range(2, max(map(len, parts)) + 1):
        unclear = [ends.count(end) > 1 or bool(SEED_IN_NAME.fullmatch(end)) for end in ends]
        ends = ["/".join(each[-length:]) if more else end for each, end, more in zip(parts, ends, unclear)]
    return ends
