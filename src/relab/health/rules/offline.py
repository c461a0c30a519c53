"""Does a method that imitates the better part of a dataset do so? Weights, values against the data, support (D, F)."""

from __future__ import annotations

import contextlib
import math

import numpy as np

from relab.base.numbers import to_int
from relab.health.curve import Curve
from relab.health.foreign import first_setting, named
from relab.health.mend import UP
from relab.health.outcome import rose
from relab.health.rule import Finding, Missing, rule
from relab.health.view import View, episodes

OFFLINE = ("awr", "iql")
SHARPEST, SOFTEST = 1e-100, 1e100  # temperatures whose squares are numbers


def weight_ess(view: View, rows: int = 5) -> Curve:
    """The effective share of the rows: as logged, else 1 / (1 + (std / mean)²) of the weights."""
    if view.has("policy/weight_ess"):
        return view.curve("policy/weight_ess", rows)
    if not (view.has("policy/weight_mean") and view.has("policy/weight_std")):
        raise Missing("policy/weight_ess, or policy/weight_mean and policy/weight_std")
    mean, std = view.curve("policy/weight_mean", rows), view.curve("policy/weight_std", rows)
    n = min(len(mean), len(std))
    ratio = std.values[-n:] / np.maximum(mean.values[-n:], 1e-300)
    return Curve("1 / (1 + (policy/weight_std / policy/weight_mean)²)", mean.steps[-n:], 1 / (1 + ratio**2))


# ---- Weights


@rule("weights-at-cap", about="policy", needs=("policy/weight_capped",), algos=OFFLINE,
      names=("every-weight-at-the-cap",))  # fmt: skip
def weights_at_cap(view: View, *, share_above: float = 0.1, nearly_all: float = 0.93) -> Finding | None:
    """
    What: over the last half more than a tenth of the rows have the largest weight there is; where these rows are
        nearly all of the effective share, so that the other weights do not count, it is a warning.
    Why: among them nothing tells better from best; the exponential has become a switch at one advantage.
    Known problems: standardised advantages at beta 0.3 and a cap of 20 reach 18 % and may still learn.
    Refuted by: a run with a larger beta that learns no better.
    Try: a larger beta (a smaller inverse temperature), or a higher cap.
    """
    share, shown = view.curve("policy/weight_capped", rows=5), []
    level, switch = share.median(0.5), 0.0
    with contextlib.suppress(Missing):
        ess = weight_ess(view)  # of weights that are 0 or the cap it is the share of the cap
        n = min(len(share), len(ess))
        switch = Curve("", ess.steps[-n:], share.values[-n:] / np.maximum(ess.values[-n:], 1e-300)).median(0.5)
        shown = [ess.evidence()]
    if level <= share_above and switch < nearly_all:
        return None
    others = ", and the other weights hardly count" if switch >= nearly_all else ""
    return Finding(f"{level:.0%} of the rows have the largest weight there is{others}", level,
                   share.onset(share.values > min(share_above, level / 2)),
                   [share.evidence(f"> {share_above:g}"), *shown], severity="warning" if others else None,
                   confidence="high")  # fmt: skip


@rule("few-rows-decide", about="policy", algos=OFFLINE)
def few_rows_decide(view: View, *, share_below: float = 0.1) -> Finding | None:
    """
    What: over the last half the effective share of the rows, (sum w)² / (n sum w²), is under a tenth.
    Why: a few rows of the batch make the gradient; their noise is learned.
    Known problems: a dataset in which one row of twenty is worth imitating looks the same, and rightly.
    Refuted by: the same share with a larger batch that learns.
    Try: a larger beta, a cap on the weights (20 for AWR, 100 for IQL), larger batches.
    """
    ess = weight_ess(view)
    if ess.median(0.5) >= share_below:
        return None
    return Finding(f"{ess.median(0.5):.1%} of the rows decide: the weights differ too much", ess.median(0.5),
                   ess.onset(ess.values < share_below), [ess.evidence(f"< {share_below:g}")],
                   confidence="high")  # fmt: skip


@rule("weights-uniform", about="policy", algos=OFFLINE)
def weights_uniform(view: View, *, share_above: float = 0.99) -> Finding | None:
    """
    What: over the last half the effective share of the rows is above 99 %: all weights are alike.
    Why: the policy imitates the whole dataset, good and bad actions alike; the advantage has no say.
    Known problems: a dataset whose actions are all equally good has no advantages to weigh.
    Refuted by: plain imitation of this dataset being as good.
    Try: a smaller beta (a larger inverse temperature), about the advantages' standard deviation.
    """
    ess = weight_ess(view)
    if ess.median(0.5) <= share_above:
        return None
    spread = f"; the advantages' standard deviation is {view.curve('data/advantage_std').median(0.5):.3g}" if view.has(
        "data/advantage_std") else ""  # fmt: skip
    return Finding(f"all weights are alike (effective share {ess.median(0.5):.2%}): this is imitation{spread}",
                   ess.median(0.5), ess.onset(ess.values > share_above), [ess.evidence(f"> {share_above:g}")],
                   confidence="high")  # fmt: skip


@rule("weights-say-nothing", about="evidence", needs=("policy/weight_mean",), algos=OFFLINE, footer=True)
def weights_say_nothing(view: View, *, within: float = 0.1) -> Finding | None:
    """
    What: advantages are standardised before they are weighed, and the mean weight is within a tenth of what a standard
        normal gives, exp(1 / (2 beta²)) with the cap taken into account.
    Why: mean and spread of the advantages cannot reach the policy then; whoever explains a result by them, or by the
        mean weight, explains nothing. What matters is the order of the advantages, and their noise.
    Known problems: none; it is a limit of what can be concluded, told in the footer.
    Refuted by: `norm_adv` being off.
    Try: compare rank correlations of the advantages with true ones, or their signal against their noise.
    """
    beta, cap = view.number("algo.beta") if "algo.beta" in view.config else first_setting(view, "beta"), _cap(view)
    standardised = [v for k, v in view.config.items() if k.rpartition(".")[2] in ("norm_adv", "normalize_advantage")]
    if not standardised or beta is None or not SOFTEST >= beta >= SHARPEST:
        raise Missing("norm_adv and beta")
    if standardised[0] is not True:
        return None
    mean, expected = view.curve("policy/weight_mean", rows=5).median(0.5), normal_weight(beta, cap)
    if abs(mean / expected - 1) > within:
        return None
    return Finding(f"the mean weight {mean:.3g} is that of any standardised advantages at beta {beta:g}"
                   f" ({expected:.3g})", mean, confidence="high")  # fmt: skip


def _cap(view: View) -> float:
    cap = first_setting(view, "weight_cap", "w_max", "max_weight", "exp_adv_max", "weight_clip", "cap")
    return math.inf if cap is None or cap <= 0 else cap


def normal_weight(beta: float, cap: float) -> float:
    """E min(exp(z / beta), cap) of a standard normal z.

    >>> round(normal_weight(1.0, 20.0), 3), round(normal_weight(0.5, 20.0), 2)
    (1.638, 3.62)
    """
    if math.isinf(cap):
        return math.exp(min(0.5 / beta**2, 700.0))
    edge = beta * math.log(cap)
    free = math.exp(min(0.5 / beta**2, 700.0)) * _below(edge - 1 / beta)
    return free + cap * (1 - _below(edge))


def _below(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


# ---- Advantages and values


@rule("advantage-one-sided", about="belief", needs=("data/advantage_positive",), algos=OFFLINE)
def advantage_one_sided(view: View, *, least: float = 0.1, most: float = 0.9) -> Finding | None:
    """
    What: over the last half fewer than a tenth, or more than nine tenths, of the advantages are above 0.
    Why: an advantage compares an action with what the data's policy does; the baseline is not that policy's value.
    Known problems: an expectile near 1 puts the value above nearly all actions on purpose.
    Refuted by: advantages being centred before they are used.
    Try: fit the baseline on the same data; lower the expectile.
    """
    share = view.curve("data/advantage_positive", rows=5)
    level = share.median(0.5)
    if least <= level <= most:
        return None
    shown = share.evidence(f"outside {least:g} to {most:g}")
    return Finding(f"{level:.0%} of the advantages are above 0", level, None, [shown])


@rule("value-above-q", about="belief", needs=("data/advantage_mean", "data/advantage_std"), algos=("iql",))
def value_above_q(view: View, *, deviations: float = 2.0) -> Finding | None:
    """
    What: over the last half V lies above Q by more than two standard deviations of their difference, on average.
    Why: V is an expectile of Q over the data's actions and cannot be above all of them; it has lost touch with Q.
    Known problems: expectiles of 0.99 and more lie two standard deviations up by themselves.
    Refuted by: a target Q that lags behind a rising V, for a while.
    Try: a lower expectile (0.7 to 0.9), a lower learning rate, terminated states not bootstrapped.
    """
    mean, std = view.curve("data/advantage_mean", rows=5), view.curve("data/advantage_std", rows=5)
    gap = -mean.median(0.5) / max(std.median(0.5), 1e-12)
    if gap <= deviations:
        return None
    return Finding(f"V lies {gap:.2g} standard deviations above Q", gap, None,
                   [mean.evidence(f"- mean / std > {deviations:g}"), std.evidence()])  # fmt: skip


@rule("value-above-dataset", about="belief", needs=("data/dataset_return_max",), algos=OFFLINE)
def value_above_dataset(view: View, *, times_best: float = 1.5) -> Finding | None:
    """
    What: over the last quarter the mean value of the data's states and actions is above the best episode of the
        dataset, and above its reward per step for ever, by half.
    Why: no state of the data was ever worth that; the critic believes in its own errors.
    Known problems: rewards that are scaled for learning but not in the dataset's returns.
    Refuted by: rewards that reach the learner in such a scale.
    Try: bootstrap no terminated states, gamma below 1, the smaller of two critics.
    """
    name = next((n for n in ("value/q_mean", "value/mean") if view.has(n)), "value/q_mean")
    value, best = view.curve(name, rows=5), view.curve("data/dataset_return_max").last
    bound = max(best, 0.0)
    level = value.median(0.25)
    if level <= times_best * bound + 1e-9 or best <= 0:
        return None
    return Finding(f"the critic expects {level:.4g} of the data's states, whose best episode earned {best:.4g}", level,
                   value.onset(value.values > times_best * bound), [value.evidence(f"> {times_best:g} x {best:.4g}")],
                   confidence="high")  # fmt: skip


# ---- The data and its support


@rule("reward-hardly-there", about="fault", needs=("data/reward_nonzero",), algos=OFFLINE)
def reward_hardly_there(view: View, *, share_below: float = 0.01) -> Finding | None:
    """
    What: fewer than one row in a hundred that was learned from has a reward.
    Why: a critic sees so few of them that it cannot tell good actions from bad ones.
    Known problems: long episodes with one reward at the end are so by nature; n-step returns then help.
    Refuted by: advantages that agree with ground truth.
    Try: more data near the reward, n-step returns, returns instead of bootstraps.
    """
    share = view.curve("data/reward_nonzero", rows=3)
    if share.median() >= share_below:
        return None
    shown = share.evidence(f"< {share_below:g}")
    return Finding(f"{share.median():.2%} of the rows have a reward", share.median(), None, [shown])


@rule("policy-left-the-data", about="policy", needs=("policy/data_logprob",), algos=OFFLINE)
def policy_left_the_data(view: View, *, nats: float = 1.0, errors: float = 3.0) -> Finding | None:
    """
    What: the policy gives the dataset's actions a log-probability lower by more than 1 nat than at the start, falling
        over the last half, and the return does not rise.
    Why: values of actions that the data does not hold were never checked against anything.
    Known problems: a narrow Gaussian gives every action but its mean a low density. A dataset of mostly bad actions
        must be left to do better; hence the return.
    Refuted by: the evaluations rising with it.
    Try: a larger beta, a floor on the standard deviation, a weight on imitation.
    """
    logp = view.curve("policy/data_logprob", rows=8)
    fall = float(np.median(logp.head(0.1).values)) - logp.median(0.25)
    if fall <= nats or logp.tail(0.5).slope().significance > -errors or rose(view):
        return None
    return Finding(f"the data's actions became e^{fall:.2g} times less likely under the policy", fall,
                   logp.first_below(float(logp.values[0]) - nats),
                   [logp.evidence(f"falls by > {nats:g} nat")])  # fmt: skip


@rule("evaluations-swing", about="return", algos=OFFLINE)
def evaluations_swing(view: View, *, errors: float = 3.0, of_level: float = 0.1, changes: int = 3) -> Finding | None:
    """
    What: over the second half, evaluations of a policy learned from a fixed dataset both rise and fall, from one to the
        next, by more than three standard errors of their difference and a tenth of their level.
    Why: the data does not change, so that the policy should settle; which checkpoint is taken decides the result.
    Known problems: few episodes per evaluation make the standard error itself uncertain.
    Refuted by: a learning rate that still falls.
    Try: quote the mean of the last evaluations; lower the learning rate, average the weights.
    """
    curve = view.curve("eval/return_det", rows=6)
    late, error = curve.tail(0.5), _errors(view)
    change, least = np.diff(late.values), max(errors * math.sqrt(2) * error, of_level * abs(late.median()))
    if len(change) < changes or not (change > least).any() or not (change < -least).any():
        return None
    swing = float(np.abs(change).max())
    return Finding(f"the last {len(late)} evaluations swing by up to {swing:.3g}, each is known to {error:.2g}", swing,
                   None, [late.evidence(f"rises and falls by > {errors:g} SE")])  # fmt: skip


def _errors(view: View) -> float:
    """The usual standard error of one evaluation."""
    if view.has_evals(view.by):
        known = [e.se for e in view.evals() if not math.isnan(e.se)]
        if known:
            return float(np.median(known))
    std, n = view.curve("eval/std_det", rows=3), view.curve("eval/episodes", rows=1)
    return std.median(0.5) / math.sqrt(max(n.last, 1.0))


@rule("evaluation-length-biased", about="evidence", algos=(), names=("episodes-begun-again",))
def evaluation_length_biased(
    view: View, *, rows: int = 4, least: float = 5, counts_differ: float = 0.03, steps_alike: float = 0.3
) -> Finding | None:
    """
    What: evaluations count different numbers of episodes, and episodes times mean length is the same in all of them.
    Why: they run for a fixed number of steps and begin anew after each end: short episodes are counted more often.
        Where success ends an episode, the success rate is too high.
    Known problems: episodes of one length are not biased; then the counts are equal too.
    Refuted by: a number of episodes that was varied on purpose.
    Try: count the first episode of each environment, or a fixed number of episodes.
    """
    for count, length in _counted(view, rows):
        n = min(len(count), len(length))
        number, product = count.values[-n:], count.values[-n:] * length.values[-n:]
        if n < rows or number.mean() < least or (number == 0).any():
            continue
        differ = number.std() / number.mean()
        if differ > counts_differ and product.std() < steps_alike * differ * product.mean():
            both = Curve(f"{count.name} x {length.name}", count.steps[-n:], product)
            return Finding(f"evaluations count {number.min():.0f} to {number.max():.0f} episodes, the same number of"
                           " steps in all", float(number.max() / number.min()), int(count.steps[0]),
                           [count.evidence(), both.evidence("constant")])  # fmt: skip
    if not _counted(view, rows):
        raise Missing("eval/episodes with the episodes' length")
    return None


@rule("episodes-counted-beyond-first", about="evidence", algos=(), severity="warning", names=("episodes-begun-again",))
def episodes_counted_beyond_first(view: View, *, rows: int = 3) -> Finding | None:
    """
    What: each evaluation counts more episodes than `eval.episodes` says.
    Why: worlds that end early begin anew and are counted again, so that short episodes weigh more. Where success ends
        an episode, the success rate is too high.
    Known problems: only relab's own runs say how many episodes they are to play.
    Refuted by: evaluations that were added by hand.
    Try: count the first episode of each world and no other.
    """
    limit, agents = to_int(view.config.get("eval.episodes")), to_int(view.spec.get("agents"))
    first = (limit or 0) * (agents or 0)
    if not view.history.trained_by_relab or first < 1:
        raise Missing("relab's own evaluations with their number of episodes")
    played = [(to_int(row.get("step")) or 0, len(episodes(row))) for row in view.history.evals]
    if len(played) < rows or min(n for _, n in played) <= first:
        return None
    most = max(n for _, n in played)
    return Finding(f"evaluations count up to {most} episodes where {first} first ones were asked for",
                   most / first, played[0][0], confidence="high")  # fmt: skip


def _counted(view: View, rows: int) -> list[tuple[Curve, Curve]]:
    counts = [view.curve("eval/episodes", rows)] if view.has("eval/episodes") and view.rows >= rows else []
    counts = [c for c in counts if len(c) >= rows] + named(view, r"(eval_)?(num|n)_(eval_)?episodes", rows)
    lengths = [view.curve(n, rows) for n in ("eval/length_det", "eval/length_sampled") if view.has(n)]
    return [(count, length) for count in counts for length in lengths]


# ---- Whose data, whose expectile, whose steps


@rule("batch-of-another-policy", about="fault", needs=("data/behaviour_gap",), algos=(), severity="warning",
      names=("acted-by-another",))  # fmt: skip
def batch_of_another_policy(view: View, *, nats: float = 0.1) -> Finding | None:
    """
    What: a new batch's actions were drawn by another policy than the one that learns: on average they are less likely
        under it by more than a tenth of a nat.
    Why: advantages say how good an action was for who acted; what is learned from them is then not about this policy.
    Known problems: observations that are scaled by a running mean change a little between acting and learning.
    Refuted by: another policy's batch being meant (`fixed_from`), as in learning from a fixed data set.
    Try: collect with the policy that learns; check which weights act after a start or a resume.
    """
    gap = view.curve("data/behaviour_gap", rows=1)
    wanted = view.config.get("algo.fixed_from") is not None
    if gap.median() <= nats or wanted:
        return None
    return Finding(f"the batch's actions are e^{gap.median():.2g} times less likely under the policy that learns than"
                   " under the one that acted", gap.median(), gap.onset(gap.values > nats),
                   [gap.evidence(f"> {nats:g} nat")], confidence="high")  # fmt: skip


@rule("expectile-not-as-set", about="fault", needs=("value/expectile",), algos=("iql",), severity="warning",
      names=("expectile-of-a-half",))  # fmt: skip
def expectile_not_as_set(view: View, *, off_by: float = 0.15) -> Finding | None:
    """
    What: V is another expectile of Q than `expectile` says: E[(V - Q)+] / E|Q - V| over the rows that both were fitted
        to is off by more than 0.15.
    Why: where the expectile loss has its least value this share is the expectile; the loss that ran is another one.
    Known problems: a fit that was stopped early is not at its least value, and Q goes on moving below V.
    Refuted by: a longer fit (`patience`, `fit_epochs`) that comes to the set value.
    Try: check which side of Q - V the loss weighs by `expectile`, and that the setting reaches it.
    """
    held, tau = view.curve("value/expectile", rows=1), first_setting(view, "expectile")
    if tau is None:
        raise Missing("the setting expectile")
    if abs(held.last - tau) <= off_by:
        return None
    return Finding(f"V is the expectile {held.last:.2f} of Q, not {tau:g} as set", held.last, None,
                   [held.evidence(f"not within {off_by:g} of algo.expectile = {tau:g}")],
                   confidence="high")  # fmt: skip


@rule("advantages-all-noise", about="numbers", needs=("data/advantage_snr", "data/advantage_rank"), algos=("finetune",),
      mends={"algo.mc_samples": UP, "algo.cut": UP})  # fmt: skip
def advantages_all_noise(view: View, *, ratio: float = 0.1, rank: float = 0.1, bias: float = 1.0) -> Finding | None:
    """
    What: in more than half of the rows the advantages of re-rollouts are noise: of their variance less than a tenth
        of the noise's is signal, and one half of the samples ranks the states as the other does by less than 0.1. Or
        what was cut off can be worth more than the advantages' own spread.
    Why: the update then prefers actions by chance; standardised advantages look the same whether they are noise or not.
    Known problems: with few states both numbers are noise themselves; the bound of the bias is the worst case.
    Refuted by: the same states with more samples ranking as before.
    Try: more samples (`mc_samples`), `common_noise=true`, later cuts (`cut`), or a smaller `gamma`.
    """
    snr, ranks = view.curve("data/advantage_snr", rows=1), view.curve("data/advantage_rank", rows=1)
    level, order = snr.median(), ranks.median()
    if level < ratio and order < rank:
        return Finding(f"the advantages are noise: signal to noise {level:.2g}, rank correlation of two halves"
                       f" {order:.2g} (medians of {len(snr)} rows)", level, snr.onset(snr.values < ratio),
                       [snr.evidence(f"< {ratio:g}"), ranks.evidence(f"< {rank:g}")])  # fmt: skip
    if not (view.has("data/rerun_bias") and view.has("data/advantage_std")):
        return None
    bound, spread = view.curve("data/rerun_bias", rows=1), view.curve("data/advantage_std", rows=1)
    times = bound.median() / spread.median() if spread.median() > 0 else 0.0
    if times <= bias:
        return None
    return Finding(f"what re-rollouts were cut off from can be worth {times:.2g} times the standard deviation of their"
                   " advantages", times, None, [bound.evidence(f"> {bias:g} x data/advantage_std"), spread.evidence()],
                   confidence="low")  # fmt: skip


@rule("rerollouts-left-out", about="evidence", needs=("data/sim_steps", "data/env_steps", "data/transitions"),
      algos=(), severity="warning", names=("rerollouts-for-free",))  # fmt: skip
def rerollouts_left_out(view: View) -> Finding | None:
    """
    What: fewer steps of the simulator are counted than the re-rollouts alone must have taken: each state is copied
        2 x `mc_samples` times, and each copy takes one step at least.
    Why: sample efficiency is quoted on an axis that leaves out most of what was simulated.
    Known problems: none; it is arithmetic on the run's own counts.
    Refuted by: copies that were shared by several states.
    Try: add the steps of re-rollouts to data/sim_steps, and compare by it (`relab compare --axis sim_steps`).
    """
    if view.config.get("algo.advantage") != "rerollout":
        return None
    sim, env, rows = (view.curve(f"data/{name}", rows=1) for name in ("sim_steps", "env_steps", "transitions"))
    played = view.curve("data/eval_steps").last if view.has("data/eval_steps") else 0.0
    rounds = 1 if view.config.get("algo.data") == "fixed" else len(rows)
    least = 2 * view.number("algo.mc_samples") * float(rows.values[:rounds].sum())
    besides = sim.last - env.last - played
    if besides >= least:
        return None
    return Finding(f"{besides:,.0f} steps are counted besides batches and evaluations, but re-rollouts took at least"
                   f" {least:,.0f}", besides / least, None, [sim.evidence(), env.evidence(), rows.evidence()],
                   confidence="high")  # fmt: skip
