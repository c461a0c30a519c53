"""What do the runs say? One number per run, every variant against the control, and nothing else is tested."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from relab.base import masks
from relab.base.jsonl import RecordError, encode, read_json, write_atomic
from relab.base.places import cut_short
from relab.comparison import answer, outcomes
from relab.comparison.declared import are_looks
from relab.comparison.outcomes import Outcome
from relab.config.base import require
from relab.formats.read import find
from relab.formats.read.source import FOREIGN
from relab.lab.experiment.cells import Cell, histories, settled, status
from relab.lab.experiment.question import Experiment
from relab.record import history
from relab.record.bounds import ANY, bounds_of
from relab.record.run_folder import read_meta
from relab.record.state import diverged_at, steps_of

SHOWN = 40  # names in an error
SHORT = 0.5  # of the steps that runs of a variant usually take


def conclude(e: Experiment, folder: Path, cells: list[Cell]) -> list[answer.Answer]:
    """Every variant against the control; kept in answer.json with the looks taken so far."""
    runs, looked = histories(cells), looks(folder)
    check_metric(e, [run for group in runs.values() for run in group])
    arms = {name: [outcome(e, run, usual_steps(group)) for run in group] for name, group in runs.items()}
    for cell in (each for each in cells if not settled(each) and tried(each)):
        arms[cell.variant].append(failed(cell))
    control, *others = arms
    bounds = bounds_in(e, runs)
    answers = [compare(e, (control, name), arms, looked.get(name, []), bounds) for name in others]
    taken = {name: [*looked.get(name, []), list(x.n)] for name, x in zip(others, answers)}
    gone = {run.folder.name: why for group in runs.values() for run in group if (why := stopped_on(run))}
    for each in answers:
        each.text += stopped_text(each, gone)
    body = {"question": e.question, "answers": [x.to_dict() for x in answers], "looks": taken, "stopped": gone}
    write_atomic(folder / "answer.json", encode(masks.masked(body), indent=True))
    return answers


def bounds_in(e: Experiment, runs: Mapping[str, list[history.History]]) -> tuple[float, float]:
    """The lowest and highest outcome there can be, as the first run knows it; all variants share the environment."""
    if e.at == "first_step_reaching":
        return ANY
    if e.at == "success_rate":
        return 0.0, 1.0
    first = next((run for group in runs.values() for run in group), None)
    return bounds_of(first, find_column(first, e.metric) or e.metric) if first is not None else ANY


def outcome(e: Experiment, run: history.History, usual: int = 0) -> Outcome:
    """Its one number; `usual`: the steps that the runs of its variant take."""
    column = find_column(run, e.metric) or e.metric
    counted = outcomes.outcome(run, e.at, column, m=e.last, reach=e.level, direction=e.direction)
    if why := stopped_on(run):
        cut = f"stopped by {why.get('slug')} at step {why.get('step', 0):,}"
        return replace(counted, stopped=True, note=f"{cut}; {counted.note}" if counted.note else cut)
    there = e.at == "first_step_reaching" and counted.reached  # many a program ends where its level is reached
    broke = "" if there else broke_off(run, usual)
    return Outcome(math.nan, counted.seed, counted.run, note=broke) if broke else counted


def stopped_on(run: history.History) -> Mapping[str, Any]:
    """The finding on which the experiment stopped a run; a program's own word of why it stopped is none."""
    why = run.meta.get("stopped")
    return why if isinstance(why, Mapping) else {}


def broke_off(run: history.History, usual: int) -> str:
    """Why a program's run has no number although the program ended with exit code 0: its own record says that it
    failed, or it ended well before its planned steps, or the usual ones, and does not say why. It would count for too
    much where it ended at its peak."""
    if run.meta.get("status") == "failed":
        return "failed, as its own record says"
    if run.trained_by_relab or run.meta.get("stopped"):
        return ""
    planned, steps = run.config.get("total_steps"), steps_of(run)
    if cut_short(steps, planned):
        return f"ended at step {steps:,} of {planned:,.0f} planned"
    return f"ended at step {steps:,}, others of its variant at {usual:,}" if steps < SHORT * usual else ""


def usual_steps(runs: Sequence[history.History]) -> int:
    lengths = sorted(steps_of(run) for run in runs if not stopped_on(run))
    return lengths[len(lengths) // 2] if lengths else 0


def tried(cell: Cell) -> bool:
    """Whether it was begun: one that nobody has begun yet says nothing against its variant."""
    return status(cell) is not None or cell.log.exists()


def failed(cell: Cell) -> Outcome:
    """A run that broke off, by itself or killed, is one without a number: left out, its variant would be judged by the
    others."""
    try:
        step = diverged_at(read_meta(cell.folder))
    except (RecordError, OSError):  # a program that left no record
        step = None
    note = "failed" if step is None else f"{outcomes.DIVERGED}its numbers were not finite at step {step:,}"
    return Outcome(math.nan, cell.seed, cell.folder.name, note=note)


def stopped_text(x: answer.Answer, gone: Mapping[str, Any]) -> str:
    """A sentence more, where runs of these two variants were stopped before their end."""
    mine = [gone[o.run] for arm in (x.a, x.b) for o in arm if o.run in gone]
    if not mine:
        return ""
    slugs = ", ".join(dict.fromkeys(str(why.get("slug")) for why in mine))
    counts = " and ".join(f"{sum(o.run in gone for o in arm)} of {name}" for name, arm in zip(x.names, (x.a, x.b)))
    many = "runs were" if len(mine) > 1 else "run was"
    return f" {len(mine)} {many} stopped early on a finding ({slugs}; {counts}), and count as they stood then."


def compare(
    e: Experiment,
    names: tuple[str, str],
    arms: Mapping[str, Any],
    looked: list[list[int]],
    bounds: tuple[float, float] = ANY,
) -> answer.Answer:
    a, b = (arms[name] for name in names)
    return answer.answer(
        a, b, e.smallest_effect, e.direction, e.at, metric=e.metric, names=names, looked_at=looked, paired=e.paired,
        comparisons=e.comparisons, m=e.last, reach=e.level, looks=e.looks or None, bounds=bounds,
    )  # fmt: skip


def looks(folder: Path) -> dict[str, list[list[int]]]:
    """Variant -> (n, n) of each answer given before: looking again after adding seeds has its price."""
    path = folder / "answer.json"
    taken = read_json(folder, path.name).get("looks", {}) if path.exists() else {}
    require(are_looks(taken), f"`looks` in {path} must hold the seeds of every earlier answer, as in"
                              ' {"B": [[5, 5]]}: put the file back as relab wrote it, or delete the file to count this'
                              " answer as the first")  # fmt: skip
    return dict(taken)


def pooled_look(n: Sequence[int]) -> list[int]:
    """A look at n seeds of which some are a replication's: a third number tells it from one at as many of its own."""
    return [*n, sum(n)]


def decided(answers: Sequence[answer.Answer]) -> bool:
    """Whether every comparison has its yes or no, so that no further look is needed."""
    return all(x.verdict != answer.OPEN for x in answers)


def keep_pooled(folder: Path, sizes: Mapping[str, tuple[int, int]]) -> None:
    """A pooled answer was a look at this question as well."""
    body = read_json(folder, "answer.json")
    taken = body["looks"]
    for variant, n in sizes.items():
        taken[variant] = [*taken[variant], *([pooled_look(n)] if pooled_look(n) not in taken[variant] else [])]
    write_atomic(folder / "answer.json", encode(body, indent=True))


# ---- Which column is meant


def find_column(run: history.History, metric: str) -> str | None:
    """The run's column for a name of the glossary, or of the tool that wrote it; None where it has none."""
    names = (metric, run.mapping.get(metric, ""), FOREIGN + metric)
    return next((name for name in names if name in run.columns), None)


def column_of(run: history.History, e: Experiment) -> str:
    """The column, or an error that lists what there is; a tool's name that is read with another sign is one as well."""
    column = find_column(run, e.metric)
    if e.at == "success_rate":
        return e.metric
    known = [*(name for name, ours in run.mapping.items() if ours == FOREIGN + name),
             *(name for name in run.columns if not name.startswith(FOREIGN))]  # fmt: skip
    some = ", ".join(sorted(known)[:SHOWN]) + (" ..." if len(known) > SHOWN else "")
    require(
        column is not None, f"`metric` is {e.metric}, but {run.folder.name} has no such column; it has {some or 'none'}"
    )
    if column != e.metric:
        _, factor = getattr(find.importers().get(run.source), "NAMES", {}).get(e.metric, ("", 1))
        require(factor == 1, f"relab reads {e.metric} as {column}, {factor:g} times as large: write `metric: {column}`,"
                             " and give direction and smallest_effect for that")  # fmt: skip
    return str(column)


def check_metric(e: Experiment, runs: list[history.History]) -> None:
    """A metric that no run has is a mistake in the question; one that some runs lack is noted with the answer."""
    if runs and not any(find_column(run, e.metric) for run in runs):
        column_of(runs[0], e)
