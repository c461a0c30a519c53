"""What is best to do? An actor and a critic that learn from dreams; the critic is held to real rewards as well.

    advantage = (R - v) / max(1, S),   L_actor = -w (ln pi(a|s) sg(advantage) + eta H),   L_critic = w CE(v, sg(R))

w is the probability that the dream got there. Names of tensors: H steps of a dream, N dreams (one from every real row).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.config.dreamer import Dreamer
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import fast_dream, fast_layers, layers
from relab.train.algos.dreamer.actions import Actions
from relab.train.algos.dreamer.fast_layers import flat_of
from relab.train.algos.dreamer.layers import Shapes, Weights
from relab.train.algos.dreamer.one_hot import NONE, Hot
from relab.train.algos.dreamer.world_model import MODEL, Batch, Course, WorldModel

ACTOR, CRITIC = "actor", "critic"


class Dream(NamedTuple):
    """H steps from N states: H + 1 states, the first of them real, and what was done in all but the last."""

    feature: Tensor  # [H + 1, N, F]
    action: Tensor  # [H, N, dim]
    policy: Tensor  # [H, N, out]: the actor's outputs, with a gradient
    reward: Tensor  # [H + 1, N]: that arrives with a state; the first is not used
    goes_on: Tensor  # [H + 1, N]: probability that the episode is not over in a state
    returns: Tensor  # [H, N]
    logits: Tensor  # [H + 1, N, bins]: the critic's, with a gradient
    value: Tensor  # [H + 1, N]: what the critic says, as targets are made of
    weight: Tensor  # [H + 1, N]: probability to get there
    hot: Hot  # which latents are 1

    @property
    def starts(self) -> Tensor:
        return self.returns[0]


@dataclass(frozen=True)
class Behaviour:
    """Actor and critic; `slow` is a copy of the critic that follows."""

    cfg: Dreamer
    actions: Actions
    params: Weights
    slow: Weights
    support: eq.Support

    def policy(self, feature: Tensor) -> Tensor:
        return layers.head(self.params, ACTOR, feature, self.cfg.layers)

    def critic(self, feature: Tensor, hot: Hot = NONE) -> Tensor:
        return layers.head(self.params, CRITIC, feature, self.cfg.layers, hot)

    def value(self, feature: Tensor) -> Tensor:
        return self.support.mean(self.critic(feature))

    def slow_value(self, feature: Tensor, hot: Hot = NONE) -> Tensor:
        return self.support.mean(layers.head(self.slow, CRITIC, feature, self.cfg.layers, hot))

    # ---- Dreaming

    def dream(self, model: WorldModel, course: Course, batch: Batch, uniform: Tensor) -> Dream:
        """From every row of the batch; `uniform` [H, N, stoch + draws]. The actor learns by REINFORCE: no gradient."""
        first = course.feature.flatten(0, 1).detach()
        if model.fast_core is not None:
            feature, action, policy, hot = self.imagine_fast(model, first, uniform)
        else:
            feature, action = self.imagine(model, first, uniform)
            policy, hot = self.policy(feature[:-1]), NONE
        with torch.no_grad():
            reward, goes_on = model.earned(feature, hot)
            goes_on[0] = 1 - batch.terminal.flatten()  # the first state is real
        logits = self.critic(feature, hot)
        value, live = self.support.mean(logits), self.cfg.gamma * goes_on
        returns = eq.lambda_returns(reward, live, value, self.cfg.lam)
        weight = torch.cumprod(torch.cat((goes_on[:1], live[1:])), 0)
        return Dream(feature, action, policy, reward, goes_on, returns, logits, value, weight, hot)

    @torch.no_grad()
    def imagine(self, model: WorldModel, first: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """States [H + 1, N, F] and actions [H, N, dim] of dreams that begin in the states `first` [N, F]."""
        if model.fast_core is not None:
            return self.imagine_fast(model, first, uniform)[:2]
        S, (h, z) = self.cfg.stoch, first.split((self.cfg.deter, model.latent), -1)
        features, actions = [first], []
        for u in uniform:
            action = self.actions.draw(self.policy(features[-1]), u[:, S:])
            h = model.core(h, z, model.effect(self.actions.encode(action)))
            z = eq.sample(model.prior(h), u[:, :S]).flatten(-2)
            features.append(torch.cat((h, z), -1))
            actions.append(action)
        return torch.stack(features), torch.stack(actions)

    def imagine_fast(self, model: WorldModel, first: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor, Hot]:
        """(states, actions, the actor's outputs, which latents are 1); two halves are dreamt side by side."""
        (H, N, _), p, a, L = uniform.shape, self.params, self.actions, model.latent
        actor, prior, effect = p.layout(ACTOR), p.layout(f"{MODEL}/prior"), p.place(f"{MODEL}/action/weight")
        turned = fast_layers.turned_of(p, actor, L), flat_of(p[f"{MODEL}/input/weight"].detach().T)
        choices = fast_dream.Choices(np.array(a.sizes, np.int64), a.dim, a.mix)
        feature, action, out = torch.empty(H + 1, *first.shape), torch.empty(H, N, a.dim), torch.empty(H, N, actor.out)
        feature[0], kept = first, np.empty(H * N * fast_layers.room(actor), np.float32)
        hot = Hot(np.zeros((H + 1) * N * self.cfg.stoch, np.int32), self.cfg.stoch, L)
        theta, drawn, *filled = (flat_of(x) for x in (p.flat, uniform, feature, action, out))

        def share(_: int, begin: int, n: int) -> None:
            fast_dream.dream(theta, model.fast_core, actor, prior, effect, choices, turned, drawn, H, N, begin, n,
                             *filled, kept, hot.ones)  # type: ignore[call-arg] # fmt: skip

        fast_layers.share_rows(p, N, N - N // 2, share)
        policy = fast_layers.Redone.apply(out, p[f"{ACTOR}/0/weight"], p, actor, feature, kept, hot)
        return feature, action.long() if a.sizes else action, policy, hot

    # ---- Learning

    def actor_loss(self, dream: Dream, scale: float, entropy: float) -> tuple[Tensor, Tensor, Tensor]:
        """(loss [H, N], entropy [H, N], advantage [H, N])."""
        advantage = (dream.returns - dream.value[:-1]) / scale
        logp, nats = self.actions.judge(dream.policy, dream.action)
        gain = logp * advantage + entropy * nats
        return -dream.weight[:-1] * gain, nats, advantage

    def critic_loss(self, logits: Tensor, feature: Tensor, target: Tensor, hot: Hot = NONE) -> Tensor:
        """The critic's distance to the returns and to its slow copy: [..., bins], [..., F], [...] -> [...]."""
        if not self.cfg.slow_scale:
            return self.support.loss(logits, target)
        with torch.no_grad():
            slow = self.slow_value(feature, hot)
        return self.support.loss(logits, target, slow, weights=(1.0, self.cfg.slow_scale))

    def replay_returns(self, batch: Batch, dream: Dream) -> Tensor:
        """Returns [T - 1, B] of real rewards; each row's value is what dreams from there earn."""
        value = dream.starts.view_as(batch.reward)
        live = self.cfg.gamma * (1 - batch.terminal)
        return eq.lambda_returns(batch.reward, live, value, self.cfg.lam * (1 - batch.last))

    @torch.no_grad()
    def follow(self) -> None:
        """The slow copy takes a share of the critic over."""
        at = self.params.flat.numel() - self.slow.flat.numel()  # the critic's parameters come last
        self.slow.flat.lerp_(self.params.flat[at:], self.cfg.slow_rate)


def shapes(cfg: Dreamer, feature: int, actions: Actions) -> Shapes:
    return layers.mlp_shapes(ACTOR, feature, cfg.units, cfg.layers, actions.out_dim) | critic_shapes(cfg, feature)


def critic_shapes(cfg: Dreamer, feature: int) -> Shapes:
    return layers.mlp_shapes(CRITIC, feature, cfg.units, cfg.layers, cfg.bins)
