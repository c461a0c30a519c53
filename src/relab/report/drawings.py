"""How does a schedule look in a page without scripts? SVG of a timeline, of headings, of bars and of dots.

Text from logs is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from relab.base.text import number
from relab.report.svg_scale import COLOURS, GREY, Scale, drawing, ticks
from relab.schedules.evaluated import Sector

OUTCOMES = {"advance": "#009E73", "success_progress": "#56B4E9", "progress": "#56B4E9", "locked": "#E69F00",
            "frozen": GREY, "failure_hold": "#D55E00", "rollback": "#CC79A7"}  # fmt: skip
BANDS = ("#0072B2", "#56B4E9")
LEFT, RIGHT = 54, 14
BESIDE = 74  # left of a timeline, for the names of plans and gates
KEY = 130  # width of a key of its legend


@dataclass(frozen=True)
class Evaluation:
    """One multi-evaluation of a timeline: its mean with the interval, and its lowest episode."""

    x: float
    y: float | None
    least: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Plan:
    """One plan's stages as (from, to, label)."""

    name: str
    stages: Sequence[tuple[float, float, str]]


@dataclass(frozen=True)
class Timeline:
    """Bands of stages, survival with its interval, the lowest episode, and what each gate decided."""

    kind: str = field(default="timeline", init=False)
    name: str
    end: float
    rows: list[Evaluation]
    bands: list[Plan]
    decisions: dict[str, list[tuple[int, str]]]


@dataclass(frozen=True)
class Polar:
    """Eight sectors, each as long as its share of starts; the dark part is deaths at step one, on their own scale."""

    kind: str = field(default="polar", init=False)
    sectors: list[Sector]


@dataclass(frozen=True)
class Bars:
    """A histogram: edges and counts."""

    kind: str = field(default="bars", init=False)
    edges: list[float]
    counts: list[float]
    across: str
    up: str


@dataclass(frozen=True)
class Dots:
    """Points with their labels, e.g. survival against what was set."""

    kind: str = field(default="dots", init=False)
    points: list[tuple[float, float, str]]
    across: str
    up: str


@dataclass(frozen=True)
class Columns:
    """A bar for each name, with its value above it."""

    kind: str = field(default="columns", init=False)
    values: dict[str, float]
    up: str


Drawing = Timeline | Polar | Bars | Dots | Columns


def draw(drawing: Drawing) -> str:
    match drawing:
        case Timeline():
            return timeline(drawing)
        case Polar():
            return polar(drawing)
        case Bars():
            return bars(drawing)
        case Dots():
            return dots(drawing)
        case Columns():
            return columns(drawing)


def text(x: float, y: float, what: Any, anchor: str = "start", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(str(what))}</text>'


def line(points: Sequence[tuple[float, float]], tone: str) -> str:
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="{path}" fill="none" stroke="{tone}" stroke-width="1.6"/>' if len(points) > 1 else ""


def rect(x: float, y: float, width: float, height: float, tone: str, alpha: float = 1.0) -> str:
    size = f'width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{tone}" fill-opacity="{alpha}"/>'


def disc(x: float, y: float, r: float, tone: str, title: str = "") -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{tone}">{inside}</circle>'


def frame(x: Scale, y: Scale, across: str, up: str) -> str:
    """Axes with ticks and names."""
    parts = [f'<path d="M{x.start} {y.end}V{y.start}H{x.end}" fill="none" stroke="{GREY}"/>']
    parts += [text(x(t), y.start + 15, number(t), "middle") for t in ticks(x.low, x.high)]
    parts += [text(x.start - 6, y(t) + 4, number(t), "end") for t in ticks(y.low, y.high, 4)]
    return "".join(parts) + text(x.end, y.start + 30, across, "end") + text(x.start, y.end - 8, up)


# ---- Timeline


def timeline(data: Timeline, width: int = 760) -> str:
    """Bands of stages, survival with its interval, the lowest episode, and what each gate decided."""
    bands, gates = data.bands, data.decisions
    low = 40 + 22 * len(bands)
    x, y = Scale(0, data.end, BESIDE, width - RIGHT), Scale(0, 1, low + 160, low)
    parts = [_band(band, 24 + 22 * k, x) for k, band in enumerate(bands)]
    parts.append(frame(x, y, "iteration", data.name))
    for row in data.rows:
        if row.low is not None and row.high is not None:
            parts.append(line([(x(row.x), y(row.low)), (x(row.x), y(row.high))], COLOURS[0]))
        if row.least is not None:
            parts.append(disc(x(row.x), y(row.least), 2.5, GREY, f"lowest episode {row.least:.3f}"))
    shown = [(row.x, row.y) for row in data.rows if row.y is not None]
    parts.append(line([(x(at), y(mean)) for at, mean in shown], COLOURS[0]))
    parts += [disc(x(at), y(mean), 3, COLOURS[0], f"{at}: {mean:.3f}") for at, mean in shown]
    foot = low + 160 + 46
    for k, (gate, rows) in enumerate(gates.items()):
        parts.append(text(4, foot + 18 * k + 4, gate[:10], size=10))
        parts += [disc(x(at), foot + 18 * k, 5, OUTCOMES.get(said, GREY), f"{gate}, {at}: {said}") for at, said in rows]
    foot += 18 * len(gates)
    said = list(dict.fromkeys(said for rows in gates.values() for _, said in rows))
    across = max(1, (width - BESIDE) // KEY)
    for k, word in enumerate(said):
        at, height = BESIDE + 6 + KEY * (k % across), foot + 6 + 16 * (k // across)
        parts += [disc(at, height, 5, OUTCOMES.get(word, GREY)), text(at + 10, height + 4, word.replace("_", " "))]
    rows_of_keys = -(-len(said) // across)
    return drawing(width, int(foot + 8 + 16 * rows_of_keys), "timeline of the schedule", "".join(parts))


def _band(band: Plan, top: float, x: Scale) -> str:
    """One plan: a box for each stage, its label where there is room."""
    parts = [text(4, top + 12, band.name[:10], size=10)]
    for k, (start, end, label) in enumerate(band.stages):
        wide = x(end) - x(start)
        parts.append(rect(x(start), top, wide - 1, 16, BANDS[k % 2], 0.35))
        room = int(wide / 6.2)
        parts.append(text(x(start) + 3, top + 12, label[:room], size=10) if room > 1 else "")
    return "".join(parts)


# ---- Directions


def polar(data: Polar) -> str:
    """Eight sectors, each as long as its share of starts; the dark part is deaths at step one, on their own scale."""
    cells, size, r = data.sectors, 300, 104
    most = max((cell.starts for cell in cells), default=0) or 1
    dead = max((cell.deaths for cell in cells), default=0) or 1
    mid = size / 2
    ring = f'<circle cx="{mid}" cy="{mid}" fill="none" stroke="{GREY}" stroke-opacity="0.4" r='
    parts = [f'{ring}"{r * share:.1f}"/>' for share in (0.5, 1)]
    for k, cell in enumerate(cells):
        title = f"{cell.sector}: {cell.starts} starts, {cell.deaths} deaths in step one"
        parts.append(_wedge(mid, r * math.sqrt(cell.starts / most), 45 * k, 20, COLOURS[5], title))
        parts.append(_wedge(mid, r * math.sqrt(cell.deaths / dead), 45 * k, 8, COLOURS[1], title))
        angle = math.radians(45 * k)
        at = mid + (r + 22) * math.cos(angle), mid - (r + 22) * math.sin(angle) + 4
        parts.append(text(*at, f"{cell.sector} {cell.deaths}/{cell.starts}", "middle", 10))
    parts.append(text(mid, size - 4, "deaths in step one / starts (areas)", "middle", 10))
    return drawing(size, size, "where the danger headed at the start", "".join(parts))


def _wedge(mid: float, r: float, at: float, half: float, tone: str, title: str) -> str:
    a, b = math.radians(at - half), math.radians(at + half)
    points = [(mid + r * math.cos(t), mid - r * math.sin(t)) for t in (a, b)]  # y goes down on a page
    (ax, ay), (bx, by) = points
    path = f"M{mid} {mid}L{ax:.1f} {ay:.1f}A{r:.1f} {r:.1f} 0 0 0 {bx:.1f} {by:.1f}Z"
    return f'<path d="{path}" fill="{tone}" fill-opacity="0.75"><title>{escape(title)}</title></path>'


# ---- Bars, dots


def bars(data: Bars) -> str:
    """A histogram: edges and counts."""
    edges, counts, width, height = data.edges, data.counts, 380, 220
    x, y = Scale(edges[0], edges[-1], LEFT, width - RIGHT), Scale(0, max([*counts, 1]), height - 44, 22)
    parts = [frame(x, y, data.across, data.up)]
    for low, high, n in zip(edges, edges[1:], counts):
        parts.append(rect(x(low), y(n), x(high) - x(low) - 1, y(0) - y(n), COLOURS[0], 0.8) if n else "")
    return drawing(width, height, data.up, "".join(parts))


def columns(data: Columns) -> str:
    """A bar for each name, from 0."""
    width, height, top = 380, 220, max([*data.values.values(), 1e-9]) * 1.15
    x, y = Scale(0, len(data.values) or 1, LEFT, width - RIGHT), Scale(0, top, height - 44, 22)
    parts = [f'<path d="M{x.start} {y.end}V{y.start}H{x.end}" fill="none" stroke="{GREY}"/>']
    parts += [text(x.start - 6, y(t) + 4, number(t), "end") for t in ticks(y.low, y.high, 4)]
    parts.append(text(x.start, y.end - 8, data.up))
    for k, (name, value) in enumerate(data.values.items()):
        left, right = x(k + 0.2), x(k + 0.8)
        parts.append(rect(left, y(value), right - left, y(0) - y(value), COLOURS[k % len(COLOURS)], 0.8))
        parts.append(text((left + right) / 2, y(value) - 4, number(value), "middle", 10))
        parts.append(text((left + right) / 2, y.start + 15, name[: int((right - left) / 5)], "middle", 10))
    return drawing(width, height, data.up, "".join(parts))


def dots(data: Dots) -> str:
    """Points with their labels, e.g. survival against what was set."""
    points, width, height = data.points, 380, 220
    xs = [x for x, _, _ in points]
    low, high = min(xs), max(xs)
    pad = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    x, y = Scale(low - pad, high + pad, LEFT, width - RIGHT), Scale(0, 1, height - 44, 22)
    parts = [frame(x, y, data.across, data.up)]
    parts += [disc(x(a), y(b), 3.5, COLOURS[0], label) for a, b, label in points]
    names = together([(x(a) + 5, y(b) - 4, label) for a, b, label in points])
    parts += [text(min(a, x.end - 5 * len(label)), b, label, size=9) for a, b, label in names]
    return drawing(width, height, f"{data.up} against {data.across}", "".join(parts))


def together(labels: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Labels that would lie over each other as one: 9, 12."""
    placed: list[tuple[float, float, str]] = []
    for x, y, label in labels:
        near = next((i for i, (a, b, _) in enumerate(placed) if abs(a - x) < 16 and abs(b - y) < 9), None)
        if near is None:
            placed.append((x, y, label))
        else:
            placed[near] = (*placed[near][:2], f"{placed[near][2]}, {label}")
    return placed
