"""Which starts does a file of a queue hold? Velocities out of JSON, however it nests them; nothing is executed.

[[1.8, 0.8], ...], {"starts": [...]}, or rows with `predator_velocity` or `velocity`, as evaluations write them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relab.base import limits
from relab.base.enclosed import RecordError, inside, is_path
from relab.config.registry import UntrustedError
from relab.schedules.gate import ScheduleError
from relab.schedules.schedule import Schedule, from_mapping
from relab.schedules.stage import MINED

NAMES = ("predator_velocity", "velocity")
LARGEST = 20_000_000  # bytes of a file of starts
DEEP = 8  # levels


def files_of(schedule: Schedule) -> list[str]:
    """The files that the queues of a schedule name."""
    named = (stage.source for plan in schedule.queues for stage in plan.stages)
    return list(dict.fromkeys(name for name in named if name and name != MINED))


def check_record(settings: Mapping[str, Any] | None, record: str, typed: str = "") -> None:
    """A record that somebody sent may name files of the current folder; others are read only with trust.

    `typed`: what the user himself has written, where he may name any file.
    """
    try:
        named = files_of(from_mapping(settings or {}))
    except ScheduleError:  # told by whoever makes the schedule
        return
    for name in (name for name in named if name not in typed):
        if not _is_here(name):
            raise UntrustedError(
                f"the record ({record}) names a file of starts, {name!r:.200}, outside of the current folder; it is"
                " opened only if you trust it (from Python: trust=True)"
            )


def _is_here(name: str) -> bool:
    try:
        return is_path(name) and inside(Path.cwd(), name) is not None
    except RecordError:
        return False


def texts(data: Any) -> Iterable[str]:
    """Every text in plain data."""
    if isinstance(data, str):
        yield data
    for each in data.values() if isinstance(data, Mapping) else data if isinstance(data, (list, tuple)) else ():
        yield from texts(each)


def read_starts(path: str) -> np.ndarray:
    """float64[k,2]: the velocities in a JSON file; ScheduleError says what is wrong with it."""
    file = Path(path)
    try:
        pairs = list(velocities(json.loads(limits.read_text(file, LARGEST))))
    except (OSError, ValueError) as error:
        raise ScheduleError(f"{path} cannot be read as a file of starts: {error}") from None
    if not pairs:
        raise ScheduleError(f"{path} holds no start: pairs of numbers in a list, or under {' or '.join(NAMES)}")
    return np.array(pairs, np.float64)


def velocities(data: Any, level: int = 0) -> Iterator[tuple[float, float]]:
    """Every pair of finite numbers, in order; below a mapping only those under a known name."""
    if level > DEEP:
        return
    if isinstance(data, list):
        for row in data:
            pair = _pair(row)
            yield from [pair] if pair else velocities(row, level + 1)
    elif isinstance(data, dict):
        named = [pair for name in NAMES if (pair := _pair(data.get(name)))]
        yield from named[:1]
        for row in () if named else data.values():
            yield from velocities(row, level + 1) if isinstance(row, (list, dict)) and not _pair(row) else ()


def _pair(row: Any) -> tuple[float, float] | None:
    numbers = isinstance(row, list) and len(row) == 2 and all(isinstance(x, (int, float)) for x in row)
    if not numbers or not all(math.isfinite(x) for x in row):
        return None
    return float(row[0]), float(row[1])
