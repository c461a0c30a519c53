"""Do notebooks and files get the page's picture?"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from relab.health.rule import Finding
from relab.report import figure
from relab.runs import grouping
from report.made import write_run

UP = (10.0, 60.0, math.nan, 300.0)


@pytest.fixture
def groups(tmp_path):
    for name, lr in (("low", 0.001), ("hi$gh", 0.1)):
        for seed in range(5):
            write_run(tmp_path / f"{name}-s{seed}", UP, seed=seed, config={"algo": {"name": "ppo", "lr": lr}})
    return grouping.load(tmp_path)


def test_svg(groups):
    drawn = [e.get("class") for e in ET.fromstring(figure.svg(groups, x="time")).iter()]
    assert (drawn.count("seed"), drawn.count("mean"), drawn.count("nan")) == (10, 2, 10)


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_matplotlib_saves(groups, tmp_path, kind):
    drawing = figure.figure(groups, x="time", findings=[Finding("m", slug="a$b$", run="low-s0", onset=1000)])
    drawing.savefig(tmp_path / f"figure.{kind}")
    assert (tmp_path / f"figure.{kind}").stat().st_size > 2000


def test_matplotlib_shows_the_same(groups):
    (axes,) = figure.figure(groups, "eval/return_det", log_y=True).axes
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("steps", "evaluated return", "log")
    labels = axes.get_legend_handles_labels()[1]
    assert labels == [f"{name}: mean, 95% interval, n = 5 seeds" for name in ("hi$gh", "low")]
    thin = [line for line in axes.lines if line.get_linewidth() == 0.8]
    assert [line.get_color() for line in thin] == ["#0072B2"] * 5 + ["#D55E00"] * 5
    assert [text.get_text() for text in axes.texts] == ["random 20"]


def test_an_axis_that_is_not_there(groups):
    with pytest.raises(ValueError, match=r"all runs have \(steps, time\), but is 'updates'"):
        figure.svg(groups, x="updates")
