"""Are tail probabilities what they claim to be? Hand numbers, and simulated runs that are exchangeable by design."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from relab.stats import conformal


def test_examples():
    assert doctest.testmod(conformal).failed == 0


def test_hand_numbers():
    known = [3.0, 1.0, 2.0]
    assert conformal.tail_above(10.0, known) == 1 / 4
    assert conformal.tail_above(3.0, known) == 2 / 4  # an equal number is as far out
    assert conformal.tail_above(0.0, known) == 1
    assert conformal.tail_below(0.0, known) == 1 / 4
    assert conformal.tail_both(10.0, known) == 2 / 4
    assert conformal.tail_above(1.0, []) == 1  # nothing known, nothing said


def test_rounding_does_not_make_a_number_stranger():
    assert conformal.tail_above(0.1 + 0.2, [0.3]) == 1


def test_a_group_counts_once():
    known, groups = [9.0] * 50 + [1.0, 2.0], ["many"] * 50 + ["few", "few"]
    assert conformal.tail_above(5.0, known, groups) == pytest.approx((1 + 1 + 0) / 3)
    assert conformal.tail_above(2.0, known, groups) == pytest.approx((1 + 1 + 0.5) / 3)


def test_each_number_needs_its_group():
    with pytest.raises(ValueError, match="2 numbers and 1 groups"):
        conformal.tail_above(0.0, [1.0, 2.0], ["a"])


def test_false_alarms_come_as_often_as_stated_for_exchangeable_runs():
    """Exact: with n = 19 known ones, a tail of at most k / 20 has probability k / 20, whatever the distribution."""
    rng = np.random.default_rng(1)
    draws = rng.standard_cauchy((20_000, 20))
    tails = np.array([conformal.tail_above(row[0], row[1:]) for row in draws])
    for level in (0.05, 0.1, 0.25, 0.5):
        assert np.mean(tails <= level + 1e-9) == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 20_000))


def _alike_within_groups(rng: np.random.Generator, groups: int, each: int) -> tuple[float, np.ndarray, list[int]]:
    centres = rng.standard_normal(groups + 1)
    known = centres[:groups, None] + 0.1 * rng.standard_normal((groups, each))
    return (
        float(centres[-1] + 0.1 * rng.standard_normal()),
        known.ravel(),
        [g for g in range(groups) for _ in range(each)],
    )


def test_runs_of_a_new_task_need_the_groups():
    """Runs of nine tasks, ten each: without groups one in ten is called as rare as one in 45; with them no more often
    than stated."""
    rng = np.random.default_rng(2)
    cases = [_alike_within_groups(rng, groups=9, each=10) for _ in range(4000)]
    level = 2 / 91
    plain = np.mean([conformal.tail_above(x, known) <= level for x, known, _ in cases])
    grouped = np.mean([conformal.tail_above(x, known, groups) <= 0.1 for x, known, groups in cases])
    assert plain > 3 * level
    assert grouped <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 4000)


def test_the_range_leaves_out_what_is_rare():
    assert conformal.healthy_range([1.0, 2.0, 3.0], 0.9) == (1.0, 3.0)  # too few to leave one out
    low, high = conformal.healthy_range(np.arange(199.0), 0.5)
    assert (low, high) == (49.0, 149.0)
