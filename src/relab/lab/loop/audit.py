"""Does a finished run count? It had its seed, its budget and the locked evaluation, and its number is a possible one.

What a proposal may not ask for, a run may still have done: a program that takes its seed from elsewhere, trains for
longer than it was told, or logs a success rate of 1,715. Such a run is void: it is named, and counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from relab.base.numbers import is_number
from relab.config.views import diff, flatten
from relab.lab.experiment.cells import Cell
from relab.lab.experiment.conclude import find_column
from relab.lab.loop.deciding import Number
from relab.lab.loop.plan import Loop
from relab.record.bounds import ANY, bounds_of
from relab.record.history import History
from relab.record.state import steps_of

SLACK = 0.02  # of the budget, and one iteration: the last one is made whole
ROUGH = 0.1  # the same of a foreign program, of which nobody knows what an iteration is
BUDGETS = ("total_steps", "total_timesteps", "budget")


def bounds(plan: Loop, run: History | None) -> tuple[float, float]:
    """What the primary metric can be at all: as the file says, else as the environment does."""
    if plan.range is not None:
        return plan.range
    if plan.at == "first_step_reaching" or run is None:
        return ANY
    return bounds_of(run, "success" if plan.at == "success_rate" else find_column(run, plan.metric) or plan.metric)


def flaws(plan: Loop, cell: Cell, run: History, settings: Mapping[str, Any], number: Number) -> list[str]:
    """Why a run does not count; empty for one that does."""
    checks = (_seed(cell, run), _budget(plan, run), _evaluation(plan, run, settings), _range(plan, run, number))
    return [why for why in checks if why]


def _seed(cell: Cell, run: History) -> str:
    seed = run.meta.get("seed", flatten(run.config).get("seed"))
    logged = flatten(run.config).get("seed", seed), run.meta.get("logged_seed")
    wrong = [x for x in (seed, *logged) if type(x) is int and x != cell.seed]
    return f"its seed must be {cell.seed}, but its record has {wrong[0]}" if wrong else ""


def _budget(plan: Loop, run: History) -> str:
    """Neither its settings nor its steps go beyond what every run may have."""
    if plan.budget is None:
        return ""
    flat = flatten(run.config)
    said = next((flat[key] for key in BUDGETS if is_number(flat.get(key))), plan.budget)
    iteration = _iteration(flat)
    steps = steps_of(run)
    if said > plan.budget:
        return f"its budget must be {plan.budget:,} steps, but its settings say {said:,.0f}"
    if steps > plan.budget * (1 + (ROUGH if plan.command else SLACK)) + iteration:
        return f"its budget must be {plan.budget:,} steps, but it went on to step {steps:,.0f}"
    return ""


def _iteration(flat: Mapping[str, Any]) -> float:
    sizes = [x for key in ("algo.envs", "algo.steps") if type(x := flat.get(key)) is int]
    return float(math.prod(sizes)) if len(sizes) == 2 else 0.0


def _evaluation(plan: Loop, run: History, settings: Mapping[str, Any]) -> str:
    if plan.command:
        return ""
    mine, base = flatten(run.config), flatten(settings)
    locked = [key for key in {**mine, **base} if key.startswith(("eval.", "env."))]
    other = [key for key in locked if diff({"x": mine.get(key)}, {"x": base.get(key)})]
    if not other:
        return ""
    return f"`{other[0]}` is locked at {base.get(other[0])!r}, but its record has {mine.get(other[0])!r}"


def _range(plan: Loop, run: History, number: Number) -> str:
    low, high = bounds(plan, run)
    slack = 1e-9 * max(1.0, abs(low) if math.isfinite(low) else 1.0, abs(high) if math.isfinite(high) else 1.0)
    if not math.isnan(number.value) and not low - slack <= number.value <= high + slack:
        return f"{plan.metric} must lie in {low:g} to {high:g}, but is {number.value:g}: what counts it is wrong"
    return ""
