# ruff: noqa: C408 - settings read like the keyword arguments they become
"""What do healthy runs of another library look like? Makes Stable-Baselines3 folders, in the peers' venv.

    .venv-sb3/bin/python -m benchmarks.peers.sb3_runs OUT --seeds 0 1 [--only ppo-CartPole-v1 ...]

Settings are those of rl-baselines3-zoo (hyperparams/*.yml) for each pair; budgets that are cut for time are marked.
Each folder OUT/ALGO-ENV-sSEED holds what the library writes by itself: progress.csv, monitor.csv, evaluations.npz and
the model's zip. A folder that is complete is not made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecNormalize

from benchmarks.peers.once import once

ALGOS = {"ppo": PPO, "a2c": A2C, "dqn": DQN, "sac": SAC, "td3": TD3}


def linear(start: float) -> Callable[[float], float]:
    """rl-zoo's `lin_X`."""
    return lambda left: left * start


# pair -> (steps, worlds, normalise, settings)
PAIRS: dict[str, tuple[int, int, bool, dict[str, Any]]] = {
    "ppo-CartPole-v1": (100_000, 8, False, dict(
        n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0,
        learning_rate=linear(1e-3), clip_range=linear(0.2))),
    "ppo-Acrobot-v1": (200_000, 16, True, dict(  # zoo: 1e6 steps
        n_steps=256, gae_lambda=0.94, gamma=0.99, n_epochs=4, ent_coef=0.0)),
    "ppo-Pendulum-v1": (100_000, 4, False, dict(
        n_steps=1024, gae_lambda=0.95, gamma=0.9, n_epochs=10, ent_coef=0.0, learning_rate=1e-3, clip_range=0.2,
        use_sde=True, sde_sample_freq=4)),
    "a2c-CartPole-v1": (200_000, 8, False, dict(ent_coef=0.0)),  # zoo: 5e5 steps
    "a2c-Acrobot-v1": (200_000, 16, True, dict(ent_coef=0.0)),  # zoo: 5e5 steps
    "dqn-CartPole-v1": (50_000, 1, False, dict(
        learning_rate=2.3e-3, batch_size=64, buffer_size=100_000, learning_starts=1000, gamma=0.99,
        target_update_interval=10, train_freq=256, gradient_steps=128, exploration_fraction=0.16,
        exploration_final_eps=0.04, policy_kwargs=dict(net_arch=[256, 256]))),
    "dqn-Acrobot-v1": (60_000, 1, False, dict(  # zoo: 1e5 steps
        learning_rate=6.3e-4, batch_size=128, buffer_size=50_000, learning_starts=0, gamma=0.99,
        target_update_interval=250, train_freq=4, gradient_steps=-1, exploration_fraction=0.12,
        exploration_final_eps=0.1, policy_kwargs=dict(net_arch=[256, 256]))),
    "dqn-MountainCar-v0": (120_000, 1, False, dict(
        learning_rate=4e-3, batch_size=128, buffer_size=10_000, learning_starts=1000, gamma=0.98,
        target_update_interval=600, train_freq=16, gradient_steps=8, exploration_fraction=0.2,
        exploration_final_eps=0.07, policy_kwargs=dict(net_arch=[256, 256]))),
    "sac-Pendulum-v1": (10_000, 1, False, dict(learning_rate=1e-3)),  # zoo: 2e4 steps
    "td3-Pendulum-v1": (14_000, 1, False, dict(  # zoo: 2e4 steps, 1e4 of them before learning starts
        gamma=0.98, buffer_size=200_000, learning_starts=5000, learning_rate=1e-3, train_freq=1, gradient_steps=1,
        policy_kwargs=dict(net_arch=[400, 300]))),
}  # fmt: skip


def make(pair: str, seed: int, folder: Path) -> None:
    steps, worlds, normalise, settings = PAIRS[pair]
    name, _, env_id = pair.partition("-")
    envs = make_vec_env(env_id, n_envs=worlds, seed=seed, monitor_dir=str(folder))
    judge = make_vec_env(env_id, n_envs=1, seed=1_000 + seed)
    if normalise:
        envs, judge = VecNormalize(envs), VecNormalize(judge, training=False, norm_reward=False)
    if name == "td3":
        settings = settings | {"action_noise": NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))}
    model = ALGOS[name]("MlpPolicy", envs, seed=seed, device="cpu", **settings)
    model.set_logger(configure(str(folder), ["csv"]))
    every = max(steps // 10 // worlds, 1)
    watch = EvalCallback(judge, n_eval_episodes=10, eval_freq=every, log_path=str(folder), verbose=0)
    model.learn(steps, callback=watch, log_interval=max(1, 4 if name in ("dqn", "sac", "td3") else 1))
    model.save(folder / "model.zip")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="+", choices=list(PAIRS), default=list(PAIRS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    for seed in args.seeds:
        for pair in args.only:
            once(args.out / f"{pair}-s{seed}", "model.zip", partial(make, pair, seed))


if __name__ == "__main__":
    main()
