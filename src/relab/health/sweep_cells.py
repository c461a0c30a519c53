"""Which cells of a sweep do these runs fill? Points of a plan that lies beside them, or of the grid that they form."""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from relab.base.documents import Settings
from relab.base.numbers import is_number
from relab.config.views import canonical, flatten
from relab.formats.read import plans
from relab.health.rules.design import QUIET, QUIET_WORD
from relab.health.view import View, ViewGroup
from relab.record.clock import elapsed
from relab.record.state import seed_of
from relab.stats import axes as axis

NO_FACTOR = re.compile(r"(dir|path|file|name|id|tag|notes?|output|command|url|time|date|host)$", re.I)
MOST_KEYS = 4  # settings; configs that differ in more are different experiments, not arms of one
PLAIN = (bool, int, float, str)


def factors(view: View) -> Settings:
    """Settings that may be an axis: no names, no places, no seed."""
    return {k: v for k, v in view.config.items() if isinstance(v, PLAIN) and not k.startswith(QUIET)
            and not NO_FACTOR.search(k) and k.removeprefix("foreign.") != "seed"}  # fmt: skip


def whole(view: View) -> bool:
    """Whether a run came to its end."""
    short = view.planned is not None and view.last_step < 0.95 * view.planned
    return view.state in ("finished", "ended", "unknown", "") and not short


def short_value(value: Any) -> str:
    """A setting's value in a message."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ---- A plan beside the runs


@dataclass
class Filled:
    """A plan, and what there is of it: cell number -> its views."""

    plan: plans.Plan
    there: dict[int, list[View]] = field(default_factory=dict)

    @property
    def whole(self) -> dict[int, View]:
        first = {at: next((v for v in views if whole(v)), None) for at, views in self.there.items()}
        return {at: view for at, view in first.items() if view is not None}

    @property
    def broken(self) -> list[View]:
        return [views[0] for at, views in self.there.items() if at not in self.whole]

    def seconds(self) -> float | None:
        """Time per cell: what whole runs took, else how fast they ended one after another in the plan's order."""
        took = [t for view in self.whole.values() if (t := run_seconds(view)) is not None]
        if took:
            return statistics.median(took)
        ends = [(at, plans.seconds(v.meta.get("ended"))) for at, v in sorted(self.whole.items())]
        known = [(at, end) for at, end in ends if end is not None]
        in_order = all(a[1] < b[1] for a, b in pairwise(known))
        if self.plan.started is None or not known or not in_order:
            return None
        return statistics.median((end - self.plan.started) / (at + 1) for at, end in known)


def filled(groups: list[ViewGroup]) -> list[Filled]:
    """Each plan that lies beside these runs."""
    sweeps: dict[str, Filled] = {}
    for view in (v for group in groups for v in group.views):
        plan = plans.of(view.history.folder)
        if plan is not None:
            at = plan.place(view.history.folder, view.history.config)
            mine = sweeps.setdefault(str(plan.source), Filled(plan))
            if at is not None:
                mine.there.setdefault(at, []).append(view)
    return [each for each in sweeps.values() if each.there]


def run_seconds(view: View) -> float | None:
    seconds = view.meta.get("seconds")
    if is_number(seconds) and seconds > 0:
        return float(seconds)
    whole = elapsed(view.history)
    return whole if math.isfinite(whole) and whole > 0 else None


# ---- The grid that configs form


@dataclass
class Seen:
    """Configs of one task by the settings in which they differ."""

    groups: list[ViewGroup]
    points: list[Settings]
    axes: dict[str, list[Any]]

    @property
    def cells(self) -> axis.Cells:
        return axis.cells_of(self.points, [[] for _ in self.points])


def seen(groups: list[ViewGroup]) -> list[Seen]:
    """Configs of one environment and algorithm that differ in a few settings; children of other runs are no arms."""
    tasks: dict[str, list[ViewGroup]] = {}
    for group in groups:
        view = group.views[0]
        if view.config and not any(v.meta.get("parent") for v in group.views):
            flat = flatten(view.history.config)
            tasks.setdefault(repr((flat.get("env.name"), view.spec.get("env"), view.algo)), []).append(group)
    return [made for mine in tasks.values() if (made := _seen(mine)) is not None]


def _seen(groups: list[ViewGroup]) -> Seen | None:
    points = [{k: v for k, v in factors(g.views[0]).items() if not QUIET_WORD.search(k)} for g in groups]
    keys = [k for k in dict.fromkeys(k for p in points for k in p) if len({canonical(p.get(k)) for p in points}) > 1]
    if not 1 <= len(keys) <= MOST_KEYS:
        return None
    mine = [{k: p[k] for k in keys if k in p} for p in points]
    return Seen(groups, mine, {k: axis.levels_of([p[k] for p in mine if k in p]) for k in keys})


def seeds_missing(grid: Seen) -> dict[int, list[Any]]:
    """Config -> seeds that at least half of the configs have run and this one has not, or not to the end."""
    have = [{str(seed_of(v.history, v.name)) for v in g.views if whole(v)} for g in grid.groups]
    common = [
        s for s in dict.fromkeys(s for h in have for s in sorted(h)) if sum(s in h for h in have) * 2 >= len(have)
    ]
    return {i: gone for i, h in enumerate(have) if (gone := [s for s in common if s not in h])}
