"""What does a Dreamer run need to go on? The state of its learner and of its worlds; the replay lies in the record."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from relab.base.documents import Tree
from relab.base.streams import get_state, set_state
from relab.config.dreamer import Dreamer
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer.agent import Agent
from relab.train.algos.dreamer.latents import Latents
from relab.train.algos.dreamer.optimiser import LaProp
from relab.train.algos.dreamer.surprise import Focus, Surprise
from relab.train.algos.gathering import Gathering
from relab.train.contract import Counts


@dataclass
class State:
    """All that a Dreamer run needs to go on."""

    cfg: Dreamer
    agent: Agent
    optimiser: LaProp
    scale: eq.ReturnScale
    gathering: Gathering
    total: int
    draw: np.random.Generator  # which sequences are learned from
    noise: np.random.Generator  # latents and actions in updates
    surprise: Surprise
    focus: Focus
    latents: Latents | None = None  # of the replay's rows, where they are kept
    counts: Counts = field(default_factory=Counts)

    def uniform(self, *shape: int) -> Tensor:
        return torch.from_numpy(self.noise.random(shape, np.float32))

    @property
    def share_done(self) -> float:
        return min(1.0, self.counts.agent_steps / self.total)

    def to_tree(self) -> Tree:
        return {
            "params": {name: p.detach() for name, p in self.agent.params.named.items()},
            "slow": {"flat": self.agent.slow.flat},
            **({"obs_scale": {"units": self.agent.units}} if self.agent.units is not None else {}),
            **({"acting": {"flat": self.agent.acting.flat}} if self.cfg.acting_rate < 1 else {}),
            "optimiser": self.optimiser.to_tree(),
            "return_scale": self.scale.to_tree(),
            "surprise": self.surprise.to_tree(),
            "focus": self.focus.to_tree(),
            **self.gathering.to_tree(),
            **({"latents": self.latents.to_tree()} if self.latents is not None else {}),
            "draw": get_state(self.draw),
            "noise": get_state(self.noise),
            "counts": vars(self.counts),
        }

    def load(self, tree: Tree) -> None:
        load_agent(self.agent, tree)
        self.optimiser.load(tree["optimiser"])
        self.scale.load(tree["return_scale"])
        self.surprise.load(tree["surprise"])
        self.focus.load(tree["focus"])
        self.gathering.load(tree)
        if self.latents is not None:
            self.latents.load(tree["latents"])
        set_state(self.draw, tree["draw"])
        set_state(self.noise, tree["noise"])
        self.counts = Counts(**tree["counts"])


def load_agent(agent: Agent, tree: Tree) -> None:
    agent.params.load(tree["params"])
    agent.slow.flat.copy_(torch.from_numpy(tree["slow"]["flat"]))
    if agent.units is not None:
        agent.units.copy_(torch.from_numpy(tree["obs_scale"]["units"]))
    if "acting" in tree:
        agent.acting.flat.copy_(torch.from_numpy(tree["acting"]["flat"]))
