"""How is a small batch collected in one call? The loop of rollout.collect, compiled together with an env's physics.

With a handful of worlds a step of the physics takes a microsecond and Python around it takes sixty. An env whose verbs
are kernels can offer `collect`, three lines at module level (docs/environments.md), and a policy `compiled`; then T
steps are one call. The bytes are those of the loop in Python, which stays the only way for everything else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from relab.train.envs.account import account, begin, rewind
from relab.train.envs.base import Book, Done, Episodes, Outcomes, Worlds
from relab.train.kernels.jit import njit
from relab.train.nets.fastmlp import Layout, forward
from relab.train.nets.heads import Box, sample_categorical, sample_gaussian, unit_to_box

f32 = np.float32
NO_MODE = np.int64(0)  # all rows sample; a plain 0 would be compiled apart, as every literal is
ROOM = 1024  # ended episodes that are booked before Python takes them over, at least


class Actor(NamedTuple):
    """A feed-forward policy as data: weights, observation scale, action distribution."""

    theta: np.ndarray
    net: Layout
    sizes: np.ndarray  # choices per component; empty for a Gaussian
    mean_D: np.ndarray  # of the observations
    std_D: np.ndarray
    scaled: bool
    obs_clip: float
    box: Box  # of continuous actions
    squash: bool
    work: np.ndarray


class Scene(NamedTuple):
    """The parts of Worlds that a step writes on."""

    book: Book
    out: Outcomes
    done: Done
    reducer_C: np.ndarray
    limit: int
    alone: bool
    reset_N: np.ndarray
    restart_NA: np.ndarray
    used_NA: np.ndarray
    obs_NAD: np.ndarray


class Steps(NamedTuple):
    """What is kept of every step; see rollout.Trajectory."""

    obs_TBD: np.ndarray
    action_TBK: np.ndarray
    logp_TB: np.ndarray
    reward_TB: np.ndarray
    terminated_TB: np.ndarray
    truncated_TB: np.ndarray
    alive_TB: np.ndarray
    fresh_TB: np.ndarray


class Ends(NamedTuple):
    """Room for what ended: episodes, and the observations that a time cut left behind."""

    counts: np.ndarray  # int64[3]: episodes, cuts, worlds begun anew
    step: np.ndarray  # of the episode
    done: Done
    cut_step: np.ndarray
    cut_row: np.ndarray
    cut_obs: np.ndarray


def ends(rows: int, obs_dim: int, channels: int) -> Ends:
    size = max(ROOM, 4 * rows)
    ints = [np.zeros(size, np.int64) for _ in range(7)]
    done = Done(ints[0], ints[1], np.zeros(size), ints[2], ints[3], np.zeros((channels, size)))
    return Ends(np.zeros(3, np.int64), ints[4], done, ints[5], ints[6], np.zeros((size, obs_dim), np.float32))


class Whole:
    """Collects whole batches of `worlds` for rollout.collect."""

    def __init__(self, worlds: Worlds, kernel: Any, traj: Any):
        spec, rows = worlds.spec, worlds.n * worlds.spec.agents
        self.worlds, self.kernel = worlds, kernel
        self.steps = Steps(*(getattr(traj, name) for name in Steps._fields))
        self.scene = Scene(*worlds.parts())
        self.ends = ends(rows, spec.obs_dim, len(spec.channels))
        self.draws = np.zeros((rows, spec.action.dim), np.int64 if spec.action.n else np.float32)
        self.rows = np.zeros((rows, spec.obs_dim), np.float32)

    def collect(self, actor: Actor, log_std: np.ndarray | None, fresh_B: np.ndarray, rng_B: np.ndarray) -> list[Any]:
        """Fill the steps -> [(episodes, cuts as (t, rows, obs))] in the order in which they ended."""
        t, total, pieces = 0, len(self.steps.reward_TB), []
        while t < total:
            t = self.kernel(self.worlds.state, self.scene, actor, log_std, self.steps, fresh_B, rng_B, self.draws,
                            self.rows, self.ends, t)  # fmt: skip
            pieces.append((self.episodes(), self.cuts()))
            self.worlds.begun += int(self.ends.counts[2])
        self.worlds.sim_steps += total * self.worlds.n
        return pieces

    def episodes(self) -> Episodes | None:
        return self.worlds.episodes_of(self.ends.done, int(self.ends.counts[0])) if self.ends.counts[0] else None

    def cuts(self) -> list[tuple[int, np.ndarray, np.ndarray]]:
        n = int(self.ends.counts[1])
        step, row, obs = self.ends.cut_step[:n], self.ends.cut_row[:n], self.ends.cut_obs[:n]
        return [(int(t), row[step == t].copy(), obs[step == t]) for t in np.unique(step)]


@njit(nogil=True, inline="always")
def collect(step, reset, observe, state, scene, actor, log_std, steps, fresh_B, rng_B, draws_BK, rows_BD, ends, first):
    """Steps from `first` on, until all are done or `ends` may be too small for one more; returns where it stopped."""
    book, out, done, reducer_C, limit, alone, reset_N, restart_NA, used_NA, obs_NAD = scene
    T, B = steps.reward_TB.shape
    N, A, D = obs_NAD.shape
    K = draws_BK.shape[1]
    draws_NAK, obs_BD = draws_BK.reshape(N, A, K), obs_NAD.reshape(B, D)
    unchecked, none = np.empty((0, 0), np.int64), np.empty(0, np.int64)
    ends.counts[:] = 0
    for t in range(first, T):
        if ends.step.size - max(ends.counts[0], ends.counts[1]) < B:
            return t
        see(steps, t, obs_BD, book.alive, fresh_B)
        act(actor, log_std, obs_BD, rows_BD, rng_B, draws_BK, steps.action_TBK[t], steps.logp_TB[t])
        begin(out, unchecked, none)
        step(state, book.alive, draws_NAK, out)
        ended, _, resets = account(out, book, done, reducer_C, limit, alone, reset_N, restart_NA)
        observe(state, obs_NAD)
        for b in range(B):
            steps.reward_TB[t, b] = out.reward[b // A, b % A]
            fresh_B[b] = False
        if ended:
            keep(steps, ends, done, out, obs_BD, t, ended)
        if resets:
            reset(state, reset_N)
            rewind(book, used_NA, reset_N)
            ends.counts[2] += resets
            observe(state, obs_NAD)
        if ended:
            for b in range(B):
                over = steps.terminated_TB[t, b] or steps.truncated_TB[t, b] or not steps.alive_TB[t, b]
                fresh_B[b] = book.alive[b // A, b % A] and over
    return T


@njit(nogil=True)
def see(steps, t, obs_BD, alive_NA, fresh_B):
    """Note what all rows see before they act."""
    A = alive_NA.shape[1]
    for b in range(obs_BD.shape[0]):
        for d in range(obs_BD.shape[1]):
            steps.obs_TBD[t, b, d] = obs_BD[b, d]
        steps.alive_TB[t, b], steps.fresh_TB[t, b] = alive_NA[b // A, b % A], fresh_B[b]
        steps.terminated_TB[t, b] = steps.truncated_TB[t, b] = False


@njit(nogil=True)
def act(actor, log_std, obs_BD, rows_BD, rng_B, draws_BK, action_BK, logp_B):
    """Raw actions and their log-probabilities; in `draws_BK` what the environment gets."""
    for b in range(obs_BD.shape[0]):
        for d in range(obs_BD.shape[1]):
            x = obs_BD[b, d]
            if actor.scaled:
                x = min(max((x - actor.mean_D[d]) / actor.std_D[d], f32(-actor.obs_clip)), f32(actor.obs_clip))
            rows_BD[b, d] = x
    outputs = forward(actor.theta, actor.net, rows_BD.reshape(-1), rows_BD.shape[0], actor.work)
    if log_std is None:
        sample_categorical(outputs, actor.sizes, rng_B, NO_MODE, action_BK, logp_B)
        for b in range(action_BK.shape[0]):
            for k in range(action_BK.shape[1]):
                draws_BK[b, k] = action_BK[b, k]
    else:
        sample_gaussian(outputs, log_std, rng_B, NO_MODE, action_BK, logp_B)
        unit_to_box(action_BK, actor.box, actor.squash, draws_BK)


@njit(nogil=True)
def keep(steps, ends, done, out, obs_BD, t, ended):
    """Book the episodes that ended at t, and what a time cut left behind."""
    A = out.reward.shape[1]
    for k in range(ended):
        at = ends.counts[0]
        ends.step[at] = t
        ends.done.world[at], ends.done.agent[at], ends.done.end[at] = done.world[k], done.agent[k], done.end[k]
        ends.done.ret[at], ends.done.length[at] = done.ret[k], done.length[k]
        for c in range(done.info.shape[0]):
            ends.done.info[c, at] = done.info[c, k]
        ends.counts[0] += 1
    for b in range(obs_BD.shape[0]):
        steps.terminated_TB[t, b], steps.truncated_TB[t, b] = (
            out.terminated[b // A, b % A],
            out.truncated[b // A, b % A],
        )
        if out.truncated[b // A, b % A]:
            at = ends.counts[1]
            ends.cut_step[at], ends.cut_row[at] = t, b
            for d in range(obs_BD.shape[1]):
                ends.cut_obs[at, d] = obs_BD[b, d]
            ends.counts[1] += 1
