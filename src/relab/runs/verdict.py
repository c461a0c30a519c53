"""Did it learn, and did it keep what it learned? One sentence per run and per group, relative to the noise.

A run's evaluations are means of n episodes, each with its standard error. It learned when it ends above where it began
and above the random policy by more than Z standard errors; it lost it when the best evaluation was that good, and half
of the gain over the start is gone. Z is 3, not 2, because the best of many evaluations is high by chance as well.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from relab.record import glossary
from relab.record.evaluations import Estimate, evaluations
from relab.record.history import History, end_rows, flaw, measured
from relab.stats import Interval, mean_interval
from relab.base.text import number

Z = 3.0
FEW = 5  # points on a curve from which its own noise can be told
RETURNS = (*glossary.RETURNS, "eval/success_det", "eval/success_sampled", "return/success")
RETURN_NAME = re.compile(
    r"(?i)(?:^|[^a-z])(?:return|returns|reward|rewards|rew|score|episodic_return)(?![a-z])(?!.*(?:std|min|max|loss|scale))"
)
BINS = 20
KEPT_ALL, KEPT_HALF = 0.8, 0.5  # shares of the gain that remain at the end


@dataclass(frozen=True)
class Verdict:
    """kind: learned, part, lost, not, worse, broken, short, unjudged or none; `points` are what it was judged by."""

    kind: str
    metric: str = ""
    points: list[Estimate] = field(default_factory=list)
    random: Estimate | None = None
    best: Estimate | None = None
    solved: int | None = None  # step at which eval.stop_at was reached
    level: float | None = None  # eval.stop_at

    @property
    def final(self) -> float:
        return self.points[-1].mean if self.points else math.nan


def verdict_of(run: History) -> Verdict:
    """Look at a run's evaluations, or its training returns where it has none."""
    metric, points = curve_points(run)
    points = _ended(run, metric, points)
    if not points:
        return Verdict("none")
    if not is_return(metric):  # a loss that falls is no policy that learned
        return Verdict("unjudged", metric, points)
    random, good = random_level(run), [p for p in points if math.isfinite(p.mean)]
    if not good or not math.isfinite(points[-1].mean):
        return Verdict("broken", metric, points, random)
    best, (solved, level) = max(good, key=lambda p: p.mean), first_solved(run, metric, points)
    return Verdict(_kind(points, good, best, random), metric, points, random, best, solved, level)


def _ended(run: History, metric: str, points: list[Estimate]) -> list[Estimate]:
    """The points as they are; without a number at the end where the last rows of training are not all finite."""
    if not points or metric not in run.columns or metric.startswith("eval/"):
        return points
    values = measured(run, metric).values
    if not flaw(values, end_rows(len(values))):
        return points
    last = points[-1]
    return points if not math.isfinite(last.mean) else [*points[:-1], replace(last, mean=math.nan)]


def _kind(points: list[Estimate], good: list[Estimate], best: Estimate, random: Estimate | None) -> str:
    first, last = good[0], points[-1]
    base = max([first, *([random] if random else [])], key=lambda p: p.mean)
    if len(points) < 2 or not math.isfinite(last.se):
        return "short"
    if above(last, base):
        kept = (last.mean - base.mean) / (best.mean - base.mean)
        return "learned" if kept >= KEPT_ALL or not above(best, last) else "part" if kept >= KEPT_HALF else "lost"
    if above(best, base) and above(best, last):
        return "lost"
    if random and above(random, last) and above(first, last):
        return "worse"
    return "flat" if random and first.step > 0 and above(last, random) else "not"  # what came before was not logged


def above(a: Estimate, b: Estimate) -> bool:
    """Whether a is higher than b by more than Z standard errors of the difference."""
    return a.mean - b.mean > Z * math.hypot(a.se, b.se)


# ---- What it is judged by


def curve_points(run: History) -> tuple[str, list[Estimate]]:
    """Deterministic evaluations, else sampled ones, else the mean return of training episodes."""
    for mode in (str(_get(run.config, "eval", "by") or "det"), "det", "sampled"):
        points: list[Estimate] = [*evaluations(run.evals, mode)]
        if points:
            return f"eval/return_{mode}", with_noise(sorted(points, key=lambda p: p.step))
    if "return/mean" in run.columns:
        return _training_points(run)
    return _column_points(run)


def _training_points(run: History) -> tuple[str, list[Estimate]]:
    column = measured(run, "return/mean")
    spread, counts = (run.columns.get(f"return/{k}") for k in ("std", "episodes"))
    std = dict(zip(spread.steps.tolist(), spread.values.tolist())) if spread else {}
    n = dict(zip(counts.steps.tolist(), counts.values.tolist())) if counts else {}
    points = []
    for step, value in zip(column.steps.tolist(), column.values.tolist()):
        size = int(count) if math.isfinite(count := n.get(step, 0)) else 0
        points.append(Estimate(step, value, std[step] / math.sqrt(size) if step in std and size > 1 else math.nan, size))
    counted = all(math.isfinite(p.se) for p in points)
    return "return/mean", with_noise(points if counted else binned(points))


def _column_points(run: History) -> tuple[str, list[Estimate]]:
    """Foreign runs: a return under relab's name, else one that is called so, else whatever comes first."""
    called = [name for name in run.columns if is_return(name)]
    ours = [name for name in glossary.RETURNS if name in run.columns]
    rest = [name for name in run.columns if not name.startswith(("time/", "data/", "return/"))]
    names = [*ours, *sorted(called, key=lambda name: not name.startswith("foreign/")), *rest]
    if not names:
        return "", []
    column = measured(run, names[0])
    points = [Estimate(s, v, math.nan, 0) for s, v in zip(column.steps.tolist(), column.values.tolist())]
    return names[0], with_noise(binned(points))


def binned(points: list[Estimate]) -> list[Estimate]:
    """BINS means of a long curve: single rows of training are too noisy to be called the start and the end."""
    if len(points) < 2 * BINS:
        return points
    cuts = np.array_split(np.arange(len(points)), BINS)
    return [_bin([points[i] for i in cut]) for cut in cuts]


def _bin(points: list[Estimate]) -> Estimate:
    good = [p.mean for p in points if math.isfinite(p.mean)]
    broken = not good or not math.isfinite(points[-1].mean)  # where it ends in NaN, the mean would hide it
    return Estimate(points[-1].step, points[-1].mean if broken else float(np.mean(good)), math.nan, len(points))


def is_return(metric: str) -> bool:
    """Whether more of it is what the agent is trained for, by its name.

    >>> is_return("foreign/rollout/ep_rew_mean"), is_return("foreign/train/value_loss")
    (True, False)
    """
    foreign = metric.startswith("foreign/") and RETURN_NAME.search(metric.rpartition("/")[2])
    return metric in RETURNS or bool(foreign)


def with_noise(points: list[Estimate]) -> list[Estimate]:
    """Where single episodes are not known, the noise is how far neighbours on the curve lie apart, over sqrt(2)."""
    if all(math.isfinite(p.se) for p in points):
        return points
    values = np.array([p.mean for p in points if math.isfinite(p.mean)])
    noise = float(np.diff(values).std() / math.sqrt(2)) if len(values) >= FEW else math.nan
    return [p if math.isfinite(p.se) else Estimate(p.step, p.mean, noise, p.n) for p in points]


def random_level(run: History) -> Estimate | None:
    """What a random policy earns, as measured when the run began."""
    baseline = _get(run.meta, "spec", "random")
    try:
        mean, std, n = float(baseline["return_mean"]), float(baseline.get("return_std") or 0), int(baseline.get("n") or 1)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    return Estimate(0, mean, std / math.sqrt(max(n, 1)), n) if math.isfinite(mean) else None


def first_solved(run: History, metric: str, points: list[Estimate]) -> tuple[int | None, float | None]:
    level = _get(run.config, "eval", "stop_at")
    if not isinstance(level, (int, float)) or isinstance(level, bool) or not metric.startswith("eval/"):
        return None, None
    return next((p.step for p in points if p.mean >= level), None), float(level)


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
        return f"Not judged, no return was logged: {v.metric} {_numbers(v)}"
    return _HEADS[v.kind].format(best=_best(v), step=f"{v.best.step:,}" if v.best else "?") + _numbers(v) + _solved(v)


_HEADS = {
    "learned": "Learned: ",
    "part": "Learned, then lost part of it after {step} steps (best {best}): ",
    "lost": "Learned, then lost it after {step} steps (best {best}): ",
    "flat": "Better than random, but no gain since the first value: ",
    "not": "Did not learn: ",
    "worse": "Did not learn, ends worse than a random policy: ",
    "short": "Too short to tell: ",
}


def _best(v: Verdict) -> str:
    return number(v.best.mean) if v.best else "?"


def _numbers(v: Verdict) -> str:
    ends = [v.points[0], v.points[-1]] if len(v.points) > 1 else v.points[-1:]
    kind = (
        "training return "
        if v.metric.startswith("return/mean")
        else f"{v.metric} "
        if v.metric in RETURNS and v.metric not in glossary.RETURNS
        else f"{v.metric[8:]} "
        if _named(v)
        else ""
    )
    level = f" (random {number(v.random.mean)})" if v.random else ""
    return kind + " → ".join(number(p.mean) for p in ends) + level


def _named(v: Verdict) -> bool:
    """A foreign return is called what its tool calls it."""
    return v.kind != "unjudged" and v.metric.startswith("foreign/")


def _solved(v: Verdict) -> str:
    if v.level is None:
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


def many_sentence(verdicts: list[Verdict], configs: int) -> str:
    """14 configs: 3 runs learned, 9 too short to tell."""
    kinds = [v.kind for v in verdicts]
    words = [f"{kinds.count(kind)} {text}" for kind, text in _COUNTED.items() if kind in kinds]
    return f"{configs} configs, {len(kinds)} runs: {', '.join(words)}"


_COUNTED = {
    "learned": "learned", "part": "learned and lost part of it", "lost": "learned and lost it", "not": "did not learn",
    "flat": "better than random without a gain", "worse": "worse than random", "broken": "broke",
    "short": "too short to tell", "unjudged": "not judged", "none": "no result",
}  # fmt: skip


def _group_numbers(verdicts: list[Verdict]) -> str:
    counted = [v for v in verdicts if v.points and math.isfinite(v.final) and v.metric == verdicts[0].metric]
    if not counted:
        return "no number to give"
    firsts = np.mean([v.points[0].mean for v in counted])
    random = next((v.random for v in counted if v.random), None)
    notes = ["mean of seeds", *([f"random {number(random.mean)}"] if random else [])]
    return f"{number(float(firsts))} → {interval_text(finals(counted))} ({', '.join(notes)})"


def finals(verdicts: list[Verdict]) -> Interval:
    """Mean over seeds of the last evaluation, with Student's interval; seeds without a finite number are left out."""
    return mean_interval(np.array([v.final for v in verdicts if math.isfinite(v.final)]))


def interval_text(x: Interval) -> str:
    if not math.isfinite(x.low):
        return number(x.mid)
    if x.low == x.high:  # nothing varied, which an interval of width 0 would overstate
        return number(x.mid)
    return f"{number(x.mid)} [{number(x.low)}, {number(x.high)}]"
