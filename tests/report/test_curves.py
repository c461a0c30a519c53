"""Does a figure's data hold every run, on every axis they share, with the levels and onsets that are known?"""

from __future__ import annotations

import math

import pytest

from relab.health.rule import Finding
from relab.record.run_folder import Record
from relab.report import curves
from relab.report.parts import plain
from relab.runs import grouping
from report.made import write_run

UP = (10.0, 60.0, 150.0, 300.0, 400.0)


def of(path, *options, **named):
    return curves.curve(grouping.load(path), *options, **named)


def test_time_and_updates_stand_beside_the_steps(tmp_path):
    folder = write_run(tmp_path / "run", UP)  # two seconds a row
    with Record.open(folder) as record:
        record.append_metrics(4000, {"data/updates": 80})
    data = of(folder)
    (line,) = data.groups[0].lines
    assert data.xs == ["steps", "updates", "time"]
    assert line.time == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert line.updates == [0.0, 20.0, 40.0, 60.0, 80.0]


def test_an_axis_that_one_run_lacks_is_not_offered(tmp_path):
    write_run(tmp_path / "a", UP)
    (write_run(tmp_path / "b", UP, seed=1) / "timing.jsonl").unlink()
    assert of(tmp_path).xs == ["steps"]


def test_the_band_stands_at_the_mean_time(tmp_path):
    for seed in range(5):
        write_run(tmp_path / f"s{seed}", UP, seed=seed)
    band = of(tmp_path).groups[0].band
    assert band.time == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert len(band.time) == len(band.x) == len(band.mean)


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        ("optim/grad_norm", (0.1, 1.0, 50.0), "yes"),
        ("optim/grad_norm", (0.1, 1.0, 9.0), "no"),  # under two decades
        ("optim/grad_norm", (0.0, 1.0, 900.0), "no"),  # zero has no logarithm
        ("return/mean", (0.1, 1.0, 50.0), "offer"),  # returns compare by difference
    ],
)
def test_when_a_log_axis_suits(tmp_path, metric, values, expected):
    with Record.create(tmp_path / "run", {"seed": 0}, {}, {}) as record:
        for i, value in enumerate(values):
            record.append_metrics(i, {metric: value})
    assert of(tmp_path / "run", metric).log_y == expected


def test_levels_that_are_known(tmp_path):
    spec = {"random": {"return_mean": 20.0, "return_std": 8.0, "n": 100}, "reward_high": 1.0, "horizon": 500}
    folder = write_run(tmp_path / "run", UP, meta={"spec": spec}, config={"eval": {"stop_at": 475}})
    assert [(x.label, x.value) for x in of(folder).levels] == [
        ("random", 20.0), ("solved", 475.0), ("ceiling", 500.0),
    ]  # fmt: skip
    assert of(folder, "policy/entropy").levels == [], "returns on another metric's axis say nothing"


def dated(slug, run, step):
    return Finding("m", slug=slug, run=run, onset=step)


def test_the_onset_is_the_earliest_of_the_lead_finding(tmp_path):
    for seed in range(2):
        write_run(tmp_path / f"s{seed}", UP, seed=seed)
    findings = [dated("no-date", "s0", None), dated("lead", "s0", 3000), dated("lead", "s1", 2000), dated("b", "s0", 0)]
    assert of(tmp_path, "", findings).onset == curves.Onset(2000, "lead (s1)", time=4.0)
    alone = of(tmp_path / "s0", "", findings[:2]).onset
    assert alone == curves.Onset(3000, "lead", time=6.0)
    assert of(tmp_path, "", findings[:1]).onset is None


def test_the_parent_is_the_reference(tmp_path):
    from relab.report import sections

    write_run(tmp_path / "first", (10.0, 90.0))
    folder = write_run(tmp_path / "second", UP, meta={"parent": "first"})
    assert sections.build(folder).curve.reference.y == [10.0, 90.0]
    assert sections.build(tmp_path).curve.reference is None, "it is in the figure already"


def test_nan_and_infinity_stay(tmp_path):
    (line,) = of(write_run(tmp_path / "run", (1.0, math.nan, 3.0))).groups[0].lines
    assert [math.isfinite(y) for y in line.y] == [True, False, True]


def test_as_json_an_axis_that_is_not_known_is_left_out_and_a_seed_that_is_not_known_is_null():
    line = curves.Line("run", None, [0.0], [1.0], time=[2.0])
    assert plain({"lines": (line,)}) == {
        "lines": [{"name": "run", "seed": None, "x": [0.0], "y": [1.0], "time": [2.0]}]
    }


@pytest.mark.parametrize(("kinds", "grey"), [(("discrete", "discrete"), True), (("discrete", "box"), False)])
def test_healthy_runs_are_grey_only_where_they_lie_in_one_place_for_all(tmp_path, kinds, grey):
    """The entropy of discrete actions stood behind that of a Gaussian as what is healthy."""
    for seed, kind in enumerate(kinds):
        spec = {"env": f"task{seed}-v1", "action": {"kind": kind, "n": 2, "dim": 1}}
        config = {"env": {"name": f"task{seed}-v1"}}
        write_run(tmp_path / f"run{seed}", [10.0 * i for i in range(9)], meta={"spec": spec}, config=config)
    figure = curves.curve(grouping.load(tmp_path), "policy/entropy")
    assert len(figure.groups) == 2
    assert bool(figure.healthy) == grey
