"""Text of an environment of somebody's own, for tests that edit it: a walk that costs its distance from the start."""

DRIFT = """
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from relab.record.spec import Action, Spec


@dataclass(frozen=True)
class Params:
    name: str = "drift:Drift"
    horizon: int = 10


class State(NamedTuple):
    place: np.ndarray
    rng: np.ndarray


class Drift:
    name = "drift:Drift"
    Params = Params

    def __init__(self, params=None):
        self.params = params or Params()
        self.price = float(Path("price.txt").read_text()) if Path("price.txt").exists() else 1.0
        self.spec = Spec(env=self.name, obs_dim=1, action=Action("discrete", dim=1, n=(2,)),
                         horizon=self.params.horizon)

    def allocate(self, n):
        return State(np.zeros(n, np.int64), np.zeros(n, np.uint64))

    def reset(self, state, worlds_N):
        state.place[worlds_N] = 0

    def step(self, state, alive_NA, action_NA, out):
        state.place[:] += 2 * action_NA[:, 0] - 1
        out.reward[:, 0] = -self.price * np.abs(state.place) * 1.0

    def observe(self, state, obs_NAD):
        obs_NAD[:, 0, 0] = state.place / 10
"""
