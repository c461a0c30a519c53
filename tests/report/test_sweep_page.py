"""Does a sweep's page show what sweep.json holds, and nothing that a stranger's file could do to it?"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from relab import cli
from relab.report import content, render, sections, svg_sweep, sweep_page
from report.made import write_run


def row(a, b, mean, **more) -> dict:
    values = [{"seed": s, "value": mean, "run": f"r{s}", "reached": True, "note": ""} for s in range(5)]
    return {"trial": f"a{a}_b{b}", "point": {"a": a, "b": b}, "n": 5, "planned": 5, "mean": mean, "low": mean - 1,
            "high": mean + 1, "values": values, "dropped": None, **more}  # fmt: skip


def levels(values, means) -> list[dict]:
    return [{"level": v, "mean": m, "low": m - 1, "high": m + 1} for v, m in zip(values, means, strict=True)]


def body(**more) -> dict:
    widest = {"from": 1, "to": 2, "delta": 20.0, "low": 18.0, "high": 22.0}
    axis = {"widest": widest, "most": 22.0, "noise": 2.0, "noise_from": "seeds", "bound": 2.0, "verdict": "moves"}
    trials = [row(1, "x", 10.0), row(1, "<b>", 11.0), row(2, "x", 30.0), row(2, "<b>", math.nan, n=0, values=[])]
    beside = [{"trial": t["trial"], "delta": -1.0, "low": -2.0, "high": -0.5, "n": [5, 5], "verdict": "worse"}
              for t in trials if t["trial"] != "a2_bx"]  # fmt: skip
    return {
        "question": "Which?", "text": "Best of 4.", "notes": ["a note"], "metric": "score", "at": "final",
        "direction": "higher", "axes": {"a": [1, 2], "b": ["x", "<b>"]}, "binned": [], "trials": trials,
        "effects": [{"axis": "a", "levels": levels([1, 2], [10.5, 30.0]), **axis},
                    {"axis": "b", "levels": levels(["x", "<b>"], [20.0, 21.0]), **axis, "verdict": "inert"}],
        "interactions": [], "incomplete": [{"trial": "a2_b<b>", "n": 0, "planned": 5, "why": ["not run"]}],
        "differ": {"level": 0.99, "pairs": 6, "against_best": beside}, "winner": None, **more,
    }  # fmt: skip


def test_the_map_has_a_field_for_each_cell_and_says_which_is_empty():
    heat = sweep_page.page(body()).heat
    assert (heat.x, heat.y) == ("a", "b")
    assert heat.means[0] == [10.0, 30.0]
    assert math.isnan(heat.means[1][1])
    drawn = svg_sweep.heat(heat)
    assert drawn.count("<rect") == 4
    assert drawn.count("no run") == 1
    assert drawn.count('stroke-width="2.5"') == 1, "one best field"
    assert "&lt;b&gt;" in drawn
    assert "<b>" not in drawn


def test_lower_is_darker_where_lower_is_better():
    darkest = f'fill-opacity="{svg_sweep.DARKEST:.2f}"'
    shades = [svg_sweep.heat(sweep_page.page(body(direction=d)).heat).index(darkest) for d in ("higher", "lower")]
    assert shades[0] != shades[1]


def test_each_axis_is_a_panel_with_its_verdict():
    drawn = svg_sweep.effects(sweep_page.page(body()).effects, "score")
    assert "a: moves" in drawn
    assert "b: inert" in drawn
    assert drawn.count("<circle") == 4


def test_tables_hold_every_trial_best_first():
    page = sweep_page.page(body(winner=None))
    trials = page.tables[-1]
    assert [r[0] for r in trials.rows][-1] == "2", "what has no number is last"
    assert "hold together over all 6 pairs" in trials.caption
    assert ["a2_b<b>", "0 of 5", "not run"] in page.tables[-2].rows


@pytest.mark.parametrize(
    "text", ["{}", "[1]", '{"trials": 3}', '{"trials": [{}]}', "{", '{"trials": [1], "metric": 2}']
)
def test_a_file_that_is_no_sweep_is_no_reason_to_fail(text, tmp_path: Path):
    (tmp_path / "sweep.json").write_text(text)
    assert sweep_page.build(tmp_path) is None


def complete(**more) -> dict:
    """Without a trial that has no number."""
    return {**body(), "trials": body()["trials"][:3], **more}


def with_effect(**more) -> dict:
    first, *others = complete()["effects"]
    return complete(effects=[{**first, **more}, *others])


DAMAGED = {
    "metric": complete(metric=5), "metrics": complete(metric=["score"]), "axes": complete(axes=[1]),
    "note": complete(notes=[1]), "axis": with_effect(axis=5), "verdict": with_effect(verdict=None),
    "mean": with_effect(levels=[*levels([1], [10.5]), {"level": 2, "mean": "x", "low": 1, "high": 2}]),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_sweep_with_other_things_than_relab_writes_leaves_its_part_out(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(Path("sw/runs/a"), [10.0, 20.0], 0)
    Path("sw/sweep.json").write_text(json.dumps(complete()))
    assert sweep_page.build(Path("sw")) is not None
    Path("sw/sweep.json").write_text(json.dumps(DAMAGED[name]))
    assert sweep_page.build(Path("sw")) is None
    assert cli.main(["report", "sw"]) == 0
    assert Path("sw/report.html").is_file()


def test_the_folder_of_its_runs_finds_it_too(tmp_path: Path):
    (tmp_path / "runs").mkdir()
    sweep = body()
    sweep["trials"] = sweep["trials"][:3]
    (tmp_path / "sweep.json").write_text(json.dumps(sweep))
    assert sweep_page.build(tmp_path / "runs").text == "Which? Best of 4."


FRESH = "Best of 4 trials: lr=0.01, return 496.3 on the 5 seeds that chose it and 499.1 [492.9, 500] on 5 fresh ones: "


def swept(folder: Path, text: str, **more: object) -> Path:
    for lr in (0.1, 0.2):
        for seed in range(5):
            config = {"algo": {"name": "ppo", "lr": lr}}
            write_run(folder / "runs" / f"{lr}-s{seed}", (10.0, 400.0), seed=seed, config=config)
    (folder / sweep_page.FILE).write_text(json.dumps(body(text=text, **more)).replace("NaN", '"NaN"'))
    return folder


def test_the_first_sentence_is_about_fresh_seeds_and_the_winner_is_not_pooled(tmp_path):
    folder = swept(tmp_path / "sweep", FRESH + "the choice flattered it by 3. 1 of 3 others are clearly worse.")
    data = sections.build(folder, content.content([folder]))
    assert data.first.sentence == "Best of 4 trials: lr=0.01, return 499.1 [492.9, 500] on 5 fresh seeds."
    assert data.first.detail == "1 of 3 others are clearly worse."
    assert "Comparison" not in [part.title for part in data.sections], "it would pool them with those that chose it"
    page = render.html(data)
    assert page.count('<figure class="shots">') == 2, "map and axes, each for wide and narrow pages"
    assert "What each axis does</summary>" in page


def seeds(lr: float, some: range) -> dict:
    values = [{"seed": s, "value": 400.0, "run": f"{lr}-s{s}", "reached": True, "note": ""} for s in some]
    return {"n": len(values), "planned": len(values), "mean": 400.0, "low": 390.0, "high": 410.0, "values": values}


def test_curve_and_notebook_entry_count_the_winner_by_its_fresh_seeds(tmp_path, monkeypatch):
    """Both had pooled the seeds that chose it; the entry ended in an error, since the page names fewer seeds."""
    bias = {"delta": 0.0, "low": -1.0, "high": 1.0, "n": [2, 3]}
    best = {"trial": "a2_bx", "point": {"a": 2, "b": "x"}, "bias": bias, "text": "",
            "selection": seeds(0.2, range(2)), "fresh": seeds(0.2, range(2, 5))}  # fmt: skip
    folder = swept(tmp_path / "sweep", FRESH + "it held.", winner=best)
    groups = sections.build(folder, content.content([folder])).curve.groups
    assert [(group.label, len(group.lines)) for group in groups] == [("0.1", 5), ("0.2, fresh seeds", 3)]
    monkeypatch.chdir(tmp_path)
    assert cli.main(["note", str(folder), "--into", "log.md"]) == 0
    assert "| 0.2, fresh seeds | 3 |" in Path("log.md").read_text()
