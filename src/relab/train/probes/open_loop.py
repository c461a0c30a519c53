"""How well does the world model foresee what it does not see? Its predictions in episodes that it never learned from.

The model sees `context` steps, then only the actions that are taken. value: squared error of the foreseen observations
(images, or numbers in symlog) over their variance, mean over components and steps: 0 is perfect, 1 as bad as always
saying the mean. noise: standard error over episodes. Steps after the end of an episode do not count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.base.streams import generator, world_seeds
from relab.train import rollout
from relab.train.algos.dreamer.agent import Agent
from relab.train.algos.dreamer.world_model import Start
from relab.train.envs.base import Env, Worlds
from relab.train.probes.result import ProbeResult
from relab.train.probes.round import Round


class Walk(NamedTuple):
    """First steps of new episodes, time first; rows: worlds x agents."""

    obs: Tensor  # [T, B, D]: what the decoder is to say: in symlog, or an image
    raw: np.ndarray  # the same as seen
    action: Tensor  # [T, B, in_dim]: taken in the row before
    reward: Tensor  # [T, B]: that arrived with the row
    counts: Tensor  # [T, B]: 1 while the episode goes on


def open_loop(at: Round) -> list[ProbeResult]:
    cfg, agent = at.cfg.open_loop, at.state.agent
    walk = walked(at, agent, cfg.walks, cfg.context + cfg.ahead)
    foreseen, seen, reward = predictions(agent, walk, cfg.context, stream(at))
    after, weight = walk.obs[cfg.context :], walk.counts[cfg.context :]
    spread = variance(walk, agent.model.image is not None)
    error = ((foreseen - after).square() / spread).mean(-1)
    still = ((walk.obs[cfg.context - 1] - after).square() / spread).mean(-1)
    counted, per_row = weight.sum(), (error * weight).sum(0) / weight.sum(0).clamp(min=1)
    rows = per_row[weight.sum(0) > 0]
    more = {
        "first": at_step(error, weight, 0), "middle": at_step(error, weight, cfg.ahead // 2),
        "last": at_step(error, weight, cfg.ahead - 1), "still": share(still, weight),
        "seen": share(((seen - walk.obs[: cfg.context]).square() / spread).mean(-1), walk.counts[: cfg.context]),
        "reward_error": share((reward - walk.reward[cfg.context :]).abs(), weight),
        **alignment(agent, walk, spread, at), "rows": int(counted), "context": cfg.context, "ahead": cfg.ahead,
    }  # fmt: skip
    noise = float(rows.std()) / math.sqrt(len(rows)) if len(rows) > 1 else math.nan
    return [ProbeResult("open_loop", "open_loop_error", share(error, weight), noise, len(rows), "share", more)]


def stream(at: Round) -> np.random.Generator:
    return generator(at.seed, f"probe/open_loop/{at.iteration}")


def alignment(agent: Agent, walk: Walk, spread: Tensor, at: Round) -> dict[str, float]:
    """Error with the actions told a step late, and a step early, over that with the actions as they were taken.

    Below 1 the model takes rows to be told of another action than they are. By the same draws; without the last step,
    whose own action was never taken.
    """
    context, blank = at.cfg.open_loop.context, torch.zeros_like(walk.action[:1])
    orders = {"as_taken": walk.action, "told_late": torch.cat((blank, walk.action[:-1])),
            "told_early": torch.cat((walk.action[1:], blank))}  # fmt: skip
    after, weight = walk.obs[context:-1], walk.counts[context:-1]
    errors = {}
    for name, action in orders.items():
        foreseen = predictions(agent, walk._replace(action=action), context, stream(at))[0][:-1]
        errors[name] = share(((foreseen - after).square() / spread).mean(-1), weight)
    return {name: ratio(errors[name], errors["as_taken"]) for name in ("told_late", "told_early")}


def ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.nan


def share(x: Tensor, weight: Tensor) -> float:
    total = float(weight.sum())
    return float((x * weight).sum()) / total if total else math.nan


def at_step(x: Tensor, weight: Tensor, k: int) -> float:
    return share(x[k], weight[k])


def variance(walk: Walk, image: bool) -> Tensor:
    """Of each component over all counted rows; what never varies weighs nothing. Pixels share theirs."""
    rows = walk.obs[walk.counts > 0]
    spread = rows.var(0)
    if image:
        return spread.mean().clamp(min=1e-8)
    return torch.where(spread > 0, spread, torch.tensor(math.inf))


def walked(at: Round, agent: Agent, worlds: int, steps: int) -> Walk:
    return walk_of(at.env, agent, at.seed, f"probe/open_loop/{at.iteration}", worlds, steps)


def walk_of(env: Env, agent: Agent, seed: int, where: str, worlds: int, steps: int) -> Walk:
    """The first `steps` rows of new episodes under the policy; `where` names their random streams."""
    made, rows = Worlds(env, worlds), worlds * env.spec.agents
    made.reset(world_seeds(seed, f"{where}/env", worlds))
    cursor = rollout.start(made, agent, world_seeds(seed, f"{where}/action", rows))
    obs, codes = [made.obs.reshape(rows, -1).copy()], [torch.zeros(rows, agent.actions.in_dim)]
    counts, rewards, going = [made.alive.reshape(rows).copy()], [np.zeros(rows)], made.alive.reshape(rows).copy()
    for _ in range(steps - 1):
        acted = agent.act(made.obs.reshape(rows, -1), cursor.memory_BM, cursor.rng_B)
        cursor.memory_BM = acted.memory.copy()
        codes.append(agent.actions.encode(torch.from_numpy(acted.action.copy())))
        step = made.step(agent.to_env(acted.action).reshape(made.action_shape))
        going = going & ~(step.terminated | step.truncated).reshape(rows) & step.alive.reshape(rows)
        obs.append(step.obs.reshape(rows, -1).copy())
        rewards.append(step.reward.reshape(rows).copy())
        counts.append(going.copy())
    raw = np.stack(obs).astype(np.float32)
    as_floats = (torch.from_numpy(np.stack(x).astype(np.float32)) for x in (rewards, counts))
    return Walk(agent.model.target(torch.from_numpy(raw)), raw, torch.stack(codes), *as_floats)


@torch.no_grad()
def predictions(agent: Agent, walk: Walk, context: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """(observations foreseen after the context, those reconstructed inside of it, rewards foreseen)."""
    m, (T, B) = agent.model, walk.reward.shape
    uniform = lambda *shape: torch.from_numpy(rng.random((*shape, m.cfg.stoch), np.float32))  # noqa: E731
    seen, effect = m.see(torch.from_numpy(walk.raw[:context])), m.effect(walk.action[:context])
    keep = torch.ones(context, B)
    keep[0] = 0.0
    h, z, _ = m.scan(seen, effect, keep, uniform(context, B), Start(*m.blank(B)))
    features, (memory, latents) = [], (h[-1], z[-1])
    for t in range(context, T):
        memory, latents = m.predict(memory, latents, walk.action[t], uniform(B))
        features.append(torch.cat((memory, latents), -1))
    after = torch.stack(features)
    return m.decode(after), m.decode(torch.cat((h, z), -1)), m.support.mean(m.reward(after))


@torch.no_grad()
def reconstructed(agent: Agent, walk: Walk, rng: np.random.Generator) -> Tensor:
    """What the model makes of every row while it looks at each: [T, B, D]."""
    m, (T, B) = agent.model, walk.reward.shape
    keep = torch.ones(T, B)
    keep[0] = 0.0
    uniform = torch.from_numpy(rng.random((T, B, m.cfg.stoch), np.float32))
    h, z, _ = m.scan(m.see(torch.from_numpy(walk.raw)), m.effect(walk.action), keep, uniform, m.blank(B))
    return m.decode(torch.cat((h, z), -1))
