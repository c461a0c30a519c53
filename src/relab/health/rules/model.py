"""Does a world model learn, and does the policy exploit it? Latent KL, dreams against the world, capacity."""

from __future__ import annotations

import math
import re

import numpy as np

from relab.health.curve import Curve
from relab.health.foreign import first_setting, named
from relab.health.outcome import rose
from relab.health.probed import probed
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View

MODEL = ("dreamer",)
MOST_BINS = 10_000  # of a categorical head; symexp of 710 is already infinite
FREE = ("kl_free_nats", "free_nats", "free_bits", "kl_free", "free_nats_min", "kl_free_bits")


def latent_kl(view: View, rows: int = 8) -> Curve:
    """KL(posterior, prior) before free bits; tools that call it plain `kl` have it under the policy's name."""
    if view.has("model/kl"):
        return view.curve("model/kl", rows)
    if view.has("policy/kl") and (view.has("model/dyn_loss") or view.has("model/loss")):
        return view.curve("policy/kl", rows)
    raise Missing("model/kl")


def free_bits(view: View) -> float:
    nats = first_setting(view, *FREE)
    if nats is None:
        raise Missing("the free bits (kl_free_nats, free_nats, kl_free)")
    return nats


# ---- The latent state


@rule("dynamics-never-trained", about="critic", algos=MODEL)
def dynamics_never_trained(view: View) -> Finding | None:
    """
    What: the KL between posterior and prior is below the free bits in every row, the first one included.
    Why: below them the KL has no gradient; the predictor of the next state is still its random start, and dreams are
        noise.
    Known problems: later in training a KL below the free bits is healthy (the paper's purpose); hence from the start
        on. A log that begins late may have missed it.
    Refuted by: free bits that are counted per dimension, or passed straight through.
    Try: free bits of 1 nat; log the KL before the clamp.
    """
    kl, free = latent_kl(view), free_bits(view)
    if free <= 0 or float(kl.values.max()) >= free:
        return None
    return Finding(f"the latent KL never exceeds {kl.values.max():.3g}, under {free:g} free nats: no gradient trains"
                   " the dynamics", float(kl.values.max()), int(kl.steps[0]), [kl.evidence(f"< {free:g}")],
                   confidence="high")  # fmt: skip


@rule("posterior-collapsed", about="critic", algos=MODEL)
def posterior_collapsed(
    view: View, *, nats: float = 0.01, of_prior: float = 0.02, entropies_apart: float = 0.03, certain: float = 0.1
) -> Finding | None:
    """
    What: over the last quarter the KL between posterior and prior is under 2 % of the prior's entropy, and the
        posterior's entropy within 3 % of the prior's; without entropies, under 0.01 nats.
    Why: the inferred state holds nothing of the observation that was not predicted; the latent state is noise that the
        model has learned to ignore.
    Known problems: a task without any surprise has a small KL; its prior is then certain (entropy near 0). A run at the
        highest return there is has a state that holds what it needs, and is left alone.
    Refuted by: an observation loss that falls to its floor.
    Try: the usual weights (0.5 to 1 for dynamics, 0.1 for representation) and free bits of 1 nat.
    """
    kl = latent_kl(view)
    level, limit = kl.median(0.25), nats
    if view.has("model/prior_entropy") and view.has("model/post_entropy"):
        prior, post = (view.curve(f"model/{n}_entropy", rows=5).median(0.25) for n in ("prior", "post"))
        if prior < certain or abs(post / prior - 1) > entropies_apart:
            return None
        limit = of_prior * prior
    end = view.standing()
    if level >= limit or (end is not None and view.at_ceiling(end.mean)):
        return None
    return Finding(f"the latent KL is {level:.2g} nats: the posterior says nothing that the prior does not", level,
                   kl.onset(kl.values < limit), [kl.evidence(f"< {limit:.2g}")])  # fmt: skip


# ---- Losses of the model


@rule("model-drifts", about="critic", needs=("model/loss",), algos=MODEL)
def model_drifts(view: View, *, rises: float = 0.2, spreads: float = 3.0, times_first: float = 10) -> Finding | None:
    """
    What: over the last fifth the model's loss is above its median of the fifth before by 20 %, and by three times the
        spread of its rows.
    Why: the policy reaches states that the model does not know; what is dreamed there is wrong.
    Known problems: a negative log-likelihood may be negative, and then has no ratio; its difference is used. New parts
        of a task do this for a while.
    Refuted by: the loss falling again, and the return rising.
    Try: more updates of the model per step, a smaller learning rate of the actor, shorter dreams.
    """
    loss = view.curve("model/loss", rows=20)
    fifth = len(loss) // 5
    late, before = loss.values[-fifth:], loss.values[-2 * fifth : -fifth]
    rise, noise = (
        float(np.median(late) - np.median(before)),
        float(np.diff(loss.values[-3 * fifth :]).std()) / math.sqrt(2),
    )
    if (
        rise <= rises * abs(float(np.median(before)))
        or rise <= spreads * noise
        or float(np.median(late)) > times_first * abs(loss.values[0])
    ):
        return None
    return Finding(f"the model's loss rises from {np.median(before):.3g} to {np.median(late):.3g}", rise,
                   int(loss.steps[-fifth]), [loss.evidence("last fifth against the one before")])  # fmt: skip


@rule("reward-loss-at-floor", about="evidence", needs=("model/reward_loss",), algos=MODEL, footer=True)
def reward_loss_at_floor(view: View, *, nats: float = 0.05) -> Finding | None:
    """
    What: the loss of the predicted reward is within 0.05 nats of the entropy of its two-hot targets, where every step
        pays the same.
    Why: a two-hot target between two bins has an entropy; no model falls below it, and a loss that rises towards it
        follows the mix of rewards, not a model that gets worse.
    Known problems: rewards that vary have a floor that the log does not tell; the rule keeps silent there.
    Refuted by: a loss that is not the cross-entropy of two-hot targets.
    Try: watch the loss minus that entropy.
    """
    loss, floor = view.curve("model/reward_loss", rows=5), two_hot_floor(view)
    if abs(loss.median(0.25) - floor) > nats:
        return None
    return Finding(f"the reward's loss {loss.median(0.25):.3g} is the entropy of its targets ({floor:.3g}): it cannot"
                   " fall further", floor, confidence="medium")  # fmt: skip


def two_hot_floor(view: View) -> float:
    """Entropy of the two-hot target of the one reward that every step pays."""
    low, high = view.spec.get("reward_low"), view.spec.get("reward_high")
    if not isinstance(high, (int, float)) or low != high or not high:
        raise Missing("one reward that every step pays (meta.spec.reward_low = reward_high)")
    bins = reward_bins(view)
    if bins is None:
        raise Missing("the bins of the reward (bins, or b_start and b_end)")
    place = math.copysign(math.log1p(abs(high)), high)
    if first_setting(view, "b_end") is not None:  # bins at symexp(k): the weights are linear in the reward itself
        ends = [math.copysign(math.expm1(abs(b)), b) for b in bins]
        place = float(high)
    else:
        ends = list(bins)
    above = int(np.searchsorted(ends, place))
    if not 0 < above < len(ends):
        raise Missing("a reward inside the bins")
    share = (place - ends[above - 1]) / (ends[above] - ends[above - 1])
    return -sum(p * math.log(p) for p in (share, 1 - share) if p > 0)


def reward_bins(view: View) -> list[float] | None:
    """Places of the bins in symlog units: b_start..b_end in whole steps, else 255 (or so) from -20 to 20."""
    first, last = first_setting(view, "b_start"), first_setting(view, "b_end")
    if first is not None and last is not None:
        return [float(b) for b in np.arange(first, last)] if -MOST_BINS < first < last < MOST_BINS else None
    counts = {v for k, v in view.config.items() if re.search(r"(reward_model|reward_head|rewhead).*bins$", k)}
    number = counts.pop() if len(counts) == 1 else None
    return list(np.linspace(-20, 20, number)) if isinstance(number, int) and 2 < number < MOST_BINS else None


# ---- Dreams against the world


@rule("dream-up-return-down", about="belief", algos=MODEL)
def dream_up_return_down(
    view: View, *, rows: int = 4, errors: float = 3.0, least_fall: float = 0.2, rises: float = 2.0
) -> Finding | None:
    """
    What: what the policy earns in dreams rises over the last half, clear of noise, while what it earns in the world
        falls clear of noise.
    Why: the policy has found where the model is wrong, and learns to live there.
    Known problems: a value that still grows towards its level while the return dips for another reason.
    Refuted by: real returns of the same states agreeing with the dreamed ones.
    Try: shorter dreams, more updates of the model, stop and go back to the best checkpoint.
    """
    names = [n for n in ("model/imag_return", "model/imag_reward") if view.has(n)]
    if not names:
        raise Missing("model/imag_return or model/imag_reward")
    course = view.course(at_least=5)
    best = max(range(len(course)), key=lambda i: course[i].mean)
    fall = course[best].mean - course[-1].mean
    error = math.hypot(*(0.0 if math.isnan(e.se) else e.se for e in (course[best], course[-1])))
    for name in names:
        dream = view.curve(name, rows=8)
        after = Curve(
            name, dream.steps[dream.steps >= course[best].step], dream.values[dream.steps >= course[best].step]
        )
        if len(after) < rows or fall <= errors * error or fall <= least_fall * abs(course[best].mean):
            continue
        if after.slope().significance >= rises and after.last > after.values[0]:
            return Finding(f"{name} rises from {after.values[0]:.3g} to {after.last:.3g} while the return falls from"
                           f" {course[best].mean:.4g} to {course[-1].mean:.4g}", fall, course[best].step,
                           [dream.evidence("rises"), view.evidence(course)])  # fmt: skip
    return None


@rule("foresees-no-better", about="critic", algos=MODEL)
def foresees_no_better(
    view: View, *, share_above: float = 0.9, times_seen: float = 1.5, rounds: int = 2, exact: float = 1e-3
) -> Finding | None:
    """
    What: over the last half of the probe's rounds, held-out episodes foreseen without looking are nine tenths as wrong
        as saying that nothing changes, or more, and half as wrong again as what is reconstructed with looking.
    Why: dreams are made of such steps. A dynamics loss at its floor does not say that they are good: a KL that is
        averaged over the latents lies there from the start.
    Known problems: episodes that hardly change are foreseen by saying so; a policy that is new leads elsewhere.
    Refuted by: returns of dreams and of the world agreeing.
    Try: look at the KL before the clamp, and whether it is summed; more updates of the model.
    """
    error, still, seen = (probed(view, "open_loop", name, rounds) for name in ("value", "still", "seen"))
    level, other = error.median(0.5), still.median(0.5)
    if level < share_above * other or level < times_seen * seen.median(0.5):
        return None
    pinned = " while the dynamics loss stands at its floor" if _at_floor(view, exact) else ""
    return Finding(f"held-out episodes are foreseen with an error of {level:.3g}, {other:.3g} by saying that nothing"
                   f" changes{pinned}", level / max(other, 1e-12), int(error.steps[0]),
                   [error.evidence(f">= {share_above:g} x {other:.3g}"), still.evidence()])  # fmt: skip


def _at_floor(view: View, exact: float) -> bool:
    """Whether the dynamics loss is what the free bits make it; False where that is not known."""
    weight, free = first_setting(view, "dyn_scale"), first_setting(view, *FREE)
    known = view.has("model/dyn_loss") and weight is not None and free is not None
    return known and view.curve("model/dyn_loss").median(0.5) <= (weight or 0) * (free or 0) * (1 + exact)


@rule("dreams-pay-otherwise", about="belief", algos=MODEL)
def dreams_pay_otherwise(
    view: View, *, apart: float = 0.25, errors: float = 4.0, rounds: int = 2, least: float = 1e-6
) -> Finding | None:
    """
    What: over the last half of the probe's rounds, dreams earn a quarter more or less than the world does from the same
        states, each time by four standard errors.
    Why: the policy learns what pays in dreams; where they are wrong it learns to live there.
    Known problems: a reward that is rare is dreamed late.
    Refuted by: the gap closing while the return rises.
    Try: more updates of the model, shorter dreams; look at the predicted continuation.
    """
    gap, real, noise = (probed(view, "dream_vs_world", n, rounds).tail(0.5) for n in ("value", "real_mean", "noise"))
    size = max(float(np.abs(real.values).mean()), least)
    share = float(np.median(gap.values)) / size
    if len(gap) != len(noise) or abs(share) <= apart or np.any(np.abs(gap.values) <= errors * noise.values):
        return None
    return Finding(f"dreams earn {share:+.0%} of what the world pays from the same states", share, int(gap.steps[0]),
                   [gap.evidence(f"over {size:.3g}, > {apart:g}"), real.evidence()])  # fmt: skip


@rule("dreams-end-at-once", about="belief", needs=("model/imag_continue", "return/length"), algos=MODEL)
def dreams_end_at_once(view: View, *, survives: float = 0.05, steps: int = 3, real_steps: float = 20) -> Finding | None:
    """
    What: over the last half a dream of three steps survives with a probability under 5 %, while episodes last 20 steps
        or more.
    Why: the dreamed states are nothing the head for continuation knows; nothing beyond the next step is learned.
    Known problems: a discount that is part of the predicted continuation lowers it a little.
    Refuted by: episodes that really end so soon.
    Try: look at the latent KL first: a model that is not trained dreams of ends.
    """
    goes_on, length = view.curve("model/imag_continue", rows=5), view.curve("return/length", rows=3)
    level = goes_on.median(0.5)
    if level**steps >= survives or length.median(0.5) < real_steps:
        return None
    lasts = length.median(0.5)
    formula = f"to the power of {steps} < {survives:g}"
    return Finding(f"{steps} dreamed steps survive with {level**steps:.2g}, real episodes last {lasts:.0f}",
                   level, None, [goes_on.evidence(formula), length.evidence()])  # fmt: skip


# ---- Capacity, switches, waste


@rule("dormant-units", about="critic", needs=("optim/dormant_share",), algos=())
def dormant_units(view: View, *, share_above: float = 0.2, times_first: float = 2.0) -> Finding | None:
    """
    What: over the last quarter more than a fifth of the units are dormant, and more than twice as many as at first.
    Why: what such units could learn is lost; the network gets smaller while it is trained.
    Known problems: wide networks on small tasks have idle units from the start; hence the growth.
    Refuted by: the return still rising.
    Try: fewer updates per step, layer normalisation, resetting dormant units.
    """
    share = view.curve("optim/dormant_share", rows=5)
    level = share.median(0.25)
    if level <= share_above or level <= times_first * float(np.median(share.head(0.2).values)):
        return None
    return Finding(f"{level:.0%} of the units are dormant ({share.values[0]:.0%} at the start)", level,
                   share.onset(share.values > share_above), [share.evidence(f"> {share_above:g}")])  # fmt: skip


@rule("rank-falls", about="critic", needs=("optim/effective_rank",), algos=())
def rank_falls(view: View, *, left: float = 0.5) -> Finding | None:
    """
    What: over the last quarter the effective rank of the features is under half of its median in the first fifth, and
        the return does not rise.
    Why: states are told apart by fewer and fewer numbers; values of different states move together.
    Known problems: a solved task needs few; hence the return.
    Refuted by: the return rising.
    Try: fewer updates per step, a target network that moves more slowly, resets.
    """
    rank = view.curve("optim/effective_rank", rows=8)
    early, late = float(np.median(rank.head(0.2).values)), rank.median(0.25)
    if early <= 0 or late >= left * early or rose(view):
        return None
    return Finding(f"the effective rank fell from {early:.3g} to {late:.3g}", late / early,
                   rank.first_below(left * early), [rank.evidence(f"late / early < {left:g}")])  # fmt: skip


@rule("padding-waste", about="operation", needs=("data/padding",), algos=())
def padding_waste(view: View, *, share_above: float = 0.4) -> Finding | None:
    """
    What: more than two fifths of the rows in a batch are padding.
    Why: they cost as much as rows that teach something.
    Known problems: early episodes are short; hence the last half.
    Refuted by: padding that is skipped in the computation.
    Try: shorter sequences, or several episodes packed into one.
    """
    share = view.curve("data/padding", rows=3)
    if share.median(0.5) <= share_above:
        return None
    return Finding(f"{share.median(0.5):.0%} of the batch is padding", share.median(0.5), None,
                   [share.evidence(f"> {share_above:g}")], confidence="high")  # fmt: skip


SWITCHES = r"(.*_)?(wm_focus|focus_mode|gated?|ac_paused|paused|ac_frozen|skipped)(_active|_on|_fired|_share)?"


@rule("switch-stuck", about="operation", algos=MODEL)
def switch_stuck(view: View, *, share_above: float = 0.95, rows: int = 20) -> Finding | None:
    """
    What: a logged switch (a focus mode, a gate, a pause) is on, or off, in more than 95 % of at least 20 rows.
    Why: its bar lies outside of the noise it looks at, or below it: it never helps, or it always blocks.
    Known problems: a switch for emergencies is meant to stay off; one that is on is told with more confidence.
    Refuted by: its bar being far from every value on purpose.
    Try: replay the bar on the logged values; set it above their usual noise.
    """
    switches = [c for c in named(view, SWITCHES, rows) if np.isin(c.values, (0, 1)).all()]
    if not switches:
        raise Missing("a logged switch of 0 and 1")
    for switch in switches:
        on = float(switch.values.mean())
        if on > share_above or on == 0:
            position = "always on" if on > share_above else "never on"
            return Finding(f"{switch.name} is {position} ({on:.0%} of {len(switch)} rows)", on, int(switch.steps[0]),
                           [switch.evidence()], confidence="medium" if on > share_above else "low")  # fmt: skip
    return None


@rule("resumed-with-new-actor", about="fault", algos=(), severity="info")
def resumed_with_new_actor(view: View) -> Finding | None:
    """
    What: the run goes on from a checkpoint, and a setting says that actor or critic are made anew (`reset_ac`,
        `reset_actor`, `reset_policy`).
    Why: it is then no resume: what the policy had learned is gone, whatever the run is called.
    Known problems: a policy that is meant to be learned anew in a trained model.
    Refuted by: that being the question of the run.
    Try: set it to false, or call the run a fresh policy.
    """
    if not view.resumed:
        return None
    keys = [k for k, v in view.config.items() if v is True and re.search(r"reset_(ac|actor|critic|policy|agent)s?$", k)]
    if not keys:
        return None
    key = keys[0].removeprefix("foreign.")
    return Finding(f"it goes on from a checkpoint, but `{key}` makes the policy anew", 1.0, 0,
                   [Evidence(keys[0], [0], [1.0], "true")], confidence="high")  # fmt: skip
