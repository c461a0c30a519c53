"""Can the steps of a log be trusted? Points outside of their order, and counts that other columns contradict.

A point whose step is below 0, far beyond all others, or out of an order that the rows around it keep is left out, and
it is said: one wrong step moves the end of a run, and with it everything that is judged by its length. Steps that
cannot be single steps of the environment (thousands, times) are kept, but no longer called so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from relab.base.numbers import is_finite
from relab.config.views import flatten
from relab.record.history import Column, History

FEWEST = 8  # rows from which an order can be told
FEW = 0.1  # of the rows may have a step below 0, or a fraction, before the column is no count
FAR = 100.0  # times the span of all other steps, beyond the last of them
WIDE = 0.05  # of all steps: episodes of several worlds are logged a little out of order
NEAR = 3.0  # intervals that a step may go back without being out of order: restarts do
COUNTED = ("env_steps", "agent_steps")
LONGER = 10.0  # an episode that took so many times the steps there were: frames may be four to a step
MANY = 100.0  # times: environments side by side, frames and repeated updates explain less
TIMES = ((1.4e9, 2.5e9), (1.4e12, 2.5e12), (1.4e18, 2.5e18))  # seconds, milliseconds, nanoseconds of our days
PLANNED, ROWS, UNITS, EXACT = "total_steps", 20, (1e3, 1e6), 0.05
LEFT_OUT, DOUBT = "steps_left_out", "steps_doubtful"  # in meta


# ---- Single points


def strays(steps: np.ndarray) -> np.ndarray:
    """Which points of a column, in the order in which they were written, have a step that cannot be theirs.

    >>> strays(np.array([-1, 10, 20, 30, 5, 40, 50, 60, 70, 10**12])).nonzero()[0].tolist()
    [0, 4, 9]
    """
    if not len(steps) or (steps[0] >= 0 and (steps[1:] >= steps[:-1]).all()):  # as nearly every column
        return ahead(steps)
    below = steps < 0
    bad = np.zeros(len(steps), bool) if mostly_below(steps) else below
    rest = np.flatnonzero(~bad)
    if len(rest) >= FEWEST:
        bad = bad.copy()
        bad[rest[ahead(steps[rest])]] = True
        rest = np.flatnonzero(~bad)
        bad[rest[_misplaced(steps[rest])]] = True
    return bad


def mostly_below(steps: np.ndarray) -> bool:
    """Whether so many steps are below 0 that they are no count at all; of a few rows, all of them."""
    share = float((steps < 0).mean()) if len(steps) else 0.0
    return share > FEW if len(steps) >= FEWEST else share == 1


def ahead(steps: np.ndarray) -> np.ndarray:
    """The very few that lie beyond all others by a hundred times the span of these; in any order."""
    far = np.zeros(len(steps), bool)
    if len(steps) < FEWEST:
        return far
    ordered = np.sort(steps).astype(np.float64)
    for count in range(1, max(1, len(steps) // 50) + 1):
        rest = ordered[:-count]
        if ordered[-count] - rest[-1] > FAR * max(rest[-1] - rest[0], 1.0):
            far = steps >= ordered[-count]
    return far


def _misplaced(steps: np.ndarray) -> np.ndarray:
    """Single rows far off, where the rows on both sides go on from each other; a last one that falls far back."""
    wrong = np.zeros(len(steps), bool)
    if len(steps) < FEWEST:
        return wrong
    moves = np.diff(steps.astype(np.float64))
    far = NEAR * float(np.median(moves[moves > 0])) if (moves > 0).any() else math.inf
    far = max(far, WIDE * float(np.ptp(steps.astype(np.float64))))
    before, own, after = steps[:-2], steps[1:-1], steps[2:]
    fits = (before <= after) & (after <= before + max(far, 1.0))
    wrong[1:-1] = fits & ((own < before - far) | (own > after + far))
    wrong[-1] = steps[-1] < steps[-2] - far
    wrong[0] = steps[0] > steps[1] + far
    return wrong if wrong.sum() <= max(1, len(steps) // 50) else np.zeros(len(steps), bool)


def note(history: History, lost: np.ndarray) -> None:
    """Remember steps that were left out; columns of one file lose the same rows."""
    if len(lost) > history.meta.get(LEFT_OUT, {}).get("points", 0):
        history.meta[LEFT_OUT] = {"points": len(lost), "steps": [int(step) for step in lost[:3]]}


def clean(history: History) -> None:
    """Leave out what no importer has left out already: steps below 0, and those far beyond all others."""
    for name, column in history.columns.items():
        below = column.steps < 0
        if mostly_below(column.steps):
            numbers = np.arange(len(below), dtype=np.int64)
            history.columns[name], history.axes[name] = Column(numbers, column.values), "iteration"
            history.meta.setdefault(DOUBT, f"{int(below.sum())} of {len(below)} steps of {name} are below 0")
            continue
        bad = below | ahead(column.steps)
        if bad.any():
            note(history, column.steps[bad])
            history.columns[name] = Column(column.steps[~bad], column.values[~bad])
    last = max((int(c.steps[-1]) for c in history.columns.values() if len(c.steps) >= FEWEST), default=None)
    if LEFT_OUT in history.meta and last is not None:
        _cut(history, FAR * max(last, 1))


def _cut(history: History, limit: float) -> None:
    """The same in columns that are too short to tell by themselves."""
    for name, column in history.columns.items():
        good = column.steps <= limit
        if not good.all():
            history.columns[name] = Column(column.steps[good], column.values[good])
    for name in [name for name, column in history.columns.items() if not len(column.steps)]:
        del history.columns[name]


# ---- What the steps count


def doubt(history: History) -> None:
    """Say so where other columns contradict the steps, and no longer call them steps of the environment."""
    counted = [name for name in history.columns if history.axes.get(name) in COUNTED]
    why = history.meta.get(DOUBT) or next(_contradictions(history, counted), "")
    if not why:
        return
    history.meta[DOUBT] = why
    for name in counted:
        history.axes[name] = "iteration"


def _contradictions(history: History, counted: list[str]) -> Iterator[str]:
    main = max((history.columns[name].steps for name in counted), key=len, default=np.zeros(0))
    if len(main) < FEWEST:
        return
    first, last = float(main.min()), float(main.max())
    if any(low <= first and last < high for low, high in TIMES):
        yield f"they run from {first:,.0f} to {last:,.0f}, as times of the clock do"
    yield from _too_long(history, counted)
    yield from _too_fast(history, counted, first, last)
    yield from _too_many_updates(history, counted)
    yield from _a_thousandth(history, len(main), last)


def _too_long(history: History, counted: list[str]) -> Iterator[str]:
    """Episodes that took more steps than there were; all together, where each row is one that ended."""
    if "return/length" not in counted:
        return
    steps, lengths = history.columns["return/length"]
    good = np.isfinite(lengths) & (lengths > 0) & (steps > 0)
    steps, lengths = steps[good], lengths[good]
    if len(steps) < FEWEST:
        return
    over = lengths > LONGER * steps
    if over.sum() > 1:
        at = int(np.flatnonzero(over)[-1])
        yield f"by step {int(steps[at]):,} episodes of {lengths[at]:,.4g} steps were over"
    elif (total := float(lengths.sum())) > MANY * float(steps[-1]):
        yield f"the {len(steps)} episodes logged took {total:,.0f} steps by step {int(steps[-1]):,}"


def _too_fast(history: History, counted: list[str], first: float, last: float) -> Iterator[str]:
    """The speed that was logged, over the time it took, makes many times the steps."""
    speed, clock = (history.columns.get(f"time/{name}") for name in ("sps", "elapsed_s"))
    if speed is None or clock is None or "time/sps" not in counted or len(clock.values) < FEWEST:
        return
    with np.errstate(all="ignore"):
        made = float(np.nanmedian(speed.values) * (np.nanmax(clock.values) - np.nanmin(clock.values)))
    if math.isfinite(made) and made > MANY * max(last - first, 1.0):
        yield f"at the logged speed the run made about {made:,.0f} steps, where they go to {last:,.0f}"


def _too_many_updates(history: History, counted: list[str]) -> Iterator[str]:
    updates = history.columns.get("data/updates")
    if updates is None or "data/updates" not in counted or len(updates.values) < FEWEST:
        return
    count, last = float(updates.values[-1]), float(updates.steps[-1])
    if math.isfinite(count) and count > MANY * max(last, 1.0):
        yield f"{count:,.0f} updates were made by step {last:,.0f}"


def _a_thousandth(history: History, rows: int, last: float) -> Iterator[str]:
    """The last step is exactly a thousandth, or a millionth, of those that were planned, after many rows."""
    for key, planned in flatten(history.config).items():
        meant = key.removeprefix("foreign.") == PLANNED and is_finite(planned) and rows >= ROWS and last > 0
        if meant and any(abs(planned / last / unit - 1) < EXACT for unit in UNITS):
            yield f"they end at {last:,.0f} where {planned:,.0f} were planned, as thousands or millions would"
