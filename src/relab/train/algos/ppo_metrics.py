"""What does an iteration of PPO look like? Numbers of the batch and of what learning did, from which findings are made.

Most are sums that the loss needs anyway; the others cost a pass over the batch. Each is explained in docs/metrics.md.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import torch

from relab.config.ppo import PPO
from relab.train.algos.ppo_learner import Steps
from relab.train.nets import networks, returns
from relab.train.nets.heads import Head
from relab.train.nets.losses import STATS
from relab.train.nets.networks import Net, Params
from relab.train.nets.normalise import Running
from relab.train.rollout import Trajectory

# ---- Of the batch


def batch_metrics(adv: np.ndarray, target: np.ndarray, v: np.ndarray, r: np.ndarray) -> dict[str, float]:
    """The batch as the learner will see it: advantages before normalisation, value targets, what V explains."""
    metrics = {"value/explained_variance": returns.explained_variance(v, target)}
    metrics["value/mean"] = v.mean(dtype=np.float64)
    for name, x in (("data/advantage", adv), ("value/target", target), ("data/reward", r)):
        metrics |= {f"{name}_mean": x.mean(dtype=np.float64), f"{name}_std": x.std(dtype=np.float64)}
        metrics |= {f"{name}_min": x.min(), f"{name}_max": x.max()}
    return {name: float(x) for name, x in metrics.items()}


def saturation(head: Head, traj: Trajectory) -> dict[str, float]:
    """Which share of the actions lies beyond the bounds, where the environment cuts them."""
    if not head.gaussian:
        return {}
    return {"policy/saturated_share": float((np.abs(traj.action_TBK[traj.alive_TB]) > 1).mean())}


def scale_metrics(cfg: PPO, rewards: Running, obs: Running) -> dict[str, float]:
    """What rewards are divided by, and from how many rows each scale in use was measured."""
    metrics = {}
    if cfg.norm_return:
        metrics = {"data/reward_scale": np.sqrt(rewards.var[0] + 1e-8), "data/reward_seen": rewards.count[0]}
    if cfg.norm_obs:
        metrics["data/obs_seen"] = obs.count[0]
    return {name: float(x) for name, x in metrics.items()}


def end_metrics(traj: Trajectory, vn_TB: np.ndarray) -> dict[str, float]:
    """What the targets take for the value beyond an episode's end: 0 after termination, V(final s) after a cut."""
    ends = {"value/after_end": traj.terminated_TB, "value/after_cut": traj.truncated_TB}
    return {name: float(vn_TB[rows].mean()) for name, rows in ends.items() if rows.any()}


def surprise_metrics(traj: Trajectory, adv_TB: np.ndarray, delta_TB: np.ndarray) -> dict[str, float]:
    """Does the advantage in the loss contain its own step's TD error, and more of it than of the next step's?"""
    alive = traj.alive_TB
    on = alive[:-1] & alive[1:] & ~traj.ended_TB[:-1]  # the next row is the next step of the same episode
    own = returns.correlation(adv_TB[alive], delta_TB[alive])
    then = returns.correlation(adv_TB[:-1][on], delta_TB[1:][on])
    metrics = {"data/advantage_td": own, "data/advantage_td_next": then}
    return {name: x for name, x in metrics.items() if np.isfinite(x)}


def largest(x: np.ndarray) -> float:
    """max |x|, NaN where one is; two passes that allocate nothing."""
    return float(np.maximum(x.max(), -x.min())) if x.size else 0.0


# ---- Of learning


def critic_bias(net: Net, params: Params, value_coef: float) -> float:
    """What the value loss does to the critic's output as a whole: dL/db is mean(V - target) where targets are fixed."""
    return float(params.grads[last_bias(net)]) / value_coef if value_coef else 0.0


@functools.cache
def last_bias(net: Net) -> str:
    return f"critic/{networks.depth(net, 'critic')}/bias"


def learning_metrics(
    cfg: PPO,
    head: Head,
    log_std: np.ndarray,
    steps: Steps,
    now: Mapping[str, float],
    counts: Mapping[str, float],
) -> dict[str, float]:
    """Means over the last epoch (where the policy is furthest from its start), extremes over all.

    `now` are the settings that a schedule moves, `counts` the counters of updates.
    """
    total = steps.sums[steps.epoch == steps.epoch[-1]].sum(0)
    mean = dict(zip(STATS, total / max(total[7], 1)))
    norms, kl = steps.norm, steps.sums[:, 3] / np.maximum(steps.sums[:, 7], 1)
    metrics = {
        "policy/loss": mean["policy_loss"], "policy/entropy": mean["entropy"], "policy/kl": mean["kl"],
        "policy/kl_k1": mean["kl_k1"], "policy/kl_max": kl.max(), "policy/kl_start": kl[0],
        "policy/clip_share": mean["clipped"], "policy/ratio_max": steps.ratio_max.max(),
        "policy/entropy_push": steps.push.mean(),
        "value/loss": mean["value_loss"], "value/clip_share": mean["value_clipped"], "value/bias_slope": steps.bias[0],
        **now, "optim/epochs": steps.epoch[-1] + 1, "optim/kl_stop": steps.stopped[-1],
        "optim/grad_norm": norms.mean(), "optim/grad_norm_max": norms.max(),
        "optim/grad_clipped_share": (norms > cfg.max_grad_norm).mean(), **counts,
    }  # fmt: skip
    if head.gaussian:
        std = np.exp(log_std.astype(np.float64))
        metrics |= {"policy/std_mean": std.mean(), "policy/std_max": std.max()}
    else:
        metrics["policy/entropy_share"] = mean["entropy"] / head.max_entropy if head.max_entropy > 0 else np.nan
    if cfg.clip_value is None:
        del metrics["value/clip_share"]
    return {name: float(x) for name, x in metrics.items()}


def step_size(now: torch.Tensor, before: torch.Tensor) -> dict[str, float]:
    """How far the parameters went in this iteration, against how large they are."""
    change = now - before
    return {
        "optim/step_rms": float(change.square().mean().sqrt()), "optim/step_max": float(change.abs().max()),
        "optim/param_norm": float(now.norm()),
    }  # fmt: skip
