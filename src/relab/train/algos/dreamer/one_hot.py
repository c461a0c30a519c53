"""What is left of a product where its inputs are one-hot? A sum of the weights that they point at.

A state's latents are S variables of C classes, of which one each is 1: S additions in place of S * C multiplications.
`turned` [S * C, units] are the weights such that those of one input lie side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relab.train.kernels.jit import njit


class Hot(NamedTuple):
    """Which of the last `size` inputs of each row are 1."""

    index: np.ndarray  # int32, flat [rows, stoch]
    stoch: int
    size: int

    def first(self, rows: int) -> Hot:
        return Hot(self.index[: rows * self.stoch], self.stoch, self.size)


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


@njit(cache=True, nogil=True)
def add(out, n, width, index, turned):
    """out [n, width] += the weights that each row points at; four of them in a pass."""
    S = index.size // n
    for i in range(n):
        row = out[i * width : (i + 1) * width]
        for s in range(0, S - 3, 4):
            k = i * S + s
            add_four(row, turned[index[k] * width :], turned[index[k + 1] * width :], turned[index[k + 2] * width :],
                     turned[index[k + 3] * width :])  # fmt: skip
        for s in range(S - S % 4, S):
            at = index[i * S + s] * width
            for j in range(width):
                row[j] += turned[at + j]


@njit(cache=True, nogil=True)
def add_four(out, a, b, c, d):
    for j in range(out.size):
        out[j] += (a[j] + b[j]) + (c[j] + d[j])


@njit(cache=True, nogil=True)
def scatter(d, n, width, index, d_turned):
    """The gradients d [n, width] of `add`'s result go to the weights that were pointed at."""
    S = index.size // n
    for i in range(n):
        row = d[i * width : (i + 1) * width]
        for s in range(S):
            at = index[i * S + s] * width
            to = d_turned[at : at + width]
            for j in range(width):
                to[j] += row[j]
