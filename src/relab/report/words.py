"""What is a number called on a page for people? Words for what relab names by a code; a code without words stays."""

from __future__ import annotations

import re

from relab.record import glossary

METRICS = {
    "eval/return_det": "evaluated return",
    "eval/return_sampled": "evaluated return, sampled actions",
    "eval/success_det": "success rate",
    "eval/success_sampled": "success rate, sampled actions",
    "eval/length_det": "evaluated episode length",
    "return/mean": "training return",
    "return/mean_100": "training return, mean of 100 episodes",
    "return/success": "training success rate",
    "return/length": "training episode length",
    "policy/entropy": "policy entropy",
    "policy/kl": "KL of an update",
    "policy/clip_share": "share of clipped rows",
    "policy/std_mean": "policy standard deviation",
    "policy/loss": "policy loss",
    "value/explained_variance": "variance the critic explains",
    "value/loss": "value loss",
    "value/critic_loss": "critic loss",
    "value/td_loss": "TD loss",
    "optim/grad_norm": "gradient norm",
    "optim/lr": "learning rate",
    "optim/temperature": "temperature",
    "policy/exploration": "exploration rate",
}
ALGORITHMS = {"tracking_ac": "Tracking actor-critic"}
LETTERS = 4  # of a name that is read letter by letter: PPO, DQN, TRPO
CODE = re.compile(r"\b[a-z]+/[a-z_0-9]+\b")
AXES = {"agent_steps": "steps", "env_steps": "steps", "sim_steps": "simulator steps", "iteration": "iterations"}
INFO = {
    "why": "how it ended", "heartbeat": "last sign of life", "config_hash": "config (hash)", "memory_mb": "memory",
    "deterministic": "same bytes each time",
}  # fmt: skip
SHORT = {"eval/return_sampled": "return, sampled actions", "eval/success_sampled": "success, sampled actions"}
REASONS = {"total_steps reached": "ran its whole budget", "stop_at reached": "reached the level it was to stop at"}


def metric(name: str) -> str:
    """
    >>> metric("eval/return_det"), metric("foreign/rollout/my_reward")
    ('evaluated return', 'rollout/my_reward')
    """
    return METRICS.get(name, name.removeprefix("foreign/"))


def short(name: str) -> str:
    """For a place without room: what tells the metric from its neighbours stays."""
    return SHORT.get(name) or metric(name).partition(",")[0]


def in_text(text: str) -> str:
    """
    >>> in_text("+12 (final eval/return_det, + is better)")
    '+12 (final evaluated return, + is better)'
    """
    return CODE.sub(lambda match: METRICS.get(match[0], match[0]), text)


def algorithm(name: str) -> str:
    """
    >>> algorithm("ppo"), algorithm("dreamer"), algorithm("QR-DQN"), algorithm("tracking_ac")
    ('PPO', 'Dreamer', 'QR-DQN', 'Tracking actor-critic')
    """
    plain = name.upper() if len(name) <= LETTERS else name[:1].upper() + name[1:].replace("_", " ")
    return ALGORITHMS.get(name, plain)


def both(name: str) -> str:
    """For tables that people look names up in: KL of an update (policy/kl)."""
    return f"{METRICS[name]} ({name})" if name in METRICS else name


def meaning(name: str) -> str:
    """The first clause of what the glossary says of a code; nothing where the name has words of its own.

    >>> meaning("data/reward_mean"), meaning("rollout/my_reward")
    ('mean reward per agent step, as the environment gave it', '')
    """
    return glossary.metric(name).meaning.partition(";")[0] if glossary.known(name) else ""


def axis(name: str) -> str:
    return AXES.get(name, name.replace("_", " "))


def reason(text: str) -> str:
    return REASONS.get(text, text)
