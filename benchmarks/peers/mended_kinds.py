# ruff: noqa: C408 - settings read like the keyword arguments they become
"""Which bad settings does `relab next` get to mend? Written down before any of these runs was made.

KINDS may be looked at while advice changes. KEPT_APART are other kinds on other seeds: made and counted once, with
advice that no longer changes. All are settings, for a fault of the program is mended in the program; all logs hold the
settings, for what is not in a log cannot be proposed to be changed.

Mended: the sick run did not reach its task's level (tasks.reached: three quarters of the way from random to solved, of
32 episodes of its own), and a run of the same seed with the proposed change, and nothing else, does. Half mended: it
goes half of the way from the sick run's level to that level. A pair whose sick run reached the level is not counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Settings = dict[str, Any]


class Bad(NamedTuple):
    name: str
    tool: str
    algo: str
    task: str
    settings: Settings


SEEDS, SEEDS_APART = (50, 51), (60, 61)
KINDS = [
    Bad("learning rate 0.1", "sb3", "ppo", "CartPole-v1", dict(learning_rate=0.1)),
    Bad("learning rate 1e-7", "sb3", "td3", "PointReach-v0", dict(learning_rate=1e-7)),
    Bad("a buffer of 100", "sb3", "dqn", "CartPole-v1", dict(buffer_size=100)),
    Bad("target copied every million steps", "cleanrl", "dqn", "CartPole-v1", dict(target_network_frequency=10**6)),
    Bad("gamma 0.2", "sb3", "ppo", "CartPole-v1", dict(gamma=0.2)),
    Bad("entropy bonus of 5", "cleanrl", "ppo", "CartPole-v1", dict(ent_coef=5.0)),
    Bad("value loss with the weight 0", "sb3", "a2c", "PointReach-v0", dict(vf_coef=0.0)),
    Bad("epsilon stays at 0.9", "sb3", "dqn", "CliffWalk-v0", dict(exploration_final_eps=0.9)),
    Bad("learning starts after the end", "cleanrl", "dqn", "Catch-v0", dict(learning_starts=10**6)),
    Bad("clip range 5", "sb3", "ppo", "CartPole-v1", dict(clip_range=5.0, learning_rate=5e-3)),
    Bad("200 epochs", "cleanrl", "ppo", "CartPole-v1", dict(update_epochs=200, learning_rate=3e-3)),
    Bad("temperature 100", "sb3", "sac", "Pendulum-v1", dict(ent_coef=100.0)),
]
KEPT_APART = [
    Bad("learning rate 0.2", "sb3", "a2c", "GridWorld-v0", dict(learning_rate=0.2)),
    Bad("learning rate 1e-6", "cleanrl", "ppo", "GridWorld-v0", dict(learning_rate=1e-6)),
    Bad("learning rate 0.3", "cleanrl", "dqn", "GridWorld-v0", dict(learning_rate=0.3)),
    Bad("learning rate 1e-7", "sb3", "ppo", "StateBandit-v0", dict(learning_rate=1e-7)),
    Bad("entropy bonus of 0.5 on a Gaussian", "cleanrl", "ppo", "PointReach-v0", dict(ent_coef=0.5)),
    Bad("entropy bonus of 2", "sb3", "a2c", "CartPole-v1", dict(ent_coef=2.0)),
    Bad("gradients clipped at 1e-5", "sb3", "ppo", "Catch-v0", dict(max_grad_norm=1e-5)),
    Bad("ratio clipped at 1e-4", "cleanrl", "ppo", "CartPole-v1", dict(clip_coef=1e-4)),
    Bad("targets follow by a millionth", "cleanrl", "td3", "DoubleIntegrator-v0", dict(tau=1e-6)),
    Bad("gamma 0.1", "sb3", "dqn", "CliffWalk-v0", dict(gamma=0.1)),
    Bad("an update every thousand steps", "sb3", "dqn", "GridWorld-v0", dict(train_freq=1000)),
    Bad("temperature 20", "cleanrl", "sac", "Thermostat-v0", dict(autotune=0, alpha=20.0)),
    Bad("a buffer of 64", "sb3", "td3", "Thermostat-v0", dict(buffer_size=64)),
    Bad("learning starts after the end", "sb3", "sac", "PointReach-v0", dict(learning_starts=10**6)),
]
