"""What does a fine-tuning run begin with? Its start's policy, a critic, the policies of others; and is it worth it?"""

from __future__ import annotations

from typing import Any

import numpy as np

from relab.base.streams import world_seeds
from relab.config.base import require
from relab.train import rollout, weights
from relab.train.algos.finetune import gathering, policies
from relab.train.algos.finetune.gathering import Gathered
from relab.train.algos.ppo_agent import Agent, make_agent
from relab.train.contract import Setup

SOLVED = 0.95  # share of deterministic episodes: a start above it has little left to learn but to tremble less
EPISODES = 100  # by which that is told


def others(setup: Setup) -> tuple[Any, list[Any]]:
    """(the policy that re-rollouts follow, those whose data IQL is fitted to); the run's own come later."""
    cfg, spec = setup.cfg, setup.env.spec
    follower = None
    if cfg.advantage == "rerollout" and cfg.follow not in policies.OWN:
        follower = policies.load(cfg.follow, spec, setup.runs, "follow")
    if cfg.antithetic:
        gaussian = spec.action.kind == "continuous" and (follower is None or isinstance(follower, Agent))
        require(gaussian, f"`antithetic` turns the noise of a Gaussian policy around its mean, but the actions of"
                f" {spec.env if follower is None else cfg.follow} are not drawn so; leave it out")  # fmt: skip
    return follower, [policies.load(word, spec, setup.runs, "data_from") for word in cfg.data_from]


def begin(s: Any, setup: Setup) -> None:
    """Critic, noise and follower of a policy that is as it was drawn; `settle` says it again of another's weights."""
    cfg, params = s.cfg, s.ppo.agent.params
    critic = {name: x.detach().numpy() for name, x in params.named.items() if weights.is_part(name, "critic")}
    if cfg.critic_from is not None:
        shapes = {name: x.shape for name, x in critic.items()}
        for name, array in policies.critic_of(cfg.critic_from, setup.env.spec, setup.runs, shapes).items():
            critic[name][:] = array
    s.fresh_critic = {name: x.copy() for name, x in critic.items()}
    if cfg.fixed_from is not None:
        folder = weights.locate(cfg.fixed_from, setup.runs)[0]
        policies.check_env(folder, setup.env.spec, f"`fixed_from` must be a batch of {setup.env.spec.env}, but"
                           f" {cfg.fixed_from}")  # fmt: skip
        s.fixed = gathering.of_run(folder, s.kept)
    if cfg.advantage == "rerollout" and cfg.follow == "start":
        s.follower = make_agent(s.ppo.cfg, setup.env.spec, setup.seed, setup.device, setup.threads)
    settle(s)


def settle(s: Any) -> None:
    cfg, agent = s.cfg, s.ppo.agent
    if cfg.critic == "reset" or cfg.critic_from is not None:
        for name, array in s.fresh_critic.items():
            agent.params[name].detach().numpy()[:] = array
    if cfg.log_std is not None and agent.head.gaussian:
        agent.params["log_std"].detach().fill_(cfg.log_std)
    if cfg.advantage == "rerollout" and cfg.follow == "start":
        s.follower.params.flat.copy_(agent.params.flat)
        s.follower.scale.load(agent.scale.to_tree())
    elif s.follower is None:
        s.follower = agent


def check_level(s: Any) -> None:
    """ConfigError where the start is already solved: what looks like learning is less noise in the actions then."""
    env, cfg = s.ppo.worlds.env, s.cfg
    if env.spec.outcome != "success" or cfg.solved_start:
        return
    seeds = world_seeds(s.seed, "start", EPISODES)
    played = rollout.evaluate(env, s.ppo.agent, seeds, modes=("det",))
    s.counts.rerun_steps += played.sim_steps
    share = float(np.mean([bool(e["success"]) for e in played.episodes["det"]]))
    require(share <= SOLVED, f"the start must succeed in at most {SOLVED:.0%} of its deterministic episodes, but does"
            f" in {share:.0%} of {EPISODES}: what it gains from here is less noise, not better actions; start from an"
            " earlier checkpoint, or set solved_start=true")  # fmt: skip


def fixed_batch(s: Any) -> Gathered:
    assert s.fixed is not None
    return s.fixed
