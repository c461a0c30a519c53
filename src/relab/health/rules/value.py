"""Does the critic learn, and does it believe what the policy earns?"""

from __future__ import annotations

import numpy as np

from relab.health.curve import Curve
from relab.health.estimates import clear
from relab.health.foreign import exploded, q_estimate, value_scale
from relab.health.mend import ANY, SCALED_REWARDS, SLOWER, SMALLER_STEPS, UP
from relab.health.outcome import doubted, ends_alike, failed, failure, moved, rose_in_training, same_of_every_state
from relab.health.rule import SHORT, Finding, Missing, rule
from relab.health.view import View

ON_POLICY = ("ppo", "a2c")
GROWN, LEAST = 1e4, 1e3  # of a value loss beside which no return is logged: from first to last quarter, and its level
SIZE = 0.1  # of a target's mean: the least spread that its errors are measured in


@rule(
    "critic-not-learning",
    about="belief",
    needs=("value/explained_variance",),
    algos=ON_POLICY,
    severity="warning",
    least=SHORT,
    explains=("advantage-off-centre",),
    mends={"algo.value_coef": UP},
    fallback=(SCALED_REWARDS,),
    names=("critic-frozen", "targets-not-detached"),
)
def critic_not_learning(
    view: View,
    *,
    worse_than_constant: float = -0.2,
    nothing: float = 0.1,
    off_by: float = 1.0,
    alike: float = 0.01,
    far_worse: float = -1.0,
) -> Finding | None:
    """
    What: over the second half the critic explains less variance than a constant would, or explains none, is off by
        more than its targets' standard deviation and did not go along with them. Where the targets are not logged, the
        return must not rise either, unless it explains less than -1 (its errors are twice the targets' variance); and a
        critic that explains nothing counts where the run ends no better than random, or below its start, and, if no
        row of the run shows that it ever explained anything, where the run lost what it had learned. A critic that says
        the same of every state (it explains less than a millionth in every row) is told as that.
    Why: advantages are then raw returns with the critic's error added; the policy learns slowly or not at all.
    Known problems: where nothing can be predicted from a state, zero is right; hence the offset. Where all targets are
        alike, a share of their variance means nothing; hence their spread, or that of the returns at the end.
    Refuted by: targets that are all alike, or the reference run being as low and learning.
    Try: check that the optimiser holds the critic's parameters and that its loss is part of the sum; raise `value_coef`
        or `lr`, scale rewards (`norm_return`), check ends and bootstraps.
    """
    ev = view.curve("value/explained_variance", rows=5)
    if same_of_every_state(view):
        return _one_value(ev)
    if not all(view.has(f"value/{name}") for name in ("mean", "target_mean", "target_std")):
        return _explains_nothing(view, ev, worse_than_constant, far_worse, nothing, alike)
    mean, target = view.curve("value/mean", rows=5), view.curve("value/target_mean", rows=5)
    apart, size = view.curve("value/target_std").median(0.5), abs(target.median(0.5))
    spread = max(apart, SIZE * size, 1e-9)
    off = abs(mean.median(0.5) - target.median(0.5)) / spread
    level = ev.median(0.5)
    one_number = apart < alike * size or (ends_alike(view, alike) and not failed(view))
    behind = off > off_by and not _follows(mean, target, spread)
    if not ((level < worse_than_constant and not one_number) or (level < nothing and behind)):
        return None
    return Finding(f"the critic explains {level:.2f} of the variance of its targets and is off by {off:.2g} standard"
                   " deviations", level, ev.onset(ev.values < nothing),
                   [ev.evidence("median of the second half"), mean.evidence(), target.evidence()])  # fmt: skip


def _one_value(ev: Curve) -> Finding:
    """Even a critic that is not trained tells states apart, by the weights that it was born with."""
    return Finding(f"the critic says the same of every state: a constant input or a dead network (in each of {len(ev)}"
                   f" rows it explains 0 of the variance of its targets, but for {np.abs(ev.values).max():.2g})",
                   ev.median(0.5), None, [ev.evidence("0 in every row")],
                   ["look at what the networks are fed: observations that never change, or are scaled or clipped to"
                    " one value; then at units that no input reaches"],
                   "high", about="fault", beyond_settings=True)  # fmt: skip


def _follows(mean: Curve, target: Curve, spread: float, share: float = 0.5) -> bool:
    """Whether the critic went with its targets, half to twice their way: it lags behind a policy that rises."""
    way, went = (c.median(0.25) - float(np.median(c.head(0.1).values)) for c in (target, mean))
    return abs(way) > spread and share <= went / way <= 1 / share


def _explains_nothing(
    view: View, ev: Curve, worse_than_constant: float, far_worse: float, nothing: float, alike: float, rise: float = 3.0
) -> Finding | None:
    """Without targets: worse than a constant over the whole second half, and the policy does not improve on it."""
    level = ev.median(0.5)
    never = len(ev) >= SHORT and float(ev.values.max()) < nothing
    poor = failed(view) or (never and view.verdict.kind in ("lost", "unstable", "part") and not view.verdict.learned)
    useless = level < nothing and poor and not rose_in_training(view)
    if not useless and ends_alike(view, alike):
        return None
    if level < far_worse or useless:
        rows = f" (in none of {len(ev)} rows more than {float(ev.values.max()):.2g})" if never else ""
        and_so = f"{rows}, and {failure(view)}" if useless else ": its errors are larger than what there is to explain"
        return Finding(f"the critic explains {level:.2f} of the variance of its targets{and_so}", level,
                       ev.onset(ev.values < nothing), [ev.evidence("median of the second half")],
                       confidence="low" if useless and not never else "medium")  # fmt: skip
    last = view.course(at_least=3)[-1]
    if level >= worse_than_constant or moved(view) > rise or view.well_above_random(last):
        return None
    return Finding(f"the critic explains {level:.2f} of the variance of its targets, and the return does not rise",
                   level, ev.onset(ev.values < 0), [ev.evidence("median of the second half")],
                   confidence="low")  # fmt: skip


@rule(
    "critic-no-better-than-constant",
    about="belief",
    needs=("value/explained_variance", "value/val_loss"),
    algos=("critic",),
    mends={"algo.envs": UP},
    names=(),
)
def critic_no_better_than_constant(view: View, *, constant: float = 0.0) -> Finding | None:
    """
    What: a critic that was fitted alone (`relab train critic`) explains nothing of the returns in the worlds that were
        held out: a constant would do as well.
    Why: advantages that are estimated with it are raw returns with its errors added; a fine-tuning run that begins
        with it is worse off than with a critic that begins anew.
    Known problems: a few held-out episodes tell little; returns that are all alike leave nothing to explain.
    Refuted by: more held-out worlds (`envs`) in which it explains some.
    Try: more data (`envs`, `steps`), fewer passes (`total_steps`) where value/val_loss has risen again.
    """
    explained, error = view.curve("value/explained_variance", rows=1), view.curve("value/val_loss", rows=1)
    if explained.last > constant:
        return None
    seen = f" ({view.curve('data/held_out_episodes').last:.0f} episodes)" if view.has("data/held_out_episodes") else ""
    least = int(error.values.argmin())
    risen = f"; its error there was least at iteration {error.steps[least]}" if least < len(error) - 1 else ""
    return Finding(f"the critic explains {explained.last:.2f} of the variance of returns in held-out worlds{seen}, a"
                   f" constant 0{risen}", explained.last, explained.onset(explained.values <= constant),
                   [explained.evidence(), error.evidence()])  # fmt: skip


@rule(
    "advantage-off-centre",
    about="belief",
    needs=("data/advantage_mean", "data/advantage_std", "value/target_mean"),
    algos=ON_POLICY,
    mends={"algo.value_coef": UP},
)
def advantage_off_centre(view: View, *, off_by: float = 1.0, of_target: float = 0.25) -> Finding | None:
    """
    What: before normalisation, the mean advantage stays above one standard deviation and above a quarter of the mean
        value target in size, over the second half.
    Why: advantages are differences from what was expected and should average to zero; the critic or the handling of
        ends is off.
    Known problems: a critic that catches up with a rising policy lags behind; hence the second half; where all
        targets are alike any mean is many standard deviations (healthy CartPole: 4); hence the targets' size.
    Refuted by: the reference run showing the same.
    Try: look at critic-not-learning first; then check how ends and time limits enter the targets.
    """
    mean, std = view.curve("data/advantage_mean", rows=5), view.curve("data/advantage_std", rows=5)
    ratio = abs(mean.median(0.5)) / max(std.median(0.5), 1e-9)
    size = abs(view.curve("value/target_mean", rows=5).median(0.5))
    if ratio <= off_by or abs(mean.median(0.5)) <= of_target * size or std.median(0.5) < 1e-6:
        return None
    formula = f"|median| / median std > {off_by:g}"
    return Finding(f"the mean advantage is {ratio:.2g} standard deviations away from zero", ratio, None,
                   [mean.evidence(formula), std.evidence()], confidence="low")  # fmt: skip


@rule(
    "value-loss-blow-up",
    about="critic",
    needs=("value/loss",),
    algos=ON_POLICY,
    mends=SMALLER_STEPS,
    fallback=(SCALED_REWARDS, SLOWER),
)
def value_loss_blow_up(
    view: View, *, times_variance: float = 10, iterations: int = 3, begin: float = 0.2, surely: float = 100
) -> Finding | None:
    """
    What: after the first fifth of the run, the value loss exceeds ten times the variance of its own targets, in at
        least three iterations; where the targets are not logged, the square of the largest value that the returns
        allow; a warning where most of the second half is a hundred times that, and above 100, or where no return is
        logged and it grew ten thousandfold, to a thousand or more.
    Why: predicting a constant would be ten times better; the critic is thrown about, often shortly before NaN.
    Known problems: targets that are nearly constant make any loss look large; hence their own size counts too.
    Refuted by: the loss being summed, or in other units than the targets.
    Try: scale rewards (`norm_return`), lower `lr`, look for single huge observations or rewards.
    """
    loss = view.curve("value/loss", rows=8)
    if not view.has("value/target_std"):
        return _above_all_values(view, loss, iterations, begin, surely)
    std = view.curve("value/target_std", rows=8)
    size = view.curve("value/target_mean") if view.has("value/target_mean") else std
    rows = min(len(loss), len(std), len(size))
    variance = np.maximum(std.values[-rows:] ** 2, (SIZE * size.values[-rows:]) ** 2)
    ratio = loss.values[-rows:] / np.maximum(variance, 1e-6)
    late = np.arange(rows) >= begin * rows
    high = (ratio > times_variance) & late
    if high.sum() < iterations:
        return None
    worst = float(ratio[late].max())
    return Finding(f"the value loss is up to {worst:.3g} times the variance of its targets", worst,
                   int(loss.steps[-rows:][np.flatnonzero(high)[0]]),
                   [loss.evidence(f"loss / target_std² > {times_variance:g}"), std.evidence()])  # fmt: skip


def _above_all_values(view: View, loss: Curve, iterations: int, begin: float, surely: float) -> Finding | None:
    if view.config.get("algo.norm_return"):
        raise Missing("returns in the critic's units (rewards are normalised)")
    if not view.earned:
        return exploded(loss, GROWN, LEAST, severity="warning")
    limit = max(value_scale(view), 1e-6) ** 2
    high = (loss.values > limit) & (np.arange(len(loss)) >= begin * len(loss))
    if high.sum() < iterations:
        return None
    worst = float(loss.values[high].max())
    return Finding(f"the value loss reaches {worst:.3g}, more than the square of any value here ({limit:.3g})",
                   worst / limit, loss.first(high), [loss.evidence(f"> {limit:.3g}")],
                   severity="warning" if _far_above(loss, limit, surely) else doubted(view))  # fmt: skip


def _far_above(loss: Curve, limit: float, surely: float) -> bool:
    """Errors of ten times any value. Rewards that are normalised make losses of about 1, whatever the returns are."""
    return loss.median(0.5) > surely * max(limit, 1.0)


@rule(
    "value-up-return-down",
    about="policy",
    algos=(),
    mends=SMALLER_STEPS | {"algo.lr_schedule": ANY},
    fallback=(SLOWER,),
)
def value_up_return_down(
    view: View, *, least_fall: float = 0.25, errors: float = 3.0, least_rise: float = 0.1
) -> Finding | None:
    """
    What: since the best evaluation the return fell by more than a quarter of what was learned, clear of noise, while
        the critic's mean value rose by a tenth.
    Why: the critic believes in something the policy does not earn; it will keep pushing there.
    Known problems: a value that lags behind a rise seen before the fall looks alike for a few iterations.
    Refuted by: longer episodes with the same return per step.
    Try: stop at the peak; lower `lr` or `epochs`; check the bootstrap at time limits.
    """
    course, value = view.course(at_least=5), q_estimate(view)
    peak = max(reversed(course[1:-2]), key=lambda e: e.mean)  # the last of equals: the fall begins there
    last = course[-1]
    floor = view.floor(course)
    fall = (peak.mean - last.mean) / max(peak.mean - floor, 1e-9)
    before = float(np.interp(peak.step, value.steps, value.values))
    scale = view.curve("value/target_std").median() if view.has("value/target_std") else 0.0
    rise = (value.median(0.1) - before) / max(abs(before), scale, 1e-9)
    if (
        peak.mean <= floor
        or fall < least_fall
        or clear(peak.mean - last.mean, peak, last) < errors
        or rise < least_rise
    ):
        return None
    return Finding(f"the critic's value rose {before:.4g} -> {value.median(0.1):.4g} while the return fell"
                   f" {peak.mean:.4g} -> {last.mean:.4g}", rise, peak.step,
                   [value.evidence("rise since the best evaluation"), view.evidence(course)])  # fmt: skip
