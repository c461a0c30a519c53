"""What is a run's cost? Runs whose steps are those of another counter: simulator steps in place of iterations.

    relab compare runs/ --axis sim_steps

A run that re-rolls states takes a thousand steps of the simulator where its batch counts one. On the axis of all steps
(`data/sim_steps`, evaluations and re-rollouts included) runs are compared at equal cost; `first_step_reaching` then
tells what a level cost. Between two rows of the counter it is taken to rise evenly, from 0 at step 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relab.base.documents import Document
from relab.base.errors import NotFoundError
from relab.comparison.numbers import unfinished
from relab.config.base import require
from relab.record import glossary
from relab.record.history import Column, History, is_step
from relab.runs.grouping import Run
from relab.runs.verdict import verdict_of

COUNTERS = ("sim_steps", "env_steps", "agent_steps", "updates", "episodes", "iteration")


def along(runs: Sequence[Run], counter: str) -> tuple[list[Run], list[str]]:
    """(copies of the runs whose rows lie where the counter stood, what must be said); NotFoundError: none has it."""
    require(counter in COUNTERS, f"`--axis` must be one of {', '.join(COUNTERS)}, but got {counter!r:.80}")
    name = f"data/{counter}"
    lacking = [run.name for run in runs if not counts(run.history, counter)]
    if len(lacking) == len(runs):
        raise NotFoundError(f"`--axis {counter}` needs the metric {name}, but none of the {len(runs)} runs has it;"
                            " leave it out to compare by the runs' own steps")  # fmt: skip
    cut = [run.name for run in runs if unfinished(run)]
    placed = [run if run.name in lacking else on(run, moved(run.history, counter)) for run in runs]
    notes = [f"steps count {name}: {glossary.AXES[counter]}"]
    notes += [f"{each} counts no {name} and keeps its own steps" for each in lacking[:3]]
    return placed, notes + ([f"not at their planned end: {', '.join(cut[:3])}"] if cut else [])


def on(run: Run, history: History) -> Run:
    return replace(run, history=history, verdict=verdict_of(history))


def counts(run: History, counter: str) -> bool:
    column = run.columns.get(f"data/{counter}")
    return column is not None and bool(len(column.values)) and bool(np.isfinite(column.values).all())


def moved(run: History, counter: str) -> History:
    """A copy whose steps are the counter's."""
    known = run.columns[f"data/{counter}"]
    at = np.concatenate(([min(0, known.steps[0])], known.steps))
    count = np.maximum.accumulate(np.concatenate(([0.0], known.values)))

    def place(steps: np.ndarray) -> np.ndarray:
        return np.round(np.interp(steps, at, count)).astype(np.int64)

    def row(each: Document) -> Document:
        step = each.get("step")
        return each | {"step": int(place(np.array([step]))[0])} if is_step(step) else each

    columns = {name: Column(place(column.steps), column.values) for name, column in run.columns.items()}
    return replace(run, columns=columns, axes=dict.fromkeys(run.axes, counter), evals=[row(x) for x in run.evals],
                   probes=[row(x) for x in run.probes], events=[row(x) for x in run.events])  # fmt: skip
