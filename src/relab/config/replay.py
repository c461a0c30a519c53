"""What must hold for every method that learns from a replay?"""

from __future__ import annotations

from relab.base import limits
from relab.config.base import require, require_numbers, require_range
from relab.config.shared import Collected, Discounted, check_layers

MOST_UPDATES = 1_000  # for each agent step


class Replayed(Discounted, Collected):
    """The settings that such methods share, and what follows from them."""

    replay: int
    learning_starts: int
    updates_per_step: float
    minibatch: int
    lr: float
    n_step: int
    tau: float
    hidden: tuple[int, ...]
    adam_eps: float

    @property
    def replay_ratio(self) -> float:
        """How often a transition is learned from, on average: updates_per_step * minibatch."""
        return self.updates_per_step * self.minibatch


def check_replay(cfg: Replayed) -> None:
    require_numbers(cfg, limits=("max_grad_norm",))
    for name in ("envs", "steps", "replay", "minibatch", "n_step"):
        require_range(name, getattr(cfg, name), 1)
    require_range("learning_starts", cfg.learning_starts, 0)
    for name in ("lr", "updates_per_step", "adam_eps"):
        require_range(name, getattr(cfg, name), 0, open_="low")
    require(cfg.updates_per_step <= MOST_UPDATES, f"`updates_per_step` must be at most {MOST_UPDATES:,}, but got"
            f" {cfg.updates_per_step:g}")  # fmt: skip
    require_range("gamma", cfg.gamma, 0, 1)
    require_range("tau", cfg.tau, 0, 1, open_="low")
    check_layers(cfg.hidden)
    check_room(cfg)


def check_room(cfg: Replayed) -> None:
    """The replay holds what is drawn from it."""
    require(cfg.replay <= limits.REPLAY, f"`replay` must be at most {limits.REPLAY:,} transitions, but got"
            f" {cfg.replay:,}")  # fmt: skip
    require(cfg.replay >= cfg.minibatch, f"`replay` must hold a minibatch, but got replay = {cfg.replay:,} and"
            f" minibatch = {cfg.minibatch:,}")  # fmt: skip
    require(cfg.replay >= cfg.envs * (cfg.n_step + 1), f"`replay` must hold n_step + 1 = {cfg.n_step + 1} steps of"
            f" every world, but got replay = {cfg.replay:,} and envs = {cfg.envs:,}")  # fmt: skip
    require(cfg.learning_starts <= cfg.replay, "`learning_starts` must not exceed `replay`, which could never hold as"
            f" much, but got learning_starts = {cfg.learning_starts:,} and replay = {cfg.replay:,}")  # fmt: skip
