"""Is another tool's run reported as well as relab's own, without config, meta or relab's names?"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

import relab
from relab.commands import report
from relab.formats.read.source import put
from relab.record.history import Column, History
from relab.report import render, sections
from relab.report.parts import PageHealth
from relab.runs import grouping, sentences, verdict

LONG_AGO = 1_600_000_000


def csv(path, column="episode_reward", rows=60, last=400.0, seed=0, head="global_step"):
    """A learning curve as people log it, with a loss that falls over five decades."""
    draw = np.random.default_rng(seed)
    lines = [f"{head},{column},made/gap"]
    for i in range(rows):
        level = 20 + (last - 20) * (1 - math.exp(-4 * i / rows)) + draw.normal(0, 5)
        lines.append(f"{i * 1000},{level:.3f},{1000 * math.exp(-i / 5):.6g}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    os.utime(path, (LONG_AGO, LONG_AGO))
    os.utime(path.parent, (LONG_AGO, LONG_AGO))
    return path


def test_one_file(tmp_path):
    data = sections.build(csv(tmp_path / "ant_seed3" / "progress.csv"))
    assert data.title.endswith("(read from csv)")
    assert data.sentence.startswith("Learned: ")
    assert data.budget[0].status == "ended"
    assert "no settings were found with the logs" in data.not_known
    assert data.config.rows == []
    titles = [s.title for s in data.sections]
    assert titles[:3] == ["Run info", "Health", "Curves"]
    shown = [row[0] for s in data.sections if s.title == "All other metrics" for row in s.tables[0].rows]
    assert shown == ["foreign/made/gap"]
    small = next(s for s in data.sections if s.title == "Curves").figures
    assert [f.log_y for f in small if "gap" in f.metric] == ["yes"]


def test_seeds_by_name_are_one_group(tmp_path):
    for seed in range(3):
        csv(tmp_path / f"ant_seed{seed}" / "progress.csv", seed=seed)
    data = sections.build(tmp_path)
    assert [o.seeds for o in data.outcome] == [3]
    assert data.curve.groups[0].band is None, "no interval under five seeds"
    assert [each.seed for each in data.outcome[0].each] == ["0", "1", "2"]


def test_pages_are_not_written_beside_strangers_logs(tmp_path, monkeypatch, capsys):
    file = csv(tmp_path / "logs" / "progress.csv")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert report.main([str(file)]) == 0
    assert sorted(p.name for p in here.iterdir()) == ["progress-report.html", "progress-report.md"]
    assert [p.name for p in file.parent.iterdir()] == ["progress.csv"]
    assert "Learned" in capsys.readouterr().out


def test_neighbours_of_a_file_are_nobodys_business(tmp_path):
    file = csv(tmp_path / "logs" / "progress.csv")
    (tmp_path / "logs" / "tax-return.pdf").write_text("x")
    data = sections.build(file)
    assert "tax-return" not in render.html(data) + render.markdown(data)
    artefacts = next(s for s in data.sections if s.title == "Artefacts")
    assert [row[0] for row in artefacts.tables[0].rows] == ["progress.csv"]


# ---- What a foreign run is judged by


def history(tmp_path, axis="episodes", **columns):
    run = History(tmp_path, source="mytool")
    for name, values in columns.items():
        put(run, name.replace("__", "/"), range(len(values)), values, axis)
    return run


@pytest.mark.parametrize(
    ("names", "metric", "kind"),
    [
        (("loss", "rollout__ep_rew_mean"), "foreign/rollout/ep_rew_mean", "learned"),
        (("reward_std", "mean_reward"), "foreign/mean_reward", "learned"),
        (("loss", "accuracy"), "foreign/loss", "unjudged"),
        ((), "", "none"),
    ],
)
def test_a_return_by_its_name(tmp_path, names, metric, kind):
    judged = verdict.verdict_of(
        history(tmp_path, **{name: [float(i + 3 * (i % 2)) for i in range(50)] for name in names})
    )
    assert (judged.metric, judged.kind) == (metric, kind)


def test_a_long_curve_is_judged_by_its_ends_not_by_single_rows(tmp_path):
    draw = np.random.default_rng(1)
    noisy = [i + 60 * draw.normal() for i in range(400)]
    judged = verdict.verdict_of(history(tmp_path, score=noisy))
    assert (judged.kind, len(judged.points), judged.points[-1].n) == ("learned", 10, 40)
    assert verdict.verdict_of(history(tmp_path, score=[*noisy, math.nan])).kind == "broken"
    flat = [60 * draw.normal() for _ in range(400)]
    assert verdict.verdict_of(history(tmp_path, score=flat)).kind in ("flat", "unclear")


def test_other_axes_keep_their_name(tmp_path):
    groups = grouping.grouped([grouping.make_run(history(tmp_path, score=[1.0, 2.0]), "a_seed4", now=2e9)])
    examined = PageHealth(False, [], [])
    data = sections.page(tmp_path, groups, examined, None, False)
    assert (data.curve.axis, data.budget[0].steps) == ("episodes", "1 episodes")
    assert groups[0].runs[0].seed == 4
    assert render.html(data).startswith("<!doctype html>")


def test_an_unjudged_run_says_so(tmp_path):
    judged = verdict.verdict_of(history(tmp_path, loss=[3.0, 0.1]))
    assert (judged.metric, sentences.sentence(judged)) == ("foreign/loss", "Not judged, no return was logged")
    assert math.isnan(judged.final)


def test_a_clock_is_nobodys_outcome(tmp_path):
    ticks = [50.0 * i for i in range(1, 41)]
    run = history(tmp_path, t=ticks, L=[3.0 - 0.1 * (i % 7) for i in range(40)])
    judged = verdict.verdict_of(run)
    assert (judged.metric, judged.kind, judged.points) == ("foreign/L", "unjudged", [])
    group = grouping.grouped([grouping.make_run(run, "odd", now=2e9)])
    data = sections.page(tmp_path, group, PageHealth(False, [], []), None, False)
    assert data.sentence == "Not judged, no return was logged."
    assert all(math.isnan(value) for outcome in data.outcome for value in outcome.values)


def test_a_table_of_runs_has_no_outcome_where_none_was_judged(tmp_path):
    rows = "\n".join(f"{50 * i},{3 - 0.1 * (i % 7)}" for i in range(1, 41))
    (tmp_path / "log.csv").write_text(f"t,L\n{rows}\n", encoding="utf-8")
    shown = repr(relab.load(tmp_path))
    assert "| none |" in shown
    assert "1925" not in shown  # the mean of the last tenth of t


def test_markdown_says_of_each_config_what_its_number_is(tmp_path):
    runs = []
    for name, metric in (("a", "return/mean_100"), ("b", "eval/return_det")):
        one = History(tmp_path / name, config={"env": {"name": "CartPole-v1"}, "algo": {"name": name}}, source="sb3")
        one.columns[metric] = Column(np.arange(0, 6000, 1000), np.array([10.0, 20.0, 31.0, 40.0, 52.0, 60.0]))
        runs.append(grouping.make_run(one, name, now=2e9))
    data = sections.page(tmp_path, grouping.grouped(runs), PageHealth(False, [], []), None, False)
    table = render.markdown(data).split("## Outcome")[1].split("\n\n")[1].splitlines()
    assert table[0].startswith("| config | outcome | how sure |")
    assert "(training return, mean of 100 episodes)" in table[2]
    assert "(evaluated return)" in table[3]
