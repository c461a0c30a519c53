"""A ladder for continuous actions: five tiny environments whose best action and value are known.

value: one step pays 1. backprop: it pays what is seen. discount: it pays 1 after two steps. policy: the action at 0.5
pays most, 1 - (a - 0.5)². both: the place is half of what is seen, which is -1 or 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relab.record.spec import Action, Spec
from relab.train.envs import ladder
from relab.train.envs.ladder import BACKPROP, BOTH, DISCOUNT, POLICY, VALUE

RUNGS = {"value": VALUE, "backprop": BACKPROP, "discount": DISCOUNT, "policy": POLICY, "both": BOTH}
LOW, HIGH = -4.0, 2.0  # the box: an action of 0.5 in [-1, 1] is 0.5 in it


class Known(NamedTuple):
    obs: float
    action: float | None  # in [-1, 1]
    value: float


class Target:
    """One rung, with an action in [-4, 2] of which the place in [-1, 1] counts."""

    def __init__(self, rung: str, gamma: float = 0.9):
        self.rung, self.params = RUNGS[rung], None
        self.spec = Spec(env=f"target-{rung}-v1", obs_dim=1, action=Action("continuous", 1, low=(LOW,), high=(HIGH,)),
                         ends=("running", "time_limit", "done"))  # fmt: skip
        self.known = {VALUE: [Known(0, None, 1)], BACKPROP: [Known(1, None, 1), Known(-1, None, -1)],
                      DISCOUNT: [Known(0, None, gamma), Known(1, None, 1)], POLICY: [Known(0, 0.5, 1)],
                      BOTH: [Known(1, 0.5, 1), Known(-1, -0.5, 1)]}[self.rung]  # fmt: skip

    def allocate(self, n: int) -> ladder.State:
        return ladder.State(np.zeros(n), np.zeros(n, np.uint64))

    def reset(self, state: ladder.State, worlds_N: np.ndarray) -> None:
        ladder.reset_rows(state.seen, state.rng, worlds_N, self.rung)

    def step(self, state: ladder.State, alive_NA: np.ndarray, action_NAK: np.ndarray, out) -> None:
        place = (np.asarray(action_NAK[:, 0, 0], np.float64) - (HIGH + LOW) / 2) / ((HIGH - LOW) / 2)
        seen = state.seen.copy()
        goes_on = (seen == 0.0) & (self.rung == DISCOUNT)
        state.seen[goes_on] = 1.0
        best = {POLICY: 0.5, BOTH: 0.5 * seen}.get(self.rung)
        reward = seen if self.rung == BACKPROP else np.ones(len(seen))
        out.reward[:, 0] = np.where(goes_on, 0.0, reward if best is None else 1 - np.square(place - best))
        out.terminated[:, 0], out.end[:, 0] = ~goes_on, np.where(goes_on, 0, 2)

    def observe(self, state: ladder.State, obs_NAD: np.ndarray) -> None:
        obs_NAD[:, 0, 0] = state.seen
