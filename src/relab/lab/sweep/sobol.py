"""How are points spread evenly over many axes? Sobol's sequence (1967), direction numbers of Joe and Kuo (2008).

The first points fill the box as evenly as more of them do, so that a sweep can be stopped or lengthened anywhere. A
digital shift (one random word per axis, XORed) moves the first point away from the corner and keeps the evenness.
"""

from __future__ import annotations

import numpy as np

BITS = 30
# Per axis behind the first: primitive polynomial as bits, and the first direction numbers (new-joe-kuo-6.21201).
JOE_KUO = (
    (3, (1,)), (7, (1, 3)), (11, (1, 3, 1)), (13, (1, 1, 1)), (19, (1, 1, 3, 3)), (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)), (41, (1, 1, 5, 5, 5)), (47, (1, 1, 7, 11, 19)), (55, (1, 1, 5, 1, 1)),
    (59, (1, 1, 1, 3, 11)), (61, (1, 3, 5, 5, 31)), (67, (1, 3, 3, 9, 7, 49)), (91, (1, 1, 1, 15, 21, 21)),
    (97, (1, 3, 1, 13, 27, 49)), (103, (1, 1, 1, 15, 7, 5)), (109, (1, 3, 1, 15, 13, 25)),
    (115, (1, 1, 5, 5, 19, 61)), (131, (1, 3, 7, 11, 23, 15, 103)),
)  # fmt: skip
MOST_AXES = len(JOE_KUO) + 1


def sobol(n: int, axes: int, shift: np.ndarray | None = None) -> np.ndarray:
    """float64[n, axes] in [0, 1): the first n points in Gray-code order; `shift` is an integer below 2**30 per axis."""
    if not 1 <= axes <= MOST_AXES:
        raise ValueError(f"Sobol points are there for 1 to {MOST_AXES} axes, but {axes} were asked for")
    v_DB = np.array([directions(axis) for axis in range(axes)], np.int64)
    words = np.zeros((n, axes), np.int64)
    for i in range(1, n):
        flipped = (i & -i).bit_length() - 1  # the lowest bit that the Gray code changes
        words[i] = words[i - 1] ^ v_DB[:, flipped]
    words ^= 0 if shift is None else np.asarray(shift, np.int64)
    return words / float(1 << BITS)


def directions(axis: int) -> list[int]:
    """BITS direction numbers, highest bit first: m_k = 2 a_1 m_{k-1} ^ ... ^ 2^s m_{k-s} ^ m_{k-s}, shifted up."""
    if axis == 0:
        return [1 << (BITS - 1 - k) for k in range(BITS)]
    polynomial, first = JOE_KUO[axis - 1]
    s, m = len(first), list(first)
    inner = [(polynomial >> (s - k)) & 1 for k in range(1, s)]  # coefficients between the first and the last
    for k in range(s, BITS):
        new = m[k - s] ^ (m[k - s] << s)
        for i, bit in enumerate(inner, 1):
            new ^= bit * (m[k - i] << i)
        m.append(new)
    return [m[k] << (BITS - 1 - k) for k in range(BITS)]
