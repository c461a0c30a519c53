"""Are Gymnasium's MuJoCo worlds put back by their numbers, to the bit, and others played again as before?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from relab.base.streams import world_seeds
from relab.config import envs as configs
from relab.train.envs import gym_rows
from relab.train.envs.base import Worlds
from relab.train.envs.gym_bridge import Gym
from small_runs import fingerprint, run

pytest.importorskip("mujoco")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def bridge(name: str) -> Gym:
    return Gym(configs.Gym(name=f"gym:{name}"))


def actions(env: Gym, n: int, steps: int, seed: int) -> np.ndarray:
    low, high = np.array(env.spec.action.low), np.array(env.spec.action.high)
    return np.random.default_rng(seed).uniform(low, high, (steps, n, 1, len(low)))


@pytest.mark.parametrize("name", ["Ant-v5", "Reacher-v5", "Hopper-v5"])
def test_a_world_goes_on_to_the_bit_in_another_slot(name: str) -> None:
    """Ant's reward comes from positions that MuJoCo derived a step ago, Reacher's goal lies in its state."""
    env = bridge(name)
    assert env.rows is not None
    worlds, others = Worlds(env, 3), Worlds(env, 4)
    worlds.reset(world_seeds(0, "env", 3))
    others.reset(world_seeds(9, "env", 4))
    for action in actions(env, 3, 6, 1):
        worlds.step(action)
    others.restore(worlds.snapshot(), np.array([3, 0, 2]), np.array([0, 1, 2]))
    for action in actions(env, 3, 8, 2):
        here = worlds.step(action)
        moved = np.zeros((4, 1, action.shape[2]))
        moved[[3, 0, 2]] = action
        there = others.step(moved)
        for a, b in ((here.reward, there.reward), (here.obs, there.obs), (here.terminated, there.terminated)):
            np.testing.assert_array_equal(a, b[[3, 0, 2]])


def test_a_snapshot_does_not_grow() -> None:
    env = bridge("InvertedPendulum-v5")
    worlds = Worlds(env, 2)
    worlds.reset(world_seeds(0, "env", 2))
    before = {name: array.shape for name, array in worlds.snapshot().items()}
    for action in actions(env, 2, 5, 1):
        worlds.step(action)
    assert {name: array.shape for name, array in worlds.snapshot().items()} == before
    assert not env.grows


class Counting(gymnasium.Wrapper):
    """Pays for what MuJoCo does not know: how often it was stepped."""

    def reset(self, **more: Any) -> Any:
        self.steps = 0
        return super().reset(**more)

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, _, *rest = super().step(action)
        return obs, float(self.steps), *rest


def test_a_world_that_is_more_than_its_numbers_is_played_again() -> None:
    def make() -> gymnasium.Env:
        return Counting(gymnasium.make("InvertedPendulum-v5", max_episode_steps=-1, disable_env_checker=True))

    assert gym_rows.rows_of(make, lambda action: action) is None
    assert bridge("CartPole-v1").rows is None
    assert bridge("CartPole-v1").grows


def test_a_fixed_batch_of_them_is_run_again_and_resumed(tmp_path: Path) -> None:
    settings = {"algo": "finetune", "env": "gym:InvertedPendulum-v5", "total_steps": "2", "algo__envs": "2",
                "algo__steps": "6", "algo__hidden": "[8]", "algo__epochs": "1", "algo__minibatches": "2",
                "algo__data": "fixed", "algo__advantage": "rerollout", "algo__update": "awr", "algo__mc_samples": "2",
                "algo__cut": "3", "algo__slots": "8", "eval__episodes": "2", "algo__gamma": "0.9"}  # fmt: skip
    run(tmp_path / "a", **settings)
    run(tmp_path / "b", **settings)
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
