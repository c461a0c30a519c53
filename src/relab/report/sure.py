"""How sure is a number on the page? One interval for each, from one place, within what is possible."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relab.base.text import number
from relab.record.bounds import ANY, Bounds
from relab.stats import LEAST, Interval, SeedMean, mean_interval


def over_episodes(values: Sequence[float], limits: Bounds = ANY) -> Interval:
    """The mean of one evaluation's episodes, within `limits`."""
    with np.errstate(invalid="ignore"):  # a return may be infinite
        x = mean_interval(np.array(values, np.float64))
    low, high = limits
    return x._replace(low=max(x.low, low), high=min(x.high, high)) if math.isfinite(x.low) else x


def in_words(x: SeedMean, values: Sequence[float]) -> str:
    """What the interval is, or what is shown instead of one."""
    known = [v for v in values if math.isfinite(v)]
    lost = f"; {len(values) - len(known)} without a number" if 0 < len(known) < len(values) else ""
    if x.n == 0:
        return "no finite number"
    if x.n == 1:
        return f"no interval from one seed{lost}"
    if min(known) == max(known):
        return f"all {x.n} seeds equal: no interval{lost}"
    if not math.isfinite(x.low):
        range_ = f"from {number(min(known))} to {number(max(known))}"
        return f"mean of {x.n} seeds, {range_}; no interval under {LEAST} seeds{lost}"
    return f"mean of {x.n} seeds, {x.level:.0%} interval{lost}"


def shown(x: SeedMean, values: Sequence[float]) -> str:
    """487.3 [410.2, 500]; the mean alone where there is no interval, or where nothing varied."""
    if not math.isfinite(x.low) or len({v for v in values if math.isfinite(v)}) < 2:
        return number(x.mid) if x.n else "none"
    return f"{number(x.mid)} [{number(x.low)}, {number(x.high)}]"
