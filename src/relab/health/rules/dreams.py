"""Does a world-model program do what the algorithm says? Marks that are exact in a sound run, and what starves it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from relab.health.curve import Curve
from relab.health.foreign import first_setting
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View

MODEL = ("dreamer",)


def set_numbers(view: View, *names: Iterable[str]) -> list[float]:
    """Settings by the names that tools have for each; Missing where one is not there."""
    values = [first_setting(view, *each) for each in names]
    if None in values:
        raise Missing(", ".join(next(iter(each)) for each in names))
    return [float(x) for x in values if x is not None]


# ---- The latent state


@rule(
    "kl-not-summed",
    about="fault",
    needs=("model/kl", "model/prior_entropy", "model/post_entropy"),
    algos=MODEL,
    severity="warning",
    names=("kl-averaged",),
)
def kl_not_summed(view: View, *, share_below: float = 0.25, least_nats: float = 0.5) -> Finding | None:
    """
    What: over the last half the KL between posterior and prior is under a quarter of the entropy that the posterior has
        less than the prior.
    Why: of a prior that is the mean of its posteriors, the KL is that difference (healthy runs: 0.5 to 0.8 of it). One
        that is a small part of it is a mean over the latents, or lacks some of them; under the free bits it trains
        nothing.
    Known problems: the entropies are summed over the latents; a tool that averages all three alike says nothing here.
    Refuted by: entropies of other latents than the KL's.
    Try: sum the KL over the latent variables, clamp it for every row, then average.
    """
    kl, prior, post = (view.curve(f"model/{name}", rows=5) for name in ("kl", "prior_entropy", "post_entropy"))
    gain = prior.median(0.5) - post.median(0.5)
    if gain < least_nats or kl.median(0.5) >= share_below * gain:
        return None
    return Finding(f"the latent KL is {kl.median(0.5):.3g} nats, but the posterior is surer than the prior by"
                   f" {gain:.3g}: it is not summed over the latents", kl.median(0.5) / gain, int(kl.steps[0]),
                   [kl.evidence(f"< {share_below:g} (prior - posterior entropy)"), prior.evidence(), post.evidence()],
                   confidence="high")  # fmt: skip


@rule("posterior-held-to-prior", about="fault", algos=MODEL, severity="warning", names=("rep-scale-099",))
def posterior_held_to_prior(view: View, *, share_above: float = 0.5) -> Finding | None:
    """
    What: the KL that trains the posterior weighs more than half of the one that trains the prior (`rep_scale` against
        `dyn_scale`; a tenth is usual).
    Why: the posterior is to say what was seen, and the prior to foresee it. Pulled as hard as the prior, the posterior
        says what is easy to foresee instead.
    Known problems: a KL balance of 0.5 was usual before it was found (Hafner et al. 2021).
    Refuted by: the open-loop error being as low as with a tenth.
    Try: `rep_scale` 0.1.
    """
    rep, dyn = set_numbers(view, ("rep_scale", "kl_representation", "rep"), ("dyn_scale", "kl_dynamic", "dyn"))
    if rep <= 0 or rep <= share_above * dyn:
        return None
    return Finding(f"the posterior is pulled to the prior with {rep:g}, the prior to the posterior with {dyn:g}",
                   rep / max(dyn, 1e-12), 0, [Evidence("rep_scale", [0], [rep], f"> {share_above:g} x {dyn:g}")],
                   confidence="high")  # fmt: skip


@rule(
    "latents-not-mixed",
    about="fault",
    needs=("model/post_mix", "model/prior_mix"),
    algos=MODEL,
    severity="warning",
    names=("no-unimix", "unimix-on-prior-only"),
)
def latents_not_mixed(view: View, *, of_setting: float = 0.5) -> Finding | None:
    """
    What: less than half of the share that `unimix` says is spread evenly over the classes of the latents.
    Why: the even share keeps every class possible. Without it the KL has no bound, and a spike of it can undo the
        model; on one side only, the other is pulled to a distribution that it cannot have.
    Known problems: none; the share follows exactly from the probabilities and their softmax.
    Refuted by: `unimix` meant for the policy alone.
    Try: mix prior and posterior, in the loss, in the world and in dreams.
    """
    (mix,) = set_numbers(view, ("unimix",))
    shares = {"posterior": view.curve("model/post_mix", rows=3), "prior": view.curve("model/prior_mix", rows=3)}
    bare = [name for name, curve in shares.items() if curve.median() < of_setting * mix]
    if not bare:
        return None
    least = shares[bare[0]].median()
    return Finding(f"of the {' and the '.join(bare)} {least:.2g} is spread evenly, and unimix says {mix:g}", least,
                   int(shares[bare[0]].steps[0]),
                   [shares[name].evidence(f"< {of_setting:g} x {mix:g}") for name in bare],
                   confidence="high")  # fmt: skip


@rule(
    "posterior-without-memory",
    about="fault",
    needs=("model/post_memory",),
    algos=MODEL,
    severity="warning",
    names=("posterior-without-memory",),
)
def posterior_without_memory(view: View, *, share_below: float = 1e-4) -> Finding | None:
    """
    What: over the last half nothing of what varies in front of the inferred latents comes from the memory.
    Why: the posterior is q(z | h, x). Without h it can only say what one observation shows, and what the memory has
        foreseen is said again in every step.
    Known problems: none; a model that has learned to look past its memory still lets a share through.
    Refuted by: a model whose posterior is meant to see the observation alone.
    Try: give the memory to the posterior beside the encoded observation.
    """
    share = view.curve("model/post_memory", rows=3)
    if share.median(0.5) >= share_below:
        return None
    return Finding(f"{share.median(0.5):.1e} of what the posterior sees comes from the memory", share.median(0.5),
                   int(share.steps[0]), [share.evidence(f"< {share_below:g}")], confidence="high")  # fmt: skip


# ---- Rows in order


@rule(
    "memory-not-reset",
    about="fault",
    needs=("model/start_memory", "model/start_action"),
    algos=MODEL,
    severity="warning",
    names=("no-reset-mask", "last-action-not-reset"),
)
def memory_not_reset(view: View, *, spread_above: float = 1e-3, by_action: float = 0.9) -> Finding | None:
    """
    What: in the rows in which an episode begins the memory is not always the same. Where nine tenths of that follow the
        action that the row is told of, it is the last action that was not cleared.
    Why: what the episode before left behind is taken for the beginning of this one; in the world the memory is cleared,
        so that the policy meets states that the model never learned.
    Known problems: none; the memory there is one vector, but for rounding.
    Refuted by: tasks in which an episode goes on where another ended.
    Try: clear memory, latents and the previous action wherever an episode begins, inside of sequences too.
    """
    spread, action = view.curve("model/start_memory", rows=3), view.curve("model/start_action", rows=3)
    if spread.median() <= spread_above:
        return None
    rest = "the last action is not cleared" if action.median() >= by_action else "the memory is not cleared"
    return Finding(f"where an episode begins the memory varies by {spread.median():.2g} of its usual spread: {rest}",
                   spread.median(), spread.first_above(spread_above),
                   [spread.evidence("must be 0"), action.evidence("share that follows the action")],
                   confidence="high")  # fmt: skip


@rule(
    "actions-misaligned",
    about="fault",
    needs=("data/action_own", "data/action_before", "data/action_after"),
    algos=MODEL,
    severity="warning",
    names=("action-off-by-one",),
)
def actions_misaligned(view: View, *, lead: float = 0.1, rows: int = 3) -> Finding | None:
    """
    What: what is new in a row follows from the action that the row before, or the next row, is told of, more than from
        its own, by a tenth of its variance in the median.
    Why: the model learns rows beside another action than the one that led to them. Reconstructions are good all the
        same; in dreams actions do nothing, or what they did a step ago.
    Known problems: actions that hardly matter in one step, or hardly change, explain little wherever they stand.
    Refuted by: an environment that answers a step late.
    Try: the row that follows an action is told of it; print three rows across an action that changes everything.
    """
    own, before, after = (view.curve(f"data/action_{name}", rows) for name in ("own", "before", "after"))
    most, when = max((before, "early"), (after, "late"), key=lambda pair: pair[0].median())
    if most.median() - own.median() <= lead:
        return None
    return Finding(f"rows are told of their action a step {when}: it explains {most.median():.0%} of what is new there,"
                   f" the row's own {own.median():.0%}", most.median() - own.median(), int(own.steps[0]),
                   [own.evidence(f"+ {lead:g} < the other"), most.evidence()], confidence="high")  # fmt: skip


# ---- Actor and critic


@rule(
    "returns-off-their-recursion",
    about="fault",
    needs=("value/return_residual",),
    algos=MODEL,
    severity="warning",
    names=("lambda-off-by-one",),
)
def returns_off_their_recursion(view: View, *, share_above: float = 1e-3) -> Finding | None:
    """
    What: dreamed returns differ from r_{t+1} + γ c_{t+1} ((1 - λ) v_{t+1} + λ R_{t+1}) by more than a thousandth.
    Why: an index off by one lets a state's value stand in its own target: R_t - v_t says little about the action, and
        the critic teaches itself what it said.
    Known problems: none; it is 0 but for rounding.
    Refuted by: returns that are meant to be others.
    Try: reward 1, no end, value 0 must give the sum of discounts; a spike of v_{t+1} must move R_t by γ (1 - λ), one of
        v_t must not.
    """
    off = view.curve("value/return_residual", rows=3)
    if off.median() <= share_above:
        return None
    return Finding(f"dreamed returns are off their own recursion by {off.median():.2%}", off.median(),
                   off.first_above(share_above), [off.evidence("must be 0")], confidence="high")  # fmt: skip


@rule(
    "critic-follows-targets",
    about="fault",
    needs=("value/pull", "value/pull_due"),
    algos=MODEL,
    severity="warning",
    names=("live-targets",),
)
def critic_follows_targets(view: View, *, apart: float = 0.05, rows: int = 5) -> Finding | None:
    """
    What: the loss pulls the critic's mean by another amount than its errors say, by more than a twentieth of them.
    Why: with fixed targets the gradient on the output bias, along the bins, is the mean error. Where the gradient also
        runs through the targets, they move towards the critic as it moves towards them.
    Known problems: errors that cancel are small sums of large numbers; sizes over the run are compared, not one row.
    Refuted by: a critic's loss that is not the cross-entropy of two-hot targets.
    Try: detach the lambda-returns, and the slow copy's word, before they become targets.
    """
    pull, due = view.curve("value/pull", rows), view.curve("value/pull_due", rows)
    if len(pull) != len(due):
        raise Missing("gradient and errors in the same rows")
    size = float(np.abs(due.values).sum())
    off = float(np.abs(pull.values - due.values).sum()) / max(size, 1e-12)
    if off <= apart:
        return None
    return Finding(f"the critic is pulled by another amount than its errors say: {off:.0%} of them", off,
                   int(pull.steps[0]), [pull.evidence("= value/pull_due"), due.evidence()],
                   confidence="high")  # fmt: skip


@rule("targets-beyond-support", about="fault", algos=(), severity="warning", names=("support-too-small",))
def targets_beyond_support(view: View, *, share_above: float = 0.01, short: float = 0.99) -> Finding | None:
    """
    What: the last bin of the critic (`value/support_top`) is below the largest value that rewards and gamma allow,
        reward / (1 - gamma), by more than a hundredth; or in some row more than a hundredth of its targets lie beyond.
    Why: they are learned as the last bin. The value then says where the bins end, stays there while the policy changes,
        and advantages vanish.
    Known problems: a task whose episodes always end early never comes near the bound.
    Refuted by: the largest possible value being no larger than the last bin.
    Try: bins up to reward / (1 - gamma); check them again whenever gamma or the reward changes.
    """
    if not view.has("value/clamped") and not view.has("value/support_top"):
        raise Missing("value/clamped or value/support_top")
    cut = view.curve("value/clamped", rows=3) if view.has("value/clamped") else None
    most = 0.0 if cut is None else float(cut.values.max())
    top, bound = _last_bin(view), _largest_value(view)
    evidence = [curve.evidence() for name in ("value/mean", "value/support_top") for curve in _curves(view, name)]
    if cut is not None and most > share_above:
        return Finding(f"{most:.0%} of the critic's targets lie beyond its last bin{f', {top:.4g}' * (top < bound)}",
                       most, cut.first_above(share_above), [cut.evidence(f"> {share_above:g}"), *evidence],
                       confidence="high")  # fmt: skip
    if top >= short * bound:
        return None
    return Finding(f"the critic's last bin is {top:.4g}, but its values may reach {bound:.4g}", top / bound, 0,
                   evidence, confidence="medium")  # fmt: skip


def _curves(view: View, name: str) -> list[Curve]:
    return [view.curve(name)] if view.has(name) else []


def _last_bin(view: View) -> float:
    return max((curve.last for curve in _curves(view, "value/support_top")), default=math.inf)


def _largest_value(view: View) -> float:
    """reward / (1 - gamma); -infinite where either is not known."""
    high, gamma = view.spec.get("reward_high"), view.config.get("algo.gamma")
    known = isinstance(high, (int, float)) and math.isfinite(high) and isinstance(gamma, float) and gamma < 1
    return float(high) / (1 - gamma) if known else -math.inf  # type: ignore[operator,arg-type]


@rule(
    "actor-waits",
    about="fault",
    algos=MODEL,
    severity="warning",
    names=("focus-always-on",),
    explains=("switch-stuck",),
)
def actor_waits(view: View, *, share_below: float = 0.05, least_updates: int = 100) -> Finding | None:
    """
    What: over the last half the actor learns in under a twentieth of the updates that are its turn; or its loss is
        exactly 0 in every row.
    Why: a gate that is always shut, or a count that never comes round, leaves the policy as it began while the model
        learns on.
    Known problems: a run of the world model alone (`mode=model`) is meant to be so, and is left out.
    Refuted by: the actor being frozen on purpose.
    Try: set the gate's bar above the usual noise of what it looks at; log how often the actor learned.
    """
    if view.config.get("algo.mode") == "model":
        raise Missing("a run in which the actor learns")
    if not view.has("optim/actor_updates"):
        return _actor_loss_is_zero(view)
    own, every = view.curve("optim/actor_updates", rows=4), view.curve("data/updates", rows=4)
    turns = (every.tail(0.5).last - every.tail(0.5).values[0]) / max(first_setting(view, "model_updates") or 1.0, 1.0)
    learned = own.tail(0.5).last - own.tail(0.5).values[0]
    warm = first_setting(view, "warmup_updates") or 0.0
    if turns < least_updates or every.tail(0.5).values[0] < warm or learned >= share_below * turns:
        return None
    shut = view.curve("model/focus").median(0.5) if view.has("model/focus") else 0.0
    return Finding(f"the actor learned in {learned:,.0f} of its {turns:,.0f} updates (the focus was on in {shut:.0%})",
                   learned / turns, int(own.steps[0]), [own.evidence("stands still"), every.evidence()],
                   confidence="high")  # fmt: skip


def _actor_loss_is_zero(view: View, rows: int = 10) -> Finding | None:
    loss = view.curve("policy/actor_loss", rows)
    if np.any(loss.values != 0):
        return None
    return Finding(f"the actor's loss is exactly 0 in all {len(loss)} rows: it does not learn", 0.0, int(loss.steps[0]),
                   [loss.evidence("= 0")], confidence="high", severity="info")  # fmt: skip


@rule("focus-out-of-reach", about="operation", needs=("model/focus", "model/surprise_total"), algos=MODEL,
      names=("focus-never-on",))  # fmt: skip
def focus_out_of_reach(view: View, *, rows: int = 5, share_below: float = 0.5) -> Finding | None:
    """
    What: `focus` is set, it was never on, and the largest surprise of any row is under half of its bar.
    Why: the bar lies outside of what it looks at; the run is the one without it, under another name.
    Known problems: a switch for emergencies is meant to stay off.
    Refuted by: the bar being far from every value on purpose.
    Try: the bar between the usual noise of the surprise and its peaks.
    """
    bar = view.config.get("algo.focus")
    if not isinstance(bar, (int, float)) or isinstance(bar, bool):
        raise Missing("a bar of the focus (algo.focus)")
    focus, surprise = view.curve("model/focus", rows), view.curve("model/surprise_total", rows)
    most = float(surprise.values.max())
    if focus.values.any() or most >= share_below * bar:
        return None
    return Finding(f"the focus was never on: its bar is {bar:g}, the largest surprise {most:.3g}", most / bar,
                   int(focus.steps[0]), [surprise.evidence(f"< {share_below:g} x {bar:g}"), focus.evidence("= 0")],
                   confidence="high")  # fmt: skip


# ---- Data


@rule(
    "replay-starved",
    about="fault",
    needs=("data/replay_ratio",),
    algos=MODEL,
    severity="warning",
    names=("starved-collector",),
)
def replay_starved(view: View, *, times: float = 1.5, waits: float = 0.5) -> Finding | None:
    """
    What: over the last half each row that reached the replay was learned from more than one and a half times as often
        as the settings say (`updates_per_step` * `sequences` * `length`); or the learner waited for half of its steps.
    Why: the worlds bring less than the learner uses up; it learns the same rows again and again, and fits them.
    Known problems: a collector of its own process may fall behind for a moment; hence the median.
    Refuted by: a replay ratio that is scheduled.
    Try: more worlds, or fewer updates for each step; where a collector runs beside, look at what it waits for.
    """
    if view.has("data/starved") and view.curve("data/starved", rows=4).median(0.5) > waits:
        waited = view.curve("data/starved")
        return Finding(f"the learner waited for {waited.median(0.5):.0%} of the steps that it learned from",
                       waited.median(0.5), waited.first_above(waits), [waited.evidence(f"> {waits:g}")],
                       severity="info")  # fmt: skip
    ratio = view.curve("data/replay_ratio", rows=4)
    per_step, sequences, length = set_numbers(view, ("updates_per_step",), ("sequences",), ("length",))
    due, level = per_step * sequences * length, ratio.median(0.5)
    if due <= 0 or level <= times * due:
        return None
    return Finding(f"each row is learned from {level:.3g} times, and the settings make that {due:.3g}: the collector is"
                   " behind", level / due, ratio.first_above(times * due), [ratio.evidence(f"> {times:g} x {due:.3g}")],
                   confidence="high")  # fmt: skip
