"""Do the closed forms hold? Numbers of the studied report, and draws with errors that are computed, not guessed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.stats.gauss_ratio import Pair

DOCUMENT = Pair(0.35, 0.3)


def test_numbers_of_the_document():
    assert DOCUMENT.moment(2) == pytest.approx(1.07572, abs=5e-6)
    assert DOCUMENT.kl() == pytest.approx(0.042995, abs=5e-7)
    assert DOCUMENT.tv() == pytest.approx(0.11297, abs=5e-6)
    assert DOCUMENT.top == pytest.approx(1.3611, abs=5e-5)
    assert DOCUMENT.quantile(0.95, 1).value == pytest.approx(1.3361, abs=5e-5)
    assert DOCUMENT.quantile(0.99, 1).value == pytest.approx(1.3562, abs=5e-5)
    assert DOCUMENT.least(4096).value == pytest.approx(0.060, abs=5e-4)
    assert DOCUMENT.least(32768).value == pytest.approx(0.0284, abs=5e-5)
    assert DOCUMENT.effective() == pytest.approx(0.930, abs=5e-4)
    assert DOCUMENT.moment(1) == pytest.approx(1.0)


def test_a_gap_of_the_means_raises_the_largest_ratio_as_the_document_saw():
    assert Pair(0.35, 0.3, 2.3e-4).top == pytest.approx(1.366, abs=5e-4)


def test_equal_policies_have_ratio_one():
    same = Pair(0.3, 0.3)
    assert (same.moment(2), same.kl(), same.tv(), same.top) == (1.0, 0.0, 0.0, 1.0)
    assert same.square(100).error == pytest.approx(0.0, abs=1e-8)


def test_the_square_is_infinite_from_twice_the_variance_on():
    assert math.isinf(Pair(0.3, 0.3 * math.sqrt(2.0)).moment(2))
    assert math.isfinite(Pair(0.3, 0.42).moment(2))


@pytest.fixture(scope="module", params=[0.0, 0.01], ids=["equal means", "apart"])
def drawn(request: pytest.FixtureRequest) -> tuple[Pair, np.ndarray]:
    pair, n = Pair(0.35, 0.3, request.param), 400_000
    a = 0.35 * np.random.default_rng(7).standard_normal((n, 2)) + [math.sqrt(request.param), 0.0]
    log = -np.square(a).sum(1) / (2 * 0.09) + np.square(a - [math.sqrt(request.param), 0.0]).sum(1) / (2 * 0.1225)
    return pair, (0.35 / 0.3) ** 2 * np.exp(log)


def test_moments_and_their_errors_by_draws(drawn: tuple[Pair, np.ndarray]):
    pair, rho = drawn
    for p, moment in ((1, pair.mean(len(rho))), (2, pair.square(len(rho)))):
        assert abs((rho**p).mean() - moment.value) < 4 * moment.error
        assert moment.error == pytest.approx((rho**p).std() / math.sqrt(len(rho)), rel=0.02)
    assert rho.max() <= pair.top * (1 + 1e-12)


def test_quantiles_extremes_and_their_errors_by_draws():
    u = np.random.default_rng(3).random((4000, 500))
    rho = DOCUMENT.top * u**DOCUMENT.k
    middle = np.quantile(rho, 0.95, axis=1)
    draws = {DOCUMENT.least(500): rho.min(1), DOCUMENT.largest(500): rho.max(1), DOCUMENT.quantile(0.95, 500): middle}
    for quantile, values in draws.items():
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - quantile.value) < 4 * error + 0.5 * quantile.value / 500, (
            "an empirical quantile is off by O(1/n)"
        )
        assert quantile.error == pytest.approx(values.std(), rel=0.1)


def test_kl_and_total_variation_by_draws():
    a = 0.3 * np.random.default_rng(5).standard_normal((400_000, 2))
    log = np.log((0.35 / 0.3) ** 2) - np.square(a).sum(1) * (1 / (2 * 0.09) - 1 / (2 * 0.1225))
    assert abs(log.mean() - DOCUMENT.kl()) < 4 * log.std() / math.sqrt(len(log))
    tv = 0.5 * np.abs(1 - np.exp(-log))
    assert abs(tv.mean() - DOCUMENT.tv()) < 4 * tv.std() / math.sqrt(len(tv))
