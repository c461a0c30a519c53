"""Which runs form a variant, and what is it called? Groups by config, or by one key; a seed twice counts once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relab.base.documents import Settings
from relab.base.near import hint as near_hint
from relab.config.base import require
from relab.config.layers import fitting_keys
from relab.config.views import MISSING, flatten
from relab.runs import grouping, identity
from relab.runs.grouping import Group, Run, shown

PATH = "path"  # --by path: the paths on the command line against each other
NAME = "name"  # --by name: the runs' names without their seeds, whatever their settings
SETTINGS = "settings"  # --by settings: runs of the same settings are seeds of one config, whatever their names


@dataclass
class Arm:
    """A variant: runs that count, one for each seed and config."""

    label: str
    groups: list[Group]
    runs: list[Run]
    notes: list[str] = field(default_factory=list)

    @property
    def config(self) -> Settings:
        return flatten(self.groups[0].config)

    @property
    def parts(self) -> list[str]:
        """For each run, which of the configs it pools it has; empty where it is but one."""
        if len(self.groups) == 1:
            return [""] * len(self.runs)
        of = {id(run): group.key for group in self.groups for run in group.runs}
        return [of[id(run)] for run in self.runs]

    @property
    def sources(self) -> list[str]:
        return sorted({run.history.source for run in self.runs})


def arms_of(groups: Sequence[Group], by: str | None = None, origins: Mapping[int, str] | None = None) -> list[Arm]:
    """A variant for each config; with `by` for each value of that full key, whatever else differs."""
    if by is None or by == SETTINGS:
        return [_arm(group.label, [group]) for group in groups]
    parts: dict[str, dict[str, Group]] = {}
    for group in groups:
        for run in group.runs:
            label = _value(run, by, origins or {})
            parts.setdefault(label, {}).setdefault(group.key, Group(group.key, [], group.label)).runs.append(run)
    return [_arm(label, list(by_config.values()), by) for label, by_config in sorted(parts.items(), key=by_size)]


def with_setting(groups: Sequence[Group], key: str) -> tuple[list[Group], list[Group]]:
    """Groups whose runs have a setting, and those whose record does not tell it."""
    have = [group for group in groups if key in flatten(group.runs[0].history.config)]
    able = {id(group) for group in have}
    return have, [group for group in groups if id(group) not in able]


def by_size(item: tuple[str, Any]) -> tuple[Any, ...]:
    """lr=0.001 before lr=0.01, which words would not say."""
    value = item[0].rpartition("=")[2]
    try:
        return (0, float(value), "")
    except ValueError:
        return (1, 0.0, value)


def _value(run: Run, key: str, origins: Mapping[int, str]) -> str:
    if key == PATH:
        return origins.get(id(run), "here")
    if key == NAME:
        return identity.stem(run.name) or run.name
    return f"{key.removesuffix('.name').rpartition('.')[2]}={shown(flatten(run.history.config).get(key, MISSING))}"


def full_key(by: str, groups: Sequence[Group]) -> str:
    """lr or learning_rate -> algo.lr, where only one key is meant."""
    keys = dict.fromkeys(k for group in groups for run in group.runs for k in flatten(run.history.config))
    fits = fitting_keys(by, keys)
    hint = (
        near_hint(by, sorted(keys), "; the nearest key is `{}`") if keys else "; they have no settings in their record"
    )
    require(len(fits) == 1, f"--by {by} must be one key of the runs' settings, but fits {', '.join(fits) or 'none'}"
            + ("" if fits else hint))  # fmt: skip
    return fits[0]


def _arm(label: str, groups: list[Group], by: str = "") -> Arm:
    runs = [run for group in groups for run in group.distinct]
    counted = {id(run) for run in runs}  # runs hold arrays, which do not compare
    twice = [run for group in groups for run in group.runs if id(run) not in counted]
    notes = [f"{label}: seed {run.seed_name} is there more than once; {run.name} is left out" for run in twice[:2]]
    notes += [f"{label}: {len(twice) - 2} more such runs are left out"] if len(twice) > 2 else []
    if len(groups) > 1:
        keys = [k for k in grouping.differing(groups) if k != by]
        notes.append(f"{label} pools {len(groups)} configs that differ in {', '.join(keys[:3]) or 'nothing known'}")
    return Arm(label, groups, runs, notes)
