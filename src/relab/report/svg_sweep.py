"""How does a sweep look? A map of two axes, and what each axis does with its intervals: SVG text, no scripts.

Shade and number say the same, and every field says how many runs it holds; a field without a run is empty and dashed.
"""

from __future__ import annotations

import math
from html import escape

from relab.base.text import number
from relab.report.svg_scale import COLOURS, Scale, drawing, ticks
from relab.report.sweep_page import Effect, Heat

TONE = COLOURS[0]
DARKEST = 0.62  # text must stay readable on it, in light and dark pages
LETTER = 7.0  # width of a letter


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def heat(data: Heat, width: int = 600) -> str:
    """The map: x to the right, y upwards, better is darker; the best field has a frame."""
    known = [m for row in data.means for m in row if math.isfinite(m)]
    if not known:
        return ""
    left = 24 + LETTER * max(3, *(len(text) for text in data.ys))
    side, tall, top = (width - left - 8) / len(data.xs), 44.0, 8.0
    best = min(known) if data.lower else max(known)
    parts = []
    for j, (row, runs) in enumerate(zip(data.means, data.runs)):
        y = top + (len(data.ys) - 1 - j) * tall
        parts.append(_text(left - 6, y + tall / 2 + 4, data.ys[j], "end"))
        parts += [_field(left + i * side, y, side, tall, mean, n, known, data.lower, mean == best)
                  for i, (mean, n) in enumerate(zip(row, runs))]  # fmt: skip
    foot = top + len(data.ys) * tall
    parts += [_text(left + (i + 0.5) * side, foot + 16, text) for i, text in enumerate(data.xs)]
    over = f", mean over {data.over}" if data.over else ""
    parts.append(_text((left + width) / 2, foot + 34, f"{data.x}: mean {data.metric}{over}"))
    middle = (top + foot) / 2
    parts.append(_text(12, middle, data.y, more=f'transform="rotate(-90 12 {middle:.0f})"'))
    return drawing(width, foot + 42, f"{data.metric} over {data.x} and {data.y}", "".join(parts))


def _field(
    x: float, y: float, side: float, tall: float, mean: float, n: int, known: list[float], lower: bool, best: bool
) -> str:
    place = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{side - 2:.1f}" height="{tall - 2:.1f}" rx="2"'
    if not math.isfinite(mean):
        empty = f'<rect {place} fill="none" stroke="currentColor" stroke-dasharray="4 3" opacity=".5"/>'
        return empty + _text(x + side / 2, y + tall / 2 + 4, "no run" if side > 50 else "–", more='opacity=".7"')
    span = max(known) - min(known)
    share = (mean - min(known)) / span if span > 0 else 0.5
    shade = 0.06 + (DARKEST - 0.06) * (1 - share if lower else share)
    line = f'stroke="{COLOURS[1]}" stroke-width="2.5"' if best else 'stroke="none"'
    box = f'<rect {place} fill="{TONE}" fill-opacity="{shade:.2f}" {line}/>'
    small = (
        _text(x + side / 2, y + tall / 2 + 14, f"{n} runs", more='font-size="10" opacity=".75"') if side > 54 else ""
    )
    return box + _text(x + side / 2, y + tall / 2 + (0 if small else 4), number(mean)) + small


def effects(axes: list[Effect], metric: str, width: int = 600) -> str:
    """One panel an axis: the mean at each level with its 95 % interval, all on one scale."""
    ends = [v for e in axes for v in (*e.mid, *e.low, *e.high) if math.isfinite(v)]
    if not ends:
        return ""
    columns = min(3 if width > 500 else 2, len(axes))
    rows = -(-len(axes) // columns)
    high, side = 190.0, (width - 44) / columns
    pad = (max(ends) - min(ends)) * 0.06 or abs(max(ends)) * 0.05 or 1.0
    parts = []
    for k, e in enumerate(axes):
        top = (k // columns) * high
        y = Scale(min(ends) - pad, max(ends) + pad, top + high - 46, top + 12)
        parts.append(_panel(e, 44 + (k % columns) * side, side, y, k % columns == 0))
    middle = rows * high / 2
    parts.append(_text(10, middle, metric, more=f'transform="rotate(-90 10 {middle:.0f})"'))
    return drawing(width, rows * high, f"{metric} by axis", "".join(parts))


def _panel(e: Effect, left: float, side: float, y: Scale, first: bool) -> str:
    right = left + side - 10
    parts = [
        f'<path d="M{left:.0f} {y.end:.0f}V{y.start:.0f}H{right:.0f}" fill="none" stroke="currentColor" opacity=".5"/>'
    ]
    for tick in ticks(y.low, y.high, 4):
        at = y(tick)
        parts.append(f'<path d="M{left:.0f} {at:.1f}H{right:.0f}" stroke="currentColor" opacity=".12"/>')
        parts += [_text(left - 4, at + 4, number(tick), "end", 'font-size="10.5"')] if first else []
    n = len(e.levels)
    xs = [left + (i + 0.5) * (right - left) / n for i in range(n)]
    good = [i for i in range(n) if math.isfinite(e.mid[i])]
    line = "L".join(f"{xs[i]:.1f} {y(e.mid[i]):.1f}" for i in good)
    parts.append(f'<path d="M{line}" fill="none" stroke="{TONE}" opacity=".6"/>' if good else "")
    for i in good:
        if math.isfinite(e.low[i]) and math.isfinite(e.high[i]):
            a, b = y(e.low[i]), y(e.high[i])
            parts.append(f'<path d="M{xs[i]:.1f} {a:.1f}V{b:.1f}" stroke="{TONE}" stroke-width="2"/>')
        title = f"<title>{escape(e.levels[i])}: {escape(number(e.mid[i]))}</title>"
        parts.append(f'<circle cx="{xs[i]:.1f}" cy="{y(e.mid[i]):.1f}" r="3.5" fill="{TONE}">{title}</circle>')
    room = max(3, int((right - left) / n / 6.2))
    every = max(1, -(-max(map(len, e.levels)) // room)) if n > 4 else 1
    parts += [_text(xs[i], y.start + 14, e.levels[i][: room + 4], more='font-size="10.5"') for i in range(0, n, every)]
    parts.append(_text((left + right) / 2, y.start + 32, f"{e.axis}: {e.verdict}"))
    return "".join(parts)
