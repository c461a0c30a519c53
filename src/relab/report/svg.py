"""How does a curve look in a page without scripts? SVG text: every seed a line, mean and band, gaps and NaN shown.

The data is what curves.curve gives; by steps, updates or wall time, on linear or log axes.

A group has the colour of its place in the report; lines and text take the page's colour, so that one figure serves
light, dark and print. Text from logs is escaped here, because the result is put into pages as it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from relab.base.text import count, number, plural
from relab.report import words
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
    tick_text,
    unbroken,
    usual_gaps,
)

MOST_KEYS = 10  # groups that the legend names
LINE, LETTER = 13, 6.4  # height of a line of text and width of a letter, in units of the picture
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
    parts = [*_healthy(data, x, y, view), _axes(x, y, data, view), *_reference(data, x, y, view)]
    for place, group in enumerate(data.groups):
        parts += _group(group, place, x, y, view)
    at = view.at(data.onset) if data.onset else None
    if data.onset and at is not None and x.shows(at):
        parts.append(_onset(at, str(data.onset.slug), data, x, y, view))
    parts += _levels(data.levels, x, y)
    label = f"{data.metric} over {_across(data, view)}, {plural(len(lines), 'run')}"
    return drawing(width, height, label, "".join(parts))


def legend(data: CurveFigure) -> list[dict[str, str]]:
    """Colour and text per group, for the page to show beside the figure."""
    several, shown = len(data.groups) > 1, data.groups[:MOST_KEYS]
    keys = [{"colour": colour(i), "text": _legend_text(g, several)} for i, g in enumerate(shown)]
    if len(data.groups) > len(shown):
        keys.append({"colour": "none", "text": f"and {len(data.groups) - len(shown)} more configs"})
    broken = any(not math.isfinite(y) for line in data.lines for y in line.y)
    reference = data.reference
    if reference and reference.x:
        keys.append({"colour": GREY, "text": f"{reference.called}: {reference.name}"})
    keys += [{"colour": GREY, "text": "grey: where nine of ten healthy runs lie"}] * bool(data.healthy)
    return [*keys, *([{"colour": "none", "text": "× not a finite number; dotted: no value"}] if broken else [])]


def _legend_text(group: Bundle, several: bool) -> str:
    n = len(group.lines)
    if not n:
        return f"{group.label}: not logged"
    runs = f"{plural(n, 'run')}, each a thin line" if n != 1 else "one run"
    what = f"thick: {group.band.label}; {runs}" if group.band else runs
    return f"{group.label}: {what}" if several else what


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
    margin = max(
        58, 28 + LETTER * max((len(tick_text(value)) for value in marks_of(y, 5)), default=0)
    )  # beside its name
    return Scale(left, right, margin, width - 14, view.log_x), y


def _upright(data: CurveFigure, lines: list[Line], log: bool, height: int) -> Scale:
    ys = [y for line in lines for y in line.y if abs(y) < HUGE]
    bands = [b for g in data.groups if (b := g.band)]
    span = max(ys) - min(ys) or 1.0  # a band of few seeds may be far wider than the lines; it is cut there
    if log:
        return log_padded([y for y in ys if y > 0] or [1.0], height - 44, 14)
    ys += [min(max(v, min(ys) - span / 4), max(ys) + span / 4) for b in bands for v in (*b.low, *b.high)]
    reach = max(20 * span, 3 * max(map(abs, ys)))  # of a flat line, too: 9 beside a random policy's 22 is the news
    ys += [level.value for level in data.levels if abs(level.value - ys[0]) <= reach]
    return padded(ys, height - 44, 14)


def _axes(x: Scale, y: Scale, data: CurveFigure, view: Look) -> str:
    parts = [f'<path d="M{x.start} {y.end}V{y.start}H{x.end}" fill="none" stroke="currentColor" opacity=".55"/>']
    for value in marks_of(y, 5):
        parts.append(f'<path d="M{x.start} {y(value):.1f}H{x.end}" stroke="currentColor" opacity=".12"/>')
        parts.append(
            f'<text x="{x.start - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(tick_text(value))}</text>'
        )
    size = _clock(x.high)[0] if view.x == "time" else 1.0
    for value in marks_of(x._replace(low=x.low / size, high=x.high / size), 6 if x.end > 500 else 4):
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
    name = name if len(name + log) * 6.5 < y.start - y.end else name.partition(",")[0]
    unit = f" ({data.unit})" if data.unit not in ("", "-", *name.split()) else ""
    unit = unit if len(name + unit + log) * 7 < y.start - y.end else ""  # a small figure has no room for it
    clock = f" ({_clock(x.high)[1]})" if view.x == "time" else ""
    notes = f"{clock}{', log' if x.log else ''}"
    across, up = escape(_across(data, view) + notes), escape(f"{name}{unit}{', log' if y.log else ''}")
    centre, middle = (x.start + x.end) / 2, (y.start + y.end) / 2
    turn = f'transform="rotate(-90 13 {middle:.0f})"'
    return (f'<text x="{centre:.0f}" y="{y.start + 34}" text-anchor="middle">{across}</text>'
            f'<text x="13" y="{middle:.0f}" text-anchor="middle" {turn}>{up}</text>')  # fmt: skip


def _inside(levels: list[Level], y: Scale) -> list[tuple[float, Level]]:
    """The levels that the picture shows, each with its height on the page."""
    known = [(y(each.value), each) for each in sorted(levels, key=lambda each: each.value) if y.shows(each.value)]
    return [(at, each) for at, each in known if y.end - 1 <= at <= y.start + 1]


def _names_at(levels: list[Level], y: Scale) -> list[float]:
    return [_name_at(some) for some in _close(_inside(levels, y))]


def _levels(levels: list[Level], x: Scale, y: Scale) -> list[str]:
    """Dashed lines with their names at the right end; those too close for two names share one."""
    inside = _inside(levels, y)
    parts = [f'<path d="M{x.start} {at:.1f}H{x.end}" stroke="currentColor" stroke-dasharray="5 4" opacity=".5"/>'
             for at, _ in inside]  # fmt: skip
    return parts + [_level_name(some, x) for some in _close(inside)]


def _close(levels: list[tuple[float, Level]]) -> list[list[tuple[float, Level]]]:
    """Neighbours that stand less than a line of text apart, together."""
    groups: list[list[tuple[float, Level]]] = []
    for at, level in levels:
        if groups and abs(groups[-1][-1][0] - at) < LINE:
            groups[-1].append((at, level))
        else:
            groups.append([(at, level)])
    return groups


def _name_at(some: list[tuple[float, Level]]) -> float:
    lowest, highest = some[0][0], some[-1][0]  # on the page, where y goes down
    return highest - 4 if highest > 24 else lowest + LINE


def _level_name(some: list[tuple[float, Level]], x: Scale) -> str:
    text = escape(", ".join(f"{level.label} {number(level.value)}" for _, level in some))
    return f'<text class="over" x="{x.end}" y="{_name_at(some):.1f}" text-anchor="end">{text}</text>'


def _reference(data: CurveFigure, x: Scale, y: Scale, view: Look) -> list[str]:
    """The run it is held against, in grey, and the level at which that one ended."""
    line = data.reference
    if not line or not line.x:
        return []
    style = f'fill="none" stroke="{GREY}" stroke-width="1.7"'
    parts = [_line(line, style, GREY, x, y, view)]
    if y.shows(line.y[-1]):
        at = y(line.y[-1])
        parts.append(f'<path d="M{x.start} {at:.1f}H{x.end}" stroke="{GREY}" stroke-dasharray="8 3" opacity=".8"/>')
        text = escape(f"{line.called} {number(line.y[-1])}")
        place = x.start + 0.4 * (x.end - x.start)  # levels are named at the ends, onsets mostly near the start
        parts.append(f'<text class="over" x="{place:.0f}" y="{at - 4 if at > 24 else at + 13:.1f}">{text}</text>')
    return parts


def _free(data: CurveFigure, ends: tuple[float, float], x: Scale, y: Scale, view: Look) -> float:
    """The height at which a text between two places is furthest from every curve and from other text."""
    drawn = [*data.lines, *([data.reference] if data.reference else [])]
    left, right = ends[0] - LINE, ends[1] + LINE
    near = [b for line in drawn for b in _between(_placed(view.across(line), line.y, x, y), left, right)]
    taken = near + _names_at(data.levels, y)
    heights = [y.end + 2 * LINE + step for step in range(0, max(int(y.start - y.end) - 3 * LINE, 1), 4)]
    return max(heights, key=lambda at: min((abs(at - 4 - other) for other in taken), default=0.0))


def _between(points: Sequence[tuple[float, float]], left: float, right: float, step: float = 6.0) -> list[float]:
    """Heights of a line between two places on the page, also where it passes without a point of its own."""
    heights = [b for a, b in points if left <= a <= right and math.isfinite(b)]
    for (a, b), (c, d) in itertools.pairwise(points):
        inside = [left + step * k for k in range(int((right - left) / step) + 1) if a < left + step * k < c]
        heights += [h for at in inside if math.isfinite(h := b + (at - a) / (c - a) * (d - b))]
    return heights


def _onset(step: float, slug: str, data: CurveFigure, x: Scale, y: Scale, view: Look) -> str:
    at = min(max(x(step), x.start), x.end)
    side = "end" if at > (x.start + x.end) / 2 else "start"
    shift = -4 if side == "end" else 4
    room = at - x.start if side == "end" else x.end - at
    name = slug if len(slug) * LETTER < room else slug.partition(" ")[0]  # without the run
    other = at - len(name) * LETTER if side == "end" else at + len(name) * LETTER
    height = _free(data, (min(at, other), max(at, other)), x, y, view)
    return (f'<path class="onset" d="M{at:.1f} {y.end}V{y.start}" stroke="currentColor" stroke-dasharray="1 3" '
            f'stroke-width="1.5"/><text class="over" x="{at + shift:.1f}" y="{height:.1f}" text-anchor="{side}">'
            f"{escape(name)}</text>")  # fmt: skip


# ---- Lines


def _group(group: Bundle, place: int, x: Scale, y: Scale, view: Look) -> list[str]:
    tone, dash = colour(place), DASHES[place // len(COLOURS) % len(DASHES)]
    style = f'fill="none" stroke="{tone}" stroke-dasharray="{dash}" stroke-linejoin="round"'
    thin = 'stroke-width="1" opacity=".7"' if group.band else 'stroke-width="1.7"'
    parts = [_band(group.band, tone, x, y, view)] if group.band else []
    for line in group.lines:
        parts.append(_line(line, f"{style} {thin}", tone, x, y, view))
    if group.band:
        points = _placed(view.across(group.band), group.band.mean, x, y)
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


def _line(line: Line, style: str, tone: str, x: Scale, y: Scale, view: Look) -> str:
    """Pieces between gaps; a cross at the foot for each value that is not finite; a dotted bridge over missing rows."""
    title = f"<title>{escape(str(line.name))}</title>"
    placed = thinned(_placed(view.across(line), line.y, x, y), 400 if x.end > 500 else 200)
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


def _bridge(a: tuple[float, float], b: tuple[float, float], tone: str) -> str:
    return (f'<path class="gap" d="{path_of([a, b])}" fill="none" stroke="{tone}" stroke-dasharray="2 4">'
            "<title>no value here</title></path>")  # fmt: skip


def _cross(at: float, foot: float, tone: str) -> str:
    return (f'<path class="nan" d="M{at - 4:.1f} {foot - 8}l8 8m0 -8l-8 8" stroke="{tone}" stroke-width="1.6">'
            "<title>not a finite number</title></path>")  # fmt: skip
