"""What does a policy that draws its actions uniformly earn in the field's common environments?

    python -m venv levels && levels/bin/pip install gymnasium==1.4.0 mujoco==3.17.0 imageio 'gymnasium[box2d]'
    levels/bin/python benchmarks/random_levels.py > src/relab/levels_random.json

Needs Gymnasium only. Episodes run to their end or time limit, on seeds 0, 1, 2, ...; environments that are not
installed are left out and named on standard error.
"""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

import gymnasium as gym
import numpy as np

ENVS = {
    "CartPole-v0": 1000, "CartPole-v1": 1000, "Acrobot-v1": 200, "MountainCar-v0": 200, "MountainCarContinuous-v0": 200,
    "Pendulum-v1": 1000, "LunarLander-v3": 300, "LunarLanderContinuous-v3": 300, "BipedalWalker-v3": 100,
    "InvertedPendulum-v5": 300, "InvertedDoublePendulum-v5": 300, "Reacher-v5": 300, "Pusher-v5": 100,
    "Swimmer-v5": 50, "Hopper-v5": 300, "Walker2d-v5": 300, "HalfCheetah-v5": 50, "Ant-v5": 100, "Humanoid-v5": 100,
    "InvertedPendulum-v4": 300, "Hopper-v4": 300, "Walker2d-v4": 300, "HalfCheetah-v4": 50, "Swimmer-v4": 50,
    "FrozenLake-v1": 2000, "Taxi-v4": 500, "CliffWalking-v1": 100,
}  # fmt: skip


def measure(name: str, episodes: int) -> dict[str, Any]:
    env = gym.make(name)
    env.action_space.seed(0)
    returns, lengths = zip(*(episode(env, seed) for seed in range(episodes)))
    random = {"return_mean": statistics.fmean(returns), "return_std": statistics.stdev(returns)}
    random = {key: round(value, 4) for key, value in random.items()}
    random |= {"length_mean": round(statistics.fmean(lengths), 2), "n": episodes}
    limits = {"horizon": env.spec.max_episode_steps, "solved": env.spec.reward_threshold}
    return {**spaces(env), **limits, "random": random}


def episode(env: gym.Env, seed: int) -> tuple[float, int]:
    env.reset(seed=seed)
    total, length, done = 0.0, 0, False
    while not done:
        _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        total, length, done = total + float(reward), length + 1, terminated or truncated
    return total, length


def spaces(env: gym.Env) -> dict[str, Any]:
    space = env.action_space
    if isinstance(space, gym.spaces.Discrete):
        return {"action": {"kind": "discrete", "dim": 1, "n": [int(space.n)]}}
    low, high = np.asarray(space.low, float).tolist(), np.asarray(space.high, float).tolist()
    return {"action": {"kind": "continuous", "dim": int(space.shape[0]), "low": low, "high": high}}


def main() -> None:
    found = {}
    for name, episodes in ENVS.items():
        try:
            found[name] = measure(name, episodes)
        except Exception as error:
            print(f"{name}: left out: {type(error).__name__}: {error}"[:200], file=sys.stderr)
    facts = {"gymnasium": gym.__version__, "command": "python benchmarks/random_levels.py", "envs": found}
    json.dump(facts, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
