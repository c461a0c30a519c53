"""Which runs have the same settings and are not one config, and which are taken for one? Both are said."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from relab.base.text import number
from relab.comparison.arms import NAME, SETTINGS
from relab.config.views import flatten
from relab.runs import identity
from relab.runs.grouping import Group, Run

MOST = 4  # names: where each run has one of its own, they say nothing


def told_apart(groups: Sequence[Group], by: str | None) -> list[str]:
    """Groups that only their names tell apart, with the numbers that say that there is something to tell."""
    if by is not None:
        return []
    twins: dict[str, list[Group]] = {}
    for group in groups:
        twins.setdefault(identity.settings_of(group.key), []).append(group)
    return [_told(members) for members in twins.values() if len(members) > 1]


def _told(groups: Sequence[Group]) -> str:
    labels = ", ".join(group.label for group in groups[:4]) + (" ..." if len(groups) > 4 else "")
    pairs = [(a, b, where) for x, y in itertools.combinations(groups, 2) for a in x.runs for b in y.runs
             if repr(a.seed) == repr(b.seed) and (where := identity.parting(a.history, b.history))]  # fmt: skip
    how = _proof(*pairs[0]) if pairs else "their numbers differ"
    return (
        f"{labels} {_alike(groups[0])}, but {how}. Something that is in no setting differs (a wrapper, the code), so"
        " they are told apart by name; --by settings takes them for seeds of one config"
    )


def _alike(group: Group) -> str:
    """Where nothing is known that could differ, nothing is said to be the same."""
    known = set(flatten(group.config)) - {"seed", "algo.name", "env.name"}
    return "have the same settings" if known else "have no settings in their logs"


def _proof(a: Run, b: Run, where: identity.Parting) -> str:
    seed = "without a seed" if a.seed is None else f"with seed {a.seed_name}"
    return (
        f"{a.name} and {b.name}, both {seed}, have {where.metric} {number(where.a)} and {number(where.b)}"
        f" at step {where.step:,}"
    )


def taken_together(groups: Sequence[Group], by: str | None) -> list[str]:
    """Groups whose runs have several names that are more than seeds: settings say that they are one."""
    if by not in (None, SETTINGS):
        return []
    notes = []
    for group in groups:
        stems = dict.fromkeys(identity.stem(run.name) for run in group.distinct)
        if 1 < len(stems) <= MOST and all(stems):
            notes.append(f"{', '.join(stems)} {_alike(group)} and count as seeds of one config; --by {NAME}"
                         " tells them apart")  # fmt: skip
    return notes
