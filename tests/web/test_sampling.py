"""Does a thinned curve keep its lowest and highest rows, and all rows where they fit? Against a slow loop."""

from __future__ import annotations

import numpy as np
import pytest

from relab.web import sampling


def slow(x: np.ndarray, y: np.ndarray, columns: int) -> set[int]:
    """The same, row by row."""
    width = (x[-1] - x[0]) / columns or 1.0
    cells: dict[int, list[int]] = {}
    for i in range(len(x)):
        cells.setdefault(min(int((x[i] - x[0]) / width), columns - 1), []).append(i)
    kept = {0, len(x) - 1}
    for rows in cells.values():
        good = [i for i in rows if np.isfinite(y[i])]
        kept |= {min(good, key=lambda i: y[i]), max(good, key=lambda i: y[i])} if good else set()
        bad = [i for i in rows if not np.isfinite(y[i])]
        kept |= {bad[0]} if bad else set()
    return kept


@pytest.mark.parametrize("seed", range(40))
def test_the_rows_are_those_of_a_slow_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(2, 200)), int(rng.integers(2, 30))
    x = np.cumsum(rng.integers(0, 6, rows)).astype(float)
    y = np.where(rng.random(rows) < rng.choice([0.0, 0.3, 1.0]), np.nan, rng.integers(-5, 5, rows).astype(float))
    assert set(sampling.extremes(x, y, columns).tolist()) == slow(x, y, columns)


def test_no_spike_is_lost_in_a_million_rows() -> None:
    x, y = np.arange(1_000_000.0), np.zeros(1_000_000)
    y[[3, 777_777]] = 5.0, -7.0
    part = sampling.sample(x, y, 900)
    assert {5.0, -7.0} <= set(part.y.tolist())
    assert len(part.x) <= 2 * 900 + 2
    assert not part.exact
    assert part.rows == 1_000_000


def test_zoomed_in_every_row_is_there_and_one_on_either_side() -> None:
    x, y = np.arange(100_000.0), np.random.default_rng(0).normal(size=100_000)
    part = sampling.sample(x, y, 900, 5_000, 5_100)
    assert part.exact
    assert part.x.tolist() == x[4_999:5_102].tolist()
    assert part.y.tolist() == y[4_999:5_102].tolist()


@pytest.mark.parametrize("y", [[], [np.nan] * 50, [1.0], [np.inf, -np.inf, 1.0] * 20])
def test_odd_columns_are_no_error(y: list[float]) -> None:
    values = np.array(y, float)
    part = sampling.sample(np.arange(len(values), dtype=float), values, 5)
    assert part.lost == int(np.sum(~np.isfinite(values)))


def test_smoothing_is_a_mean_of_what_came_before() -> None:
    y = np.array([2.0, np.nan, 4.0, 6.0])
    keep = np.exp(-1 / 2.0)
    weights = [(1 - keep) * keep**k for k in (2, 1, 0)]
    expected = (weights[0] * 2 + weights[1] * 4 + weights[2] * 6) / sum(weights)
    smooth = sampling.smoothed(y, 2.0)
    assert smooth[0] == pytest.approx(2.0)
    assert np.isnan(smooth[1])
    assert smooth[3] == pytest.approx(expected)


def test_columns_of_a_log_axis_are_as_fine_on_its_left() -> None:
    """Of a million rows the first hundred fill a third of a log axis: each is there, and what has no place is not."""
    x, y = np.arange(1_000_001.0), np.sin(np.arange(1_000_001.0))
    part = sampling.sample(x, y, 300, log=True)
    assert part.x[0] == 1
    assert len(part.x) <= 2 * 300 + 4
    assert np.count_nonzero(part.x <= 100) > 50
    assert np.count_nonzero(sampling.sample(x, y, 300).x <= 100) < 5
