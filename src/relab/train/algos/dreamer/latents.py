"""What was remembered before a sequence began? Memory and latents of every row, kept beside the replay.

They are noted when the agent acts and made anew whenever an update runs over their rows, as the published code does; a
sequence then begins with those of the row before its first, in place of nothing. They change all the time, so they are
part of checkpoints, where the rows themselves are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from relab.base.documents import Tree
from relab.train.algos.dreamer import sequences
from relab.train.algos.dreamer.fast_scan import Start
from relab.train.algos.dreamer.sequences import Sequences
from relab.train.algos.dreamer.world_model import Course
from relab.train.replay import Replay, Rows
from relab.train.rollout import Acted, Policy


@dataclass
class Latents:
    """Of every row that the replay holds."""

    replay: Replay
    h: np.ndarray  # float32[slots, columns, deter]
    z: np.ndarray  # uint8[slots, columns, classes * stoch]: one-hot

    @classmethod
    def of(cls, replay: Replay, deter: int, latent: int) -> Latents:
        rows = (replay.slots, replay.columns)
        return cls(replay, np.zeros((*rows, deter), np.float32), np.zeros((*rows, latent), np.uint8))

    def note(self, memory_BM: np.ndarray) -> None:
        """What the agent remembers in the slot that is about to be added."""
        at, deter = self.replay.count % self.replay.slots, self.h.shape[-1]
        self.h[at], self.z[at] = memory_BM[:, :deter], memory_BM[:, deter : deter + self.z.shape[-1]]

    def recall(self, starts: Rows, rows: Sequences) -> tuple[Sequences, Recalled]:
        """The sequences that begin there go on from what was remembered before them, unless an episode begins."""
        r = self.replay
        goes_on, before = rows.earned[0] > 0, (starts.slot - 1) % r.slots
        rows.fresh[0] = ~goes_on
        rows.action[0] = np.where(goes_on[:, None], r.ring["action"][before, starts.column], 0)
        h, z = (x[before, starts.column] * goes_on[:, None] for x in (self.h, self.z))
        places = sequences.filled(r, starts, len(rows.fresh), places=True).obs[..., 0]
        return rows, Recalled(self, Start(torch.from_numpy(h), torch.from_numpy(z).float()), places, rows.valid > 0)

    def to_tree(self) -> Tree:
        n = min(self.replay.count, self.replay.slots)
        return {"h": self.h[:n], "z": self.z[:n]}

    def load(self, tree: Tree) -> None:
        self.h[: len(tree["h"])], self.z[: len(tree["z"])] = tree["h"], tree["z"]


@dataclass(frozen=True)
class Recalled:
    """What a batch begins with, and where its rows lie."""

    latents: Latents
    start: Start
    place_TB: np.ndarray
    valid_TB: np.ndarray

    def refresh(self, course: Course) -> None:
        """Note what an update made of the rows; those that episodes ended with lead nowhere."""
        r, kept = self.latents.replay, self.valid_TB & (self.place_TB >= 0)
        at = self.place_TB[kept] // r.columns, self.place_TB[kept] % r.columns
        self.latents.h[at] = course.h.detach().numpy()[kept]
        self.latents.z[at] = course.z.detach().numpy()[kept]


class Noting:
    """A policy whose memories are noted."""

    def __init__(self, policy: Policy, latents: Latents):
        self.policy, self.latents = policy, latents
        self.memory_dim, self.to_env = policy.memory_dim, policy.to_env

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        acted = self.policy.act(obs_BD, memory_BM, rng_B, n_mode)
        self.latents.note(acted.memory)
        return acted
