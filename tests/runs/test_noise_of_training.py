"""How far is a block of training returns from the truth, in its own standard errors? Logs of a policy that stands still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relab.record.history import Column, History
from relab.runs.apart import bound
from relab.runs.course import course_on

TRUTH, SPREAD, LENGTH, LOGS = 200.0, 60.0, 200, 80


def log_of(metric: str, steps: np.ndarray, values: np.ndarray, with_lengths: bool = False) -> History:
    columns = {metric: Column(steps.astype(np.int64), values)}
    if with_lengths:
        columns["return/length"] = Column(steps.astype(np.int64), np.full(len(steps), float(LENGTH)))
    return History(Path("log"), columns=columns, axes=dict.fromkeys(columns, "env_steps"), source="csv")


def single(rng: np.random.Generator, n: int) -> History:
    return log_of("return/mean", np.cumsum(rng.integers(100, 300, n)), rng.normal(TRUTH, SPREAD, n))


def rounds(rng: np.random.Generator, n: int) -> History:
    return log_of("return/mean", 1000 * np.arange(1, n + 1), rng.normal(TRUTH, SPREAD, (n, 4)).mean(1))


def rolling(new: int, with_lengths: bool) -> Callable[[np.random.Generator, int], History]:
    """Means over the last 100 episodes, of which `new` are; as many as there are at first."""

    def made(rng: np.random.Generator, n: int) -> History:
        episodes = rng.normal(TRUTH, SPREAD, n * new)
        values = [episodes[max(i - 100, 0) : i].mean() for i in range(new, n * new + 1, new)]
        return log_of("return/mean_100", LENGTH * new * np.arange(1, n + 1), np.array(values), with_lengths)

    return made


KINDS = {"single episodes": single, "means of four": rounds, "the last 100, 3 new": rolling(3, True),
         "the last 100, 40 new": rolling(40, True), "the last 100, lengths unknown": rolling(3, False)}  # fmt: skip


@pytest.mark.parametrize("rows", [5, 8, 12, 20, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_ends_of_a_curve_that_stands_still_are_seldom_called_apart_from_the_truth(kind: str, rows: int) -> None:
    """Three standard errors, or what Student says of as few rows, are passed by chance in 0.3 % of normal points; in 5 %
    here at most. (Errors that were a third of what they are passed it in a third of the logs of up to twelve rows.)"""
    rng, far = np.random.default_rng(rows), []
    for _ in range(LOGS):
        run = KINDS[kind](rng, rows)
        points = course_on(run, next(iter(run.columns))).points
        far += [abs(p.mean - TRUTH) > bound(min(p.df, 200.0), 1) * p.se for p in (points[0], points[-1])]
    assert np.mean(far) <= 0.05


def test_a_mean_of_two_episodes_has_the_error_of_two() -> None:
    """SB3's first row is a mean over the episodes there are, not over 100: its error was told as a seventh of this."""
    rng, errors = np.random.default_rng(0), []
    for _ in range(LOGS):
        episodes = rng.normal(-1000.0, 280.0, 40)
        values = np.array([episodes[:n].mean() for n in range(2, 41, 2)])
        run = log_of("return/mean_100", LENGTH * 2 * np.arange(1, 21), values, with_lengths=True)
        errors.append(course_on(run, "return/mean_100").points[0].se)
    assert np.median(errors) == pytest.approx(280 / np.sqrt(4), rel=0.25)  # the first block: two rows, four episodes


ODD = [[np.nan] * 40, [np.inf] * 40, [1e308] * 39 + [-1e308], [np.nan] * 39 + [5.0], [7.0] * 40]


@pytest.mark.parametrize("values", ODD)
@pytest.mark.parametrize("metric", ["return/mean", "return/mean_100"])
def test_odd_values_are_no_error(metric: str, values: list[float]) -> None:
    points = course_on(log_of(metric, np.arange(40) * 1000, np.array(values)), metric).points
    assert all(not p.se < 0 for p in points)
