"""How strange is a number among those of healthy runs? Exact tail probabilities that ask nothing of their distribution.

Vovk, Gammerman & Shafer (2005): where a new number is exchangeable with n known ones, (1 + #{known >= new}) / (n + 1)
is at or below any p with a probability of at most p. Runs of one task are alike, so that runs are not exchangeable but
groups of them are; Lee, Barber & Willett (2023, arXiv:2306.06342) count each group once.
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
    return float(_tails_above(np.array([value], np.float64), known, groups)[0])


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
    numbers = np.unique(np.asarray(known, np.float64))
    above, below = _tails_above(numbers, known, groups), _tails_above(-numbers, -np.asarray(known, np.float64), groups)
    kept = numbers[2 * np.minimum(above, below) > 1 - share + TIE]
    ends = kept if len(kept) else numbers
    return float(ends[0]), float(ends[-1])


def _tails_above(
    values_J: np.ndarray, known: Sequence[float] | np.ndarray, groups: Sequence[object] | None
) -> np.ndarray:
    """tail_above of many values at once."""
    known_N = np.asarray(known, np.float64)
    reached_JN = (known_N >= (values_J - TIE * np.abs(values_J))[:, None]).astype(np.float64)
    if groups is None:
        return (1 + reached_JN.sum(1)) / (len(known_N) + 1)
    if len(groups) != len(known_N):
        raise ValueError(f"each number needs its group, but there are {len(known_N)} numbers and {len(groups)} groups")
    places = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    member_NG = np.eye(len(places))[[places[group] for group in groups]].reshape(len(known_N), len(places))
    shares_JG = reached_JN @ member_NG / member_NG.sum(0)
    return (1 + shares_JG.sum(1)) / (len(places) + 1)
