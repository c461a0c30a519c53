"""Are the numbers of a multi-evaluation what they say? By hand, by simulation, and on the records of a real run."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from relab.base.streams import generator
from relab.formats.read import find
from relab.report import drawings
from relab.report.schedule import schedule
from relab.runs.grouping import load
from relab.schedules import change, evaluated
from relab.schedules.evaluated import Episode
from relab.schedules.gate import ScheduleError
from relab.schedules.sources import read_starts
from where import ROOT

FISH = ROOT.parent / "shared" / "corpus" / "fish"
needs_fish = pytest.mark.skipif(not FISH.is_dir(), reason="the fish records are not in ../shared/corpus")


def test_numbers_by_hand():
    episodes = [Episode(1, 4, (1, 1, 60)), Episode(2, 4, (99, 100)), Episode(3, 2, ())]
    values = evaluated.summarise(episodes, 500, (100, 150)).values
    assert values["avg_final"] == pytest.approx((0.25 + 0.5 + 1) / 3)
    assert (values["min_final"], values["step_one_count"], values["step_one_share"]) == (0.25, 2, 0.2)
    assert (values["early_death_100"], values["early_death_150"]) == (0.4, 0.5)  # a death at 100 is not before it
    assert values["death_p10"] == np.percentile([1, 1, 60, 500, 99, 100, 500, 500, 500, 500], 10)
    assert values["first_death_p50"] == 99
    assert (values["episodes"], values["agents"]) == (3, 10)


def test_a_share_and_a_percentile_say_the_same():
    """early_death_t <= 0.1 is the same as death_p10 >= t, up to the interpolation of percentiles."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        episodes = [Episode(i, 20, tuple(sorted(rng.integers(1, 300, rng.integers(0, 12)).tolist()))) for i in range(5)]
        values = evaluated.summarise(episodes, 300, (100,)).values
        if values["early_death_100"] < 0.1:
            assert values["death_p10"] >= 100
        if values["early_death_100"] > 0.11:
            assert values["death_p10"] < 100


def test_intervals_count_episodes_not_agents():
    """Episodes that differ: an interval over 12 x 96 single agents covers far too seldom; over episodes it holds."""
    rng, hits, naive, worth = np.random.default_rng(1), 0, 0, []
    for _ in range(100):
        rates = rng.beta(2, 8, 12)
        episodes = [Episode(i, 96, (50,) * int(rng.binomial(96, rate))) for i, rate in enumerate(rates)]
        summary = evaluated.summarise(episodes, 500, (100,))
        _, low, high = summary.ends["early_death_100"]
        hits += low <= 0.2 <= high
        mid = summary.values["early_death_100"]
        naive += abs(mid - 0.2) <= 1.96 * math.sqrt(mid * (1 - mid) / 1152)
        worth.append(summary.effective["early_death_100"])
    assert hits >= 88
    assert naive < 65
    assert np.median(worth) < 250  # of 1,152


def test_the_interval_of_a_percentile_is_that_of_drawn_episodes():
    """Of episodes alike in size and not: the 10 % point of each of the resamples, one by one."""
    rng = np.random.default_rng(5)
    for sizes in ([20] * 6, [20, 20, 20, 20, 20, 19]):
        steps = [np.sort(rng.integers(1, 300, n)).astype(float) for n in sizes]
        draw = generator(0, "multi_eval_percentile").integers(0, 6, (evaluated.RESAMPLES, 6))
        each = [np.percentile(np.concatenate([steps[i] for i in row]), 10) for row in draw]
        episodes = [Episode(i, n, tuple(int(x) for x in row)) for i, (n, row) in enumerate(zip(sizes, steps))]
        ends = evaluated.summarise(episodes, 300, (100,)).ends["death_p10"]
        assert ends == (np.std(each, ddof=1), np.percentile(each, 2.5), np.percentile(each, 97.5))


def test_sectors_are_what_they_say():
    for k, name in enumerate(evaluated.SECTORS):
        for off in (-22.4, 0, 22.4):
            assert evaluated.sector(45 * k + off) == name
            assert evaluated.sector(45 * k + off - 360) == name
    rows = [{"heading": 10, "speed": 1, "step_one": 3, "agents": 9}, {"heading": 80, "speed": 1, "step_one": 0}]
    assert [(c.sector, c.starts, c.deaths) for c in evaluated.by_sector(rows)[:3]] == [
        ("E", 1, 3), ("NE", 0, 0), ("N", 1, 0)]  # fmt: skip
    (most, none) = evaluated.clusters(rows)
    assert (most.first, most.last, most.slow, most.deaths, most.share) == (0, 30, 0.8, 3, 1)
    assert (none.starts, none.deaths) == (1, 0)


def test_a_bin_says_the_directions_that_its_starts_headed_into():
    """270 to 300 degrees is mostly S; its only start headed SE, and the table of directions has it there."""
    rows = [{"heading": h, "speed": 1, "step_one": 1} for h in (295, 340, 359, 335)]
    assert {c.first: c.sectors for c in evaluated.clusters(rows)} == {270: "SE", 330: "E, SE"}
    assert [(c.sector, c.deaths) for c in evaluated.by_sector(rows) if c.deaths] == [("E", 2), ("SE", 2)]


def test_the_worst_come_first():
    early, late = {"seed": 3, "final": 0.5, "first_death": 3}, {"seed": 1, "final": 0.5, "first_death": 9}
    rows = [late, {"seed": 2, "final": 0.2}, early, {"seed": 4}]
    assert [row["seed"] for row in evaluated.worst(rows, 3)] == [2, 3, 1]


# ---- Change over training


def rows_of(counts, agents=96, episodes=12):
    rows = []
    for k, row in enumerate(counts):
        values = {"step_one_count": sum(row), "agents": agents * episodes, "avg_final": 0.5}
        each = [{"agents": agents, "step_one": x} for x in row]
        rows.append({"iteration": 8 * k + 8, "values": values, "episodes": each})
    return rows


def test_a_change_is_tested_by_chi_square():
    rng = np.random.default_rng(2)
    counts = rng.binomial(96, 0.1, (7, 12)).tolist()
    test = change.counts_change(rows_of(counts))
    table = [[sum(row), 1152 - sum(row)] for row in counts]
    oracle = stats.chi2_contingency(table, correction=False)
    assert (test.chi2, test.df, test.p) == pytest.approx((oracle.statistic, 6, oracle.pvalue))
    assert test.design == pytest.approx(1, abs=0.4)
    assert change.counts_change(rows_of(counts)[:1]) is None


def test_episodes_that_are_alike_need_more_evidence():
    """Counts that differ between episodes only: of single agents they look like a change, by episode they do not."""
    rng, alone, clustered = np.random.default_rng(3), 0, 0
    for _ in range(200):
        rates = rng.beta(1, 9, (7, 12))
        test = change.counts_change(rows_of(rng.binomial(96, rates).tolist()))
        alone, clustered = alone + (test.p < 0.05), clustered + (test.p_clustered < 0.05)
    assert alone > 150
    assert clustered < 30


def test_a_trend_needs_three_evaluations():
    rows = [{"iteration": i, "values": {"avg_final": 0.1 + 0.02 * i}} for i in (0, 10, 20, 30)]
    assert change.trend(rows, "avg_final").per_ten == pytest.approx(0.2)
    assert change.trend(rows[:2], "avg_final") is None
    assert change.medians([3, 1, 2, 9]) == [None, None, 2, 2]


@needs_fish
def test_a_recorded_run_gives_the_same_rows():
    run = next(r for r in find.load_all(FISH).runs if r.name.endswith("_full"))
    rows = [row for row in run.history.probes if row["probe"] == evaluated.PROBE]
    assert [row["iteration"] for row in rows] == [8, 16, 24, 32, 40, 48, 56]
    for row in rows:  # every death belongs to one of the twelve episodes
        assert sum(e["step_one"] for e in row["episodes"]) == row["values"]["step_one_count"]
        assert all("heading" in e for e in row["episodes"])
    test = change.counts_change(rows)
    assert (sum(test.counts), test.trials, test.df) == (164, 8064, 6)
    assert (test.chi2, test.p) == pytest.approx((6.05, 0.42), abs=0.01)
    assert test.p_clustered > test.p
    assert {row["type"] for row in rows} == {"ne", "main"}


# ---- Files of starts


@pytest.mark.parametrize(
    ("data", "pairs"),
    [
        ([[1, 2], [3, 4.5]], [[1, 2], [3, 4.5]]),
        ({"starts": [[1, 2]]}, [[1, 2]]),
        ({"summary": {"clusters": [{"sample": {"predator_velocity": [1, 2], "fish_position": [8, 9]}}]}}, [[1, 2]]),
        ([{"velocity": [0, 1]}, {"velocity": [2, 3]}], [[0, 1], [2, 3]]),
    ],
)
def test_starts_are_found_in_json(data, pairs, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(data))
    assert read_starts(str(tmp_path / "s.json")).tolist() == pairs


@pytest.mark.parametrize("text", ["", "[]", "{}", "[[1]]", '{"fish_position": [1, 2]}', "nonsense", "[[1, NaN]]"])
def test_a_file_without_starts_is_refused(text, tmp_path):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(ScheduleError, match=r"s\.json"):
        read_starts(str(tmp_path / "s.json"))
    with pytest.raises(ScheduleError, match="cannot be read"):
        read_starts(str(tmp_path / "none.json"))


@needs_fish
def test_a_recorded_run_has_the_same_section():
    sections = [schedule(each) for group in load(FISH) for each in group.runs if each.name.endswith("_full")]
    (section,) = sections
    assert section is not None
    assert any("12 episodes x 96 agents; the settings say 24 episodes" in line for line in section.lines)
    assert any("164 of 8,064 (2.03%)" in line and "chi2 = 6.05, df 6, p = 0.42" in line for line in section.lines)
    kinds = [figure.kind for figure in section.figures]
    assert kinds == ["timeline", "dots", "dots", "polar", *["columns"] * 3]  # single deaths are not in the file
    assert all("<svg" in drawings.draw(figure) for figure in section.figures)
    (by_stage,) = [table for table in section.tables if table.caption.startswith("By stage")]
    assert ["type", "ne", "1"] in [row[:3] for row in by_stage.rows]
    assert ["type", "main", "6"] in [row[:3] for row in by_stage.rows]
