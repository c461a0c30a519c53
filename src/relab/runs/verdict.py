"""Did it learn, and did it keep what it learned? One sentence per run and per group, relative to the noise.

Every command reads this verdict. The run's course (course.py) is held against what is known of the task (yardstick.py):
- at the top, or at the level that is called solved, it learned; where it was there from the first value on, "top";
- else it learned when it ends above the random policy, by more than Z standard errors and by a gain that matters, and
  above where it began; it lost it when the best part was that good, and half of the gain over the start is gone (over
  random, where the first evaluation came after learning had begun);
- it did not learn when even its upper end (SURE standard errors) is no gain over random that matters;
- what lies between is not told: "unclear". Without a random level the run's own start is all there is, which is said.
Z is 3, not 2, because the best of many points is high by chance as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relab.base.numbers import is_number
from relab.record import glossary
from relab.record.evaluations import Estimate
from relab.record.history import History
from relab.runs.course import RETURNS as RETURNS
from relab.runs.course import Course, course_of, course_on
from relab.runs.course import is_return as is_return
from relab.runs.yardstick import Yardstick, yardstick_of
from relab.stats import SeedMean, mean_over_seeds
from relab.base.text import number

Z = 3.0
SURE = 2.0  # standard errors: the upper end of what a level may be
KEPT_ALL, KEPT_HALF = 0.8, 0.5  # shares of the gain that remain at the end
LITTLE = 0.25  # of the way from random to solved
SHARES = ("eval/success_det", "eval/success_sampled", "return/success", "env/survived")  # 1 is all there is
POOR = ("flat", "not", "worse", "unclear")
STILL = ("flat", "unclear")  # no gain, but no loss either


@dataclass(frozen=True)
class Verdict:
    """kind: learned, top, part, lost, flat, not, worse, unclear, broken, short, unjudged or none.

    `points` are what it was judged by, and the last of them is the outcome: none where it was not judged.
    """

    kind: str
    metric: str = ""
    points: list[Estimate] = field(default_factory=list)
    random: Estimate | None = None
    best: Estimate | None = None
    solved: int | None = None  # step at which the level was reached
    level: float | None = None  # eval.stop_at, or what Gymnasium calls solved
    stages: int = 0  # times that the task changed on the way
    share: tuple[str, float, float] | None = None  # a rate that rose where the return says nothing: name, from, to
    yardstick: Yardstick = field(default_factory=Yardstick)
    flaw: str = ""
    early: bool = False  # the returns of training rose, and evaluations began only when they had

    @property
    def final(self) -> float:
        """The run's outcome."""
        return self.points[-1].mean if self.points else math.nan

    @property
    def learned(self) -> bool:
        """Whether it ends with something that it learned."""
        return self.kind in ("learned", "part", "top") or (self.kind == "flat" and self.random is not None)


def verdict_of(run: History) -> Verdict:
    """Look at a run's evaluations, or its training returns where it has none."""
    course = course_of(run)
    if not course.points:
        return Verdict("none")
    if not is_return(course.metric):  # a loss that falls is no policy that learned
        return Verdict("unjudged", course.metric, flaw=course.flaw)
    yard, good = yardstick_of(run, course.metric), [p for p in course.points if math.isfinite(p.mean)]
    if not good or course.flaw:
        return Verdict("broken", course.metric, course.points, yard.random, yardstick=yard, flaw=course.flaw)
    yard = yard if yard.fits(good) else Yardstick(choice=yard.choice)
    best = max(reversed(good), key=lambda p: p.mean)  # the last of equals: what was lost was lost after it
    solved, level = _first_solved(run, course, yard)
    kind, stages = _kind(good, best, yard, level), _stages(run)
    early = kind in STILL and yard.random is None and course.evaluated and _rose_in_training(run)
    kind = "learned" if early else kind
    share = _share_that_rose(run) if kind in POOR else None
    if kind in POOR and (share or (stages > 1 and not course.evaluated)):
        kind = "learned" if share else "unclear"  # returns of two stages are not about one task
    return Verdict(kind, course.metric, course.points, yard.random, best, solved, level, stages, share, yard, early=early)


def _kind(good: list[Estimate], best: Estimate, yard: Yardstick, level: float | None) -> str:
    first, last = good[0], good[-1]
    if len(good) < 2 or not math.isfinite(last.se):
        return "learned" if _beats_random(last, yard) else "short"
    tops = [yard.at_top(p.mean) or (level is not None and p.mean >= level) for p in good]
    if tops[-1]:
        return "top" if all(tops) else "learned"
    base = _base(first, yard.random)
    floor = yard.random.mean + yard.matters if yard.random else -math.inf
    if above(last, base) and last.mean > floor:
        kept = (last.mean - base.mean) / (best.mean - base.mean)
        return "learned" if kept >= KEPT_ALL or not above(best, last) else "part" if kept >= KEPT_HALF else "lost"
    late = first.step > 0 and yard.random is not None  # what was learned before the first value may be lost as well
    if above(best, yard.random if late and yard.random else base) and above(best, last) and best.mean > floor:
        return _kept(last, best, yard.random, floor) if late and yard.random else "lost"
    return _against_start(first, last) if yard.random is None else _against_random(good, yard.random, floor)


def _beats_random(only: Estimate, yard: Yardstick) -> bool:
    """Whether a single evaluation on the way says enough: clear of a random policy, by a gain that matters."""
    if yard.random is None or only.step <= 0 or not math.isfinite(only.se):
        return False
    return above(only, yard.random) and only.mean > yard.random.mean + yard.matters


def _base(first: Estimate, random: Estimate | None) -> Estimate:
    """What a gain is counted from: the start, or random where that is better."""
    return random if random is not None and random.mean > first.mean else first


def _kept(last: Estimate, best: Estimate, random: Estimate, floor: float) -> str:
    """A log whose first evaluation came after learning had begun: the gain is that over a random policy."""
    kept = (last.mean - random.mean) / (best.mean - random.mean)
    if kept < KEPT_HALF or not above(last, random) or last.mean <= floor:
        return "lost"
    return "part" if kept < KEPT_ALL else "flat"


def _against_random(good: list[Estimate], random: Estimate, floor: float) -> str:
    """A run that did not rise clearly above its start: better than random, worse, as good, or nobody can tell.

    That it is as good as random is told by its whole second half, for one evaluation alone is seldom sure enough.
    """
    last, late = good[-1], pooled(good[len(good) // 2 :])
    if above(random, last):
        return "worse"
    if above(last, random) and last.mean > floor:
        return "flat"
    return "not" if late.mean + SURE * _error(late, random) <= floor else "unclear"


def pooled(points: list[Estimate]) -> Estimate:
    """Several points as one: their mean."""
    errors = [p.se for p in points if math.isfinite(p.se)]
    error = math.hypot(*errors) / len(errors) if errors else math.nan
    return Estimate(points[-1].step, math.fsum(p.mean for p in points) / len(points), error, sum(p.n for p in points))


def _against_start(first: Estimate, last: Estimate) -> str:
    """Where nobody knows what a random policy earns."""
    gain, error = last.mean - first.mean, _error(first, last)
    return "not" if above(first, last) else "unclear" if gain > error else "flat"


def above(a: Estimate, b: Estimate) -> bool:
    """Whether a is higher than b by more than Z standard errors of the difference."""
    return a.mean - b.mean > Z * _error(a, b)


def _error(a: Estimate, b: Estimate) -> float:
    """Of the difference; what is not known is taken as none."""
    return math.hypot(*(0.0 if math.isnan(e.se) else e.se for e in (a, b)))


def _first_solved(run: History, course: Course, yard: Yardstick) -> tuple[int | None, float | None]:
    """The step at which the level was reached: eval.stop_at, else what Gymnasium calls solved."""
    stop = _get(run.config, "eval", "stop_at")
    own = is_number(stop) and course.evaluated
    level = float(stop) if own else yard.solved
    if level is None:
        return None, None
    step = next((p.step for p in course.points if p.mean >= level), None)
    return step, level if own or step is not None else None


def _stages(run: History) -> int:
    """How often the task was another one: returns of two stages do not compare."""
    return sum(event.get("kind") == "stage" for event in run.events)


def _share_that_rose(run: History) -> tuple[str, float, float] | None:
    """A rate of success or survival that rose clearly, where the return tells no gain."""
    for name in SHARES:
        ends = _rise(run, name) if name in run.columns else None
        if ends:
            return name, *ends
    return None


def _rose_in_training(run: History) -> bool:
    """Whether the returns of training end clearly above their start: learning may be over at the first evaluation."""
    return any(_rise(run, name) for name in run.columns if is_return(name) and not name.startswith("eval/"))


def _rise(run: History, metric: str) -> tuple[float, float] | None:
    """From where to where a metric rose, clear of noise; None where it did not."""
    good = [p for p in course_on(run, metric).points if math.isfinite(p.mean)]
    rose = len(good) > 1 and math.isfinite(good[-1].se) and above(good[-1], good[0])
    return (good[0].mean, good[-1].mean) if rose else None


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


# ---- Sentences


def sentence(v: Verdict) -> str:
    """Learned: 9.9 -> 500 (random 19.5), solved after 10,240 steps."""
    if v.kind == "none":
        return "No result yet: no evaluation was made and no episode has ended"
    if v.kind == "broken":
        return _broken(v)
    if v.kind == "unjudged":
        return "Not judged, no return was logged"
    if v.share:
        name, start, end = v.share
        return f"Learned by {name}: {number(start)} → {number(end)}, though not by the return: {_numbers(v)}"
    return _head(v).format(best=_best(v), step=f"{v.best.step:,}" if v.best else "?") + _numbers(v) + _solved(v)


def _head(v: Verdict) -> str:
    if v.kind == "top" and v.level is not None:
        return f"Solved ({number(v.level)}) throughout: "
    if v.early:
        return "Learned before the first evaluation, by the returns of training: "
    if v.kind == "learned" and (lacks := _lacks(v)):
        return lacks
    if v.kind == "not" and v.random is None:
        return "Did not learn, ends below where it began: "
    if v.kind == "flat" and v.random is None:
        return "No gain since the first value (what random earns is not known): "
    if v.kind == "unclear" and v.stages > 1:
        return f"Cannot tell, because the task changed ({v.stages} stages): "
    return _HEADS[v.kind]


def _lacks(v: Verdict) -> str:
    """What speaks against a plain "learned": it was far better before, or has hardly begun; empty where nothing does."""
    base = _base(v.points[0], v.random)
    if v.yardstick.at_top(v.final) or v.best is None:
        return ""
    if v.final - base.mean < KEPT_HALF * (v.best.mean - base.mean):
        return "Learned, but ends far below its best ({best} after {step} steps), as far as the noise tells: "
    solved = v.yardstick.solved
    if v.random is None or solved is None or not solved > v.random.mean:
        return ""
    way = (v.final - v.random.mean) / (solved - v.random.mean)
    return f"Learned little, {way:.0%} of the way from random to solved: " if way < LITTLE else ""


_HEADS = {
    "learned": "Learned: ",
    "top": "At its ceiling throughout: ",
    "unclear": "Cannot tell whether it learned, the noise is too large: ",
    "part": "Lost part of what it had learned after {step} steps (best {best}): ",
    "lost": "Lost what it had learned after {step} steps (best {best}): ",
    "flat": "Better than random, but no gain since the first value: ",
    "not": "Did not learn: ",
    "worse": "Did not learn, ends worse than a random policy: ",
    "short": "Too short to tell: ",
}


def _best(v: Verdict) -> str:
    return number(v.best.mean) if v.best else "?"


def _numbers(v: Verdict) -> str:
    ends = [v.points[0], v.points[-1]] if len(v.points) > 1 else v.points[-1:]
    level = f" (random {number(v.random.mean)})" if v.random else ""
    return _called(v.metric) + " → ".join(number(p.mean) for p in ends) + level


def _called(metric: str) -> str:
    """What stands before the numbers: nothing before a return of evaluations, which is what one expects."""
    if metric.startswith("return/mean"):
        return "training return "
    if metric.startswith("foreign/"):
        return f"{metric.removeprefix('foreign/')} "  # as its tool calls it
    return f"{metric} " if metric in RETURNS and metric not in glossary.RETURNS else ""


def _solved(v: Verdict) -> str:
    if v.level is None or v.kind == "top":
        return ""
    at = number(v.level)
    return f", solved ({at}) after {v.solved:,} steps" if v.solved is not None else f", {at} not reached"


def _broken(v: Verdict) -> str:
    start = next(i for i in range(len(v.points)) if all(not math.isfinite(p.mean) for p in v.points[i:]))
    return f"Broke: the return is not a number ({v.points[-1].mean}) from step {v.points[start].step:,} on"


def group_sentence(verdicts: list[Verdict]) -> str:
    """Learned on 4 of 5 seeds: 10.1 -> 487 [410, 564] (mean, 95 % interval, random 19.5)."""
    if len(verdicts) == 1:
        return sentence(verdicts[0])
    kinds = [v.kind for v in verdicts]
    words = [f"{text} on {kinds.count(kind)} of {len(kinds)} seeds" for kind, text in _COUNTED.items() if kind in kinds]
    text = ", ".join(words)
    return text[:1].upper() + text[1:] + ": " + _group_numbers(verdicts)


def brief_sentence(verdicts: list[Verdict]) -> str:
    """learned on 4 of 5 seeds, ends at 487; what became of the others is told elsewhere."""
    kinds, n = [v.kind for v in verdicts], len(verdicts)
    kept = sum(kind in ("learned", "top") for kind in kinds)
    kind = "learned" if kept else max(_COUNTED, key=kinds.count)
    seeds = _on_seeds(kind, kept or kinds.count(kind), n) if n > 1 else ""
    end = finals([v for v in verdicts if v.points and v.metric == verdicts[0].metric])
    where = f", ends at {number(end.mid)}" if end.n and math.isfinite(end.mid) else ""
    return _COUNTED[kind] + seeds + where


def _on_seeds(kind: str, how_many: int, n: int) -> str:
    if how_many < n:
        return f" on {how_many} of {n} seeds"
    if n == 2:
        return " on either seed" if kind == "not" else " on both seeds"
    return f" on any of {n} seeds" if kind == "not" else f" on all {n} seeds"


def many_sentence(verdicts: list[Verdict], configs: int) -> str:
    """14 configs: 3 runs learned, 9 too short to tell."""
    kinds = [v.kind for v in verdicts]
    words = [f"{kinds.count(kind)} {text}" for kind, text in _COUNTED.items() if kind in kinds]
    return f"{configs} configs, {len(kinds)} runs: {', '.join(words)}"


_COUNTED = {
    "learned": "learned", "top": "at the top throughout", "part": "learned and lost part of it",
    "lost": "learned and lost it", "not": "did not learn", "flat": "no gain since the first value",
    "unclear": "too noisy to tell", "worse": "worse than random", "broken": "broke",
    "short": "too short to tell", "unjudged": "not judged", "none": "no result",
}  # fmt: skip


def _group_numbers(verdicts: list[Verdict]) -> str:
    counted = [v for v in verdicts if v.points and math.isfinite(v.final) and v.metric == verdicts[0].metric]
    if not counted:
        return "no number to give"
    firsts = np.mean([v.points[0].mean for v in counted])
    random = next((v.random for v in counted if v.random), None)
    end = finals(counted)
    spread = f" from {number(end.least)} to {number(end.most)}" if not end.known and end.least < end.most else ""
    notes = [f"mean of seeds{spread}", *([f"random {number(random.mean)}"] if random else [])]
    return f"{number(float(firsts))} → {number(end.mid) if spread else interval_text(end)} ({', '.join(notes)})"


def finals(verdicts: list[Verdict]) -> SeedMean:
    """Mean over seeds of the outcome, with the one interval for it, within what the environment allows."""
    marks = [v.yardstick for v in verdicts if v.points]
    low = min((y.lowest for y in marks if math.isfinite(y.lowest)), default=-math.inf)
    high = max((y.highest for y in marks if math.isfinite(y.highest)), default=math.inf)
    return mean_over_seeds([v.final for v in verdicts], (low, high))


def interval_text(x: SeedMean) -> str:
    """487 [410, 500]; under five seeds, where no interval has been shown to hold, 487 (from 412 to 500)."""
    if not x.n or x.least == x.most:  # nothing varied, which an interval of width 0 would overstate
        return number(x.mid)
    if not x.known:
        return f"{number(x.mid)} (from {number(x.least)} to {number(x.most)})"
    return f"{number(x.mid)} [{number(x.low)}, {number(x.high)}]"
