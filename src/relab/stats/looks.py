"""How much error may a look spend? What must be settled before the numbers are seen, for whoever looks more than once.

Open (nothing declared): alpha / 2, / 4, / 8 ..., which adds up to alpha whatever comes. Declared numbers of looks: the
same, and the last takes what is left. Declared sizes (5, 8, 15 seeds): an O'Brien-Fleming-like spending function (Lan
and DeMets 1983), with the looks' dependence taken into account (Armitage, McPherson and Rowe 1969): hardly anything is
spent early, and nearly all is left for the last look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np

HALVES, SINGLE = "halves", "one look"
OBRIEN = "O'Brien-Fleming-like (Lan and DeMets)"
NORMAL = NormalDist()
GRID, WIDE = 801, 8.0  # points and half-width of the grid on which the process is followed


def spending(looks: int | Sequence[int] | None) -> str:
    """The name of the rule."""
    if looks is None:
        return HALVES
    return (SINGLE if looks == 1 else HALVES) if isinstance(looks, int) else OBRIEN


def look_alpha(look: int, looks: int | None = None, alpha: float = 0.05) -> float:
    """The error that look number `look` may spend: alpha / 2, / 4, / 8 ...; the last declared one takes what is left.

    The shares add up to alpha, so the chance that any look errs is at most alpha: whatever the sizes, however the
    looks depend on each other, and whether one stops at a result or not. `looks` = 1 is the plain interval.
    """
    if look < 1 or (looks is not None and look > looks):
        raise ValueError(f"a look needs 1 <= look <= looks, but got look {look} of {looks}: declare more beforehand")
    return alpha / 2 ** (look - 1 if look == looks else look)


def look_number(before: Sequence[Sequence[int]], now: Sequence[int]) -> int:
    """Which look this is, by the numbers of seeds looked at before; the same numbers again are the same look."""
    sizes = list(dict.fromkeys([*(tuple(each) for each in before), tuple(now)]))
    return sizes.index(tuple(now)) + 1


def spent_by(share: float, alpha: float = 0.05) -> float:
    """2 - 2 Φ(z / √share), z the quantile of alpha / 2: what may be spent when this share of all seeds is there."""
    return 2 - 2 * NORMAL.cdf(-NORMAL.inv_cdf(alpha / 2) / math.sqrt(min(share, 1.0))) if share > 0 else 0.0


@lru_cache(maxsize=512)
def sized_alpha(sizes: tuple[int, ...], last: int, alpha: float = 0.05) -> float:
    """The level of the last of these looks: the chance to cross its bound for the first time there is what the spending
    function adds since the look before. `sizes` are seeds at each look, rising; `last` the declared end.

    >>> round(sized_alpha((15,), 15), 6)
    0.05
    """
    shares = [size / last for size in sizes]
    reach = np.linspace(-WIDE, WIDE, GRID) * math.sqrt(shares[0])
    density = np.exp(-(reach**2) / (2 * shares[0])) / math.sqrt(2 * math.pi * shares[0])
    bound = _bound(density, reach, spent_by(shares[0], alpha))
    for before, share in pairwise(shares):
        further = np.linspace(-WIDE, WIDE, GRID) * math.sqrt(share)
        density = _step(density, reach, bound, further, share - before)
        bound, reach = _bound(density, further, spent_by(share, alpha) - spent_by(before, alpha)), further
    return 2 * NORMAL.cdf(-bound / math.sqrt(shares[-1]))


def _step(density: np.ndarray, at: np.ndarray, bound: float, reach: np.ndarray, more: float) -> np.ndarray:
    """The density of those that went on, after as much more information."""
    kept = np.where(np.abs(at) < bound, density, 0.0) * (at[1] - at[0])
    spread = np.exp(-((reach[:, None] - at[None, :]) ** 2) / (2 * more)) / math.sqrt(2 * math.pi * more)
    return np.asarray(spread @ kept)


def _bound(density: np.ndarray, reach: np.ndarray, allowed: float) -> float:
    """The bound that so much of the density lies beyond, both sides together."""
    right = reach >= 0
    x, f = reach[right], density[right]
    pieces = (f[1:] + f[:-1]) / 2 * np.diff(x)
    beyond = 2 * np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]])
    return float(np.exp(np.interp(-math.log(max(allowed, 1e-15)), -np.log(np.maximum(beyond, 1e-18)),
                                  np.log(np.maximum(x, 1e-9)))))  # fmt: skip
