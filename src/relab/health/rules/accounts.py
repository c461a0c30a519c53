"""Do columns that must go together go together? What a log shows by itself, without any setting."""

from __future__ import annotations

import numpy as np

from relab.health.curve import Curve
from relab.health.mend import LARGER_STEPS
from relab.health.outcome import learned
from relab.health.rule import SHORT, Finding, Missing, rule
from relab.health.view import View
from relab.runs.course import course_on
from relab.runs.verdict import above

RETURNS = ("return/mean", "return/mean_100")
SUCCESS = (("return/success", RETURNS), ("eval/success_det", ("eval/return_det",)))  # beside what it is counted


@rule("learning-rate-zero", about="optimiser", needs=("optim/lr",), algos=(), severity="warning", least=SHORT,
      mends=LARGER_STEPS)  # fmt: skip
def learning_rate_zero(view: View, *, rows: float = 0.5, share: float = 1e-6) -> Finding | None:
    """
    What: the logged learning rate is 0, or under a millionth of its largest value, in more than half of the rows.
    Why: from there on nothing is learned; the schedule ends long before the run, or counts in other units.
    Known problems: a rate printed with three digits is 0.000 in every row; a run that learned with it is told as a
        remark.
    Refuted by: more digits of it, or a part of the network whose rate is meant to be 0.
    Try: let the schedule end with the run; check what it counts, updates or steps.
    """
    rate = view.curve("optim/lr", rows=5)
    most = float(rate.values.max())
    still = rate.values <= share * max(most, 0.0)
    if still.mean() <= rows:
        return None
    printed = most <= 0 and learned(view)
    share_still = float(still.mean())
    return Finding(f"the learning rate is 0 in {share_still:.0%} of the rows, from {most:.3g} at most", share_still,
                   rate.onset(still), [rate.evidence(f"<= {share:g} x its largest")],
                   confidence="low" if printed else "high", severity="info" if printed else None)  # fmt: skip


@rule("episodes-cut-short", about="fault", needs=("return/length",), algos=(), severity="warning", least=SHORT)
def episodes_cut_short(view: View, *, pinned: float = 0.5, whole: float = 0.5) -> Finding | None:
    """
    What: in the second half most episodes of training end at one and the same length, the longest there is, and that
        is less than half of the task's own time limit.
    Why: something else cuts them: another time limit, a wrapper, a count of steps over all worlds. What comes later is
        never practised, and the return has a ceiling far below the task's.
    Known problems: a task whose goal lies a fixed number of steps away ends so in health; a run that learned is left
        out.
    Refuted by: a shorter limit that is meant, as in a curriculum.
    Try: print the length at which an episode is cut and who cuts it; set the limit of the task.
    """
    length, horizon = view.curve("return/length", rows=8).tail(0.5), view.fact("horizon")
    limit = float(length.values.max())
    share = float(np.mean(length.values >= limit))
    if limit <= 1 or share <= pinned or limit >= whole * horizon or learned(view):
        return None
    return Finding(f"{share:.0%} of the episodes end at {limit:g} steps, none later, where the task lasts {horizon:g}",
                   limit, int(length.steps[0]), [length.evidence(f"= {limit:g}, < {whole:g} x {horizon:g}")],
                   confidence="high")  # fmt: skip


@rule("success-against-return", about="evidence", algos=(), severity="warning", least=SHORT)
def success_against_return(view: View) -> Finding | None:
    """
    What: the rate of success falls from start to end while the return rises, or rises while it falls, both clear of
        noise.
    Why: both are counts of the same episodes: one has its sign turned, counts something else, or the reward pays for
        not succeeding.
    Known problems: a reward that is shaped may be earned without success for a while.
    Refuted by: a few episodes looked at, whose success and return are as the log says.
    Try: print return and success of ten episodes; look at the condition that sets the success.
    """
    for rate, returns in SUCCESS:
        name = next((n for n in returns if view.has(n)), "")
        if not view.has(rate) or not name:
            continue
        moves = [_moved(view, metric) for metric in (rate, name)]
        if moves[0] * moves[1] < 0:
            a, b = view.curve(rate), view.curve(name)
            return Finding(f"{rate} goes from {a.values[0]:.3g} to {a.last:.3g} while {name} goes from"
                           f" {b.values[0]:.4g} to {b.last:.4g}", a.last, None, [a.evidence(), b.evidence()],
                           confidence="high")  # fmt: skip
        return None
    raise Missing("a rate of success beside a return")


def _moved(view: View, metric: str) -> int:
    """1 where a metric ends clearly above its start, -1 where below, else 0."""
    points = [p for p in course_on(view.history, metric).points if np.isfinite(p.mean) and np.isfinite(p.se)]
    if len(points) < 2:
        raise Missing(f"a course of {metric} with its noise")
    return int(above(points[-1], points[0])) - int(above(points[0], points[-1]))


@rule("return-against-length", about="evidence", needs=("return/length",), algos=(), severity="warning", least=SHORT)
def return_against_length(view: View, *, rows: float = 0.5, slack: float = 0.05) -> Finding | None:
    """
    What: in more than half of the rows the return is outside of what an episode of that length can earn, its length
        times the lowest and the highest reward of the task, by more than 5 %.
    Why: return and length are not of the same episodes, or the rewards that are added up are not the task's.
    Known problems: rewards that are scaled or shaped on purpose before they are counted.
    Refuted by: a setting that says so.
    Try: add up the rewards of one episode by hand; reset the sum and the count at the same place.
    """
    low, high = view.fact("reward_low"), view.fact("reward_high")
    returns, length = _together(view)
    ends = np.sort(np.stack([low * length.values, high * length.values]), axis=0)
    room = slack * np.maximum(np.abs(ends).max(axis=0), 1e-9)
    off = (returns.values < ends[0] - room) | (returns.values > ends[1] + room)
    if off.mean() <= rows:
        return None
    at, turned = int(np.flatnonzero(off)[-1]), view.verdict.kind == "opposite"
    return Finding(f"an episode of {length.values[at]:.4g} steps earns {_span(ends[0][at], ends[1][at])} here, but the"
                   f" log says {returns.values[at]:.4g}, so in {off.mean():.0%} of the rows", float(off.mean()),
                   returns.first(off), [returns.evidence(), length.evidence(f"x {low:g} to x {high:g}")],
                   ["look for a minus before the reward: what is learned then is to earn less"] if turned else [],
                   confidence="high")  # fmt: skip


def _span(low: float, high: float) -> str:
    return f"{low:.4g}" if f"{low:.4g}" == f"{high:.4g}" else f"{low:.4g} to {high:.4g}"


def _together(view: View) -> tuple[Curve, Curve]:
    """Return and length of the same episodes."""
    name = next((n for n in RETURNS if view.has(n)), RETURNS[0])
    returns, length = view.curve(name, rows=5), view.curve("return/length", rows=5)
    if not np.array_equal(returns.steps, length.steps):
        raise Missing(f"{name} and return/length in the same rows")
    return returns, length
