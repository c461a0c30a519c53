"""What values does an axis take? A list, or a range: linear or log, of real or whole numbers; perhaps only at times.

lr: [1e-4, 1e-3, 1e-2]                      values
lr: {low: 1e-5, high: 1e-2, log: true}      a range, for random, sobol and optuna
lr: {low: 1e-5, high: 1e-2, log: true, steps: 4}      the same for a grid: four values, both ends included
epochs: {low: 1, high: 10, int: true}
rnn_size: {values: [64, 128], when: {rnn: [gru, lstm]}, otherwise: 0}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relab.base.near import hint
from relab.config.base import require
from relab.config.coerce import coerce

KEYS = ("values", "low", "high", "log", "int", "steps", "when", "otherwise")
PLAIN = (bool, int, float, str)


@dataclass(frozen=True)
class Axis:
    """One swept setting."""

    key: str
    values: tuple[Any, ...] = ()  # empty: a range
    low: float = math.nan
    high: float = math.nan
    log: bool = False
    whole: bool = False  # whole numbers
    steps: int | None = None  # levels of a range in a grid
    when: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # other axis -> values with which this one is there
    otherwise: Any = None  # what fills a command's placeholder where it is not there

    @property
    def is_range(self) -> bool:
        return not self.values

    def levels(self) -> tuple[Any, ...]:
        """The values of a grid."""
        if self.values:
            return self.values
        require(self.steps is not None, f"axis `{self.key}` is a range: a grid needs its values, or `steps: N` of them")
        n = int(self.steps or 0)
        levels = [self.at(k / (n - 1)) if n > 1 else self.at(0.5) for k in range(n)]
        return tuple(dict.fromkeys(levels))

    def at(self, u: float) -> Any:
        """The value at a share u of the axis, 0 <= u <= 1; whole numbers get equal shares."""
        if self.values:
            return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
        low, high = self.low, self.high
        if self.whole and self.steps is None:
            low, high = low - 0.5 * (not self.log), high + 0.5 * (not self.log)
        x = math.exp(math.log(low) + u * (math.log(high) - math.log(low))) if self.log else low + u * (high - low)
        if self.whole:
            return int(min(max(math.floor(x + 0.5), self.low), self.high))
        return float(f"{min(max(x, self.low), self.high):.12g}")  # as it will be written and read again

    def is_on(self, point: Mapping[str, Any]) -> bool:
        return all(key in point and point[key] in values for key, values in self.when.items())

    def plain(self) -> Any:
        """As plain values for sweep.yaml."""
        if self.values and not self.when and self.otherwise is None:
            return list(self.values)
        ends = {"low": self.low, "high": self.high} if self.is_range else {"values": list(self.values)}
        more = {"log": self.log, "int": self.whole, "steps": self.steps, "otherwise": self.otherwise,
                "when": {k: list(v) for k, v in self.when.items()}}  # fmt: skip
        return ends | {k: v for k, v in more.items() if v is not None and v is not False and v != {}}


def load(key: str, entry: Any) -> Axis:
    """One entry of `axes`."""
    if isinstance(entry, (list, tuple)):
        return Axis(key, values_of(key, entry))
    require(isinstance(entry, Mapping), f"axis `{key}` must be a list of values or a range such as"
                                        f" {{low: 1e-5, high: 1e-2, log: true}}, but is {entry!r}")  # fmt: skip
    for word in entry:
        require(word in KEYS, f"axis `{key}` has the unknown key `{word}`{hint(word, KEYS)}")
    when = {str(k): tuple(v) if isinstance(v, (list, tuple)) else (v,) for k, v in (entry.get("when") or {}).items()}
    otherwise = entry.get("otherwise")
    if "values" in entry:
        wrong = [word for word in ("low", "high", "log", "int", "steps") if word in entry]
        require(not wrong, f"axis `{key}` has `values` and `{wrong[0] if wrong else ''}`: leave one of them out")
        return Axis(key, values_of(key, entry["values"]), when=when, otherwise=otherwise)
    require("low" in entry and "high" in entry, f"axis `{key}` needs `values`, or `low` and `high`")
    low, high = (coerce(entry[word], float, f"axes.{key}.{word}") for word in ("low", "high"))
    flags = {word: coerce(entry.get(word, False), bool, f"axes.{key}.{word}") for word in ("log", "int")}
    steps = coerce(entry["steps"], int, f"axes.{key}.steps") if "steps" in entry else None
    axis = Axis(key, (), low, high, flags["log"], flags["int"], steps, when, otherwise)
    check_range(axis)
    return axis


def values_of(key: str, entry: Any) -> tuple[Any, ...]:
    values = tuple(entry) if isinstance(entry, (list, tuple)) else ()
    require(bool(values), f"axis `{key}` needs at least one value, but got {entry!r}")
    odd = [v for v in values if not isinstance(v, PLAIN)]
    require(not odd, f"axis `{key}` takes numbers, text, true and false, but got {odd[0] if odd else ''!r}")
    twice = [v for i, v in enumerate(values) if v in values[:i]]
    require(not twice, f"axis `{key}` has {twice[0] if twice else ''!r} more than once")
    return values


def check_range(axis: Axis) -> None:
    good = math.isfinite(axis.low) and math.isfinite(axis.high) and axis.low < axis.high
    require(good, f"axis `{axis.key}` needs finite `low` < `high`, but has {axis.low:g} and {axis.high:g}")
    require(not axis.log or axis.low > 0, f"axis `{axis.key}` is `log` and needs `low` above 0, but has {axis.low:g}")
    whole = not axis.whole or (axis.low == int(axis.low) and axis.high == int(axis.high))
    require(whole, f"axis `{axis.key}` is `int` and needs whole ends, but has {axis.low:g} and {axis.high:g}")
    require(axis.steps is None or axis.steps >= 2, f"`steps` of axis `{axis.key}` must be 2 or more: {axis.steps}")


def check_conditions(axes: Sequence[Axis]) -> None:
    """`when` names axes that come before, and values they can take."""
    before: dict[str, Axis] = {}
    for axis in axes:
        for key, values in axis.when.items():
            require(key in before, f"`when` of axis `{axis.key}` names `{key}`, which must be an axis before it;"
                                   f" there are {', '.join(before) or 'none'}")  # fmt: skip
            strange = [v for v in values if before[key].values and v not in before[key].values]
            require(not strange, f"`when` of axis `{axis.key}`: `{key}` is never {strange[0] if strange else ''!r}")
        before[axis.key] = axis
