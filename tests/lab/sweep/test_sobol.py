"""Is it Sobol's sequence?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc

from relab.lab.sweep.sobol import MOST_AXES, sobol


@pytest.mark.parametrize("axes", [1, 2, 7, MOST_AXES])
def test_the_points_are_those_of_scipy(axes):
    expected = qmc.Sobol(axes, scramble=False, bits=30).random(256)
    assert np.array_equal(sobol(256, axes), expected)


def test_the_first_points_by_hand():
    assert sobol(4, 2).tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]


def test_a_shift_keeps_each_half_of_each_axis_equally_full():
    shift = np.random.default_rng(0).integers(0, 1 << 30, 5)
    points = sobol(64, 5, shift)
    for parts in (2, 8, 64):
        assert all(set(np.bincount((points[:, k] * parts).astype(int))) == {64 // parts} for k in range(5))
    assert points.min() >= 0
    assert points.max() < 1


def test_too_many_axes_are_said():
    with pytest.raises(ValueError, match="1 to 20 axes"):
        sobol(4, 21)
