"""Did it learn, and did it keep what it learned? One sentence per run and per group, relative to the noise.

Every command reads this verdict. The run's course (course.py) is held against what is known of the task (yardstick.py):
- at the top, or at the level that is called solved, it learned; where it was there from the first value on, "top";
- else it learned when it ends above the random policy, clearly and by a gain that matters, and above where it began;
- where it is better than random without that, its end is held against its first value: "gained" and "fell" are beyond
  the 95 % interval of the difference, "flat" is within it; a run that began with another's weights may fall to random;
- it lost it when its end has fallen to under half of what it had gained (fall.py); where one point alone is so low, or
  it fell and came back not long ago, or it has swung as far before, it is "unstable", wherever its last point lies;
- it did not learn when even its upper end (SURE standard errors) is no gain over random that matters, or when its second
  half stays within a twentieth of the way from random to solved; it is worse when its last two points lie below random,
  by a difference that matters; neither is said of evaluations where the returns of training rose clear of random;
- it is not judged where all returns have the sign that its environment's cannot have: less of them may be more;
- what lies between is not told: "unclear". Without a random level the run's own start is all there is, which is said.
What is above what is told in apart.py: few episodes tell little of their noise, and the best of many is high by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from relab.record import levels
from relab.record.evaluations import Estimate, evaluations, outcome_of
from relab.record.history import History, measured, silent_since
from relab.runs.course import RETURNS as RETURNS
from relab.runs.course import Course, course_of, course_on
from relab.runs.course import is_return as is_return
from relab.runs.apart import clearly, error_of, half_width, pooled, steadied, unkept
from relab.runs.fall import RECENT, Fall, crossing, dipped, fall_of
from relab.runs.rise import Training, risen
from relab.runs.models import ModelFit, learns_model, model_of
from relab.runs.solved import Reached, reached
from relab.runs.values import Fit, fit_of, fits_values
from relab.runs.yardstick import Yardstick, yardstick_of

SURE = 2.0  # standard errors: the upper end of what a level may be
KEPT_ALL, KEPT_HALF = 0.8, 0.5  # shares of the gain that remain at the end
OPEN_END = 1.5  # times that: what its end may be, errors included, of a run that has hardly learned
LITTLE = 0.25  # of the way from random to solved
SHARES = ("eval/success_det", "eval/success_sampled", "return/success", "env/survived")  # 1 is all there is
NOTHING = 0.1  # of a return: a gain under it, errors included, matters to nobody
HARDLY = 0.05  # of that way: no learning that matters, however clear of noise
FEW_STEPS = 0.1  # of those with which others published a result: who has not learned by then may still do so
LATE = 3  # points at the end that are one where each tells little
FEWEST = 3  # points below which nobody is said not to have learned
POOR = ("flat", "fell", "not", "worse", "unclear", "unstable")
STILL = ("flat", "unclear")  # no gain, but no loss either


@dataclass(frozen=True)
class Rise:
    """From where to where the returns of training rose, and whether they had when evaluations began."""

    start: float
    end: float
    early: bool


@dataclass(frozen=True)
class Verdict:
    """kind: learned, gained, top, part, lost, fell, unstable, flat, not, worse, unclear, broken, short, unjudged, opposite
    (its returns have the sign that its environment's cannot have), fit (a critic alone), model (a world model alone) or none.

    `points` are what it was judged by, and the last of them is the outcome: none where it was not judged.
    """

    kind: str
    metric: str = ""
    points: list[Estimate] = field(default_factory=list)
    random: Estimate | None = None
    best: Estimate | None = None
    reached: Reached | None = None  # how the level was, none where it was not
    level: float | None = None  # eval.stop_at, or what Gymnasium calls solved
    stages: int = 0  # times that the task changed on the way
    share: tuple[str, float, float] | None = None  # a rate that rose where the return says nothing: name, from, to
    yardstick: Yardstick = field(default_factory=Yardstick)
    flaw: str = ""
    lost: int | None = None  # step from which on the return is not finite
    trained: Rise | None = None  # of the returns of training, where evaluations tell no gain and are as high
    rising: Training | None = None  # of the returns of training, clear of random, whatever evaluations are
    fall: Fall | None = None  # of a run that lost what it had learned
    below_random: bool = False  # its last two points are
    dip: Estimate | None = None  # the points after a first value that they did not keep: what a gain is counted from
    near_random: bool = False  # its second half stays there
    silent: int | None = None  # step of the last return, where the run went on long after it
    hardly: bool = False  # for which alone it is said not to have learned
    fit: Fit | None = None  # of a run in which a critic alone learned
    model: ModelFit | None = None  # of a run in which a world model alone learned
    possible: tuple[float, float] | None = None  # returns of the environment, where the log's have the other sign

    @property
    def final(self) -> float:
        """The run's outcome."""
        return self.points[-1].mean if self.points else math.nan

    @property
    def learned(self) -> bool:
        """Whether it ends with something that it learned."""
        if self.kind == "unstable":  # what it ends with counts, and it may end low
            base = self.random.mean if self.random else self.points[0].mean
            return self.best is not None and self.final - base >= KEPT_HALF * (self.best.mean - base)
        if self.kind == "fit":
            return self.fit is not None and self.fit.useful
        if self.kind == "model":
            return self.model is not None and self.model.useful
        if self.kind == "fell":
            return self.random is not None and above(steadied(self.points)[-1], self.random)
        return self.kind in ("learned", "part", "top", "gained") or (self.kind == "flat" and self.random is not None)

    @property
    def change(self) -> tuple[float, float]:
        """From the first point to the last, and the half-width of the 95 % interval of that."""
        good = steadied([p for p in self.points if math.isfinite(p.mean)])
        return good[-1].mean - good[0].mean, half_width(good[0], good[-1])

    @property
    def peak(self) -> Estimate | None:
        """The highest of its points, the last of equals, whatever became of it."""
        good = [p for p in self.points if math.isfinite(p.mean)]
        return max(reversed(good), key=lambda p: p.mean, default=None)

    @property
    def evaluated(self) -> bool:
        """Whether points are evaluations; else each is the mean over about a tenth of training."""
        return self.metric.startswith("eval/")

    @property
    def spread(self) -> tuple[Estimate, Estimate, int]:
        """The lowest and the highest point from the best one on, or of the recent ones, and the step of the first."""
        good = [p for p in self.points if math.isfinite(p.mean)]
        top = max(range(len(good)), key=lambda i: good[i].mean)
        some = good[min(top, max(len(good) - RECENT, 0)) :]
        return min(some, key=lambda p: p.mean), max(some, key=lambda p: p.mean), some[0].step


def verdict_of(run: History) -> Verdict:
    """Look at a run's evaluations, or its training returns where it has none."""
    course = course_of(run)
    if fits_values(run):
        return Verdict("fit", course.metric, course.points, fit=fit_of(run))
    if learns_model(run):
        return Verdict("model", course.metric, course.points, model=model_of(run))
    if not course.points:
        return Verdict("none")
    if not is_return(course.metric):  # a loss that falls is no policy that learned
        return Verdict("unjudged", course.metric, flaw=course.flaw)
    yard, good = yardstick_of(run, course.metric), [p for p in course.points if math.isfinite(p.mean)]
    if not good or course.flaw:
        return Verdict("broken", course.metric, course.points, yard.random, yardstick=yard, flaw=course.flaw,
                       lost=course.lost)  # fmt: skip
    if yard.opposite(good) and not _share_that_rose(run):
        return Verdict("opposite", course.metric, course.points, possible=(yard.lowest, yard.highest))
    yard = yard if yard.fits(good) else Yardstick(choice=yard.choice)
    best = max(reversed(good), key=lambda p: p.mean)  # the last of equals: what was lost was lost after it
    level, at = reached(run, course, yard)
    rising = risen(run, yard) if course.evaluated else None
    worse, near = rising is None and _below_random(run, good, yard), _near_random(good, yard)
    fall = _fall(run, course, good, yard)
    dip = unkept(good) if yard.random is not None and not _resumed(run) else None
    kind, stages = _since_start(run, good, yard, _kind(good, yard, level, worse, fall, dip)), _stages(run)
    hardly = (near and kind in ("learned", "part", "flat", "unclear")) or (kind in ("lost", "unstable") and _no_way(best, yard))
    kind = "not" if hardly else kind
    kind = "short" if kind == "not" and (rising or _has_hardly_begun(run, course, good)) else kind
    still = kind in STILL and yard.random is None and course.evaluated
    trained = _rise_in_training(run, good) if still else None
    kind = "learned" if trained else kind
    share = _share_that_rose(run) if kind in POOR else None
    if kind in POOR and (share or (stages > 1 and not course.evaluated)):
        kind = "learned" if share else "unclear"  # returns of two stages are not about one task
    return Verdict(kind, course.metric, course.points, yard.random, best, at, level, stages, share, yard,
                   trained=trained, rising=rising, fall=fall, below_random=worse, near_random=near and not rising,
                   hardly=hardly and not rising, dip=dip,
                   silent=silent_since(run, course.metric) if course.metric in run.columns else None)  # fmt: skip


def _kind(good: list[Estimate], yard: Yardstick, level: float | None, worse: bool, fall: Fall | None,
          dip: Estimate | None) -> str:  # fmt: skip
    sure = steadied(good)
    first, last = sure[0], sure[-1]
    if len(good) < 2 or not math.isfinite(last.se):
        return "learned" if _beats_random(last, yard) else "short"
    if fall is not None:
        return "lost"
    swings = dipped(good, yard.random.mean if yard.random else first.mean)
    tops = [yard.at_top(p.mean) or (level is not None and p.mean >= level) for p in good]
    if tops[-1]:
        return "top" if all(tops) else "unstable" if swings else "learned"
    base, floor = base_of(dip or first, yard.random), yard.random.mean + yard.matters if yard.random else -math.inf
    steady = len(good) > LATE and all(p.mean > floor and not above(p, last) for p in sure[-LATE:])
    kept, ends = _kept(good), [last, *([pooled(good[-LATE:])] if steady else [])]  # three tell more, if they agree
    if last.mean > floor and any(above(end, base) for end in ends):
        return "unstable" if swings else kept.word(base, "learned")
    ground = yard.random if first.step > 0 and yard.random else base  # it may have learned before the first value
    if kept.best is not None and above(kept.best, ground, len(good)) and kept.best.mean > floor:
        ends_well = yard.random is not None and any(above(end, yard.random) for end in ends) and last.mean > floor
        return kept.word(ground, "flat") if ends_well and not swings else "worse" if worse else "unstable"
    return _against_start(first, last) if yard.random is None else _against_random(good, ends, yard.random, floor, worse)


def _since_start(run: History, good: list[Estimate], yard: Yardstick, kind: str) -> str:
    """What is no clear gain may be one within reach of the noise, none, or a fall; where random is known."""
    if yard.random is None or len(good) < 2:
        return kind
    sure = steadied(good)
    first, last = sure[0], sure[-1]
    if kind == "flat":
        gain, wide = last.mean - first.mean, half_width(first, last)
        return "gained" if gain > wide else "fell" if gain < -wide else "flat"
    began_well = _resumed(run) and above(first, yard.random) and above(first, last)
    return "fell" if began_well and kind in ("not", "worse", "unclear") else kind


@dataclass(frozen=True)
class Kept:
    """The best that lies clearly above the end of a course, none where nothing does, and that end."""

    end: Estimate
    best: Estimate | None

    def word(self, base: Estimate, well: str) -> str:
        """How much of it is left, of a run that ends with a gain and did not fall for good."""
        kept = 1.0 if self.best is None else (self.end.mean - base.mean) / (self.best.mean - base.mean)
        return well if kept >= KEPT_ALL else "part" if kept >= KEPT_HALF else "unstable"


def _kept(good: list[Estimate]) -> Kept:
    """Point against point, and, where few episodes tell little, three in a row against the last three."""
    sure, k = steadied(good), len(good)
    rows = [pooled(good[i : i + LATE]) for i in range(k - LATE)] if k > 2 * LATE else []
    pairs = [(sure[-1], p) for p in sure] + [(pooled(good[-LATE:]), p) for p in rows]
    clear = [Kept(end, p) for end, p in pairs if above(p, end, len(pairs))]
    return max(clear, key=lambda one: one.best.mean if one.best else 0.0, default=Kept(sure[-1], None))


def _fall(run: History, course: Course, good: list[Estimate], yard: Yardstick) -> Fall | None:
    """Also where the first value came when learning had begun: not of a run that went on with another's weights."""
    random, first = yard.random, good[0]
    start = min(first, good[-1], key=lambda p: p.mean) if _resumed(run) else first
    fall = fall_of(good, random or start, random is not None and first.step > 0 and not _resumed(run))
    return None if fall is None else replace(fall, step=began(run, course, good, fall.start, fall.half))


def began(run: History, course: Course, good: Sequence[Estimate], start: int, level: float) -> int:
    """The step at which a stretch of points below a level began: that of an evaluation; of training, the row, for a
    block is as long as a tenth of the run."""
    step = good[start].step
    if course.evaluated:
        return step
    column = measured(run, course.metric)
    since = good[start - 2].step if start > 1 else -math.inf
    rows = np.flatnonzero((column.steps > since) & (column.steps <= step) & np.isfinite(column.values))
    at = crossing(column.values[rows], level)
    return int(column.steps[rows[min(at, len(rows) - 1)]]) if len(rows) else step


def _below_random(run: History, good: list[Estimate], yard: Yardstick) -> bool:
    """Whether the last two of at least three points lie below random, each by more than SURE standard errors and by a
    difference that matters.

    Of a policy that is unsure of its actions the likeliest may be a bad one: where sampled ones were evaluated, they
    must be as bad.
    """
    if yard.random is None:
        return False
    played = [p for p in evaluations(run.evals, "sampled", outcome_of(run.meta)) if math.isfinite(p.mean)]
    return all(_ends_below(points, yard) for points in (good, played) if points)


def _ends_below(points: Sequence[Estimate], yard: Yardstick) -> bool:
    """An error that is not known is taken as that of one random episode."""
    known = [replace(p, se=p.se if math.isfinite(p.se) else yard.spread) for p in points[-2:]]
    return len(points) >= FEWEST and yard.random is not None and all(
        p.mean + max(SURE * error_of(p, yard.random), yard.matters) < yard.random.mean for p in known)  # fmt: skip


def _near_random(good: list[Estimate], yard: Yardstick) -> bool:
    """Whether its second half, which does not rise, is within a twentieth of the way from random to the solved level.

    A rise from 15 to 26 may be clear of noise, and is nothing where random earns 22 and 475 is solved.
    """
    if yard.random is None or yard.solved is None or len(good) < 4:
        return False
    half = good[len(good) // 2 :]
    error = 0.0 if math.isnan(good[-1].se) else good[-1].se
    reached = good[-1].mean + SURE * error - yard.random.mean
    if above(half[-1], half[0]) or reached > OPEN_END * HARDLY * (yard.solved - yard.random.mean):
        return False  # slow, but on its way
    return pooled(half).mean - yard.random.mean < HARDLY * (yard.solved - yard.random.mean)


def _no_way(best: Estimate, yard: Yardstick) -> bool:
    """Whether even the best point is within a twentieth of the way: there was nothing to lose."""
    random, solved = yard.random, yard.solved
    return random is not None and solved is not None and best.mean - random.mean < HARDLY * (solved - random.mean)


def _has_hardly_begun(run: History, course: Course, good: list[Estimate]) -> bool:
    """Whether it is too soon to say that it did not learn: few points, or few steps for its task."""
    least = least_steps(run, course.metric)
    return len(good) < FEWEST or (least is not None and good[-1].step < least and not _resumed(run))


def _resumed(run: History) -> bool:
    return bool(run.meta.get("parent") or run.meta.get("resumed"))


def least_steps(run: History, metric: str) -> float | None:
    """A tenth of the steps of the quickest published run; None where nobody knows, or where steps are not counted."""
    spec = run.meta.get("spec")
    budgets = [row.steps for row in levels.of(str(spec.get("env")))] if isinstance(spec, dict) else []
    counted = run.axes.get(metric, "env_steps") in ("env_steps", "agent_steps")
    return FEW_STEPS * min(budgets) if budgets and counted else None


def _beats_random(only: Estimate, yard: Yardstick) -> bool:
    """Whether a single evaluation on the way says enough: clear of a random policy, by a gain that matters."""
    if yard.random is None or only.step <= 0 or not math.isfinite(only.se):
        return False
    return above(only, yard.random) and only.mean > yard.random.mean + yard.matters


def base_of(first: Estimate, random: Estimate | None) -> Estimate:
    """What a gain is counted from: the start, or random where that is better."""
    return random if random is not None and random.mean > first.mean else first


def _against_random(
    good: list[Estimate], ends: list[Estimate], random: Estimate, floor: float, worse: bool
) -> str:
    """A run that did not rise clearly above its start: better than random, worse, as good, or nobody can tell.

    That it is as good as random is told by its whole second half, for one evaluation alone is seldom sure enough.
    """
    last, late = good[-1], pooled(good[len(good) // 2 :])
    if worse:
        return "worse"
    if last.mean > floor and any(above(end, random) for end in ends):
        return "learned" if last.mean > good[0].mean and not above(steadied(good)[0], random) else "flat"
    return "not" if late.mean + SURE * error_of(late, random) <= floor else "unclear"


def _against_start(first: Estimate, last: Estimate) -> str:
    """Where nobody knows what a random policy earns."""
    gain, error = last.mean - first.mean, error_of(first, last)
    nothing = gain + SURE * error <= NOTHING * max(abs(first.mean), abs(last.mean))
    return "not" if above(first, last) else "unclear" if gain > error and not nothing else "flat"


def above(a: Estimate, b: Estimate, looks: int = 1) -> bool:
    """Whether a is clearly higher than b; `looks` are the points that one of them was picked from."""
    return clearly(a.mean - b.mean, a, b, looks)


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


def _rise_in_training(run: History, good: Sequence[Estimate]) -> Rise | None:
    """What training gained, where its returns end clearly above their start and evaluations are as high: learning may
    be over at the first of them. Evaluations that stay below half of that way play something else."""
    level = pooled(good[len(good) // 2 :]).mean
    for name in (n for n in run.columns if is_return(n) and not n.startswith("eval/")):
        ends = _rise(run, name)
        half = ends[0] + KEPT_HALF * (ends[1] - ends[0]) if ends else math.inf
        if ends and level >= half:
            column = measured(run, name)
            before = column.values[column.steps <= good[0].step]
            return Rise(*ends, early=bool(len(before)) and float(before[-1]) >= half)
    return None


def _rise(run: History, metric: str) -> tuple[float, float] | None:
    """From where to where a metric rose, clear of noise; None where it did not."""
    good = [p for p in course_on(run, metric).points if math.isfinite(p.mean)]
    rose = len(good) > 1 and math.isfinite(good[-1].se) and above(good[-1], good[0])
    return (good[0].mean, good[-1].mean) if rose else None
