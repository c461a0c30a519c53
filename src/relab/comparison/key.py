"""May these runs be compared? What must be the same, what is different, what nobody wrote down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relab.base.documents import Document
from relab.config.views import flatten
from relab.runs.grouping import Group, Run

# Two groups with different values of one of these measure different things.
MUST = ("environment", "observation", "action", "horizon", "reward", "steps")
# These may differ: the comparison allows for it and says so.
MAY = ("evaluation", "budget")
GYM = re.compile(r"^(?:gym:|relab/)")


def facts_of(run: Run, metric: str = "") -> Document:
    """What a run's outcome depends on besides its settings; None is unknown."""
    spec = run.history.meta.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    low, high = spec.get("reward_low"), spec.get("reward_high")
    facts = {
        "environment": env_of(run),
        "observation": spec.get("obs_dim"),
        "action": _action(spec.get("action")),
        "horizon": spec.get("horizon"),
        "reward": None if low is None and high is None else (_rounded(low), _rounded(high)),
        "steps": _axis(run, metric, spec),
        "evaluation": _protocol(run, metric),
        "budget": flatten(run.history.config).get("total_steps"),
    }
    return {name: _fact(value) for name, value in facts.items()}


def env_of(run: Run) -> str | None:
    """The environment's id as Gymnasium would spell it: relab's cartpole-v1 is CartPole-v1 (docs/environments.md)."""
    spec = run.history.meta.get("spec")
    declared = spec.get("env") if isinstance(spec, dict) else None
    name = declared or flatten(run.history.config).get("env.name")
    return GYM.sub("", str(name)).lower() if name else None


def _rounded(bound: Any) -> Any:
    """Bounds of one environment come from several tables, with more or fewer digits."""
    return float(f"{bound:.6g}") if isinstance(bound, (int, float)) else _fact(bound)


def _action(action: Any) -> Any:
    if not isinstance(action, dict) or not action.get("kind"):
        return None
    if action["kind"] == "continuous":
        return ("continuous", _fact(action.get("dim")))
    return (_fact(action["kind"]), _fact(action.get("n") or []))


def _fact(value: Any) -> Any:
    """A list or a mapping as something that can be compared and counted, whatever a stranger's file holds there."""
    if isinstance(value, list):
        return tuple(map(_fact, value))
    return str(value) if isinstance(value, dict) else value


def _axis(run: Run, metric: str, spec: Document) -> str | None:
    """With one agent a step of the agent is a step of the environment."""
    axis = run.history.axes.get(metric)
    return "env_steps" if axis == "agent_steps" and spec.get("agents") in (None, 1) else axis


def _protocol(run: Run, metric: str) -> str | None:
    mode = metric.rpartition("_")[2]
    if not metric.startswith("eval/"):
        return "training episodes" if metric.startswith("return/") else None
    rows = [row for row in run.history.evals if row.get("mode") == mode]
    return f"{len(rows[-1].get('episodes') or ())} episodes, {mode}" if rows else None


# ---- Groups to tasks


@dataclass
class Conflict:
    """Why a group is not compared with others: the facts that differ, as (name, here, there)."""

    here: Group
    there: Group | None
    facts: list[tuple[str, Any, Any]] = field(default_factory=list)


def conflicts(a: Document, b: Document) -> list[tuple[str, Any, Any]]:
    """The facts that forbid a comparison. Unknown ones do not, but an environment known on one side only does."""
    clashes = [(name, a[name], b[name]) for name in MUST if None not in (a[name], b[name]) and a[name] != b[name]]
    if (a["environment"] is None) != (b["environment"] is None):
        clashes.insert(0, ("environment", a["environment"], b["environment"]))
    return clashes


def maybe_other_tasks(a: Group, b: Group) -> bool:
    """Whether nobody can know that two groups have one task: neither says its environment, and they are of different
    algorithms, which often means of different actions."""
    algos = [flatten(group.config).get("algo.name") for group in (a, b)]
    return all(env_of(group.runs[0]) is None for group in (a, b)) and None not in algos and algos[0] != algos[1]


def tasks(groups: Sequence[Group], metric: str = "", named: bool = True) -> list[list[Group]]:
    """Groups that may be compared with each other, the largest set first; `named`: by somebody who knows the task."""
    known = {id(group): facts_of(group.runs[0], metric) for group in groups}

    def fit(a: Group, b: Group) -> bool:
        return not conflicts(known[id(a)], known[id(b)]) and (named or not maybe_other_tasks(a, b))

    sets: list[list[Group]] = []
    for group in groups:
        task = next((t for t in sets if all(fit(group, other) for other in t)), None)
        if task is None:
            sets.append([group])
        else:
            task.append(group)
    return sorted(sets, key=lambda task: (-len(task), -sum(len(g.runs) for g in task)))


def spread_of(groups: Iterable[Group], metric: str) -> dict[str, dict[Any, list[str]]]:
    """Fact -> value -> labels of the groups that have it: what --why prints."""
    spread: dict[str, dict[Any, list[str]]] = {name: {} for name in (*MUST, *MAY)}
    for group in groups:
        facts = facts_of(group.runs[0], metric)
        for name, value in facts.items():
            spread[name].setdefault(value, []).append(group.label)
    return spread
