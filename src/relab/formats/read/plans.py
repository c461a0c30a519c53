"""What was planned? The list of runs that a sweep kept beside its runs: relab's trials.json, or a grid of values.

sweeps/ID/trials.json              relab's own: `planned` names every run
grid_effective.yaml                KEY_values: [...] for each axis, in the order of the loops; a `meta.json`
                                   beside it may say when the sweep began (`timestamp`)
"""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from relab.base import limits
from relab.base.jsonl import RecordError, read_json
from relab.base.numbers import is_number
from relab.config.base import ConfigError
from relab.config.views import flatten
from relab.config.yaml_io import parse_yaml

OURS, GRID = "trials.json", "grid_effective.yaml"
VALUES = "_values"
MOST_BYTES = 4_000_000
MOST_CELLS = 1_000_000
ALIKE = 1e-6  # values that were rounded on their way into a file


@dataclass(frozen=True)
class Plan:
    """The cells of a sweep in the order in which they were to run."""

    source: Path
    names: tuple[str, ...] = ()  # of the runs, where the plan names them
    axes: dict[str, list[Any]] = field(default_factory=dict)  # else every combination of these
    started: float | None = None  # seconds since the epoch

    @property
    def cells(self) -> int:
        return len(self.names) or math.prod(len(values) for values in self.axes.values())

    def place(self, folder: Path, config: Mapping[str, Any]) -> int | None:
        """The number of a run's cell, by its folder's name or by its settings; None: it is not part of the plan."""
        if self.names:
            return self.names.index(folder.name) if folder.name in self.names else None
        flat, at = {key.rpartition(".")[2]: value for key, value in flatten(config).items()}, 0
        for key, values in self.axes.items():
            places = [i for i, value in enumerate(values) if key in flat and alike(flat[key], value)]
            if not places:
                return None
            at = at * len(values) + places[0]
        return at

    def cell(self, number: int) -> str:
        """What a cell is, in words."""
        if self.names:
            return self.names[number]
        values = next(v for i, v in enumerate(product(*self.axes.values())) if i == number)
        return ", ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                         for key, value in zip(self.axes, values) if len(self.axes[key]) > 1)  # fmt: skip


def alike(a: Any, b: Any) -> bool:
    numbers = is_number(a) and is_number(b)
    return math.isclose(a, b, rel_tol=ALIKE, abs_tol=1e-12) if numbers else a == b


def of(folder: Path) -> Plan | None:
    """The plan that a run's folder belongs to: beside it, above its `runs`, or in the sweep's `meta`."""
    above = Path(os.path.abspath(folder)).parent
    places = (above, above.parent, above.parent / "meta") if above.name == "runs" else (above, above / "meta")
    return next((plan for place in places if (plan := read(place)) is not None), None)


@lru_cache(maxsize=32)
def _read(folder: Path, stamp: tuple[int, ...]) -> Plan | None:
    return _ours(folder) or _grid(folder)


def read(folder: Path) -> Plan | None:
    """The plan in a folder, read once for all runs of it."""
    stamp = tuple(path.stat().st_mtime_ns for name in (OURS, GRID) if _safe(path := folder / name))
    return _read(folder, stamp) if stamp else None


def _safe(path: Path) -> bool:
    try:
        return path.is_file() and not path.is_symlink() and path.stat().st_size <= MOST_BYTES
    except OSError:
        return False


def _ours(folder: Path) -> Plan | None:
    try:
        names = read_json(folder, OURS).get("planned") if _safe(folder / OURS) else None
    except (RecordError, OSError):
        return None
    good = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
    return Plan(folder / OURS, tuple(names)) if good and names else None


def _grid(folder: Path) -> Plan | None:
    try:
        text = limits.read_text(folder / GRID, MOST_BYTES, errors="replace") if _safe(folder / GRID) else ""
        document = parse_yaml(text, GRID)
    except (ConfigError, OSError, ValueError):
        return None
    axes = {str(key).removesuffix(VALUES): list(values) for key, values in document.items()
            if str(key).endswith(VALUES) and isinstance(values, Sequence) and not isinstance(values, str)}  # fmt: skip
    good = axes and all(axes.values()) and math.prod(map(len, axes.values())) <= MOST_CELLS
    return Plan(folder / GRID, (), axes, _started(folder)) if good else None


def _started(folder: Path) -> float | None:
    try:
        return seconds(read_json(folder, "meta.json").get("timestamp")) if _safe(folder / "meta.json") else None
    except (RecordError, OSError):
        return None


def seconds(stamp: Any) -> float | None:
    """A time as text -> seconds; one without a zone is taken as UTC, because only differences are formed."""
    try:
        moment = datetime.datetime.fromisoformat(str(stamp).replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()
