"""What became of a run, as far as its rules must know? Whether it learned, and whether others got much further."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from relab.health import reference
from relab.health.estimates import clear
from relab.health.features import RETURN, Key
from relab.health.rule import SHORT, Missing
from relab.health.view import View
from relab.record import levels
from relab.runs.apart import error_of, pooled
from relab.runs.course import course_on
from relab.runs.verdict import FEWEST, SURE, above

TRAINED = ("return/mean_100", "return/mean")  # returns of training
STANDS = 0.15  # of what was gained: the most that the second half may have risen by, errors included


def moved(view: View) -> float:
    """How far the return went from start to end, in standard errors; Missing where no return is logged."""
    course = view.course(at_least=3)
    return clear(course[-1].mean - course[0].mean, course[0], course[-1])


def rose(view: View) -> bool:
    """Whether the return went up from start to end, clear of noise; False where no return tells."""
    try:
        return moved(view) > 3
    except Missing:
        return False


def rose_in_training(view: View, errors: float = 3.0) -> bool:
    """Whether the returns of training rose while the evaluations, which began when all was learned, stayed.

    The lowest of the first half lies below all of the second by three of the second's standard deviations. Evaluations
    no better than a random policy did not begin when all was learned: a mean of the last hundred episodes is of two at
    its start, which luck alone may put below all that follows.
    """
    at_random = view.verdict.random is not None and view.verdict.kind in ("not", "worse")
    if not view.has_evals(view.by) or at_random:
        return False
    curves = [view.curve(name).values for name in TRAINED if view.has(name)]
    halves = [(values[: len(values) // 2], values[len(values) // 2 :]) for values in curves if len(values) >= SHORT]
    return any(late.min() - early.min() > errors * late.std() for early, late in halves)


def learned(view: View) -> bool:
    """Whether the run ends with something it learned, by the verdict that every command gives."""
    return view.verdict.learned


def ends_alike(view: View, share: float = 0.01) -> bool:
    """Whether the last episodes differ by under a hundredth of what they earn: a critic has nothing to explain."""
    try:
        last = view.course(at_least=3)[-1]
    except Missing:
        return False
    return last.se * math.sqrt(max(last.n, 1)) <= share * abs(last.mean)


def same_of_every_state(view: View, rounding: float = 1e-6) -> bool:
    """Whether the critic tells no two states apart, in any row: what it explains is 0 but for rounding. Zeros alone may
    be a column that nobody fills."""
    if not view.has("value/explained_variance"):
        return False
    most = np.abs(view.curve("value/explained_variance").values).max()
    return bool(0 < most < rounding) and not view.verdict.learned


def failed(view: View) -> bool:
    """Whether nothing is left of what it learned, or nothing was: it ends as a random policy does, or without a gain
    over its own start.

    Evaluations may begin when learning is over; where random is not known, a flat course of them proves nothing unless
    the returns of training are flat as well.
    """
    verdict = view.verdict
    flat = verdict.kind == "flat" and verdict.random is None and (not verdict.evaluated or _flat_in_training(view))
    near = verdict.below_random or (verdict.near_random and not view.resumed)
    return verdict.kind in ("not", "worse") or flat or near or hardly_gained(view) is not None


def _flat_in_training(view: View) -> bool:
    """Whether the returns of training, which begin before any evaluation, do not rise either."""
    courses = [course_on(view.history, name).points for name in TRAINED if view.has(name)]
    good = [[p for p in points if math.isfinite(p.mean)] for points in courses]
    enough = [points for points in good if len(points) >= FEWEST]
    return bool(enough) and not any(above(points[-1], points[0]) for points in enough) and not rose_in_training(view)


def failure(view: View) -> str:
    """The same in words that agree with the verdict: a run that lost what it had learned has learned."""
    words = {"lost": "the run lost what it had learned", "unstable": "the run does not keep what it learns",
             "fell": "the run fell below its start"}  # fmt: skip
    return words.get(view.verdict.kind, "the run has not learned")


@dataclass(frozen=True)
class Gain:
    """How much of its own size a run's cost fell from its first third to its last, and the least of healthy runs."""

    own: float
    least: float
    cells: int


def hardly_gained(view: View, part: float = 0.5) -> Gain | None:
    """Where random is not known: a task of costs, steered by continuous actions, whose cost falls by less than half of
    the least that any healthy run of the algorithm in the shipped table shows."""
    kind = "continuous" if view.algo in ("sac", "td3") else view.kind
    if view.verdict.random is not None or kind != "continuous" or view.algo not in reference.ALGOS or view.resumed:
        return None
    first, last, own = (view.features.get(Key(RETURN, name)) for name in ("first", "last", "growth"))
    healthy = reference.interval(view.algo, kind, Key(RETURN, "growth"))
    if healthy is None or first is None or last is None or own is None or max(first, last) >= 0:
        return None
    own = max(own, _fallen_in_evaluations(view))
    return Gain(own, healthy.least, healthy.cells) if own < part * healthy.least else None


def _fallen_in_evaluations(view: View) -> float:
    """The share by which evaluations saw the cost fall, where the run is judged by them: features are of training."""
    means = [p.mean for p in view.verdict.points if math.isfinite(p.mean)]
    fits = view.verdict.metric.startswith("eval/") and len(means) > 1 and max(means[0], means[-1]) < 0
    return 1 - means[-1] / means[0] if fits else -math.inf


@dataclass(frozen=True)
class Goal:
    """What others reached in the same environment, and with how few steps; how far the run is on the way there."""

    level: float
    steps: int
    reached: float  # the run's outcome, as every command gives it
    way: float  # share of the way from random
    rising: bool
    stands: bool  # its second half leaves no rise open that would matter


def goal_of(view: View, few: float = 0.25) -> Goal | None:
    """A level is known where somebody published it with its steps, and random is; a run with under a quarter of those
    steps is not asked."""
    verdict = view.verdict
    points = [p for p in verdict.points if math.isfinite(p.mean)]
    rows = levels.of(str(view.spec.get("env")))
    random, solved = verdict.yardstick.random, verdict.yardstick.solved
    counted = view.history.axes.get(view.earned, "env_steps") in ("env_steps", "agent_steps")
    if random is None or not rows or not counted or len(points) < 4 or view.resumed or not view.earned:
        return None
    level, steps = solved or rows[0].mean, min(row.steps for row in rows)
    last, before = points[-1], pooled(points[len(points) // 2 : -1])
    way = (last.mean - random.mean) / max(level - random.mean, 1e-9)
    if view.last_step < few * steps:
        return None
    most = last.mean - before.mean + SURE * error_of(last, before)
    return Goal(level, steps, last.mean, way, above(last, before), most <= STANDS * (last.mean - random.mean))


def behind_others(view: View, *, half: float = 0.5, slow: float = 0.25) -> Goal | None:
    """The known level that a run is far away from: under half of the way from random and no longer rising, or under a
    quarter of it with as many steps as others needed. None where it is not, or where nothing is known. With fewer steps
    than they, that it stands must be shown: no rise clear of the noise is none."""
    goal = goal_of(view)
    if goal is None:
        return None
    enough = view.last_step >= goal.steps
    halted = goal.way < half and not goal.rising and (enough or goal.stands)
    return goal if halted or (goal.way < slow and enough) else None


def poor(view: View) -> bool:
    """Whether the run has not learned, or stands far below what is known of its task; one that has hardly begun is
    not judged."""
    return not view.early() and (failed(view) or behind_others(view) is not None)


def doubted(view: View) -> str | None:
    """A rule that is a remark by itself warns in a poor run: there every oddity counts for more."""
    return "warning" if poor(view) else None


def judged(view: View, most: float = 0.75) -> str:
    """A setting is a warning where the run did not learn with it, or got less than three quarters of the way to a level
    that others reached with as many steps; a remark where it did, or may still do so."""
    goal = goal_of(view)
    short = goal is not None and goal.way < most and (not goal.rising or view.last_step >= goal.steps)
    return "info" if (learned(view) and not short) or view.early() else "warning"
