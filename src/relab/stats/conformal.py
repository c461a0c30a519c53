"""How strange is a number among those of healthy runs? Exact tail probabilities that ask nothing of their distribution.

Vovk, Gammerman & Shafer (2005): where a new number is exchangeable with n known ones, (1 + #{known >= new}) / (n + 1)
is at or below any p with a probability of at most p. Runs of one task are alike, so that runs are not exchangeable but
groups of them are; Lee, Barber & Willett (2023, arXiv:2306.06342) count each group once. Over many runs, Benjamini &
Hochberg (1995) bounds the share of false alarms, for such p-values too (Bates et al. 2023, arXiv:2104.08279).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

TIE = 1e-12  # of a number's size: numbers nearer than this are the same


def tail_above(value: float, known: Sequence[float] | np.ndarray, groups: Sequence[object] | None = None) -> float:
    """Probability that a healthy number is at least `value`: (1 + sum over groups of their shares) / (groups + 1).

    Without groups each known number is a group of its own. With no known number it is 1: nothing can be said.

    >>> tail_above(5.0, [1, 2, 3, 4]), tail_above(2.0, [1, 2, 3, 4])
    (0.2, 0.8)
    >>> tail_above(3.5, [1, 2, 4, 4], groups=["a", "a", "b", "b"])   # (1 + 0/2 + 2/2) / 3
    0.6666666666666666
    """
    numbers = np.asarray(known, np.float64)
    reached = (numbers >= value - TIE * abs(value)).astype(np.float64)
    if groups is None:
        return float((1 + reached.sum()) / (len(numbers) + 1))
    if len(groups) != len(numbers):
        raise ValueError(f"each number needs its group, but there are {len(numbers)} numbers and {len(groups)} groups")
    shares = [reached[rows].mean() for rows in _rows_by_group(groups)]
    return float((1 + sum(shares)) / (len(shares) + 1))


def tail_below(value: float, known: Sequence[float] | np.ndarray, groups: Sequence[object] | None = None) -> float:
    """Probability that a healthy number is at most `value`."""
    return tail_above(-value, -np.asarray(known, np.float64), groups)


def tail_both(value: float, known: Sequence[float] | np.ndarray, groups: Sequence[object] | None = None) -> float:
    """Probability of being as far out on either side: twice the smaller tail, at most 1 (Bonferroni over two sides).

    >>> tail_both(9.0, range(9)), tail_both(4.0, range(9))
    (0.2, 1.0)
    """
    return min(1.0, 2 * min(tail_above(value, known, groups), tail_below(value, known, groups)))


def healthy_range(
    known: Sequence[float] | np.ndarray, share: float = 0.9, groups: Sequence[object] | None = None
) -> tuple[float, float]:
    """The numbers that `tail_both` gives more than 1 - share: from the lowest to the highest known one that it keeps.

    Where there are too few to leave any out, that is all of them.

    >>> healthy_range(range(99), 0.9)
    (4.0, 94.0)
    """
    numbers = np.sort(np.unique(np.asarray(known, np.float64)))
    kept = [x for x in numbers if tail_both(float(x), known, groups) > 1 - share + TIE]
    return (float(kept[0]), float(kept[-1])) if kept else (float(numbers[0]), float(numbers[-1]))


def discoveries(tails: Sequence[float], rate: float = 0.1) -> list[bool]:
    """Which of many numbers are strange, if at most `rate` of those named may be healthy, on average.

    The largest k whose k-th smallest tail is at most k rate / n, and all up to it.

    >>> discoveries([0.01, 0.9, 0.04, 0.2], rate=0.1)
    [True, False, True, False]
    """
    order = np.argsort(tails, kind="stable")
    bars = rate * np.arange(1, len(order) + 1) / max(len(order), 1)
    under = np.flatnonzero(np.asarray(tails)[order] <= bars)
    named = np.zeros(len(order), bool)
    if len(under):
        named[order[: under[-1] + 1]] = True
    return named.tolist()


def _rows_by_group(groups: Sequence[object]) -> list[list[int]]:
    rows: dict[object, list[int]] = {}
    for i, group in enumerate(groups):
        rows.setdefault(group, []).append(i)
    return list(rows.values())
