"""Does the program do what the algorithm says? Marks that are exact in a sound run."""

from __future__ import annotations

import numpy as np

from relab.health.curve import Curve
from relab.health.rule import SHORT, Finding, Missing, rule
from relab.health.view import View

BOOTSTRAPS = ("ppo", "a2c", "dqn", "sac", "td3", "iql")


# ---- Advantages and targets


@rule(
    "advantage-misaligned",
    about="fault",
    needs=("data/advantage_td", "data/advantage_td_next"),
    algos=("ppo", "a2c"),
    severity="warning",
    names=("advantage-sign", "gae-shifted"),
)
def advantage_misaligned(
    view: View,
    *,
    negative: float = 0.9,
    correlated_below: float = -0.1,
    least_lead: float = 0.2,
    led: float = 0.75,
) -> Finding | None:
    """
    What: the advantages in the loss correlate negatively with their own step's TD error in nine of ten iterations, or
        less than with the next step's, by more than 0.2 in the median and in three of four iterations.
    Why: an advantage is a sum of TD errors that begins with its own step's; a wrong sign, or an index off by one,
        teaches the policy the opposite, or the wrong action.
    Known problems: both correlations are alike early in CartPole, and with a poor critic on Pendulum (0.13); hence the
        margin.
    Refuted by: advantages that are not made of TD errors.
    Try: compute the advantage of three steps by hand and compare sign and position.
    """
    own, following = view.curve("data/advantage_td", rows=5), view.curve("data/advantage_td_next", rows=5)
    if not view.has_choice:
        return None
    if np.mean(own.values < 0) >= negative and own.median() < correlated_below:
        return Finding(f"the advantages have the wrong sign: {own.median():.2f} correlated with their own TD error",
                       own.median(), int(own.steps[0]), [own.evidence("< 0")], confidence="high")  # fmt: skip
    rows = min(len(own), len(following))
    lead = Curve("data/advantage_td_next - data/advantage_td", following.steps[-rows:],
                 following.values[-rows:] - own.values[-rows:])  # fmt: skip
    if lead.median() <= least_lead or np.mean(lead.values > 0) < led:
        return None
    return Finding(f"the advantages belong to the next step: {following.median():.2f} correlated with its TD error,"
                   f" {own.median():.2f} with their own", lead.median(), int(lead.steps[0]),
                   [lead.evidence(f"> {least_lead:g}")], confidence="high")  # fmt: skip


@rule(
    "value-beyond-end",
    about="fault",
    needs=("value/after_end",),
    algos=BOOTSTRAPS,
    severity="warning",
    names=("no-termination-mask",),
)
def value_beyond_end(view: View, *, rounding: float = 1e-6) -> Finding | None:
    """
    What: the targets expect something after a terminated episode: the successor's value there is not 0.
    Why: what comes after the end belongs to another episode; values grow without bound where ends are frequent.
    Known problems: none; the number is exactly 0 where the end is masked.
    Refuted by: ends that are time limits and were recorded as terminations.
    Try: multiply the successor's value by (1 - terminated) in the targets.
    """
    beyond = view.curve("value/after_end", rows=3)
    level = float(np.median(np.abs(beyond.values)))
    if level <= rounding:
        return None
    return Finding(f"the targets hold {beyond.median():.4g} for what comes after a terminated episode", level,
                   beyond.first(np.abs(beyond.values) > rounding), [beyond.evidence("must be 0")],
                   confidence="high")  # fmt: skip


@rule(
    "ratio-always-one",
    about="fault",
    needs=("policy/kl", "optim/step_rms"),
    algos=("ppo",),
    severity="warning",
    names=("ratio-always-one",),
)
def ratio_always_one(
    view: View, *, iterations: int = 3, at_first: float = 1e-3, least_step: float = 1e-4, usually: float = 0.05
) -> Finding | None:
    """
    What: from the first three iterations on the KL between old and new policy is under a thousandth of the square of a
        parameter's step (about ten times it is usual), while the parameters do move.
    Why: the old log-probability is taken from the new policy; the ratio is 1, and nothing clips the update.
    Known problems: with one action there is nothing to move; such environments are left out. A policy that has become
        certain does not move either; hence the first iterations.
    Refuted by: a single step per batch, which leaves the ratio at 1.
    Try: keep the log-probability of the moment of acting, and do not let it be recomputed.
    """
    kl, step = view.curve("policy/kl", rows=5), view.curve("optim/step_rms", rows=5)
    rows = min(len(kl), len(step))
    size = np.maximum(step.values[:rows], 1e-12) ** 2
    ratio = np.abs(kl.values[:rows]) / size
    blind = (ratio[:iterations] < at_first).all() and float(np.median(ratio)) < usually
    moves = (step.values[:iterations] > least_step).all()
    if not view.has_choice or not blind or not moves:
        return None
    message = f"the ratio is always 1: KL {kl.median():.1e} though parameters move by {step.median():.1e} an iteration"
    return Finding(message, float(np.median(ratio)), int(kl.steps[0]),
                   [kl.evidence(f"< {at_first:g} step_rms² at first"), step.evidence()], confidence="high")  # fmt: skip


@rule(
    "critic-frozen",
    about="critic",
    needs=("value/loss", "data/advantage_mean", "data/advantage_std"),
    algos=("ppo",),
    severity="warning",
    explains=("critic-not-learning",),  # nearer than whatever holds the policy too,
    names=("critic-frozen",),
)
def critic_frozen(view: View, *, alike: float = 2e-3, iterations: float = 0.9, rows: int = 3) -> Finding | None:
    """
    What: in nine of ten iterations of the first half the value loss after the epochs is, to two thousandths, the
        loss before them: (advantage_mean² + advantage_std²) / 2.
    Why: the critic gets no gradient, or its optimiser does nothing.
    Known problems: a learning rate of 0 looks the same, and is one; frozen-parameters tells.
    Refuted by: a value loss that is not the mean squared error of the same rows.
    Try: check that the value loss reaches the optimiser, and `value_coef`.
    """
    names = ("value/loss", "data/advantage_mean", "data/advantage_std")
    loss, mean, std = (view.curve(name, rows=6).head(0.5) for name in names)
    n = min(len(loss), len(mean), len(std))
    before = (mean.values[:n] ** 2 + std.values[:n] ** 2) / 2
    if view.config.get("algo.clip_value") or view.config.get("algo.advantage", "gae") != "gae":
        raise Missing("a plain value loss")
    good = before > 1e-12
    ratio = loss.values[:n][good] / before[good]
    if len(ratio) < rows or np.mean(np.abs(ratio - 1) < alike) < iterations:
        return None
    return Finding("the epochs do not lower the value loss: the critic does not learn", float(np.median(ratio)),
                   int(loss.steps[0]), [loss.evidence("= (advantage_mean² + advantage_std²) / 2")],
                   confidence="high")  # fmt: skip


# ---- Scales


@rule(
    "reward-out-of-scale",
    about="fault",
    needs=("data/reward_max", "data/reward_min"),
    algos=(),
    severity="warning",
    names=("reward-times-1000",),
)
def reward_out_of_scale(view: View, *, outside_by: float = 0.01) -> Finding | None:
    """
    What: rewards lie outside of what the environment declares, by more than 1 % of its range.
    Why: something between the environment and the learner scales them, or the declared bound is wrong; value and
        gradient are out of scale with them.
    Known problems: an environment whose declaration is too narrow looks the same.
    Refuted by: the environment's own rewards having that size.
    Try: compare data/reward_max with one step taken by hand; take out the wrapper that scales, or correct the bound.
    """
    bounds = [view.spec.get(key) for key in ("reward_low", "reward_high")]
    if not all(isinstance(b, (int, float)) for b in bounds):
        raise Missing("meta.spec.reward_low and reward_high")
    low, high = float(bounds[0]), float(bounds[1])  # type: ignore[arg-type]
    slack = outside_by * max(high - low, abs(high), abs(low))
    for name, past in (("data/reward_max", lambda x: x > high + slack), ("data/reward_min", lambda x: x < low - slack)):
        curve = view.curve(name, rows=1)
        out = past(curve.values)
        if out.any():
            worst = float(curve.values[np.argmax(np.abs(curve.values))])
            return Finding(f"{name} reaches {worst:.4g}, the environment declares {low:.4g} to {high:.4g}", worst,
                           curve.first(out), [curve.evidence("outside")], confidence="high")  # fmt: skip
    return None


@rule(
    "observation-out-of-scale",
    about="fault",
    needs=("data/obs_max",),
    algos=(),
    severity="warning",
    least=SHORT,
    names=("one-huge-observation",),
)
def observation_out_of_scale(view: View, *, largest: float = 1000) -> Finding | None:
    """
    What: the networks see numbers above 1,000 in more than half of the iterations.
    Why: they are made for numbers of about 1; one large input drives the units to their ends, and the others vanish.
    Known problems: an environment may give large numbers, and a run may cope.
    Refuted by: the reference run seeing the same and learning.
    Try: `norm_obs=true`, or give that observation in other units.
    """
    size = view.curve("data/obs_max", rows=3)
    if size.median() <= largest:
        return None
    return Finding(f"observations reach {size.median():.3g}", size.median(), size.first_above(largest),
                   [size.evidence(f"> {largest:g}")], confidence="high")  # fmt: skip


# ---- Data and resumes


@rule(
    "stale-data",
    about="fault",
    needs=("policy/kl_start",),
    algos=("ppo",),
    severity="warning",
    names=("stale-data",),
)
def stale_data(view: View, *, apart: float = 1e-5) -> Finding | None:
    """
    What: before the first step of an iteration the policy already differs from the one that acted (KL above 1e-5), in
        half of the iterations.
    Why: the data comes from an older policy, or the old log-probabilities are not those of its actions.
    Known problems: low precision gives 1e-9 to 1e-7.
    Refuted by: actors that run behind on purpose, with a correction for it.
    Try: collect with the current parameters; compare log-probabilities before the first step: they must be equal.
    """
    start = view.curve("policy/kl_start", rows=5)
    if start.median() <= apart:
        return None
    return Finding(f"the data is not the policy's: KL {start.median():.2g} before the first step", start.median(),
                   start.first_above(apart), [start.evidence(f"> {apart:g}")], confidence="high")  # fmt: skip


@rule(
    "resume-lost-state",
    about="fault",
    algos=(),
    severity="warning",
    names=("resume-forgets-optimiser", "resume-forgets-scales", "resume-resets-actor"),
)
def resume_lost_state(view: View) -> Finding | None:
    """
    What: a count that only grows starts anew: steps in the optimiser's memory, of the actor alone too, rows behind a
        running scale.
    Why: a resume did not restore it; moments or scales begin from nothing under a trained network.
    Known problems: a reset on purpose looks the same.
    Refuted by: the reset being part of the method.
    Try: save and restore optimiser and scales with the parameters.
    """
    counts = ("optim/adam_steps", "optim/actor_updates", "data/obs_seen", "data/reward_seen")
    names = [n for n in counts if view.has(n)]
    if not names:
        raise Missing(" or ".join(counts))
    for name in names:
        count = view.curve(name)
        fell = np.append(False, np.diff(count.values) < 0)
        if fell.any():
            at = int(np.flatnonzero(fell)[0])
            return Finding(f"{name} falls from {count.values[at - 1]:,.0f} to {count.values[at]:,.0f}",
                           float(count.values[at]), int(count.steps[at]), [count.evidence("must grow")],
                           confidence="high")  # fmt: skip
    return None
