"""How good was each action of a batch? One function for each way to tell; all give rows, advantages and facts.

gae, mc      from the rewards that followed and a critic (nets/returns.py)
rerollout    from worlds that are run again (rerollout.py)
iql          from Q and V that are fitted to data (iql.py)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from relab.config.base import require
from relab.train.algos.finetune import equations, gathering, iql, rerollout
from relab.train.algos.finetune.gathering import Gathered
from relab.train.nets import returns


@dataclass
class Estimated:
    """Advantages before any normalisation, and which rows are learned from."""

    adv_TB: np.ndarray
    target_TB: np.ndarray  # what the critic is to become; 0 where there is none
    use_TB: np.ndarray  # bool
    facts: dict[str, float]


def estimate(s: Any, batch: Gathered) -> Estimated:
    made = WAYS[s.cfg.advantage](s, batch)
    made.facts["data/behaviour_gap"] = behaviour_gap(s.ppo.agent, batch)
    adv, reward = made.adv_TB[made.use_TB], batch.reward
    require(s.cfg.data == "online" or np.ptp(adv) > 0, f"a fixed batch must tell good actions from bad ones, but all"
            f" {len(adv):,} advantages are {adv[0]:.3g}, with a reward in {(reward != 0).mean():.2%} of its rows; use"
            " a better start, more worlds, or data=online")  # fmt: skip
    made.facts |= {"data/advantage_mean": adv.mean(dtype=np.float64), "data/advantage_std": adv.std(dtype=np.float64),
                   "data/advantage_min": adv.min(), "data/advantage_max": adv.max(),
                   "data/advantage_positive": (adv > 0).mean(), "data/reward_nonzero": (reward != 0).mean(),
                   "data/reward_mean": reward.mean(), "data/reward_max": reward.max()}  # fmt: skip
    made.facts = {name: float(x) for name, x in made.facts.items() if np.isfinite(x)}
    return made


def behaviour_gap(agent: Any, batch: Gathered) -> float:
    """E[ln b(a|s) - ln pi(a|s)], b the policy that acted, pi the one that learns: 0 to rounding where both are one."""
    obs, action = (x.reshape(-1, *x.shape[2:]) for x in (batch.obs, batch.action))
    logp = log_prob(agent, agent.run("actor", agent.normalised(obs)), action)
    return float((batch.logp.reshape(-1) - logp).mean(dtype=np.float64))


def log_prob(agent: Any, out: np.ndarray, action: np.ndarray) -> np.ndarray:
    """ln pi(a|s) of rows whose outputs of the policy are known."""
    std = torch.from_numpy(agent.log_std.copy()) if agent.head.gaussian else None
    return np.asarray(agent.head.log_prob(torch.from_numpy(out), std, torch.from_numpy(np.ascontiguousarray(action))))


def by_critic(s: Any, batch: Gathered) -> Estimated:
    """GAE, or the discounted return minus the value; bootstrapped where an episode was cut."""
    (T, B), cfg, agent = batch.shape, s.cfg, s.ppo.agent
    none = np.zeros((T * B, 0), np.float32)
    v_TB = agent.value(batch.obs.reshape(T * B, -1), none).reshape(T, B).copy()
    vn_TB = agent.value(batch.next_obs.reshape(T * B, -1), none).reshape(T, B).copy()
    vn_TB[batch.ended if agent.spec.timeout_is_terminal else batch.terminated] = 0.0
    r_TB = (cfg.reward_scale * batch.reward).astype(np.float32)
    if cfg.advantage == "gae":
        adv_TB = returns.gae(r_TB, v_TB, vn_TB, batch.ended, cfg.gamma, cfg.lam)
    else:
        adv_TB = returns.discounted(r_TB, vn_TB, batch.ended, cfg.gamma) - v_TB
    target_TB = adv_TB + v_TB
    facts = {"value/explained_variance": returns.explained_variance(v_TB, target_TB), "value/v_mean": v_TB.mean(),
             "value/v_std": v_TB.std(), "value/target_mean": target_TB.mean(), "value/target_std": target_TB.std(),
             "data/transitions": T * B}  # fmt: skip
    return Estimated(adv_TB, target_TB, np.ones((T, B), bool), facts)


def by_rerollout(s: Any, batch: Gathered) -> Estimated:
    (T, B), cfg = batch.shape, s.cfg
    rows = np.sort(s.draw.permutation(T * B)[: cfg.states or T * B])
    worlds = s.again(len(rows))
    action = s.ppo.agent.to_env(batch.action.reshape(T * B, -1)[rows])
    snaps = {name: x.reshape(T * B, *x.shape[2:])[rows] for name, x in batch.worlds.items()}
    ways = rerollout.Ways(cfg.common_noise, cfg.antithetic)
    again = rerollout.reruns(worlds, s.follower, snaps, action, cfg.mc_samples, cfg.gamma, cfg.cut, ways, s.draw,
                             s.tell)  # fmt: skip
    s.counts.rerun_steps += again.sim_steps
    adv_TB, use_TB = np.zeros(T * B, np.float32), np.zeros(T * B, bool)
    q, v = cfg.reward_scale * again.q_SN, cfg.reward_scale * again.v_SN
    adv_TB[rows], use_TB[rows] = q.mean(1) - v.mean(1), True
    sure, spec = equations.certainty(q, v, *ways), worlds.spec
    bias = equations.cut_bias(cfg.gamma, cfg.cut, spec.reward_low or 0.0, spec.reward_high or 0.0, spec.horizon)
    facts = {"value/q_mean": q.mean(), "value/q_std": q.mean(1).std(), "value/v_mean": v.mean(),
             "value/v_std": v.mean(1).std(), "data/advantage_noise": sure.noise, "data/advantage_snr": sure.snr,
             "data/advantage_rank": sure.rank, "data/rerun_bias": cfg.reward_scale * bias,
             "data/rerun_cut": again.cut, "data/transitions": len(rows)}  # fmt: skip
    return Estimated(adv_TB.reshape(T, B), np.zeros((T, B), np.float32), use_TB.reshape(T, B), facts)


def by_iql(s: Any, batch: Gathered) -> Estimated:
    cfg, batches = s.cfg, [batch]
    if s.others:
        batches = []
        for k, policy in enumerate(s.others):
            some, steps = gathering.episodes_of(s.ppo.worlds.env, policy, cfg.data_episodes, s.seed, f"data/{k}")
            batches.append(some)
            s.counts.rerun_steps += steps
    rewards = np.concatenate([g.reward.reshape(-1) for g in batches])
    require(bool(rewards.any()), f"IQL learns from rewards, but none of the {len(rewards):,} rows that Q and V are"
            " fitted to has one; use a better start, more worlds or episodes, or `data_from` policies that"
            " succeed")  # fmt: skip
    fitted = iql.fit(batches, batch, s.ppo.agent.head, cfg, s.draw)
    adv_TB = fitted.q - fitted.v
    facts = {"value/q_mean": fitted.q.mean(), "value/q_std": fitted.q.std(), "value/v_mean": fitted.v.mean(),
             "value/v_std": fitted.v.std(), "value/expectile": fitted.expectile,
             "value/fit_epochs": fitted.epochs, "value/val_loss": fitted.val_loss,
             "data/transitions": len(rewards), "data/fit_reward_nonzero": (rewards != 0).mean()}  # fmt: skip
    return Estimated(adv_TB, np.zeros_like(adv_TB), np.ones(adv_TB.shape, bool), facts)


WAYS = {"gae": by_critic, "mc": by_critic, "rerollout": by_rerollout, "iql": by_iql}
