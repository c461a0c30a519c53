"""How does PPO get its gradient? Three engines, one door: `gradient(rows, coefs)` fills params.grad, returns sums.

FastLearner       feed-forward nets on a CPU: derivative by hand, blocks of rows shared out to threads. The bytes do not
                  depend on the number of threads: each block has its own gradient, summed in order.
TorchLearner      feed-forward nets on any device, with an encoder of images or without, by autograd.
SequenceLearner   recurrent nets: truncated back-propagation through segments of `bptt` steps, by autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.train.kernels.crew import Crew
from relab.train.kernels.jit import njit
from relab.train.nets import fastmlp, losses, networks
from relab.train.nets.heads import Head
from relab.train.nets.losses import STATS, Batch, Coefs
from relab.train.nets.mlps import Adam, adam_step, norm_of
from relab.train.nets.networks import Net, Params


class Gradient(NamedTuple):
    """What an engine reports beside the gradient: sums in the order of losses.STATS, and the greatest ratio."""

    sums: np.ndarray
    ratio_max: float


class Steps(NamedTuple):
    """Minibatch steps of one iteration as columns, in order; a step that KL forbade is the last."""

    epoch: np.ndarray  # int64[S]
    sums: np.ndarray  # float64[S, STATS]
    ratio_max: np.ndarray
    norm: np.ndarray  # of the gradient before clipping
    push: np.ndarray  # pull of the entropy bonus against the surrogate
    bias: np.ndarray  # gradient on the critic's output bias, over value_coef
    stopped: np.ndarray  # bool[S]: KL forbade it

    @classmethod
    def allocate(cls, size: int) -> Steps:
        ratio_max, norm, push, bias = np.zeros((4, size))
        sums, stopped = np.zeros((size, len(STATS))), np.zeros(size, bool)
        return cls(np.zeros(size, np.int64), sums, ratio_max, norm, push, bias, stopped)

    def first(self, count: int) -> Steps:
        return Steps(*(column[:count] for column in self))


class Pace(NamedTuple):
    """How far one step may go: Adam's numbers, and where it is held back."""

    lr: float
    b1: float
    b2: float
    eps: float
    max_norm: float
    max_kl: float  # inf: never
    log_std_min: float
    log_std_max: float


class FastLearner:
    one_call = True  # all epochs of small minibatches; False lets `gradient` be called for each

    def __init__(self, net: Net, head: Head, params: Params, chunk: int, crew: Crew):
        self.params, self.chunk, self.crew, threads = params, chunk, crew, crew.size
        self.nets = fastmlp.layout(net, "actor"), fastmlp.layout(net, "critic")
        self.sizes = np.array(head.sizes, np.int64)
        # None for choices: then Numba compiles nothing of the Gaussian
        self.log_std = params["log_std"].detach().numpy() if head.gaussian else None
        width = net.obs_dim + net.out_dim + 1
        self.work = [fastmlp.workspace(chunk, *self.nets) for _ in range(threads)]
        self.room = [np.zeros(chunk * width, np.float32) for _ in range(threads)]
        self.partial = np.zeros((0, params.flat.numel()), np.float32)  # one gradient per block of rows

    def load(self, batch: Batch, obs: np.ndarray, *memory: np.ndarray) -> None:
        self.batch, self.obs = batch, obs

    def takes_whole(self, minibatch: int) -> bool:
        """Is a minibatch one block? Then threads have nothing to share, and an iteration can be one call."""
        return self.one_call and minibatch <= self.chunk

    def epochs(self, order_EN: np.ndarray, cuts: np.ndarray, c: Coefs, pace: Pace, adam: Adam) -> Steps:
        """All minibatch steps of an iteration: rows order_EN[e, cuts[k]:cuts[k + 1]] in turn."""
        steps, theta = Steps.allocate(len(order_EN) * (len(cuts) - 1)), self.params.flat.numpy()
        taken, count = ppo_epochs(
            theta, self.params.grad.numpy(), adam.m, adam.v, adam.updates, *self.nets, self.sizes, self.log_std,
            self.obs, order_EN, cuts, self.batch, c, pace, self.work[0], self.room[0], steps,
        )  # fmt: skip
        adam.updates += taken
        return steps.first(count)

    def compile_backwards(self, rows: np.ndarray, c: Coefs, pace: Pace, adam: Adam) -> None:
        """Compile what `epochs` calls, but not the forward pass, which the run itself compiles meanwhile."""
        theta, grad, actor, _ = self.params.flat.numpy(), self.params.grad.numpy(), *self.nets
        stats, seen = np.zeros(len(STATS)), np.ascontiguousarray(self.obs[rows]).reshape(-1)
        d_out = np.zeros((rows.size, actor.sizes[-1]), np.float32)
        fastmlp.backward(theta, actor, seen, rows.size, self.work[0], d_out, grad)
        losses.ppo_value_grad(d_out[:, :1].copy(), rows, self.batch, c, d_out[:, :1].copy(), stats)
        if self.log_std is None:
            losses.ppo_categorical_grad(d_out, self.sizes, rows, self.batch, c, d_out, stats)
        else:
            losses.ppo_gaussian_grad(d_out, self.log_std, rows, self.batch, c, d_out, d_out[0], stats)
        losses.entropy_push(grad[:0], stats, c.ent_coef)
        adam_step(theta, grad, adam.m, adam.v, 1, pace.lr, pace.b1, pace.b2, pace.eps, pace.max_norm)

    def gradient(self, rows: np.ndarray, c: Coefs) -> Gradient:
        blocks = -(-len(rows) // self.chunk)
        if len(self.partial) < blocks:
            self.partial = np.zeros((blocks, self.params.flat.numel()), np.float32)
        sums, top = np.zeros((blocks, len(STATS))), np.zeros(blocks)
        theta, partial = self.params.flat.numpy(), self.partial[:blocks]

        def work(worker: int) -> None:
            first = (worker, self.crew.size, self.chunk)
            ppo_blocks(
                *first, theta, *self.nets, self.sizes, self.log_std, self.obs, rows, self.batch, c,
                self.work[worker], self.room[worker], partial, sums, top,
            )  # fmt: skip

        self.crew.share(work, blocks)
        torch.sum(torch.from_numpy(partial), 0, out=self.params.grad)
        return Gradient(sums.sum(0), float(top.max()))


@njit(cache=True, nogil=True)
def ppo_blocks(
    first, stride, chunk, theta, actor, critic, sizes, log_std, obs, rows, batch, c, work, room, partial, sums, top
):
    """Gradients of every `stride`-th block of `chunk` rows, beginning with block `first`, into partial[block]."""
    for block in range(first, partial.shape[0], stride):
        mine = rows[block * chunk : (block + 1) * chunk]
        top[block] = block_gradient(
            theta, actor, critic, sizes, log_std, obs, mine, batch, c, work, room, partial[block], sums[block]
        )


@njit(cache=True, nogil=True)
def block_gradient(theta, actor, critic, sizes, log_std, obs, rows, batch, c, work, room, grad, sums):
    """dL/dtheta of these rows into `grad`, their statistics onto `sums`; returns the greatest ratio."""
    D, K, n = actor.sizes[0], actor.sizes[actor.sizes.size - 1], rows.size
    x, d_out, d_v = room[: n * D], room[n * D : n * (D + K)], room[n * (D + K) : n * (D + K + 1)]
    grid = x.reshape(n, D)
    for i in range(n):
        for j in range(D):
            grid[i, j] = obs[rows[i], j]
    out, d_out_NK = fastmlp.forward(theta, actor, x, n, work), d_out.reshape(n, K)
    if log_std is None:
        top = losses.ppo_categorical_grad(out, sizes, rows, batch, c, d_out_NK, sums)
    else:  # log_std is the last of the parameters
        top = losses.ppo_gaussian_grad(out, log_std, rows, batch, c, d_out_NK, grad[theta.size - K :], sums)
    fastmlp.backward(theta, actor, x, n, work, d_out_NK, grad)
    v, d_v_N1 = fastmlp.forward(theta, critic, x, n, work), d_v.reshape(n, 1)
    losses.ppo_value_grad(v, rows, batch, c, d_v_N1, sums)
    fastmlp.backward(theta, critic, x, n, work, d_v_N1, grad)
    return top


@njit(cache=True, nogil=True)
def ppo_epochs(
    theta, grad, m, v, updates, actor, critic, sizes, log_std, obs, order_EN, cuts, batch, c, pace, work, room, steps
):
    """Learn from all minibatches, into `steps`; (optimiser steps taken, minibatches looked at)."""
    K = 0 if sizes.size else actor.sizes[actor.sizes.size - 1]
    bias, at, taken = critic.bias[critic.bias.size - 1], 0, 0
    for epoch in range(order_EN.shape[0]):
        for k in range(cuts.size - 1):
            rows = order_EN[epoch, cuts[k] : cuts[k + 1]]
            mine = Coefs(c.clip, c.clip_value, c.value_coef, c.ent_coef, 1.0 / max(rows.size, 1))
            steps.epoch[at] = epoch
            steps.ratio_max[at] = block_gradient(
                theta, actor, critic, sizes, log_std, obs, rows, batch, mine, work, room, grad, steps.sums[at]
            )
            steps.push[at] = losses.entropy_push(grad[theta.size - K :], steps.sums[at], c.ent_coef)
            steps.bias[at] = grad[bias] / c.value_coef if c.value_coef else 0.0
            if steps.sums[at, 3] / max(steps.sums[at, 7], 1.0) > pace.max_kl:
                steps.norm[at], steps.stopped[at] = norm_of(grad), True
                return taken, at + 1
            taken += 1
            steps.norm[at] = adam_step(
                theta, grad, m, v, updates + taken, pace.lr, pace.b1, pace.b2, pace.eps, pace.max_norm
            )
            clamp(theta[theta.size - K :], pace.log_std_min, pace.log_std_max)
            at += 1
    return taken, at


@njit(cache=True, nogil=True)
def clamp(x, low, high):
    """A Gaussian's log_std, projected: a clamp in the forward pass would let the gradient die at the bound."""
    for i in range(x.size):
        x[i] = min(max(x[i], np.float32(low)), np.float32(high))


class TorchLearner:
    def __init__(self, net: Net, head: Head, params: Params, chunk: int):
        self.net, self.head, self.params, self.chunk = net, head, params, chunk

    def load(self, batch: Batch, obs: np.ndarray, memory: np.ndarray, fresh: np.ndarray) -> None:
        self.rows = to_device(batch, self.params)
        self.obs = torch.from_numpy(obs).to(self.params.flat.device)

    def gradient(self, rows: np.ndarray, c: Coefs) -> Gradient:
        return in_pieces(self.params, rows, self.chunk, lambda index: self.piece(index, c))

    def piece(self, index: Tensor, c: Coefs) -> Gradient:
        obs, rows = self.obs[index], {name: column[index] for name, column in self.rows.items()}
        out, v = networks.both(self.net, self.params, obs)
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
        return in_pieces(self.params, rows, self.chunk, lambda index: self.piece(index, c))

    def piece(self, index: Tensor, c: Coefs) -> Gradient:
        rows = {name: column[:, index] for name, column in self.rows.items()}
        out, v, _ = networks.unroll(self.net, self.params, self.obs[:, index], self.memory[index], self.fresh[:, index])
        return backward(self.head, self.params, out, v, rows, c)


def in_pieces(params: Params, rows: np.ndarray, chunk: int, piece: Callable[[Tensor], Gradient]) -> Gradient:
    """The gradient over all rows, `chunk` at a time: what autograd keeps of one piece stays small."""
    params.grad.zero_()
    index = torch.from_numpy(rows).to(params.flat.device)
    pieces = [piece(index[i : i + chunk]) for i in range(0, len(rows), chunk)]
    return Gradient(np.sum([f.sums for f in pieces], 0), max(f.ratio_max for f in pieces))


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
