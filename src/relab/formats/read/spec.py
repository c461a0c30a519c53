"""What is the task like, where the log cannot know? Action range, time limit, bounds of the reward, a random policy.

`--spec horizon=200,action.low=-2,action.high=2`, or a YAML file with the same keys. They go to meta.spec and count more
than relab's table of environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.near import hint
from relab.base.numbers import is_finite
from relab.config.base import ConfigError, require
from relab.config.coerce import scalar
from relab.config.views import flatten
from relab.config.yaml_io import read_yaml

KINDS = ("discrete", "continuous", "multi_discrete")
KEYS = {  # key -> (what it is, an example)
    "env": ("text", "Hopper-v4"),
    "horizon": ("count", "1000"),
    "reward_low": ("number", "-1"),
    "reward_high": ("number", "1"),
    "action.kind": ("kind", "continuous"),
    "action.dim": ("count", "3"),
    "action.n": ("counts", "4"),
    "action.low": ("numbers", "-1"),
    "action.high": ("numbers", "1"),
    "random": ("number", "-20.5"),
}


def read_spec(option: str) -> Document:
    """The words of an option, or the file it names, as meta.spec has them."""
    flat = flatten(read_yaml(option)) if "=" not in option or Path(option).is_file() else _words(option)
    return checked(flat)


def _words(option: str) -> Document:
    values = {}
    for word in option.split(","):
        key, equals, value = (part.strip() for part in word.partition("="))
        require(bool(equals), f"`--spec` is key=value,key=value, but has {word!r}; a list is given in a YAML file")
        require(key not in values, f"`--spec` gives `{key}` twice")
        values[key] = scalar(value)
    return values


def checked(flat: Mapping[str, Any]) -> Document:
    """Flat keys -> meta.spec; an unknown key or a value of another kind is an error."""
    spec: Document = {}
    for key, value in flat.items():
        if key not in KEYS:
            raise ConfigError(f"`--spec` has no key `{key}`{hint(key, KEYS)}"
                              f" (known: {', '.join(KEYS)})")  # fmt: skip
        kind, example = KEYS[key]
        if not _fits(kind, value):
            raise ConfigError(f"`{key}` of `--spec` must be {_form(kind)}, as in {key}={example}, but is {value!r}")
        if key.startswith("action."):
            listed = kind in ("counts", "numbers") and not isinstance(value, list)
            spec.setdefault("action", {})[key.removeprefix("action.")] = [value] if listed else value
        else:
            spec[key] = {"return_mean": float(value), "return_std": 0.0, "n": 1} if key == "random" else value
    _check_bounds(spec)
    return spec


def _form(kind: str) -> str:
    words = {"text": "text", "count": "a whole number above 0", "number": "a number", "numbers": "finite numbers",
             "counts": "whole numbers above 0", "kind": f"one of {', '.join(KINDS)}"}  # fmt: skip
    return words[kind]


def _fits(kind: str, value: Any) -> bool:
    if kind in ("counts", "numbers"):
        each = value if isinstance(value, list) else [value]
        return bool(each) and all(_fits(kind.removesuffix("s"), one) for one in each)
    if kind == "text":
        return isinstance(value, str) and bool(value)
    if kind == "kind":
        return value in KINDS
    return is_finite(value) and (kind == "number" or (isinstance(value, int) and value > 0))


def _check_bounds(spec: Mapping[str, Any]) -> None:
    action = spec.get("action", {})
    low, high = action.get("low", []), action.get("high", [])
    require(not (low and high) or len(low) == len(high), "`action.low` and `action.high` must be as long as each other,"
            f" but have {len(low)} and {len(high)} numbers")  # fmt: skip
    for a, b in [*zip(low, high), (spec.get("reward_low"), spec.get("reward_high"))]:
        require(None in (a, b) or a <= b, f"a lower bound must not be above the upper one, but {a} > {b}")


def merged(spec: Mapping[str, Any], option_values: Mapping[str, Any]) -> Document:
    """What was given, over what is known; one bound of the action leaves the rest of it."""
    action_before = spec.get("action")
    action = {**(action_before if isinstance(action_before, dict) else {}), **option_values.get("action", {})}
    merged_spec = {**spec, **option_values, "given": sorted(option_values)}
    return merged_spec | ({"action": widened(action)} if action else {})


def widened(action: Mapping[str, Any]) -> Document:
    """One bound stands for all components, where the number of them is known; bounds make it continuous."""
    wide = dict(action)
    bounds = [wide[key] for key in ("low", "high") if isinstance(wide.get(key), list)]
    dim = wide.get("dim") or max((len(bound) for bound in bounds), default=0)
    for key in ("low", "high"):
        if isinstance(wide.get(key), list) and len(wide[key]) == 1 and isinstance(dim, int):
            wide[key] = wide[key] * max(dim, 1)
    if bounds:
        wide.setdefault("kind", "continuous")
        wide.setdefault("dim", dim)
    return wide
