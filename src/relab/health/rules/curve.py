"""Did it learn, did it keep it, did it come to its end? The shape of the learning curve against its noise."""

from __future__ import annotations

import math

import numpy as np

from relab.base.places import address
from relab.base.text import cut
from relab.config import registry
from relab.health.curve import Curve
from relab.health.estimates import clear, shown
from relab.health.foreign import named, sure_of_its_actions
from relab.health.guess import BUFFERED
from relab.health.mend import ANY, DOWN, SLOWER, SMALLER_STEPS, UP, set_to
from relab.health.outcome import behind_others, failed, hardly_gained, rose_in_training
from relab.health.rule import SHORT, Finding, Missing, rule
from relab.health.view import View, ends
from relab.record.evaluations import Estimate
from relab.record.state import would_repeat
from relab.runs.fall import FEWEST
from relab.runs.values import fits_values
from relab.runs.verdict import Verdict, least_steps

LEARNING = {"algo.lr": ANY, "algo.ent_coef": ANY, "algo.gamma": ANY, "algo.value_coef": UP}  # what may hold it back
TURNED = "an advantage or a reward of the wrong sign does that"
AGAIN = (
    "start another run with what it says mended (relab train --parent RUN key=value): resumed, this one would come to"
    " the same end"
)
REASON = 300  # characters of why a run failed: a program may give a whole traceback
ELSEWHERE = "start it again where it ran, or leave it out of comparisons"


@rule("run-incomplete", about="evidence", algos=(), severity="warning", compared=False)
def run_incomplete(view: View, *, whole: float = 0.98, whole_elsewhere: float = 0.9) -> Finding | None:
    """
    What: the run failed, was interrupted, went silent, or ended before 98 % of its planned steps without a reason.
    Why: its last number is not its outcome; mixed with whole runs it biases every mean.
    Known problems: a run on another machine whose clock is off looks silent.
    Refuted by: an event `stop` that says why it ended early.
    Try: `relab resume` it, unless it diverged; or leave it out of comparisons.
    """
    state, last, planned = view.state, view.last_step, view.planned
    share = last / planned if planned else math.nan
    done = f"at step {last:,}" + ("" if planned is None else f" of {planned:,.0f} ({share:.0%})")
    if state == "failed":
        said = [str(e.get("message", "")) for e in view.history.events if e.get("kind") == "error"]
        reason = f": {cut(said[-1], REASON)}" if said and said[-1] else ""
        return Finding(f"the run failed {done}{reason}", share, last,
                       suggest=[_after_failure(view)], confidence="high", severity="error")  # fmt: skip
    if state in ("interrupted", "stale") and _said_why(view):
        return None
    if state in ("interrupted", "stale"):
        resume = f"relab resume {address(view.history.folder)}{view.trust}"
        return Finding(f"the run {'was interrupted' if state == 'interrupted' else 'went silent'} {done}", share, last,
                       suggest=[resume] if view.history.trained_by_relab else [ELSEWHERE],
                       confidence="high")  # fmt: skip
    own = view.history.trained_by_relab
    if own and state == "finished" and share < whole and not view.kinds & {"stop"}:
        return Finding(f"the run ended {done}, and no event says why", share, last, confidence="high")
    ended = state in ("ended", "finished") and not _said_why(view)
    if not own and ended and planned and _stopped_short(view, planned, whole_elsewhere):
        return Finding(f"the log ends {done}", share, last, suggest=[ELSEWHERE])
    if not view.meta.get("status") and not planned:
        raise Missing("meta.status, or the planned steps")
    return None


def _after_failure(view: View) -> str:
    """A resumed run does what it did before, to the bit: that helps only where the reason lay outside of it."""
    if not view.history.trained_by_relab:
        return ELSEWHERE
    if would_repeat(view.history):
        return AGAIN
    resume = f"relab resume {address(view.history.folder)}{view.trust}"
    return f"mend what it says, then {resume}, or leave it out of comparisons"


def _said_why(view: View) -> bool:
    """Whether the last thing that began the run was followed by an event `stop`, as a watcher writes it."""
    kinds = [str(e.get("kind")) for e in view.history.events]
    began = max((i for i, kind in enumerate(kinds) if kind in ("start", "resume")), default=-1)
    return "stop" in kinds[began + 1 :]


def _stopped_short(view: View, planned: float, whole: float) -> bool:
    """A foreign log: its last row may come two rows before the end, and a tenth is not held against it."""
    rows = max((c.steps for c in view.history.columns.values()), key=len, default=np.zeros(0))
    gap = float(np.median(np.diff(rows))) if len(rows) > 2 else 0.0
    return view.last_step + 2 * gap < whole * planned


@rule(
    "worse-than-random",
    about="return",
    algos=(),
    severity="warning",
    least=SHORT,
    mends={"algo.lr": ANY, "algo.ent_coef": ANY, "algo.gamma": ANY},
    names=("advantage-sign",),
)
def worse_than_random(view: View, *, patience: float = 0.1, patience_replay: float = 0.5) -> Finding | None:
    """
    What: the last two evaluations (without evaluations: the last two tenths of the training returns) lie below the
        random policy's return by more than two standard errors each, and by a difference that matters: half a standard
        deviation of random episodes, or 2 % of what they earn. Nor is it said where the returns of training rose clear
        of random.
    Why: something drives the policy the wrong way: a sign error, a dead actor, a degenerate critic. A policy that is
        sure of its bad actions (its entropy has collapsed) was pushed there: an advantage of the wrong sign does that.
    Known problems: early in training a deterministic policy may be worse than random; where sampled actions were
        evaluated as well, they must be as bad. One that runs still is asked from a tenth of its planned steps on, with
        a method that learns from a replay buffer from half of them on.
    Refuted by: a random level measured on another environment or horizon, or returns in other units (scaled rewards).
    Try: look for a turned sign in rewards, advantages or losses; train the same algorithm on a task whose answer is
        known.
    """
    if view.early(patience_replay if view.algo in BUFFERED else patience):
        return None
    course, verdict = view.course(at_least=3), view.verdict
    level = view.random()[0]
    if verdict.random is None:
        raise Missing("returns in the task's own units: these lie outside of what it can pay")
    if not verdict.below_random:
        return None
    sure = sure_of_its_actions(view)
    share = "" if sure is None else f"{sure:.1%} of its maximum"
    how = f", and the policy is sure of its actions (entropy {share}): {TURNED}" if share else ""
    return Finding(f"return {course[-1].mean:.4g} is below the random policy's {level:.4g}{how}", course[-1].mean,
                   view.low_since(level), [view.evidence(course)], suggest=_ladder(view), confidence="high",
                   in_code=sure is not None and not view.history.trained_by_relab)  # fmt: skip


def _ladder(view: View) -> list[str]:
    """The rungs have choices, and only relab can train its own runs' algorithm on them."""
    name = view.config.get("algo.name")
    if not view.history.trained_by_relab or view.kind != "discrete" or not isinstance(name, str):
        return []
    word = name if name in registry.ALGOS else f"algo={name}"
    return [f"relab train {word} env=ladder-policy, a task whose answer is known: where it fails, a sign is turned"]


@rule(
    "has-not-learned",
    about="return",
    algos=(),
    severity="warning",
    least=SHORT,
    mends=LEARNING,
)
def has_not_learned(view: View, *, part: float = 0.5, steady: float = 0.1, fewest_steps: int = 1000) -> Finding | None:
    """
    What: the run ends as good as a random policy: the second half of its evaluations, or of its training returns, is no
        gain that matters (half a standard deviation of random episodes), two standard errors included, or less than a
        twentieth of the way from random to the level that is called solved, with an end that may lie no higher than one
        and a half times that. Where no random
        level is known, training ends no better than it began, beyond noise; evaluations alone must not have moved by
        more than a tenth over their last half either, for they may begin late, and training must not have risen. A cost
        that continuous actions bring down by less than half of what any healthy run of the algorithm shows counts too.
    Why: the run goes on without learning; more steps of the same will not help.
    Known problems: sparse rewards look so until the first success; a run without a known random level may have begun
        at its best. One that runs still is asked from half of its planned steps on. Nor is one with under a tenth
        of the steps with which others published a result.
    Refuted by: another metric of the task still improving.
    Try: stop; look at the other findings first, then change one thing: `lr`, exploration (`ent_coef`), reward.
    """
    course, verdict = view.course(at_least=3), view.verdict
    if not view.has_choice or view.resumed or view.early(part):
        return None
    if verdict.random is not None:
        return _as_random(view, course)
    if view.rows < SHORT or view.last_step < fewest_steps:
        raise Missing(f"{SHORT} rows over {fewest_steps:,} steps, or what a random policy earns")
    means = [e.mean for e in course[len(course) // 2 :]]
    still = verdict.kind == "flat" and max(means) - min(means) <= steady * abs(course[0].mean)
    if verdict.kind in ("lost", "unstable") or (not failed(view) and not still) or rose_in_training(view):
        return None
    text = f"return {course[0].mean:.4g} at the start, {course[-1].mean:.4g} at the end"
    gain = hardly_gained(view)
    outcome = "no gain over its own start" if gain is None else (
        f"the cost fell by {max(gain.own, 0):.0%}, where the least of {gain.cells} kinds of healthy"
        f" {str(view.algo).upper()} runs is {gain.least:.0%}")  # fmt: skip
    return Finding(f"{outcome}: {text}; what a random policy earns here is not known", course[-1].mean,
                   course[0].step, [view.evidence(course)], confidence="low")  # fmt: skip


def _as_random(view: View, course: list[Estimate]) -> Finding | None:
    """Where the verdict says so; not asked where nobody learns in so few steps."""
    verdict, least = view.verdict, least_steps(view.history, view.earned)
    if verdict.kind == "short" and least is not None and view.last_step < least:
        raise Missing(f"{least:,.0f} steps, a tenth of what the quickest published run took")
    if verdict.kind != "not" or verdict.random is None:
        return None
    text = f"return {course[0].mean:.4g} -> {course[-1].mean:.4g}, a random policy earns {verdict.random.mean:.4g}"
    words = "the run has hardly learned" if verdict.hardly else "the run has not learned"
    return Finding(f"{words}: {text}", course[-1].mean, view.low_since(verdict.random.mean + verdict.yardstick.matters),
                   [view.evidence(course)], confidence="high")  # fmt: skip


@rule(
    "below-known-level",
    about="return",
    algos=(),
    severity="warning",
    least=SHORT,
    mends=LEARNING,
)
def below_known_level(view: View) -> Finding | None:
    """
    What: the run has gone under half of the way from random to the level that is known of its task and no longer rises
        (with fewer steps than others needed, its second half must leave no rise open of 15 % of what it gained, two
        standard errors included), or under a quarter of it with as many steps as others needed for all of it.
    Why: it learned something, and far less than others with the same task: something holds it back.
    Known problems: published levels are of deterministic actions, often of many more steps than the quickest of them;
        a run with under a quarter of those steps is not asked, nor one that has a way before it still: it may rise yet.
    Refuted by: rewards or a time limit that were changed on purpose.
    Try: look at the other findings first; then compare the settings with published ones for this task.
    """
    course = view.course(at_least=4)
    if not view.has_choice or failed(view) or view.verdict.kind in ("lost", "unstable") or view.unfinished:
        return None
    goal = behind_others(view)
    if goal is None:
        return None
    trend = "still rising" if goal.rising else "no longer rising" + " clear of its noise" * (not goal.stands)
    more = "; more steps may be all that it needs" if view.last_step < goal.steps else ""
    end = "its last evaluation" if view.verdict.evaluated else "its last tenth"
    message = f"return {goal.reached:.4g} ({end}) after {view.last_step:,} steps, {trend}; others reach" \
              f" {goal.level:.4g}, the quickest published run with {goal.steps:,}{more}"  # fmt: skip
    since = course[len(course) // 2].step
    return Finding(message, goal.reached, since, [view.evidence(course)], confidence="medium")


@rule(
    "peak-then-collapse",
    about="return",
    algos=(),
    severity="warning",
    least=SHORT,
    mends=SMALLER_STEPS | {"algo.lr_schedule": ANY},
    fallback=(set_to("algo.lr_schedule", "linear"), SLOWER),
    explains=("worse-than-random",),
    from_best=True,
)
def peak_then_collapse(view: View) -> Finding | None:
    """
    What: the verdict is that the run lost what it had learned: the last two evaluations, or tenths of training, lie
        below half of what the best three in a row had gained over random, clear of their errors, and the
        low stretch is longer than the high one, or below it by more than the run's own ups and downs.
    Why: something learned was lost: steps too large, exploration gone, a critic gone astray.
    Known problems: a curriculum that gets harder looks the same. A run that has swung as far before is called
        unstable, by the verdict alone.
    Refuted by: the same checkpoint scoring as before on fresh episodes (`relab eval`).
    Try: keep the best checkpoint; lower `lr` or `epochs`, let `lr` fall; look at what changed just before the onset.
    """
    course, verdict = view.course(at_least=FEWEST), view.verdict
    if verdict.kind != "lost" or verdict.fall is None or verdict.best is None:
        return None
    return Finding(f"the return rose to {verdict.best.mean:.4g} ({_place(verdict)}) and fell to {course[-1].mean:.4g}",
                   verdict.fall.share, verdict.fall.step, [view.evidence(course)], confidence="high")  # fmt: skip


def _place(verdict: Verdict) -> str:
    """What the best is, in the words of the verdict's sentence."""
    step = verdict.best.step if verdict.best else 0
    return f"best evaluation, at step {step:,}" if verdict.evaluated else f"best tenth of training, up to step {step:,}"


@rule(
    "plateau",
    about="return",
    algos=(),
    mends=LEARNING,
)
def plateau(
    view: View,
    *,
    rises: float = 2.0,
    errors: float = 5.0,
    behind: float = 0.25,
    closes: float = 0.5,
    points: int = 4,
) -> Finding | None:
    """
    What: over the second half of its evaluations or training returns the run has no slope beyond its noise, while its
        level is clearly below the reference's: by five standard errors, and a quarter of its way from random. A slope
        of which the noise leaves so much open that it could close half of that gap tells nothing. It is held
        against what the reference had at the same step, and must have four points at its level. One that stood higher
        before, wherever that was, is told as a fall, with its peak.
    Why: another run got further with the same task; more steps of the same will not help.
    Known problems: a level in the middle counts only against a reference, because the highest return there can be is
        seldom the highest there is. At the level of a random policy it is `has-not-learned`, far below the run's own
        best `peak-then-collapse`.
    Refuted by: another metric of the task still improving.
    Try: stop; compare the settings with the reference's (`relab diff`).
    """
    course = view.course(at_least=5)
    if not view.has_choice or view.verdict.kind in ("not", "worse", "lost", "unstable"):
        return None
    there = None if view.reference is None or view.reference.earned != view.earned else ends(view, view.reference)[1]
    if there is None or view.reference is None:
        raise Missing("a better run on the same task, with a return at the same step")
    half = course[len(course) // 2 :]
    curve = Curve(view.earned, np.array([e.step for e in half]), np.array([e.mean for e in half]))
    level, (floor, noise) = curve.median(), view.random()
    error = math.hypot(noise, *(max(0.0 if math.isnan(e.se) else e.se for e in some) for some in (half, [there])))
    enough = max(errors * error, behind * abs(level - floor))
    gap = there.mean - level
    if gap <= enough or _rising(half, curve, rises) or _open(half, curve) > closes * gap:
        return None
    fall, since = _reached(course, level, behind * abs(level - floor))
    if sum(e.step >= since for e in course) < points:
        return None
    return Finding(_halted(level, since, fall, there, view), level, since, [view.evidence(course)], confidence="low")


def _halted(level: float, since: int, fall: Estimate | None, there: Estimate, view: View) -> str:
    """Where it stands and the other stood; one that was higher before is told as a fall."""
    name = view.reference.name if view.reference else ""
    other = f"{there.mean:.4g} in {name}" + f" at step {there.step:,}" * (there.step < view.last_step)
    if fall is None:
        return f"no progress since step {since:,}: return {level:.4g}, {other}"
    return (f"the return was {fall.mean:.4g} at step {fall.step:,}, fell back, and makes no progress since step"
            f" {since:,}: {level:.4g}, {other}")  # fmt: skip


def _open(half: list[Estimate], curve: Curve, errors: float = 2.0) -> float:
    """How far the curve may have risen, for all that its noise says: by its slope, of few points by its ends."""
    slope = curve.slope()
    if math.isfinite(slope.error):
        return (slope.value + errors * slope.error) * float(curve.steps[-1] - curve.steps[0])
    noise = math.hypot(*(0.0 if math.isnan(e.se) else e.se for e in (half[0], half[-1])))
    return half[-1].mean - half[0].mean + errors * noise


def _reached(course: list[Estimate], level: float, width: float) -> tuple[Estimate | None, int]:
    """A peak that lies clearly above a level, and the step from which no later point lies clearly off it."""
    noise = [0.0 if math.isnan(e.se) else e.se for e in course]
    above = [e.mean - level > max(width, 2 * se) for e, se in zip(course, noise)]
    off = [high or level - e.mean > 2 * se for e, se, high in zip(course, noise, above)]
    top = max((e for e, high in zip(course[:-1], above) if high), key=lambda e: e.mean, default=None)
    return top, next((e.step for i, e in enumerate(course) if not any(off[i:])), course[-1].step)


def _rising(half: list[Estimate], curve: Curve, rises: float, errors: float = 3.0) -> bool:
    """By its slope, or by its ends: five blocks of training returns are few for a slope."""
    return curve.slope().significance >= rises or clear(half[-1].mean - half[0].mean, half[0], half[-1]) >= errors


@rule("start-already-solved", about="evidence", algos=())
def start_already_solved(view: View, *, solved: float = 0.95) -> Finding | None:
    """
    What: at step 0 the policy already earns 95 % of the way from random to the highest return.
    Why: nothing is left to learn; what looks like progress is less noise in the actions.
    Known problems: a tiny task may be solved by luck; the sampled policy must be as good, unless there is a parent.
    Refuted by: a highest return that is not the real one.
    Try: start from a weaker checkpoint or a harder task; report deterministic and sampled returns.
    """
    if fits_values(view.history):
        raise Missing("a policy that learns")
    floor, top = view.random()[0], view.ceiling()
    mode = "det" if view.meta.get("parent") or not view.has_evals("sampled") else "sampled"
    first = view.evals(mode)[0]
    if first.step != 0:
        raise Missing("an evaluation at step 0")
    if top - floor <= 1e-9 * max(1.0, abs(top)) or first.mean < floor + solved * (top - floor):
        return None
    return Finding(f"the start already earns {first.mean:.4g} of {top:.4g}", first.mean, 0,
                   [shown(view.evals(mode), view.judging(mode))])  # fmt: skip


@rule(
    "resumed-run-lost-its-start",
    about="return",
    algos=(),
    severity="warning",
    least=SHORT,
    explains=("peak-then-collapse",),
    mends={"algo.ent_coef": DOWN, "algo.lr": DOWN},
    from_start=True,
)
def lost_its_start(view: View, *, least_lost: float = 0.5, errors: float = 3.0) -> Finding | None:
    """
    What: a run that went on from a checkpoint, well above random, ends with less than half of what it began with,
        clear of noise. Logs of other tools that do not say where they began are asked if they have a value at step 0.
    Why: the training itself destroys a good policy; the settings differ from those that made it.
    Known problems: a task that was made harder on purpose looks the same.
    Refuted by: the starting checkpoint scoring as low under this run's evaluation.
    Try: stop, go back to the starting checkpoint, and compare the settings with the parent's (`relab diff`).
    """
    course = view.course(at_least=3)
    first, last = course[0], course[-1]
    alone = view.history.trained_by_relab  # its record would say where it went on from
    if not view.resumed and (alone or first.step > 0):
        raise Missing("a checkpoint that the run went on from")
    floor, enough = _nothing(view, first)
    if first.mean - floor < enough or first.mean <= floor:
        return None
    lost = (first.mean - last.mean) / (first.mean - floor)
    if lost < least_lost or clear(first.mean - last.mean, first, last) < errors:
        return None
    half = (first.mean + floor) / 2
    onset = next((e.step for i, e in enumerate(course) if all(x.mean < half for x in course[i:])), None)
    scores = [c for c in named(view, "score", rows=5) if c.values[0] > 2 * c.last > 0]
    more = "".join(f"; its score {c.values[0]:.4g} -> {c.last:.4g}" for c in scores[:1])
    return Finding(f"it began at {first.mean:.4g} and ended at {last.mean:.4g}{more}", lost, onset,
                   [view.evidence(course), *(c.evidence() for c in scores[:1])], confidence="high")  # fmt: skip


def _nothing(view: View, first: Estimate, errors: float = 5.0, share: float = 0.1) -> tuple[float, float]:
    """The level of a policy that can do nothing, and how far above it a start counts as good."""
    try:
        floor, error = view.random()
    except Missing:
        if not view.resumed:
            raise
        return (0.0 if first.mean > 0 else 3 * first.mean), errors * (0.0 if math.isnan(first.se) else first.se)
    return floor, max(errors * error, share * abs(floor))
