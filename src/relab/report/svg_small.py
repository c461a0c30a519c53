"""How do a few numbers look in a line of text? A sparkline with its axes, and the seeds as dots over their interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from relab.base.text import count, figure, number
from relab.report.svg_scale import GREY, Scale, padded, path_of, unbroken


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
    low, high = figure(min(good)), figure(max(good))
    left, foot = 7 + 5.4 * max(len(low), len(high)), height - (13 if steps else 3)
    x, y = Scale(min(at), max(at) if max(at) > min(at) else min(at) + 1, left, width - 4), padded(good, foot - 2, 5)
    points = [(x(a), y(float(v)) if _finite(v) else math.nan) for a, v in zip(at, values)]
    parts = [_healthy_strip(healthy, x, y)] if healthy else []
    parts += [f'<path d="M{left - 3:.1f} 3V{foot}H{width}" fill="none" stroke="currentColor" opacity=".4"/>']
    line = "".join(path_of(piece) for piece in unbroken(points))
    parts.append(f'<path d="{line}" fill="none" stroke="currentColor" stroke-width="1.3"/>')
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


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
