"""A Gymnasium environment that gives what no environment may: register it by importing this module."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

GIVEN = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class Strange(gymnasium.Env[np.ndarray, int]):
    """Ten steps an episode; the seventh observation or reward is `value`."""

    observation_space: ClassVar[Any] = spaces.Box(-10, 10, (2,))
    action_space: ClassVar[Any] = spaces.Discrete(2)

    def __init__(self, part: str, value: str) -> None:
        self.part, self.value, self.t = part, GIVEN[value], 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.t += 1
        odd = self.value if self.t == 7 else 0.0
        obs = np.full(2, odd if self.part == "obs" else 0.0, np.float32)
        return obs, odd if self.part == "reward" else 1.0, self.t == 10, False, {}


gymnasium.register("Strange-v0", entry_point=Strange)
