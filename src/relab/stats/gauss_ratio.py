"""What must the ratio of two Gaussian policies look like? Closed forms, and how far a sample may be off.

    rho(a) = pi(a) / mu(a),  a ~ mu;  pi = N(m, sigma_pi^2 I_d), mu = N(m + gap, sigma_mu^2 I_d), sigma_pi < sigma_mu
With d = 2 and equal means rho = R U^k, where R = (sigma_mu / sigma_pi)^2, k = R - 1 and U is uniform on (0, 1).
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Expected(NamedTuple):
    """A closed form, and the standard error of its estimate from n draws (None: not derived here)."""

    value: float
    error: float | None = None


class Pair(NamedTuple):
    """Two policies in two dimensions."""

    sigma_mu: float
    sigma_pi: float
    gap2: float = 0.0  # squared distance of the means

    @property
    def k(self) -> float:
        return (self.sigma_mu / self.sigma_pi) ** 2 - 1.0

    @property
    def top(self) -> float:
        """The largest ratio: R exp(gap^2 / (2 (sigma_mu^2 - sigma_pi^2)))."""
        rest = self.sigma_mu**2 - self.sigma_pi**2
        if rest <= 0:
            return 1.0 if rest == 0 and self.gap2 == 0 else math.inf
        return (1.0 + self.k) * math.exp(self.gap2 / (2.0 * rest))

    def moment(self, p: int) -> float:
        """E_mu[rho^p] with the gap's factor; infinite where the tail of pi^p / mu^(p-1) does not fall."""
        a, b = p / self.sigma_pi**2, (p - 1) / self.sigma_mu**2
        if a <= b:
            return math.inf
        scale = self.sigma_mu ** (2 * (p - 1)) / self.sigma_pi ** (2 * p) / (a - b)
        return scale * math.exp(0.5 * self.gap2 * (a * b / (a - b)))

    def square(self, n: int) -> Expected:
        """E[rho^2] and the error of a mean of n."""
        second, fourth = self.moment(2), self.moment(4)
        return Expected(second, math.sqrt(max(fourth - second**2, 0.0) / n))

    def mean(self, n: int) -> Expected:
        return Expected(1.0, math.sqrt(max(self.moment(2) - 1.0, 0.0) / n))

    def effective(self) -> float:
        """Effective sample size over n: 1 / E[rho^2]."""
        return 1.0 / self.moment(2)

    def quantile(self, q: float, n: int) -> Expected:
        """R q^k (equal means), and the error of an empirical quantile: sqrt(q (1-q) / n) over the density there."""
        value = (1.0 + self.k) * q**self.k
        slope = (1.0 + self.k) * self.k * q ** (self.k - 1.0)  # d value / d q
        return Expected(value, slope * math.sqrt(q * (1.0 - q) / n))

    def least(self, n: int) -> Expected:
        """E[min of n draws] = R E[U_(1)^k] = R Gamma(1 + k) n! / Gamma(n + 1 + k), and its standard deviation."""

        def moment(p: float) -> float:
            return math.exp(math.lgamma(1.0 + p) + math.lgamma(n + 1.0) - math.lgamma(n + 1.0 + p))

        first, second = (1.0 + self.k) * moment(self.k), (1.0 + self.k) ** 2 * moment(2.0 * self.k)
        return Expected(first, math.sqrt(max(second - first**2, 0.0)))

    def largest(self, n: int) -> Expected:
        """E[max of n draws] = R E[U_(n)^k] = R n / (n + k), and its standard deviation (equal means)."""
        first, second = n / (n + self.k), n / (n + 2.0 * self.k)
        return Expected((1.0 + self.k) * first, (1.0 + self.k) * math.sqrt(max(second - first**2, 0.0)))

    def kl(self) -> float:
        """KL(pi, mu) = (sigma_pi / sigma_mu)^2 - 1 - ln (sigma_pi / sigma_mu)^2 + gap^2 / (2 sigma_mu^2), for d = 2."""
        ratio = (self.sigma_pi / self.sigma_mu) ** 2
        return ratio - 1.0 - math.log(ratio) + self.gap2 / (2.0 * self.sigma_mu**2)

    def tv(self) -> float:
        """Total variation with equal means, for d = 2: P_mu(|a| > r) - P_pi(|a| > r) where the densities cross at r."""
        if self.k == 0.0:
            return 0.0
        r2 = 4.0 * math.log(self.sigma_mu / self.sigma_pi) / (self.sigma_pi**-2 - self.sigma_mu**-2)
        return abs(math.exp(-0.5 * r2 / self.sigma_mu**2) - math.exp(-0.5 * r2 / self.sigma_pi**2))
