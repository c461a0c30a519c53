"""How does the learner take steps that another process has gathered? In place of acting, one crate at a time.

A run that goes on has no worlds to go on with: its collector begins new episodes. A slot in which nobody lives stands
between the old ones and the new, so that no sequence runs across.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relab.base.documents import Tree
from relab.train.algos.dreamer.collector import Collector, Crate
from relab.train.algos.dreamer.frames import ImageGathering
from relab.train.algos.gathering import Gathering
from relab.train.contract import Counts
from relab.train.rollout import Policy


@dataclass
class Remote(Gathering):
    """Takes what a collector gathers, which is started with the first step."""

    starts: Callable[[Counts], Collector] | None = None
    collector: Collector | None = None
    noted: Callable[[np.ndarray], None] | None = None  # who wants to know what the policy remembered
    gap: bool = False  # the run goes on: what comes now does not follow what was

    def step(self, policy: Policy, counts: Counts) -> None:
        if self.collector is None:
            assert self.starts is not None, "told when it was made"
            self.collector = self.starts(counts)
        if self.gap:
            self.leave_gap(counts)
        crate = self.collector.take(counts.updates)
        if self.noted is not None:
            self.noted(crate.memory)
        slot = self.put(crate.slot)
        self.unpack(slot, crate)
        self.ended += crate.ended
        self.note(slot)
        self.replay.count += 1
        counts.agent_steps += int(slot["alive"].sum())
        counts.env_steps += self.worlds.n

    def put(self, row: Any) -> Any:
        """A row into the next slot, which is not counted yet -> the slot."""
        self.replay.make_room()
        at = self.replay.count % self.replay.slots
        self.replay.ring[at] = row
        return self.replay.ring[at]

    def leave_gap(self, counts: Counts) -> None:
        self.put(np.zeros((), self.replay.dtype))
        self.replay.count += 1
        counts.env_steps += self.worlds.n
        self.gap = False

    def unpack(self, slot: Any, crate: Crate) -> None:
        """What of a step does not lie in its slot."""

    def metrics(self, counts: Counts) -> dict[str, float]:
        row = super().metrics(counts)
        return row | self.collector.metrics() if self.collector is not None else row

    def load(self, tree: Tree) -> None:
        super().load(tree)
        self.gap = self.replay.count > 0

    def close(self) -> None:
        if self.collector is not None:
            self.collector.close()
            self.collector = None


@dataclass
class RemoteImages(Remote, ImageGathering):
    """The same where images are seen."""

    def unpack(self, slot: Any, crate: Crate) -> None:
        rows = np.flatnonzero(slot["terminated"] | slot["truncated"])
        for row, image in zip(rows, crate.finals, strict=True):
            slot["final"][row] = -1 - self.finals.count
            self.finals.add(obs=image[None])
