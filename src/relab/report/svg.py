"""How does a curve look in a page without scripts? SVG text: every seed a line, mean and band, gaps and NaN shown.

Colours are Okabe and Ito's, by the group's place in the report; lines and text take the page's colour, so that one
figure serves light, dark and print. Text from logs is escaped here, because the result is put into pages as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from relab.screen import count, number

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("", "6 3", "2 3")  # the second and third six groups
MOST_POINTS = 400  # per line; a screen has no more columns
GAP = 3.5  # times the usual distance of two points: rows are missing


class Scale(NamedTuple):
    """From data to the page; `at` and `top`/`left` are page units."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def curve(data: dict[str, Any], width: int = 760, height: int = 330) -> str:
    """The learning curve of sections.curve as one <svg>."""
    lines = [line for group in data["groups"] for line in group["lines"]]
    if not any(math.isfinite(y) for line in lines for y in line["y"]):
        return _empty(width, "no finite value to draw" if any(line["x"] for line in lines) else "nothing to draw yet")
    x, y = _scales(data, lines, width, height)
    parts = [_axes(x, y, data)]
    if data.get("onset"):
        parts.append(_onset(data["onset"], x, y))
    parts += [_level(level, x, y) for level in data.get("random") or []]
    for place, group in enumerate(data["groups"]):
        parts += _group(group, place, x, y)
    label = f"{data['metric']} over {data['axis']}, {len(lines)} runs"
    return _svg(width, height, label, "".join(parts))


def legend(data: dict[str, Any]) -> list[dict[str, str]]:
    """Colour and text per group, for the page to show beside the figure."""
    several = len(data["groups"]) > 1
    found = [{"colour": colour(i), "text": _legend_text(g, several)} for i, g in enumerate(data["groups"])]
    broken = any(not math.isfinite(y) for g in data["groups"] for line in g["lines"] for y in line["y"])
    return [*found, *([{"colour": "none", "text": "× not a finite number; dotted: no value"}] if broken else [])]


def _legend_text(group: dict[str, Any], several: bool) -> str:
    n = len(group["lines"])
    runs = f"{n} run{'s' if n != 1 else ''}, each a thin line" if n != 1 else "one run"
    what = f"thick: {group['band']['label']}; {runs}" if group["band"] else runs
    return f"{group['label']}: {what}" if several else what


def sparkline(values: Sequence[float], width: int = 90, height: int = 22) -> str:
    """A few numbers as a small line; non-finite ones break it."""
    good = [v for v in values if _finite(v)]
    if len(good) < 2:
        return ""
    x, y = Scale(0, len(values) - 1, 2, width - 2), _padded(good, height - 3, 3)
    points = [(x(i), y(float(v)) if _finite(v) else math.nan) for i, v in enumerate(values)]
    path = "".join(_path(piece) for piece in _pieces(points))
    dot = (
        f'<circle cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="2" fill="currentColor"/>'
        if _finite(values[-1])
        else ""
    )
    body = f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.3"/>{dot}'
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg class="spark" {size} aria-hidden="true">{body}</svg>'


# ---- Frame


def _svg(width: int, height: int, label: str, body: str) -> str:
    return (f'<svg class="curve" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}" '
            f'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">{body}</svg>')  # fmt: skip


def _empty(width: int, text: str) -> str:
    return _svg(width, 80, text, f'<text x="{width / 2}" y="44" text-anchor="middle">{escape(text)}</text>')


def _scales(data: dict[str, Any], lines: list[dict[str, Any]], width: int, height: int) -> tuple[Scale, Scale]:
    xs = [x for line in lines for x in line["x"]]
    ys = [y for line in lines for y in line["y"] if math.isfinite(y)]
    bands = [b for g in data["groups"] if (b := g["band"])]
    span = max(ys) - min(ys) or 1.0  # a band of few seeds may be far wider than the lines; it is cut there
    ys += [min(max(v, min(ys) - span / 4), max(ys) + span / 4) for b in bands for v in (*b["low"], *b["high"])]
    ys += data.get("random") or []
    right = max(xs) if max(xs) > min(xs) else min(xs) + 1
    return Scale(min(xs), right, 58, width - 14), _padded(ys, height - 44, 14)


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


def _axes(x: Scale, y: Scale, data: dict[str, Any]) -> str:
    parts = [f'<path d="M{x.start} {y.end}V{y.start}H{x.end}" fill="none" stroke="currentColor" opacity=".55"/>']
    for value in ticks(y.low, y.high):
        parts.append(f'<path d="M{x.start} {y(value):.1f}H{x.end}" stroke="currentColor" opacity=".12"/>')
        parts.append(f'<text x="{x.start - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(_tick(value))}</text>')
    for value in ticks(x.low, x.high, 6 if x.end > 500 else 4):
        parts.append(f'<path d="M{x(value):.1f} {y.start}v4" stroke="currentColor" opacity=".55"/>')
        parts.append(f'<text x="{x(value):.1f}" y="{y.start + 17}" text-anchor="middle">{escape(count(value))}</text>')
    return "".join(parts) + _names(x, y, data)


def _names(x: Scale, y: Scale, data: dict[str, Any]) -> str:
    """What the axes count, with the unit where the metric's name does not say it."""
    unit = f" ({data['unit']})" if data["unit"] and data["unit"] not in data["metric"] else ""
    across, up = escape(str(data["axis"]).replace("_", " ")), escape(f"{data['metric']}{unit}")
    centre, middle = (x.start + x.end) / 2, (y.start + y.end) / 2
    turn = f'transform="rotate(-90 13 {middle:.0f})"'
    return (f'<text x="{centre:.0f}" y="{y.start + 34}" text-anchor="middle">{across}</text>'
            f'<text x="13" y="{middle:.0f}" text-anchor="middle" {turn}>{up}</text>')  # fmt: skip


def _tick(value: float) -> str:
    return count(value) if abs(value) >= 10_000 else number(round(value, 10))


def _level(level: float, x: Scale, y: Scale) -> str:
    at = y(level)
    return (f'<path d="M{x.start} {at:.1f}H{x.end}" stroke="currentColor" stroke-dasharray="5 4" opacity=".6"/>'
            f'<text x="{x.end}" y="{at - 4:.1f}" text-anchor="end" opacity=".8">random '
            f"{escape(number(level))}</text>")  # fmt: skip


def _onset(onset: dict[str, Any], x: Scale, y: Scale) -> str:
    at = min(max(x(onset["step"]), x.start), x.end)
    side = "end" if at > (x.start + x.end) / 2 else "start"
    shift = -4 if side == "end" else 4
    return (f'<path d="M{at:.1f} {y.end}V{y.start}" stroke="currentColor" stroke-dasharray="1 3" stroke-width="1.5"/>'
            f'<text x="{at + shift:.1f}" y="{y.end + 9}" text-anchor="{side}">'
            f"{escape(str(onset['slug']))}</text>")  # fmt: skip


# ---- Lines


def _group(group: dict[str, Any], place: int, x: Scale, y: Scale) -> list[str]:
    tone, dash = colour(place), DASHES[place // len(COLOURS) % len(DASHES)]
    style = f'fill="none" stroke="{tone}" stroke-dasharray="{dash}" stroke-linejoin="round"'
    thin = 'stroke-width="1" opacity=".7"' if group["band"] else 'stroke-width="1.7"'
    parts = [_band(group["band"], tone, x, y)] if group["band"] else []
    for line in group["lines"]:
        parts.append(_line(line, f"{style} {thin}", tone, x, y))
    if group["band"]:
        mean = _path([(x(a), y(b)) for a, b in zip(group["band"]["x"], group["band"]["mean"])])
        parts.append(f'<path class="mean" d="{mean}" {style} stroke-width="2.6"/>')
    return parts


def _band(band: dict[str, Any], tone: str, x: Scale, y: Scale) -> str:
    def inside(value: float) -> float:
        return min(max(y(value), y.end), y.start)

    up = [(x(a), inside(b)) for a, b in zip(band["x"], band["high"])]
    down = [(x(a), inside(b)) for a, b in zip(band["x"], band["low"])][::-1]
    title = f"<title>{escape(band['label'])}</title>"
    return f'<path class="band" d="{_path(up + down)}Z" fill="{tone}" opacity=".18">{title}</path>'


def _line(line: dict[str, Any], style: str, tone: str, x: Scale, y: Scale) -> str:
    """Pieces between gaps; a cross at the foot for each value that is not finite; a dotted bridge over missing rows."""
    points = thinned(list(zip(line["x"], line["y"])))
    title = f"<title>{escape(str(line['name']))}</title>"
    placed = [(x(a), y(b) if math.isfinite(b) else math.nan) for a, b in points]
    usual = _usual([b[0] - a[0] for a, b in pairwise(placed)])
    found = _pieces(placed, usual)
    parts = [f'<path class="seed" d="{"".join(_path(p) for p in found if len(p) > 1)}" {style}>{title}</path>']
    parts += [
        f'<circle cx="{p[0][0]:.1f}" cy="{p[0][1]:.1f}" r="2.4" fill="{tone}">{title}</circle>'
        for p in found
        if len(p) == 1
    ]
    parts += [_bridge(a[-1], b[0], tone) for a, b in pairwise(found)]
    parts += [_cross(px, y.start, tone) for (px, py) in placed if not math.isfinite(py)]
    return "".join(parts)


def thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST_POINTS, lowest and highest of each stretch kept, so that no spike is lost; NaN stays as well."""
    size = math.ceil(2 * len(points) / MOST_POINTS)
    if len(points) <= MOST_POINTS:
        return points
    kept = []
    for i in range(0, len(points), size):
        stretch = range(i, min(i + size, len(points)))
        good = [j for j in stretch if math.isfinite(points[j][1])]
        ends = {min(good, key=lambda j: points[j][1]), max(good, key=lambda j: points[j][1])} if good else set()
        bad = next((j for j in stretch if not math.isfinite(points[j][1])), None)
        kept += sorted(ends | ({bad} if bad is not None else set()))
    return [points[j] for j in kept]


def _usual(distances: list[float]) -> float:
    return sorted(distances)[len(distances) // 2] if len(distances) >= 4 else math.inf


def _pieces(points: list[tuple[float, float]], usual: float = math.inf) -> list[list[tuple[float, float]]]:
    """Stretches without a gap: cut at values that are not finite and where rows are missing."""
    found: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if not math.isfinite(point[1]):
            found.append([])
            continue
        if found[-1] and point[0] - found[-1][-1][0] > GAP * usual:
            found.append([])
        found[-1].append(point)
    return [piece for piece in found if piece]


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
