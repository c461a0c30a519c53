"""How does a large picture become a small one? Each new pixel is the mean of what it covers; done in this one place.

Pictures are made small where they are drawn, before anything is stored, sent or learned from: a frame of 400 x 600 is
58 times as many numbers as one of 64 x 64.
"""

from __future__ import annotations

import numpy as np

from relab.train.kernels.jit import njit


def square(image: np.ndarray, side: int) -> np.ndarray:
    """uint8[H,W,3] of any size -> uint8[side,side,3]."""
    if image.shape[:2] == (side, side):
        return image
    out = np.empty((side, side, image.shape[2]), np.uint8)
    shrink(np.ascontiguousarray(image), out)
    return out


@njit(cache=True, nogil=True)
def shrink(image, out):
    """Means over areas, along the rows first: each pixel of `image` is read once."""
    H, W, C = image.shape
    h, w, _ = out.shape
    bands = np.zeros((h, W, C))
    for i in range(h):
        low, high = i * H / h, (i + 1) * H / h
        for r in range(int(low), min(H, int(np.ceil(high)))):
            part = (min(r + 1, high) - max(r, low)) / (high - low)
            for c in range(W):
                for k in range(C):
                    bands[i, c, k] += part * image[r, c, k]
    for i in range(h):
        for j in range(w):
            low, high = j * W / w, (j + 1) * W / w
            for k in range(C):
                total = 0.0
                for c in range(int(low), min(W, int(np.ceil(high)))):
                    total += (min(c + 1, high) - max(c, low)) / (high - low) * bands[i, c, k]
                out[i, j, k] = np.uint8(round(total))
