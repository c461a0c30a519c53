"""Which settings would mend what a rule found? The few words in which a rule's declaration says so.

`mends` names the settings that can cause a finding, each with the direction in which it is mended; `fallback` the
changes to make, the first that changes anything, where no run and no preset has a better value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DOWN, UP, ANY = -1, 1, 0


@dataclass(frozen=True)
class Change:
    """One change of a setting, without a value that anybody has tried."""

    key: str
    how: str  # scale, set, or raise (to a least value)
    to: Any  # a factor, or the value
    why: str = "a cautious step: no run here and no preset says more"


def scaled(key: str, factor: float) -> Change:
    return Change(key, "scale", factor)


def set_to(key: str, value: Any) -> Change:
    return Change(key, "set", value)


def at_least(key: str, value: float, why: str) -> Change:
    return Change(key, "raise", value, why)


SMALLER_STEPS = {"algo.lr": DOWN, "algo.epochs": DOWN, "algo.max_grad_norm": DOWN, "algo.clip": DOWN}
LARGER_STEPS = {"algo.lr": UP, "algo.max_grad_norm": UP, "algo.adam_eps": DOWN, "algo.ent_coef": DOWN}
SLOWER = scaled("algo.lr", 1 / 3)
MUCH_SLOWER = scaled("algo.lr", 0.1)
SMALLER_BONUS = scaled("algo.ent_coef", 0.1)
SCALED_REWARDS = set_to("algo.norm_return", True)


def in_words(mends: Mapping[str, int], fallback: Iterable[Change] = ()) -> str:
    """What a rule would change, in words; empty where it names no setting.

    >>> in_words({"algo.lr": DOWN, "algo.gamma": ANY}, [scaled("algo.lr", 0.1)])
    'algo.lr lower; algo.gamma, which way is not known; else algo.lr times 0.1'
    """
    ways = {DOWN: "lower", UP: "higher"}
    first = ", ".join(f"{key} {ways[way]}" for key, way in mends.items() if way != ANY)
    unknown = ", ".join(key for key, way in mends.items() if way == ANY)
    words = {"scale": "times {:.2g}", "set": "set to {}", "raise": "at least {}"}
    then = ", ".join(f"{change.key} {words[change.how].format(change.to)}" for change in fallback)
    open_ = f"{unknown}, which way is not known" if unknown else ""
    return "; else ".join(part for part in ("; ".join(filter(None, (first, open_))), then) if part)
