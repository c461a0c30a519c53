"""How good was an action, as data alone tell it? Implicit Q-learning (Kostrikov et al. 2022): A = Q(s, a) - V(s).

    L_V = E |tau - 1[u < 0]| u²,  u = min Q'(s, a) - V(s);    L_Q = E (r + ... + gamma^n V(s_n) - Q(s, a))²

V is an expectile of Q over the actions of the data, so that no action is asked about that the data does not hold. Two
Qs, and slow copies Q' of them. Worlds that were held out say when to stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.config.finetune import FineTune
from relab.train.algos.finetune import equations
from relab.train.algos.finetune.gathering import Gathered
from relab.train.contract import DivergedError
from relab.train.nets import networks
from relab.train.nets.heads import Head
from relab.train.nets.mlps import Adam, follow
from relab.train.nets.networks import Params, mlp_shapes, orthogonal

HELD_OUT = 0.1  # share of the worlds
FAR = 100.0  # times the error before any fit, or the mean squared return: what ends so high is no fit
SLOW = 0.005  # how far the slow copies follow at each step


class Rows(NamedTuple):
    """Transitions of several policies, as tensors."""

    obs: Tensor
    action: Tensor  # features of it: the environment's numbers, or which choice
    total: Tensor
    discount: Tensor
    next_obs: Tensor


class Fitted(NamedTuple):
    """Q - V of judged rows, and how the fit went."""

    q: np.ndarray
    v: np.ndarray
    epochs: int  # until held-out rows stopped getting better
    val_loss: float
    expectile: float  # that V is of the slow copies' Q, measured on the rows that they were fitted to


def features(head: Head, action: np.ndarray) -> np.ndarray:
    """Actions as a network sees them: in the box's units, or one-hot by component."""
    if head.gaussian:
        return np.clip(action, -1.0, 1.0).astype(np.float32)
    return np.concatenate([np.eye(n, dtype=np.float32)[action[..., k]] for k, n in enumerate(head.sizes)], -1)


def rows_of(batches: Sequence[Gathered], head: Head, cfg: FineTune, held_out: bool) -> Rows:
    """Of the worlds that are held out, or of all others; n-step returns never cross from one world into another."""
    parts: list[list[np.ndarray]] = []
    for g in batches:
        T, B = g.shape
        last = max(1, round(HELD_OUT * B))
        cols = np.arange(B - last, B) if held_out else np.arange(B - last if B > 1 else B)
        ahead = equations.n_step_returns(cfg.reward_scale * g.reward, g.terminated, g.ended, cfg.n_step, cfg.gamma)
        next_obs = g.next_obs[ahead.last, np.arange(B)[None]]
        columns = (g.obs, features(head, g.action), ahead.total, ahead.discount, next_obs)
        parts.append([x[:, cols].reshape(T * len(cols), *x.shape[2:]) for x in columns])
    return Rows(*(torch.from_numpy(np.ascontiguousarray(np.concatenate(x), np.float32)) for x in zip(*parts)))


class Critics:
    """Q1, Q2, V and slow copies of the Qs."""

    def __init__(self, obs_dim: int, action_dim: int, cfg: FineTune, draw: np.random.Generator):
        hidden, self.cfg = cfg.critic_layers(), cfg
        inputs = {"q1": obs_dim + action_dim, "q2": obs_dim + action_dim, "v": obs_dim}
        shapes = {key: shape for name, n in inputs.items() for key, shape in mlp_shapes(name, (n, *hidden, 1)).items()}
        self.params, self.slow, self.layers = Params(shapes), Params(shapes), len(hidden) + 1
        for tensor in self.params.named.values():
            if tensor.dim() > 1:
                tensor.detach().copy_(torch.from_numpy(orthogonal(draw, *tensor.shape) * 2.0**0.5))
        self.slow.flat.copy_(self.params.flat)
        self.adam = Adam(self.params.flat.numel())

    def weights(self) -> tuple[Tensor, Tensor]:
        return self.params.flat.clone(), self.slow.flat.clone()

    def load(self, weights: tuple[Tensor, Tensor]) -> None:
        self.params.flat.copy_(weights[0])
        self.slow.flat.copy_(weights[1])

    def q(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        one, two = (networks.mlp(params, name, x, self.layers, self.cfg.activation)[:, 0] for name in ("q1", "q2"))
        return one, two

    def v(self, obs: Tensor) -> Tensor:
        return networks.mlp(self.params, "v", obs, self.layers, self.cfg.activation)[:, 0]

    def losses(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """(L_V, L_Q)."""
        x = torch.cat((rows.obs, rows.action), 1)
        with torch.no_grad():
            best, target = torch.minimum(*self.q(self.slow, x)), rows.total + rows.discount * self.v(rows.next_obs)
        value = equations.expectile_loss(best - self.v(rows.obs), self.cfg.expectile).mean()
        one, two = self.q(self.params, x)
        return value, 0.5 * ((one - target).square().mean() + (two - target).square().mean())

    def step(self, rows: Rows) -> None:
        self.params.grad.zero_()
        value, q = self.losses(rows)
        (value + q).backward()
        self.adam.step(self.params.flat.numpy(), self.params.grad.numpy(), self.cfg.fit_lr)
        follow(self.slow.flat.numpy(), self.params.flat.numpy(), SLOW)


def fit(batches: Sequence[Gathered], judged: Gathered, head: Head, cfg: FineTune, draw: np.random.Generator) -> Fitted:
    """Fit to the batches, until held-out worlds are no better for `patience` epochs; Q and V of the judged rows."""
    rows, apart = rows_of(batches, head, cfg, held_out=False), rows_of(batches, head, cfg, held_out=True)
    critics = Critics(rows.obs.shape[1], rows.action.shape[1], cfg, draw)
    n, best, best_at, kept = len(rows.obs), np.inf, 0, critics.weights()
    with torch.no_grad():
        begun = float(critics.losses(apart)[1])
    parts = max(1, round(n / cfg.fit_minibatch))
    for epoch in range(1, cfg.fit_epochs + 1):
        for index in np.array_split(draw.permutation(n), parts):
            critics.step(Rows(*(column[torch.from_numpy(index)] for column in rows)))
        with torch.no_grad():
            loss = float(critics.losses(apart)[1])
        if loss < best:
            best, best_at = loss, epoch
            kept = critics.weights()
        elif epoch - best_at >= cfg.patience:
            break
    if not best < FAR * max(begun, float(apart.total.square().mean()), 1e-9):
        raise DivergedError(f"the fit of Q and V diverged: their least held-out error is {best:.3g} after"
                            f" {cfg.fit_epochs} passes, and was {begun:.3g} before the first; lower `fit_lr` (now"
                            f" {cfg.fit_lr:g})")  # fmt: skip
    critics.load(kept)
    T, B = judged.shape
    obs = torch.from_numpy(judged.obs.reshape(T * B, -1))
    action = torch.from_numpy(features(head, judged.action).reshape(T * B, -1))
    with torch.no_grad():
        q, v = torch.minimum(*critics.q(critics.params, torch.cat((obs, action), 1))), critics.v(obs)
        gap = torch.minimum(*critics.q(critics.slow, torch.cat((rows.obs, rows.action), 1))) - critics.v(rows.obs)
    held = equations.expectile_of(gap.numpy())
    return Fitted(q.numpy().reshape(T, B), v.numpy().reshape(T, B), best_at, best, held)
