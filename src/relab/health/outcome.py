"""What became of a run, as far as its rules must know? Whether it learned, and whether others got much further."""

from __future__ import annotations

import math
from dataclasses import dataclass

from relab.health.rule import Missing
from relab.health.view import View, clear
from relab.record import levels
from relab.runs.verdict import above, pooled


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


def failed(view: View) -> bool:
    """Whether nothing was learned, as far as anybody can tell: as random is, or no gain over its own start.

    Evaluations may begin when learning is over; a flat course of them proves nothing where random is not known.
    """
    verdict = view.verdict
    flat = verdict.kind == "flat" and verdict.random is None and not verdict.metric.startswith("eval/")
    return verdict.kind in ("not", "worse") or flat or hardly_learned(view)


def hardly_learned(view: View, part: float = 0.05) -> bool:
    """Whether its second half, which does not rise, is within a twentieth of the way from random to the solved level.

    A rise from 15 to 26 may be clear of noise, and is nothing where random earns 22 and 475 is solved.
    """
    verdict = view.verdict
    yard, points = verdict.yardstick, [p for p in verdict.points if math.isfinite(p.mean)]
    if yard.random is None or yard.solved is None or len(points) < 4 or view.resumed:
        return False
    half = points[len(points) // 2 :]
    if above(half[-1], half[0]):
        return False  # slow, but on its way
    late = pooled(half)
    return late.mean - yard.random.mean < part * (yard.solved - yard.random.mean)


@dataclass(frozen=True)
class Goal:
    """What others reached in the same environment, and with how few steps; `reached` is the run's own level."""

    level: float
    steps: int
    reached: float
    rising: bool


def behind_others(view: View, *, stuck: float = 0.5, slow: float = 0.25, few: float = 0.25) -> Goal | None:
    """The known level that a run is far away from: under half of the way from random and no longer rising, or under a
    quarter of it with as many steps as others needed. None where it is not, or where nothing is known.

    A level is known where somebody published it with its steps; a run with under a quarter of those is not asked.
    """
    verdict = view.verdict
    points = [p for p in verdict.points if math.isfinite(p.mean)]
    rows = levels.of_any_case(str(view.spec.get("env")))
    random, solved = verdict.yardstick.random, verdict.yardstick.solved
    counted = view.history.axes.get(view.earned, "env_steps") in ("env_steps", "agent_steps")
    if random is None or not rows or not counted or len(points) < 4 or view.resumed or not view.earned:
        return None
    level, steps = solved or rows[0].mean, min(row.steps for row in rows)
    late, before = pooled(points[-max(len(points) // 4, 1) :]), pooled(points[len(points) // 2 : -1])
    way, rising = (late.mean - random.mean) / max(level - random.mean, 1e-9), above(late, before)
    far = way < slow and view.last_step >= steps
    halted = way < stuck and not rising and view.last_step >= few * steps
    return Goal(level, steps, late.mean, rising) if far or halted else None


def poor(view: View) -> bool:
    """Whether the run has not learned, or stands far below what is known of its task."""
    return failed(view) or behind_others(view) is not None


def doubted(view: View) -> str | None:
    """A rule that is a remark by itself warns in a poor run: there every oddity counts for more."""
    return "warning" if poor(view) else None


def judged(view: View) -> str:
    """A setting is a warning where the run did not learn with it, or not enough, and a remark where it did."""
    return "info" if learned(view) and behind_others(view) is None else "warning"
