"""How good was an action? Run the world again from the same state, with it and without it, and follow a policy.

    Q(s, a) ~ mean over n of: a, then the policy;    V(s) ~ mean over n of: the policy from s on;    A = Q - V

Common random numbers: the k-th copy with the action and the k-th without draw the same. Antithetic ones: copies 2k and
2k + 1 draw the same noise with opposite signs, a + e and a - e around the policy's mean, so that what is odd in the
noise falls out of their mean.

A copy ends with its episode, or is cut after `cut` steps; what it may have lost is bounded (equations.cut_bias). Copies
fill a fixed number of slots: one that is over makes room for the next. What a copy earns depends on its own streams
alone, so that slots change the speed and, by a network's rounding, a last bit.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relab.config.base import require
from relab.train.contract import Tell, silent
from relab.train.envs.base import Worlds
from relab.train.envs.check_moving import random_actions
from relab.train.kernels.rng import mix
from relab.train.rollout import Policy


class Reruns(NamedTuple):
    """What n copies of each of S states earned, discounted."""

    q_SN: np.ndarray
    v_SN: np.ndarray
    cut: float  # share of the copies that were not over when they were cut
    sim_steps: int  # of copies


class Ways(NamedTuple):
    """Which random numbers copies share."""

    common: bool = True
    antithetic: bool = False


@dataclass(frozen=True)
class Plan:
    """What every copy is: row j of S x 2 x N, first those with the action."""

    state_J: np.ndarray  # index of its state
    with_action_J: np.ndarray  # bool
    noise_J: np.ndarray  # its stream for actions
    world_J: np.ndarray  # its stream for the world
    mirrored_J: np.ndarray  # bool: it draws the noise of the copy before it, with the other sign


def plan(states: int, n: int, ways: Ways, draw: np.random.Generator) -> Plan:
    """Streams of all copies; a world's own noise is never mirrored."""
    kinds = 1 if ways.common else 2
    noise, world = (np.broadcast_to(draw.integers(2**63, size=(states, kinds, n)), (states, 2, n)) for _ in range(2))
    if ways.antithetic:
        noise = np.repeat(noise[:, :, ::2], 2, axis=2)
    mirrored = np.tile(np.arange(n) % 2 == 1, 2 * states) & ways.antithetic
    state = np.repeat(np.arange(states), 2 * n)
    with_action = np.tile(np.repeat([True, False], n), states)
    return Plan(state, with_action, mix(noise.reshape(-1)), mix(world.reshape(-1)), mirrored)


def reruns(
    worlds: Worlds,
    policy: Policy,
    snaps: dict[str, np.ndarray],
    action_S: np.ndarray,
    n: int,
    gamma: float,
    cut: int,
    ways: Ways,
    draw: np.random.Generator,
    tell: Tell = silent,
) -> Reruns:
    """`snaps`: rows of Worlds.snapshot, one a state; `action_S`: what was done there, in the environment's units."""
    copies = plan(len(action_S), n, ways, draw)
    slots = Slots(worlds, snaps, copies)
    while slots.busy.any():
        slots.step(policy, action_S, gamma, cut)
        tell("re-rollouts", slots.waiting - int(slots.busy.sum()), len(copies.state_J))
    total = slots.total.reshape(len(action_S), 2, n)
    return Reruns(total[:, 0], total[:, 1], float(slots.cut.mean()), slots.steps)


class Slots:
    """Copies on their way: each slot runs one, then the next that waits."""

    def __init__(self, worlds: Worlds, snaps: dict[str, np.ndarray], copies: Plan):
        self.worlds, self.snaps, self.copies = worlds, snaps, copies
        J = len(copies.state_J)
        self.total, self.cut, self.waiting = np.zeros(J), np.zeros(J, bool), 0
        self.steps = 0  # of copies; a slot that has none is stepped along, and not counted
        self.copy_N, self.age_N = np.zeros(worlds.n, np.int64), np.zeros(worlds.n, np.int64)
        self.noise_N, self.busy = np.zeros(worlds.n, np.uint64), np.zeros(worlds.n, bool)
        self.fill(np.arange(worlds.n))

    def fill(self, free: np.ndarray) -> None:
        """Give free slots the copies that wait, as far as there are any; every slot once, at the start."""
        rows = free[: len(self.copies.state_J) - self.waiting]
        self.busy[free] = False
        if not rows.size:
            return
        copy = self.waiting + np.arange(rows.size)
        self.waiting += rows.size
        self.worlds.restore(self.snaps, rows, self.copies.state_J[copy])
        self.worlds.state.rng[rows] = self.copies.world_J[copy]
        self.copy_N[rows], self.age_N[rows], self.noise_N[rows] = copy, 0, self.copies.noise_J[copy]
        self.busy[rows] = True

    def step(self, policy: Policy, action_S: np.ndarray, gamma: float, cut: int) -> None:
        N, copy = self.worlds.n, self.copy_N
        acted = policy.act(self.worlds.obs.reshape(N, -1), np.zeros((N, 0), np.float32), self.noise_N)
        raw = self.mirror(policy, acted.action)
        action = np.array(policy.to_env(raw))
        first = self.busy & (self.age_N == 0) & self.copies.with_action_J[copy]  # its own draw is made, and not used
        action[first] = action_S[self.copies.state_J[copy[first]]]
        step = self.worlds.step(action.reshape(self.worlds.action_shape))
        busy = np.flatnonzero(self.busy)
        self.steps += len(busy)
        self.total[copy[busy]] += gamma ** self.age_N[busy] * step.reward[busy, 0]
        self.age_N += 1
        ended = (step.terminated | step.truncated)[:, 0]
        over = self.busy & (ended | (self.age_N >= cut))
        self.cut[copy[over & ~ended]] = True
        if over.any():
            self.fill(np.flatnonzero(over))

    def mirror(self, policy: Policy, raw: np.ndarray) -> np.ndarray:
        """Actions of mirrored copies, on the other side of the policy's mean."""
        rows = np.flatnonzero(self.busy & self.copies.mirrored_J[self.copy_N])
        if not rows.size:
            return raw
        obs = self.worlds.obs.reshape(self.worlds.n, -1)[rows]
        mean = policy.act(obs, np.zeros((rows.size, 0), np.float32), self.noise_N[rows], rows.size).action
        raw = raw.copy()
        raw[rows] = 2 * mean - raw[rows]
        return raw


def check_snapshots(env: Any) -> None:
    """ConfigError where a world that is put back does not go on as it did: what it earns then is another world's."""
    first, then = random_actions(env.spec, 2, 2, 0)
    worlds = Worlds(env, 2)
    worlds.reset(np.arange(2, dtype=np.uint64))
    worlds.step(first)
    snap, ways = worlds.snapshot(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of those that play their actions again
        for _ in range(2):
            worlds.restore(snap)
            step = worlds.step(then)
            ways.append((step.reward.tobytes(), step.obs.tobytes()))
    require(ways[0] == ways[1], f"re-rollouts need worlds that can be put back, but two copies of one state of"
            f" {env.spec.env} went different ways with the same action; use advantage=gae or mc, or make all that it"
            " draws a part of its state")  # fmt: skip


def make_worlds(env: Any, states: int, n: int, slots: int) -> Worlds:
    return Worlds(env, min(slots, 2 * n * states))
