"""A Gymnasium environment with tiny images: a dot in the left or the right half says which action pays 1, twice.

Known answers: the action is the dot's half; V of the first image, whose dot is bright, is 1 + gamma, that of the
second, whose dot is dim, is 1. `layout` is how the images come: hwc, hw, chw (three frames) or bool.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

ID = "Dots-v0"
BRIGHT, DIM = 255, 120
SHAPES = {"hwc": (8, 1), "hw": (8,), "bool": (8, 2)}


class Dots(gymnasium.Env):
    def __init__(self, layout: str = "hwc", width: int = 8, continuous: bool = False):
        self.layout, self.width = layout, width
        shape = (3, 8, width) if layout == "chw" else (8, width, *SHAPES[layout][1:])
        dtype: Any = bool if layout == "bool" else np.uint8
        self.observation_space = spaces.Box(0, 1 if layout == "bool" else 255, shape, dtype)
        self.action_space = spaces.Box(-1, 1, (1,), np.float32) if continuous else spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.left = 2
        return self._draw(), {}

    def _draw(self) -> np.ndarray:
        self.row, self.column = (int(self.np_random.integers(size)) for size in (8, self.width))
        image = np.zeros(self.observation_space.shape, self.observation_space.dtype)
        light = BRIGHT if self.left == 2 else DIM
        at: Any = (self.row, self.column)
        image[(2, *at) if self.layout == "chw" else at] = light if self.layout != "bool" else True
        return image

    def step(self, action):
        half = int(np.sum(action) > 0)
        reward = float(half == (self.column >= self.width // 2))
        self.left -= 1
        return self._draw(), reward, self.left == 0, False, {}


def register() -> None:
    if ID not in gymnasium.registry:
        gymnasium.register(ID, entry_point=Dots, max_episode_steps=5)


def known(gamma: float) -> list[tuple[np.ndarray, int, float]]:
    """(observation, action, value) of every image of layout hwc."""
    answers = []
    for light, value in ((BRIGHT, 1 + gamma), (DIM, 1.0)):
        for at in range(64):
            image = np.zeros(64, np.float32)
            image[at] = np.float32(light) / np.float32(255)
            answers.append((image, int(at % 8 >= 4), value))
    return answers
