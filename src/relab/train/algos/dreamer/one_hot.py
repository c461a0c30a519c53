"""What is left of a product where its inputs are one-hot? A sum of the weights that they point at.

A state's latents are S variables of C classes, of which one each is 1: S additions in place of S * C multiplications.
`turned` [S * C, units] are the weights such that those of one input lie side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relab.train.kernels.jit import njit

place = np.uint64  # in an array


class Hot(NamedTuple):
    """Which of the last `size` inputs of each row are 1."""

    ones: np.ndarray  # int32, flat [rows, stoch]
    stoch: int
    size: int

    def first(self, rows: int) -> Hot:
        return Hot(self.ones[: rows * self.stoch], self.stoch, self.size)


NONE = Hot(np.empty(0, np.int32), 0, 0)  # no input is known to be one-hot


@njit(cache=True, nogil=True)
def find(z, ldz, n, classes, stoch, index):
    """index [n, stoch] of the ones among z [n, classes * stoch]."""
    for i in range(n):
        row = index[i * stoch : (i + 1) * stoch]
        for c in range(classes):
            at = c * stoch
            x = z[i * ldz + at : i * ldz + at + stoch]
            for s in range(stoch):
                row[s] = np.int32(at + s) if x[s] > np.float32(0.5) else row[s]


# Whole numbers without a sign: an index that might be negative, or a slice in the inner loop, costs more than the sums.


@njit(cache=True, nogil=True)
def add(out, n, width, index, turned):
    """out [n, width] += the weights that each row points at; four of them in a pass."""
    S, wide = index.size // n, place(width)
    for i in range(n):
        row = out[i * width : (i + 1) * width]
        for k in range(i * S, i * S + S - 3, 4):
            a, b = place(index[k]) * wide, place(index[k + 1]) * wide
            c, d = place(index[k + 2]) * wide, place(index[k + 3]) * wide
            for j in range(wide):
                row[j] += (turned[a + j] + turned[b + j]) + (turned[c + j] + turned[d + j])
        for k in range(i * S + S - S % 4, (i + 1) * S):
            a = place(index[k]) * wide
            for j in range(wide):
                row[j] += turned[a + j]


@njit(cache=True, nogil=True)
def scatter(d, n, width, index, d_turned):
    """The gradients d [n, width] of `add`'s result go to the weights that were pointed at."""
    S, wide = index.size // n, place(width)
    for i in range(n):
        row = d[i * width : (i + 1) * width]
        for k in range(i * S, (i + 1) * S):
            at = place(index[k]) * wide
            for j in range(wide):
                d_turned[at + j] += row[j]
