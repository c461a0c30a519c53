"""Does a method that learns from a replay buffer learn at all, and does its critic stay on the ground?"""

from __future__ import annotations

import math

import numpy as np

from relab.health.curve import Curve
from relab.health.foreign import exploded, least_dim, q_estimate, setting, value_scale
from relab.health.guess import BUFFERED, LOSSES
from relab.health.mend import DOWN
from relab.health.outcome import doubted, judged, learned
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View

OFF_POLICY = BUFFERED
SHORT_SIGHT, FAR_SIGHT = 0.9, 0.999  # discounts that are hardly undercut or exceeded
# A tag of an episode, and the group of those of an update: Stable-Baselines3, CleanRL.
# A library's tag of an episode, one that it logs beside it, and the group of those of an update.
EPISODE_AND_UPDATE = (("rollout/ep_rew_mean", "rollout/ep_len_mean", "train"),
                      ("charts/episodic_return", "charts/episodic_length", "losses"))  # fmt: skip
NATS = 2.0  # of entropy per action and step: what a bonus may add to a value of SAC without being an error


@rule("learning-never-started", about="fault", algos=OFF_POLICY, severity="warning")
def learning_never_started(view: View, *, most: float = 0.5) -> Finding | None:
    """
    What: the run ended before `learning_starts`, or without a single update; or, of a library that logs its losses with
        every update (Stable-Baselines3, scripts like CleanRL's), without a single loss in ten rows of returns. Or the
        first update shows only when more than half of its steps are over, behind ten rows of returns without one.
    Why: up to there actions are random and only fill the buffer; the result is that of an untrained policy.
    Known problems: a run that was cut short before it would have learned is not asked: run-incomplete says why.
    Refuted by: updates that happened in another process and were not counted.
    Try: lower `learning_starts`, or train for several times as many steps.
    """
    if view.state == "running":
        raise Missing("the end of the run")
    starts, last = setting(view, "learning_starts"), view.last_step
    updates = view.curve("data/updates") if view.has("data/updates") else None
    if _updated(view):
        return _started_late(view, most) if starts is None else None  # else setting-out-of-range names it
    if view.unfinished and (view.planned or math.inf) > (starts or 0):
        raise Missing("the end of the run: it was cut short before it would have learned")
    if starts is not None and starts >= last > 0:
        return Finding(f"learning_starts is {starts:,.0f}, but the run ended at step {last:,}", starts, 0,
                       [Evidence("learning_starts", [last], [starts], ">= last step")],
                       confidence="high")  # fmt: skip
    if updates is not None and updates.values.max() == 0:
        return Finding(f"not a single update in {last:,} steps", 0.0, 0, [updates.evidence()], confidence="high")
    if updates is None and not learned(view) and _logs_no_loss(view):
        return Finding(f"not a single loss in {last:,} steps, where this library logs one with every update", 0.0, 0,
                       confidence="medium")  # fmt: skip
    if updates is None and starts is None:
        raise Missing("learning_starts, or data/updates")
    return None


def _started_late(view: View, most: float, rows: int = 10) -> Finding | None:
    """By the log alone: returns are there from the start, updates are not."""
    first, last = view.first_update, view.last_step
    whole = max(view.length or 0.0, float(last))
    played = [int((c.steps < first).sum()) for name, c in view.history.columns.items() if name.startswith("return/")]
    if first <= most * whole or max(played, default=0) < rows:
        return None
    shown = view.curve("data/updates" if view.has("data/updates") else next(n for n in LOSSES if view.has(n)))
    return Finding(f"the first update is logged at step {first:,} of {last:,}: nothing was learned in the first"
                   f" {first / whole:.0%} of the run", float(first), 0,
                   [shown.evidence(f"first row > {most:.0%} of all steps")],
                   ["let learning begin within the first tenth of the steps (`learning_starts`)"], "high",
                   judged(view), about="policy")  # fmt: skip


def _updated(view: View) -> bool:
    """Whether the log shows updates all the same: then its steps are counted in other units than the setting."""
    if view.has("data/updates"):
        return bool(view.curve("data/updates").values.max() > 0)
    columns = view.history.columns
    return any(name in columns and np.isfinite(columns[name].values).any() for name in LOSSES)


def _logs_no_loss(view: View, rows: int = 10) -> bool:
    """Whether a library's usual tags of an episode are there in enough rows, and none of its tags of an update; one tag
    alone may be all that somebody chose to log."""
    names = {*view.history.mapping, *(name.removeprefix("foreign/") for name in view.history.columns)}
    groups = {name.partition("/")[0] for name in names}
    enough = view.earned in view.history.columns and len(view.history.columns[view.earned].values) >= rows
    return enough and any({tag, beside} <= names and update not in groups
                          for tag, beside, update in EPISODE_AND_UPDATE)  # fmt: skip


@rule(
    "exploration-never-ends",
    about="policy",
    setting=True,
    needs=("policy/exploration",),
    algos=("dqn",),
    severity="warning",
    mends={"exploration_final_eps": DOWN, "end_e": DOWN, "exploration_fraction": DOWN},
)
def exploration_never_ends(view: View, *, share_above: float = 0.3, nearly_all: float = 0.9) -> Finding | None:
    """
    What: at the end of the run more than three of ten actions are still drawn at random; of a run that goes on, from
        half of its planned steps on, if the share does not fall any more, or nine of ten were in every row. So many are
        told of a log that has ended even if they fall on a line to a later step: as a remark, it may have been stopped.
    Why: the returns in training are those of a half random policy; states that need many right actions in a row are
        never reached, and nothing corrects what the critic believes of them.
    Known problems: a constant share of random actions may be meant; then it is small.
    Refuted by: a run that learned all the same; then it is told as a remark.
    Try: end exploration within the first tenth to half of the steps (`exploration_fraction`, `exploration_final_eps`).
    """
    share = view.curve("policy/exploration", rows=5)
    if share.median(0.1) <= share_above:
        return None
    hopeless = bool((share.values >= nearly_all).all()) and _far_enough(view)
    if view.unfinished and not hopeless and (_falls(share) or view.length is None or view.early()):
        raise Missing("the end of the run: the share of random actions may still fall")
    at = "at the end" if view.state == "ended" or not view.unfinished else "so far"
    line = share.line_to_zero() if hopeless and view.unfinished else None
    later = "" if line is None else f", on a line that ends at step {line:,.0f}, the log at {view.last_step:,}"
    return Finding(f"{share.last:.0%} of the actions are still random {at} ({share.values[0]:.0%} at the start){later}",
                   share.last, None, [share.evidence(f"last > {share_above:g}")], confidence="high",
                   severity=judged(view))  # fmt: skip


def _far_enough(view: View, *, past: float = 0.5) -> bool:
    """Whether so much of the planned steps is over; where no plan is known, whether the log has ended."""
    if view.planned is None:
        return view.state in ("ended", "finished")
    return view.last_step >= past * view.planned


def _falls(share: Curve) -> bool:
    """Over the last fifth of the rows."""
    late = share.tail(0.2).values
    return bool(late[-1] < late[0])


@rule(
    "temperature-runaway",
    about="step",
    needs=("optim/temperature",),
    algos=("sac",),
    mends={"target_entropy": DOWN, "ent_coef": DOWN, "alpha": DOWN},
)
def temperature_runaway(view: View, *, times: float = 10, errors: float = 3.0, begun: float = 3.0) -> Finding | None:
    """
    What: the entropy temperature rises tenfold over its lowest value of before, still rises over the last quarter, and
        the return does not rise with it.
    Why: the target entropy cannot be reached (e.g. it is above the largest there is), so its weight grows until the
        reward no longer counts.
    Known problems: rewards that grow need a larger temperature; hence the return.
    Refuted by: the temperature settling, or the return rising.
    Try: set `target_entropy` to minus the number of action dimensions, or fix the temperature.
    """
    heat = view.curve("optim/temperature", rows=8)
    low = int(np.argmin(heat.values))
    rise = heat.last / max(float(heat.values[low]), 1e-12)
    log = Curve(heat.name, heat.steps, np.log(np.maximum(heat.values, 1e-12)))
    if rise < times or log.tail(0.25).slope().significance < errors or heat.last <= float(heat.values[0]):
        return None
    course = view.course(at_least=3)
    if course[-1].mean >= max(e.mean for e in course[1:-1]) and course[-1].mean > course[0].mean:
        return None
    onset = next((int(s) for s, v in zip(heat.steps[low:], heat.values[low:]) if v > begun * heat.values[low]), None)
    return Finding(f"the entropy temperature runs away: {heat.values[low]:.3g} -> {heat.last:.3g}", rise, onset,
                   [heat.evidence(f"last / lowest > {times:g}, still rising")], severity=doubted(view))  # fmt: skip


@rule(
    "temperature-stuck",
    about="optimiser",
    needs=("optim/temperature", "optim/temperature_loss"),
    algos=("sac",),
    names=("temperature-stuck",),
)
def temperature_stuck(view: View, *, rounding: float = 1e-6) -> Finding | None:
    """
    What: the temperature is tuned (its loss is logged), yet it has the same value in every row.
    Why: its optimiser does nothing: learning rate zero, a detached loss; exploration has the strength of the start.
    Known problems: a temperature printed with few digits looks the same.
    Refuted by: more digits, or a temperature that is meant to be fixed.
    Try: check the learning rate of the temperature and that its loss reaches it.
    """
    heat, loss = view.curve("optim/temperature", rows=8), view.curve("optim/temperature_loss", rows=8)
    meant = "algo.temperature" in view.config and view.config["algo.temperature"] is None  # ln 1 makes a loss of 0
    if np.ptp(heat.values) > rounding * max(abs(heat.last), 1e-12) or (np.abs(loss.values).max() == 0 and not meant):
        return None
    return Finding(f"the temperature stays at {heat.last:.4g} in all {len(heat)} rows, though it has a loss", heat.last,
                   int(heat.steps[0]), [heat.evidence("constant"), loss.evidence()])  # fmt: skip


@rule("q-overestimation", about="belief", algos=OFF_POLICY, severity="info")
def q_overestimation(view: View, *, above_best: float = 0.5, of_range: float = 0.1) -> Finding | None:
    """
    What: over the last quarter the critic's mean value is above anything the returns seen allow: the best episode, or
        its reward per step for ever (/ (1 - gamma)), by more than half of that and a tenth of the returns' range.
    Why: the critic believes in what no episode ever gave; the policy follows the error.
    Known problems: where no episode earned anything but 0 there is no scale to hold it against, and it is not asked.
        The returns of DQN are those of a policy that explores, its value is not: there it is a remark. For
        SAC the value is read from the actor's loss, which holds the entropy bonus too; the rule leaves it out up to
        twice the temperature per action and step.
    Refuted by: rewards that are scaled for learning but not in the logged return.
    Try: take the smaller of two critics, lower the learning rate or gamma, bootstrap no terminated states.
    """
    value, gamma = q_estimate(view, rows=8), _gamma(view, FAR_SIGHT)
    returns = view.curve(next((n for n in ("return/mean", "return/mean_100") if view.has(n)), "return/mean"), rows=3)
    if view.config.get("algo.norm_return"):
        raise Missing("returns in the critic's units (rewards are normalised)")
    if not returns.values.any():
        raise Missing("a return other than 0: nothing was earned yet, so that no value can be called too high")
    best, spread = float(returns.values.max()), float(np.ptp(returns.values))
    rate = best / max(float(view.curve("return/length").median()), 1.0)  # of a step of the best episodes, about
    bonus = NATS * view.curve("optim/temperature").median(0.25) / (1 - gamma) if view.has("optim/temperature") else 0.0
    bound = max(best, rate / (1 - gamma), 0.0)
    limit = bound + above_best * abs(bound) + of_range * spread + bonus
    level = value.median(0.25)
    if level <= limit:
        return None
    return Finding(f"the critic expects {level:.4g}, the best returns allow {bound:.4g}", level,
                   value.onset(value.values > limit), [value.evidence(f"> {limit:.4g}"), returns.evidence()],
                   confidence="medium", severity=None if view.algo == "dqn" else doubted(view))  # fmt: skip


@rule("critic-loss-blow-up", about="critic", needs=("value/critic_loss",), algos=OFF_POLICY, severity="warning")
def critic_loss_blow_up(view: View, *, grown: float = 1e4, least: float = 1e3) -> Finding | None:
    """
    What: over the last quarter the critic's squared error is above the square of the largest value that the returns
        seen allow; of a Huber loss (DQN of Stable-Baselines3), the error above that value. Or it grew ten
        thousandfold from the first quarter to the last tenth, to a thousand or more and above that square.
    Why: its errors are larger than anything there is to predict; it diverges.
    Known problems: a loss that is summed over many critics is larger by their number; a Huber loss of another tool
        grows with the error and not with its square, and is told late.
    Refuted by: rewards that are scaled for learning but not in the logged return.
    Try: lower the learning rate, update the target network more slowly, clip or scale rewards.
    """
    loss = view.curve("value/critic_loss", rows=8)
    if not view.earned:
        return exploded(loss, grown, least)
    scale = value_scale(view)
    if view.config.get("algo.norm_return"):
        raise Missing("returns in the critic's units (rewards are normalised)")
    huber = view.algo == "dqn" and setting(view, "exploration_fraction") is not None
    level, limit = loss.median(0.25), max(scale, 1.0) ** (1 if huber else 2)
    if level <= limit:
        return exploded(loss, grown, max(least, limit))
    error = level if huber else math.sqrt(level)
    message = f"the critic's loss is {level:.3g}: errors of {error:.3g}, where returns allow values up to {scale:.3g}"
    evidence = [loss.evidence(f"> {limit:.3g}")]
    return Finding(message, level / limit, loss.onset(loss.values > limit), evidence, confidence="high")


@rule(
    "critic-expects-nothing",
    about="belief",
    needs=("return/length",),
    algos=OFF_POLICY,
    severity="warning",
    names=("target-never-copied",),
)
def critic_expects_nothing(view: View, *, expects: float = 0.05, updates: int = 1000) -> Finding | None:
    """
    What: over the last quarter the critic's mean value is under 5 % in size of what the returns amount to, the reward
        per step times (1 - gamma^length) / (1 - gamma), after at least 1,000 updates.
    Why: the critic did not learn what comes after the next step: its steps are too small, or its targets stand still.
    Known problems: rewards that are scaled for learning but not in the logged return; rewards whose signs cancel. The
        values of SAC hold the entropy as well, which may cancel the returns: a remark where the run learned.
    Refuted by: rewards that reach the learner in such a scale.
    Try: look at steps-too-small and target-network-frozen first; then at what the targets bootstrap from.
    """
    value, expected = q_estimate(view, rows=8), abs(amount(view))
    if view.has("data/updates") and view.curve("data/updates").last < updates:
        raise Missing(f"{updates:,} updates")
    returns, level = _returns(view), abs(value.median(0.25))
    if expected <= 0 or level >= expects * expected or (view.algo == "sac" and entropy_worth(view) > expected):
        return None
    return Finding(f"the critic expects {value.median(0.25):.3g}, where by returns of {returns.median():.4g} a state is"
                   f" worth about {math.copysign(expected, returns.median()):.3g}", level / expected, None,
                   [value.evidence(f"|median| < {expects:g} x {expected:.3g}"), returns.evidence()],
                   severity=judged(view) if view.algo == "sac" else None)  # fmt: skip


@rule("value-sign-turned", about="fault", needs=("return/length",), algos=OFF_POLICY, severity="warning")
def value_sign_turned(view: View, *, least: float = 0.05, most: float = 2.0) -> Finding | None:
    """
    What: rewards have one sign, and so have all returns that were logged, but over the last quarter the critic's mean
        value has the other; its size is above 5 % of what the returns amount to and two nats of entropy per action
        dimension and step, and not beyond all returns.
    Why: a value is a mean of rewards and has their sign; the learner is given the rewards with their sign turned.
    Known problems: rewards that are centred for learning; a log that holds costs where the learner gets rewards.
    Refuted by: the return rising clear of random; then it is told as a remark.
    Try: print one reward as the environment gives it and as the buffer holds it; look for a minus in a wrapper.
    """
    value, expected, sign = q_estimate(view, rows=8), amount(view), reward_sign(view)
    entropy = NATS * least_dim(view) * entropy_worth(view) if view.algo == "sac" else 0.0
    returns, level = _returns(view).values, value.median(0.25)
    if (sign * returns <= 0).any() or sign * level >= 0:
        return None
    if not least * abs(expected) + entropy < abs(level) < most * value_scale(view):
        return None
    return Finding(
        f"the critic expects {level:.3g}, where returns of {np.median(returns):.4g} amount to"
        f" {expected:.3g}: the sign is turned",
        level / expected,
        None,
        [value.evidence(f"sign of {expected:.3g}"), _returns(view).evidence()],
                   severity=judged(view))  # fmt: skip


@rule("value-in-other-units", about="fault", needs=("value/critic_loss",), algos=("sac", "td3"), severity="warning")
def value_in_other_units(view: View, *, times: float = 10, errors: float = 0.2) -> Finding | None:
    """
    What: over the last quarter the critic's mean value is more than ten times in size what the returns seen allow, and
        its errors are under a fifth of it: it predicts its targets well.
    Why: a critic that diverges does not fit its targets; this one does, so its rewards are likely to have another scale
        than those in the log. Learning rates, temperature and clips are meant for values of a moderate size.
    Known problems: rewards that are scaled for learning on purpose; a critic that began with huge values (observations
        in the thousands) and was hardly trained. Without any return but 0 there is no scale to compare with.
    Refuted by: the return rising clear of random; then it is told as a remark.
    Try: divide the rewards by the factor given, or normalise them; compare a logged reward with one in the buffer.
    """
    if view.config.get("algo.norm_return"):
        raise Missing("returns in the critic's units (rewards are normalised)")
    value, scale = q_estimate(view, rows=8), value_scale(view)
    if scale <= 0:
        raise Missing("a return other than 0")
    level, error = abs(value.median(0.25)), math.sqrt(max(view.curve("value/critic_loss", rows=8).median(0.25), 0.0))
    entropy = NATS * least_dim(view) * entropy_worth(view) if view.algo == "sac" else 0.0
    ratio = level / scale
    if level <= times * scale + entropy or error >= errors * level:
        return None
    return Finding(f"the critic expects {value.median(0.25):.3g}, {ratio:.2g} times what the returns seen allow"
                   f" ({scale:.3g}), and fits its targets: the rewards have another scale", ratio, None,
                   [value.evidence(f"> {times:g} x {scale:.3g} in size")],
                   severity=judged(view))  # fmt: skip


def reward_sign(view: View) -> int:
    """1 or -1 where the environment's rewards have one sign. Where they do not, a return may have another sign than
    the discounted values: many small rewards, and one large punishment at the end."""
    low, high = (view.spec.get(key) for key in ("reward_low", "reward_high"))
    if isinstance(low, (int, float)) and low >= 0:
        return 1
    if isinstance(high, (int, float)) and high <= 0:
        return -1
    raise Missing("rewards of one sign (meta.spec.reward_low and reward_high)")


def _returns(view: View) -> Curve:
    return view.curve(next((n for n in ("return/mean", "return/mean_100") if view.has(n)), "return/mean"), rows=3)


def amount(view: View, least_gamma: float = 0.5) -> float:
    """What the returns seen amount to as a value: their reward per step times (1 - gamma^length) / (1 - gamma)."""
    gamma = _gamma(view, SHORT_SIGHT)
    if view.config.get("algo.norm_return") or gamma < least_gamma:
        raise Missing(f"returns in the critic's units, gamma from {least_gamma:g} to 1")
    length = max(view.curve("return/length").median(), 1.0)
    return float(np.median(_returns(view).values)) / length * (1 - gamma**length) / (1 - gamma)


def entropy_worth(view: View) -> float:
    """What a nat of entropy per step is worth in a value of SAC."""
    return view.curve("optim/temperature").median(0.25) / (1 - _gamma(view, FAR_SIGHT))


def _gamma(view: View, otherwise: float) -> float:
    """The discount; where the log does not say, the one with which the conclusion is the hardest to reach."""
    gamma = view.number("algo.gamma") if "algo.gamma" in view.config else otherwise
    if gamma >= 1:
        raise Missing("gamma < 1")
    return gamma
