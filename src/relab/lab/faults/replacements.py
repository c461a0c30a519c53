"""What stands in a seam's place when a fault is planted? Each takes the original and returns the faulty one."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from relab.base.documents import Document, Tree
from relab.base.streams import generator
from relab.train.nets.normalise import Running

HUGE = 1e4  # a sensor in other units than the rest
STALE = 8  # iterations by which the acting policy lags behind
REWARD = 1000.0
NAN_AT = 10  # iteration in which one observation is not a number
LEVEL = {"cartpole-v1": 195.0, "pendulum-v1": -300.0, "gym:Acrobot-v1": -150.0}  # a return that counts as success


def negated(original: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The sign of a quantity turned round."""
    return lambda *args: -original(*args)


def one_step_late(gae: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The advantage of t + 1 stands at t."""

    def shifted(*args: Any) -> np.ndarray:
        adv_TB = gae(*args)
        return np.concatenate((adv_TB[1:], np.zeros_like(adv_TB[:1])))

    return shifted


def never_ends(gae: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The chain of advantages runs on through the ends of episodes."""
    return lambda r, v, vn, ended, *rest: gae(r, v, vn, np.zeros_like(ended), *rest)


def beyond_the_end(successor_values: Callable[[Any], np.ndarray]) -> Callable[[Any], np.ndarray]:
    """V(s') is the next row's value, which after an end belongs to the next episode."""

    def unmasked(s: Any) -> np.ndarray:
        vn_TB = successor_values(s)
        inside = s.traj.ended_TB[:-1]
        vn_TB[:-1][inside] = s.traj.value_TB[1:][inside]
        return vn_TB

    return unmasked


def cut_is_end(successor_values: Callable[[Any], np.ndarray]) -> Callable[[Any], np.ndarray]:
    """Nothing is expected beyond a time limit."""

    def cut(s: Any) -> np.ndarray:
        vn_TB = successor_values(s)
        vn_TB[s.traj.truncated_TB] = 0.0
        return vn_TB

    return cut


def ratio_one(take_step: Callable[..., Any]) -> Callable[..., Any]:
    """The old log-probability is computed anew from the policy that is being updated."""

    def step(s: Any, batch: Any, rows: np.ndarray, *rest: Any) -> Any:
        out = torch.from_numpy(s.agent.run("actor", s.learner.obs[rows]))
        log_std, action = s.agent.params.named.get("log_std"), torch.from_numpy(s.learner.batch.action[rows])
        with torch.no_grad():
            s.learner.batch.logp[rows] = s.agent.head.log_prob(out, log_std, action).numpy()
        return take_step(s, batch, rows, *rest)

    return step


def changed_learner(change: Callable[[Any, Any], None], make_learner: Callable[..., Any]) -> Callable[..., Any]:
    """A learner that takes its steps one at a time, so that `change(learner, agent)` can replace one of them."""

    def make(cfg: Any, agent: Any) -> Any:
        learner = make_learner(cfg, agent)
        learner.one_call = False
        change(learner, agent)
        return learner

    return make


def step_by_step(make_learner: Callable[..., Any]) -> Callable[..., Any]:
    """No fault: the learner takes its steps one at a time."""
    return changed_learner(lambda learner, agent: None, make_learner)


def entropy_punished(make_learner: Callable[..., Any]) -> Callable[..., Any]:
    """The entropy bonus enters the loss with the wrong sign."""

    def punish(learner: Any, agent: Any) -> None:
        gradient = learner.gradient
        learner.gradient = lambda rows, coefs: gradient(rows, coefs._replace(ent_coef=-coefs.ent_coef))

    return changed_learner(punish, make_learner)


def critic_frozen(make_learner: Callable[..., Any]) -> Callable[..., Any]:
    """The critic's parameters get no gradient."""

    def freeze(learner: Any, agent: Any) -> None:
        gradient = learner.gradient

        def without_critic(*args: Any) -> Any:
            whole = gradient(*args)
            for name, grad in agent.params.grads.items():
                if name.startswith("critic/"):
                    grad.zero_()
            return whole

        learner.gradient = without_critic

    return changed_learner(freeze, make_learner)


def targets_follow(appraise: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The gradient also runs through the value targets: each value answers for the targets that lean on it.

    dL/dv_j = -A_j + sum over earlier t of the same episode of A_t gamma (1 - lam) (gamma lam)^(j-t-1); the learner gets
    the target whose error is just that.
    """

    def live(s: Any) -> Any:
        batch, metrics = appraise(s)
        cfg, adv_TB = s.cfg, batch.target - batch.v_old
        lean_B, slope_TB = np.zeros(adv_TB.shape[1]), np.empty_like(adv_TB)
        for t in range(len(adv_TB)):
            slope_TB[t] = -adv_TB[t] + cfg.gamma * (1 - cfg.lam) * lean_B
            lean_B = np.where(s.traj.ended_TB[t], 0.0, adv_TB[t] + cfg.gamma * cfg.lam * lean_B)
        return batch._replace(target=batch.v_old - slope_TB), metrics

    return live


def rewards_scaled(collect: Callable[[Any], None]) -> Callable[[Any], None]:
    """Rewards reach the learner in other units than the environment's."""

    def scaled(s: Any) -> None:
        collect(s)
        s.traj.reward_TB *= REWARD

    return scaled


def stale(collect: Callable[[Any], None]) -> Callable[[Any], None]:
    """The policy that acts is the one of some iterations ago."""
    past: deque[torch.Tensor] = deque(maxlen=STALE + 1)

    @torch.no_grad()
    def late(s: Any) -> None:
        flat = s.agent.params.flat
        past.append(flat.clone())
        flat.copy_(past[0])
        collect(s)
        flat.copy_(past[-1])

    return late


def one_nan(collect: Callable[[Any], None]) -> Callable[[Any], None]:
    """One observation of a batch is not a number, once; the environment's own would end the run at once."""

    def broken(s: Any) -> None:
        collect(s)
        if s.counts.iteration == NAN_AT:
            s.traj.obs_TBD[0, 0, 0] = np.nan

    return broken


def one_huge(make_env: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The first number of each observation comes in far larger units than the others."""

    def make(cfg: Any) -> Any:
        env = make_env(cfg)
        observe = env.observe

        def huge(state: Any, obs_NAD: np.ndarray) -> None:
            observe(state, obs_NAD)
            obs_NAD[..., 0] *= HUGE

        env.observe = huge
        return env

    return make


def success_summed(episode_metrics: Callable[..., dict[str, float]]) -> Callable[..., dict[str, float]]:
    """The success of an iteration is the number of its successes, under the name of a rate."""

    def summed(ended: Any, spec: Any, *other: Any) -> dict[str, float]:
        good = sum(int((each.ret >= LEVEL[spec.env]).sum()) for each in ended)
        metrics = episode_metrics(ended, spec, *other)
        return metrics | {"return/success": float(good)} if metrics else metrics

    return summed


def forget_optimiser(load: Callable[..., None]) -> Callable[..., None]:
    """The optimiser's moments are not restored."""

    def partly(s: Any, tree: Tree) -> None:
        load(s, tree)
        s.adam.m[:], s.adam.v[:] = 0, 0
        s.adam.updates = 0

    return partly


def forget_scales(load: Callable[..., None]) -> Callable[..., None]:
    """The running statistics of observations and rewards are not restored."""

    def partly(s: Any, tree: Tree) -> None:
        load(s, tree)
        s.agent.scale, s.reward_scale = Running(len(s.agent.scale.mean)), Running(1)

    return partly


def one_draw_more(init: Callable[..., Any]) -> Callable[..., Any]:
    """Something draws one number from the stream of the weights before they do."""

    def later(net: Any, rng: np.random.Generator, *rest: Any) -> Any:
        rng.random()
        return init(net, rng, *rest)

    return later


def one_generator(first_parameters: Callable[..., Any]) -> Callable[..., Any]:
    """One generator for all first parameters; the offset is drawn only where it is not 0, and before the critic."""

    def coupled(cfg: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng, shape = generator(seed, "everything"), (cfg.actor_feature_dim, 2)
        theta = cfg.theta_init_scale * rng.standard_normal(shape)
        mu = theta.copy()
        if cfg.theta_mu_offset_scale > 0:
            mu += cfg.theta_mu_offset_scale * rng.standard_normal(shape)
        return cfg.w_init_scale * rng.standard_normal(cfg.feature_dim), theta, mu

    return coupled


def one_seed_for_all(seed_for: Callable[..., int]) -> Callable[..., int]:
    """The seed that was asked for reaches no stream."""
    return lambda seed, name, *index: seed_for(0, name, *index)


def training_streams(world_seeds: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Evaluation episodes begin where the training worlds begin."""
    return lambda seed, name, n: world_seeds(seed, "env", n)


def best_in_training(candidate: Callable[..., Document]) -> Callable[..., Document]:
    """The best checkpoint is the one of the best training return."""

    def earned(trainer: Any, played: Any) -> Document:
        value = math.nan if trainer.earned is None else trainer.earned
        evidence = {"step": trainer.step, "metric": "return/mean_100", "value": value, "noise": None, "n": 100}
        return evidence | {"protocol": "episodes of training"}

    return earned


# ---- Of replay methods


def scaled_into_replay(step: Callable[..., None]) -> Callable[..., None]:
    """Rewards reach the replay in other units than the environment's."""

    def scaled(gathering: Any, *args: Any) -> None:
        step(gathering, *args)
        replay = gathering.replay
        replay.ring["reward"][(replay.count - 1) % replay.slots] *= REWARD
        gathering.rewards[-1] *= REWARD  # and so they are logged

    return scaled


def goes_on(targets: Callable[..., Any]) -> Callable[..., Any]:
    """The successor counts behind every end."""

    def unmasked(replay: Any, rows: Any, cfg: Any) -> Any:
        total, discount, last = targets(replay, rows, cfg)
        return total, np.where(discount == 0, np.float32(cfg.gamma**cfg.n_step), discount), last

    return unmasked


def never(original: Callable[..., None]) -> Callable[..., None]:
    """What should happen does not."""
    return lambda *args: None


def first_weights_act(step: Callable[..., None]) -> Callable[..., None]:
    """The worlds are acted in by the network as it was when it first acted; the one that learns is never handed on."""
    first: dict[str, np.ndarray] = {}

    def stale(gathering: Any, policy: Any, counts: Any) -> None:
        if not hasattr(policy, "nets"):  # draws evenly, before there is anything to learn from
            return step(gathering, policy, counts)
        flat = policy.nets.flat
        now = flat.copy()
        flat[:] = first.setdefault("weights", now)
        step(gathering, policy, counts)
        flat[:] = now

    return stale


def as_at_the_start(exploration: Callable[[Any, float], float]) -> Callable[[Any, float], float]:
    """Exploration does not get to know how much of the run is over."""
    return lambda cfg, used: exploration(cfg, 0.0)


def loss_alone(adjust: Callable[[Any, float], float]) -> Callable[[Any, float], float]:
    """The temperature has a loss, and no optimiser that heeds it."""
    return lambda s, entropy: float(s.temperature.log[0]) * (entropy - s.temperature.target)
