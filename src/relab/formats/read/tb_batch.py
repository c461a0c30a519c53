"""What do many event records of one length hold? The scalars among them, all at once, as columns.

Nearly every event of a log is one number of one tag, so that all of one length have their parts at the same places:
09 wall 10 step 2a len 0a len 0a len tag 15 float. Whatever looks otherwise is left to the reader of single events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

LONGEST = 127  # of a part whose length is one byte
STEP_BYTES = 6  # of a step, seven bits each; larger ones are rare


class Batch(NamedTuple):
    """Points of one or more tags, a row a point."""

    numbers: np.ndarray  # int64: which record of its block a point is
    names: list[bytes]  # of the tags
    tags: np.ndarray  # int64: which of the names
    steps: np.ndarray  # int64
    walls: np.ndarray  # float64, seconds
    values: np.ndarray  # float64


def scalars(rows: np.ndarray, numbers: np.ndarray) -> Iterator[Batch]:
    """The points in a uint8[n, length] of payloads, a batch for each length of a step."""
    size = rows.shape[1]
    if size < 24:
        return
    open_ = (rows[:, 0] == 0x09) & (rows[:, 9] == 0x10) & (rows[:, -5] == 0x15)  # rows whose step goes on
    for at in range(11, min(11 + STEP_BYTES, size - 10)):
        over = rows[:, at - 1] < 0x80
        frame = (0x2A, size - at - 2, 0x0A, size - at - 4, 0x0A, size - at - 11)
        if frame[1] <= LONGEST and (here := open_ & over).any():
            chosen = np.flatnonzero(here & (rows[:, at : at + 6] == frame).all(1))
            if len(chosen):
                yield _batch(rows[chosen], numbers[chosen], at)
        open_ &= ~over


def _batch(rows: np.ndarray, numbers: np.ndarray, at: int) -> Batch:
    """`at`: where the step is over."""
    digits = rows[:, 10:at].astype(np.int64) & 0x7F
    steps = (digits << 7 * np.arange(at - 10)).sum(1)
    walls = np.ascontiguousarray(rows[:, 1:9]).view("<f8")[:, 0]
    with np.errstate(invalid="ignore"):  # a NaN that signals
        values = np.ascontiguousarray(rows[:, -4:]).view("<f4")[:, 0].astype(np.float64)
    names, tags = _tags(rows[:, at + 6 : -5])
    return Batch(numbers, names, tags, steps, walls, values)


def _tags(letters: np.ndarray) -> tuple[list[bytes], np.ndarray]:
    """The distinct rows of a uint8[n, length], and which of them each row is."""
    if not letters.shape[1]:
        return [b""], np.zeros(len(letters), np.int64)
    words = np.ascontiguousarray(letters).view(f"V{letters.shape[1]}")[:, 0]
    names, tags = np.unique(words, return_inverse=True)
    return [name.tobytes() for name in names], tags.astype(np.int64)
