"""Does the program do what the equations say? Numbers that are exact in a sound run, whatever it has learned.

Each is computed apart from what it looks at, so that a slip there shows here: returns against their own recursion, the
critic's gradient against its errors, the memory where an episode begins, the smallest probability of a latent. Which
row's action a row follows from is not exact, but clear.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear, silu

from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import layers
from relab.train.algos.dreamer.behaviour import CRITIC, Dream
from relab.train.algos.dreamer.state import State
from relab.train.algos.dreamer.world_model import MODEL, Batch, Course

LEAST = 1e-12
WIDEST = 64  # numbers of an observation that are still regressed on an action


@torch.no_grad()
def of_model(batch: Batch, course: Course) -> dict[str, float]:
    """Of every update: the smallest probability of any class, and what is remembered where an episode begins."""
    least = {"model/prior_least": float(course.prior.min()), "model/post_least": float(course.post.min())}
    return least | of_starts(batch, course.h)


def of_starts(batch: Batch, h: Tensor) -> dict[str, float]:
    """An episode begins without memories: h there is one vector. Its spread over starts, and the action's part in it.

    Nothing where fewer than two episodes begin inside of the batch.
    """
    begins = (batch.last[:-1] > 0) & (batch.valid[1:] > 0)
    first = h[1:][begins]
    if len(first) < 2:
        return {}
    apart = first - first.mean(0)
    spread, usual = float(apart.square().mean()), float(h[batch.valid > 0].var(0, correction=0).mean())
    action = batch.action[1:][begins]
    action = action - action.mean(0)
    rest = apart - action @ (torch.linalg.pinv(action) @ apart)
    return {"model/start_memory": (spread / max(usual, LEAST)) ** 0.5,
            "model/start_action": 1 - float(rest.square().mean()) / max(spread, LEAST)}  # fmt: skip


@torch.no_grad()
def of_actions(batch: Batch) -> dict[str, float]:
    """Share of what is new in a row that follows, along a line, from the action it is told of, and its neighbours are.

    A row is told of the action that led to it, so the first is the largest, unless rows and actions lie a step apart.
    Nothing where observations are images or wide, or few rows lie inside of an episode.
    """
    fresh = batch.fresh
    inside = (fresh[1:-2] + fresh[2:-1] + fresh[3:] == 0) & (batch.valid[3:] > 0)
    if batch.obs.dim() > 3 or batch.obs.shape[-1] > WIDEST or int(inside.sum()) < 4 * batch.obs.shape[-1]:
        return {}
    before = torch.cat((batch.obs[1:-2][inside], torch.ones(int(inside.sum()), 1)), -1)
    project = before @ torch.linalg.pinv(before)
    new = batch.obs[2:-1][inside]
    new = new - project @ new
    actions = {"own": batch.action[2:-1], "before": batch.action[1:-2], "after": batch.action[3:]}
    shares = {name: explained(action[inside] - project @ action[inside], new) for name, action in actions.items()}
    return {f"data/action_{name}": share for name, share in shares.items()}


def explained(cause: Tensor, effect: Tensor) -> float:
    """Share of the variance of [n, D] that is linear in [n, K], mean over those of D that vary; both without a mean."""
    rest = effect - cause @ (torch.linalg.pinv(cause, rtol=1e-4) @ effect)
    size = effect.square().sum(0)
    varies = size > LEAST
    return float((1 - rest.square().sum(0)[varies] / size[varies]).mean()) if bool(varies.any()) else 0.0


@torch.no_grad()
def memory_share(s: State, batch: Batch, course: Course) -> float:
    """Share of what varies in front of the posterior that comes from the memory; the rest is from the observation."""
    model = s.agent.model
    inside = batch.valid > 0
    remembered = linear(course.h[inside], s.agent.params[f"{MODEL}/posterior/weight"]).var(0).sum()
    seen = model.see(batch.obs)[inside].var(0).sum()
    return float(remembered / (remembered + seen).clamp(min=LEAST))


@torch.no_grad()
def of_mixes(s: State, batch: Batch, course: Course) -> dict[str, float]:
    """Share of prior and posterior that is spread evenly, from their probabilities and the softmax they are made of."""
    p, cfg, name = s.agent.params, s.cfg, f"{MODEL}/posterior"
    x = silu(layers.norm(p, name, linear(course.h, p[f"{name}/weight"]) + s.agent.model.see(batch.obs)))
    logits = {"prior": layers.head(p, f"{MODEL}/prior", course.h, 1), "post": layers.out(p, f"{name}/out", x)}
    soft = {side: x.unflatten(-1, (cfg.classes, cfg.stoch)).softmax(-2) for side, x in logits.items()}
    probs = {"prior": course.prior, "post": course.post}
    return {f"model/{side}_mix": mixed(probs[side], soft[side]) for side in probs}


def mixed(probs: Tensor, soft: Tensor) -> float:
    """u of probs = (1 - u) soft + u / classes, by least squares: [..., classes, S] each."""
    towards = 1 / probs.shape[-2] - soft
    return float(((probs - soft) * towards).sum() / towards.square().sum().clamp(min=LEAST))


@torch.no_grad()
def return_residual(s: State, dream: Dream) -> float:
    """Mean distance of R_t from r_{t+1} + γ c_{t+1} ((1 - λ) v_{t+1} + λ R_{t+1}), R_H = v_H, over the mean |R|."""
    lam, after = s.cfg.lam, torch.cat((dream.returns[1:], dream.value[-1:]))
    live = s.cfg.gamma * dream.goes_on[1:]
    due = dream.reward[1:] + live * ((1 - lam) * dream.value[1:] + lam * after)
    return float((dream.returns - due).abs().mean() / dream.returns.abs().mean().clamp(min=LEAST))


# ---- The critic's gradient
#
# Along f, the symlog of the bins: they may reach 5e8, where products of single precision are noise.


def pull(s: State) -> float:
    """What the gradient of the last loss does to the critic's mean of f: that of its output bias along f."""
    return float(s.agent.params.grads[f"{CRITIC}/out/bias"] @ eq.symlog(s.agent.behaviour.support.values))


@torch.no_grad()
def pull_due(s: State, batch: Batch, course: Course, dream: Dream) -> float:
    """What that is where the targets are fixed numbers: the mean error, on dreams and on real rewards."""
    b, cfg = s.agent.behaviour, s.cfg
    valid = batch.valid.flatten().expand(cfg.imagine, -1)
    dreamt = dream.weight[:-1] * errors(s, dream.feature[:-1], dream.logits[:-1], dream.returns)
    total = (dreamt * valid).sum() / valid.sum()
    if cfg.replay_critic:
        feature = course.feature[:-1]
        counted = batch.valid[:-1] * batch.valid[1:] * (1 - batch.last[:-1])
        real = errors(s, feature, b.critic(feature), b.replay_returns(batch, dream))
        total = total + cfg.replay_critic * (real * counted).sum() / counted.sum().clamp(min=1)
    return float(total)


def errors(s: State, feature: Tensor, logits: Tensor, target: Tensor) -> Tensor:
    """How far the critic's mean of f is above its target's, and above its slow copy's as much as that counts."""
    b = s.agent.behaviour
    f = eq.symlog(b.support.values)
    here, error = logits.softmax(-1) @ f, -place(b.support, f, target)
    if s.cfg.slow_scale:
        error = error - s.cfg.slow_scale * place(b.support, f, b.slow_value(feature))
    return error + (1 + s.cfg.slow_scale) * here


def place(support: eq.Support, f: Tensor, x: Tensor) -> Tensor:
    """The mean of f over the two bins beside x."""
    bins, weights = support.neighbours(x)
    return (f[bins] * weights).sum(-1)
