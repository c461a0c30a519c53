"""How does a curve look in a page without scripts? SVG text: every seed a line, mean and band, gaps and NaN shown.

The data is what curves.curve gives; by steps, updates or wall time, on linear or log axes.

A group has the colour of its place in the report; lines and text take the page's colour, so that one figure serves
light, dark and print. Text from logs is escaped here, because the result is put into pages as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from relab.base.text import count, number, plural
from relab.report import ink, words
from relab.report.curves import Band, Bundle, CurveFigure, Level, Line, Onset, thinned
from relab.report.svg_scale import (
    COLOURS,
    DASHES,
    GREY,
    HUGE,
    Scale,
    colour,
    drawing,
    log_padded,
    marks_of,
    padded,
    path_of,
    swatch,
    tick_text,
    unbroken,
    usual_gaps,
)

MOST_KEYS = 10  # groups that the legend names
LINE, LETTER = 13, 6.4  # height of a line of text and width of a letter, in units of the picture
WIDE_LETTER = 6.9  # where nothing may be cut, whatever the reader's font
CLOCKS = ((7200.0, 3600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))  # from so many seconds on
ACROSS = {"updates": "optimiser steps", "time": "wall time"}


class Look(NamedTuple):
    """How to look at the data."""

    x: str = "steps"  # steps, updates or time
    log_x: bool = False
    log_y: bool = False

    def across(self, line: Line | Band) -> list[float]:
        return line.x if self.x == "steps" else getattr(line, self.x)

    def at(self, onset: Onset) -> float | None:
        return onset.step if self.x == "steps" else getattr(onset, self.x)


PLAIN = Look()


def curve(data: CurveFigure, width: int = 760, height: int = 330, view: Look = PLAIN) -> str:
    """The learning curve of curves.curve as one <svg>."""
    lines = data.lines
    if not any(abs(y) < HUGE for line in lines for y in line.y):
        return _empty(width, "no finite value to draw" if any(line.x for line in lines) else "nothing to draw yet")
    x, y = _scales(data, view, width, height)
    smooth = ink.covers(data)
    parts = [*_healthy(data, x, y, view), _axes(x, y, data, view), *_reference(data, x, y, view, smooth)]
    for place, group in enumerate(data.groups):
        parts += _group(group, place if group.place is None else group.place, x, y, view, smooth)
    at = view.at(data.onset) if data.onset else None
    if data.onset and at is not None and x.shows(at):
        parts.append(_onset(at, str(data.onset.slug), x, y))
    parts += _levels(data.levels, x, y)
    parts += _names_beside(named_heights(data), x, y)
    label = f"{data.metric} over {_across(data, view)}, {plural(len(lines), 'run')}"
    return drawing(width, height, label, "".join(parts))


def legend(data: CurveFigure) -> list[dict[str, str]]:
    """Colour and text per group, for the page to show beside the figure; what all lines mean is said once."""
    several, shown = len(data.groups) > 1, data.groups[:MOST_KEYS]
    meanings = dict.fromkeys(_meaning(group) for group in data.groups)
    once = several and len(meanings) == 1
    keys = [{**swatch(i if g.place is None else g.place), "text": _legend_text(g, several, once)}
            for i, g in enumerate(shown)]  # fmt: skip
    if len(data.groups) > len(shown):
        keys.append({"colour": "none", "text": f"and {len(data.groups) - len(shown)} more configs"})
    keys += [{"colour": "none", "text": f"{next(iter(meanings)).replace('one run', 'one run each')}"}] if once else []
    broken = any(not math.isfinite(y) for line in data.lines for y in line.y)
    reference = data.reference
    if reference and reference.x:
        keys.append({"colour": GREY, "text": f"{reference.called}: {reference.name}"})
    keys += [{"colour": GREY, "text": "grey: where nine of ten healthy runs lie"}] * bool(data.healthy)
    keys += [{"colour": "none", "text": ink.meaning(data)}] * ink.covers(data)
    return [*keys, *([{"colour": "none", "text": "× not a finite number; dotted: no value"}] if broken else [])]


def _legend_text(group: Bundle, several: bool, once: bool) -> str:
    if once:
        return group.label
    return f"{group.label}: {_meaning(group)}" if several else _meaning(group)


def _meaning(group: Bundle) -> str:
    n, other = len(group.lines), f", {words.metric(group.metric)}" if group.metric else ""
    if not n:
        return "not logged"
    if group.band:
        return f"thick: {group.band.label}; thin: {plural(n, 'run')}{other}"
    return (f"{n:,} runs, each a line" if n != 1 else "one run") + other


def _healthy(data: CurveFigure, x: Scale, y: Scale, view: Look) -> list[str]:
    """Grey behind the curve: where healthy runs lie, as far as the figure shows it."""
    parts = []
    for each in (data.healthy or ()) if view.x == "steps" else ():
        low, high = (min(max(value, y.low), y.high) for value in (each.low, each.high))
        if high > low and x.shows(each.start or 1.0):
            left, right = (x(max(at, x.low)) for at in (each.start, each.end))
            size = f'x="{left:.1f}" y="{y(high):.1f}" width="{right - left:.1f}" height="{y(low) - y(high):.1f}"'
            title = f"<title>healthy runs: {escape(number(each.low))} to {escape(number(each.high))}</title>"
            parts.append(f'<rect class="healthy" {size} fill="{GREY}" fill-opacity=".18">{title}</rect>')
    return parts


# ---- Frame


def _empty(width: int, text: str) -> str:
    return drawing(width, 80, text, f'<text x="{width / 2}" y="44" text-anchor="middle">{escape(text)}</text>')


def _scales(data: CurveFigure, view: Look, width: int, height: int) -> tuple[Scale, Scale]:
    lines = data.lines
    lines += [data.reference] if data.reference else []
    xs = [x for line in lines for x in view.across(line) if x > 0 or not view.log_x] or [1.0]
    left, right = min(xs), max(xs)
    if left == right:  # a single point stands on its way from the start, with room behind it
        left, right = (left / 2, 2 * left) if view.log_x else (min(0.0, left), 1.25 * left if left > 0 else left + 1)
    y = _upright(data, lines, view.log_y, height)
    margin = max(58, 28 + LETTER * max((len(tick_text(v)) for v in marks_of(y, 5)), default=0))  # beside its name
    names = [text for value, text in named_heights(data) if y.shows(value) and y.low <= value <= y.high]
    beside = max(14.0, 10 + WIDE_LETTER * max(map(len, names), default=0))
    return Scale(left, right, margin, width - beside, view.log_x), y


def _upright(data: CurveFigure, lines: list[Line], log: bool, height: int) -> Scale:
    ys = [y for line in lines for y in line.y if abs(y) < HUGE]
    bands = [b for g in data.groups if (b := g.band)]
    span = max(ys) - min(ys) or 1.0  # a band of few seeds may be far wider than the lines; it is cut there
    top = 14 if data.onset is None else 14 + LINE / 2  # the name of an onset stands over the frame
    if log:
        return log_padded([y for y in ys if y > 0] or [1.0], height - 44, top)
    ys += [min(max(v, min(ys) - span / 4), max(ys) + span / 4) for b in bands for v in (*b.low, *b.high)]
    reach = max(20 * span, 3 * max(map(abs, ys)))  # of a flat line, too: 9 beside a random policy's 22 is the news
    ys += [level.value for level in data.levels if abs(level.value - ys[0]) <= reach]
    return padded(ys, height - 44, top)


def _axes(x: Scale, y: Scale, data: CurveFigure, view: Look) -> str:
    parts = [f'<path d="M{x.start} {y.end}V{y.start}H{x.end}" fill="none" stroke="currentColor" opacity=".55"/>']
    for value in marks_of(y, 5):
        parts.append(f'<path d="M{x.start} {y(value):.1f}H{x.end}" stroke="currentColor" opacity=".12"/>')
        parts.append(
            f'<text x="{x.start - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(tick_text(value))}</text>'
        )
    size = _clock(x.high)[0] if view.x == "time" else 1.0
    marks = marks_of(x._replace(low=x.low / size, high=x.high / size), 6 if x.end > 500 else 4)
    if view.x != "time":  # nothing stands between two steps, and their marks would be rounded to the same number
        marks = [value for value in marks if abs(value - round(value)) < 1e-9]
    for value in marks:
        at, text = x(value * size), tick_text(value) if view.x == "time" else count(value)
        parts.append(f'<path d="M{at:.1f} {y.start}v4" stroke="currentColor" opacity=".55"/>')
        parts.append(f'<text x="{at:.1f}" y="{y.start + 17}" text-anchor="middle">{escape(text)}</text>')
    return "".join(parts) + _names(x, y, data, view)


def _clock(seconds: float) -> tuple[float, str]:
    return next((size, unit) for least, size, unit in CLOCKS if seconds >= least)


def _across(data: CurveFigure, view: Look) -> str:
    return ACROSS.get(view.x) or words.axis(str(data.axis))


def _names(x: Scale, y: Scale, data: CurveFigure, view: Look) -> str:
    """What the axes count, with the unit where the metric's name does not say it."""
    name = words.metric(data.metric)
    log = ", log" if y.log else ""
    name = name if len(name + log) * 6.5 < y.start - y.end else words.short(data.metric)
    unit = f" ({data.unit})" if data.unit not in ("", "-", *name.split()) else ""
    unit = unit if len(name + unit + log) * 7 < y.start - y.end else ""  # a small figure has no room for it
    clock = f" ({_clock(x.high)[1]})" if view.x == "time" else ""
    notes = f"{clock}{', log' if x.log else ''}"
    across, up = escape(_across(data, view) + notes), escape(f"{name}{unit}{', log' if y.log else ''}")
    centre, middle = (x.start + x.end) / 2, (y.start + y.end) / 2
    turn = f'transform="rotate(-90 13 {middle:.0f})"'
    return (f'<text x="{centre:.0f}" y="{y.start + 34}" text-anchor="middle">{across}</text>'
            f'<text x="13" y="{middle:.0f}" text-anchor="middle" {turn}>{up}</text>')  # fmt: skip


# ---- Names: none of them lies over a curve


def named_heights(data: CurveFigure) -> list[tuple[float, str]]:
    """The values that have a name: levels, and where the reference ended."""
    known = [(level.value, f"{level.label} {_rounded(level.value)}") for level in data.levels]
    line = data.reference
    if line and line.x and math.isfinite(line.y[-1]):
        known.append((line.y[-1], f"{line.called} {_rounded(line.y[-1])}"))
    return known


def _rounded(value: float) -> str:
    """Three digits are enough beside a line; 19.49 -> 19.5, -1172.7 -> -1,173."""
    return f"{value:,.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def _levels(levels: list[Level], x: Scale, y: Scale) -> list[str]:
    """Dashed lines across the picture."""
    shown = [y(level.value) for level in levels if y.shows(level.value) and y.low <= level.value <= y.high]
    return [f'<path d="M{x.start} {at:.1f}H{x.end}" stroke="currentColor" stroke-dasharray="5 4" opacity=".5"/>'
            for at in shown]  # fmt: skip


def _names_beside(named: list[tuple[float, str]], x: Scale, y: Scale) -> list[str]:
    """To the right of the frame, each at its height, or as near as the next name allows."""
    shown = sorted((y(value) + 4, text) for value, text in named if y.shows(value) and y.low <= value <= y.high)
    heights = spread([at for at, _ in shown], y.end + 4, y.start + 4)
    return [
        f'<text class="level" x="{x.end + 6:.1f}" y="{at:.1f}">{escape(text)}</text>'
        for at, (_, text) in zip(heights, shown)
    ]


def spread(heights: Sequence[float], top: float, foot: float, apart: float = LINE) -> list[float]:
    """Heights in order, moved as little as needed to stand `apart`, from the top down and then from the foot up.

    >>> spread([10, 12, 50], 0, 60)
    [10, 23, 50]
    >>> spread([58, 60], 0, 60)
    [47, 60]
    """
    placed: list[float] = []
    for at in heights:
        placed.append(max(at, placed[-1] + apart) if placed else max(at, top))
    lowest = foot
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], lowest)
        lowest = placed[i] - apart
    return placed


def _reference(data: CurveFigure, x: Scale, y: Scale, view: Look, smooth: bool) -> list[str]:
    """The run it is held against, in grey, and the level at which that one ended."""
    line = data.reference
    if not line or not line.x:
        return []
    parts = [_line(line, f'fill="none" stroke="{GREY}" stroke-width="1.7"', GREY, x, y, view, smooth)]
    if y.shows(line.y[-1]):
        at = y(line.y[-1])
        parts.append(f'<path d="M{x.start} {at:.1f}H{x.end}" stroke="{GREY}" stroke-dasharray="8 3" opacity=".8"/>')
    return parts


def _onset(step: float, slug: str, x: Scale, y: Scale) -> str:
    """A dotted line where it began; its name over the frame."""
    at = min(max(x(step), x.start), x.end)
    side = "end" if at > (x.start + x.end) / 2 else "start"
    room = at if side == "end" else x.end - at
    name = slug if len(slug) * LETTER < room else slug.partition(" ")[0]  # without the run
    return (f'<path class="onset" d="M{at:.1f} {y.end}V{y.start}" stroke="currentColor" stroke-dasharray="1 3" '
            f'stroke-width="1.5"/><text class="began" x="{at:.1f}" y="{y.end - 5:.1f}" text-anchor="{side}">'
            f"{escape(name)}</text>")  # fmt: skip


# ---- Lines


def _group(group: Bundle, place: int, x: Scale, y: Scale, view: Look, smooth: bool) -> list[str]:
    tone, dash = colour(place), DASHES[place // len(COLOURS) % len(DASHES)]
    style = f'fill="none" stroke="{tone}" stroke-dasharray="{dash}" stroke-linejoin="round"'
    thin = 'stroke-width="1" opacity=".7"' if group.band else 'stroke-width="1.7"'
    band = ink.smoothed_band(group) if smooth else group.band
    parts = [_band(band, tone, x, y, view)] if band else []
    for line in group.lines:
        parts.append(_line(line, f"{style} {thin}", tone, x, y, view, smooth, shaded=band is None))
    if band:
        points = _placed(view.across(band), band.mean, x, y)
        mean = "".join(path_of(piece) for piece in unbroken(points))
        parts.append(f'<path class="mean" d="{mean}" {style} stroke-width="2.6"/>')
    return parts


def _placed(xs: Sequence[float], ys: Sequence[float], x: Scale, y: Scale) -> list[tuple[float, float]]:
    """On the page; NaN where the value cannot be shown. Places that a log axis does not have are left out."""
    return [(x(a), y(b) if y.shows(b) else math.nan) for a, b in zip(xs, ys) if x.shows(a)]


def _band(band: Band, tone: str, x: Scale, y: Scale, view: Look) -> str:
    def inside(value: float) -> float:
        return min(max(y(value), y.end), y.start) if y.shows(value) else y.start

    across = [(i, x(a)) for i, a in enumerate(view.across(band)) if x.shows(a)]
    up = [(a, inside(band.high[i])) for i, a in across]
    down = [(a, inside(band.low[i])) for i, a in across][::-1]
    title = f"<title>{escape(band.label)}</title>"
    return f'<path class="band" d="{path_of(up + down)}Z" fill="{tone}" opacity=".18">{title}</path>' if up else ""


def _line(
    line: Line, style: str, tone: str, x: Scale, y: Scale, view: Look, smooth: bool = False, shaded: bool = True
) -> str:
    """Pieces between gaps; a cross at the foot for each value that is not finite; a dotted bridge over missing rows."""
    title = f"<title>{escape(str(line.name))}</title>"
    every = _placed(view.across(line), line.y, x, y)
    if smooth and len(every) >= ink.ROWS * ink.STRETCHES:
        return _smoothed(every, style, tone, title, y.start, shaded)
    placed = thinned(every, 400 if x.end > 500 else 200)
    pieces = unbroken(placed, () if x.log else usual_gaps([a for a, _ in placed]))
    parts = [f'<path class="seed" d="{"".join(path_of(p) for p in pieces if len(p) > 1)}" {style}>{title}</path>']
    parts += [
        f'<circle cx="{p[0][0]:.1f}" cy="{p[0][1]:.1f}" r="2.4" fill="{tone}">{title}</circle>'
        for p in pieces
        if len(p) == 1
    ]
    parts += [_bridge(a[-1], b[0], tone) for a, b in pairwise(pieces)]
    parts += [_cross(px, y.start, tone) for (px, py) in placed if not math.isfinite(py)]
    return "".join(parts)


def _smoothed(
    placed: list[tuple[float, float]], style: str, tone: str, title: str, foot: float, shaded: bool = True
) -> str:
    """The mean of each stretch over a shade of where its rows lie, for a line that would cover all others."""
    course = ink.smoothed(placed)
    around = [*zip(course.x, course.low), *list(zip(course.x, course.high))[::-1]]
    shade = f'<path class="shade" d="{path_of(around)}Z" fill="{tone}" opacity=".13"/>' if around and shaded else ""
    mean = f'<path class="seed" d="{path_of(list(zip(course.x, course.mean)))}" {style}>{title}</path>'
    lost = thinned([(a, b) for a, b in placed if not math.isfinite(b)], ink.STRETCHES)
    return shade + mean + "".join(_cross(a, foot, tone) for a, _ in lost)


def _bridge(a: tuple[float, float], b: tuple[float, float], tone: str) -> str:
    return (f'<path class="gap" d="{path_of([a, b])}" fill="none" stroke="{tone}" stroke-dasharray="2 4">'
            "<title>no value here</title></path>")  # fmt: skip


def _cross(at: float, foot: float, tone: str) -> str:
    return (f'<path class="nan" d="M{at - 4:.1f} {foot - 8}l8 8m0 -8l-8 8" stroke="{tone}" stroke-width="1.6">'
            "<title>not a finite number</title></path>")  # fmt: skip
