"""Are the effects of axes what one gets by hand, by scipy, and often enough right?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as oracle

from relab.stats import axes, means

LR = [1e-4, 1e-3, 1e-2]


def grid(*levels):
    names = "abc"
    points = [{}]
    for name, values in zip(names, levels):
        points = [{**point, name: value} for point in points for value in values]
    return points


def test_effects_of_a_whole_grid_are_differences_of_marginal_means():
    """Cell means by hand: a=0: 10, 20, 30; a=1: 12, 26, 40. Marginals of a: 20 and 26; of b: 11, 23, 35."""
    points = grid([0, 1], [1, 2, 3])
    values = [np.array([m - 1, m + 1]) for m in (10, 20, 30, 12, 26, 40)]
    a, b = axes.effects(axes.cells_of(points, values))
    assert (a.widest.a, a.widest.b, a.widest.mid) == (0, 1, pytest.approx(6))
    assert [m.mid for m in a.means] == pytest.approx([20, 26])
    assert [m.mid for m in b.means] == pytest.approx([11, 23, 35])
    assert (b.widest.a, b.widest.b, b.widest.mid) == (1, 3, pytest.approx(24))
    assert a.noise == pytest.approx(np.sqrt(2))
    assert (b.verdict, b.source) == ("moves", "seeds")
    (both,) = axes.interactions(axes.cells_of(points, values))
    assert both.mid == pytest.approx((40 - 30) - (12 - 10)), "the largest difference of differences"
    assert both.at == ((0, 1), (1, 3))


def test_two_cells_give_the_interval_of_two_samples():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=7), rng.normal(1, 2, size=7)
    (effect,) = axes.effects(axes.cells_of(grid([0, 1]), [a, b]))
    low, high = means.widened(means.two_samples(a, b), 0.95)
    expected = (b.mean() - a.mean(), low, high)
    assert (effect.widest.mid, effect.widest.low, effect.widest.high) == pytest.approx(expected, rel=1e-9)


def test_one_run_a_cell_takes_the_noise_from_what_the_model_leaves_over():
    rng = np.random.default_rng(1)
    y = rng.normal(size=12)
    points = [{"a": i % 2, "other": i} for i in range(12)]
    (effect,) = axes.effects(axes.cells_of([{"a": p["a"]} for p in points], [[v] for v in y]), of_seeds=False)
    expected = oracle.ttest_ind(y[1::2], y[::2]).confidence_interval(0.95)
    assert (effect.widest.low, effect.widest.high) == pytest.approx((expected.low, expected.high), rel=1e-5)
    assert effect.source == "cells"


def test_missing_cells_are_filled_by_the_additive_model_alone():
    """Additive truth 10 a + b: the corner that is missing changes no estimate; scipy's least squares agrees."""
    points = grid([0, 1], [1, 2, 3])[:-1]
    values = [np.array([10.0 * p["a"] + p["b"]] * 2) for p in points]
    a, b = axes.effects(axes.cells_of(points, values))
    assert a.widest.mid == pytest.approx(10)
    assert b.widest.mid == pytest.approx(2)
    rng = np.random.default_rng(2)
    noisy = [v + rng.normal(size=2) for v in values]
    x = np.array([[1, p["a"], p["b"] == 2, p["b"] == 3] for p in points], float)
    slopes, *_ = np.linalg.lstsq(x, np.array([v.mean() for v in noisy]), rcond=None)
    assert axes.effects(axes.cells_of(points, noisy))[0].widest.mid == pytest.approx(slopes[1])


def test_axes_that_change_together_have_no_effect_of_their_own():
    points = [{"lr": 1e-3, "net": "small", "third": k} for k in (0, 1)]
    points += [{"lr": 1e-4, "net": "large", "third": k} for k in (0, 1)]
    cells = axes.cells_of(points, [[1.0, 1.1], [1.2, 1.1], [2.0, 2.2], [2.1, 2.0]])
    assert axes.aliased(cells) == [("lr", "net")]
    assert [e.verdict for e in axes.effects(cells)] == ["confounded", "confounded", "cannot tell"]
    whole = axes.cells_of(grid([0, 1], [0, 1]), [[0.0, 1.0]] * 4)
    assert axes.aliased(whole) == []


def test_a_conditional_axis_counts_where_it_is_on():
    points = [{"rnn": "none"}, {"rnn": "gru", "size": 64}, {"rnn": "gru", "size": 128}]
    rnn, size = axes.effects(axes.cells_of(points, [[1.0, 1.2], [2.0, 2.2], [4.0, 4.2]]))
    assert rnn.widest.mid == pytest.approx(2.0), "at the mean of the sizes"
    assert size.widest.mid == pytest.approx(2.0)
    assert size.levels == [64, 128]


def test_an_inert_axis_is_bounded_and_a_noisy_one_is_not():
    rng = np.random.default_rng(3)
    points = grid([0, 1, 2], [0, 1])
    quiet = [p["b"] * 50 + rng.normal(0, 1, 10) for p in points]
    a, b = axes.effects(axes.cells_of(points, quiet), smallest=5)
    assert (a.verdict, b.verdict) == ("inert", "moves")
    assert a.most < 5
    loud = [p["b"] * 50 + rng.normal(0, 30, 5) for p in points]
    assert axes.effects(axes.cells_of(points, loud), smallest=5)[0].verdict == "cannot tell"


def test_failed_cells_and_runs_are_left_out_with_their_levels():
    points = grid([0, 1, 2], [0, 1])
    values = [[1.0, 2.0], [2.0, 3.0], [1.0, 2.0], [2.0, np.nan], [], [np.nan]]
    a, b = axes.effects(axes.cells_of(points, values))
    assert a.levels == [0, 1]
    assert b.widest.mid == pytest.approx((2.5 + 2.0 - 1.5 - 1.5) / 2)


def test_values_that_hardly_repeat_are_cut_into_thirds():
    rng = np.random.default_rng(4)
    points = [{"x": float(x), "y": float(rng.random())} for x in np.linspace(0, 1, 30)]
    cells = axes.cells_of(points, [[10 * p["x"] + rng.normal(0, 0.1)] for p in points], bins=True)
    assert cells.axes["x"][0] == "0–0.3103"
    x, y = axes.effects(cells, of_seeds=False)
    assert (x.verdict, len(x.levels)) == ("moves", 3)
    assert y.verdict != "moves"


def test_all_intervals_hold_together():
    """A grid of 3 x 3 with 3 seeds where nothing has an effect: how often does any pair of levels, or of any 2 x 2
    square, look clear? At most 5 % for normal outcomes of unequal spread; ± 1.5 % here."""
    rng, points, wrong, crossed = np.random.default_rng(5), grid(LR, [1, 2, 3]), 0, 0
    for _ in range(300):
        values = [rng.normal(0, 1 + (p["b"] == 3), 3) for p in points]
        cells = axes.cells_of(points, values)
        wrong += any(e.verdict == "moves" for e in axes.effects(cells))
        crossed += any(e.verdict == "moves" for e in axes.interactions(cells))
    assert wrong / 300 <= 0.05
    assert crossed / 300 <= 0.05


def test_which_cells_are_missing_and_what_never_was_a_grid():
    whole = grid(LR, [1, 2, 3, 4])
    gone = axes.missing({"a": LR, "b": [1, 2, 3, 4]}, whole[:7])
    assert gone == whole[7:]
    assert axes.missing({"a": [1], "b": [True]}, [{"a": 1.0, "b": True}]) == []
    star = [{"a": 0, "b": 0}, {"a": 1, "b": 0}, {"a": 0, "b": 1}]
    assert axes.one_at_a_time(axes.cells_of(star, [[]] * 3))
    assert not axes.one_at_a_time(axes.cells_of(whole[:7], [[]] * 7))


def test_slices_agree_in_all_else():
    points = [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}, {"a": 3, "b": 3}]
    assert list(axes.slices(points)) == [("a", [0, 1]), ("b", [0, 2])]


@pytest.mark.parametrize(
    ("levels", "error", "error_is_known", "flat"),
    [([100, 100.5], 0, True, True), ([100, 103], 1, True, False), ([100, 103], 2, True, True),
     ([100, 103], 2, False, False)],
)  # fmt: skip
def test_an_axis_hardly_moves_a_metric(levels, error, error_is_known, flat):
    assert axes.hardly_moves(levels, error, error_is_known) == flat
