"""How does a replay method gather its data? All worlds act one step at a time, and every step goes into the replay.

The successor of a step is what the agent saw after it: where an episode ended, the observation before the reset.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from relab.base.documents import Tree
from relab.base.streams import world_seeds
from relab.config.base import require
from relab.record.spec import Spec
from relab.train import rollout
from relab.train.algos.episode_metrics import episode_metrics, recent_returns
from relab.train.contract import Counts, DivergedError, Setup, Stopwatch
from relab.train.device import is_cpu
from relab.train.envs.base import Episodes, Step, Worlds
from relab.train.kernels.rng import mix
from relab.train.replay import Fields, Replay
from relab.train.rollout import Policy

T = TypeVar("T")


def check_start(setup: Setup) -> None:
    """ConfigError where the run ends before learning starts, or learning starts before there is enough to draw from."""
    cfg, rows = setup.cfg, setup.cfg.envs * setup.env.spec.agents
    starts, slots = cfg.learning_starts, max(1, math.ceil(cfg.learning_starts / rows))
    require(starts < setup.total, f"`learning_starts` = {starts:,} must lie before the end of the run, but total_steps"
            f" is {setup.total:,}: nothing would be learned")  # fmt: skip
    require(cfg.minibatch <= slots * rows, f"`minibatch` = {cfg.minibatch:,} must not exceed what was gathered when"
            f" learning starts, but `learning_starts` = {starts:,} makes that {slots * rows:,} rows; start later, or"
            " draw fewer")  # fmt: skip
    require(cfg.n_step <= slots, f"`n_step` = {cfg.n_step:,} must not exceed the steps of every world when learning"
            f" starts, but `learning_starts` = {starts:,} makes that {slots:,} of {rows:,} rows; start later, or sum"
            " fewer rewards")  # fmt: skip
    held = cfg.replay // rows
    require(held > cfg.n_step, f"`replay` must hold n_step + 1 = {cfg.n_step + 1:,} steps of all {rows:,} rows (worlds"
            f" x agents), but {cfg.replay:,} transitions are {held:,}; keep more, or use fewer worlds")  # fmt: skip


def transition_fields(obs_dim: int, action: np.ndarray) -> Fields:
    """One step of one agent; `action` is a row as the policy draws it."""
    return {"obs": ((obs_dim,), np.float32), "action": (action.shape[1:], action.dtype), "reward": ((), np.float32),
            "terminated": ((), bool), "truncated": ((), bool), "alive": ((), bool),
            "next_obs": ((obs_dim,), np.float32)}  # fmt: skip


def require_vectors(algo: str, spec: Spec, device: str) -> None:
    """Replay methods have no encoder, a replay of images would keep each pixel twice in 4 bytes, and kernels no GPU."""
    require(not spec.obs_shape, f"{algo} learns from vectors, but {spec.env} observes {spec.seen}; try algo=ppo, which"
            " has an encoder for them, or register the environment with a wrapper that makes a vector"
            " (gymnasium.wrappers.FlattenObservation)")  # fmt: skip
    require(is_cpu(device), f"{algo} runs on the cpu, but `device` is {device}")


class Learning(Protocol):
    """The state of a method that learns while it gathers."""

    cfg: Any
    gathering: Gathering
    counts: Counts


@dataclass
class Gathering:
    """Worlds that act for a replay, and what they have earned."""

    worlds: Worlds
    replay: Replay
    rng_B: np.ndarray  # a stream of actions for each row
    memory_BM: np.ndarray  # what a policy with a memory remembers; no columns for one without
    recent: deque[float] = field(default_factory=recent_returns)
    ended: list[Episodes] = field(default_factory=list)  # in this iteration, as the rest
    rewards: list[np.ndarray] = field(default_factory=list)  # of the living, step by step
    obs_max: float = 0.0
    alive: int = 0
    steps: int = 0

    @classmethod
    def begin(cls, setup: Setup, envs: int, capacity: int, action: np.ndarray, memory_dim: int = 0) -> Self:
        spec = setup.env.spec
        worlds = Worlds(setup.env, envs)
        worlds.reset(world_seeds(setup.seed, "env", envs))
        rows = envs * spec.agents
        replay = setup.data.replay("replay", cls.fields(spec.obs_dim, action), capacity, rows)
        streams = mix(world_seeds(setup.seed, "action", rows))
        return cls(worlds, replay, streams, np.zeros((rows, memory_dim), np.float32))

    # what is kept of an observation, which images change (dreamer/frames.py)

    @staticmethod
    def fields(obs_dim: int, action: np.ndarray) -> Fields:
        return transition_fields(obs_dim, action)

    def see(self, slot: np.ndarray, obs_BD: np.ndarray) -> np.ndarray:
        """Keep what is seen -> what the policy acts on."""
        slot["obs"] = obs_BD
        return slot["obs"]

    def arrive(self, slot: np.ndarray, step: Step, over_B: np.ndarray) -> np.ndarray:
        """Keep what is seen next, where an episode ended before the reset -> that."""
        rows = over_B.size
        slot["next_obs"] = step.obs.reshape(rows, -1)
        if step.episodes is not None:
            slot["next_obs"][over_B] = step.final_obs.reshape(rows, -1)[over_B]
        return slot["next_obs"]

    def brightest(self, slot: np.ndarray) -> float:
        """The largest number that a living agent sees."""
        return float(np.abs(slot["obs"][slot["alive"]]).max(initial=0.0))

    def check_rows(self, rows: np.ndarray) -> list[bool]:
        return [bool(np.isfinite(rows[name][rows["alive"]]).all()) for name in ("obs", "reward", "next_obs")]

    def step(self, policy: Policy, counts: Counts) -> None:
        """One step of all worlds."""
        worlds, rows = self.worlds, self.rng_B.size
        self.replay.make_room()
        slot = self.replay.ring[self.replay.count % self.replay.slots]
        slot["alive"] = worlds.alive.reshape(rows)
        living = int(slot["alive"].sum())
        acted = policy.act(self.see(slot, worlds.obs.reshape(rows, -1)), self.memory_BM, self.rng_B)
        if not np.isfinite(acted.action).all():
            raise DivergedError(f"the policy's actions are not finite at step {counts.agent_steps:,}; lower `lr`")
        slot["action"] = acted.action
        step = worlds.step(policy.to_env(acted.action).reshape(worlds.action_shape))
        slot["reward"] = step.reward.reshape(rows)
        slot["terminated"], slot["truncated"] = step.terminated.reshape(rows), step.truncated.reshape(rows)
        over = slot["terminated"] | slot["truncated"]
        self.memory_BM = acted.memory
        if step.episodes is not None:
            self.memory_BM[over] = 0.0  # an episode begins without memories
            self.ended.append(step.episodes)
        taken = counts.env_steps // worlds.n + 1
        for what, values in (("observation", self.arrive(slot, step, over)), ("reward", slot["reward"][:, None])):
            rollout.check_finite(worlds.env.spec, what, values[None], slot["alive"][None], taken)  # before it is used
        self.note(slot)
        self.replay.count += 1
        counts.agent_steps += living
        counts.env_steps += worlds.n

    def note(self, slot: np.ndarray) -> None:
        """What the metrics need of a step; a small replay forgets it before the iteration is over."""
        living = slot["alive"]
        self.rewards.append(slot["reward"][living])
        self.obs_max = max(self.obs_max, self.brightest(slot))
        self.alive, self.steps = self.alive + int(living.sum()), self.steps + 1

    def metrics(self, counts: Counts) -> dict[str, float]:
        """Of the steps since the last call."""
        spec, rewards = self.worlds.env.spec, np.concatenate(self.rewards)
        counts.iteration += 1
        row = episode_metrics(self.ended, spec, counts, self.recent)
        if rewards.size:
            row |= {f"data/reward_{name}": getattr(rewards, name)() for name in ("mean", "std", "min", "max")}
            row["data/obs_max"] = self.obs_max
        row["data/alive"] = self.alive / (self.steps * self.rng_B.size)
        row |= {"data/env_steps": counts.env_steps, "data/iteration": counts.iteration,
                  "data/episodes": counts.episodes, "data/updates": counts.updates,
                  "data/replay_size": len(self.replay)}  # fmt: skip
        self.ended, self.rewards, self.obs_max, self.alive, self.steps = [], [], 0.0, 0, 0
        return {name: float(x) for name, x in row.items()}

    def to_tree(self) -> Tree:
        tree = {"worlds": self.worlds.snapshot(), "rng": self.rng_B, "recent": list(self.recent)}
        return tree | {"memory": self.memory_BM} if self.memory_BM.size else tree

    def load(self, tree: Tree) -> None:
        self.check(int(tree["counts"]["env_steps"]) // self.worlds.n)
        self.worlds.restore(tree["worlds"])
        self.rng_B = tree["rng"].copy()
        self.recent.extend(tree["recent"])
        if self.memory_BM.size:
            self.memory_BM = tree["memory"].copy()

    def check(self, steps: int) -> None:
        """ValueError for rows on the disk that no run can have written: kernels would reach outside of their arrays."""
        replay, action = self.replay, self.worlds.env.spec.action
        if replay.store is not None and replay.count != steps:
            raise ValueError(f"its replay has {replay.count:,} slots, but its worlds took {steps:,} steps")
        rows = replay.ring[: min(replay.count, replay.slots)]
        low, high = (0, np.array(action.n) - 1) if action.n else (-1.0, 1.0)
        fit = [bool(((rows["action"] >= low) & (rows["action"] <= high)).all())]
        fit += self.check_rows(rows)
        fit += [int(rows[name].view(np.uint8).max(initial=0)) <= 1 for name in ("terminated", "truncated", "alive")]
        if not all(fit):
            raise ValueError("rows of its replay were changed: an action, a flag or a number is none that a run writes")


def act_and_update(
    s: Learning, watch: Stopwatch, policy: Callable[[Any], Policy], update: Callable[[Any], T]
) -> list[T]:
    """`steps` steps of every world, with the updates that fall due on the way: what each of these returned."""
    cfg, updates = s.cfg, list[T]()
    for done in range(cfg.steps):
        with watch("collect"):
            s.gathering.step(policy(s), s.counts)
        with watch("update"):
            for _ in range(due(s.counts, cfg.learning_starts, cfg.updates_per_step)):
                updates.append(update(s))
        watch.tell("this iteration's steps", done + 1, cfg.steps)
    return updates


def due(counts: Counts, starts: int, ratio: float) -> int:
    """Updates that are due now: `ratio` for each agent step since learning started."""
    return max(0, int((counts.agent_steps - starts) * ratio) - counts.updates) if counts.agent_steps >= starts else 0
