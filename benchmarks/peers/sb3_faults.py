# ruff: noqa: C408 - settings read like the keyword arguments they become
"""What do faulty runs of replay methods look like? Real Stable-Baselines3 runs with one wrong setting each.

    .venv-sb3/bin/python -m benchmarks.peers.sb3_faults OUT --seeds 0 1 [--only lr-times-100] [--pairs sac-Pendulum-v1]

Budgets and networks are small, so that a run takes a quarter of a minute; HEALTHY settings learn within them. Each
folder OUT/FAULT/ALGO-ENV-sSEED holds what the library writes by itself; `healthy` is the fault of none. A complete
folder is not made again. benchmarks/peers/score_faults.py asks the examiner about them.
"""

from __future__ import annotations

import argparse
import copy
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.noise import NormalActionNoise

from benchmarks.peers.once import once

ALGOS = {"dqn": DQN, "sac": SAC, "td3": TD3}
EVALUATIONS = 6
SMALL = dict(policy_kwargs=dict(net_arch=[64, 64]))

# pair -> (steps, settings that learn the task)
HEALTHY: dict[str, tuple[int, dict[str, Any]]] = {
    "dqn-CartPole-v1": (10_000, dict(
        learning_rate=1e-3, batch_size=64, buffer_size=50_000, learning_starts=500, gamma=0.99,
        target_update_interval=250, train_freq=4, gradient_steps=2, exploration_fraction=0.2,
        exploration_final_eps=0.05, **SMALL)),
    "sac-Pendulum-v1": (4_000, dict(learning_rate=1e-3, batch_size=128, learning_starts=200, gamma=0.98, **SMALL)),
    "td3-Pendulum-v1": (5_000, dict(
        learning_rate=2e-3, batch_size=128, learning_starts=400, gamma=0.98, train_freq=1, gradient_steps=1, **SMALL)),
}  # fmt: skip
CONTINUOUS = ("sac", "td3")


class Times(gymnasium.RewardWrapper):
    """Rewards as the learner sees them; the monitor below writes the environment's own."""

    def __init__(self, env: gymnasium.Env, factor: float):
        super().__init__(env)
        self.factor = factor

    def reward(self, reward: Any) -> float:
        return float(reward) * self.factor


Change = Callable[[str, dict[str, Any]], dict[str, Any]]


def _lr(factor: float) -> Change:
    return lambda algo, base: dict(learning_rate=base["learning_rate"] * factor)


def _always(**settings: Any) -> Change:
    return lambda algo, base: settings


def _no_target(algo: str, base: dict[str, Any]) -> dict[str, Any]:
    return dict(tau=1.0) if algo == "td3" else dict(tau=1.0, target_update_interval=1)  # TD3 has no interval


def _frozen_target(algo: str, base: dict[str, Any]) -> dict[str, Any]:
    return dict(target_update_interval=10_000_000) if algo == "dqn" else dict(tau=1e-7)


# fault -> (algorithms, what changes, factor of the rewards)
FAULTS: dict[str, tuple[tuple[str, ...], Change, float]] = {
    "healthy": (("dqn", "sac", "td3"), _always(), 1.0),
    "lr-times-100": (("dqn", "sac", "td3"), _lr(100), 1.0),
    "lr-over-1000": (("dqn", "sac", "td3"), _lr(1e-3), 1.0),
    "no-target-network": (("dqn", "sac", "td3"), _no_target, 1.0),
    "target-never-updated": (("dqn", "sac", "td3"), _frozen_target, 1.0),
    "gamma-short": (("dqn", "sac", "td3"), _always(gamma=0.3), 1.0),
    "gamma-one": (("dqn", "sac", "td3"), _always(gamma=1.0), 1.0),
    "reward-times-1000": (("dqn", "sac", "td3"), _always(), 1000.0),
    "reward-negated": (("dqn", "sac", "td3"), _always(), -1.0),
    "learning-starts-late": (("dqn", "sac", "td3"), _always(learning_starts=1_000_000), 1.0),
    "buffer-tiny": (("dqn", "sac", "td3"), _always(buffer_size=100), 1.0),
    "updates-rare": (("dqn", "sac", "td3"), _always(train_freq=1000, gradient_steps=1), 1.0),
    "temperature-huge": (("sac",), _always(ent_coef=100.0), 1.0),
    "target-entropy-unreachable": (("sac",), _always(target_entropy=5.0), 1.0),
    "exploration-stays": (("dqn",), _always(exploration_final_eps=0.9), 1.0),
}


def make(fault: str, pair: str, seed: int, folder: Path) -> None:
    steps, base = HEALTHY[pair]
    algo, _, env_id = pair.partition("-")
    _, change, factor = FAULTS[fault]
    settings = copy.deepcopy(base) | change(algo, base)  # the library writes into policy_kwargs
    wrap = dict(wrapper_class=Times, wrapper_kwargs=dict(factor=factor)) if factor != 1 else {}
    envs = make_vec_env(env_id, n_envs=1, seed=seed, monitor_dir=str(folder), **wrap)
    judge = make_vec_env(env_id, n_envs=1, seed=1_000 + seed)
    if algo == "td3":
        settings["action_noise"] = NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))
    model = ALGOS[algo]("MlpPolicy", envs, seed=seed, device="cpu", **settings)
    model.set_logger(configure(str(folder), ["csv"]))
    every = steps // EVALUATIONS
    watch = EvalCallback(judge, n_eval_episodes=10 if algo == "dqn" else 5, eval_freq=every, log_path=str(folder),
                         verbose=0)  # fmt: skip
    try:
        model.learn(steps, callback=watch, log_interval=1 if algo in CONTINUOUS else 4)
    except (ValueError, FloatingPointError) as error:  # networks that became NaN: the log ends here, as it would
        (folder / "error.txt").write_text(f"{type(error).__name__}: {str(error)[:300]}\n")
    model.save(folder / "model.zip")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--pairs", nargs="+", choices=list(HEALTHY), default=list(HEALTHY))
    args = parser.parse_args()
    torch.set_num_threads(1)
    spent = 0.0
    for seed in args.seeds:
        for fault in args.only:
            for pair in [p for p in args.pairs if p.partition("-")[0] in FAULTS[fault][0]]:
                name = f"{fault}/{pair}-s{seed}"
                spent += once(args.out / name, "model.zip", partial(make, fault, pair, seed), name)
    print(f"{math.ceil(spent / 60)} minutes")


if __name__ == "__main__":
    main()
