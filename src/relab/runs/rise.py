"""Did training learn where its evaluations do not show it yet? Its returns against a random policy's."""

from __future__ import annotations

import math
from dataclasses import dataclass

from relab.record.history import History
from relab.runs.apart import clearly
from relab.runs.course import TRAINED, course_on
from relab.runs.yardstick import Yardstick

FEWEST = 4  # points


@dataclass(frozen=True)
class Training:
    """From where to where the returns of training rose, clear of noise and of a random policy."""

    metric: str
    start: float
    end: float


def risen(run: History, yard: Yardstick) -> Training | None:
    """The last tenth lies clearly above the first and above random, by a gain over each that matters; None elsewhere.

    Returns outside of what the environment can pay are not of its task, nor are those of a task that changed.
    """
    if yard.random is None or any(event.get("kind") == "stage" for event in run.events):
        return None
    for name in (n for n in TRAINED if n in run.columns):
        good = [p for p in course_on(run, name).points if math.isfinite(p.mean)]
        if len(good) < FEWEST or not math.isfinite(good[-1].se) or not yard.fits(good):
            continue
        gains = [(good[-1].mean - base.mean, base) for base in (good[0], yard.random)]
        if all(gain > yard.matters and clearly(gain, good[-1], base) for gain, base in gains):
            return Training(name, good[0].mean, good[-1].mean)
    return None
