# ruff: noqa: C408 - settings read like the keyword arguments they become
"""Which runs are to be made, with which settings, for which purpose? Written down before any of them was made.

The split: `table` runs use the tasks of tasks.TABLE and seeds 0, 1, 2; `held-out` runs use the tasks of tasks.HELD_OUT,
seeds from 100 on and settings of their own (variants x and y), and give nothing to the reference table; `held-out-2`
runs, planned when rules had been mended after those, use the same tasks and tasks.LATER, seeds from 200 on and variants
v and w. The order is drawn once, so that any first part of it holds all algorithms, tools and tasks alike.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from benchmarks.peers import tasks

Settings = dict[str, Any]
DISCRETE, CONTINUOUS = ("ppo", "a2c", "dqn"), ("ppo", "a2c", "sac", "td3")


class Case(NamedTuple):
    """One run: who makes it, of what, how, and for which purpose."""

    part: str  # table, held-out, held-out-2
    tool: str  # sb3, cleanrl, relab
    algo: str
    task: str
    variant: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.part}/{self.tool}/{self.algo}-{self.task}-{self.variant}-s{self.seed}"


# What the logs hold: csv, eval (evaluations.npz), zip (the model's settings), tb (TensorBoard), args (CleanRL's table).
SB3_LOGS = {"a": ("csv", "eval", "zip"), "b": ("tb",), "c": ("csv",), "x": ("csv", "eval"), "y": ("tb", "zip"),
            "v": ("csv", "eval", "zip"), "w": ("tb",)}  # fmt: skip
CLEANRL_LOGS = {"a": 1, "b": 0, "c": 1, "x": 1, "y": 0, "v": 1, "w": 0}  # whether the arguments are in the log

# Steps in thousands where the default of an algorithm is too short, and what a task needs of everybody.
LONGER: dict[str, dict[str, int]] = {
    "CartPole-v1": dict(ppo=50, a2c=60, dqn=60), "Acrobot-v1": dict(ppo=80, a2c=80, dqn=40),
    "Pendulum-v1": dict(ppo=150, sac=32, td3=40), "Lander-v0": dict(ppo=60, a2c=60, dqn=30),
    "Crane-v0": dict(ppo=50, a2c=60), "Steering-v0": dict(ppo=40, a2c=50, dqn=30), "Docking-v0": dict(ppo=50, a2c=60),
    "TwoLinkReach-v0": dict(ppo=60, a2c=60), "BallBeam-v0": dict(ppo=40, a2c=50), "Dodge-v0": dict(ppo=40, a2c=50),
    "Lift-v0": dict(ppo=50, a2c=60, dqn=30), "Hover-v0": dict(ppo=50, a2c=60), "Traffic-v0": dict(ppo=40, a2c=50),
}  # fmt: skip
# Acrobot is the one task that is stepped in Python, world by world: one variant of it. A2C does not learn Pendulum in
# the budget of these runs.
ONCE, HOPELESS = ("Acrobot-v1",), (("a2c", "Pendulum-v1"),)
STEPS = {"ppo": 25, "a2c": 40, "dqn": 20, "sac": 20, "td3": 20}
GAMMA = {"Pendulum-v1": 0.9, "Acrobot-v1": 0.99, "Lander-v0": 0.99, "CartPole-v1": 0.98, "CliffWalk-v0": 0.98}


# Worlds side by side, and fewer where DQN needs more updates for its steps than one each time that all worlds moved.
WIDE, NARROW = 16, 8
SLOW_TO_LEARN = ("CartPole-v1", "Acrobot-v1", "CliffWalk-v0", "KeyDoor-v0", "Steering-v0", "Dodge-v0")


def worlds(algo: str, task: str) -> int:
    return NARROW if algo == "dqn" and task in SLOW_TO_LEARN else WIDE


def steps(algo: str, task: str) -> int:
    return 1000 * LONGER.get(task, {}).get(algo, STEPS[algo])


def gamma(task: str, otherwise: float) -> float:
    return GAMMA.get(task, otherwise)


SMALL = dict(net_arch=[64, 64])
SB3: dict[str, dict[str, Settings]] = {
    "ppo": {
        "a": dict(n_steps=64, batch_size=256, n_epochs=6, learning_rate=1e-3, gamma=0.97, ent_coef=0.0),
        "b": dict(n_steps=32, batch_size=128, n_epochs=5, learning_rate=("linear", 1.5e-3), gamma=0.98, ent_coef=0.01),
        "c": dict(n_steps=128, batch_size=512, n_epochs=10, learning_rate=7e-4, gamma=0.96, clip_range=0.15),
        "x": dict(n_steps=48, batch_size=192, n_epochs=6, learning_rate=8e-4, gamma=0.97, ent_coef=0.003),
        "y": dict(n_steps=64, batch_size=256, n_epochs=8, learning_rate=("linear", 1.2e-3), gamma=0.98, gae_lambda=0.9),
        "v": dict(n_steps=80, batch_size=320, n_epochs=7, learning_rate=9e-4, gamma=0.97, ent_coef=0.002,
                  gae_lambda=0.92),
        "w": dict(n_steps=56, batch_size=224, n_epochs=6, learning_rate=("linear", 1.4e-3), gamma=0.98,
                  clip_range=0.25),
    },
    "a2c": {
        "a": dict(n_steps=8, learning_rate=2e-3, gamma=0.97, ent_coef=0.0),
        "b": dict(n_steps=16, learning_rate=1.5e-3, gamma=0.98, ent_coef=0.005, use_rms_prop=False, gae_lambda=0.95),
        "x": dict(n_steps=8, learning_rate=1.5e-3, gamma=0.97, ent_coef=0.003, gae_lambda=0.95),
        "y": dict(n_steps=10, learning_rate=2e-3, gamma=0.97, use_rms_prop=False, normalize_advantage=True),
        "v": dict(n_steps=12, learning_rate=1.7e-3, gamma=0.97, ent_coef=0.002, gae_lambda=0.9),
        "w": dict(n_steps=8, learning_rate=1.8e-3, gamma=0.98, gae_lambda=0.95, normalize_advantage=True),
    },
    "dqn": {
        "a": dict(learning_rate=1e-3, batch_size=64, buffer_size=20_000, learning_starts=500, gamma=0.97, train_freq=1,
                  target_update_interval=400, exploration_fraction=0.3, exploration_final_eps=0.05),
        "b": dict(learning_rate=7e-4, batch_size=128, buffer_size=50_000, learning_starts=1000, gamma=0.98,
                  train_freq=1, tau=0.05, target_update_interval=10, exploration_fraction=0.4,
                  exploration_final_eps=0.08),
        "c": dict(learning_rate=2e-3, batch_size=64, buffer_size=10_000, learning_starts=800, gamma=0.96, train_freq=1,
                  target_update_interval=800, exploration_fraction=0.25, exploration_final_eps=0.04),
        "x": dict(learning_rate=1.2e-3, batch_size=96, buffer_size=20_000, learning_starts=600, gamma=0.97,
                  train_freq=1, target_update_interval=500, exploration_fraction=0.3, exploration_final_eps=0.06),
        "y": dict(learning_rate=8e-4, batch_size=64, buffer_size=30_000, learning_starts=800, gamma=0.98, train_freq=1,
                  target_update_interval=300, exploration_fraction=0.35, exploration_final_eps=0.05),
        "v": dict(learning_rate=9e-4, batch_size=128, buffer_size=25_000, learning_starts=700, gamma=0.97, train_freq=1,
                  target_update_interval=450, exploration_fraction=0.35, exploration_final_eps=0.05),
        "w": dict(learning_rate=1.5e-3, batch_size=64, buffer_size=15_000, learning_starts=500, gamma=0.98,
                  train_freq=1, target_update_interval=350, exploration_fraction=0.3, exploration_final_eps=0.04),
    },
    "sac": {
        "a": dict(learning_rate=2e-3, batch_size=128, learning_starts=800, gamma=0.96, tau=0.02),
        "b": dict(learning_rate=1e-3, batch_size=192, learning_starts=500, gamma=0.97, tau=0.01, ent_coef="auto_0.2"),
        "c": dict(learning_rate=2e-3, batch_size=96, learning_starts=800, gamma=0.95, tau=0.02, ent_coef=0.05),
        "x": dict(learning_rate=1.5e-3, batch_size=128, learning_starts=600, gamma=0.96, tau=0.015),
        "y": dict(learning_rate=2e-3, batch_size=128, learning_starts=800, gamma=0.97, tau=0.02, ent_coef="auto_0.1"),
        "v": dict(learning_rate=1.8e-3, batch_size=128, learning_starts=700, gamma=0.97, tau=0.015,
                  ent_coef="auto_0.3"),
        "w": dict(learning_rate=1.5e-3, batch_size=160, learning_starts=600, gamma=0.96, tau=0.02),
    },
    "td3": {
        "a": dict(learning_rate=1.5e-3, batch_size=128, learning_starts=800, gamma=0.96, tau=0.02, noise=0.1),
        "b": dict(learning_rate=1e-3, batch_size=192, learning_starts=1000, gamma=0.97, tau=0.01, noise=0.2),
        "c": dict(learning_rate=2e-3, batch_size=96, learning_starts=800, gamma=0.95, tau=0.02, noise=0.15),
        "x": dict(learning_rate=1.2e-3, batch_size=128, learning_starts=800, gamma=0.96, tau=0.015, noise=0.12),
        "y": dict(learning_rate=1.5e-3, batch_size=128, learning_starts=600, gamma=0.97, tau=0.02, noise=0.2),
        "v": dict(learning_rate=1.3e-3, batch_size=128, learning_starts=700, gamma=0.97, tau=0.015, noise=0.15),
        "w": dict(learning_rate=1.6e-3, batch_size=160, learning_starts=800, gamma=0.96, tau=0.02, noise=0.1),
    },
}  # fmt: skip

CLEANRL: dict[str, dict[str, Settings]] = {
    "ppo": {
        "a": dict(num_steps=64, update_epochs=5, learning_rate=1.5e-3, gamma=0.97),
        "b": dict(num_steps=128, update_epochs=8, learning_rate=1e-3, gamma=0.98, anneal_lr=0, ent_coef=0.002),
        "c": dict(num_steps=64, update_epochs=6, learning_rate=1e-3, gamma=0.96, clip_vloss=0, clip_coef=0.15),
        "x": dict(num_steps=64, update_epochs=6, learning_rate=1.2e-3, gamma=0.97, ent_coef=0.005),
        "y": dict(num_steps=96, update_epochs=6, learning_rate=1e-3, gamma=0.98, anneal_lr=0, clip_vloss=0),
        "v": dict(num_steps=80, update_epochs=5, learning_rate=1.3e-3, gamma=0.97, ent_coef=0.004, gae_lambda=0.92),
        "w": dict(num_steps=64, update_epochs=7, learning_rate=9e-4, gamma=0.98, anneal_lr=0, clip_coef=0.25),
    },
    "dqn": {
        "a": dict(learning_rate=1e-3, gamma=0.97),
        "b": dict(learning_rate=7e-4, gamma=0.98, buffer_size=20_000, target_network_frequency=300, end_e=0.08),
        "x": dict(learning_rate=1.2e-3, gamma=0.97, target_network_frequency=400, exploration_fraction=0.3),
        "y": dict(learning_rate=8e-4, gamma=0.98, buffer_size=15_000, batch_size=96),
        "v": dict(learning_rate=1.1e-3, gamma=0.97, buffer_size=12_000, target_network_frequency=450),
        "w": dict(learning_rate=9e-4, gamma=0.98, exploration_fraction=0.35, batch_size=96, end_e=0.04),
    },
    "sac": {
        "a": dict(q_lr=2e-3, policy_lr=1e-3, gamma=0.96, tau=0.02),
        "b": dict(q_lr=1e-3, policy_lr=1e-3, gamma=0.97, autotune=0, alpha=0.05, tau=0.01),
        "x": dict(q_lr=1.5e-3, policy_lr=1e-3, gamma=0.96, tau=0.015),
        "y": dict(q_lr=2e-3, policy_lr=1.5e-3, gamma=0.97, tau=0.02, policy_frequency=1),
        "v": dict(q_lr=1.7e-3, policy_lr=1.2e-3, gamma=0.96, tau=0.015),
        "w": dict(q_lr=1.5e-3, policy_lr=1e-3, gamma=0.97, tau=0.02, batch_size=96),
    },
    "td3": {
        "a": dict(learning_rate=1.5e-3, gamma=0.96, tau=0.02),
        "b": dict(learning_rate=1e-3, gamma=0.97, exploration_noise=0.2),
        "x": dict(learning_rate=1.2e-3, gamma=0.96, tau=0.015, exploration_noise=0.15),
        "y": dict(learning_rate=1.5e-3, gamma=0.97, tau=0.02, batch_size=96),
        "v": dict(learning_rate=1.3e-3, gamma=0.97, tau=0.015, exploration_noise=0.12),
        "w": dict(learning_rate=1.4e-3, gamma=0.96, tau=0.02, exploration_noise=0.2),
    },
}

# relab's own runs, on its own environments, which are Gymnasium's. variant -> words for `relab train`
RELAB: dict[tuple[str, str], dict[str, str]] = {
    ("ppo", "cartpole"): {"a": "", "b": "lr=5e-4", "c": "algo.ent_coef=0.0 algo.epochs=6"},
    ("ppo", "pendulum"): {"a": "", "b": "lr=5e-4"},
    ("dqn", "cartpole"): {"a": "total_steps=30000", "b": "total_steps=30000 lr=5e-4"},
    ("sac", "pendulum"): {"a": "total_steps=8000", "b": "total_steps=8000 lr=1e-3"},
}
RELAB_LEVEL = {"cartpole": "CartPole-v1", "pendulum": "Pendulum-v1"}


TASKS = {"table": tasks.TABLE, "held-out": tasks.HELD_OUT, "held-out-2": tasks.HELD_OUT | tasks.LATER}


def cases(part: str) -> list[Case]:
    """All runs of one part in the order in which they are made."""
    seeds, names = {"table": ((0, 1, 2), "abc"), "held-out": ((100, 101), "xy"), "held-out-2": ((200, 201), "vw")}[part]
    ordered = []
    for seed in seeds:
        for variant in names:
            block = [*_foreign(part, variant, seed), *(_own(variant, seed) if part == "table" else ())]
            random.Random(f"{part}{seed}{variant}").shuffle(block)
            ordered += block
    return ordered


def _foreign(part: str, variant: str, seed: int) -> list[Case]:
    listed = []
    for task, make in TASKS[part].items():
        for algo in DISCRETE if make.choices else CONTINUOUS:
            if (task in ONCE and variant != "a") or (algo, task) in HOPELESS:
                continue
            for tool, known in (("sb3", SB3), ("cleanrl", CLEANRL)):
                if variant in known.get(algo, {}):
                    listed.append(Case(part, tool, algo, task, variant, seed))
    return listed


def _own(variant: str, seed: int) -> list[Case]:
    return [Case("table", "relab", algo, env, variant, seed) for (algo, env), v in RELAB.items() if variant in v]
