"""What does a round of probes look at? One state of a run, and what several probes of the round share."""

from __future__ import annotations

from typing import Any

import numpy as np

from relab.base.documents import Tree
from relab.config.probes import Probes
from relab.config.run import RunConfig
from relab.train.envs.base import Env


class Room:
    """Large arrays that round after round is computed in.

    New memory is handed out page by page, and two threads that ask for pages wait for each other: making the features
    took three times as long in new arrays as in old ones.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: tuple[int, int]) -> np.ndarray:
        """float32, with what the last round left in it."""
        if name not in self.arrays or self.arrays[name].shape != shape:
            self.arrays[name] = np.zeros(shape, np.float32)
        return self.arrays[name]


class Round:
    """All probes of one iteration share this: the state, which is only read, and where the run stands."""

    def __init__(
        self,
        env: Env,
        state: Any,
        cfg: Probes,
        memory: Tree | None = None,
        room: Room | None = None,
        seed: int = 0,
        gamma: float | None = None,
        step: int | None = None,
    ):
        self.env, self.state, self.cfg, self.seed, self.gamma = env, state, cfg, seed, gamma
        self.memory = {} if memory is None else memory  # what the last round left: w_sharp
        self.room = room or Room()
        self.iteration = int(state.counts.iteration)
        self.step = int(state.counts.agent_steps) if step is None else step

    @classmethod
    def of(cls, run: RunConfig, env: Env, state: Any, step: int, **kept: Any) -> Any:
        """A round of a run, at its step; `kept`: what the last round left."""
        gamma = getattr(run.algo, "gamma", None)  # an algorithm need not discount
        return cls(env, state, run.probes or Probes(), seed=run.seed, gamma=gamma, step=step, **kept)
