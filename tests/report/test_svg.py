"""Does the figure show every seed, every gap and nothing that a log smuggled in?"""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from relab.report import curves, ink, svg, svg_scale, svg_small
from relab.report.svg_scale import unbroken, usual_gaps

NAN = math.nan


def data(*groups, **more):
    bundles = [curves.Bundle(f"g{i}", lines, None) for i, lines in enumerate(groups)]
    plain = curves.CurveFigure("eval/return_det", "", "return", "agent_steps", [], None, None, bundles, ["steps"], "no")
    return replace(plain, **more)


def line(y, x=None, name="run"):
    return curves.Line(name, 0, list(range(len(y))) if x is None else x, list(y))


def drawn(figure, kind):
    return [e for e in ET.fromstring(figure).iter() if e.get("class") == kind]


def test_every_seed_is_a_line_in_its_groups_colour():
    figure = svg.curve(data([line([1, 2]), line([2, 3])], [line([3, 4])]))
    assert [e.get("stroke") for e in drawn(figure, "seed")] == ["#0072B2", "#0072B2", "#D55E00"]
    assert not drawn(figure, "band") + drawn(figure, "gap") + drawn(figure, "nan")


def test_nan_breaks_the_line_and_is_marked():
    figure = svg.curve(data([line([1, 2, NAN, 4, 5])]))
    (seed,) = drawn(figure, "seed")
    assert seed.get("d").count("M") == 2, "two pieces"
    assert (len(drawn(figure, "gap")), len(drawn(figure, "nan"))) == (1, 1)
    assert "nan" not in seed.get("d").lower()
    assert svg.legend(data([line([1, NAN])]))[-1]["text"] == "× not a finite number; dotted: no value"


def test_missing_rows_break_the_line():
    figure = svg.curve(data([line([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 20, 21])]))
    assert drawn(figure, "seed")[0].get("d").count("M") == 2
    assert (len(drawn(figure, "gap")), len(drawn(figure, "nan"))) == (1, 0)


@pytest.mark.parametrize(("lines", "text"), [([], "nothing to draw yet"), ([line([NAN, math.inf])], "no finite value")])
def test_nothing_to_draw_is_said(lines, text):
    assert text in svg.curve(data(lines))


def test_a_flat_line_below_random_is_shown_as_one():
    figure = svg.curve(
        data([line([9.2, 9.8, 9.4])], levels=[curves.Level("random", 22.2), curves.Level("ceiling", 500.0)])
    )
    assert "random 22.2" in figure
    assert "ceiling" not in figure, "so far off that the line would be one with the axis"


def test_no_name_in_the_picture_covers_another():
    levels = [curves.Level("solved", 475.0), curves.Level("ceiling", 500.0), curves.Level("random", 22.2)]
    for at in (430.0, 450.0, 475.0):
        figure = svg.curve(
            data([line([20, at, 500])], levels=levels, onset=curves.Onset(2, "peak-then-collapse (run)"))
        )
        heights = sorted(float(e.get("y")) for e in drawn(figure, "level"))
        assert min(b - a for a, b in itertools.pairwise(heights)) >= 13


@pytest.mark.parametrize("width", [380, 760])
def test_no_name_lies_over_a_curve(width):
    """Levels are named to the right of all points and inside the picture, an onset above them."""
    levels = [curves.Level("random", -1172.7), curves.Level("ceiling", 0.0)]
    onset = curves.Onset(1, "diverged")
    figure = svg.curve(data([line([-1100, -30, -100, -1172])], levels=levels, onset=onset), width)
    points = [tuple(map(float, p.split())) for p in re.split("[ML]", drawn(figure, "seed")[0].get("d"))[1:]]
    names = drawn(figure, "level")
    assert [e.text for e in names] == ["ceiling 0", "random -1,173"]
    assert min(float(e.get("x")) for e in names) > max(x for x, _ in points)
    assert max(float(e.get("x")) + 6.4 * len(e.text) for e in names) <= width
    (began,) = drawn(figure, "began")
    assert 10 <= float(began.get("y")) < min(y for _, y in points), "over the frame, and not cut"


@pytest.mark.parametrize(
    ("heights", "expected"),
    [([10, 12, 50], [10, 23, 50]), ([58, 60], [47, 60]), ([], []), ([30, 30, 30], [30, 43, 56]), ([-9], [0])],
)
def test_spread(heights, expected):
    assert svg.spread(heights, 0, 60) == expected


def test_a_name_that_would_be_cut_is_told_without_its_run():
    onset = curves.Onset(0, "critic-not-learning (lr0p0003_ec0_s0_731489ca_and_a_long_name_that_nobody_can_read)")
    narrow = svg.curve(data([line([20, 30, 40])], onset=onset), 360)
    assert "critic-not-learning<" in narrow
    assert "731489ca" in svg.curve(data([line([20, 30, 40])], onset=onset), 900)


@pytest.mark.parametrize("y", [[5.0], [5.0, 5.0], [0.0, 0.0], [-1e30, 1e30], [1e-9, 2e-9]])
def test_odd_ranges(y):
    figure = svg.curve(data([line(y)], levels=[curves.Level("random", 0.5)]))
    assert "nan" not in figure.lower().replace('class="nan"', "")
    assert "inf" not in figure.lower()
    ET.fromstring(figure)


def test_band_with_its_label():
    band = curves.Band([0, 1], [1, 2], [-99, 1], [2, 3], "mean, n = 3 seeds")
    figure = svg.curve(data(groups=[curves.Bundle("g", [line([1, 2])] * 3, band)]))
    (band,) = drawn(figure, "band")
    assert band[0].text == "mean, n = 3 seeds"
    heights = [float(v) for v in re.findall(r" (-?[\d.]+)", band.get("d"))]
    assert max(heights) <= 330 - 44, "a band far wider than the lines ends at the frame"
    assert len(drawn(figure, "mean")) == 1


def test_random_level_onset_and_axes():
    figure = svg.curve(data([line([1, 2, 3])], levels=[curves.Level("random", 1.5)], onset=curves.Onset(1, "high-kl")))
    texts = [e.text for e in ET.fromstring(figure).iter() if e.tag.endswith("text")]
    assert {"random 1.5", "high-kl", "steps", "evaluated return"} <= set(texts)


def test_hostile_text_is_escaped():
    bad = '"><script>alert(1)</script>&'
    curve = data([line([1, 2], name=bad)], onset=curves.Onset(1, bad), metric=bad, axis=bad)
    assert "<script" not in svg.curve(curve)
    ET.fromstring(svg.curve(curve))


def test_thinning_keeps_spikes_and_nan():
    points = [(float(i), 0.0) for i in range(10_000)]
    points[5003], points[7001] = (5003.0, 99.0), (7001.0, NAN)
    kept = curves.thinned(points)
    assert (5003.0, 99.0) in kept
    assert any(math.isnan(y) for _, y in kept)
    assert len(kept) <= curves.MOST_POINTS + 1
    assert [x for x, _ in kept] == sorted(x for x, _ in kept)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 500, [0, 100, 200, 300, 400, 500]),
        (-1.1, 0.9, [-1, -0.5, 0, 0.5]),
        (3, 13, [4, 6, 8, 10, 12]),
        (-1.7e308, 1.7e308, []),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert svg_scale.ticks(low, high) == pytest.approx(expected)


def test_sparkline():
    broken = ET.fromstring(svg_small.sparkline([1, 2, NAN, "x", 3]))
    assert [e.get("d").count("M") for e in broken if e.tag.endswith("path")] == [1, 2], "axes; a line in two pieces"
    named = ET.fromstring(svg_small.sparkline([0.5, 20.0, 3.0], [0, 1000, 41_000]))
    assert [e.text for e in named if e.tag.endswith("text")] == ["20", "0.5", "0", "41k"]
    large = ET.fromstring(svg_small.sparkline([1534.2, -169.7]))
    assert [e.text for e in large if e.tag.endswith("text")] == ["1,534", "-170"], "no powers of ten where digits do"
    assert svg_small.sparkline([NAN, 1]) == "", "one number is no line"


# ---- Other axes, log axes


def timed(y, seconds):
    return replace(line(y), time=list(seconds), updates=[10 * i for i in range(len(y))])


def texts(figure):
    return [e.text for e in ET.fromstring(figure).iter() if e.tag.endswith("text")]


def places(path):
    return [float(v) for v in re.findall(r"[ML](-?[\d.]+) ", path)]


@pytest.mark.parametrize(("last", "name"), [(90, "wall time (s)"), (600, "wall time (min)"), (9000, "wall time (h)")])
def test_by_wall_time(last, name):
    figure = svg.curve(data([timed([1, 2, 3], [0, last / 3, last])]), view=svg.Look("time"))
    assert name in texts(figure)
    left, middle, right = places(drawn(figure, "seed")[0].get("d"))
    assert (middle - left) / (right - left) == pytest.approx(1 / 3, abs=0.01)


def test_by_updates():
    assert "optimiser steps" in texts(svg.curve(data([timed([1, 2, 3], [0, 1, 2])]), view=svg.Look("updates")))


def test_log_y_spaces_by_ratio():
    figure = svg.curve(data([line([1, 100, 10_000])]), view=svg.Look(log_y=True))
    heights = [float(v) for v in re.findall(r"[\d.]+ ([\d.]+)", drawn(figure, "seed")[0].get("d"))]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2)
    assert "evaluated return, log" in texts(figure)


def test_what_a_log_axis_cannot_show_is_a_gap_or_left_out():
    figure = svg.curve(data([line([1, 0, 100, 200])]), view=svg.Look(log_y=True))
    assert (len(drawn(figure, "nan")), drawn(figure, "seed")[0].get("d").count("M")) == (1, 1)
    across = svg.curve(data([line([1, 2, 3, 4], [0, 10, 100, 1000])]), view=svg.Look(log_x=True))
    assert len(places(drawn(across, "seed")[0].get("d"))) == 3, "log of step 0 is nowhere"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.9, 1100, [1, 10, 100, 1000]),
        (3, 60, [5, 10, 20, 50]),
        (4e-7, 0.03, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]),
        (1e-12, 1, [1e-12, 1e-9, 1e-6, 1e-3, 1]),
    ],
)
def test_log_ticks(low, high, expected):
    assert svg_scale.log_ticks(low, high) == pytest.approx(expected)


def test_levels_do_not_cover_each_other():
    levels = [curves.Level("solved", 2.98), curves.Level("ceiling", 3.0), curves.Level("far", 1e9)]
    figure = svg.curve(data([line([1, 2, 3])], levels=levels))
    assert [e.text for e in drawn(figure, "level")] == ["ceiling 3", "solved 2.98"], "one far away would flatten it"


def test_the_reference_is_grey_with_its_level():
    held = replace(line([1, 5], name="old"), called="parent")
    curve = data([line([1, 2])], reference=held)
    assert [e.get("stroke") for e in drawn(svg.curve(curve), "seed")] == [svg_scale.GREY, "#0072B2"]
    assert "parent 5" in texts(svg.curve(curve))
    assert svg.legend(curve)[-1] == {"colour": svg_scale.GREY, "text": "parent: old"}


def test_the_legend_stays_short():
    curve = data(*[[line([1, 2])] for _ in range(13)])
    assert [each["text"] for each in svg.legend(curve)][9:] == ["g9", "and 3 more configs", "one run each"]


def test_a_key_of_the_legend_is_dashed_as_its_line_is():
    curve = data(*[[line([1, 2])] for _ in range(8)])
    keys = svg.legend(curve)
    assert ["dash" in key for key in keys[:8]] == [False] * 6 + [True] * 2
    assert keys[6]["colour"] == keys[0]["colour"]


def test_what_all_lines_mean_is_said_once():
    band = curves.Band([0, 1], [1, 2], [0, 1], [2, 3], "mean, n = 5 seeds")
    groups = [curves.Bundle(name, [line([1, 2])] * 5, band) for name in "ab"]
    said = [each["text"] for each in svg.legend(data(groups=groups))]
    assert said == ["a", "b", "thick: mean, n = 5 seeds; thin: 5 runs"]
    said = [each["text"] for each in svg.legend(data(groups=[*groups, curves.Bundle("c", [line([1, 2])], None)]))]
    assert said[2] == "c: one run"


def test_a_group_keeps_the_colour_it_is_given():
    group = curves.Bundle("b", [line([1, 2])], None, place=2)
    assert drawn(svg.curve(data(groups=[group])), "seed")[0].get("stroke") == svg_scale.COLOURS[2]
    assert svg.legend(data(groups=[group]))[0]["colour"] == svg_scale.COLOURS[2]


def test_dots_keep_inside_and_leave_out_what_is_no_number():
    figure = svg_small.dots([1.0, NAN, 3.0], 0.0, 4.0, [2.0, -9.0, 13.0], "#0072B2")
    assert len(drawn(figure, "seed-dot")) == 2
    assert drawn(figure, "interval")[0].get("d") == "M6.0 15H234.0"
    assert not drawn(svg_small.dots([1.0], 0.0, 4.0, [1.0, NAN, NAN], "#0072B2"), "interval")


def test_healthy_runs_are_grey_behind_the_curve():
    grey = curves.Stretch(0, 1, 1.2, 2.5)
    figure = svg.curve(data([line([1, 2, 3])], healthy=[grey]))
    assert figure.count('class="healthy"') == 1
    assert figure.index('class="healthy"') < figure.index("<path")
    assert "healthy runs: 1.2 to 2.5" in figure


def test_a_healthy_range_that_the_figure_does_not_reach_is_not_drawn():
    assert 'class="healthy"' in svg_small.sparkline([1, 2, 3], healthy=(1.5, 9.0))
    assert 'class="healthy"' not in svg_small.sparkline([1, 2, 3], healthy=(10.0, 20.0))


def test_rows_of_long_episodes_are_joined_and_missing_rows_are_not():
    """An episode's row stands where it ended: long episodes lie far apart among short ones, and nothing is missing."""
    long = [*range(0, 100, 10), *range(100, 1000, 90), *range(1000, 1300, 10)]
    assert len(unbroken([(float(a), 1.0) for a in long], usual_gaps(long))) == 1
    gone = [*range(0, 100, 10), *range(400, 500, 10)]
    assert len(unbroken([(float(a), 1.0) for a in gone], usual_gaps(gone))) == 2


def test_marks_of_a_short_clock_are_whole_and_differ():
    """Three iterations: a mark at every half was rounded to 0, 0, 1, 2, 2, 3."""
    figure = svg.curve(data([line([0.5, 0.6, 0.7, 0.8])]))
    marks = [e.text for e in ET.fromstring(figure).iter() if e.get("text-anchor") == "middle" and e.text.isdigit()]
    assert marks == ["0", "1", "2", "3"]


# ---- More ink than course


def noisy(metric, jump, rows=600):
    """A line that rises from 0 to 100 and jumps by `jump` from row to row."""
    x = [float(i) for i in range(rows)]
    y = [100 * i / rows + (jump if i % 2 else -jump) for i in range(rows)]
    return data(metric=metric, groups=[curves.Bundle("a", [curves.Line("a", 0, x, y)], None)])


@pytest.mark.parametrize(
    ("metric", "jump", "smooth"),
    [("return/mean", 40.0, True), ("return/mean", 1.0, False), ("eval/return_det", 40.0, False)],
)
def test_raw_rows_that_would_cover_the_figure_are_smoothed_over_a_shade(metric, jump, smooth):
    """And evaluations never: they are drawn as they were judged."""
    figure = noisy(metric, jump)
    text = svg.curve(figure)
    assert (len(drawn(text, "shade")), len(drawn(text, "seed"))) == (int(smooth), 1)
    assert (ink.MEANING in [key["text"] for key in svg.legend(figure)]) is smooth


def test_the_mean_and_the_interval_over_seeds_are_smoothed_with_the_seeds():
    rng = np.random.default_rng(0)
    x = [float(i) for i in range(600)]
    lines = [curves.Line(str(k), k, x, (np.arange(600) / 6 + rng.normal(0, 40, 600)).tolist()) for k in range(5)]
    group = curves.Bundle("a", lines, curves.band(lines))
    figure = data(metric="return/mean", groups=[group])
    text = svg.curve(figure)
    assert drawn(text, "shade") == [], "five of them would cover the interval"
    (mean,) = drawn(text, "mean")
    assert mean.attrib["d"].count(" ") < 4 * ink.STRETCHES
    calm = ink.smoothed_band(group)
    assert len(calm.x) == len(calm.mean) == ink.STRETCHES
    for i in (0, 30, 59):
        part = slice(10 * i, 10 * i + 10)
        assert calm.mean[i] == pytest.approx(np.mean([line.y[part] for line in lines]))
        assert (
            np.mean(group.band.low[part]) < calm.low[i] < calm.mean[i] < calm.high[i] < np.mean(group.band.high[part])
        )
    assert "smoothed: means of sixtieths of the axis" in [key["text"] for key in svg.legend(figure)]


def test_a_smoothed_line_has_the_means_of_its_rows():
    points = [(float(i), 10.0 + (5 if i % 2 else -5)) for i in range(600)]
    course = ink.smoothed(points)
    assert len(course.x) == ink.STRETCHES
    assert set(course.mean) == {10.0}
    assert (set(course.low), set(course.high)) == ({5.0}, {15.0})
    assert ink.smoothed([(0.0, math.nan)]) == ([], [], [], [])


def test_marks_of_small_numbers_differ():
    """A learning rate that never changes had three marks, each called 3e-4."""
    figure = svg.curve(data([line([3e-4, 3e-4, 3e-4])]))
    marks = [e.text for e in ET.fromstring(figure).iter() if (e.text or "").endswith("e-4")]
    assert marks == ["2.9e-4", "3e-4", "3.1e-4"]
