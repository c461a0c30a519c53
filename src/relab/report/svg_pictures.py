"""How do the pictures of a comparison look in a page without scripts? SVG in the colours of the curves."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from relab.base.text import cut, number, wrap
from relab.report.pictures import SHARE, Improvement, Intervals, Picture, Profile, Row, Trace
from relab.report.svg_scale import Scale, colour, dashed, drawing, padded, tick_text, ticks

WIDTH, LEFT, RIGHT, ROW, HEAD = 400, 12, 12, 40, 24  # a third of a page, or a telephone
LINE, LETTER = 14, 6.4  # height of a line and width of a letter
ACROSS = int((WIDTH - LEFT - RIGHT) / LETTER)  # letters beside each other


def draw(picture: Picture) -> str:
    return profile(picture) if isinstance(picture, Profile) else rows_of(picture)


def rows_of(picture: Intervals) -> str:
    """A row for each variant: its name, the interval as a bar, the mean as a tick, seeds as dots."""
    names = wrap(picture.across, ACROSS, most=2)
    height = HEAD + ROW * len(picture.rows) + 26 + LINE * len(names)
    if isinstance(picture, Improvement):
        x = Scale(0, 1, LEFT, WIDTH - RIGHT)
    else:
        x = padded([v for row in picture.rows for v in _numbers(row)], LEFT, WIDTH - RIGHT)
    foot = height - 20 - LINE * len(names)
    parts = [_across(x, foot, names), _text(LEFT, 14, cut(picture.title, ACROSS), weight=600)]
    if isinstance(picture, Improvement):
        parts.append(
            f'<path d="M{x(0.5):.1f} {HEAD}V{foot}" stroke="currentColor" stroke-dasharray="5 4" opacity=".5"/>'
        )
    digits = _share if isinstance(picture, Improvement) else number
    parts += [_row(row, HEAD + ROW * i + 14, x, digits) for i, row in enumerate(picture.rows)]
    said = "; ".join(f"{row.label} {number(row.mid)}" for row in picture.rows)
    return drawing(WIDTH, height, f"{picture.title}, {picture.across}: {said}", "".join(parts))


def _numbers(row: Row) -> list[float]:
    return [v for v in (row.mid, row.low, row.high, *row.values) if math.isfinite(v)]


def _share(value: float) -> str:
    return f"{value:.2f}"


def _row(row: Row, top: float, x: Scale, digits: Callable[[float], str]) -> str:
    tone, at = colour(row.place), top + 11
    varied = row.low < row.high  # seeds that are all alike have no interval, as in the tables
    text = digits(row.mid) + (f" [{digits(row.low)}, {digits(row.high)}]" if varied else "")
    parts = [_text(LEFT, top, cut(row.label, ACROSS - len(text) - 2))]
    if math.isfinite(row.low) and math.isfinite(row.high):
        wide = max(x(row.high) - x(row.low), 1.0)
        parts.append(f'<rect class="interval" x="{x(row.low):.1f}" y="{at - 5:.1f}" width="{wide:.1f}" height="10" '
                     f'fill="{tone}" fill-opacity=".35"/>')  # fmt: skip
    parts += [f'<circle class="seed-dot" cx="{x(v):.1f}" cy="{at:.1f}" r="3" fill="{tone}" fill-opacity=".6"/>'
              for v in row.values]  # fmt: skip
    parts.append(f'<path d="M{x(row.mid):.1f} {at - 7:.1f}v14" stroke="{tone}" stroke-width="2.5"/>')
    return "".join([*parts, _text(WIDTH - RIGHT, top, text, "end")])


def profile(picture: Profile) -> str:
    """A falling stair for each variant with its interval."""
    names, foot = wrap(picture.across, ACROSS, most=2), 216
    height = foot + 30 + LINE * len(names) + 17 * len(picture.rows)
    xs = [v for row in picture.rows for v in row.x]
    x, y = padded(xs, 58, WIDTH - RIGHT), Scale(0, 1, foot, HEAD + 6)
    parts = [_text(LEFT, 14, cut(picture.title, ACROSS), weight=600), _across(x, foot, names), _upwards(y(0.5))]
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<path d="M{x.start} {y(value):.1f}H{x.end}" stroke="currentColor" opacity=".12"/>')
        parts.append(_text(x.start - 6, y(value) + 4, f"{value:g}", "end"))
    for i, row in enumerate(picture.rows):
        parts.append(_trace(row, x, y))
        at = foot + 38 + LINE * len(names) + 17 * i
        parts.append(
            f'<path d="M{LEFT} {at - 4}h18" stroke="{colour(row.place)}" stroke-width="3"{dashed(row.place)}/>'
        )
        parts.append(_text(LEFT + 26, at, cut(row.label, ACROSS - 5)))
    return drawing(WIDTH, height, f"performance profile, {picture.title}", "".join(parts))


def _trace(row: Trace, x: Scale, y: Scale) -> str:
    tone, parts = colour(row.place), []
    if all(math.isfinite(v) for v in (*row.low, *row.high)):
        up, down = stairs(row.x, row.high, x, y), stairs(row.x, row.low, x, y)
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in [*up, *down[::-1]]) + "Z"
        parts.append(f'<path class="band" d="{path}" fill="{tone}" opacity=".15"/>')
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in stairs(row.x, row.share, x, y, to_zero=True))
    return "".join([*parts, f'<path d="{path}" fill="none" stroke="{tone}" stroke-width="2"{dashed(row.place)}/>'])


def stairs(
    xs: list[float], shares: list[float], x: Scale, y: Scale, to_zero: bool = False
) -> list[tuple[float, float]]:
    """The share holds up to its score and falls right after it."""
    points = [(x.start, y(shares[0]))]
    for i, (at, share) in enumerate(zip(xs, shares)):
        below = shares[i + 1] if i + 1 < len(shares) else 0.0 if to_zero else share
        points += [(x(at), y(share)), (x(at), y(below))]
    return [*points, (x.end, y(0.0))] if to_zero else points


def _across(x: Scale, foot: float, names: list[str]) -> str:
    parts = [f'<path d="M{x.start} {foot}H{x.end}" stroke="currentColor" opacity=".55"/>']
    for value in ticks(x.low, x.high, 5):
        parts.append(f'<path d="M{x(value):.1f} {foot}v4" stroke="currentColor" opacity=".55"/>')
        parts.append(_text(x(value), foot + 16, tick_text(value), "middle"))
    parts += [_text((x.start + x.end) / 2, foot + 31 + LINE * i, name, "middle") for i, name in enumerate(names)]
    return "".join(parts)


def _upwards(middle: float) -> str:
    turned = f'transform="rotate(-90 {LEFT} {middle:.1f})" text-anchor="middle"'
    return f'<text x="{LEFT}" y="{middle:.1f}" {turned}>{escape(SHARE)}</text>'


def _text(x: float, y: float, what: str, anchor: str = "start", weight: int = 400) -> str:
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{bold}>{escape(what)}</text>'
