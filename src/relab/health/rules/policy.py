"""Are the policy's updates healthy? Size, direction and noise of what PPO does to the policy."""

from __future__ import annotations

import numpy as np

from relab.base.numbers import is_finite
from relab.health.curve import Curve
from relab.health.estimates import clear
from relab.health.foreign import first_setting, named
from relab.health.mend import ANY, LARGER_STEPS, MUCH_SLOWER, SCALED_REWARDS, SLOWER, SMALLER_STEPS, UP, scaled
from relab.health.outcome import failed, judged, learned
from relab.health.rule import SHORT, Finding, Missing, rule
from relab.health.view import View

BASE = ("policy/kl", "policy/clip_share")
STILL_KL, STILL_CLIP = 1e-4, 1e-3  # under which an update did not move the policy
LEAST_STEP = 1e-6  # of a rate or a clip of gradients under which numbers do not change for its smallness
STILL_ENTROPY = 0.05  # nats: one that is sure of its actions from the first row on is another rule's


@rule(
    "diverged",
    about="numbers",
    needs=BASE,
    severity="warning",
    least=SHORT,
    mends=SMALLER_STEPS | {"algo.clip": ANY},  # a wide one lets the policy go, a narrow one is left by most rows
    fallback=(MUCH_SLOWER,),
    names=("lr-times-100",),
)
def diverged(view: View, *, torn: float = 1.0, clipped_share: float = 0.9, survived: int = 2) -> Finding | None:
    """
    What: an update moved the policy by a KL above 1, or took more than 90 % of the rows out of the clip range.
    Why: the new policy has nothing to do with the one that collected the data; what it learned is noise.
    Known problems: one such update may be survived; up to two do not count where evaluations end above random (where
        that is not known: with a gain), and a run that ends at the highest return there is gets a remark.
    Refuted by: the return rising through it.
    Try: lower `lr` tenfold, or set `target_kl`; restart from the last good checkpoint.
    """
    kl, clipped = view.curve("policy/kl", rows=3), view.curve("policy/clip_share", rows=3)
    if len(kl) != len(clipped):
        raise Missing("policy/kl and policy/clip_share in the same rows")
    wild = kl.values > torn
    if not _clip_falls(view):
        wild |= clipped.values > clipped_share
    if not wild.any() or (wild.sum() <= survived and _ends_well(view)):
        return None
    end = view.standing()
    survives = end is not None and view.verdict.learned and view.at_ceiling(end.mean)
    return Finding(
        f"{int(wild.sum())} of {len(wild)} updates changed the policy far too much (KL up to {kl.values.max():.3g})",
        float(kl.values.max()),
        kl.first(wild),
        [kl.evidence(f"> {torn:g}"), clipped.evidence(f"> {clipped_share:g}")],
        _slower(view, 10) or (["lower `lr` tenfold, or set `target_kl`"] if survives else []),
        "high",
        "info" if survives else None,
    )


def _ends_well(view: View) -> bool:
    """Whether evaluations end above random; where that is not known, with a gain over their start."""
    try:
        return view.has_evals(view.by) and view.above_random()
    except Missing:
        return view.verdict.learned


def _clip_falls(view: View, share: float = 0.5) -> bool:
    """Whether the clip range shrinks on the way: then more rows leave it in every healthy run."""
    return any(c.last < share * c.values[0] for c in named(view, "clip_range", rows=2))


def _slower(view: View, factor: float) -> list[object]:
    lr = view.config.get("algo.lr")
    return [{"key": "algo.lr", "from": lr, "to": lr / factor}] if isinstance(lr, float) else []


@rule(
    "update-too-large",
    about="optimiser",
    needs=("policy/kl",),
    severity="warning",
    least=SHORT,
    mends=SMALLER_STEPS,
    fallback=(SLOWER,),
    names=("lr-times-100",),
)
def update_too_large(
    view: View, *, times_target: float = 1.5, iterations: float = 0.5, without: float = 0.1
) -> Finding | None:
    """
    What: in more than half of the iterations the KL between old and new policy exceeds 1.5 times `target_kl`; where
        none is set, 0.1, ten times what is usually aimed at.
    Why: the step is larger than the one asked for; the data no longer describes the policy that is updated.
    Known problems: without a `target_kl` a run that learned is told as a remark.
    Refuted by: a reference run with the same KL that learns.
    Try: lower `lr` or `epochs`; `lr_schedule=adaptive_kl` does it by itself.
    """
    kl, target = view.curve("policy/kl", rows=5), first_setting(view, "target_kl", "kl_target")
    if not target or not target > 0:
        return _without_target(view, kl, without, iterations)
    share = kl.share_above(times_target * target)
    if share <= iterations:
        return None
    return Finding(
        f"KL is above {times_target:g} x target_kl in {share:.0%} of the iterations (median"
        f" {kl.median():.3g}, target {target:g})",
        kl.median(),
        kl.first_above(times_target * target),
        [kl.evidence(f"> {times_target:g} * {target:g}")],
        _slower(view, 3),
    )


def _without_target(view: View, kl: Curve, most: float, iterations: float) -> Finding | None:
    """A KL that is far too large by itself."""
    share = kl.share_above(most)
    if share <= iterations:
        return None
    return Finding(f"KL is above {most:g} in {share:.0%} of the iterations (median {kl.median():.3g}); 0.01 to 0.03 are"
                   " usual", kl.median(), kl.first_above(most), [kl.evidence(f"> {most:g}")], _slower(view, 3),
                   severity=judged(view))  # fmt: skip


@rule(
    "clip-share-high",
    about="step",
    needs=("policy/clip_share",),
    severity="warning",
    least=SHORT,
    mends=SMALLER_STEPS | {"algo.clip": UP},
    fallback=(scaled("algo.epochs", 0.5), SLOWER),
)
def clip_share_high(view: View, *, most: float = 0.4) -> Finding | None:
    """
    What: more than 40 % of the rows leave the clip range, over the second half of the run.
    Why: the batch is used up before its epochs are over; further passes fit noise.
    Known problems: narrow clips (0.05) reach this in health; a clip that is logged and falls is left out.
    Refuted by: a reference run with the same share that learns; a run that learned is told as a remark.
    Try: fewer `epochs`, lower `lr`, a larger batch; a larger `clip` where it is narrow.
    """
    share = view.curve("policy/clip_share", rows=5)
    level = share.median(0.5)
    if level <= most or _clip_falls(view):
        return None
    return Finding(f"{level:.0%} of the rows leave the clip range", level, share.onset(share.values > most),
                   [share.evidence(f"median of the second half > {most:g}")], _slower(view, 3),
                   severity=judged(view))  # fmt: skip


@rule("negative-kl", about="fault", severity="warning")
def negative_kl(view: View, *, rounding: float = 1e-3, rows: float = 0.9) -> Finding | None:
    """
    What: the k3 estimate of the KL is below -0.001; each of its terms is at least 0. Of the k1 estimate, which may be
        below 0 by chance: nine of ten rows are, and their median is below -0.001.
    Why: log-probabilities of old and new policy belong to different actions or masks.
    Known problems: single rows of the k1 estimate may be negative in health.
    Refuted by: the metric being something else under this name.
    Try: compare log-probabilities of old and new policy before the first optimiser step: they must be equal.
    """
    if not view.has("policy/kl"):
        return _always_negative(view.curve("policy/kl_k1", rows=8), rounding, rows)
    kl = view.curve("policy/kl")
    low = float(kl.values.min())
    if low >= -rounding:
        return None
    return Finding(
        f"KL falls to {low:.3g}, which k3 cannot",
        low,
        kl.first_below(-rounding),
        [kl.evidence(f"< -{rounding:g}")],
        confidence="high",
    )


def _always_negative(kl: Curve, rounding: float, rows: float) -> Finding | None:
    below = kl.values < 0
    if below.mean() < rows or kl.median() >= -rounding:
        return None
    return Finding(f"KL is below 0 in {below.mean():.0%} of the rows (median {kl.median():.3g}), where it is above 0 on"
                   " average: its sign is turned", kl.median(), kl.first(below), [kl.evidence("< 0")],
                   confidence="high")  # fmt: skip


@rule(
    "frozen-parameters",
    about="optimiser",
    needs=("optim/step_rms", "optim/lr"),
    algos=(),
    severity="warning",
    least=SHORT,
    mends=LARGER_STEPS,
    names=("lr-over-1000",),
)
def frozen_parameters(view: View, *, step_below: float = 1e-7, iterations: float = 0.9) -> Finding | None:
    """
    What: in the first iteration, and in nine of ten, a parameter changes by less than 1e-7 per iteration. Where it is
        exactly 0 throughout, and the settings would let it move, no step is taken at all.
    Why: the optimiser does nothing: learning rate zero, detached loss, gradient gone.
    Known problems: a solved tiny task and the end of a schedule stand still too; hence from the first iteration on.
    Refuted by: parameters that are frozen on purpose.
    Try: check `lr`, that the optimiser holds the parameters, and optim/grad_norm.
    """
    step = view.curve("optim/step_rms", rows=5)
    still = step.values < step_below
    if still.mean() < iterations or not still[0]:
        return None
    if not step.values.any() and _takes_no_step(view):
        return _no_step(step, f"parameters stay exactly as they are in all {len(step)} rows")
    return Finding(
        f"parameters move by {step.median():.1e} per iteration (lr {view.curve('optim/lr').median():.1e})",
        step.median(),
        step.onset(still),
        [step.evidence(f"< {step_below:.0e}")],
        confidence="high",
    )


@rule(
    "policy-not-moving",
    about="step",
    algos=("ppo", "a2c"),
    severity="warning",
    least=SHORT,
    mends=LARGER_STEPS,
    fallback=(scaled("algo.lr", 10),),
    names=("lr-over-1000",),
)
def policy_not_moving(
    view: View,
    *,
    kl_below: float = STILL_KL,
    clipped_below: float = STILL_CLIP,
    iterations: float = 0.9,
    nats: float = 2e-3,
) -> Finding | None:
    """
    What: KL under 1e-4 and clip share under 0.001 in nine of ten iterations, the first among them; or so at the very
        end of a run whose return fell. Where no KL is logged: the entropy stays within 0.002 nats of its first value in
        a run that learned nothing. A KL of exactly 0 in every row, in a log of more than four decimals, in a run that
        learned nothing and whose settings would let it move, is no step at all.
    Why: the update does not reach the policy, or the ratio is blind to it (a huge standard deviation).
    Known problems: values printed with three decimals look like zero; a solved task moves little; a learning rate that
        falls to 0 ends every run so, hence the return.
    Refuted by: the reference run being as low: then it is not the cause.
    Try: raise `lr`; look at optim/step_rms and, for Gaussian policies, at policy/std_max first.
    """
    if not view.has("policy/kl"):
        return _entropy_stands(view, nats)
    kl = view.curve("policy/kl", rows=5)
    clipped = view.curve("policy/clip_share", rows=5) if view.has("policy/clip_share") else None
    within = clipped is None or (clipped.values < clipped_below).mean() >= iterations
    still = (kl.values < kl_below).mean() >= iterations and within
    if not view.has_choice or (clipped is None and learned(view)):
        return None
    if not still or kl.values[0] >= kl_below:
        return _ends_still(view, kl)
    if not kl.values.any() and (clipped is None or not clipped.values.any()) and _takes_no_step(view):
        return _no_step(kl, f"KL is exactly 0 in all {len(kl)} rows")
    return Finding(
        f"the policy hardly moves: KL {kl.median():.2g}"
        + ("" if clipped is None else f", clip share {clipped.median():.2g}"),
        kl.median(),
        kl.onset(kl.values < kl_below),
        [kl.evidence(f"< {kl_below:g}"), *([] if clipped is None else [clipped.evidence(f"< {clipped_below:g}")])],
    )


def _takes_no_step(view: View, digits: int = 4) -> bool:
    """Whether numbers that are exactly 0 mean that no update is made: others of the log have more than four decimals,
    the settings would let it move, and nothing was learned."""
    if not failed(view) or any(rate < LEAST_STEP for rate in _step_settings(view)):
        return False
    others = [view.curve(name).values for name in ("policy/entropy", "value/loss", "return/mean") if view.has(name)]
    return any(bool((np.abs(values - values.round(digits)) > 0).any()) for values in others)


def _step_settings(view: View) -> list[float]:
    """What makes updates small: rates, as set or as logged, and the clip of gradients."""
    words = ("lr", "learning_rate", "max_grad_norm")
    values = [value for key, value in view.config.items() if key.rpartition(".")[2] in words and is_finite(value)]
    return values + ([view.curve("optim/lr").values.max()] if view.has("optim/lr") else [])


def _no_step(curve: Curve, what: str) -> Finding:
    return Finding(f"{what}: no optimiser step reaches the policy", 0.0, None, [curve.evidence("0")],
                   ["look in the program: whether the optimiser's step is called, holds the parameters of the policy"
                    " that acts, and the loss is joined to them"],
                   "high", beyond_settings=True)  # fmt: skip


def _entropy_stands(view: View, nats: float) -> Finding | None:
    """A policy that changes at all changes how sure it is of its actions."""
    entropy = view.curve("policy/entropy", rows=8)
    moved = float(np.abs(entropy.values - entropy.values[0]).max())
    if moved >= nats or float(entropy.values[0]) < STILL_ENTROPY or not failed(view) or not view.has_choice:
        return None
    return Finding(f"the policy hardly moves: its entropy stays within {moved:.1g} nats of {entropy.values[0]:.4g}",
                   moved, int(entropy.steps[0]), [entropy.evidence(f"within {nats:g} of the first")])  # fmt: skip


def _ends_still(view: View, kl: Curve) -> Finding | None:
    """A still end is the learning rate's more often than not; it is told where the run got worse, and its reference is
    looked at first."""
    if not _still_at_end(view) or not _fell(view):
        return None
    other = view.reference
    shared = other is not None and _still_at_end(other)
    finding = Finding(f"the policy hardly moves at the end: KL {kl.median(0.1):.2g}", kl.median(0.1),
                      kl.onset(kl.values < STILL_KL), [kl.evidence(f"< {STILL_KL:g}")], confidence="low",
                      about="return")  # fmt: skip
    finding.status = "also-in-reference" if shared else "fired"
    return finding


def _still_at_end(view: View) -> bool:
    try:
        ends = [view.curve(name, rows=10).values for name in BASE]
        ends = [values[-max(5, len(values) // 50) :] for values in ends]
    except Missing:
        return False
    return bool((ends[0] < STILL_KL).all() and (ends[1] < STILL_CLIP).all())


def _fell(view: View, share: float = 0.2, errors: float = 3.0) -> bool:
    """Whether the return ends clearly below its start, by a fifth of it at least."""
    try:
        course = view.course(at_least=3)
    except Missing:
        return False
    loss = course[0].mean - course[-1].mean
    return loss > share * abs(course[0].mean) and clear(loss, course[0], course[-1]) > errors


@rule(
    "gradient-always-clipped",
    about="optimiser",
    needs=("optim/grad_clipped_share", "optim/grad_norm"),
    algos=(),
    explains=("frozen-parameters",),
    mends={"algo.max_grad_norm": UP},
    fallback=(SCALED_REWARDS, scaled("algo.max_grad_norm", 10)),
    names=("reward-times-1000", "gradient-clip-1e-6"),
)
def gradient_always_clipped(
    view: View, *, clipped: float = 0.9, times_limit: float = 30, likely: float = 300, surely: float = 1e4
) -> Finding | None:
    """
    What: in the second half nearly every step is clipped, and the gradient is over 30 times `max_grad_norm`.
    Why: the clip, not the loss, decides about the step; the loss is out of scale or the limit a slip.
    Known problems: Adam divides by the gradient's size, so that clipping alone costs little; hence the factor.
    Refuted by: the reference run being clipped as much and learning.
    Try: scale rewards (`norm_return`), or raise `max_grad_norm`.
    """
    share, norm = view.curve("optim/grad_clipped_share", rows=5), view.curve("optim/grad_norm", rows=5)
    limit = view.number("algo.max_grad_norm")
    if limit <= 0:
        raise Missing("max_grad_norm above 0")
    ratio = norm.median(0.5) / limit
    if share.median(0.5) <= clipped or ratio <= times_limit:
        return None
    return Finding(f"every step is clipped: gradient norm {norm.median(0.5):.3g}, limit {limit:g}", ratio,
                   share.onset(share.values > clipped),
                   [share.evidence(f"> {clipped:g}"), norm.evidence(f"/ {limit:g} > {times_limit:g}")],
                   confidence="low" if ratio < likely else ("medium" if ratio < surely else "high"))  # fmt: skip


@rule(
    "weights-grow-gradients-fade",
    about="optimiser",
    needs=("optim/param_norm", "optim/grad_norm"),
    algos=(),
    mends=SMALLER_STEPS,
    fallback=(SLOWER,),
)
def weights_grow(view: View, *, times_size: float = 5, faded: float = 0.01) -> Finding | None:
    """
    What: the norm of the parameters grew more than fivefold while the gradient fell below 1 % of its early size.
    Why: large weights saturate units; the network loses the ability to learn anything new.
    Known problems: a solved task has small gradients; hence the growth.
    Refuted by: evaluations still rising.
    Try: lower `lr`, weight decay towards the start, or reset the last layers.
    """
    size, gradient = view.curve("optim/param_norm", rows=8), view.curve("optim/grad_norm", rows=8)
    growth = size.last / max(float(size.values[0]), 1e-12)
    fade = gradient.median(0.25) / max(float(np.median(gradient.head(0.25).values)), 1e-300)
    if growth <= times_size or fade >= faded:
        return None
    return Finding(
        f"parameters grew x{growth:.3g} while the gradient fell to {fade:.1%} of its early size",
        growth,
        size.first_above(times_size * float(size.values[0])),
        [size.evidence(f"last / first > {times_size:g}"), gradient.evidence(f"late / early < {faded:g}")],
    )
