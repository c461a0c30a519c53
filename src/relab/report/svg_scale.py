"""Where on a page does a number stand? Scales, round marks and the colours, shared by every drawing of a report.

Colours are Okabe and Ito's, by a group's place in the report.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from relab.base.text import count, number

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("", "6 3", "2 3")  # the second and third six groups
GREY = "#8a8f98"
GAP = 3.5  # times the usual distance of two points: rows are missing
BESIDE = 3  # gaps on either side of one that say what is usual there
HUGE = 1e300  # a value beyond it is no place on a page: its distance to another may be no number


class Scale(NamedTuple):
    """From data to the page, in its units."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self._line(self.low), self._line(self.high)
        return self.start + (self._line(value) - low) / (high - low) * (self.end - self.start)

    def _line(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def shows(self, value: float) -> bool:
        return abs(value) < HUGE and (value > 0 or not self.log)  # False for NaN


def colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def dashed(place: int) -> str:
    """What a line of this place has besides its colour: from the seventh on dashes, from the thirteenth dots."""
    dash = DASHES[place // len(COLOURS) % len(DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def swatch(place: int) -> dict[str, str]:
    """Colour and, where its line has gaps, dashes of a key of a legend.

    >>> swatch(0), swatch(6)
    ({'colour': '#0072B2'}, {'colour': '#0072B2', 'dash': '6px 9px'})
    """
    dash = DASHES[place // len(COLOURS) % len(DASHES)].split()
    whole = {"colour": colour(place)}
    return whole | {"dash": f"{dash[0]}px {int(dash[0]) + int(dash[1])}px"} if dash else whole


def drawing(width: float, height: float, label: str, body: str) -> str:
    """A whole drawing, with what it shows in words for those who do not see it."""
    return (f'<svg class="curve" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label)}" '
            f'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">{body}</svg>')  # fmt: skip


def log_padded(values: Sequence[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    pad = (high / low) ** 0.04 if high > low else 1.5
    return Scale(low / pad, high * pad, start, end, True)


def padded(values: Sequence[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    pad = (high - low) * 0.04 or abs(high) * 0.05 or 1.0
    return Scale(low - pad, high + pad, start, end)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers within the range: 1, 2 or 5 times a power of ten apart; none where it is wider than numbers go."""
    raw = (high - low) / most
    if not math.isfinite(raw):
        return []
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; twice and five times them as well where there are few; plain ones within one decade."""
    powers = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    thin = math.ceil(len(powers) / 6)
    for marks in (powers[::thin], powers, [m * p for p in powers for m in (1, 2, 5)]):
        inside = [v for v in marks if low <= v <= high]
        if len(inside) >= 3:
            return inside
    return [v for v in ticks(low, high) if v > 0]


def marks_of(scale: Scale, most: int) -> list[float]:
    return log_ticks(scale.low, scale.high) if scale.log else ticks(scale.low, scale.high, most)


def tick_text(value: float) -> str:
    if 0 < abs(value) < 0.001:  # 0.0001 would stand over the axis' name
        digits = next(n for n in (0, 1, 2, 3) if n == 3 or math.isclose(float(f"{value:.{n}e}"), value, rel_tol=1e-6))
        return f"{value:.{digits}e}".replace("e-0", "e-")
    return count(value) if abs(value) >= 10_000 else number(float(f"{value:.10g}"))  # 0.30000000000000004


def usual_gaps(places: Sequence[float]) -> list[float]:
    """For each place, how far neighbours usually lie apart there: the widest but one of the gaps beside the one
    before it, and at least the median. Rows of single episodes are as far apart as these are long, which is no gap."""
    gaps = [b - a for a, b in itertools.pairwise(places)]
    if len(gaps) < 4:
        return [math.inf] * len(places)
    middle = sorted(gaps)[len(gaps) // 2]
    beside = [[*gaps[max(i - BESIDE, 0) : i], *gaps[i + 1 : i + 1 + BESIDE]] for i in range(len(gaps))]
    return [math.inf, *(max(middle, sorted(some)[-2]) for some in beside)]


def unbroken(points: list[tuple[float, float]], usual: Sequence[float] = ()) -> list[list[tuple[float, float]]]:
    """Stretches without a gap: cut at values that are not finite and where rows are missing."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for point, wide in zip(points, usual or itertools.repeat(math.inf)):
        if not math.isfinite(point[1]):
            pieces.append([])
            continue
        if pieces[-1] and point[0] - pieces[-1][-1][0] > GAP * wide:
            pieces.append([])
        pieces[-1].append(point)
    return [piece for piece in pieces if piece]


def path_of(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) if points else ""
