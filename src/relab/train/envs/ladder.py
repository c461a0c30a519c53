"""Which part of the learner is broken? Five tiny envs with known values and actions (Andy Jones, "Debugging RL", 2021).

Climb in order; the first rung that fails names the part: value (loss and optimiser), backprop (observations reach the
critic), discount (returns through time), policy (the gradient's sign), both (policy and critic together).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from relab.config import envs as configs
from relab.record.spec import Action, Spec
from relab.train.kernels.jit import njit
from relab.train.kernels.rng import integer

VALUE, BACKPROP, DISCOUNT, POLICY, BOTH = range(5)  # the rungs
DONE = 2  # end code of the first three
RIGHT, WRONG = 2, 3  # end codes of the last two


class Answer(NamedTuple):
    """For one observation: the best action (None where there is no choice) and the best value, given gamma."""

    obs: float
    action: int | None
    value: Callable[[float], float]


class State(NamedTuple):
    seen: np.ndarray  # float64[N]: the observation
    rng: np.ndarray  # uint64[N]


@njit(cache=True)
def step_rows(seen, action_NA, reward_NA, terminated_NA, end_NA, rung):
    for i in range(seen.shape[0]):
        if rung == DISCOUNT and seen[i] == 0.0:
            seen[i] = 1.0
            continue
        terminated_NA[i, 0] = True
        if rung < POLICY:
            reward_NA[i, 0] = seen[i] if rung == BACKPROP else 1.0
            end_NA[i, 0] = DONE
        else:
            right = action_NA[i, 0] == (1 if rung == POLICY or seen[i] > 0 else 0)
            reward_NA[i, 0] = 1.0 if right else -1.0
            end_NA[i, 0] = RIGHT if right else WRONG


@njit(cache=True)
def reset_rows(seen, rng, worlds_N, rung):
    for i in range(worlds_N.shape[0]):
        if worlds_N[i]:
            sees_sign = rung in (BACKPROP, BOTH)
            seen[i] = 2.0 * integer(rng, i, 2) - 1.0 if sees_sign else 0.0


class Rung:
    """What the five share; each says which rung it is, and its known answers."""

    name: ClassVar[str]
    Params: ClassVar[type]
    rung: ClassVar[int]
    answers: ClassVar[tuple[Answer, ...]]

    def __init__(self, params=None) -> None:
        self.params = self.Params() if params is None else params
        choice = self.rung >= POLICY
        self.spec = Spec(
            env=self.name,
            obs_dim=1,
            action=Action("discrete", dim=1, n=(2 if choice else 1,)),
            ends=("running", "time_limit", "right", "wrong") if choice else ("running", "time_limit", "done"),
            success_ends=("right",) if choice else (),
            reward_low=-1.0 if choice or self.rung == BACKPROP else 0.0 if self.rung == DISCOUNT else 1.0,
            reward_high=1.0,
        )

    def known_answers(self) -> list[Answer]:
        return list(self.answers)

    def allocate(self, n: int) -> State:
        return State(np.zeros(n), np.zeros(n, np.uint64))

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        reset_rows(state.seen, state.rng, worlds_N, self.rung)

    def step(self, state: State, alive_NA: np.ndarray, action_NA: np.ndarray, out) -> None:
        step_rows(state.seen, action_NA, out.reward, out.terminated, out.end, self.rung)  # one agent, always alive

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        obs_NAD[:, 0, 0] = state.seen


class Value(Rung):
    """One step, one action, reward 1."""

    name, Params, rung = "ladder-value-v1", configs.LadderValue, VALUE
    answers = (Answer(0.0, None, lambda gamma: 1.0),)


class Backprop(Rung):
    """One step, one action; the reward is the observation, +1 or -1."""

    name, Params, rung = "ladder-backprop-v1", configs.LadderBackprop, BACKPROP
    answers = (Answer(1.0, None, lambda gamma: 1.0), Answer(-1.0, None, lambda gamma: -1.0))


class Discount(Rung):
    """Two steps, one action; sees 0, then 1; reward 1 at the end."""

    name, Params, rung = "ladder-discount-v1", configs.LadderDiscount, DISCOUNT
    answers = (Answer(0.0, None, lambda gamma: gamma), Answer(1.0, None, lambda gamma: 1.0))


class Policy(Rung):
    """One step, two actions: 1 pays +1, 0 pays -1."""

    name, Params, rung = "ladder-policy-v1", configs.LadderPolicy, POLICY
    answers = (Answer(0.0, 1, lambda gamma: 1.0),)


class Both(Rung):
    """One step, two actions: the one that agrees with the sign of the observation pays +1, the other -1."""

    name, Params, rung = "ladder-both-v1", configs.LadderBoth, BOTH
    answers = (Answer(1.0, 1, lambda gamma: 1.0), Answer(-1.0, 0, lambda gamma: 1.0))
