"""Dials: three dials of 2, 3 and 4 positions; one point a step for each that shows what the observation asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from relab.record.spec import Action, Spec
from relab.train.envs.base import Outcomes
from relab.train.kernels.rng import integer

SIZES = (2, 3, 4)


@dataclass(frozen=True)
class Params:
    name: str = "dials-v1"  # id with version


class State(NamedTuple):
    wanted: np.ndarray  # int64[N,3]
    rng: np.ndarray


class Dials:
    name, Params = "dials-v1", Params

    def __init__(self, params: Params) -> None:
        action = Action("multi_discrete", 3, SIZES)
        ends = ("running", "time_limit", "done")
        self.spec = Spec(params.name, sum(SIZES), action, ends=ends, reward_low=0.0, reward_high=3.0)

    def allocate(self, n: int) -> State:
        return State(np.zeros((n, 3), np.int64), np.zeros(n, np.uint64))

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        for i in np.flatnonzero(worlds_N):
            state.wanted[i] = [integer(state.rng, i, n) for n in SIZES]

    def step(self, state: State, alive_NA: np.ndarray, action: np.ndarray, out: Outcomes) -> None:
        out.reward[:, 0] = (action[:, 0] == state.wanted).sum(1)
        out.terminated[:], out.end[:] = True, 2

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        obs_NAD[:] = 0
        for k, start in enumerate(np.cumsum((0, *SIZES[:-1]))):
            obs_NAD[np.arange(len(obs_NAD)), 0, start + state.wanted[:, k]] = 1
