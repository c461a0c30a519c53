"""What is said of variants on one task? How a run becomes a number, and all numbers of each variant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from relab import stats
from relab.base.documents import Document
from relab.base.text import number
from relab.comparison import arrival, key, numbers, pairs, phases, profile, remarks
from relab.comparison.arms import Arm
from relab.comparison.numbers import Measure
from relab.comparison.outcomes import AT, DIRECTIONS, Outcome
from relab.comparison.variant import Area, Mean, Noise, Threshold, Variant
from relab.config.base import require
from relab.config.views import MISSING, flatten
from relab.formats.read.source import FOREIGN
from relab.health.view import View
from relab.record import glossary, levels
from relab.record.bounds import bounds_of
from relab.record.history import History, end_rows
from relab.record.state import steps_of
from relab.runs.grouping import Group, Run
from relab.runs.naming import differing
from relab.runs.sentences import spread_words
from relab.runs.verdict import RETURNS, is_return

FULL = 0.01  # of the way from random to the ceiling: this close to it is at it
LAST = 5  # evaluations in the mean beside a peak, where there are as many
MOST_WAY = 0.9  # of the way from the start to the best mean: the level offered where none is known


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    by: str | None = None
    metric: str | None = None
    at: str | None = None
    level: float | None = None
    last: int | None = None
    smallest_effect: float = 0.0
    direction: str | None = None
    declare: tuple[str, ...] = ()
    leading: bool = False
    per: str | None = None
    reference: str | None = None
    axis: str | None = None  # what steps count; None: as the runs have it
    named: bool = False  # somebody chose what is compared, one by one: it did not just lie in one folder
    ended: frozenset[Path] | None = None  # of an experiment: the runs that count as they ended, however long each is


@dataclass(frozen=True)
class Baseline:
    """The variant that all others are held against, and why it is that one."""

    label: str
    why: str


@dataclass
class Task:
    """Variants that may be compared, and all that is said of them."""

    env: str
    measure: Measure
    step: float
    beyond: bool  # some runs went on after the common step
    arms: list[Arm]
    outcomes: dict[str, list[Outcome]]
    variants: list[Variant] = field(default_factory=list)  # best first, as the arms
    pairs: list[pairs.Pair] = field(default_factory=list)
    ceiling: float = math.inf
    at_ceiling: bool = False
    level: tuple[float, str] | None = None  # of time to threshold, and where it comes from
    keys: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    parts: list[Document] = field(default_factory=list)
    part_kinds: list[str] = field(default_factory=list)
    axis: str | None = None  # what steps were asked to count

    reference: Baseline = field(default_factory=lambda: Baseline("", ""))

    @property
    def evaluated(self) -> tuple[int, int] | None:
        """The first and the last step that the runs' numbers were taken at; None where they are steps themselves."""
        steps = [
            x.step for each in self.outcomes.values() for x in each if x.step is not None and math.isfinite(x.value)
        ]
        return (min(steps), max(steps)) if steps else None


def metric_of(groups: Sequence[Group], requested: str | None) -> str:
    """The metric asked for, by any of its names; else the first return that half of them have, evaluations first.

    Runs that are all judged by sampled actions (`eval.by`) are compared by them.
    """
    runs = [run for group in groups for run in group.runs]
    if requested:
        return next((name for run in runs if (name := find_column(run, requested))), requested)
    judged = {run.verdict.metric for run in runs}
    if len(judged) == 1 and is_return(only := next(iter(judged))):  # what every other command judges them by
        return only
    sampled = judged == {"eval/return_sampled"}
    first = sorted(RETURNS, key=lambda name: name != "eval/return_sampled") if sampled else RETURNS
    have = {name: sum(_most_have(group, name) for group in groups) for name in first}
    half = [name for name in first if have[name] >= max(2, len(groups) / 2)]
    some = half or [name for name in first if have[name] == max(have.values()) > 0]
    return next(iter(some), next((run.verdict.metric for run in runs if run.verdict.metric), ""))


def _most_have(group: Group, metric: str) -> bool:
    """Whether a comparison by this metric leaves out fewer of a group's runs than it takes."""
    return 2 * sum(numbers.column_of(run, metric) is not None for run in group.runs) > len(group.runs)


def find_column(run: Run, metric: str) -> str | None:
    names = (metric, run.history.mapping.get(metric, ""), FOREIGN + metric)
    return next((name for name in names if name in run.history.columns), None)


def task_of(arms: list[Arm], metric: str, options: Options) -> Task:
    runs = [run for arm in arms for run in arm.runs]
    step, beyond = numbers.common_step([arm.runs for arm in arms], metric)
    if options.ended is not None:
        step, beyond = numbers.furthest(runs, metric), False
    level = level_of(arms, metric, options.level, step)
    measure = measure_of(arms, metric, options, level)
    measure = measure._replace(bounds=bounds_at(runs[0].history, measure.at, measure.metric))
    ended = options.ended or frozenset()
    outcomes = {arm.label: [numbers.outcome(run, measure, 0 if run.history.folder in ended else step, beyond)
                            for run in arm.runs] for arm in arms}  # fmt: skip
    for arm in arms:
        outcomes[arm.label] = [replace(x, part=part) for x, part in zip(outcomes[arm.label], arm.parts, strict=True)]
    task = Task(_env(runs[0]), measure, step, beyond, arms, outcomes, level=level, axis=options.axis)
    task.ceiling = ceiling_of(runs[0].history, measure.at, measure.metric)
    task.arms = sorted(arms, key=lambda arm: _rank(task, arm))
    task.outcomes = {arm.label: outcomes[arm.label] for arm in task.arms}
    task.reference = reference_of(task.outcomes, options.reference)
    task.keys = differing([arm.config for arm in task.arms])
    _measure(task)
    task.part_kinds = phases.kinds(runs)
    if options.per:
        require(options.per in task.part_kinds, f"--per must be a kind of event that cuts these runs into parts, but"
                f" {options.per!r} is none of: {', '.join(task.part_kinds) or 'none there'}")  # fmt: skip
        task.parts = phases.table({arm.label: arm.runs for arm in task.arms}, options.per, metric)
    task.notes += _notes(task)
    return task


def reference_of(outcomes: Mapping[str, Sequence[Outcome]], name: str | None) -> Baseline:
    """The one that was named; else the best that has enough seeds for an interval; where none has, the best of all."""
    named = pairs.match(name, list(outcomes)) if name else None
    if named is not None:
        return Baseline(named, "--reference")
    enough = [label for label, each in outcomes.items() if len(numbers.finite(each)) >= numbers.LEAST]
    best = next(iter(outcomes))
    if not enough or enough[0] == best:
        return Baseline(best, "the best")
    return Baseline(enough[0], f"the best with {numbers.LEAST} seeds")


def _env(run: Run) -> str:
    spec = run.history.meta.get("spec")
    declared = spec.get("env") if isinstance(spec, dict) else None
    name = declared or flatten(run.history.config).get("env.name")
    return profile.env_id(str(name)) if name else "environment unknown"


def measure_of(arms: Sequence[Arm], metric: str, options: Options, level: tuple[float, str] | None) -> Measure:
    """How a run becomes a number: an evaluation by its last value, a training curve by the mean of its last tenth."""
    training = not metric.startswith("eval/")
    at = options.at or ("mean_last_m" if training else "final")
    last = options.last or (_tenth(arms, metric) if training else 5)
    known = glossary.METRICS.get(metric)
    direction = options.direction or ("lower" if known is not None and known.direction < 0 else "higher")
    require(at in AT, f"--at must be one of {', '.join(AT)}, but got {at!r}")
    require(last >= 1, f"--last must be at least 1, but is {last}")
    if at == "first_step_reaching":
        require(level is not None, "--at first_step_reaching needs the level to reach: give --level")
    tenth = training and options.at is None and options.last is None
    return Measure(metric, at, last, level[0] if level else None, direction, tenth)


def _tenth(arms: Sequence[Arm], metric: str) -> int:
    columns = [numbers.column_of(run, metric) for arm in arms for run in arm.runs]
    rows = [end_rows(column.steps) for column in columns if column is not None]
    return int(np.median(rows)) if rows else 5


def level_of(arms: Sequence[Arm], metric: str, requested: float | None, step: float) -> tuple[float, str] | None:
    """The level whose first step is told: the one given, stop_at, Gymnasium's `solved`, or most of the way up."""
    runs = [run for arm in arms for run in arm.runs]
    if requested is not None:
        return requested, "--level"
    if not is_return(metric) or "success" in metric:
        return None
    stop = {flatten(run.history.config).get("eval.stop_at") for run in runs}
    if len(stop) == 1 and isinstance(level := stop.pop(), (int, float)):
        return float(level), "eval.stop_at"
    measured = levels.measured().get(_env(runs[0]))
    solved = measured.solved if measured is not None else None
    if solved is not None:
        return float(solved), "called solved by Gymnasium"
    return _most_way(arms, metric, step)


def _most_way(arms: Sequence[Arm], metric: str, step: float) -> tuple[float, str] | None:
    """Of the curves up to the step at which they are compared."""
    starts, ends = [], []
    for arm in arms:
        columns = [c for run in arm.runs if (c := numbers.column_of(run, metric))]
        curves = [c.values[np.isfinite(c.values) & (c.steps <= step)] for c in columns]
        firsts, lasts = ([float(v[i]) for v in curves if len(v)] for i in (0, -1))
        starts += firsts
        ends += [float(np.mean(lasts))] if lasts else []
    if not ends or max(ends) <= float(np.mean(starts)):
        return None
    base = float(np.mean(starts))
    return float(f"{base + MOST_WAY * (max(ends) - base):.3g}"), "90 % of the way to the best mean"


def bounds_at(history: History, at: str, metric: str) -> tuple[float, float]:
    """The lowest and highest number that a run can have."""
    if at == "first_step_reaching":
        return numbers.ANY
    return bounds_of(history, "success" if at == "success_rate" else metric)


def ceiling_of(history: History, at: str, metric: str) -> float:
    """The highest value there can be: 1 of a rate, the best reward at each step of a return; none is known of steps."""
    if at == "first_step_reaching":
        return math.inf
    if at == "success_rate" or "success" in metric:
        return 1.0
    view = View(history, history.folder.name)
    return view.ceiling() if is_return(metric) and view.knows_ceiling else math.inf


def _rank(task: Task, arm: Arm) -> tuple[bool, float]:
    """Best first; variants without a number last."""
    values = numbers.finite(task.outcomes[arm.label])
    return (not len(values), -task.measure.sign * float(values.mean()) if len(values) else 0.0)


# ---- Numbers of each variant


def _measure(task: Task) -> None:
    runs = [run for arm in task.arms for run in arm.runs]
    span = numbers.shared_range(runs, task.measure.metric, task.step)
    task.variants += [_variant(task, arm, span) for arm in task.arms]
    task.at_ceiling = math.isfinite(task.ceiling) and all(_full(task, each) for each in task.variants)


def _variant(task: Task, arm: Arm, span: tuple[float, float]) -> Variant:
    outcomes = task.outcomes[arm.label]
    mean = numbers.interval(outcomes, task.measure)
    better = numbers.improvement(task.outcomes[task.reference.label], outcomes, task.measure)
    return Variant(
        label=arm.label,
        runs=len(arm.runs),
        sources=arm.sources,
        mean=Mean(mean.mid, mean.low, mean.high, mean.n),
        values=[x.value for x in outcomes],
        seeds=[x.seed for x in outcomes],
        reached=[x.reached for x in outcomes],
        diverged=sum(x.diverged for x in outcomes),
        settings={k: _plain(arm.config.get(k, MISSING)) for k in task.keys},
        area=_area(task, arm, *span),
        threshold=_threshold(task, arm),
        peak=_peak(task, arm),
        noise=_noise(task, arm),
        better=list(better[:3]) if better and arm.label != task.reference.label else None,
    )


def _area(task: Task, arm: Arm, low: float, high: float) -> Area:
    areas = [a for run in arm.runs if math.isfinite(a := numbers.area(run, task.measure.metric, low, high))]
    return Area(low, high, float(np.mean(areas)) if areas else math.nan, len(areas))


def _plain(value: Any) -> Any:
    return None if value is MISSING else value


def _full(task: Task, variant: Variant) -> bool:
    scale = profile.scale_of(task.arms[0].runs[0])
    base = scale.random if scale else 0.0
    return bool(task.measure.at != "first_step_reaching" and variant.mean.mid
                >= task.ceiling - FULL * abs(task.ceiling - base))  # fmt: skip


def _threshold(task: Task, arm: Arm) -> Threshold | None:
    """How soon the level was reached, runs that never did being censored where they ended."""
    if task.level is None:
        return None
    until = task.step if task.beyond and task.measure.at != "first_step_reaching" else math.inf
    arrivals = [x for run in arm.runs if (x := arrival.of(run, task.measure, task.level[0], until)) is not None]
    if not arrivals:
        return None
    times, reached = np.array([x.step for x in arrivals]), np.array([x.reached for x in arrivals])
    sources = " and ".join(dict.fromkeys(x.source for x in arrivals))
    return Threshold(task.level[0], int(reached.sum()), len(arrivals), stats.median_time(times, reached),
                     float(times.max()), sources)  # fmt: skip


def _peak(task: Task, arm: Arm) -> numbers.Peak | None:
    sign, until = DIRECTIONS[task.measure.direction], task.step if task.beyond else math.inf
    whole = [
        run for run, x in zip(arm.runs, task.outcomes[arm.label]) if math.isfinite(x.value)
    ]  # none that was killed
    peaks = [p for run in whole if (p := numbers.peak(run, task.measure.metric, LAST, sign, until)) is not None]
    if not peaks:
        return None
    peak, final, last, bias = (float(np.mean([p[i] for p in peaks])) for i in range(4))
    return numbers.Peak(peak, final, last, bias, max(p.k for p in peaks), min(p.m for p in peaks))


def _noise(task: Task, arm: Arm) -> Noise | None:
    """How much of the spread between seeds is the evaluation's own noise."""
    errors, values = numbers.noise(arm.runs, task.measure.metric), numbers.finite(task.outcomes[arm.label])
    if not errors or len(values) < 2 or task.measure.at != "final" or task.beyond:
        return None
    error, spread = float(np.sqrt(np.mean(np.square(errors)))), float(values.std(ddof=1))
    return Noise(error, spread, min(error**2 / spread**2, 1.0) if spread > 0 else math.nan)


# ---- What must be said


def _notes(task: Task) -> list[str]:
    unknown = key.env_of(task.arms[0].runs[0]) is None
    notes = ["no run says which environment it is: compare them only if it is one"] * unknown
    notes += [
        *_unfinished(task),
        *_unstable(task),
        *_not_evaluated(task),
        *_cut_short(task),
        *_evaluated_before(task),
        *(note for arm in task.arms for note in arm.notes),
    ]
    for arm in task.arms:
        gone = [x for x in task.outcomes[arm.label] if not math.isfinite(x.value)]
        lost = [x for x in gone if x.diverged]
        notes += [f"{arm.label}: {len(lost)} of {len(arm.runs)} runs diverged ({_who(x)}: {x.why})" for x in lost[:1]]
        gone = [x for x in gone if not x.diverged]
        notes += [f"{_of(arm.label, _who(x))} has no number ({x.note or 'not finite'})" for x in gone[:2]]
        notes += [f"{arm.label}: runs without a number besides: {len(gone) - 2}"] if len(gone) > 2 else []
    notes += [*_missing_seeds(task), *remarks.nameless_seeds(task.outcomes)]
    spread = {key.facts_of(run, task.measure.metric)["evaluation"] for arm in task.arms for run in arm.runs} - {None}
    sources = {run.history.source for arm in task.arms for run in arm.runs}
    if len(sources) > 1 and not task.measure.metric.startswith("eval/"):
        notes.append("a row of a training curve is an episode in one tool and a mean of many in another: see --why")
    if len(spread) > 1:
        notes.append(f"evaluated differently: {'; '.join(sorted(map(str, spread)))}")
    return notes


def _of(label: str, who: str) -> str:
    return who if who == label else f"{label}: {who}"


def _who(x: Outcome) -> str:
    return f"seed {x.seed}" if x.seed is not None else x.run or "a run"


def _missing_seeds(task: Task) -> list[str]:
    seeds = {arm.label: {x.seed for x in task.outcomes[arm.label] if x.seed is not None} for arm in task.arms}
    most = max(seeds.values(), key=len)
    gone = {label: sorted(most - own) for label, own in seeds.items() if own and own < most}
    said = [
        f"{label} ({', '.join(map(str, lacking[:4]))}{' ...' * (len(lacking) > 4)})" for label, lacking in gone.items()
    ]
    return [f"seeds that others have and these lack: {', '.join(said)}"] if said else []


def _not_evaluated(task: Task) -> list[str]:
    """Why returns of training are compared although some variants were evaluated, and what these came to."""
    if task.measure.metric.startswith("eval/") or not is_return(task.measure.metric):
        return []
    ends = {arm.label: [r.verdict.final for r in arm.runs if r.verdict.metric.startswith("eval/return")]
            for arm in task.arms}  # fmt: skip
    lacking = [arm.label for arm in task.arms if len(ends[arm.label]) < len(arm.runs)]
    said = [f"{label} {number(float(np.mean(values)))}" for label, values in ends.items() if values]
    if not said or not lacking:
        return []
    return [f"compared by returns of training, because runs of {', '.join(lacking[:3])} were not evaluated;"
            f" evaluations ended at: {', '.join(said[:3])}"]  # fmt: skip


def _unfinished(task: Task) -> list[str]:
    """Runs that ended before their planned steps: what they came to so far is not what they would end at."""
    runs = [run for arm in task.arms for run in arm.runs]
    cut = [run for run in runs if numbers.unfinished(run)]
    if not cut or task.measure.at == "first_step_reaching":
        return []
    shares = sorted(steps_of(run.history) / float(run.history.config["total_steps"]) for run in cut)
    span = f"{shares[0]:.0%}" if f"{shares[0]:.0%}" == f"{shares[-1]:.0%}" else f"{shares[0]:.0%} to {shares[-1]:.0%}"
    who = f"all {len(cut)} runs" if len(cut) == len(runs) else f"{len(cut)} of {len(runs)} runs ({cut[0].name} first)"
    return [f"{who} ended after {span} of their planned steps: this compares how far they had come, not how they end"]


def _unstable(task: Task) -> list[str]:
    """Runs whose last evaluation is as good as the moment at which they ended."""
    runs = [run for arm in task.arms for run in arm.runs if run.verdict.kind == "unstable"]
    if not runs or task.measure.at != "final":
        return []
    more = f" and {len(runs) - 2} more" if len(runs) > 2 else ""
    said = ", ".join(f"{run.name} ({spread_words(run.verdict)})" for run in runs[:2])
    return [f"unstable, so that the final number depends on when the run ended: {said}{more}"]


def _cut_short(task: Task) -> list[str]:
    """Whose end the common step is."""
    if not task.beyond or task.measure.at == "first_step_reaching":
        return []
    ends = {arm.label: numbers.arm_length(arm.runs, task.measure.metric) for arm in task.arms}
    length = {label: end for label, end in ends.items() if math.isfinite(end) and end >= task.step}
    who = min(length, key=lambda label: length[label])
    return [f"unequal lengths: {who} ends at step {length[who]:,.0f}, others go on to {max(length.values()):,.0f};"
            " all are compared at the common step"]  # fmt: skip


def _evaluated_before(task: Task) -> list[str]:
    """Variants whose last evaluation lies well before the step that all are compared at."""
    if not task.beyond or task.measure.at == "first_step_reaching":
        return []
    ends = {arm.label: [x.step for x in task.outcomes[arm.label] if x.step is not None] for arm in task.arms}
    early = {label: min(steps) for label, steps in ends.items()
             if steps and min(steps) < (1 - numbers.ALIKE) * task.step}  # fmt: skip
    begun = [label for label, step in early.items() if step <= 0]
    notes = [f"start, nothing learned yet: up to step {task.step:,.0f}, the last that all have, {', '.join(begun)} was"
             " evaluated at step 0 alone, so that this is no comparison of what was learned; compare by another"
             " --axis, or runs that go on for longer"] if begun else []  # fmt: skip
    later = ", ".join(f"{label} at {step:,}" for label, step in early.items() if step > 0)
    return notes + ([f"the last evaluation up to step {task.step:,.0f} is earlier in some: {later}"] if later else [])
