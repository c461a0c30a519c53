"""What is a task, to every peer alike? N worlds of one small environment in numpy, which begin anew by themselves.

A task says how it begins, moves and is seen; `Worlds` adds the time limit, the account of episodes and the new start.
Each task brings an `expert`, written by hand, so that the level that counts as solved owes nothing to any learner.
Terminated and truncated are kept apart; `final` is what was seen before a new start.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np

Rows = np.ndarray


class Episode(NamedTuple):
    world: int
    total: float
    length: int


class Step(NamedTuple):
    """What one step of all worlds brought."""

    obs: Rows  # after a new start where there was one
    reward: Rows
    terminated: Rows
    truncated: Rows
    final: Rows  # before it
    episodes: list[Episode]


class Worlds:
    """N worlds of one task. A task sets sizes, limit, and the four functions at the end."""

    inputs = 1  # numbers in an observation
    choices = 0  # of a discrete action; 0: continuous
    dims = 0  # of a continuous action
    high = 1.0  # its bound, on both sides
    horizon = 50

    def __init__(self, n: int, seed: int):
        self.n, self.rng = n, np.random.default_rng(seed)
        self.clock, self.total = np.zeros(n, int), np.zeros(n)
        self.setup()

    def reset(self) -> Rows:
        everyone = np.ones(self.n, bool)
        self.clock[:], self.total[:] = 0, 0
        self.begin(everyone)
        return self.observe().astype(np.float32)

    def step(self, action: Rows) -> Step:
        reward, terminated = self.move(action if self.choices else np.clip(action, -self.high, self.high))
        self.clock += 1
        self.total += reward
        truncated = (self.clock >= self.horizon) & ~terminated
        done = terminated | truncated
        final = obs = self.observe().astype(np.float32)
        episodes = [Episode(int(i), float(self.total[i]), int(self.clock[i])) for i in np.flatnonzero(done)]
        if done.any():
            self.clock[done], self.total[done] = 0, 0
            self.begin(done)
            obs = self.observe().astype(np.float32)
        return Step(obs, reward.astype(np.float32), terminated, truncated, final, episodes)

    def random(self) -> Rows:
        if self.choices:
            return self.rng.integers(self.choices, size=self.n)
        return self.rng.uniform(-self.high, self.high, (self.n, self.dims))

    def spaces(self) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        seen = gymnasium.spaces.Box(-np.inf, np.inf, (self.inputs,), np.float32)
        if self.choices:
            return seen, gymnasium.spaces.Discrete(self.choices)
        return seen, gymnasium.spaces.Box(-self.high, self.high, (self.dims,), np.float32)

    def setup(self) -> None:
        """Make the arrays of the state."""

    def begin(self, who: Rows) -> None:
        raise NotImplementedError

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        """Reward and whether it ended, of each world."""
        raise NotImplementedError

    def observe(self) -> Rows:
        raise NotImplementedError

    def expert(self) -> Rows:
        """A good action for each world, from what the worlds know of themselves."""
        raise NotImplementedError


class GymWorlds(Worlds):
    """N copies of an environment of Gymnasium, one after the other."""

    env_id = ""

    def setup(self) -> None:
        self.envs = [gymnasium.make(self.env_id) for _ in range(self.n)]
        self.seen = np.zeros((self.n, self.inputs))
        self.seeds: list[int | None] = [int(s) for s in self.rng.integers(2**31, size=self.n)]
        self.horizon = self.envs[0].spec.max_episode_steps or 10**9  # type: ignore[union-attr]

    def begin(self, who: Rows) -> None:
        for i in np.flatnonzero(who):
            self.seen[i], _ = self.envs[i].reset(seed=self.seeds[i])
            self.seeds[i] = None

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        reward, ended = np.zeros(self.n), np.zeros(self.n, bool)
        for i, env in enumerate(self.envs):
            act = int(action[i]) if self.choices else action[i].astype(np.float32)
            self.seen[i], reward[i], ended[i], _, _ = env.step(act)
        return reward, ended

    def observe(self) -> Rows:
        return self.seen.copy()


class Alone(gymnasium.Env[Rows, Any]):
    """One world of a task in Gymnasium's own interface."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, make: type[Worlds]):
        self.make = make
        self.worlds = make(1, 0)
        self.observation_space, self.action_space = self.worlds.spaces()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Rows, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.worlds = self.make(1, seed)
        return self.worlds.reset()[0], {}

    def step(self, action: Any) -> tuple[Rows, float, bool, bool, dict[str, Any]]:
        now = self.worlds.step(np.asarray(action).reshape(1, *np.shape(action)))
        return now.final[0], float(now.reward[0]), bool(now.terminated[0]), bool(now.truncated[0]), {}
