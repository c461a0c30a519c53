"""What could be tried where no rule says so? A point of the allowed ranges: away from their ends, near nothing refuted.

Keys take turns, the one that was sampled least first, so that a difference can be assigned to one change (`at_once`
changes more). Values come from Sobol's sequence, a random stream, or Optuna's TPE, which hears of earlier changes
what their runs logged, never what the hidden evaluation said.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relab.base import streams
from relab.base.documents import Settings
from relab.config.base import require
from relab.config.lineage import FromTo
from relab.config.views import diff
from relab.lab.loop.plan import Loop
from relab.lab.loop.policy import RefusedError, check
from relab.lab.sweep.axis import Axis
from relab.lab.sweep.points import shares

EDGE = 0.05  # of a range at each end that no proposal lies in: what sits on a border says that the range is wrong
NEAR = 0.05  # of a range: nearer than this to what was refuted is the same again
TRIES = 64


@dataclass(frozen=True)
class Past:
    """A change that was tried: from which settings, what it changed, what its runs logged (larger is better)."""

    parent: str
    change: Mapping[str, FromTo]
    worth: float | None
    source: str
    kept: bool


def name_of(plan: Loop) -> str:
    """The sampler that is used: Optuna's where it is installed."""
    there = importlib.util.find_spec("optuna") is not None
    require(plan.sampler != "optuna" or there, "`sampler: optuna` needs Optuna: pip install 'relab[optuna]'; or use"
            " sobol, random or auto")  # fmt: skip
    return ("optuna" if there else "sobol") if plan.sampler == "auto" else plan.sampler


def draw(plan: Loop, parent: Settings, best: str, past: Sequence[Past]) -> dict[str, FromTo] | None:
    """A change that passes the policy and is near nothing that was refuted; None where none is left."""
    n = len(past)
    for key_set in _turns(plan, past):
        for point in _points(plan, key_set, parent, past, n):
            change: dict[str, FromTo] = {key: {"from": parent[key], "to": to} for key, to in point.items()
                                         if diff({"x": parent[key]}, {"x": to})}  # fmt: skip
            if len(change) == len(key_set) and not still(plan, change) and not tried(plan, change, best, past):
                with contextlib.suppress(RefusedError):
                    check(plan.policy, change, parent)
                    return change
    return None


def _turns(plan: Loop, past: Sequence[Past]) -> Iterator[list[Axis]]:
    """Which keys are sampled: those with the fewest samples so far first; all of them in turn until one has a point."""
    axes = plan.policy.allow
    size = min(plan.at_once, len(axes))
    used = {each.key: sum(each.key in one.change for one in past if one.source == "sampler") for each in axes}
    order = sorted(axes, key=lambda each: used[each.key])  # stable: as the file has them
    for start in range(len(order)):
        yield [order[(start + i) % len(order)] for i in range(size)]


def _points(plan: Loop, keys: list[Axis], parent: Settings, past: Sequence[Past], n: int) -> Iterator[Settings]:
    if name_of(plan) == "optuna":
        yield from _by_optuna(plan, keys, parent, past, n)
    method = "random" if plan.sampler == "random" else "sobol"
    # every sampled proposal of these keys goes on in the sequence where the last one stopped
    skip = sum({*one.change} == {each.key for each in keys} for one in past)
    for i, u in enumerate(
        shares(method, keys, streams.seed_for(plan.sampler_seed, "loop", *_codes(keys)) % 2**31, TRIES)
    ):
        if i >= skip:
            yield {
                each.key: inner(each, float(x), parent[each.key], plan.policy.largest_step) for each, x in zip(keys, u)
            }


def _codes(keys: Sequence[Axis]) -> list[int]:
    return [sum(map(ord, each.key)) for each in keys]


def inner(each: Axis, u: float, now: Any, step: float | None) -> Any:
    """The value at a share u of what may be proposed: inside of the ends, within a step of the present value."""
    if each.values:
        return each.at(u)
    low, high = EDGE, 1 - EDGE
    if step is not None and isinstance(now, (int, float)) and now > 0:
        ends = [min(max(share_of(each, x), low), high) for x in (now / step, now * step)]
        low, high = ends if ends[1] - ends[0] > NEAR else (low, high)  # a present value far outside binds nothing
    return each.at(low + u * (high - low))


def share_of(each: Axis, value: Any) -> float:
    """Where a value lies on its axis: 0 at the low end, 1 at the high one; of a list, by its place."""
    if each.values:
        place = next((i for i, x in enumerate(each.values) if not diff({"x": x}, {"x": value})), 0)
        return (place + 0.5) / len(each.values)
    if not isinstance(value, (int, float)) or (each.log and value <= 0):
        return 0.0
    if each.log:
        return (math.log(value) - math.log(each.low)) / (math.log(each.high) - math.log(each.low))
    return (value - each.low) / (each.high - each.low)


def still(plan: Loop, change: Mapping[str, FromTo]) -> bool:
    """Whether every new value is hardly another one: 1 -> 1.02 is no idea that is worth a run."""
    axes = [(plan.policy.axes[key], each) for key, each in change.items()]
    return all(each.is_range and not each.whole and abs(share_of(each, c["to"]) - share_of(each, c["from"])) < NEAR
               for each, c in axes)  # fmt: skip


def tried(plan: Loop, change: Mapping[str, FromTo], best: str, past: Sequence[Past]) -> Past | None:
    """The earlier change of the same keys of the same config that came to (nearly) the same values and was not kept."""
    axes = plan.policy.axes
    for one in past:
        if one.kept or one.parent != best or set(one.change) != set(change):
            continue
        known = [key for key in change if key in axes]
        gaps = [
            abs(share_of(axes[key], change[key]["to"]) - share_of(axes[key], one.change[key]["to"])) for key in known
        ]
        close = [gap < (1e-9 if axes[key].values or axes[key].whole else NEAR) for key, gap in zip(known, gaps)]
        if all(close):
            return one
    return None


# ---- Optuna


def _by_optuna(plan: Loop, keys: list[Axis], parent: Settings, past: Sequence[Past], n: int) -> Iterator[Settings]:
    """TPE over all allowed keys, those that do not take their turn fixed at the present values."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    axes = {each.key: each for each in plan.policy.allow}
    kinds = {key: _kind(each) for key, each in axes.items()}
    fixed = {key: parent[key] for key in axes if key not in {each.key for each in keys}}
    for i in range(TRIES // 4):
        seed = streams.seed_for(plan.sampler_seed, "optuna", n, i) % 2**32
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        for one in past:
            point = {**parent, **{key: each["to"] for key, each in one.change.items()}}
            params = {key: point[key] for key in axes}
            inside = all(_holds(kinds[key], params[key]) for key in axes)
            if one.worth is not None and math.isfinite(one.worth) and inside:
                study.add_trial(optuna.trial.create_trial(params=params, distributions=kinds, value=one.worth))
        inside_now = {key: value for key, value in fixed.items() if _holds(kinds[key], value)}
        study.sampler = optuna.samplers.PartialFixedSampler(inside_now, study.sampler)
        trial = study.ask(kinds)
        yield {each.key: _written(each, trial.params[each.key]) for each in keys}


def _kind(each: Axis) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if each.values:
        return CategoricalDistribution(list(each.values))
    if each.whole:
        return IntDistribution(int(each.low), int(each.high), log=each.log)
    return FloatDistribution(each.at(EDGE), each.at(1 - EDGE), log=each.log)


def _holds(kind: Any, value: Any) -> bool:
    choices = getattr(kind, "choices", None)
    if choices is not None:
        return value in choices
    return isinstance(value, (int, float)) and kind.low <= value <= kind.high


def _written(each: Axis, value: Any) -> Any:
    """As it will be written into files and read again."""
    return float(f"{value:.12g}") if each.is_range and not each.whole else value
