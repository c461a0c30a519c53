"""What stands in a seam's place when a fault is planted in Dreamer? Each takes the original, returns the faulty one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relab.base.streams import generator
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import fast_scan, layers
from relab.train.algos.dreamer.agent import FIRST
from relab.train.algos.dreamer.behaviour import Dream
from relab.train.algos.dreamer.layers import Weights
from relab.train.algos.dreamer.optimiser import PARTS
from relab.train.algos.dreamer.world_model import Course

TOP = float(np.expm1(5.0))  # of eleven bins at symexp(-5 .. 5): 147.41
SLOWER = 8  # times that the worlds are behind the learner

# ---- The world model


def averaged(kl: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The KL of the latents is their mean, and lies under the free bits whatever they say."""
    return lambda p, q: kl(p, q) / p.shape[-1]


def core_unmixed(core_of: Callable[..., Any]) -> Callable[..., Any]:
    """The kernels spread nothing evenly, neither of posteriors nor of priors in dreams."""
    return lambda *sizes: core_of(*sizes)._replace(mix=0.0)


def unmixed(probs: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The softmax as it is."""

    def plain(model: Any, logits: Tensor) -> Tensor:
        return probs(dataclasses.replace(model, cfg=dataclasses.replace(model.cfg, unimix=0.0)), logits)

    return plain


def posterior_unmixed(scan: Callable[..., Any]) -> Callable[..., Any]:
    """Of the posterior nothing is spread evenly; of the prior it is."""

    def plain(model: Any, seen: Tensor, effect: Tensor, keep: Tensor, uniform: Tensor, start: Any) -> Any:
        core = model.fast_core
        assert core is not None, "planted in the kernels"
        h, z, post = fast_scan.Scan.apply(seen, effect, keep, uniform, start, model.params, core._replace(mix=0.0))
        return h, z, post.unflatten(-1, (model.cfg.classes, model.cfg.stoch))

    return plain


BLIND = "model/posterior/weight"


def born_blind(init: Callable[..., None]) -> Callable[..., None]:
    """The posterior begins without a look at the memory."""

    def without(params: Weights, *rest: Any) -> None:
        init(params, *rest)
        if BLIND in params.named:
            params[BLIND].detach().zero_()

    return without


def stays_blind(step: Callable[..., float]) -> Callable[..., float]:
    """And no step gives it one."""

    def without(optimiser: Any, turn: Any) -> float:
        norm = step(optimiser, turn)
        optimiser.params[BLIND].detach().zero_()
        return norm

    return without


# ---- Rows


def actions_late(filled: Callable[..., Any]) -> Callable[..., Any]:
    """A row is told of the action before the one that led to it."""

    def late(*args: Any, **options: Any) -> Any:
        rows = filled(*args, **options)
        return rows._replace(action=np.concatenate((np.zeros_like(rows.action[:1]), rows.action[:-1])))

    return late


def never_fresh(filled: Callable[..., Any]) -> Callable[..., Any]:
    """Memories go on through the ends of episodes inside of a sequence."""

    def through(*args: Any, **options: Any) -> Any:
        rows = filled(*args, **options)
        rows.fresh[1:] = 0.0
        return rows

    return through


def last_action_kept(filled: Callable[..., Any]) -> Callable[..., Any]:
    """The first row of an episode is told of the last action of the one before."""

    def kept(*args: Any, **options: Any) -> Any:
        rows = filled(*args, **options)
        for t in range(1, len(rows.fresh)):
            begins = rows.fresh[t] > 0
            rows.action[t][begins] = rows.action[t - 1][begins]
        return rows

    return kept


def last_action_told(observe: Callable[..., Any]) -> Callable[..., Any]:
    """And that action is not cleared with the memory."""

    def observed(model: Any, batch: Any, uniform: Tensor, start: Any = None) -> Any:
        keep, effect = 1 - batch.fresh, model.effect(batch.action)
        effect[0] = 0.0  # nothing is known of what came before a sequence
        h, z, post = model.scan(model.see(batch.obs), effect, keep, uniform, start or model.blank(keep.shape[1]))
        return Course(h, z, post, model.prior(h))

    return observed


def outruns(due: Callable[..., int]) -> Callable[..., int]:
    """The worlds bring a fraction of the rows that the learner uses up."""
    return lambda counts, starts, ratio: due(counts, starts, ratio * SLOWER)


# ---- Actor and critic


def returns_early(lambda_returns: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """R_t is made of the reward and the value of row t, and bootstraps from the last row but one."""

    def early(reward: Tensor, live: Tensor, value: Tensor, lam: Any) -> Tensor:
        moved = [torch.cat((x[:1], x[:-1])) for x in (reward, live, value)]
        return lambda_returns(*moved, lam)

    return early


def narrow(support_of: Callable[..., Any]) -> Callable[..., Any]:
    """The bins end at 147.4, and nothing is said about it."""
    return lambda cfg, spec: eq.Support.of(-TOP, TOP, cfg.bins, cfg.spacing)


def live_returns(dream: Callable[..., Any]) -> Callable[..., Any]:
    """The values in the targets keep their gradient."""

    def live(b: Any, *args: Any) -> Any:
        made = dream(b, *args)
        value = made.logits.softmax(-1) @ b.support.values
        goes_on, after, returns = b.cfg.gamma * made.goes_on, value[-1], []
        for t in range(len(made.returns) - 1, -1, -1):
            after = made.reward[t + 1] + goes_on[t + 1] * ((1 - b.cfg.lam) * value[t + 1] + b.cfg.lam * after)
            returns.append(after)
        return made._replace(returns=torch.stack(returns[::-1]))

    return live


def live_loss(critic_loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The cross-entropy whose target has a gradient too."""

    def live(b: Any, logits: Tensor, feature: Tensor, target: Tensor, *hot: Any) -> Tensor:
        if not target.requires_grad:
            return critic_loss(b, logits, feature, target, *hot)
        bins, weights = b.support.neighbours(target)
        logs = logits.log_softmax(-1).gather(-1, bins)
        return critic_loss(b, logits, feature, target.detach(), *hot) - ((weights - weights.detach()) * logs).sum(-1)

    return live


def numbers_alone(measure: Callable[..., Any]) -> Callable[..., Any]:
    """No fault: what only looks at a dream gets its returns without gradients."""

    def look(owner: Any, *args: Any) -> Any:
        plain = [x._replace(returns=x.returns.detach()) if isinstance(x, Dream) else x for x in args]
        return measure(owner, *plain)

    return look


def stays_on(note: Callable[..., None]) -> Callable[..., None]:
    """The focus begins with the first update and never ends."""

    def stuck(focus: Any, surprise: Any) -> None:
        focus.left = focus.updates

    return stuck


def waits_whole(lets_learn: Callable[..., bool]) -> Callable[..., bool]:
    """While the focus is on, actor and critic wait in every update."""
    return lambda focus: not focus.on


def actor_anew(load: Callable[..., None]) -> Callable[..., None]:
    """Actor and critic, and what their optimiser remembers, are those of a new run."""

    def partly(s: Any, tree: dict[str, Any]) -> None:
        load(s, tree)
        fresh = Weights({name: tuple(p.shape) for name, p in s.agent.params.named.items()})
        layers.init(fresh, generator(0, "another beginning"), FIRST)
        began = min(s.agent.params.place(name) for name in s.agent.params.named if not name.startswith("model/"))
        for kept, new in ((s.agent.params.flat, fresh.flat), (s.optimiser.m, None), (s.optimiser.v, None)):
            kept[began:] = 0.0 if new is None else new[began:]
        s.optimiser.updates[[PARTS.index("actor"), PARTS.index("critic")]] = 0
        s.agent.copy_weights()

    return partly
