"""How do the pictures get into a paper? The same data in matplotlib, which is imported when a figure is made.

relab compare runs/ --figure pdf        intervals, profile and probability of improvement of each task
relab report runs/ --figure pdf         the learning curves besides
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relab.base.jsonl import writing
from relab.config.base import require
from relab.report.curves import CurveFigure
from relab.report.figure import curve_figure
from relab.report.pictures import SHARE, Improvement, Intervals, Picture, Profile, Row, Trace
from relab.report.svg_scale import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("pdf", "svg", "png")
WIDE = 5.5  # inches: a column and a half
STYLES = ("-", "--", ":")  # the second and third six configs, as on the page
FONTS: Any = {"font.size": 9, "pdf.fonttype": 42, "svg.fonttype": "none"}  # text stays text, as journals ask


def save(drawn: Sequence[Picture | CurveFigure], folder: Path, stem: str, kind: str) -> list[Path]:
    """One file a picture: STEM-intervals-CARTPOLE.pdf; their order is that of the page."""
    require(kind in KINDS, f"a figure is one of {', '.join(KINDS)}, but not {kind!r}")
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    paths = names([_name(each) for each in drawn], folder, stem, kind)
    with matplotlib.rc_context(FONTS):
        for each, path in zip(drawn, paths):
            with writing(path):
                figure_of(each).savefig(path, bbox_inches="tight", dpi=200)
    return paths


def names(words: Sequence[str], folder: Path, stem: str, kind: str) -> list[Path]:
    """A name that is taken gets a number."""
    return [
        folder / f"{stem}-{word}{f'-{words[:i].count(word) + 1}' if word in words[:i] else ''}.{kind}"
        for i, word in enumerate(words)
    ]


def _name(each: Picture | CurveFigure) -> str:
    title = f"{each.title or ''} {each.metric}" if isinstance(each, CurveFigure) else each.title
    kind = "curve" if isinstance(each, CurveFigure) else each.kind
    return re.sub(r"[^\w.]+", "-", f"{kind}-{title}").strip("-").lower()[:80]


def figure_of(each: Picture | CurveFigure) -> Figure:
    """Outside of pyplot's state: to be saved, or gone on with."""
    if isinstance(each, CurveFigure):
        return curve_figure(each)
    from matplotlib.figure import Figure

    height = 2.8 + 0.2 * len(each.rows) if isinstance(each, Profile) else 0.75 + 0.42 * len(each.rows)
    figure = Figure(figsize=(WIDE, height), layout="constrained")
    axes = figure.add_subplot()
    if isinstance(each, Profile):
        _profile(axes, each)
    else:
        _rows(axes, each)
    axes.set_title(each.title, fontsize=9, loc="left", parse_math=False)
    axes.set_xlabel(each.across, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _rows(axes: Axes, picture: Intervals) -> None:
    for at, row in enumerate(picture.rows):
        _row(axes, at, row)
    labels = axes.set_yticks(range(len(picture.rows)), [row.label for row in picture.rows])
    for label in labels:
        label.label1.set_parse_math(False)  # names come from logs: a dollar sign would start a formula
    axes.set_ylim(len(picture.rows) - 0.4, -0.6)
    if isinstance(picture, Improvement):
        axes.set_xlim(-0.02, 1.02)  # a tick at 0 or 1 stands clear of the frame
        axes.axvline(0.5, color="0.4", ls="--", lw=0.8, zorder=0)
    else:
        axes.use_sticky_edges = False  # a bar's end is no edge of the picture
        axes.margins(x=0.03)
    axes.grid(axis="x", alpha=0.25)


def _row(axes: Axes, at: int, row: Row) -> None:
    tone = COLOURS[row.place % len(COLOURS)]
    if math.isfinite(row.low):
        axes.barh(at, row.high - row.low, left=row.low, height=0.5, color=tone, alpha=0.35, lw=0)
    axes.plot(row.values, [at] * len(row.values), "o", color=tone, ms=3.5, alpha=0.6, mew=0)
    axes.plot([row.mid, row.mid], [at - 0.3, at + 0.3], color=tone, lw=2)


def _profile(axes: Axes, picture: Profile) -> None:
    ends = [x for row in picture.rows for x in row.x]
    pad = 0.04 * (max(ends) - min(ends)) or 1.0
    for row in picture.rows:
        _trace(axes, row, min(ends) - pad, max(ends) + pad)
    axes.set(xlim=(min(ends) - pad, max(ends) + pad), ylim=(-0.02, 1.02), ylabel=SHARE)
    axes.grid(alpha=0.25)
    drawing = axes.get_figure(root=True)
    assert drawing is not None
    for text in drawing.legend(fontsize=8, frameon=False, loc="outside lower left").get_texts():
        text.set_parse_math(False)


def _trace(axes: Axes, row: Trace, left: float, right: float) -> None:
    tone: Any = COLOURS[row.place % len(COLOURS)]
    style = STYLES[row.place // len(COLOURS) % len(STYLES)]
    shares = [row.share[0], *row.share, 0.0]
    axes.step([left, *row.x, right], shares, where="pre", color=tone, ls=style, lw=1.8, label=row.label)
    if all(math.isfinite(v) for v in (*row.low, *row.high)):
        low, high = [row.low[0], *row.low], [row.high[0], *row.high]
        axes.fill_between([left, *row.x], low, high, step="pre", color=tone, alpha=0.15, lw=0)
