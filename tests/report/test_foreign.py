"""Is another tool's run reported as well as relab's own, without config, meta or relab's names?"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from relab.commands import report
from relab.formats.read.source import put
from relab.record.history import History
from relab.report import render, sections
from relab.report.parts import Examined
from relab.runs import grouping, verdict

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
    assert data["title"].endswith("(read from csv)")
    assert data["sentence"].startswith("Learned: ")
    assert data["budget"][0].status == "ended"
    assert "no settings were found with the logs" in data["not_known"]
    assert data["config"].rows == []
    titles = [s.title for s in data["sections"]]
    assert titles[:3] == ["Run info", "Health", "Curves"]
    shown = [row[0] for s in data["sections"] if s.title == "All other metrics" for row in s.tables[0].rows]
    assert shown == ["foreign/made/gap"]
    small = next(s for s in data["sections"] if s.title == "Curves").figures
    assert [f.log_y for f in small if "gap" in f.metric] == ["yes"]


def test_seeds_by_name_are_one_group(tmp_path):
    for seed in range(3):
        csv(tmp_path / f"ant_seed{seed}" / "progress.csv", seed=seed)
    data = sections.build(tmp_path)
    assert [o.seeds for o in data["outcome"]] == [3]
    assert data["curve"].groups[0].band.label.endswith("n = 3 seeds")
    assert [each.seed for each in data["outcome"][0].each] == ["0", "1", "2"]


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
    artefacts = next(s for s in data["sections"] if s.title == "Artefacts")
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
    judged = verdict.verdict_of(history(tmp_path, **{name: [float(i) for i in range(50)] for name in names}))
    assert (judged.metric, judged.kind) == (metric, kind)


def test_a_long_curve_is_judged_by_its_ends_not_by_single_rows(tmp_path):
    draw = np.random.default_rng(1)
    noisy = [i + 60 * draw.normal() for i in range(400)]
    judged = verdict.verdict_of(history(tmp_path, score=noisy))
    assert (judged.kind, len(judged.points), judged.points[-1].n) == ("learned", verdict.BINS, 20)
    assert verdict.verdict_of(history(tmp_path, score=[*noisy, math.nan])).kind == "broken"
    flat = [60 * draw.normal() for _ in range(400)]
    assert verdict.verdict_of(history(tmp_path, score=flat)).kind == "not"


def test_other_axes_keep_their_name(tmp_path):
    groups = grouping.grouped([grouping.make_run(history(tmp_path, score=[1.0, 2.0]), "a_seed4", now=2e9)])
    examined = Examined(False, [], [])
    data = sections.page(tmp_path, groups, examined, None, False)
    assert (data["curve"].axis, data["budget"][0].steps) == ("episodes", "1 episodes")
    assert groups[0].runs[0].seed == 4
    assert render.html(data).startswith("<!doctype html>")


def test_an_unjudged_run_says_so(tmp_path):
    sentence = verdict.sentence(verdict.verdict_of(history(tmp_path, loss=[3.0, 0.1])))
    assert sentence == "Not judged, no return was logged: foreign/loss 3 → 0.1"
