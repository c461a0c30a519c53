"""What is a state worth to a policy? A critic fitted to its returns, before anything is fine-tuned with it.

    L = E[(V(s_t) - G_t)²] / 2,    G_t = r_t + gamma r_{t+1} + ... to the end of the episode

The policy (`start_from`) acts once and stays as it is; an iteration is a pass over its data. Worlds that are held out
say how far off the values are. `relab train finetune critic_from=RUN` begins with the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from relab.base.documents import Tree
from relab.config.base import require
from relab.config.critic import Critic
from relab.train.algos import ppo
from relab.train.algos.finetune.gathering import gather
from relab.train.algos.ppo_agent import load_agent as load_agent
from relab.train.algos.ppo_agent import make_agent as make_agent
from relab.train.contract import Counts, Setup, Stopwatch
from relab.train.nets import networks, returns

CLOCK = "iteration"
WHOLE = ("actor", "log_std")
HELD_OUT = 10  # every tenth world
POLICY_STAYS = True  # no evaluation is a better one than another: there is no `best`
SHOWN = ("value/val_loss", "value/explained_variance")  # on the screen: in worlds that were held out


def then(folder: Path, cfg: Any) -> str:
    """What a run is for."""
    return f"relab train finetune env={cfg.env.name} critic_from={folder}"


@dataclass
class State:
    """PPO's state, and the data once it is there."""

    cfg: Critic
    ppo: ppo.State
    total: int
    rows: dict[str, np.ndarray] | None = None  # obs, target, apart, ends

    @property
    def agent(self) -> Any:
        return self.ppo.agent

    @property
    def counts(self) -> Counts:
        return self.ppo.counts

    @property
    def worlds(self) -> Any:
        return self.ppo.worlds

    def to_tree(self) -> Tree:
        return self.ppo.to_tree() | ({"rows": self.rows} if self.rows is not None else {})

    def load(self, tree: Tree) -> None:
        self.ppo.load(tree)
        self.rows = dict(tree["rows"]) if "rows" in tree else None


def check(setup: Setup) -> None:
    spec = setup.env.spec
    require(spec.agents == 1, f"a critic is fitted to one agent a world, but {spec.env} has {spec.agents}")


def init(setup: Setup) -> State:
    state = State(setup.cfg, ppo.build(setup), setup.total)
    follow_weights(state)
    return state


def follow_weights(s: State) -> None:
    if s.cfg.log_std is not None and s.agent.head.gaussian:
        s.agent.params["log_std"].detach().fill_(s.cfg.log_std)


def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
    at, metrics = s.counts.iteration, {}
    if s.rows is None:
        with watch("collect"):
            metrics = collect(s)
    s.counts.iteration = at + 1
    with watch("update"):
        metrics |= learn(s)
    c = s.counts
    return metrics | {"data/iteration": c.iteration, "data/env_steps": c.env_steps, "data/updates": c.updates,
                      "data/episodes": c.episodes}  # fmt: skip


def collect(s: State) -> dict[str, float]:
    """Play once; rows whose episode was not over when the data ended have no return, and are left out."""
    p, cfg = s.ppo, s.cfg
    g = gather(p.worlds, p.agent, p.traj, p.cursor, keep_worlds=False)
    metrics = ppo.count(p)
    zero = np.zeros_like(g.reward)
    target = returns.discounted((cfg.reward_scale * g.reward).astype(np.float32), zero, g.ended, cfg.gamma)
    whole = np.flip(np.logical_or.accumulate(np.flip(g.ended, 0), 0), 0)  # an end follows
    require(bool(whole.any()), f"no episode of the policy ended within {cfg.steps} steps; raise `steps`")
    apart = np.broadcast_to(np.arange(cfg.envs) % HELD_OUT == 0, whole.shape)
    s.rows = {"obs": g.obs[whole], "target": target[whole], "apart": apart[whole], "ends": g.ended[whole]}
    return metrics


def learn(s: State) -> dict[str, float]:
    """One pass over the rows that are not held out."""
    assert s.rows is not None
    p, cfg, agent = s.ppo, s.cfg, s.agent
    obs = torch.from_numpy(np.ascontiguousarray(agent.normalised(s.rows["obs"])))
    target = torch.from_numpy(s.rows["target"])
    own, losses = np.flatnonzero(~s.rows["apart"]), []
    lr = cfg.lr * (1 - (s.counts.iteration - 1) / s.total)
    for index in np.array_split(p.shuffle.permutation(own), min(cfg.minibatches, len(own))):
        rows = torch.from_numpy(index)
        agent.params.grad.zero_()
        loss = 0.5 * (networks.value(agent.net, agent.params, obs[rows]) - target[rows]).square().mean()
        loss.backward()
        p.adam.step(agent.params.flat.numpy(), agent.params.grad.numpy(), lr, cfg.max_grad_norm)
        losses.append(float(loss.detach()))
    s.counts.updates += len(losses)
    return judged(s) | {"value/loss": float(np.mean(losses)), "optim/lr": lr}


def judged(s: State) -> dict[str, float]:
    """How far off it is in worlds that it has not learned from."""
    assert s.rows is not None
    some = s.rows["apart"]
    obs, target = s.rows["obs"][some], s.rows["target"][some]
    v = s.agent.value(np.ascontiguousarray(obs), np.zeros((len(obs), 0), np.float32))
    metrics = {"value/val_loss": np.square(v - target).mean(), "value/v_mean": v.mean(),
               "value/target_mean": s.rows["target"].mean(), "value/target_std": s.rows["target"].std(),
               "value/explained_variance": returns.explained_variance(v, target),
               "data/transitions": len(s.rows["target"]), "data/held_out_rows": some.sum()}  # fmt: skip
    if "ends" in s.rows:  # which a checkpoint did not always hold
        metrics["data/held_out_episodes"] = (s.rows["ends"] & some).sum()
    return {name: float(x) for name, x in metrics.items() if np.isfinite(x)}
