"""Do two accounts of one thing agree? Training and evaluation, rewards and returns, a schedule and what it became."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from relab.health.curve import Curve
from relab.health.estimates import shown
from relab.health.foreign import first_setting, setting
from relab.health.outcome import judged
from relab.health.rule import SHORT, Evidence, Finding, Missing, rule
from relab.health.view import View
from relab.record.evaluations import Estimate

REPLAY = ("dqn", "sac", "td3")
LAST = 100  # episodes behind return/mean_100
NOISE = 0.1  # share of random actions that evaluations may lack without being another policy's
HALF = 0.5  # of the evaluations must each be clear of training by themselves
WHOLE = 2  # episodes that a world must have had the time for, so that those that ended are not the short ones
BEHIND = 1.1  # times the length of a schedule at which it is over for certain


def calibrated(view: View) -> str | None:
    """The rule's own severity on relab's runs; elsewhere it warns where nothing was learned: tools differ in what they
    log under one name."""
    return None if view.history.trained_by_relab else judged(view)


# ---- Training and evaluation


@dataclass(frozen=True)
class Pair:
    """An evaluation, and what training earned just before and just after it."""

    played: Estimate
    before: Estimate
    after: Estimate
    best: Estimate | None = None  # of the evaluations so far, where that is what training is held against

    @property
    def gap(self) -> float:
        """How far the evaluation lies outside of what training went through; above it is positive."""
        low, high = sorted((self.before.mean, self.after.mean))
        level = (self.best or self.played).mean
        return max(level - high, 0.0) + min(level - low, 0.0)

    @property
    def error(self) -> float:
        sides = (self.best or self.played, self.before, self.after)
        return math.hypot(*(0.0 if math.isnan(e.se) else e.se for e in sides))


@rule(
    "training-apart-from-evaluation",
    about="fault",
    algos=(),
    severity="warning",
    names=("actor-never-updated",),
)
def training_apart_from_evaluation(
    view: View, *, apart: float = 0.25, apart_in_mode: float = 0.5, errors: float = 4.0, least: int = 3
) -> Finding | None:
    """
    What: over the last half, and at least three evaluations, the episodes of training earn otherwise than evaluations
        that draw their actions in the same way, always on the same side: the last by four standard errors, and most
        of them (all, if training is the better one) by a quarter of all that the run earned too; all of them by half
        where only evaluations without exploration are there, where only what is worse than training is a warning. A
        mean over the last 100 episodes whose lag is not known is held against the best evaluation so far.
    Why: one policy plays both. Lower in training: the actor that collects is not handed the new parameters. Lower in
        evaluation: it is played with old parameters, or without the scales of the observations.
    Known problems: without chance in its actions a policy is often better, and a mean over the last 100 episodes lags
        behind it; training in another task than evaluation (a curriculum, shaped or clipped rewards, one life an
        episode) differs on purpose; so does an actor with noise of its own, if evaluations have none.
    Refuted by: one episode of the collecting actor and one of an evaluation from the same seed that act alike.
    Try: compare the parameters that collect with those that learn; evaluate with the actor that collects.
    """
    mode = "sampled" if view.has_evals("sampled") else "det"
    course, earned = view.returns(mode, at_least=least), _earned(view, mode)
    try:
        pairs = _pairs(view, course, earned, least)
    except Missing:
        pairs = _above_every_evaluation(view, course, earned, least)
    levels = [each.mean for pair in pairs for each in (pair.played, pair.before, pair.after)]
    scale, late = float(np.ptp(levels)), pairs[-max(least, len(pairs) // 2) :]
    limit = scale * (apart if mode == "sampled" else apart_in_mode)
    if not _stays_apart(late, limit, errors, every=mode == "det"):  # without noise a policy swings
        return None
    return _told_apart(view, late, mode, _apart_since(pairs, errors))


@rule(
    "evaluations-behind-training",
    about="return",
    algos=(),
    severity="warning",
    least=SHORT,
    explains=("below-known-level",),
)
def evaluations_behind_training(view: View, *, patience: float = 0.5) -> Finding | None:
    """
    What: the returns of training rose clear of a random policy's, by a gain that matters, and the evaluations that the
        run is judged by still end no better than a random policy.
    Why: training draws its actions by chance; without it a policy that has only begun to learn may repeat one action
        until the time limit. The outcome is that of evaluations, and it does not show yet what was learned.
    Known problems: evaluations that play another policy, or lack the scales of the observations, look the same.
    Refuted by: later evaluations that rise as training does.
    Try: train for more steps; evaluate with sampled actions as well: where these are no better
        either, check that evaluations see observations in the same scales.
    """
    course, verdict = view.course(at_least=3), view.verdict
    if verdict.random is None:
        raise Missing("what a random policy earns")
    if verdict.rising is None or verdict.kind != "short" or view.early(patience):
        return None
    last, lowest = course[-1].mean, verdict.yardstick.lowest
    floor = ", the floor of the time limit" if last <= lowest < 0 else ""
    kind = {"det": "deterministic ", "sampled": "sampled "}[view.by] if view.has_evals(view.by) else ""
    training = view.curve(verdict.rising.metric)
    rise = f"{verdict.rising.start:.4g} to {verdict.rising.end:.4g}"
    return Finding(f"training rises from {rise}, and the {kind}evaluations still earn {last:.4g}{floor}"
                   f" (random {verdict.random.mean:.4g})", last, None,
                   [view.evidence(course), training.evidence("first and last tenth of training")])  # fmt: skip


def _stays_apart(late: list[Pair], limit: float, errors: float, every: bool) -> bool:
    """Whether the evaluations lie on one side of training, and the last clearly so: wiring does not mend itself.

    A single moment's policy may be far worse than those around it, so that below training each must be far off.
    """
    side = math.copysign(1.0, late[-1].gap)
    clear = np.array([side * pair.gap > errors * pair.error for pair in late])
    far = clear & np.array([side * pair.gap > limit for pair in late])
    same = all(side * pair.gap > 0 for pair in late)
    return bool(same and clear[-1] and (far.mean() > HALF if side > 0 and not every else far.all()))


def _apart_since(pairs: list[Pair], errors: float) -> int:
    """The step of the evaluation from which on each is clear of training, on the side of the last."""
    side = math.copysign(1.0, pairs[-1].gap)
    near = [i for i, pair in enumerate(pairs) if side * pair.gap <= errors * pair.error]
    return pairs[near[-1] + 1 if near else 0].played.step


def _told_apart(view: View, late: list[Pair], mode: str, since: int) -> Finding:
    played, trained = (float(np.median([e.mean for e in side]))
                       for side in ([p.played for p in late], [p.after for p in late]))  # fmt: skip
    above, sure = late[-1].gap > 0, mode == "sampled"
    who = "evaluations play another policy" if not above else "the actor that collects is another one" if sure else (
        "chance in its actions costs the difference, or the actor that collects is another one")  # fmt: skip
    same = "of the same policy" if sure or not above else "without chance in their actions"
    training = Evidence("return/mean", [p.after.step for p in late], [p.after.mean for p in late],
                        "means of the episodes until the next evaluation")  # fmt: skip
    judged_on = shown([p.played for p in late], f"eval/return_{mode}")
    return Finding(f"training earns {trained:.4g} where evaluations {same} earn {played:.4g}: {who}",
                   late[-1].gap, since, [judged_on, training],
                   confidence="high" if sure else "medium",
                   severity=calibrated(view) if sure else "info" if above else None)  # fmt: skip


def _earned(view: View, mode: str) -> Curve:
    """Returns of training that evaluations of that mode can be held against."""
    staged = any(key.partition(".")[0] == "schedule" and value is not None for key, value in view.config.items())
    if staged or "stage" in view.kinds:
        raise Missing("one task for training and evaluation (a schedule changes that of training)")
    relabs = view.history.trained_by_relab and mode == "sampled"  # explores there as much as in training
    if view.has("policy/exploration") and not relabs and view.curve("policy/exploration").median(0.5) > NOISE:
        raise Missing("evaluations that explore as training does")
    return view.curve("return/mean" if view.has("return/mean") else "return/mean_100", rows=8)


def _pairs(view: View, course: list[Estimate], earned: Curve, least: int) -> list[Pair]:
    """The evaluations with training on both sides of them."""
    delay = LAST * view.curve("return/length").median() if earned.name == "return/mean_100" else 0.0
    weights = _episodes(view, earned)
    ends = [e.step for e in course]
    spans = [_window(view, earned, weights, a + delay, b + delay) for a, b in pairwise(ends)]
    pairs = [Pair(e, before, after) for e, before, after in zip(course[1:], spans, spans[1:]) if before and after]
    pairs = [pair for pair in pairs if _could_end(view, pair)]
    if len(pairs) < least:
        raise Missing(f"{least} evaluations with episodes of training before and after (there are {len(pairs)})")
    return pairs


def _above_every_evaluation(view: View, course: list[Estimate], earned: Curve, least: int) -> list[Pair]:
    """Where nobody knows by how much a mean over the last 100 episodes lags: it is a mean of what the policies so far
    earned, and none of them is better than the best evaluation so far, if evaluations play what training does."""
    if earned.name != "return/mean_100":
        raise Missing(f"{least} evaluations with episodes of training before and after")
    weights, pairs = np.ones(len(earned)), []
    for i, (a, b) in enumerate(pairwise(course)):
        span, best = _window(view, earned, weights, a.step, b.step), max(course[: i + 2], key=lambda e: e.mean)
        if span is not None:
            pairs.append(Pair(a, span, span, best))
    if len(pairs) < least or max(p.gap for p in pairs[-least:]) >= 0:
        raise Missing("the length of episodes, by which a mean over the last 100 of them lags")
    return pairs


def _could_end(view: View, pair: Pair) -> bool:
    """Whether training can have seen such episodes end: where many worlds took few steps each, only short ones did."""
    worlds, agents = view.config.get("algo.envs"), view.spec.get("agents") or 1
    lengths = [view.curve(name) for name in ("eval/length_sampled", "eval/length_det") if view.has(name)]
    if not isinstance(worlds, int) or not lengths:
        return True
    longest = max(float(np.interp(pair.played.step, curve.steps, curve.values)) for curve in lengths)
    return WHOLE * longest * worlds * agents <= pair.after.step


def _episodes(view: View, earned: Curve) -> np.ndarray:
    """Episodes behind each row; one where that is not logged."""
    if not view.has("return/episodes"):
        return np.ones(len(earned))
    counted = view.curve("return/episodes")
    return np.maximum(counted.values, 1.0) if np.array_equal(counted.steps, earned.steps) else np.ones(len(earned))


def _window(view: View, earned: Curve, weights: np.ndarray, low: float, high: float) -> Estimate | None:
    """What the episodes that ended in (low, high] earned on average; None where none did."""
    inside = (earned.steps > low) & (earned.steps <= high)
    if not inside.any():
        return None
    values, n = earned.values[inside], weights[inside]
    mean = float((values * n).sum() / n.sum())
    within = _spread(view, earned)[inside]
    spread = math.sqrt(float((n * ((values - mean) ** 2 + within**2)).sum() / n.sum()))
    return Estimate(int(earned.steps[inside][-1]), mean, spread / math.sqrt(n.sum()), int(n.sum()))


def _spread(view: View, earned: Curve) -> np.ndarray:
    """The standard deviation of the episodes behind each row; 0 where it is not logged."""
    if view.has("return/std") and np.array_equal(view.curve("return/std").steps, earned.steps):
        return view.curve("return/std").values
    return np.zeros(len(earned))


# ---- Rewards and returns


@rule(
    "rewards-not-those-of-returns",
    about="fault",
    needs=("data/reward_mean", "return/mean", "return/length"),
    algos=(),
    severity="warning",
    names=("reward-times-1000",),
)
def rewards_not_those_of_returns(view: View, *, times: float = 10, of_one_sign: float = 0.9) -> Finding | None:
    """
    What: over the run a step brings the learner more than ten times (or less than a tenth of) what the episodes earned
        a step, both with the same sign in nine of ten rows.
    Why: the episodes are counted where the environment pays, the rewards where the learner takes them: something
        between the two scales them. Rates, clips and temperatures are meant for values of a moderate size.
    Known problems: rewards that are scaled for learning on purpose; a run of hardly any whole episode is left out.
    Refuted by: a setting that says so.
    Try: compare one reward as the environment gives it with the one that the learner holds; take out what scales it.
    """
    rewards, paid = view.curve("data/reward_mean", rows=5), _paid(view)
    step, rate = float(rewards.values.mean()), float(paid.mean())
    signed = min(float((values * rate > 0).mean()) for values in (rewards.values, paid))
    ratio = step / rate if rate else math.nan
    if signed < of_one_sign or 1 / times <= ratio <= times:
        return None
    return Finding(f"a step brings the learner {step:.4g}, but episodes earned {rate:.4g} a step: {ratio:.3g} times",
                   ratio, int(rewards.steps[0]), [rewards.evidence("mean"), view.curve("return/mean").evidence(),
                   view.curve("return/length").evidence()], confidence="high",
                   severity=calibrated(view))  # fmt: skip


def _paid(view: View, covered: float = 0.5) -> np.ndarray:
    """What episodes earned a step, row by row, weighted by their steps so that the mean is that of the run."""
    returns, length = view.curve("return/mean", rows=5), view.curve("return/length", rows=5)
    if not np.array_equal(returns.steps, length.steps):
        raise Missing("return/mean and return/length in the same rows")
    episodes = _episodes(view, returns)
    if view.has("data/episodes") and not view.curve("data/episodes").last * length.median() > covered * view.last_step:
        raise Missing(f"whole episodes in {covered:.0%} of the steps")
    return np.asarray(returns.values * episodes / max(float((length.values * episodes).mean()), 1e-12))


# ---- A schedule and what it became


@rule(
    "exploration-off-schedule",
    about="fault",
    needs=("policy/exploration",),
    algos=("dqn",),
    severity="warning",
    names=("exploration-stuck",),
)
def exploration_off_schedule(view: View, *, off: float = 0.1, rows: int = 3) -> Finding | None:
    """
    What: behind the end of its schedule the share of random actions is not the one that the settings give for it, by
        more than a tenth.
    Why: the schedule is not applied, or by another clock than the one that its length is given in; training goes on
        with another share of random actions than was asked for.
    Known problems: a log that gives the mean share of an interval, where that is long; a later session with other
        settings.
    Refuted by: a schedule of another kind than a line that ends.
    Try: print the share where actions are drawn; look at what counts the steps of the schedule.
    """
    share, final = view.curve("policy/exploration", rows=5), first_setting(
        view, "epsilon_final", "exploration_final_eps", "end_e")  # fmt: skip
    until = first_setting(view, "epsilon_until", "exploration_fraction")
    if final is None or until is None or view.planned is None:
        raise Missing("how exploration ends (epsilon_final, epsilon_until, total_steps)")
    late = share.steps > BEHIND * until * view.planned
    if late.sum() < rows:
        raise Missing(f"{rows} rows behind the end of exploration's schedule")
    level = float(np.median(share.values[late]))
    if abs(level - final) <= off:
        return None
    return Finding(f"{level:.0%} of the actions are random behind the end of the schedule, settings say {final:.0%}",
                   level, int(share.steps[late][0]), [share.evidence(f"{final:g} from {until:.0%} of the steps on")],
                   confidence="high", severity=calibrated(view))  # fmt: skip


# ---- What targets are made of


@rule(
    "targets-stand-still",
    about="critic",
    needs=("value/target_mean", "value/q_mean", "data/reward_mean", "return/length"),
    algos=REPLAY,
    severity="warning",
    names=("target-never-copied",),
)
def targets_stand_still(view: View, *, holds: float = 0.2, longer: float = 5.0, updates: int = 1000) -> Finding | None:
    """
    What: over the last half, what the targets hold beyond their rewards (value/target_mean less n_step x
        data/reward_mean) is under a fifth of the critic's own mean value, discounted, after at least 1,000 updates.
    Why: a target is rewards and the slow copy's value of what follows, which must come to be the critic's; here the
        copy still says what it said at random, and the critic learns the next rewards alone.
    Known problems: rewards at the end of episodes alone, or of both signs, may look the same; episodes under five times
        `n_step` are left out. The reward is that of new steps, while targets are made of all that the replay holds.
    Refuted by: the parameters of the slow copy changing.
    Try: copy the network into the slow one: `tau` 0.005 after every update, or a whole copy every 100 to 10,000.
    """
    target, value = view.curve("value/target_mean", rows=8), view.curve("value/q_mean", rows=8)
    gamma, n = view.number("algo.gamma"), setting(view, "n_step") or 1.0
    if view.curve("return/length").median(0.5) < longer * n or gamma <= 0 or view.config.get("algo.norm_return"):
        raise Missing(f"episodes of {longer:g} x n_step, returns in the critic's units, gamma above 0")
    if view.has("data/updates") and view.curve("data/updates").last < updates:
        raise Missing(f"{updates:,} updates")
    rewards = n * view.curve("data/reward_mean").median(0.5)
    beyond, own = target.median(0.5) - rewards, gamma**n * value.median(0.5)
    if abs(beyond) >= holds * abs(own) or abs(own) < holds * abs(rewards):
        return None
    return Finding(f"targets hold {beyond:.3g} beyond their rewards, where the critic itself expects {own:.3g}",
                   beyond / own, None, [target.evidence(f"less {rewards:.3g}, < {holds:g} x {own:.3g}"),
                   value.evidence()], confidence="medium", severity=calibrated(view))  # fmt: skip
