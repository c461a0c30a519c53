"""Is it more than luck? Chi-square over counts, the binomial below a bar, samples needed near a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from relab.stats.student import normal_quantile

MANY = 200  # degrees of freedom (squared: counts) from which on approximations are as good as sums


class Constancy(NamedTuple):
    """A test that all counts share one rate."""

    rate: float
    expected: float  # count of a typical row
    chi2: float
    df: int
    p: float
    trend: float  # standard errors of a straight line through the counts, in their order; below 0: they fall


def constancy(counts: Sequence[float], trials: Sequence[float], rare: bool = False) -> Constancy:
    """chi2 = sum (x - n p)^2 / (n p (1 - p)), p pooled; small p: the counts differ by more than chance.

    `rare` leaves 1 - p out: Poisson counts, for events of which nearly none happen.

    >>> constancy([8, 12, 10], [1000] * 3, rare=True).chi2
    0.8
    """
    total, n = sum(counts), sum(trials)
    if len(counts) < 2 or not 0 < total < n:
        raise ValueError(f"constancy needs two or more counts, neither none nor all, but got {list(counts)} of {n}")
    rate = total / n
    noise = [m * rate * (1 if rare else 1 - rate) for m in trials]
    chi2 = sum((x - m * rate) ** 2 / v for x, m, v in zip(counts, trials, noise))
    place = [k - (len(counts) - 1) / 2 for k in range(len(counts))]
    slope = sum(k * (x - m * rate) for k, x, m in zip(place, counts, trials))  # Cochran and Armitage
    trend = slope / math.sqrt(sum(k * k * v for k, v in zip(place, noise)))
    df = len(counts) - 1
    return Constancy(rate, total / len(counts), chi2, df, chi2_above(chi2, df), trend)


def chi2_above(x: float, df: int) -> float:
    """P(chi-square > x) = Q(df / 2, x / 2): by the series below the mean, by the continued fraction above it."""
    a, y = df / 2, x / 2
    if y <= 0:
        return 1.0
    if df > MANY:  # Wilson and Hilferty: the cube root is nearly normal
        return 0.5 * math.erfc(((x / df) ** (1 / 3) - 1 + 2 / (9 * df)) / math.sqrt(4 / (9 * df)))
    scale = math.exp(a * math.log(y) - y - math.lgamma(a))
    if y < a + 1:
        term = total = 1 / a
        for k in range(1, 1000):
            term *= y / (a + k)
            total += term
        return max(0.0, 1 - scale * total)
    fraction = 0.0
    for k in range(200, 0, -1):
        fraction = k * (a - k) / (y + 2 * k + 1 - a + fraction)
    return scale / (y + 1 - a + fraction)


def binomial_up_to(k: int, n: int, p: float) -> float:
    """P(X <= k) for X ~ Binomial(n, p); by the normal where k is large."""
    if k >= n or p <= 0:
        return 1.0
    if k < 0 or p >= 1:
        return 0.0
    if k > MANY**2:
        return 0.5 * math.erfc((n * p - k - 0.5) / math.sqrt(2 * n * p * (1 - p)))
    logs = [
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(k + 1)
    ]
    return min(1.0, math.fsum(math.exp(each) for each in logs))


def samples_to_tell(rate: float, bar: float, level: float = 0.95, power: float = 0.5) -> int:
    """Independent trials after which a true `rate` is told from the `bar` with this power.

    Wilson's interval leaves the bar out when |p - bar| > z sqrt(bar (1 - bar) / n), hence
    n = ((z sqrt(bar (1 - bar)) + z_power sqrt(rate (1 - rate))) / (rate - bar))^2. Agents of one episode are alike:
    then count episodes, or more.
    """
    if not (0 <= rate <= 1 and 0 < bar < 1) or rate == bar:
        raise ValueError(f"needs a rate in [0, 1], a bar inside of (0, 1), and a distance, but got {rate} and {bar}")
    z, z_power = normal_quantile(0.5 + level / 2), normal_quantile(power)
    root = z * math.sqrt(bar * (1 - bar)) + z_power * math.sqrt(rate * (1 - rate))
    return math.ceil((root / (rate - bar)) ** 2)


def undecided(bar: float, n: float, level: float = 0.95) -> float:
    """The distance from the bar within which n independent trials do not decide: z sqrt(bar (1 - bar) / n)."""
    return normal_quantile(0.5 + level / 2) * math.sqrt(bar * (1 - bar) / n)


# ---- The number of trials that rates give away


def common_trials(rates: Sequence[float], most: int = 20_000) -> int | None:
    """The smallest n of which all rates are k / n; None where there is none up to `most`, or rounding explains it.

    >>> common_trials([0.25, 0.5, 1 / 3]), common_trials([0.11, 0.52, 0.37])
    (12, None)
    """
    n = 1
    for rate in map(float, rates):
        if not math.isfinite(rate):
            return None
        fraction = Fraction(rate).limit_denominator(most)
        if abs(float(fraction) - rate) > 1e-12:  # a rate written with few digits fits any n
            return None
        n = math.lcm(n, fraction.denominator)
        if n > most:
            return None
    return None if rounded(rates, n) else n


def rounded(rates: Sequence[float], n: int) -> bool:
    """Whether rates of d digits would be multiples of 1 / n by chance: (n / 10^d)^k of k different ones."""
    values = {float(rate) for rate in rates} - {0.0, 1.0}
    digits = next((d for d in range(1, 10) if all(abs(round(v, d) - v) < 1e-12 for v in values)), None)
    return bool(values) and digits is not None and (n / 10**digits) ** len(values) > 0.01


def fits(rate: float, n: float) -> bool:
    """Whether a rate can be a count out of n; generous to eight digits."""
    return abs(rate * n - round(rate * n)) < max(1e-6, 1e-8 * n)
