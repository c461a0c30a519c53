"""What does a film say below its picture? Which episode, how long it has lasted, where its task stands, how it ended.

An environment that offers `caption(state, i)`, a few words of where world i stands, gets a strip of two lines; at its
end the film rests for a second on how the episode ended. Films of all others are their pictures alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.base.media import Film
from relab.train.envs import draw, letters

STRIP = 44  # pixels below the picture
MARGIN, FIRST, SECOND = 10, 5, 25


class Filming:
    """Every step of one world, until all its episodes have ended: to be given to `rollout.evaluate` as `frames`."""

    def __init__(self, reel: Film, world: int, name: str = "") -> None:
        self.reel, self.world, self.name = reel, world, name
        self.last: np.ndarray | None = None

    def __call__(self, worlds: Any, waiting: np.ndarray) -> None:
        still = waiting[self.world]
        if not still.any():
            return
        picture = worlds.render(self.world)
        say = getattr(worlds.env, "caption", None)
        if say is not None:
            self.last = picture
            picture = below(picture, self.so_far(worlds, still), say(worlds.state, self.world))
        self.reel.add(picture)

    def so_far(self, worlds: Any, still: np.ndarray) -> str:
        mean = float(worlds.book.ret[self.world][still].mean())
        who = f" (mean of {int(still.sum())})" if still.size > 1 else ""  # those in their first episode
        return f"{self.name}  return {mean:+.1f}{who}".strip()

    def rest(self, episodes: Sequence[Document]) -> None:
        """A second of the last picture with how the episodes of this world ended."""
        if self.last is None:
            return
        ends = Counter(str(each["end"]).replace("_", " ") for each in episodes)
        returns = [float(each["return"]) for each in episodes if each.get("return") is not None]
        mean = f"  return {np.mean(returns):+.1f}" if returns else ""
        won = [each["success"] for each in episodes if each.get("success") is not None]
        good = f"  success {sum(won)} of {len(won)}" if won else ""
        how = ", ".join(f"{n} {end}" if len(episodes) > 1 else end for end, n in ends.most_common())
        card = below(self.last, f"{self.name}{mean}{good}".strip(), f"ended: {how}")
        for _ in range(self.reel.fps):
            self.reel.add(card)


def below(picture: np.ndarray, first: str, second: str) -> np.ndarray:
    """The picture with two lines of text under it."""
    strip = np.full((STRIP, picture.shape[1], 3), draw.PAPER, np.uint8)
    strip[0] = draw.GREY
    room = (picture.shape[1] - 2 * MARGIN) // (letters.COLUMNS + 1)
    size = 2 if 2 * max(len(first), len(second)) <= room else 1
    for text, row in ((first, FIRST), (second, SECOND)):
        letters.write(strip, text, row, MARGIN, size)
    return np.concatenate([picture, strip])
