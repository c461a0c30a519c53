"""May this change be run? It is legal, changes something, has not been run, and what it costs against the budget.

Legality is asked of the config classes alone: a run's record may name an environment of somebody's own (module:Class),
and reading must not import it. `relab train` checks the whole config once more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from relab.advise.predict import ENOUGH, LARGEST, has_values, same_task, unlike
from relab.base.text import plural
from relab.config import layers as config
from relab.config import registry
from relab.config.coerce import coerce
from relab.health.view import View
from relab.record.state import seed_of

Changes = Mapping[str, tuple[Any, Any]]
FOREIGN = "whether the values are legal is not checked: the settings are another program's"


class RejectedError(Exception):
    """A change that must not be proposed; the text says why."""


def check(view: View, changes: Changes, others: Sequence[View]) -> tuple[dict[str, str], list[int]]:
    """What was checked, in words, and seeds that are new to the config; RejectedError where a check fails."""
    moved = [key for key, (now, then) in changes.items() if config.diff({"x": now}, {"x": then})]
    if len(moved) < len(changes) or not moved:
        raise RejectedError("it would change nothing")
    if any(type(x) is int and abs(x) >= LARGEST for pair in changes.values() for x in pair):
        raise RejectedError("its numbers are too large to be meant")
    legal = check_legal(view, changes)
    repeat, seeds = check_repeat(view, changes, others)
    return {"config": legal, "repeat": repeat, "budget": check_budget(view, changes)}, seeds


def check_legal(view: View, changes: Changes) -> str:
    """The config with the change, resolved and checked; as far as that needs no code of the run's own."""
    flat = config.flatten(view.history.config)  # one value a key: what is looked at is what is resolved
    algo, env = str(flat.get("algo.name")), flat.get("env.name")
    values = {key: then for key, (_, then) in changes.items()}
    try:
        if view.history.trained_by_relab and registry.is_ours(env, algo):
            layers = [config.Layer("parent", flat), config.Layer("proposal", values)]
            config.resolve(layers, presets=False)
            return "resolves and passes its checks"
        if algo in registry.ALGOS and (ours := {k: v for k, v in values.items() if k.startswith("algo.")}):
            check_algo(algo, view, ours)
            return "each value is legal on its own; the rest is not relab's to check"
    except (config.ConfigError, TypeError) as error:
        raise RejectedError(f"the config would not be legal: {error}") from None
    if view.history.trained_by_relab:
        return f"not checked here: {env} with {algo} is code of its own, which `relab train` runs and checks"
    return FOREIGN


def check_algo(algo: str, view: View, values: Mapping[str, Any]) -> None:
    """The algorithm's own class with these values over its defaults, each checked alone."""
    cls, leaves = registry.algo_config_class(algo), config.schema(algo, None)
    for key, value in values.items():
        if key in leaves:
            name = key.removeprefix("algo.")
            config.check(dataclasses.replace(cls(), **{name: coerce(value, leaves[key].type, key)}))


def check_repeat(view: View, changes: Changes, others: Sequence[View]) -> tuple[str, list[int]]:
    """A config that ran on five seeds is known, and is not run again; with fewer, other seeds are."""
    twins = [v for v in others if same_task(v, view) and has_values(v, changes) and not unlike(v, view, changes)]
    used = {seed for v in twins if type(seed := seed_of(v.history, v.name)) is int}
    if len(twins) >= ENOUGH:
        raise RejectedError(f"that config has run: {twins[0].name} and {len(twins) - 1} more")
    own = seed_of(view.history, view.name)
    first = own if type(own) is int and 0 <= own < LARGEST else 0
    seeds = [seed for seed in (first, *range(1000)) if seed not in used]
    fresh = list(dict.fromkeys(seeds))[: ENOUGH - len(used)]
    if not twins:
        return "no run here has this config", fresh
    return f"that config has run as {twins[0].name} ({plural(len(used) or 1, 'seed')}); seed {fresh[0]} is new", fresh


def check_budget(view: View, changes: Changes) -> str:
    old = view.config.get("total_steps")
    new = changes.get("total_steps", (old, old))[1]
    if type(old) is not int or type(new) is not int:
        return "how many steps it takes is not known"
    if new <= old:
        return f"within this run's {old:,} steps"
    return f"{new / old:.3g} times this run's {old:,} steps"
