"""What does PPO minimise? The clipped surrogate (Schulman et al. 2017), value and entropy terms, per row.

    r = pi(a|s) / pi_old(a|s)
    L = -min(r A, clip(r, 1-eps, 1+eps) A) + value_coef * (V - G)² / 2 - ent_coef * H

`ppo` is the readable form, differentiated by torch. `ppo_gaussian_grad` and `ppo_categorical_grad` are the same loss
with its derivative written out, in one pass over the rows; tests hold them against each other.

All report sums over rows in the order of STATS, and the greatest ratio.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.train.kernels.jit import njit
from relab.train.nets.heads import LOG_2PI, Head

STATS = (
    *("policy_loss", "value_loss", "entropy", "kl", "kl_k1", "clipped", "value_clipped", "rows"),
    *("pg_push", "ent_push"),
)


class Batch(NamedTuple):
    """What the learner sees of the rows it learns from, as arrays with a row per sample (time x row for sequences)."""

    action: np.ndarray
    logp: np.ndarray  # ln pi_old(a|s) when the action was drawn
    adv: np.ndarray
    target: np.ndarray  # what the value is to become
    v_old: np.ndarray
    mask: np.ndarray  # 0 for a dead or unused agent


class Coefs(NamedTuple):
    """The numbers of the loss; `scale` is 1 / rows of the whole minibatch."""

    clip: float
    clip_value: float  # inf: not clipped
    value_coef: float
    ent_coef: float
    scale: float


def ppo(
    head: Head, out: Tensor, log_std: Tensor | None, v: Tensor, rows: dict[str, Tensor], c: Coefs
) -> tuple[Tensor, Tensor, float]:
    """(loss, sums in the order of STATS, max ratio) for rows with keys action, logp, adv, target, v_old, mask."""
    mask, adv = rows["mask"], rows["adv"]
    log_ratio = head.log_prob(out, log_std, rows["action"]) - rows["logp"]
    log_ratio = log_ratio.masked_fill(
        mask == 0, 0.0
    )  # what a dead agent holds may be anything: exp of it is not 0 * inf
    ratio, entropy = log_ratio.exp(), head.entropy(out, log_std)
    policy = -torch.minimum(ratio * adv, ratio.clamp(1 - c.clip, 1 + c.clip) * adv)
    change = (v - rows["v_old"]).clamp(-c.clip_value, c.clip_value)
    errors = (v - rows["target"]).square(), (rows["v_old"] + change - rows["target"]).square()
    value = 0.5 * torch.maximum(*errors)
    loss = c.scale * (mask * (policy + c.value_coef * value - c.ent_coef * entropy)).sum()
    with torch.no_grad():
        outside = (ratio - 1).abs() > c.clip
        v_outside = (v - rows["v_old"]).abs() > c.clip_value
        k3 = ratio - 1 - log_ratio
        columns = (policy, value, entropy, k3, -log_ratio, outside, v_outside, torch.ones_like(ratio))
        sums = [float((mask * column).sum(dtype=torch.float64)) for column in columns]
        pushes = gradient_pushes(head, out, rows, ratio, c)
        ratio_max = float((ratio * mask).max())
    return loss, torch.tensor([*sums, *pushes], dtype=torch.float64), ratio_max


def gradient_pushes(head: Head, out: Tensor, rows: dict[str, Tensor], ratio: Tensor, c: Coefs) -> list[float]:
    """Squared size, over rows, of the surrogate's and of the entropy bonus' gradient on the logits.

    (0, 0) for a Gaussian: its tug of war is on log_std alone and is read off the finished gradient.
    """
    pg = ent = 0.0
    g, mask = surrogate_slope(ratio, rows["adv"], c.clip) * rows["mask"], rows["mask"].unsqueeze(-1)
    for i, block in enumerate(out.split(head.sizes, -1) if head.sizes else ()):
        lp = block.log_softmax(-1)
        p, h = lp.exp(), -(lp.exp() * lp).sum(-1, keepdim=True)
        chosen = torch.nn.functional.one_hot(rows["action"][..., i], block.shape[-1])
        pg += float((g.unsqueeze(-1) * (chosen - p)).square().sum())
        ent += float((mask * c.ent_coef * p * (lp + h)).square().sum())
    return [pg, ent]


def surrogate_slope(ratio: Tensor, adv: Tensor, clip: float) -> Tensor:
    """d(-min(rA, clip(r)A)) / d(ln pi) = -r A where the clip does not bind, else 0."""
    binds = torch.where(adv >= 0, ratio > 1 + clip, ratio < 1 - clip)
    return -ratio * adv * (~binds)


@njit(cache=True, nogil=True, inline="always")
def _surrogate(logp, logp_old, adv, clip, stats):
    """Adds one row's policy statistics; returns (d loss / d ln pi, ratio)."""
    log_ratio = logp - logp_old
    ratio = math.exp(log_ratio)
    clipped = min(max(ratio, 1.0 - clip), 1.0 + clip)
    stats[0] -= min(ratio * adv, clipped * adv)
    stats[3] += ratio - 1.0 - log_ratio
    stats[4] -= log_ratio
    if abs(ratio - 1.0) > clip:
        stats[5] += 1.0
    stats[7] += 1.0
    binds = ratio > 1.0 + clip if adv >= 0.0 else ratio < 1.0 - clip
    return (0.0 if binds else -ratio * adv), ratio


@njit(cache=True, nogil=True, inline="always")
def _value(v, v_old, target, clip_value, stats):
    """Adds one row's value statistics; returns d loss / d v."""
    error, change = v - target, v - v_old
    if abs(change) > clip_value:
        stats[6] += 1.0
        held = v_old + min(max(change, -clip_value), clip_value) - target
        if held * held > error * error:
            stats[1] += 0.5 * held * held
            return 0.0
    stats[1] += 0.5 * error * error
    return error


@njit(cache=True, nogil=True)
def ppo_gaussian_grad(mean, log_std, rows, batch, c, d_mean, d_log_std, stats):
    """Fills d_mean [n,K] and d_log_std [K] with the loss' derivative, adds to `stats`, returns the max ratio.

    Row i of the network's outputs is row rows[i] of the batch.
    """
    n, K = mean.shape
    base, entropy, ratio_max = -0.5 * K * LOG_2PI, 0.5 * K * (1.0 + LOG_2PI), 0.0
    inv, pull = np.empty(K), np.zeros(K)
    for k in range(K):
        inv[k] = math.exp(-log_std[k])
        base -= log_std[k]
        entropy += log_std[k]
    for i in range(n):
        j, logp = rows[i], base
        for k in range(K):
            z = (batch.action[j, k] - mean[i, k]) * inv[k]
            logp -= 0.5 * z * z
        g, ratio = _surrogate(logp, batch.logp[j], batch.adv[j], c.clip, stats)
        ratio_max = max(ratio_max, ratio)
        for k in range(K):
            z = (batch.action[j, k] - mean[i, k]) * inv[k]
            d_mean[i, k] = c.scale * g * z * inv[k]
            pull[k] += g * (z * z - 1.0)
    stats[2] += n * entropy
    for k in range(K):
        d_log_std[k] = c.scale * (pull[k] - c.ent_coef * n)
    return ratio_max


@njit(cache=True, nogil=True)
def ppo_categorical_grad(logits, sizes, rows, batch, c, d_logits, stats):
    """The same for choices: d H / d logit_j = -p_j (ln p_j + H), d ln pi / d logit_j = 1[j = a] - p_j."""
    n, K = logits.shape
    log_p, ratio_max = np.empty(K), 0.0
    for i in range(n):
        row, at, logp = rows[i], 0, 0.0
        for k in range(sizes.size):
            _log_softmax(logits[i], log_p, at, sizes[k])
            logp += log_p[at + np.int64(batch.action[row, k])]
            at += sizes[k]
        g, ratio = _surrogate(logp, batch.logp[row], batch.adv[row], c.clip, stats)
        ratio_max, at = max(ratio_max, ratio), 0
        for k in range(sizes.size):
            entropy = 0.0
            for j in range(at, at + sizes[k]):
                entropy -= math.exp(log_p[j]) * log_p[j]
            stats[2] += entropy
            for j in range(at, at + sizes[k]):
                p = math.exp(log_p[j])
                pg = g * ((1.0 if j == at + np.int64(batch.action[row, k]) else 0.0) - p)
                ent = c.ent_coef * p * (log_p[j] + entropy)
                stats[8] += pg * pg
                stats[9] += ent * ent
                d_logits[i, j] = c.scale * (pg + ent)
            at += sizes[k]
    return ratio_max


@njit(cache=True, nogil=True)
def ppo_value_grad(v, rows, batch, c, d_v, stats):
    """Fills d_v [n,1] with the derivative of the value term and adds to `stats`."""
    for i in range(v.shape[0]):
        j = rows[i]
        d_v[i, 0] = c.scale * c.value_coef * _value(v[i, 0], batch.v_old[j], batch.target[j], c.clip_value, stats)


@njit(cache=True, nogil=True)
def entropy_push(d_log_std, stats, ent_coef):
    """How hard the entropy bonus pulls against the surrogate: |ent_coef dH| / |dL_pg|, on log_std or on the logits.

    `d_log_std` is the finished gradient of a Gaussian's log_std, and empty for choices.
    """
    pg, ent = math.sqrt(stats[8]), math.sqrt(stats[9])
    if d_log_std.size:
        pg, ent = 0.0, ent_coef * math.sqrt(d_log_std.size)
        for k in range(d_log_std.size):
            pg += (d_log_std[k] + ent_coef) ** 2
        pg = math.sqrt(pg)
    if pg > 0.0:
        return ent / pg
    return 0.0 if ent == 0.0 else np.inf


@njit(cache=True, nogil=True, inline="always")
def _log_softmax(row, log_p, at, n):
    top, total = -np.inf, 0.0
    for j in range(at, at + n):
        top = max(top, row[j])
    for j in range(at, at + n):
        total += math.exp(row[j] - top)
    shift = top + math.log(total)
    for j in range(at, at + n):
        log_p[j] = row[j] - shift
