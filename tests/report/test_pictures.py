"""Do the pictures of a comparison show its numbers, on the page and in a paper, and no interval where there is none?"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from relab import cli
from relab.comparison import build
from relab.comparison.task import Options
from relab.report import comparison_page, content, paper, pictures, render, sections, svg_pictures
from relab.runs import grouping
from report.made import write_run

LOW, HIGH = (100.0, 120.0, 140.0, 160.0, 180.0), (300.0, 320.0, 340.0, 360.0, 480.0)


def write_arms(folder, seeds=5):
    for name, lr, ends in (("low", 0.001, LOW), ("hi$gh", 0.1, HIGH)):
        for seed in range(seeds):
            config = {"algo": {"name": "ppo", "lr": lr}}
            write_run(folder / f"{name}-s{seed}", (10.0, 60.0, ends[seed]), seed=seed, config=config)
    return folder


def test_the_seventh_line_of_a_profile_is_dashed_as_in_every_curve():
    """It had the first one's colour, and nothing told them apart."""
    rows = [pictures.Trace(f"c{i}", i, [1.0, 2.0], [1.0, 0.5], [0.5, 0.2], [1.0, 0.9]) for i in (0, 6, 12)]
    text = svg_pictures.draw(pictures.Profile("task", "score", rows))
    assert text.count('stroke-dasharray="6 3"') == text.count('stroke-dasharray="2 3"') == 2


def drawn(folder):
    runs = [run for group in grouping.load(folder) for run in group.runs]
    return comparison_page.figures(build.compare(runs, Options()))


def test_they_hold_the_numbers_of_the_comparison(tmp_path):
    intervals, profile, better = drawn(write_arms(tmp_path))
    assert [(row.label, row.mid) for row in intervals.rows] == [("hi$gh", 360.0), ("low", 140.0)]
    assert intervals.rows[0].values == list(HIGH)
    assert profile.rows[0].x == list(HIGH)
    assert profile.across == "evaluated return"
    assert pictures.SHARE in svg_pictures.draw(profile), "upwards, not as a part of what stands across"
    assert paper.figure_of(profile).axes[0].get_ylabel() == pictures.SHARE
    assert profile.rows[0].share == [1.0, 0.8, 0.6, 0.4, 0.2]
    assert (better.rows[0].label, better.rows[0].mid) == ("low", 0.0)
    assert better.across == "probability that one of its runs beats one of hi$gh"
    assert 0 < better.rows[0].high < 0.5


def test_where_all_agree_the_profile_still_has_an_interval(tmp_path):
    for name, lr in (("a", 0.1), ("b", 0.2)):
        for seed in range(5):
            write_run(
                tmp_path / f"{name}-s{seed}", (10.0, 500.0), seed=seed, config={"algo": {"name": "ppo", "lr": lr}}
            )
    profile = next(each for each in drawn(tmp_path) if isinstance(each, pictures.Profile))
    assert profile.rows[0].share == [1.0]
    assert profile.rows[0].low[0] == pytest.approx(0.566, abs=0.001)  # Wilson, 5 of 5


@pytest.mark.parametrize("seeds", [3, 5])
def test_a_heading_names_an_interval_only_where_there_is_one(tmp_path, capsys, seeds):
    """On the picture's axis, in the terminal and in the table for a paper."""
    folder = write_arms(tmp_path / "runs", seeds)
    assert cli.main(["compare", str(folder)]) == cli.main(["compare", str(folder), "--markdown"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "best first" in line or "| variant" in line]
    heads = [drawn(folder)[0].across, *lines]
    assert [("95" in head, len(heads)) for head in heads] == [(seeds == 5, 3)] * 3


def test_under_five_seeds_there_are_dots_and_no_interval(tmp_path):
    intervals, profile, *_ = drawn(write_arms(tmp_path, seeds=3))
    assert all(math.isnan(row.low) for row in intervals.rows)
    assert all(math.isnan(low) for row in profile.rows for low in row.low)
    page = svg_pictures.draw(intervals) + svg_pictures.draw(profile)
    assert page.count('class="seed-dot"') == 6
    assert 'class="interval"' not in page
    assert 'class="band"' not in page


def test_the_page_has_all_three_as_xml(tmp_path):
    write_arms(tmp_path)
    html = render.html(sections.build(tmp_path, content.content([tmp_path])))
    section = html[html.index("<summary>Comparison") :]
    figures = re.findall(r"<svg.*?</svg>", section[: section.index("</details>")], re.DOTALL)
    assert len(figures) == 3
    assert all(ET.fromstring(figure) is not None for figure in figures)


def test_the_colours_are_those_of_the_curves(tmp_path):
    write_arms(tmp_path)
    data = sections.build(tmp_path, content.content([tmp_path]))
    labels = [bundle.label.split(" (")[0] for bundle in data.curve.groups]
    intervals = next(f for part in data.sections for f in part.figures if isinstance(f, pictures.Intervals))
    assert {row.label: row.place for row in intervals.rows} == {label: i for i, label in enumerate(labels)}


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
@pytest.mark.some(1)
def test_figures_for_a_paper(tmp_path, capsys, kind):
    write_arms(tmp_path / "runs")
    words = ["compare", str(tmp_path / "runs"), "--figure", kind, "--out", str(tmp_path / "new" / "figures")]
    assert cli.main(words) == 0
    files = sorted((tmp_path / "new" / "figures").iterdir())
    assert [file.name.split("-")[1] for file in files] == ["improvement", "intervals", "profile"]
    assert all(file.stat().st_size > 2000 for file in files)
    assert str(files[0]) in capsys.readouterr().out


def test_the_report_writes_its_curve_as_well(tmp_path, capsys):
    folder = write_arms(tmp_path / "runs")
    assert cli.main(["report", str(folder), "--figure", "svg"]) == 0
    names = sorted(path.name for path in folder.glob("report-*.svg"))
    assert [name.split("-")[1] for name in names] == ["curve", "improvement", "intervals", "profile"]
    assert "hi$gh" in (folder / names[2]).read_text(), "a dollar sign starts no formula"
    assert names[0] in capsys.readouterr().out


def test_nothing_to_draw_is_said_after_what_was_compared(tmp_path, capsys):
    write_run(tmp_path / "only", (1.0, 2.0))
    assert cli.main(["compare", str(tmp_path / "only")]) == 0
    text = capsys.readouterr().out
    assert cli.main(["compare", str(tmp_path / "only"), "--figure", "pdf", "--out", str(tmp_path)]) == 64
    said = capsys.readouterr()
    assert "nothing to draw" in said.err
    assert said.out == text


def test_a_page_does_not_wait_for_matplotlib(tmp_path):
    write_arms(tmp_path)
    program = (
        "import sys; from relab import cli; cli.main(sys.argv[1:]); print('matplotlib' in sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, "report", str(tmp_path), "--out", str(tmp_path / "x.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "False"


def test_no_number_of_a_page_has_two_intervals(tmp_path):
    spec = {
        "env": "cartpole-v1",
        "reward_low": 1.0,
        "reward_high": 1.0,
        "horizon": 500,
        "random": {"return_mean": 20.0},
    }
    for name, lr, ends in (
        ("low", 0.1, (9.7, 157.1, 9.8, 9.2, 9.3)),
        ("high", 0.003, (500.0, 500.0, 500.0, 500.0, 470.0)),
    ):
        for seed, last in enumerate(ends):
            config = {"algo": {"name": "ppo", "lr": lr}, "env": {"name": "cartpole-v1"}}
            write_run(tmp_path / f"{name}-s{seed}", (10.0, last), seed, 0.0, config=config, meta={"spec": spec})
    data = sections.build(tmp_path, content.content([tmp_path]))
    page = render.html(data)
    ends: dict[str, set[str]] = {}
    for mid, interval in re.findall(r"(?<![\d.])(\d[\d.,]*) (\[[^\[\]]{3,40}\])", page):
        ends.setdefault(mid, set()).add(interval)
    shared = [outcome.value.split(" ")[0] for outcome in data.outcome]
    assert len(shared) == 2
    assert all(mid in ends for mid in shared)
    assert {mid: some for mid, some in ends.items() if mid in shared and len(some) > 1} == {}
    assert all(float(end) <= 500 for mid in shared for end in re.findall(r"-?[\d.]+", next(iter(ends[mid]))))
