"""Is there a sound amount of chance in the actions? Entropy and standard deviation against what they can be."""

from __future__ import annotations

import math

from relab.health.curve import Curve
from relab.health.estimates import clear
from relab.health.foreign import entropy_share, first_setting, named, std_in_half_ranges
from relab.health.mend import DOWN, SLOWER, SMALLER_BONUS, UP, at_least
from relab.health.outcome import failed, moved
from relab.health.rule import SHORT, Finding, Missing, rule
from relab.health.view import View
from relab.record.evaluations import Estimate

ON_POLICY = ("ppo", "a2c")
BONUS = ("ent_coef", "entropy_coef", "entropy_coeff")  # names of its coefficient


@rule(
    "entropy-collapse",
    about="policy",
    kind="discrete",
    algos=ON_POLICY,
    severity="warning",
    least=SHORT,
    mends={"algo.ent_coef": UP, "algo.lr": DOWN},
    fallback=(at_least("algo.ent_coef", 0.01, "an entropy bonus that is usual"), SLOWER),
    names=("entropy-punished",),
)
def entropy_collapse(
    view: View, *, share_below: float = 0.05, solved: float = 0.75, low: float = 0.2, per_way: float = 0.4
) -> Finding | None:
    """
    What: entropy is under 5 % of its maximum in the last quarter, while the return has gone less than three quarters of
        the way from random to the highest there is; or, the more of that way is left, under up to 20 % (of two actions,
        one is taken 97 times in 100): under 0.4 times the part of the way that is left.
    Why: exploration ended before the task was solved; the policy can no longer find anything better. Where it ends
        below a random policy it was driven to bad actions: an advantage or a reward of the wrong sign does that.
    Known problems: a solved task looks the same; hence the ceiling, and the run's own best where none is known. Where
        the number of actions is not known, the highest entropy that was logged stands for its maximum.
    Refuted by: the reference run being as low and still improving.
    Try: raise `ent_coef`, lower `lr`.
    """
    share, course = entropy_share(view, guessed=True), view.course(at_least=2)
    last, best = course[-1].mean, max(course, key=lambda e: e.mean)
    way = view.share_of_ceiling(last)
    limit = min(low, per_way * (1 - way)) if way < solved else share_below
    early = share.median(0.25) < limit and way < solved
    if not view.has_choice or not (early or (share.median(0.25) < share_below and not way > solved)):
        return None
    if not view.knows_ceiling and not failed(view) and _kept(view, best, course[-1]):
        return None
    turned = view.verdict.below_random and not view.history.trained_by_relab  # relab's own signs are tested
    return Finding(
        f"policy entropy is {share.median(0.25):.1%} of its maximum (median of the last quarter) at a return of"
        f" {last:.4g}{', below random' if turned else ''}",
        share.median(0.25),
        share.onset(share.values < (limit if early else share_below)),
        [share.evidence(f"< {limit if early else share_below:.2g}")],
        ["look for a turned sign in the advantage, the reward or the loss; then a larger `ent_coef`"] if turned else [],
        in_code=turned,
    )


def _kept(view: View, best: Estimate, last: Estimate, errors: float = 3.0) -> bool:
    """Whether it ends above random (where that is known) and no worse than it ever was."""
    try:
        return view.above_random() and clear(best.mean - last.mean, best, last) < errors
    except Missing:
        return clear(best.mean - last.mean, best, last) < errors


@rule(
    "no-policy-signal",
    about="policy",
    kind="discrete",
    algos=ON_POLICY,
    severity="warning",
    least=SHORT,
    mends={"algo.ent_coef": DOWN, "algo.lr": UP},
    fallback=(SMALLER_BONUS,),
)
def no_policy_signal(
    view: View, *, share_above: float = 0.98, begin: float = 0.2, errors: float = 5.0
) -> Finding | None:
    """
    What: entropy stays above 98 % of its maximum after 20 % of the steps, and evaluations are no better than the first.
    Why: the advantage does not reach the policy, or an entropy bonus drowns it.
    Known problems: a task that needs random actions looks the same.
    Refuted by: the return rising.
    Try: check the advantage's sign and policy/entropy_push; lower `ent_coef`, raise `lr`.
    """
    share = entropy_share(view)
    rest = share.tail(1 - begin)
    sampled = view.evals("sampled", at_least=2) if view.has_evals("sampled") else view.course(at_least=2)
    if not view.has_choice or float(rest.values.min()) <= share_above or view.at_ceiling(sampled[-1].mean):
        return None
    if clear(sampled[-1].mean - sampled[0].mean, sampled[0], sampled[-1]) > errors:
        return None
    push = view.curve("policy/entropy_push").median() if view.has("policy/entropy_push") else 0.0
    why = f"; the entropy bonus pulls {push:.3g} times as hard as the surrogate" if push > 1 else ""
    good = view.well_above_random(sampled[-1])  # the likeliest actions are good ones: advantages do reach the policy
    return Finding(
        f"the policy is still {'near ' if good else ''}uniform: entropy {share.last:.1%} of its maximum{why}",
        share.last,
        int(rest.steps[0]),
        [share.evidence(f"> {share_above:g} after {100 * begin:g} % of the rows")],
        ["lower `ent_coef`: its likeliest actions earn far more than random ones, and a bonus holds it near uniform"]
        if good
        else [],
    )


@rule(
    "std-exceeds-action-range",
    about="policy",
    kind="continuous",
    algos=ON_POLICY,
    severity="warning",
    least=SHORT,
    mends={"algo.ent_coef": DOWN, "algo.log_std_max": DOWN},
    fallback=(SMALLER_BONUS,),
    names=("entropy-bonus-times-12",),
)
def std_exceeds_action_range(
    view: View, *, half_ranges: float = 2.0, growth: float = 1.2, surely: float = 10, alone: float = 3.0
) -> Finding | None:
    """
    What: the Gaussian's standard deviation is above twice half the action range, and has grown since the start. Where
        only the entropy is logged it is exp(H / dim - ln sqrt(2 pi e)). Where the range is not known, it has grown
        threefold and past 2, twice the range to which actions are usually scaled.
    Why: most actions are cut to the ends of the range; entropy, KL and clip share lose their meaning.
    Known problems: a squashed policy may be wide in health.
    Refuted by: policy/saturated_share being small.
    Try: cut `ent_coef` tenfold (0 is usual for continuous actions), lower `log_std_max`.
    """
    try:
        std = std_in_half_ranges(view)
    except Missing:
        return _grown(view, half_ranges, alone)
    if std.last <= half_ranges or std.last <= growth * std.values[0]:
        return None
    coef = view.config.get("algo.ent_coef")
    suggest = [{"key": "algo.ent_coef", "from": coef, "to": coef / 10}] if isinstance(coef, float) and coef > 0 else []
    inside = math.erf(1 / (std.last * math.sqrt(2)))
    return Finding(
        f"the action's standard deviation is {std.last:.3g} half ranges: {1 - inside:.0%} of a centred"
        " policy's actions are cut",
        std.last,
        std.onset(std.values > half_ranges),
        [std.evidence(f"last > {half_ranges:g}")],
        suggest,
        "high" if std.last > surely else "medium",
    )


def _grown(view: View, most: float, growth: float) -> Finding | None:
    """Without a range: a standard deviation against its own start."""
    logged = named(view, "(action_|policy_)?std", rows=3)
    if not logged:
        raise Missing("the policy's standard deviation, or its entropy and the action's range")
    std = logged[0]
    if std.last <= most or std.last <= growth * std.values[0]:
        return None
    return Finding(f"the action's standard deviation grew from {std.values[0]:.3g} to {std.last:.3g}", std.last,
                   std.onset(std.values > growth * std.values[0]),
                   [std.evidence(f"last / first > {growth:g}")])  # fmt: skip


@rule(
    "entropy-runaway",
    about="policy",
    needs=("policy/entropy",),
    algos=ON_POLICY,
    severity="warning",
    least=SHORT,
    explains=("std-exceeds-action-range",),
    mends={"algo.ent_coef": DOWN},
    fallback=(SMALLER_BONUS,),
    names=("entropy-bonus-times-12",),
)
def entropy_runaway(
    view: View, *, least_rise: float = 0.2, least_push: float = 1.0, errors: float = 3.0, alone: float = 0.5
) -> Finding | None:
    """
    What: entropy ends above its start by more than 0.2 nats, under a bonus that pulls harder than the surrogate; where
        that is not logged, it rises clear of noise while the return does not. Where nothing is known of a bonus, a
        Gaussian whose entropy was above 0 rises by more than 0.5 nats, clear of noise.
    Why: the bonus outweighs the advantage; the policy is paid for noise.
    Known problems: early in training a policy may widen for a good reason.
    Refuted by: policy/entropy_push well under 1, and the return rising.
    Try: lower `ent_coef` tenfold, or to 0.
    """
    entropy = view.curve("policy/entropy", rows=6)
    coef = view.curve("optim/ent_coef").last if view.has("optim/ent_coef") else first_setting(view, *BONUS)
    push = view.curve("policy/entropy_push").median() if view.has("policy/entropy_push") else math.nan
    rise = entropy.last - float(entropy.values[0])
    if coef is None:
        return _rises(view, entropy, alone, errors)
    if view.kind == "discrete" or coef <= 0 or rise <= least_rise or push <= least_push:
        return None
    if math.isnan(push) and (entropy.slope().significance < errors or moved(view) > 0):
        return None
    now = view.config.get("algo.ent_coef")
    suggest = [{"key": "algo.ent_coef", "from": now, "to": now / 10}] if isinstance(now, float) else []
    pull = "" if math.isnan(push) else f"; the bonus pulls {push:.3g} times as hard as the surrogate"
    return Finding(f"entropy runs away: {entropy.values[0]:.3g} -> {entropy.last:.3g} nats{pull}", entropy.last,
                   entropy.first_above(float(entropy.values[0]) + least_rise),
                   [entropy.evidence(f"slope / SE = {entropy.slope().significance:.3g}")], suggest, "high")  # fmt: skip


def _rises(view: View, entropy: Curve, least: float, errors: float) -> Finding | None:
    """Without a word of the bonus: a policy that learns becomes narrower, one that widens is paid for it.

    A policy that began narrow on purpose (an entropy below 0) may widen for a good reason.
    """
    if view.kind == "discrete":
        raise Missing("the entropy coefficient, or a Gaussian policy")
    start = float(entropy.values[0])
    if start <= 0 or entropy.last - start <= least or entropy.slope().significance < errors:
        return None
    return Finding(f"the policy widens from start to end: entropy {start:.3g} -> {entropy.last:.3g} nats; likely an"
                   " entropy bonus that is too large", entropy.last, entropy.first_above(start + least),
                   [entropy.evidence(f"last - first > {least:g}")])  # fmt: skip


@rule("entropy-sign-turned", about="evidence", needs=("policy/entropy",), algos=ON_POLICY, severity="warning")
def entropy_sign_turned(view: View) -> Finding | None:
    """
    What: the logged entropy begins at minus ln n for a small number n of actions, rises towards 0 and is never above 0.
    Why: a policy over choices has an entropy between 0 and ln n, and begins near ln n: what is logged is minus that.
        Whoever reads it as an entropy sees a policy open up where it closes.
    Known problems: a Gaussian that begins at just such an entropy and widens looks the same.
    Refuted by: an action that is continuous.
    Try: log the entropy itself; if it enters the loss in the same way, look at the sign of its bonus there.
    """
    n, entropy = view.entropy_turned, view.curve("policy/entropy", rows=3)
    if not n:
        return None
    return Finding(f"entropy goes from {entropy.values[0]:.3g}, which is -ln {n}, to {entropy.last:.3g}: its sign is"
                   " turned", entropy.last, int(entropy.steps[0]), [entropy.evidence(f"begins at -ln {n}")],
                   confidence="high")  # fmt: skip
