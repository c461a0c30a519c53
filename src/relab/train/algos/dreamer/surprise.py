"""Is the world model surprised by what it sees now? Its losses against their own running means, and what follows.

    surprise = ln(loss / mean),   mean <- 0.99 mean + 0.01 loss
    smoothed <- max(0.9 smoothed, surprise, 0),   the step of actor and critic is divided by 1 + k * smoothed
    fall     = ln(slow mean / mean),   slow mean <- 0.998 slow mean + 0.002 loss: above 0 while the model still learns

Focus: where the surprise exceeds a bar, actor and critic wait for a number of updates, but for every fourth; after that
the focus cannot begin again for a while.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from relab.base.documents import Tree

PARTS = ("obs", "reward", "continue", "dyn", "rep")
RATE, FADES = 0.01, 0.9
SLOW, SLOW_RATE = "slow", 0.002  # a mean of the whole loss over five times as many updates
READY = 20  # updates before the running means say anything
LEAST = 1e-8


@dataclass
class Surprise:
    """Running means of the model's losses."""

    mean: dict[str, float] = field(default_factory=dict)
    updates: int = 0
    smoothed: float = 0.0
    ratio: dict[str, float] = field(default_factory=dict)  # of the last update, by part and "total"

    @property
    def ready(self) -> bool:
        return self.updates >= READY

    def note(self, losses: dict[str, float]) -> None:
        """After an update of the model; `losses` by part."""
        values = {name: losses[name] for name in PARTS} | {"total": sum(losses.values())}
        self.ratio = {name: self.log_ratio(name, x) for name, x in values.items()}
        for name, x in values.items():
            before = self.mean.get(name, x)
            self.mean[name] = before + max(RATE, 1 / (self.updates + 1)) * (x - before)
        slow = self.mean.get(SLOW, values["total"])
        self.mean[SLOW] = slow + max(SLOW_RATE, 1 / (self.updates + 1)) * (values["total"] - slow)
        self.updates += 1
        self.smoothed = max(FADES * self.smoothed, self.total, 0.0)

    def log_ratio(self, name: str, x: float) -> float:
        return math.log(max(x, LEAST) / max(self.mean[name], LEAST)) if self.ready else 0.0

    @property
    def total(self) -> float:
        return self.ratio.get("total", 0.0)

    @property
    def kl(self) -> float:
        return self.ratio.get("dyn", 0.0)

    @property
    def fall(self) -> float:
        """How much the model's loss has fallen of late; 0: it stands or rises; infinite before anything is known."""
        if not self.ready:
            return math.inf
        return max(0.0, math.log(max(self.mean[SLOW], LEAST) / max(self.mean["total"], LEAST)))

    def metrics(self) -> dict[str, float]:
        row = {f"model/surprise_{name}": x for name, x in self.ratio.items()}
        most = max((x for name, x in self.ratio.items() if name != "total"), default=0.0)
        return row | {"model/surprise_max": most, "model/surprise_ready": float(self.ready)}

    def to_tree(self) -> Tree:
        return {"updates": self.updates, "smoothed": self.smoothed} | {f"mean_{n}": x for n, x in self.mean.items()}

    def load(self, tree: Tree) -> None:
        self.updates, self.smoothed = int(tree["updates"]), float(tree["smoothed"])
        self.mean = {n.removeprefix("mean_"): float(x) for n, x in tree.items() if n.startswith("mean_")}


@dataclass
class Focus:
    """Do actor and critic wait for the world model?"""

    bar: float | None  # surprise above which they do; None: never
    updates: int
    cooldown: int
    every: int = 4  # update in which they learn nevertheless
    left: int = 0  # updates of the focus that is on
    rest: int = 0  # updates before it may begin again

    @property
    def on(self) -> bool:
        return self.left > 0

    def lets_learn(self) -> bool:
        return not self.on or self.left % self.every == 0

    def note(self, surprise: Surprise) -> None:
        """After an update."""
        if self.on:
            self.left -= 1
            self.rest = self.cooldown if self.left == 0 else 0
        elif self.rest:
            self.rest -= 1
        elif self.bar is not None and surprise.ready and surprise.total > self.bar:
            self.left = self.updates

    def to_tree(self) -> dict[str, int]:
        return {"left": self.left, "rest": self.rest}

    def load(self, tree: dict[str, int]) -> None:
        self.left, self.rest = int(tree["left"]), int(tree["rest"])
