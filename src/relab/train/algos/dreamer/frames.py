"""How are images kept to learn from? As bytes, each once, in the replay's files; where an episode ends, one more.

A step's slot holds the image that was seen. What was seen next is the next slot's image, except where an episode ended:
that last image lies in a second replay, `finals`, and the slot says which it is. A sequence is put together as for
vectors, with the places of images in place of images; then all of them are taken at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from relab.train.algos.dreamer import sequences
from relab.train.algos.dreamer.sequences import Sequences
from relab.train.algos.gathering import Gathering, transition_fields
from relab.train.contract import Setup
from relab.train.envs.base import Step
from relab.train.replay import Fields, Replay, Rows

WHITE = np.float32(255)


def image_fields(obs_dim: int, action: np.ndarray) -> Fields:
    """transition_fields with bytes for numbers; `final`: -1 - the number of the image an episode ended with, else 0."""
    fields = dict(transition_fields(obs_dim, action))
    del fields["next_obs"]
    return fields | {"obs": ((obs_dim,), np.uint8), "final": ((1,), np.int64)}


@dataclass
class ImageGathering(Gathering):
    """Worlds that are seen in images."""

    finals: Replay = None  # type: ignore[assignment]  # images that episodes ended with; `begin` makes it

    @classmethod
    def begin(cls, setup: Setup, envs: int, capacity: int, action: np.ndarray, memory_dim: int = 0) -> Self:
        made, dim = super().begin(setup, envs, capacity, action, memory_dim), setup.env.spec.obs_dim
        made.finals = setup.data.replay("finals", {"obs": ((dim,), np.uint8)}, len_of(made.replay), 1)
        return made

    @staticmethod
    def fields(obs_dim: int, action: np.ndarray) -> Fields:
        return image_fields(obs_dim, action)

    def see(self, slot: np.ndarray, obs_BD: np.ndarray) -> np.ndarray:
        slot["obs"] = as_bytes(obs_BD)
        return obs_BD

    def arrive(self, slot: np.ndarray, step: Step, over_B: np.ndarray) -> np.ndarray:
        slot["final"] = 0
        last = step.final_obs.reshape(over_B.size, -1)
        for row in np.flatnonzero(over_B):
            slot["final"][row] = -1 - self.finals.count
            self.finals.add(obs=as_bytes(last[row])[None])
        seen = step.obs.reshape(over_B.size, -1)
        return np.where(over_B[:, None], last, seen) if over_B.any() else seen

    def brightest(self, slot: np.ndarray) -> float:
        return float(slot["obs"][slot["alive"]].max(initial=0)) / float(WHITE)

    def check_rows(self, rows: np.ndarray) -> list[bool]:
        """Of images: is every episode's last one there?"""
        over, final = rows["terminated"] | rows["truncated"], -1 - rows["final"][..., 0]
        there = (final >= self.finals.oldest) & (final < self.finals.count)
        return [bool(np.isfinite(rows["reward"][rows["alive"]]).all()), bool((there == over).all())]


def len_of(replay: Replay) -> int:
    """So many episodes can end in what a replay holds."""
    return replay.slots * replay.columns


def as_bytes(obs: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(obs, 0, 1) * WHITE).astype(np.uint8)


def as_numbers(frames: np.ndarray) -> np.ndarray:
    return frames / WHITE


def filled(gathering: ImageGathering, starts: Rows, length: int) -> Sequences:
    """Sequences of images that begin at `starts`."""
    rows = sequences.filled(gathering.replay, starts, length, places=True)
    return rows._replace(obs=as_numbers(images_at(gathering, rows.obs[..., 0], rows.valid > 0)))


def images_at(gathering: ImageGathering, place: np.ndarray, there: np.ndarray) -> np.ndarray:
    """uint8[..., D] at places as sequences.filled gives them; black where there is nothing."""
    replay, finals = gathering.replay, gathering.finals
    images = np.zeros((*place.shape, replay.ring["obs"].shape[-1]), np.uint8)
    usual, last = there & (place >= 0), there & (place < 0)
    images[usual] = replay.ring["obs"][place[usual] // replay.columns, place[usual] % replay.columns]
    images[last] = finals.ring["obs"][(-1 - place[last]) % finals.slots, 0]
    return images
