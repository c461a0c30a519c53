"""How long does Stable-Baselines3's PPO need to solve CartPole-v1? The peer of cartpole_race.py, run in its own venv.

The settings are those of rl-zoo for CartPole-v1. What is left open is chosen in favour of the peer: the evaluation
runs all episodes side by side in Gymnasium's array version of CartPole, right after an update, and there is neither
logging nor saving.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

PLANNED_STEPS = 100_000  # the schedules run down to zero over these, also when training stops earlier


def linear(start: float) -> Callable[[float], float]:
    """rl-zoo's `lin_X`: X times the share of the planned steps that is left."""
    return lambda left: left * start


def build(seed: int) -> PPO:
    """PPO with rl-zoo's settings for CartPole-v1."""
    envs = make_vec_env("CartPole-v1", n_envs=8, seed=seed)  # DummyVecEnv, rl-zoo's default
    return PPO(
        "MlpPolicy",
        envs,
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gae_lambda=0.8,
        gamma=0.98,
        ent_coef=0.0,
        learning_rate=linear(1e-3),
        clip_range=linear(0.2),
        seed=seed,
        device="cpu",
    )


@torch.no_grad()
def first_episodes(model: PPO, envs: gym.vector.VectorEnv, seed: int) -> np.ndarray:
    """Return of the first episode of each world, deterministic actions."""
    obs, _ = envs.reset(seed=seed)
    returns = np.zeros(envs.num_envs)
    running = np.ones(envs.num_envs, dtype=bool)
    while running.any():
        action = model.policy.get_distribution(torch.as_tensor(obs)).mode()  # cheaper than model.predict
        obs, reward, terminated, truncated, _ = envs.step(action.numpy())
        returns += reward * running
        running &= ~(terminated | truncated)
    return returns


class StopWhenSolved(BaseCallback):
    """Evaluates after an update whenever `every` more steps have passed; stops training at `goal`."""

    def __init__(self, every: int, episodes: int, goal: float, seed: int) -> None:
        super().__init__()
        self.every, self.goal, self.seed = every, goal, seed
        self.envs = gym.make_vec("CartPole-v1", num_envs=episodes, vectorization_mode="vector_entry_point")
        self.next = every
        self.evals: list[tuple[int, float]] = []
        self.seconds_eval = 0.0
        self.reached = False

    def _on_rollout_start(self) -> None:
        if self.num_timesteps < self.next:
            return
        self.next += self.every
        self.evaluate()

    def evaluate(self) -> None:
        start = time.perf_counter()
        mean = float(first_episodes(self.model, self.envs, self.seed).mean())
        self.evals.append((self.num_timesteps, mean))
        self.reached = mean >= self.goal
        self.seconds_eval += time.perf_counter() - start

    def _on_step(self) -> bool:
        return not self.reached  # SB3 can be stopped only from here


def run(args: argparse.Namespace) -> dict:
    """Train until solved or the planned steps are over."""
    torch.set_num_threads(args.threads)
    model = build(args.seed)
    stop = StopWhenSolved(args.every, args.episodes, args.goal, seed=10_000 + args.seed)
    start = time.perf_counter()
    model.learn(PLANNED_STEPS, callback=stop)
    if not stop.reached:
        stop.evaluate()
    return {
        "seed": args.seed,
        "steps": stop.evals[-1][0],
        "seconds_train": round(time.perf_counter() - start, 3),
        "seconds_eval": round(stop.seconds_eval, 3),
        "reached": stop.reached,
        "threads": args.threads,
        "every": args.every,
        "evals": stop.evals,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=2048, help="steps between evaluations")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--goal", type=float, default=475.0)
    print(json.dumps(run(parser.parse_args())))


if __name__ == "__main__":
    main()
