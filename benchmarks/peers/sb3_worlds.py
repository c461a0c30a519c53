"""How does a task look to Stable-Baselines3? As its VecEnv, with the infos that its own wrappers would give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from benchmarks.peers.worlds import Episode, Worlds

Success = Callable[[Episode], float]


class SideBySide(VecEnv):
    """N worlds of a task. The account of an episode stands where Monitor would put it."""

    def __init__(self, make: Callable[[int, int], Worlds], n: int, seed: int, success: Success | None = None):
        self.worlds, self.success = make(n, seed), success
        super().__init__(n, *self.worlds.spaces())
        self.render_mode = None

    def reset(self) -> np.ndarray:
        return self.worlds.reset()

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        now = self.worlds.step(self.actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for episode in now.episodes:
            i = episode.world
            infos[i] = {
                "episode": {"r": episode.total, "l": episode.length, "t": 0.0},
                "terminal_observation": now.final[i],
                "TimeLimit.truncated": bool(now.truncated[i]),
            }
            if self.success:
                infos[i]["is_success"] = self.success(episode)
        return now.obs, now.reward, now.terminated | now.truncated, infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [None] * len(list(self._get_indices(indices)))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Sequence[bool]:
        return [True] * self.num_envs  # episodes are counted, as Monitor would: no warning
