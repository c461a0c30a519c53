"""How does a curve look in a page without scripts? SVG text: every seed a line, mean and band, gaps and NaN shown.

The data is what curves.curve gives; by steps, updates or wall time, on linear or log axes.

Colours are Okabe and Ito's, by the group's place in the report; lines and text take the page's colour, so that one
figure serves light, dark and print. Text from logs is escaped here, because the result is put into pages as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from relab.base.text import count, number, plural
from relab.report import words
from relab.report.curves import Band, Bundle, Curve, Level, Line, Onset, thinned

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("", "6 3", "2 3")  # the second and third six groups
MOST_KEYS = 6  # groups that the legend names
GREY = "#8a8f98"
LINE, LETTER = 13, 6.4  # height of a line of text and width of a letter, in units of the picture
CLOCKS = ((7200.0, 3600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))  # from so many seconds on
ACROSS = {"updates": "optimiser steps", "time": "wall time"}
GAP = 3.5  # times the usual distance of two points: rows are missing


HUGE = 1e300  # a value beyond it is no place on a page: its distance to another may be no number


class Scale(NamedTuple):
    """From data to the page; `at` and `top`/`left` are page units."""

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


class View(NamedTuple):
    """How to look at the data."""

    x: str = "steps"  # steps, updates or time
    log_x: bool = False
    log_y: bool = False

    def across(self, line: Line | Band) -> list[float]:
        return line.x if self.x == "steps" else getattr(line, self.x)

    def at(self, onset: Onset) -> float | None:
        return onset.step if self.x == "steps" else getattr(onset, self.x)


PLAIN = View()


def colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def curve(data: Curve, width: int = 760, height: int = 330, view: View = PLAIN) -> str:
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
        parts.append(_onset(at, data.onset.slug, x, y, _free(y.end + 30, _names_at(data.levels, y))))
    parts += _levels(data.levels, x, y)
    label = f"{data.metric} over {_across(data, view)}, {plural(len(lines), 'run')}"
    return _svg(width, height, label, "".join(parts))


def legend(data: Curve) -> list[dict[str, str]]:
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
    runs = f"{n} run{'s' if n != 1 else ''}, each a thin line" if n != 1 else "one run"
    what = f"thick: {group.band.label}; {runs}" if group.band else runs
    return f"{group.label}: {what}" if several else what


def sparkline(
    values: Sequence[float],
    steps: Sequence[float] = (),
    width: int = 150,
    height: int = 52,
    healthy: tuple[float, float] | None = None,
) -> str:
    """A few numbers as a small line with its axes: lowest and highest value, first and last step; NaN breaks it.

    `healthy`: where healthy runs lie, grey behind the line as far as the figure reaches.
    """
    good = [float(v) for v in values if _finite(v)]
    if len(good) < 2:
        return ""
    at = list(steps) if len(steps) == len(values) and all(map(_finite, steps)) else list(range(len(values)))
    low, high = number(min(good)), number(max(good))
    left, foot = 7 + 5.4 * max(len(low), len(high)), height - (13 if steps else 3)
    x, y = Scale(min(at), max(at) if max(at) > min(at) else min(at) + 1, left, width - 4), _padded(good, foot - 2, 5)
    points = [(x(a), y(float(v)) if _finite(v) else math.nan) for a, v in zip(at, values)]
    parts = [_healthy_strip(healthy, x, y)] if healthy else []
    parts += [f'<path d="M{left - 3:.1f} 3V{foot}H{width}" fill="none" stroke="currentColor" opacity=".4"/>']
    parts.append(
        f'<path d="{"".join(_path(p) for p in _pieces(points))}" fill="none" stroke="currentColor" stroke-width="1.3"/>'
    )
    dot = f'<circle cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="2"/>' if _finite(values[-1]) else ""
    names = [(left - 5, 9.0, "end", high), (left - 5, float(foot), "end", low if low != high else "")]
    if steps:
        names += [(left - 3, height - 2.0, "start", count(at[0])), (width, height - 2.0, "end", count(at[-1]))]
    texts = [f'<text x="{a:.1f}" y="{b:.1f}" text-anchor="{anchor}">{escape(t)}</text>' for a, b, anchor, t in names]
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    label = escape(f"from {number(good[0])} to {number(good[-1])}")
    return (f'<svg class="spark" {size} role="img" aria-label="{label}" font-family="system-ui, sans-serif"'
            f' font-size="9" fill="currentColor">{"".join([*parts, dot, *texts])}</svg>')  # fmt: skip


def _healthy_strip(healthy: tuple[float, float], x: Scale, y: Scale) -> str:
    low, high = (min(max(value, y.low), y.high) for value in healthy)
    if high <= low:
        return ""
    size = f'x="{x.start:.1f}" y="{y(high):.1f}" width="{x.end - x.start:.1f}" height="{y(low) - y(high):.1f}"'
    return f'<rect class="healthy" {size} fill="{GREY}" fill-opacity=".25"/>'


def dots(values: Sequence[float], low: float, high: float, ends: Sequence[float], tone: str) -> str:
    """Every seed a dot between low and high; under them mean and interval (mid, low, high) where there is one."""
    x, width = Scale(low, high, 6, 234), 240
    mid, least, most = ends
    parts = ['<path d="M6 9H234" stroke="currentColor" opacity=".25"/>']
    if math.isfinite(least) and math.isfinite(most):
        left, right = (x(min(max(v, low), high)) for v in (least, most))
        parts.append(f'<path class="interval" d="M{left:.1f} 15H{right:.1f}" stroke="{tone}" stroke-width="2.5"/>')
        parts.append(f'<path d="M{x(mid):.1f} 11v8" stroke="{tone}" stroke-width="2.5"/>')
    for value in values:
        if math.isfinite(value):
            title = f"<title>{escape(number(value))}</title>"
            place = f'cx="{x(value):.1f}" cy="9" r="3.6" fill="{tone}" fill-opacity=".6" stroke="{tone}"'
            parts.append(f'<circle class="seed-dot" {place}>{title}</circle>')
    label = escape("each seed: " + ", ".join(number(v) for v in values))
    size = f'viewBox="0 0 {width} 22" width="{width}" height="22"'
    return f'<svg class="dots" {size} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _healthy(data: Curve, x: Scale, y: Scale, view: View) -> list[str]:
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


def _svg(width: int, height: int, label: str, body: str) -> str:
    return (f'<svg class="curve" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}" '
            f'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">{body}</svg>')  # fmt: skip


def _empty(width: int, text: str) -> str:
    return _svg(width, 80, text, f'<text x="{width / 2}" y="44" text-anchor="middle">{escape(text)}</text>')


def _scales(data: Curve, view: View, width: int, height: int) -> tuple[Scale, Scale]:
    lines = data.lines
    lines += [data.reference] if data.reference else []
    xs = [x for line in lines for x in view.across(line) if x > 0 or not view.log_x] or [1.0]
    right = max(xs) if max(xs) > min(xs) else min(xs) * 2 if view.log_x else min(xs) + 1
    return Scale(min(xs), right, 58, width - 14, view.log_x), _upright(data, lines, view.log_y, height)


def _upright(data: Curve, lines: list[Line], log: bool, height: int) -> Scale:
    ys = [y for line in lines for y in line.y if abs(y) < HUGE]
    bands = [b for g in data.groups if (b := g.band)]
    span = max(ys) - min(ys) or 1.0  # a band of few seeds may be far wider than the lines; it is cut there
    if log:
        return _log_padded([y for y in ys if y > 0] or [1.0], height - 44, 14)
    ys += [min(max(v, min(ys) - span / 4), max(ys) + span / 4) for b in bands for v in (*b.low, *b.high)]
    reach = max(20 * span, 3 * max(map(abs, ys)))  # of a flat line, too: 9 beside a random policy's 22 is the news
    ys += [level.value for level in data.levels if abs(level.value - ys[0]) <= reach]
    return _padded(ys, height - 44, 14)


def _log_padded(values: Sequence[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    pad = (high / low) ** 0.04 if high > low else 1.5
    return Scale(low / pad, high * pad, start, end, True)


def _padded(values: Sequence[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    pad = (high - low) * 0.04 or abs(high) * 0.05 or 1.0
    return Scale(low - pad, high + pad, start, end)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers within the range: 1, 2 or 5 times a power of ten apart."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; twice and five times them as well where there are few; plain ones within one decade."""
    powers = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    thin = math.ceil(len(powers) / 6)
    for marks in ((powers[::thin]), [m * p for p in powers for m in (1, 2, 5)]):
        inside = [v for v in marks if low <= v <= high]
        if len(inside) >= 3:
            return inside
    return [v for v in ticks(low, high) if v > 0]


def _marks(scale: Scale, most: int) -> list[float]:
    return log_ticks(scale.low, scale.high) if scale.log else ticks(scale.low, scale.high, most)


def _axes(x: Scale, y: Scale, data: Curve, view: View) -> str:
    parts = [f'<path d="M{x.start} {y.end}V{y.start}H{x.end}" fill="none" stroke="currentColor" opacity=".55"/>']
    for value in _marks(y, 5):
        parts.append(f'<path d="M{x.start} {y(value):.1f}H{x.end}" stroke="currentColor" opacity=".12"/>')
        parts.append(f'<text x="{x.start - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(_tick(value))}</text>')
    size = _clock(x.high)[0] if view.x == "time" else 1.0
    for value in _marks(x._replace(low=x.low / size, high=x.high / size), 6 if x.end > 500 else 4):
        at, text = x(value * size), _tick(value) if view.x == "time" else count(value)
        parts.append(f'<path d="M{at:.1f} {y.start}v4" stroke="currentColor" opacity=".55"/>')
        parts.append(f'<text x="{at:.1f}" y="{y.start + 17}" text-anchor="middle">{escape(text)}</text>')
    return "".join(parts) + _names(x, y, data, view)


def _clock(seconds: float) -> tuple[float, str]:
    return next((size, unit) for least, size, unit in CLOCKS if seconds >= least)


def _across(data: Curve, view: View) -> str:
    return ACROSS.get(view.x) or words.axis(str(data.axis))


def _names(x: Scale, y: Scale, data: Curve, view: View) -> str:
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


def _tick(value: float) -> str:
    if 0 < abs(value) < 0.001:
        return f"{value:.0e}".replace("e-0", "e-")  # 0.0001 would stand over the axis' name
    return count(value) if abs(value) >= 10_000 else number(float(f"{value:.10g}"))  # 0.30000000000000004


def _inside(levels: list[Level], y: Scale) -> list[tuple[float, Level]]:
    """The levels that the picture shows, each with its height on the page."""
    known = [(y(each.value), each) for each in sorted(levels, key=lambda each: each.value) if y.shows(each.value)]
    return [(at, each) for at, each in known if y.end - 1 <= at <= y.start + 1]


def _names_at(levels: list[Level], y: Scale) -> list[float]:
    return [_name_at(some) for some in _close(_inside(levels, y))]


def _free(wanted: float, taken: list[float]) -> float:
    """The first height from `wanted` downwards at which no other text stands."""
    while any(abs(wanted - at) < LINE for at in taken):
        wanted += LINE
    return wanted


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


def _reference(data: Curve, x: Scale, y: Scale, view: View) -> list[str]:
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


def _onset(step: float, slug: Any, x: Scale, y: Scale, height: float) -> str:
    at = min(max(x(step), x.start), x.end)
    side = "end" if at > (x.start + x.end) / 2 else "start"
    shift = -4 if side == "end" else 4
    room = at - x.start if side == "end" else x.end - at
    name = str(slug) if len(str(slug)) * LETTER < room else str(slug).partition(" ")[0]  # without the run
    return (f'<path class="onset" d="M{at:.1f} {y.end}V{y.start}" stroke="currentColor" stroke-dasharray="1 3" '
            f'stroke-width="1.5"/><text class="over" x="{at + shift:.1f}" y="{height:.1f}" text-anchor="{side}">'
            f"{escape(name)}</text>")  # fmt: skip


# ---- Lines


def _group(group: Bundle, place: int, x: Scale, y: Scale, view: View) -> list[str]:
    tone, dash = colour(place), DASHES[place // len(COLOURS) % len(DASHES)]
    style = f'fill="none" stroke="{tone}" stroke-dasharray="{dash}" stroke-linejoin="round"'
    thin = 'stroke-width="1" opacity=".7"' if group.band else 'stroke-width="1.7"'
    parts = [_band(group.band, tone, x, y, view)] if group.band else []
    for line in group.lines:
        parts.append(_line(line, f"{style} {thin}", tone, x, y, view))
    if group.band:
        points = _placed(view.across(group.band), group.band.mean, x, y)
        mean = "".join(_path(piece) for piece in _pieces(points))
        parts.append(f'<path class="mean" d="{mean}" {style} stroke-width="2.6"/>')
    return parts


def _placed(xs: Sequence[float], ys: Sequence[float], x: Scale, y: Scale) -> list[tuple[float, float]]:
    """On the page; NaN where the value cannot be shown. Places that a log axis does not have are left out."""
    return [(x(a), y(b) if y.shows(b) else math.nan) for a, b in zip(xs, ys) if x.shows(a)]


def _band(band: Band, tone: str, x: Scale, y: Scale, view: View) -> str:
    def inside(value: float) -> float:
        return min(max(y(value), y.end), y.start) if y.shows(value) else y.start

    across = [(i, x(a)) for i, a in enumerate(view.across(band)) if x.shows(a)]
    up = [(a, inside(band.high[i])) for i, a in across]
    down = [(a, inside(band.low[i])) for i, a in across][::-1]
    title = f"<title>{escape(band.label)}</title>"
    return f'<path class="band" d="{_path(up + down)}Z" fill="{tone}" opacity=".18">{title}</path>' if up else ""


def _line(line: Line, style: str, tone: str, x: Scale, y: Scale, view: View) -> str:
    """Pieces between gaps; a cross at the foot for each value that is not finite; a dotted bridge over missing rows."""
    points = thinned(list(zip(view.across(line), line.y)), 400 if x.end > 500 else 200)
    title = f"<title>{escape(str(line.name))}</title>"
    placed = _placed([a for a, _ in points], [b for _, b in points], x, y)
    usual = math.inf if x.log else _usual([b[0] - a[0] for a, b in pairwise(placed)])
    pieces = _pieces(placed, usual)
    parts = [f'<path class="seed" d="{"".join(_path(p) for p in pieces if len(p) > 1)}" {style}>{title}</path>']
    parts += [
        f'<circle cx="{p[0][0]:.1f}" cy="{p[0][1]:.1f}" r="2.4" fill="{tone}">{title}</circle>'
        for p in pieces
        if len(p) == 1
    ]
    parts += [_bridge(a[-1], b[0], tone) for a, b in pairwise(pieces)]
    parts += [_cross(px, y.start, tone) for (px, py) in placed if not math.isfinite(py)]
    return "".join(parts)


def _usual(distances: list[float]) -> float:
    return sorted(distances)[len(distances) // 2] if len(distances) >= 4 else math.inf


def _pieces(points: list[tuple[float, float]], usual: float = math.inf) -> list[list[tuple[float, float]]]:
    """Stretches without a gap: cut at values that are not finite and where rows are missing."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if not math.isfinite(point[1]):
            pieces.append([])
            continue
        if pieces[-1] and point[0] - pieces[-1][-1][0] > GAP * usual:
            pieces.append([])
        pieces[-1].append(point)
    return [piece for piece in pieces if piece]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) if points else ""


def _bridge(a: tuple[float, float], b: tuple[float, float], tone: str) -> str:
    return (f'<path class="gap" d="{_path([a, b])}" fill="none" stroke="{tone}" stroke-dasharray="2 4">'
            "<title>no value here</title></path>")  # fmt: skip


def _cross(at: float, foot: float, tone: str) -> str:
    return (f'<path class="nan" d="M{at - 4:.1f} {foot - 8}l8 8m0 -8l-8 8" stroke="{tone}" stroke-width="1.6">'
            "<title>not a finite number</title></path>")  # fmt: skip


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
