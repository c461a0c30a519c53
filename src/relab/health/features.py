"""What is a curve like, in a few numbers that can be held against other runs? Levels, growth, spread, bounds, company.

Levels of things counted in returns are given in units of the run's own returns, so that runs of different tasks can be
compared: V over the size R of the returns, losses over R². A feature that cannot be told is left out, not guessed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.record import glossary
from relab.record.history import Column, History, measured

# What is compared, under the names of the glossary; `return` is what the run earned, by whichever name.
RETURN = "return"
METRICS = (
    RETURN, "return/length", "policy/kl", "policy/clip_share", "policy/entropy", "policy/std_mean", "policy/loss",
    "policy/actor_loss", "policy/exploration", "value/explained_variance", "value/loss", "value/critic_loss",
    "value/q_mean", "optim/temperature", "optim/lr", "optim/grad_norm",
)  # fmt: skip
CHOSEN = ("optim/lr",)  # somebody set it: what others set is no sign of health
FEATURES = {
    "first": "median over the first third of the run's steps",
    "middle": "median over the second third",
    "last": "median over the last third",
    "peak": "highest level: the largest median of five rows in a row",
    "growth": "last against first: log10 of their ratio where the metric cannot be below 0, else their difference",
    "spread": "distance of the quartiles over the second half, divided by the size of its median",
    "at_bound": "share of the rows that lie at an end of the metric's legal range, or at exactly 0",
    "with_return": "rank correlation with the return, over twenty equal stretches of the run",
}
UNIT_FREE = ("growth", "spread", "with_return")
# The same quantity in a unit that the log does not tell: the last word of a spread where the action range is unknown.
RAW = {"policy/std_mean": ("std", "action_std", "policy_std", "mean_std")}
FEW = 8  # rows under which a curve says too little
TINY = 1e-12
STRETCHES = 20


class Key(NamedTuple):
    """Which number of a run."""

    metric: str
    feature: str


def features(history: History, until: float | None = None) -> dict[Key, float]:
    """All features of all compared metrics that the run logs.

    `until` is the step at which an unfinished run is to end: a third that is not over yet has no level.
    """
    earned = _returns(history)
    size = return_size(earned)
    numbers: dict[Key, float] = {}
    for metric in METRICS:
        column = earned if metric == RETURN else history.columns.get(metric)
        raw = _raw(history, RAW.get(metric, ())) if column is None else None
        if column is not None:
            numbers |= {Key(metric, name): x for name, x in curve_features(metric, column, earned, size, until).items()}
        elif raw is not None:
            shape = curve_features(metric, raw, earned, size, until)
            numbers |= {Key(metric, name): x for name, x in shape.items() if name in UNIT_FREE}
    return numbers


def _raw(history: History, words: tuple[str, ...]) -> Column | None:
    names = [n for n in history.columns if n.startswith("foreign/") and n.rpartition("/")[2].lower() in words]
    return history.columns[names[0]] if names else None


def curve_features(
    metric: str, column: Column, earned: Column | None, size: float | None, until: float | None = None
) -> dict[str, float]:
    """The features of one curve. `size` is that of the run's returns; levels in such units are left out without it."""
    finite = np.isfinite(column.values)
    steps, values = column.steps[finite], column.values[finite]
    if len(values) < FEW or steps[-1] <= steps[0]:
        return {}
    scale = _scale(metric, size)
    low, high, positive = _range(metric)
    levels = _thirds(steps, values, until)
    numbers: dict[str, float] = {}
    if scale is not None:
        numbers |= {name: level / scale for name, level in levels.items()} | {"peak": _peak(values) / scale}
    if "first" in levels and "last" in levels and (positive or scale is not None):
        numbers["growth"] = _growth(levels["first"], levels["last"], positive, scale or 1.0)
    numbers |= _spread(values)
    numbers["at_bound"] = float(np.mean((values == 0) | (values == low) | (values == high)))
    if metric != RETURN and earned is not None:
        numbers |= _with_return(steps, values, earned)
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}


def in_own_units(history: History, key: Key, value: float) -> float:
    """A feature in the units of the run's log, where it was divided by the size of its returns."""
    return value if key.feature in UNIT_FREE else value * (unit_of_levels(history, key.metric) or 1.0)


def unit_of_levels(history: History, metric: str) -> float | None:
    """What levels are divided by; None where they are counted in returns whose size the log does not tell."""
    return _scale(metric, return_size(_returns(history)))


def by_returns(metric: str) -> bool:
    """Whether its levels are counted in returns, or in their squares."""
    return metric in (RETURN, "policy/actor_loss") or glossary.metric(metric).unit in ("return", "return²")


def is_squared(metric: str) -> bool:
    return metric != RETURN and glossary.metric(metric).unit == "return²"


def return_size(earned: Column | None) -> float | None:
    """How large this run's returns are: the ninth decile of their absolute values."""
    if earned is None:
        return None
    finite = np.abs(earned.values[np.isfinite(earned.values)])
    size = float(np.quantile(finite, 0.9)) if len(finite) else 0.0
    return size if size > TINY else None


def _returns(history: History) -> Column | None:
    """Training returns first: every log has them, and evaluations are few."""
    names = sorted(glossary.RETURNS, key=lambda name: not name.startswith("return/"))
    name = next((name for name in names if name in history.columns and _enough(history, name)), None)
    return measured(history, name) if name else None


def _enough(history: History, name: str) -> bool:
    return int(np.isfinite(history.columns[name].values).sum()) >= FEW


def _range(metric: str) -> tuple[float, float, bool]:
    if metric == RETURN:
        return -math.inf, math.inf, False
    known = glossary.metric(metric)
    return known.low, known.high, known.low >= 0


def _scale(metric: str, size: float | None) -> float | None:
    unit = "return" if metric in (RETURN, "policy/actor_loss") else glossary.metric(metric).unit  # it is about -Q
    if unit == "steps":
        return None  # how long an episode is says nothing by itself
    if unit not in ("return", "return²"):
        return 1.0
    return None if size is None else size if unit == "return" else size * size


def _thirds(steps: np.ndarray, values: np.ndarray, until: float | None) -> dict[str, float]:
    end = steps[-1] if until is None else max(until, steps[-1])
    share = (steps - steps[0]) / (end - steps[0])
    parts = {"first": share < 1 / 3, "middle": (share >= 1 / 3) & (share < 2 / 3), "last": share >= 2 / 3}
    over = {"first": share[-1] >= 1 / 3, "middle": share[-1] >= 2 / 3, "last": until is None}
    return {name: float(np.median(values[rows])) for name, rows in parts.items() if over[name] and rows.any()}


def _peak(values: np.ndarray) -> float:
    windows = np.lib.stride_tricks.sliding_window_view(values, min(5, len(values)))
    return float(np.median(windows, axis=1).max())


def _growth(first: float, last: float, positive: bool, scale: float) -> float:
    if positive:
        return math.log10(max(last, TINY) / max(first, TINY))
    return (last - first) / scale


def _spread(values: np.ndarray) -> dict[str, float]:
    half = values[len(values) // 2 :]
    low, mid, high = np.quantile(half, (0.25, 0.5, 0.75))
    return {"spread": float((high - low) / abs(mid))} if abs(mid) > TINY else {}


def _with_return(steps: np.ndarray, values: np.ndarray, earned: Column) -> dict[str, float]:
    finite = np.isfinite(earned.values)
    low = max(steps[0], earned.steps[finite][0])
    edges = np.linspace(low, min(steps[-1], earned.steps[finite][-1]), STRETCHES + 1)
    pair = np.array([_means(steps, values, edges), _means(earned.steps[finite], earned.values[finite], edges)])
    pair = pair[:, np.isfinite(pair).all(0)]
    if pair.shape[1] < FEW or (np.ptp(pair, axis=1) == 0).any():
        return {}
    return {"with_return": float(np.corrcoef([_ranks(row) for row in pair])[0, 1])}


def _means(steps: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Mean of each stretch; NaN where it has no row."""
    at = np.clip(np.searchsorted(edges, steps, side="right") - 1, 0, STRETCHES - 1)
    inside = (steps >= edges[0]) & (steps <= edges[-1])
    counts = np.bincount(at[inside], minlength=STRETCHES)
    sums = np.bincount(at[inside], values[inside], minlength=STRETCHES)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _ranks(row: np.ndarray) -> np.ndarray:
    """Ranks from 0; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(row, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]
