"""Which runs lie below several paths? Each under a name that says which path it came from, and what was not read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from relab.base.jsonl import RecordError
from relab.formats.read import find
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
