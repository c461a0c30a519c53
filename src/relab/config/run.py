"""What is one training run? The root of every config: an algorithm, an environment, and when to evaluate and save."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from relab.base import limits
from relab.base.documents import Settings
from relab.config.base import require, require_range
from relab.config.ppo import PPO
from relab.config.probes import Probes


@dataclass(frozen=True)
class Eval:
    """When and how the policy is evaluated: a fixed number of first episodes, deterministic and sampled."""

    every: int = 50_000  # agent steps between evaluations; 0: only at the start and at the end
    episodes: int = 20  # first episodes counted per evaluation and mode
    stop_at: float | None = None  # stop training once the mean return reaches this, or the share of success where the
    # environment is judged by it; null: never
    by: Literal["det", "sampled"] = "det"  # which actions' evaluation decides about `best` and `stop_at`

    def check(self) -> None:
        require_range("eval.every", self.every, 0)
        require_range("eval.episodes", self.episodes, 1, limits.EPISODES)
        stop_at = self.stop_at
        require(stop_at is None or math.isfinite(stop_at), f"`eval.stop_at` must be finite or null, but got {stop_at}")
        require(
            stop_at is None or self.every > 0,
            f"`eval.stop_at` = {stop_at} can stop nothing while `eval.every` is 0; set eval.every, e.g. 10_000",
        )


@dataclass(frozen=True)
class Save:
    """When checkpoints are written, and how many of them stay."""

    every: int = 0  # agent steps between checkpoints, besides those with every evaluation; 0: none besides
    keep: int = 3  # step- folders kept, besides latest and best

    def check(self) -> None:
        require_range("save.every", self.every, 0)
        require_range("save.keep", self.keep, 0)


@dataclass(frozen=True)
class Recording:
    """What a run writes besides its record; nothing of it changes a result."""

    tensorboard: bool = False  # an event file in RUN/tensorboard, written while it trains
    pictures: int = 0  # steps between two strips, in RUN/media, of what a world model of images sees and foresees; 0:
    # none

    def check(self) -> None:
        require_range("record.pictures", self.pictures, 0)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run: one config, one seed, trained once."""

    algo: Any = field(default_factory=PPO, metadata={"choice": "algo"})  # the algorithm's settings; `algo=ppo` chooses
    env: Any = field(metadata={"choice": "env"})  # the environment's parameters; `env=cartpole` chooses
    seed: int = 0  # reaches every random draw of the run
    total_steps: int = 1_000_000  # agent steps to train for
    eval: Eval = field(default_factory=Eval)  # when and how the policy is evaluated
    save: Save = field(default_factory=Save)  # when checkpoints are written
    record: Recording | None = None  # what is written besides the record; null: nothing, until one of its keys is set
    probes: Probes | None = None  # measurements during training; null: none, until one of its keys is set
    schedule: Settings | None = None  # curriculum, queues, gates, alerts and evaluations of their own
    # (docs/schedules.md), or the name of a YAML file with them; null: none
    start_from: str | None = None  # RUN, RUN@best or RUN@STEP: whose weights it begins with, by folder or by name
    # below --runs (docs/config.md, "Starting from another run"); null: fresh weights
    start_parts: tuple[str, ...] | None = None  # of those weights, e.g. actor; null: all that fit
    device: str = "cpu"  # cpu, cuda, cuda:N or mps
    threads: int = 1  # threads of torch and of the environments; results of the environments do not depend on it

    @property
    def agents(self) -> int:
        """Agents per world that act, as the environment's parameters say; 1 where they do not."""
        return getattr(self.env, "actors", getattr(self.env, "agents", 1))

    @property
    def batch(self) -> int | None:
        """Agent rows of one iteration; null where the algorithm's settings do not say."""
        return self.algo.batch * self.agents if hasattr(self.algo, "batch") else None

    @property
    def minibatch(self) -> int | None:
        """Agent rows of one optimiser step; null where the algorithm's settings do not say."""
        parts = getattr(self.algo, "minibatches", None)  # of a batch; else a minibatch is drawn from rows of agents
        return self.batch // parts if self.batch and parts else getattr(self.algo, "minibatch", None)

    @property
    def iterations(self) -> int | None:
        """Iterations until `total_steps` agent steps are done, where all agents live all the time: ceil(total_steps /
        batch); null without a batch."""
        return math.ceil(self.total_steps / self.batch) if self.batch else None

    def check(self) -> None:
        require(0 <= self.seed < 2**63, f"0 <= `seed` < 2**63 must hold, but got seed = {self.seed}")
        require_range("total_steps", self.total_steps, 1)
        require_range("threads", self.threads, 1)
        rows = self.batch or 0
        require(rows <= limits.BATCH, f"an iteration must have at most {limits.BATCH:,} agent rows, but has"
                f" {rows:,} with {self.agents:,} agents a world; use fewer of them")  # fmt: skip
        parts = ",".join(self.start_parts or ())
        require(not parts or self.start_from is not None, f"`start_parts` = {parts} are parts of another run's weights:"
                " set `start_from` as well")  # fmt: skip
        apart = getattr(self.algo, "collector", "step") == "own"
        require(self.schedule is None or not apart, "`schedule` changes the worlds between two iterations, but those of"
                " `collector=own` are in another process, which it does not reach; use collector=step")  # fmt: skip
        alone = getattr(self.algo, "ranks", 1) == 1
        require(self.schedule is None or alone, "`schedule` changes the worlds between two iterations, but does not"
                " reach those of other ranks; use ranks=1")  # fmt: skip
        kind, _, number = self.device.partition(":")
        is_device = self.device in ("cpu", "cuda", "mps") or (kind == "cuda" and number.isdecimal())
        require(is_device, f"`device` must be cpu, cuda, cuda:N or mps, but got {self.device!r}")
