"""Fine-tuning: data (online, fixed) x advantage (gae, mc, rerollout, iql) x update (ppo, awr), one idea a file.

    gather a batch -> estimate advantages -> learn from them, an iteration at a time

Networks, optimiser, worlds and the clipped loss are PPO's (ppo.py); what is added stands in gathering.py, estimates.py
(rerollout.py, iql.py), awr.py and, as plain functions, equations.py. Details and metrics: docs/algorithms/finetune.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relab.config.base import require
from relab.config.finetune import FineTune
from relab.train.algos import ppo, ppo_metrics
from relab.train.algos.finetune import awr, equations, estimates, gathering, rerollout, starting
from relab.train.algos.finetune.estimates import Estimated
from relab.train.algos.finetune.state import State as State
from relab.train.algos.ppo_agent import load_agent as load_agent
from relab.train.algos.ppo_agent import make_agent as make_agent
from relab.train.contract import Setup, Stopwatch
from relab.train.nets.losses import Batch

CLOCK = "iteration"
WHOLE = ("actor", "log_std")  # of a start: a policy of another size is none


def check(setup: Setup) -> None:
    spec, cfg = setup.env.spec, setup.cfg
    require(spec.agents == 1, f"fine-tuning needs one agent a world, but {spec.env} has {spec.agents}")
    grows = cfg.advantage == "rerollout" and getattr(setup.env, "grows", False)
    require(cfg.data == "online" or not grows, f"a fixed batch of re-rollouts keeps the worlds themselves, but a"
            f" snapshot of {spec.env} is its actions so far and grows; use data=online")  # fmt: skip
    require(cfg.warmup < setup.total, f"the policy must learn after `warmup`, but that is {cfg.warmup:,} of"
            f" {setup.total:,} iterations (`total_steps`); use fewer, or fit the critic alone (relab train"
            " critic)")  # fmt: skip
    starting.others(setup)
    if cfg.advantage == "rerollout":
        rerollout.check_snapshots(setup.env)


def init(setup: Setup) -> State:
    cfg: FineTune = setup.cfg
    own = cfg if cfg.learns_critic else replace(cfg, value_coef=0.0)
    state = State(cfg, ppo.build(replace(setup, cfg=own)), setup.seed, setup.total, *starting.others(setup))
    if cfg.data == "fixed":
        rows = gathering.fields_of(
            state.ppo.worlds, state.ppo.agent.head.action_buffer(1), cfg.advantage == "rerollout"
        )
        state.kept = setup.data.replay(gathering.NAME, rows, cfg.batch, cfg.envs)
    starting.begin(state, setup)
    return state


def begins(cfg: FineTune) -> str:
    """What becomes of a start's weights, for the screen."""
    noise = "log_std stays as it was left" if cfg.log_std is None else f"log_std is set to {cfg.log_std:g}"
    whose = f"the critic is that of {cfg.critic_from or 'the start'}"
    whose = "the critic begins anew" if cfg.critic == "reset" and cfg.critic_from is None else whose
    return f"{noise}, {whose if cfg.learns_critic else 'there is no critic'}"


def follow_weights(s: State) -> None:
    """`params` are another run's now: what was asked of the start holds again."""
    starting.settle(s)
    starting.check_level(s)


def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
    at = s.counts.iteration
    with watch("collect"):
        fresh, metrics = gather(s)
    if fresh:
        s.tell = watch.tell
        with watch("advantage"):
            s.estimated = estimates.estimate(s, s.batch)
    with watch("update"):
        assert s.estimated is not None
        s.counts.iteration = at + 1
        metrics |= s.estimated.facts | learn(s, s.estimated)
    c = s.counts
    return metrics | {"data/iteration": c.iteration, "data/env_steps": c.env_steps, "data/updates": c.updates,
                      "data/episodes": c.episodes, "data/rerun_steps": c.rerun_steps}  # fmt: skip


def gather(s: State) -> tuple[bool, dict[str, float]]:
    """(is the batch a new one, what its episodes earned). A fixed one is new once."""
    cfg, p = s.cfg, s.ppo
    if cfg.data == "fixed" and s.estimated is not None:
        return False, {}
    if cfg.fixed_from is not None:
        s.batch = starting.fixed_batch(s)
        s.counts.rerun_steps += s.batch.reward.size  # somebody has stepped those worlds
        metrics = {"data/env_steps_taken_over": float(s.batch.reward.size)}
    else:
        s.batch = gathering.gather(p.worlds, p.agent, p.traj, p.cursor, cfg.advantage == "rerollout")
        metrics = ppo.count(p)
    if s.kept is not None:
        gathering.store(s.kept, s.batch)
    return True, metrics


def learn(s: State, made: Estimated) -> dict[str, float]:
    """One iteration's epochs on the rows that are used."""
    cfg, p = s.cfg, s.ppo
    adv = made.adv_TB[made.use_TB]
    if cfg.norm_adv:
        adv = ppo.standardised(adv, np.ones(len(adv), bool))
    lr = cfg.lr * (1 + (s.counts.iteration - 1) / s.total * (cfg.lr_final - 1)) if cfg.lr_schedule == "linear" else p.lr
    policy_too = s.counts.iteration > cfg.warmup
    before = p.agent.params.flat.clone()
    update = by_ppo if cfg.update == "ppo" else by_awr
    metrics = update(s, made, adv if policy_too else np.zeros_like(adv), lr, policy_too)
    return metrics | ppo_metrics.step_size(p.agent.params.flat, before) | {"data/batch": len(adv)}


def by_ppo(s: State, made: Estimated, adv: np.ndarray, lr: float, policy_too: bool) -> dict[str, float]:
    """PPO's own loop; rows without an advantage are masked as those of dead agents are."""
    p, use, adv_TB = s.ppo, made.use_TB, np.zeros(made.use_TB.shape, np.float32)
    adv_TB[use] = adv
    p.traj.alive_TB[:] = use
    batch = Batch(p.traj.action_TBK, p.traj.logp_TB, adv_TB, made.target_TB, made.target_TB - made.adv_TB,
                  use.astype(np.float32))  # fmt: skip
    metrics = ppo.learn(p, batch, lr, s.cfg.ent_coef if policy_too else 0.0)
    return metrics | {"data/updates_per_row": metrics["optim/epochs"]}


def by_awr(s: State, made: Estimated, adv: np.ndarray, lr: float, policy_too: bool) -> dict[str, float]:
    cfg, p, use, batch = s.cfg, s.ppo, made.use_TB, s.batch
    w = equations.awr_weights(adv, cfg.beta, cfg.cap)
    obs = p.agent.normalised(batch.obs[use])
    columns = {"obs": obs, "action": batch.action[use], "weight": w, "target": made.target_TB[use]}
    learned = awr.learn(p, columns, lr, cfg.ent_coef, policy_too)
    s.counts.updates += learned.updates
    head, out = p.agent.head, p.agent.run("actor", obs)
    metrics = {"policy/loss": learned.loss, "optim/lr": lr, "optim/grad_norm": learned.norms.mean(),
               "optim/grad_norm_max": learned.norms.max(), "optim/epochs": cfg.epochs,
               "optim/adam_steps": p.adam.updates, "data/updates_per_row": cfg.epochs,
               "policy/data_logprob": estimates.log_prob(p.agent, out, batch.action[use]).mean()}  # fmt: skip
    if cfg.learns_critic:
        metrics["value/loss"] = learned.value_loss
    if head.gaussian:
        metrics |= {"policy/std_mean": np.exp(p.agent.log_std).mean(), "policy/std_max": np.exp(p.agent.log_std).max()}
    return {name: float(x) for name, x in metrics.items()} | (awr.weight_metrics(w, cfg.cap) if policy_too else {})
