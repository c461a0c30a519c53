"""Which runs lie below several paths? Each under a name that says which path it came from, and what was not read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from relab.base.jsonl import RecordError
from relab.formats.read import find
from relab.formats.read.source import Source
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
    for path in paths:
        loaded = load(path)
        together.gone += [f"{source.name}: {why}" for source, why in loaded.broken] + [str(x) for x in loaded.unread]
        for each in loaded.runs:
            name = f"{path.name}/{each.name}" if len(paths) > 1 and each.name != path.name else each.name
            together.runs.append(of_loaded(each, name))
            together.origins[id(together.runs[-1])] = str(path)
    if not together.runs:
        raise RecordError(f"no run at or below {', '.join(map(str, paths))} could be read: {together.gone[0]}")
    return together


def loaded_below(paths: Sequence[Path], load: Callable[[Path], find.LoadedRuns] = find.load_all) -> find.LoadedRuns:
    """The same as they were read, each under a name that says which path it came from."""
    if len(paths) == 1:
        return load(paths[0])
    together = find.LoadedRuns()
    for path in paths:
        loaded = load(path)
        together.runs += [find.Loaded(_under(path, each.source), each.history) for each in loaded.runs]
        together.broken += [(_under(path, source), why) for source, why in loaded.broken]
        together.unread += loaded.unread
    return together


def _under(path: Path, source: Source) -> Source:
    return source if source.name == path.name else replace(source, name=f"{path.name}/{source.name}")
