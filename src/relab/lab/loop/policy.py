"""What may a proposal change? Keys with their ranges, what is locked whatever a file says, constraints between keys.

    policy:
      allow:
        algo.lr: {low: 1e-5, high: 1e-2, log: true}
        algo.epochs: [4, 8, 10]
      lock: [algo.gamma]
      constraints: ["algo.envs * algo.steps % algo.minibatches == 0"]
      largest_step: 10        a number may change by this factor at most in one proposal; null: by any

The seed, the evaluation, the task, the budget and what a run starts from are always locked: a change of those is no
improvement but another question. A proposal that breaks any of this is refused before anything runs.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relab.advise.proposal import shown
from relab.base.documents import Document, Settings
from relab.base.near import hint
from relab.base.numbers import is_finite, is_number
from relab.config.base import ConfigError, require
from relab.config.coerce import coerce
from relab.config.views import diff
from relab.lab.sweep import axis, expression
from relab.lab.sweep.axis import Axis

KEYS = ("allow", "lock", "constraints", "largest_step")
# Why a key is locked, by what it is called; programs of other people spell a budget in many ways.
ALWAYS = {
    r"seed|.*\.seed|sampler_seed": "it is the seed: another one is another draw, and luck is no improvement",
    r"total_steps|total_timesteps|budget|max_steps|num_env_steps|train_steps|(?:.*\.)?total_(?:time)?steps": (
        "it is the budget: a longer run is no better setting"
    ),
    r"eval|eval\..*|eval_.*|evaluate|hidden": "it is part of the evaluation, which decides what is kept",
    r"env|env\..*|env_id|env_name|task": "it is the task that everything is measured on",
    r"metric|at|direction|smallest_effect|level|last|range": "it says what counts as better",
    r"start_from|start_parts|resume_from|load_model_path": "it is what a run starts from: say `resume_from` instead",
    r"run|algo\.name": "every run has its own",
}  # fmt: skip


class RefusedError(ConfigError):
    """A proposal that must not run; the message names the key, its value, what would be allowed, and what to do."""


@dataclass(frozen=True)
class Policy:
    """What a loop may touch."""

    allow: tuple[Axis, ...]
    lock: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    largest_step: float | None = 10.0  # an order of magnitude

    @cached_property
    def axes(self) -> dict[str, Axis]:
        return {each.key: each for each in self.allow}

    def limits(self, known: Mapping[str, Any]) -> list[tuple[str, ast.expr]]:
        return [(text, expression.parse(text, known)) for text in self.constraints]

    def to_dict(self) -> Document:
        body = {"allow": {each.key: each.plain() for each in self.allow}, "lock": list(self.lock)}
        return body | {"constraints": list(self.constraints), "largest_step": self.largest_step}


def load(value: Any) -> Policy:
    """The `policy` of a loop's file."""
    shape = "`policy` must have `allow`: the settings that may change, each with its range or its values"
    require(isinstance(value, Mapping) and isinstance(value.get("allow"), Mapping) and bool(value["allow"]), shape)
    for key in value:
        require(key in KEYS, f"`policy` has the unknown key `{key}`{hint(str(key), KEYS)}")
    axes = tuple(axis.load(str(key), entry) for key, entry in value["allow"].items())
    odd = [each.key for each in axes if each.when or each.steps or each.otherwise is not None]
    require(not odd, f"`policy.allow.{odd[0] if odd else ''}` takes values or a range; `when`, `otherwise` and `steps`"
                     " belong to a sweep")  # fmt: skip
    lock, constraints = (texts(value.get(key), f"policy.{key}") for key in ("lock", "constraints"))
    step = value.get("largest_step", Policy.largest_step)
    step = None if step is None else coerce(step, float, "policy.largest_step")
    require(step is None or step > 1, f"`policy.largest_step` must be a factor above 1, or null, but is {step}")
    both = [each.key for each in axes if each.key in lock]
    require(not both, f"`{both[0] if both else ''}` is allowed and locked: take it out of one of them")
    for each in axes:
        why = always(each.key)
        require(not why, f"`policy.allow` must not have `{each.key}`: {why}; take it out")
    return Policy(axes, lock, constraints, step)


def texts(value: Any, name: str) -> tuple[str, ...]:
    """A text or a list of texts; nothing where the file says nothing."""
    every = [] if value is None else [value] if isinstance(value, str) else value
    good = isinstance(every, (list, tuple)) and all(isinstance(text, str) for text in every)
    require(good, f"`{name}` must be a list of texts, but is {value!r:.80}")
    return tuple(every)


def always(key: str) -> str:
    """Why a key is locked in every loop; empty where it is not."""
    return next((why for pattern, why in ALWAYS.items() if re.fullmatch(pattern, key)), "")


# ---- One proposal


def check(policy: Policy, change: Mapping[str, Mapping[str, Any]], parent: Settings, known: bool = False) -> list[str]:
    """What was checked, in words; RefusedError where the change must not run.

    `parent` holds the flat resolved settings that it is a change of. `known`: the value comes from a rule that knows
    it (a preset, a reference), so that it may be further away than a step into the dark.
    """
    refuse(bool(change), "a proposal must change something, but its diff is empty; give `diff: {key: {from, to}}`")
    for key, each in change.items():
        _check_key(policy, key, each["to"], parent)
        _check_from(key, each, parent)
        _check_range(policy.axes[key], each["to"])
        if not known:
            _check_step(policy, key, each)
    after = {**parent, **{key: each["to"] for key, each in change.items()}}
    for text, tree in policy.limits(after):
        values = ", ".join(f"{name} = {shown(after[name])}" for name in expression.names(tree) if name in after)
        refuse(expression.holds(tree, text, after), f"the constraint {text!r} must hold, but {values}; propose values"
               " that satisfy it")  # fmt: skip
    n = len(policy.constraints)
    return ["only allowed keys, each within its range", *([f"{n} of {n} constraints hold"] if n else [])]


def refuse(condition: bool, message: str) -> None:
    if not condition:
        raise RefusedError(message)


def _check_key(policy: Policy, key: str, to: Any, parent: Settings) -> None:
    allowed = ", ".join(policy.axes)
    why = always(key) or ("this loop's policy locks it" if key in policy.lock else "")
    refuse(not why, f"`{key}` is locked and must not become {shown(to)}: {why}; propose a change of {allowed}")
    near = hint(key, sorted({*policy.axes, *parent}), "; the nearest known one is `{}`")
    refuse(key in parent, f"`{key}` (proposed: {shown(to)}) is no setting of the parent{near}; allowed are {allowed}")
    refuse(key in policy.axes, f"`{key}` must stay {shown(parent[key])} and not become {shown(to)}: this loop's policy"
           f" allows {allowed}; add it to `policy.allow`, or propose one of these")  # fmt: skip


def _check_from(key: str, change: Mapping[str, Any], parent: Settings) -> None:
    same = not diff({"x": parent[key]}, {"x": change["from"]})
    refuse(same, f"`{key}` must be changed from what the parent has, {shown(parent[key])}, but the proposal says from"
           f" {shown(change['from'])}: it was made for another config; make it against this parent")  # fmt: skip
    moved = bool(diff({"x": change["from"]}, {"x": change["to"]}))
    refuse(moved, f"`{key}` goes from {shown(change['from'])} to itself: nothing would change")


def _check_range(each: Axis, to: Any) -> None:
    remedy = f"propose a value inside, or widen `policy.allow.{each.key}`"
    if each.values:
        there = any(not diff({"x": value}, {"x": to}) for value in each.values)
        values = ", ".join(map(str, each.values))
        refuse(there, f"`{each.key}` must be one of {values}, but is proposed as {shown(to)}; {remedy}")
        return
    span = f"{each.low:g} to {each.high:g}"
    good = is_finite(to) and each.low <= to <= each.high
    refuse(good, f"`{each.key}` must be a number from {span}, but is proposed as {shown(to)}; {remedy}")
    refuse(not each.whole or to == int(to), f"`{each.key}` must be a whole number from {span}, but is proposed as"
           f" {shown(to)}; {remedy}")  # fmt: skip


def _check_step(policy: Policy, key: str, change: Mapping[str, Any]) -> None:
    factor = factor_of(change["from"], change["to"])
    most = policy.largest_step
    if most is None or factor is None or factor <= most * (1 + 1e-9):
        return
    refuse(False, f"`{key}` would go from {shown(change['from'])} to {shown(change['to'])}, {factor:.3g} times in one"
           f" step, but `policy.largest_step` is {most:g}: so large a change of one number is more often a slip than an"
           " idea; go there in steps, or raise `policy.largest_step`")  # fmt: skip


def factor_of(a: Any, b: Any) -> float | None:
    """How many times larger or smaller a number becomes; None for what is no number, zero, or changes its sign."""
    if (
        not (is_number(a) and is_number(b))
        or isinstance(a, bool)
        or isinstance(b, bool)
        or a == 0
        or b == 0
        or a * b < 0
    ):
        return None
    return max(abs(a / b), abs(b / a)) if math.isfinite(a) and math.isfinite(b) else None


def unnamed(change: Mapping[str, Any], named: Sequence[str], rationale: str) -> list[str]:
    """Keys that a whole config would change and that nobody said anything about: neither an override nor the reasons.

    This is how a loop lost a good policy: only the changed keys were written down, and were then laid over a template
    that differed from the parent in others.
    """
    words = set(re.findall(r"[\w.]+", rationale))
    said = {*named, *words}
    return [key for key in change if key not in said and key.rpartition(".")[2] not in said]
