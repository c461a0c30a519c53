"""Which one number stands for a run? Its last value, the mean of its last m, the first step at a level, a rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from relab.record.evaluations import evaluations
from relab.record.history import History, end_rows, flaw, measured
from relab.record.state import diverged_at
from relab.runs.course import is_return

AT = ("final", "mean_last_m", "first_step_reaching", "success_rate")
PAIRED = ("final", "mean_last_m")  # outcomes that can be compared within seeds
DIRECTIONS = {"higher": 1, "lower": -1}
DIVERGED = "diverged: "  # how the note of such a run begins


@dataclass(frozen=True)
class Outcome:
    """The one number of a run. NaN is a run without one, and `note` says why."""

    value: float
    seed: int | None = None
    run: str = ""
    reached: bool = True  # first_step_reaching: False is a run that ended at step `value` without getting there
    episodes: int = 0  # how many `value` is the mean or share of, where that is known
    note: str = ""
    part: str = ""  # which config, where a variant pools several: the same seed of another config is another sample
    stopped: bool = False  # before its end, on a finding: `value` is as it stood then
    step: int | None = None  # of the last row that `value` is made of
    by_end: bool = False  # final: the mean of its last tenth of rows, of several, as of every return of training
    grid: float = 0.0  # first_step_reaching: steps since the evaluation before; it may have got there at any of them

    @property
    def diverged(self) -> bool:
        """Whether it has no number because what it is made of is not finite."""
        return math.isnan(self.value) and self.note.startswith(DIVERGED)

    @property
    def why(self) -> str:
        return self.note.removeprefix(DIVERGED)


def outcome(
    history: History,
    at: str = "final",
    metric: str = "eval/return_det",
    *,
    m: int = 5,
    reach: float | None = None,
    direction: str = "higher",
) -> Outcome:
    """One number of a run: its last value, the mean of its last m, the first step at `reach`, or its success rate.

    The last value of a return of training is the mean over the last tenth of its steps.
    """
    check(at, direction)
    base = Outcome(math.nan, _seed(history), history.folder.name)
    if at != "first_step_reaching" and (step := diverged_at(history.meta)) is not None:
        return replace(base, note=f"{DIVERGED}its numbers were not finite at step {step:,}", step=step)
    if at == "success_rate":
        return _success(history, base)
    if metric not in history.columns or not len(history.columns[metric].values):
        return replace(base, note=f"no `{metric}` in its record")
    steps, values = measured(history, metric)
    if not len(values):
        return replace(base, note=f"no number in `{metric}`: no episode ended")
    if at == "first_step_reaching":
        return _reaching(steps, values, base, reach, DIRECTIONS[direction])
    rows = end_rows(steps) if by_its_end(metric) else 1  # the outcome that every command gives of such a run
    counted = rows if at == "final" else m
    several = at == "final" and rows > 1
    base = replace(base, step=int(steps[-1]), episodes=_episodes(history, metric), by_end=several)
    return _last(values, base, counted)


def by_its_end(metric: str) -> bool:
    """Whether a last row alone is no outcome: a return of training, whose rows are few episodes each."""
    return is_return(metric) and not metric.startswith("eval/")


def check(at: str, direction: str) -> None:
    """Both must be known words."""
    if at not in AT or direction not in DIRECTIONS:
        raise ValueError(
            f"`at` must be one of {', '.join(AT)} and `direction` higher or lower, but got {at!r} and {direction!r}"
        )


def sign_of(at: str, direction: str) -> int:
    """+1 where a larger number is better: steps are better when fewer, whatever the metric."""
    return {"success_rate": 1, "first_step_reaching": -1}.get(at, DIRECTIONS[direction])


def _seed(history: History) -> int | None:
    seed = history.meta.get("seed", history.config.get("seed"))
    return seed if type(seed) is int else None


def _episodes(history: History, metric: str) -> int:
    """Of the last evaluation, where the metric is one of its means."""
    counts = history.columns.get("eval/episodes") if metric.startswith("eval/") else None
    return int(counts.values[-1]) if counts is not None and len(counts.values) else 0


def _last(values: np.ndarray, base: Outcome, m: int) -> Outcome:
    if m < 1:
        raise ValueError(f"mean_last_m needs m >= 1, but got {m}")
    last = values[-m:]
    if why := flaw(values, m):
        return replace(base, note=f"{DIVERGED}{why}")
    note = f"only {len(last)} of {m} values" if len(last) < m else ""
    return replace(base, value=float(last.mean()), note=note)


def _reaching(steps: np.ndarray, values: np.ndarray, base: Outcome, reach: float | None, sign: int) -> Outcome:
    if reach is None:
        raise ValueError("first_step_reaching needs the level to reach: give `reach`")
    there = np.flatnonzero(np.isfinite(values) & (sign * values >= sign * reach))  # inf reaches nothing, nor does NaN
    if len(there):
        first = int(there[0])
        return replace(base, value=float(steps[first]), grid=float(steps[first] - steps[first - 1]) if first else 0.0)
    return replace(base, value=float(steps[-1]), reached=False, note=f"never at {reach:g}")


def _success(history: History, base: Outcome) -> Outcome:
    played = evaluations(history.evals, "det")
    if not played:
        return replace(base, note="no deterministic evaluation in its record")
    last = played[-1]
    if last.success is None:
        return replace(base, note=f"its {last.n} episodes do not all say if they succeeded")
    return replace(base, value=last.success, episodes=last.n, step=last.step)
