"""How is a config looked at? As plain values, flat keys, derived numbers, a hash, a difference to another one."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from relab.base.documents import Settings
from relab.base.numbers import is_finite, is_number
from relab.config.base import property_docs
from relab.config.coerce import scalar

BESIDE = ("record",)  # changes what is written beside a run's record, never the run: no part of the hash
# Settings that came later: while null they are no part of the hash, so that older runs keep theirs.
LATER = ("probes", "start_from", "start_parts", "env.pixels")


def to_dict(config: Any) -> Settings:
    """Nested plain values, ready for YAML and JSON; tuples become lists."""
    return {f.name: _plain(getattr(config, f.name)) for f in dataclasses.fields(config)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def flatten(config: Any, prefix: str = "") -> Settings:
    """Dotted key -> value, of a config or of nested plain values; an empty mapping stays a value."""
    values = config if isinstance(config, Mapping) else to_dict(config)
    flat: Settings = {}
    for key, value in values.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) and value else {f"{prefix}{key}": value}
    return flat


def derived(config: Any, prefix: str = "") -> Settings:
    """Dotted name -> number, of every @property of a config and of the configs below it."""
    numbers = {f"{prefix}{name}": getattr(config, name) for name in property_docs(type(config))}
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if dataclasses.is_dataclass(value):
            numbers |= derived(value, f"{prefix}{item.name}.")
    return numbers


def config_hash(config: Any, without: Sequence[str] = ("seed",)) -> str:
    """12 hex digits of the canonical JSON of a config; runs that differ in `without` only (the seed) share it."""
    flat = {k: v for k, v in _hashed(config, without).items() if v is not None or k not in LATER}
    return _digest(_canonical(flat))


def meaning_hash(config: Any) -> str:
    """The same of what the settings mean, whoever wrote them: of two configs in which `differing` sees no difference.

    >>> meaning_hash({"lr": 1e-3, "kl": None}) == meaning_hash({"lr": "1e-3", "seed": 2})
    True
    """
    flat = {k: canonical(v) for k, v in _hashed(config, ("seed",)).items()}
    return _digest({k: text for k, text in flat.items() if text != canonical(MISSING)})


def _hashed(config: Any, without: Sequence[str]) -> Settings:
    gone = (*without, *BESIDE)
    return {k: v for k, v in flatten(config).items() if not any(k == w or k.startswith(w + ".") for w in gone)}


def _digest(values: Any) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _canonical(value: Any) -> Any:
    """1.0 and 1 are the same setting, whoever wrote them; JSON gives every other finite float exactly."""
    if isinstance(value, Mapping):
        return {str(k): _canonical(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(v) for v in value]
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return f"float {value}" if isinstance(value, float) else value


class Change(NamedTuple):
    """One key that differs; `size` in doublings for numbers, infinite for a change of kind, 0 for the seed."""

    key: str
    a: Any  # MISSING where the key does not exist
    b: Any
    size: float


class _Missing:
    def __repr__(self) -> str:
        return "(none)"


MISSING = _Missing()


def diff(a: Any, b: Any) -> list[Change]:
    """Keys that differ, biggest first: names, changes of kind, numbers by |log2(b / a)|, the seed last."""
    flat_a, flat_b = flatten(a), flatten(b)
    for section in LATER:
        if (
            flat_a.get(section, "") is None or flat_b.get(section, "") is None
        ):  # one line for a section that is not there
            flat_a, flat_b = _folded(flat_a, section), _folded(flat_b, section)
    keys = list(flat_a | flat_b)
    changes = [Change(k, x, y, change_size(k, x, y)) for k in keys
               if canonical(x := flat_a.get(k, MISSING)) != canonical(y := flat_b.get(k, MISSING))]  # fmt: skip
    return sorted(changes, key=lambda c: (not c.key.endswith("name"), -c.size, keys.index(c.key)))


def _folded(flat: Settings, section: str) -> Settings:
    """A section as one key: null, or that it is set."""
    inside = [key for key in flat if key.startswith(f"{section}.")]
    return {k: v for k, v in flat.items() if k not in inside} | ({section: "set"} if inside else {})


def canonical(value: Any) -> str:
    """Equal for values that mean the same, whoever wrote them: 1 and 1.0, 0.0003 and "3e-4", [64, 64] and (64, 64).

    >>> canonical(1) == canonical(1.0) == canonical("1"), canonical([64]) == canonical("(64,)"), canonical(True)
    (True, True, 'True')
    """
    if isinstance(value, str) and len(value) < 40:
        value = _as_typed(value)
    if value is None:  # null is missing: a run from before there was such a setting
        value = MISSING
    if is_number(value):
        try:
            return f"{float(value):.12g}"
        except OverflowError:
            return str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(canonical, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {canonical(value[key])}' for key in sorted(value, key=str))}}}"
    return repr(value)


def _as_typed(text: str) -> Any:
    """What a text stands for in logs that keep all settings as text: a number, true, null, a flat list.

    >>> _as_typed("None"), _as_typed("(64, 'x')"), _as_typed("[[1], 2]")
    (None, ['64', 'x'], '[[1], 2]')
    """
    ends, inside = text[:1] + text[-1:], text[1:-1]
    if ends in ("[]", "()") and not re.search(r"[][(){}]", inside):
        return [part.strip().strip("'\"") for part in inside.split(",") if part.strip()]
    return None if text == "None" else scalar(text)


def change_size(key: str, a: Any, b: Any) -> float:
    if key == "seed":
        return 0.0
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        return max((change_size("", x, y) for x, y in zip(a, b) if canonical(x) != canonical(y)), default=0.0)
    numbers = is_finite(a) and is_finite(b)
    if not numbers or not a or not b or (a > 0) != (b > 0):
        return math.inf
    return abs(math.log2(abs(b)) - math.log2(abs(a)))  # the quotient itself may be beyond every double
