"""How does PPO get its gradient? Three engines, one door: `gradient(rows, coefs)` fills params.grad, returns sums.

FastLearner       feed-forward nets on a CPU: derivative by hand, blocks of rows shared out to threads. The bytes do not
                  depend on the number of threads: each block has its own gradient, summed in order.
TorchLearner      feed-forward nets on any device, by autograd.
SequenceLearner   recurrent nets: truncated back-propagation through segments of `bptt` steps, by autograd.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab import losses, nets
from relab.fastmlp import FastMLP
from relab.heads import Head
from relab.losses import STATS, Batch, Coefs
from relab.nets import Net, Params


class Gradient(NamedTuple):
    """What an engine reports beside the gradient: sums in the order of losses.STATS, and the greatest ratio."""

    sums: np.ndarray
    ratio_max: float


class Block:
    """One worker's networks and buffers for up to `rows` rows."""

    def __init__(self, net: Net, params: Params, rows: int):
        self.actor, self.critic = (fast_mlp(net, params, name, rows) for name in ("actor", "critic"))
        self.obs, self.d_out, self.d_v = (torch.empty(rows, n) for n in (net.obs_dim, net.out_dim, 1))


def fast_mlp(net: Net, params: Params, name: str, rows: int) -> FastMLP:
    layers = range(len(net.hidden) + 1)
    weights, biases = ([params[f"{name}/{i}/{part}"] for i in layers] for part in ("weight", "bias"))
    return FastMLP(weights, biases, rows, net.activation)


class FastLearner:
    def __init__(self, net: Net, head: Head, params: Params, chunk: int, threads: int):
        self.net, self.head, self.params, self.chunk = net, head, params, chunk
        self.blocks = [Block(net, params, chunk) for _ in range(threads)]
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.sizes = np.array(head.sizes, np.int64)
        self.log_std = params["log_std"].detach().numpy() if head.gaussian else np.zeros(0, np.float32)
        self.partial = torch.zeros(0, params.flat.numel())  # one gradient per block of rows
        self.views: list[dict[str, Tensor]] = []

    def load(self, batch: Batch, obs: np.ndarray, memory: np.ndarray, fresh: np.ndarray) -> None:
        self.batch, self.obs = batch, torch.from_numpy(obs)

    def gradient(self, rows: np.ndarray, c: Coefs) -> Gradient:
        pieces = [rows[i : i + self.chunk] for i in range(0, len(rows), self.chunk)]
        if len(self.partial) < len(pieces):
            self.partial = torch.zeros(len(pieces), self.params.flat.numel())
            self.views = [nets.split(row, nets.shapes(self.net)) for row in self.partial]
        sums, top = np.zeros((len(pieces), len(STATS))), np.zeros(len(pieces))

        def work(worker: int) -> None:
            for k in range(worker, len(pieces), len(self.blocks)):
                top[k] = self.block_gradient(self.blocks[worker], pieces[k], c, self.views[k], sums[k])

        if self.pool is None or len(pieces) == 1:
            for worker in range(len(self.blocks)):
                work(worker)
        else:
            list(self.pool.map(work, range(len(self.blocks))))
        torch.sum(self.partial[: len(pieces)], 0, out=self.params.grad)
        return Gradient(sums.sum(0), float(top.max()))

    @torch.no_grad()
    def block_gradient(
        self, block: Block, rows: np.ndarray, c: Coefs, grads: dict[str, Tensor], sums: np.ndarray
    ) -> float:
        """Gradient of one block of rows into `grads`; returns the greatest ratio."""
        n = len(rows)
        obs = torch.index_select(self.obs, 0, torch.from_numpy(rows), out=block.obs[:n])
        out, v = block.actor.forward(obs).numpy(), block.critic.forward(obs).numpy()
        d_out, d_v = block.d_out[:n], block.d_v[:n]
        if self.head.gaussian:
            args = (grads["log_std"].numpy(), d_v.numpy(), sums)
            top = losses.ppo_gaussian_grad(out, self.log_std, v, rows, self.batch, c, d_out.numpy(), *args)
        else:
            top = losses.ppo_categorical_grad(out, self.sizes, v, rows, self.batch, c, d_out.numpy(), d_v.numpy(), sums)
        for name, mlp, delta in (("actor", block.actor, d_out), ("critic", block.critic, d_v)):
            pairs = [(grads[f"{name}/{i}/weight"], grads[f"{name}/{i}/bias"]) for i in range(len(mlp.weights))]
            mlp.backward(obs, delta, pairs)
        return float(top)


class TorchLearner:
    def __init__(self, net: Net, head: Head, params: Params, chunk: int):
        self.net, self.head, self.params, self.chunk = net, head, params, chunk

    def load(self, batch: Batch, obs: np.ndarray, memory: np.ndarray, fresh: np.ndarray) -> None:
        self.rows = to_device(batch, self.params)
        self.obs = torch.from_numpy(obs).to(self.params.flat.device)

    def gradient(self, rows: np.ndarray, c: Coefs) -> Gradient:
        self.params.grad.zero_()
        index = torch.from_numpy(rows).to(self.obs.device)
        found = [self.piece(index[i : i + self.chunk], c) for i in range(0, len(rows), self.chunk)]
        return Gradient(np.sum([f.sums for f in found], 0), max(f.ratio_max for f in found))

    def piece(self, index: Tensor, c: Coefs) -> Gradient:
        obs, rows = self.obs[index], {name: column[index] for name, column in self.rows.items()}
        out, v = nets.policy(self.net, self.params, obs), nets.value(self.net, self.params, obs)
        return backward(self.head, self.params, out, v, rows, c)


class SequenceLearner:
    """Rows are segments here: a sample is `bptt` steps of one agent, begun from the memory it had then."""

    def __init__(self, net: Net, head: Head, params: Params, chunk: int, bptt: int):
        self.net, self.head, self.params, self.bptt = net, head, params, bptt
        self.chunk = max(1, chunk // bptt)

    def load(self, batch: Batch, obs: np.ndarray, memory: np.ndarray, fresh: np.ndarray) -> None:
        device, cut = self.params.flat.device, lambda x: segments(torch.from_numpy(x), self.bptt)
        self.rows = {name: segments(column, self.bptt) for name, column in to_device(batch, self.params).items()}
        self.obs, self.fresh = cut(obs).to(device), cut(fresh).to(device)
        self.memory = cut(memory)[0].to(device)

    def gradient(self, rows: np.ndarray, c: Coefs) -> Gradient:
        self.params.grad.zero_()
        index = torch.from_numpy(rows).to(self.obs.device)
        found = [self.piece(index[i : i + self.chunk], c) for i in range(0, len(rows), self.chunk)]
        return Gradient(np.sum([f.sums for f in found], 0), max(f.ratio_max for f in found))

    def piece(self, index: Tensor, c: Coefs) -> Gradient:
        rows = {name: column[:, index] for name, column in self.rows.items()}
        out, v, _ = nets.unroll(self.net, self.params, self.obs[:, index], self.memory[index], self.fresh[:, index])
        return backward(self.head, self.params, out, v, rows, c)


def backward(head: Head, params: Params, out: Tensor, v: Tensor, rows: dict[str, Tensor], c: Coefs) -> Gradient:
    log_std = params.named.get("log_std")
    loss, sums, top = losses.ppo(head, out, log_std, v, rows, c)
    loss.backward()
    return Gradient(sums.numpy(), top)


def to_device(batch: Batch, params: Params) -> dict[str, Tensor]:
    return {name: torch.from_numpy(column).to(params.flat.device) for name, column in batch._asdict().items()}


def segments(x: Tensor, bptt: int) -> Tensor:
    """[T, B, ...] -> [bptt, S, ...], S = T/bptt * B: consecutive steps stay together."""
    T, B = x.shape[:2]
    return x.view(T // bptt, bptt, B, *x.shape[2:]).transpose(0, 1).reshape(bptt, -1, *x.shape[2:])
