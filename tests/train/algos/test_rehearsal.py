"""Are the kernels of a learner compiled before the first step, and is nothing else changed by that?"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from relab.config.dqn import DQN
from relab.config.sac import SAC
from relab.train import checkpoint, replay
from relab.train.algos import dqn, sac
from relab.train.contract import Setup, Stopwatch
from relab.train.envs.cartpole import CartPole
from relab.train.envs.pendulum import Pendulum
from relab.train.nets import mlps, q_learning, soft_actor_critic

TINY: dict[str, Any] = {"envs": 2, "steps": 16, "learning_starts": 16, "minibatch": 8, "hidden": (8,)}
SUBJECTS = {
    "dqn": (dqn, CartPole, DQN(**TINY, target_every=1), [(q_learning, "q_gradient"), (mlps, "adam_step"),
            (dqn, "follow"), (replay, "sum_ahead")]),
    "sac": (sac, Pendulum, SAC(**TINY), [(soft_actor_critic, "learn"), (sac, "follow"), (replay, "sum_ahead")]),
}  # fmt: skip


class Spy:
    """Calls a kernel, and keeps the types that Numba compiles it for."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.types: set[tuple[Any, ...]] = set()

    def __call__(self, *args: Any) -> Any:
        self.types.add(tuple(map(numba.typeof, args)))
        return self.kernel(*args)


@pytest.mark.parametrize("name", SUBJECTS)
def test_no_kernel_is_left_to_compile_at_the_first_update(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    algo, env, cfg, kernels = SUBJECTS[name]
    spies = {}
    for owner, kernel in kernels:
        spies[kernel] = Spy(getattr(owner, kernel))
        monkeypatch.setattr(owner, kernel, spies[kernel])
    state = algo.init(Setup(env(), cfg, 0, 10_000))
    rehearsed = {kernel: set(spy.types) for kernel, spy in spies.items()}
    assert all(rehearsed.values()), "each was called"
    while state.counts.updates == 0:
        algo.iterate(state, Stopwatch())
    assert {kernel: spy.types for kernel, spy in spies.items()} == rehearsed


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_rehearsal_leaves_no_trace(name: str) -> None:
    algo, env, cfg, _ = SUBJECTS[name]
    assert isinstance(algo, ModuleType)
    state = algo.init(Setup(env(), cfg, 0, 10_000))
    algo.iterate(state, Stopwatch())
    arrays, plain = checkpoint.split(state.to_tree())
    before, said = {key: array.copy() for key, array in arrays.items()}, repr(plain)
    algo.rehearse(state)
    arrays, plain = checkpoint.split(state.to_tree())
    assert repr(plain) == said
    assert all(np.array_equal(array, before[key]) for key, array in arrays.items())
