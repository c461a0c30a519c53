"""How did the return go, how sure is each point, and what is the outcome? The one place that says so, for all commands.

Evaluations count first: each is a mean of n episodes. Without them the returns of training count, in ten blocks: the
last tenth of the steps is the run's outcome, those before it are cut into nine equal parts. Rows of training are seldom independent: a mean over the last 100 episodes
shares most of them with the row before, so that neighbours lie close together whatever the noise is.

Error of a block of m rows. Where a row is the mean of the last W = 100 episodes (of fewer at first), a row over a and
the next over b of them, o of which are the same, differ with the variance s^2 (1/a + 1/b - 2 o / (a b)), from which s, the
spread of episodes, and s / sqrt(max(b, episodes of the block)) follow.
Where nothing is known of the rows: batch means. For batches of b = 1, 2, 4, ... rows the variance of a batch is told by
second differences (which a trend does not move), and b times it grows with b until batches are independent; the
largest is taken. Few rows tell little of their noise: each error has its degrees of freedom, which tests go by.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from relab.config.views import flatten
from relab.record import glossary
from relab.record.evaluations import Estimate, evaluations, outcome_of
from relab.record.history import EARNED, Column, History, end_rows, flaw, lost_at, measured
from relab.record.state import diverged_at
from relab.runs.apart import Steadied
from relab.runs.values import FIT, fits_values

BLOCKS = 10
TRAINED = ("return/mean", "return/mean_100")  # returns of training, that of single rows first: it does not lag
ROLLING = {"return/mean_100": 100}  # metric -> episodes that a row is the mean of
BATCHES = 10  # at least so many batches tell a variance: with fewer, the bends of the curve are taken for noise
NEAR = 8  # rows on either side of a block that tell its noise, at least
JUMP = 5.0  # spreads of the rows on both sides: noise alone cuts no seven or more rows so clearly
ROUNDING, TINY = 1e-9, 1e-300
FEW = 4  # rows from which a curve's own noise can be told
NORMAL, ABSOLUTE = 1.4826, 1.2533  # median, mean absolute deviation -> standard deviation of a normal
EPISODES = 30  # of a block from which on they tell their own noise
FEWEST_DF = 3.0  # of the noise of a curve: a level of three rows is told apart by how far it lies from all others, too
OVERLAP = 0.5  # second differences that tell as much of a variance as one independent row
RETURNS = (*glossary.RETURNS, "eval/success_det", "eval/success_sampled", "return/success")
NO_RETURN = re.compile(r"(?i)std|min|max|loss|scale")


class Noise(NamedTuple):
    """A standard error, and by how much it is told."""

    error: float
    df: float = math.inf


UNKNOWN = Noise(math.nan)


@dataclass(frozen=True)
class Course:
    """What a run is judged by: points with their errors, the last of which is the outcome."""

    metric: str = ""
    points: list[Estimate] = field(default_factory=list)
    flaw: str = ""  # why it ends without a number
    rows: int = 1  # of the log, in the last point
    lost: int | None = None  # step from which on no row is finite

    @property
    def evaluated(self) -> bool:
        return self.metric.startswith("eval/")

    @property
    def outcome(self) -> Estimate | None:
        """The run's number, the same in every command; none where there is none, or it is not finite."""
        return self.points[-1] if self.points and not self.flaw and is_return(self.metric) else None


def course_of(run: History) -> Course:
    """Deterministic evaluations, else sampled ones, else the returns of training, else whatever comes first; of a run in
    which a critic alone learned, what it explains."""
    course, step = _logged(run), diverged_at(run.meta)
    if step is None or course.flaw or not course.points or not is_return(course.metric):
        return course
    gone = replace(course.points[-1], step=step, mean=math.nan, se=math.nan)
    return replace(course, points=[*course.points, gone], flaw=f"not finite at step {step:,}", lost=step)


def _logged(run: History) -> Course:
    """As the rows of the log have it, which may end before the run did."""
    if fits_values(run):
        if FIT not in run.columns:  # it was refused, or killed, before its first row
            return Course(FIT)
        column = measured(run, FIT)
        return Course(FIT, [Estimate(s, v, math.nan, 1) for s, v in zip(column.steps.tolist(), column.values.tolist())])
    decides = flatten(run.config).get("eval.by") or "det"
    for mode in dict.fromkeys((str(decides), "det", "sampled")):
        played = evaluations(run.evals, mode, outcome_of(run.meta))
        if played:
            return _evaluated(played[0].metric, with_noise(sorted(played, key=lambda p: p.step)))
    metric = judged_by(run)
    return course_on(run, metric) if metric else Course()


def course_on(run: History, metric: str) -> Course:
    """The course of one metric of a run; returns of training in blocks."""
    column = measured(run, metric)
    if metric.startswith("eval/"):
        errors = logged_errors(run, metric)
        points = [Estimate(s, v, *errors.get(s, (math.nan, 0)))
                  for s, v in zip(column.steps.tolist(), column.values.tolist())]  # fmt: skip
        return _evaluated(metric, with_noise(points))
    return _trained(run, metric, column)


def logged_errors(run: History, metric: str) -> dict[int, tuple[float, int]]:
    """Step -> standard error and number of episodes of returns whose log says how they spread (as numpy.std has it) and
    how many they are."""
    spread, count = (run.columns.get(name) for name in (metric.replace("/return_", "/std_"), "eval/episodes"))
    if "/return_" not in metric or spread is None or count is None:
        return {}
    counts = dict(zip(count.steps.tolist(), count.values.tolist()))
    known = ((s, std, counts.get(s, 0.0)) for s, std in zip(spread.steps.tolist(), spread.values.tolist()))
    errors = {s: (std / math.sqrt(n - 1), int(n)) for s, std, n in known if n >= 2 and math.isfinite(n) and std >= 0}
    return errors if len(errors) >= FEW else {}  # so few evaluations of a log that names no episodes judge nothing


def judged_by(run: History) -> str:
    """The column without single episodes: a return under relab's name, else one that is called so, else the first."""
    ours = [name for name in glossary.RETURNS if name in run.columns]
    theirs = sorted((name for name in run.columns if is_return(name)), key=lambda name: not name.startswith("foreign/"))
    rest = [name for name, column in run.columns.items()
            if not name.startswith(("time/", "data/", "return/")) and not _is_clock(column.values)]  # fmt: skip
    enough = [name for name in ours if len(run.columns[name].values) >= FEW]
    return next(iter([*enough, *ours, *theirs, *rest]), "")


def _is_clock(values: np.ndarray) -> bool:
    """Whether it rises at every row, as a count of steps or a time does: no measure of a policy."""
    return len(values) >= FEW and bool((np.diff(values) > 0).all())


def is_return(metric: str) -> bool:
    """Whether more of it is what the agent is trained for, by its name.

    >>> is_return("foreign/rollout/ep_rew_mean"), is_return("foreign/train/value_loss")
    (True, False)
    """
    if metric in RETURNS:
        return True
    last = metric.rpartition("/")[2]
    match = EARNED.search(last) if metric.startswith("foreign/") else None
    return match is not None and not NO_RETURN.search(last[match.end() :])


def _evaluated(metric: str, points: list[Estimate]) -> Course:
    if not points or math.isfinite(points[-1].mean):
        return Course(metric, [*points])
    rows = Column(np.array([p.step for p in points]), np.array([p.mean for p in points]))
    return Course(metric, [*points], "its last evaluation is not finite", lost=lost_at(rows))


# ---- Returns of training


def _trained(run: History, metric: str, column: Column) -> Course:
    n = len(column.values)
    if not n:
        return Course(metric)
    last = end_rows(column.steps)
    why = flaw(column.values, last)
    cuts = _cuts(column.steps, last)
    noises = _noises(run, metric, column, cuts)
    points = [_point(column, cut, noise) for cut, noise in zip(cuts, noises)]
    if why:
        mean = float(column.values[~np.isfinite(column.values)][-1])
        points[-1] = Estimate(int(column.steps[-1]), mean, math.nan, last)
    return Course(metric, points, why, last, lost_at(column))


def _cuts(steps: np.ndarray, last: int) -> list[np.ndarray]:
    """Rows of each block: the end is the run's outcome, the rest in up to nine parts of equal steps, two rows or more.

    Of steps, not rows: a log of single episodes has most of its rows where episodes are short, which is where the
    policy is bad.
    """
    rest = len(steps) - last
    if rest <= FEW:
        return [np.array([i]) for i in range(rest)] + [np.arange(rest, len(steps))]
    count = min(BLOCKS - 1, rest // 2)
    begin = float(steps[0]) - (float(steps[rest - 1]) - float(steps[0])) / (rest - 1)  # a row is about the steps before
    ends = np.linspace(begin, float(steps[rest - 1]), count + 1)[1:-1]
    parts = np.split(np.arange(rest), np.searchsorted(steps[:rest], ends + ROUNDING * abs(ends), side="right"))
    return [*_with_two(parts), np.arange(rest, len(steps))]


def _with_two(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Parts of fewer than two rows joined to the next one; at the end, to the one before."""
    whole: list[np.ndarray] = []
    rest = np.zeros(0, dtype=np.int64)
    for part in parts:
        rest = np.concatenate([rest, part])
        if len(rest) > 1:
            whole.append(rest)
            rest = np.zeros(0, dtype=np.int64)
    if len(rest):
        whole.append(np.concatenate([whole.pop(), rest]) if whole else rest)
    return whole


def _point(column: Column, cut: np.ndarray, noise: Noise) -> Estimate:
    """The mean of a block's finite rows, at the last of them; of a block without any neither mean nor error is known."""
    good = cut[np.isfinite(column.values[cut])]
    if not len(good):
        return Estimate(int(column.steps[cut[-1]]), math.nan, math.nan, len(cut))
    with np.errstate(all="ignore"):
        mean = float(column.values[good].mean())
    return Steadied(int(column.steps[good[-1]]), mean, noise.error, len(cut), noise.df)


def _noises(run: History, metric: str, column: Column, cuts: list[np.ndarray]) -> list[Noise]:
    """The standard error of each block's mean; NaN where the curve is too short to tell."""
    with np.errstate(all="ignore"):
        known = _counted(run, metric, column, cuts)
        if known is None and metric in ROLLING:
            known = _rolling(run, column, cuts, ROLLING[metric])
        return known if known is not None else _batched(column.values, cuts)


def _counted(run: History, metric: str, column: Column, cuts: list[np.ndarray]) -> list[Noise] | None:
    """Rows that say over how many episodes they are means, and how these spread (as numpy.std has it)."""
    spread, counts = (run.columns.get(f"return/{k}") for k in ("std", "episodes"))
    if metric != "return/mean" or spread is None or counts is None:
        return None
    std, n = (dict(zip(c.steps.tolist(), c.values.tolist())) for c in (spread, counts))
    rows = [_row(std.get(step), n.get(step)) for step in column.steps.tolist()]
    if np.mean([row is not None for row in rows]) < 0.5:
        return None
    known = np.array([row or (0.0, 1.0) for row in rows])  # a single episode says nothing of its own noise
    return [_of_episodes(column.values, known, cut) for cut in cuts]


def _row(std: float | None, n: float | None) -> tuple[float, float] | None:
    known = std is not None and n is not None and math.isfinite(std) and math.isfinite(n) and n > 1
    return (std, n) if known else None  # type: ignore[return-value]


def _of_episodes(values: np.ndarray, known: np.ndarray, cut: np.ndarray) -> Noise:
    """From the spread within rows; where a block has few episodes, from all that lie near it, and how far their rows lie
    from a line."""
    std, n = known.T
    if n[cut].sum() >= EPISODES:
        inside = cut[n[cut] > 1]
        square = float((n[inside] * std[inside] ** 2).sum() / max((n[inside] - 1).sum(), 1.0))
        return Noise(math.sqrt(square * float((1 / n[cut]).sum())) / len(cut))
    start, stop = around(values, cut)
    near = np.arange(start, stop)[np.isfinite(values[start:stop])]
    total = float(n[near].sum())
    if len(near) < FEW:
        return UNKNOWN
    slope, level = np.polyfit(near, values[near], 1, w=np.sqrt(n[near]))  # a rise is no noise
    off = values[near] - level - slope * near
    square = float((n[near] * (std[near] ** 2 + off**2)).sum()) / (total - 2)
    return Noise(math.sqrt(square * float((1 / n[cut]).sum())) / len(cut), total - 2)


def _rolling(run: History, column: Column, cuts: list[np.ndarray], window: int) -> list[Noise] | None:
    """Rows that are means over the last `window` episodes, where episode lengths tell how many of them are new."""
    if len(column.values) < FEW:
        return None
    new, behind = _played(run, column, window)
    shared = np.maximum(behind[1:] - new, 0)
    share = 1 / behind[:-1] + 1 / behind[1:] - 2 * shared / (behind[:-1] * behind[1:])
    steps = np.diff(column.values) / np.sqrt(np.maximum(share, TINY))  # each of the spread of episodes
    noises = []
    for cut in cuts:
        start, stop = around(column.values, cut)
        near = steps[start : stop - 1]
        near = near[np.isfinite(near) & (share[start : stop - 1] > 0)]
        spread = float(near.std(ddof=1)) if len(near) > 1 else math.nan
        played = float(np.minimum(new, window)[max(cut[0] - 1, 0) : cut[-1]].sum())  # a row sees no more of them
        noises.append(Noise(spread / math.sqrt(max(float(behind[cut[-1]]), played)), max(len(near) - 1.0, FEWEST_DF)))
    return noises


def _played(run: History, column: Column, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Episodes that are new in each row but the first, and those that each row is the mean of: at first fewer than the
    window has room for."""
    new = _new_episodes(run, column)
    new = _guessed(column.values, window) if new is None else new
    new = np.where(np.diff(column.values) != 0, np.maximum(new, 1), new)  # else the mean would not have moved
    if _begins_late(column):
        return new, np.full(len(column.values), float(window))
    first = new[0] * column.steps[0] / max(float(column.steps[1] - column.steps[0]), 1.0)
    return new, np.clip(max(first, 1.0) + np.r_[0.0, np.cumsum(new)], 1.0, window)


def _begins_late(column: Column) -> bool:
    """Whether the log begins long after step 0, as that of a resumed run does: its window may be full."""
    return len(column.steps) > 1 and float(column.steps[0]) > FEW * float(column.steps[-1] - column.steps[0])


def _new_episodes(run: History, column: Column) -> np.ndarray | None:
    """Episodes that ended between two rows: steps over the mean length of an episode; None where that is not logged."""
    if run.axes.get("return/mean_100") == "episodes":
        return np.maximum(np.diff(column.steps), 0).astype(np.float64)
    length = run.columns.get("return/length")
    if length is None or run.axes.get("return/mean_100", "env_steps") not in ("env_steps", "agent_steps"):
        return None
    known = dict(zip(length.steps.tolist(), length.values.tolist()))
    lengths = np.array([known.get(step, math.nan) for step in column.steps.tolist()])
    good = np.isfinite(lengths) & (lengths > 0)
    if good.mean() < 0.5:
        return None
    lengths[~good] = np.median(lengths[good])
    return np.maximum(np.diff(column.steps), 0) / lengths[1:]


def _guessed(values: np.ndarray, window: int) -> np.ndarray:
    """The same from how alike neighbours are: rows that share 1 - k / W of their episodes correlate so much.

    A trend makes neighbours alike as well, so that fewer episodes count as new and the error becomes larger; and few rows
    look less alike than they are: the upper end of what the likeness may be is taken (Kendall 1954 for its bias). The
    first half is left out, where rows may be means of few episodes.
    """
    good = values[np.isfinite(values)]
    if not len(good):
        return np.ones(len(values) - 1)
    good = good[len(good) // 2 :] if len(good) >= 2 * FEW else good
    good = good - good.mean()
    total = float((good * good).sum())
    alike = float((good[1:] * good[:-1]).sum()) / total if total > 0 else 0.0
    alike += (1 + 4 * max(alike, 0.0)) / len(good)
    alike += 2 * math.sqrt(max(1 - alike * alike, 0.0) / len(good))
    return np.full(len(values) - 1, min(max(window * (1 - alike), 1.0), float(window)))


def _batched(values: np.ndarray, cuts: list[np.ndarray]) -> list[Noise]:
    """Batch means: the noise of a row nearby, times how much more a batch varies than as many independent rows."""
    good = values[np.isfinite(values)]
    if len(good) < FEW:
        return [UNKNOWN] * len(cuts)
    sizes = [2**i for i in range(20) if i == 0 or len(good) // 2**i >= BATCHES]
    variances = [size * _variance(good, size) for size in sizes]
    overall = variances[0]
    if not overall > 0:
        return [Noise(math.sqrt(max(variances) / len(cut))) for cut in cuts]
    ties = max(max(variances) / overall, 1.0)
    noises = []
    for cut in cuts:
        start, stop = around(values, cut)
        cut_off = (start, stop) != _window(values, cut)
        near = values[start:stop]
        row = _of_row(near[np.isfinite(near)], overall, cut_off)
        noises.append(Noise(math.sqrt(row * ties / len(cut)), max(OVERLAP * (len(near) - 2), FEWEST_DF)))
    return noises


def _of_row(near: np.ndarray, overall: float, cut_off: bool) -> float:
    """The variance of a row by those near it. Few rows lie close together by chance: the whole curve says how close they
    may, but not where they are all that is on their level."""
    own, few = _variance(near, 1), len(near) < BATCHES
    return own * len(near) / (len(near) - 2) if few and cut_off else max(own, overall / 10 if few else 0.0)


def around(values: np.ndarray, cut: np.ndarray) -> tuple[int, int]:
    """The rows that tell a block's noise: as many on either side of it, up to where the curve jumped to its level.

    >>> around(np.array([90.0, 95, 91, 96, 92, 9, 9.1, 9.2, 9.1, 9]), np.array([8, 9]))
    (5, 10)
    """
    start, stop = _window(values, cut)
    before, after = values[start : cut[-1] + 1], values[cut[0] : stop][::-1]
    return start + _elsewhere(before, len(cut)), stop - _elsewhere(after, len(cut))


def _window(values: np.ndarray, cut: np.ndarray) -> tuple[int, int]:
    reach = max(len(cut), NEAR)
    return max(int(cut[0]) - reach, 0), min(int(cut[-1]) + reach + 1, len(values))


def _elsewhere(values: np.ndarray, block: int) -> int:
    """How many of the first rows are on another level than the block at the end, or on their way to it."""
    jump = _jump(values, block)
    return jump + _way(values[jump:], block)


def _way(values: np.ndarray, block: int) -> int:
    """How many of the first rows are a rise or fall to the level at the end: each of them lies on one side of it, by JUMP
    times the spread that is left.

    >>> _way(np.array([400.0, 200, 60, 20, 9.3, 9.5, 9.4, 9.3]), 2)
    4
    """
    least = max(block, FEW)
    if len(values) <= least or not np.isfinite(values).all():
        return 0
    for count in range(len(values) - least, 0, -1):
        level = values[count:]
        off = values[:count] - level.mean()
        if np.abs(off).min() > JUMP * level.std(ddof=1) and len(np.unique(np.sign(off))) == 1:
            return count
    return 0


def _jump(values: np.ndarray, block: int) -> int:
    """How many of the first rows are on another level than the block at the end; 0 where none clearly are.

    The cut at which the two sides differ by the most of their own spread, which must be JUMP times as much; FEW - 1 rows
    must be left, for fewer say nothing of their noise.
    """
    n, last = len(values), len(values) - max(block, FEW - 1)
    if last < 1 or not np.isfinite(values).all():
        return 0
    centred = values - values.mean()
    count = np.arange(1, last + 1)
    one, two = np.cumsum(centred)[:last], -np.cumsum(centred)[:last]  # sums on either side of each cut
    within = (centred**2).sum() - one**2 / count - two**2 / (n - count)
    spread = np.sqrt(np.maximum(within, 0.0) / (n - 2))
    apart = np.abs(one / count - two / (n - count)) - JUMP * spread
    return int(count[(apart / (spread + TINY)).argmax()]) if (apart > 0).any() else 0


def _variance(values: np.ndarray, size: int) -> float:
    """Of the mean of `size` rows, from second differences of batches: 6 times it is theirs where batches are alone.

    Absolute sizes, not squares, so that a bend of the curve is not taken for noise; of large batches the median, for
    there most of the curve may be bends.
    """
    count = len(values) // size
    if count < 3:
        return 0.0
    means = values[len(values) - count * size :].reshape(count, size).mean(1)
    second = np.abs(np.diff(means, n=2))
    spread = ABSOLUTE * float(second.mean()) if size == 1 else NORMAL * float(np.median(second))
    return spread * spread / 6  # a power of a large number would be an error, a product is infinite


def with_noise(points: Sequence[Estimate]) -> list[Estimate]:
    """Evaluations of one episode, or without them: the noise is how far neighbours on the curve lie from a line."""
    if all(math.isfinite(p.se) for p in points):
        return [*points]
    values = np.array([p.mean for p in points if math.isfinite(p.mean)])
    if len(values) < FEW:
        return [*points]
    with np.errstate(all="ignore"):
        noise = math.sqrt(_variance(values, 1))
    return [replace(p, se=noise) if math.isfinite(p.mean) and not math.isfinite(p.se) else p for p in points]
