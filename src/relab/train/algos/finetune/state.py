"""What does a fine-tuning run need to go on? PPO's state, the other policies, and of a fixed batch its advantages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relab.base.documents import Tree
from relab.base.streams import generator, get_state, set_state
from relab.config.finetune import FineTune
from relab.train import checkpoint
from relab.train.algos import ppo
from relab.train.algos.finetune import gathering, rerollout
from relab.train.algos.finetune.estimates import Estimated
from relab.train.algos.finetune.gathering import Gathered
from relab.train.contract import Counts, Tell, silent
from relab.train.envs.base import Worlds
from relab.train.replay import Replay


@dataclass
class State:
    """All that a run needs to go on."""

    cfg: FineTune
    ppo: ppo.State
    seed: int
    total: int  # iterations
    follower: Any = None  # acts in re-rollouts
    others: list[Any] = field(default_factory=list)  # whose data IQL is fitted to
    draw: np.random.Generator = field(default_factory=np.random.default_rng)  # of all that estimating draws
    batch: Any = None  # Gathered: what is learned from now
    estimated: Estimated | None = None
    kept: Replay | None = None  # a fixed batch, as files
    fixed: Gathered | None = None  # another run's batch
    fresh_critic: dict[str, np.ndarray] = field(default_factory=dict)  # what the critic begins as
    tell: Tell = silent  # how far a long estimate is
    rerun_worlds: Worlds | None = None  # made when they are needed; nothing of them is kept

    def __post_init__(self) -> None:
        self.draw = generator(self.seed, "advantage")

    @property
    def agent(self) -> Any:
        return self.ppo.agent

    @property
    def counts(self) -> Counts:
        return self.ppo.counts

    @property
    def worlds(self) -> Worlds:
        return self.ppo.worlds

    def again(self, states: int) -> Worlds:
        """Worlds for re-rollouts of so many states."""
        if self.rerun_worlds is None:
            self.rerun_worlds = rerollout.make_worlds(self.ppo.worlds.env, states, self.cfg.mc_samples, self.cfg.slots)
        return self.rerun_worlds

    def follower_params(self) -> dict[str, np.ndarray]:
        """Of a policy that is followed and does not learn here."""
        if self.cfg.advantage != "rerollout" or self.cfg.follow == "current":
            return {}
        named = self.follower.params.named
        return {name: x.detach().numpy() for name, x in named.items() if not name.startswith("critic")}

    def to_tree(self) -> Tree:
        tree = self.ppo.to_tree() | {"draw": get_state(self.draw), "made": self.estimated is not None}
        tree["others"] = [checkpoint.fingerprint(dict(p.params.named)) for p in self.others]
        if follower := self.follower_params():
            tree["follower"] = follower
        if self.cfg.data == "fixed" and self.estimated is not None:
            e = self.estimated
            tree["fixed"] = {"adv": e.adv_TB, "target": e.target_TB, "use": e.use_TB, "facts": e.facts}
        return tree

    def load(self, tree: Tree) -> None:
        self.ppo.load(tree)
        set_state(self.draw, tree["draw"])
        mine = [checkpoint.fingerprint(dict(p.params.named)) for p in self.others]
        if mine != tree["others"]:
            raise ValueError(f"the policies of `data_from` were {tree['others']}, but are {mine} now")
        if follower := tree.get("follower"):
            for name, array in follower.items():
                self.follower.params[name].detach().numpy()[:] = array
        if fixed := tree.get("fixed"):
            self.estimated = Estimated(fixed["adv"], fixed["target"], fixed["use"], dict(fixed["facts"]))
            assert self.kept is not None
            names = self.kept.dtype.names or ()
            self.batch = gathering.from_rows({name: self.kept.ring[name] for name in names})
