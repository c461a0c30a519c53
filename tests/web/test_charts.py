"""Do charts hold the rows of the log, and bands those of the report? Stretches, axes, marks and files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import made_up
from relab.base.jsonl import encode
from relab.report import curves
from relab.runs import grouping
from relab.web import charts
from web.conftest import Served


def with_rows(folder: Path, rows: int, seed: int) -> np.ndarray:
    """A run with so many rows of training, at steps that all seeds share -> the values."""
    values = np.random.default_rng(seed).normal(size=rows).cumsum()
    made_up.run(folder, 100.0, seed=seed)
    with open(folder / "metrics.jsonl", "ab") as file:
        for i, value in enumerate(values):
            file.write(
                encode({"step": 10 * (i + 1), "axis": "agent_steps", "policy/kl": float(value), "data/updates": i + 1})
            )
    with open(folder / "timing.jsonl", "ab") as file:
        for i in range(rows):
            file.write(encode({"step": 10 * (i + 1), "axis": "agent_steps", "time/elapsed_s": 0.5 * (i + 1)}))
    return values


@pytest.fixture
def rows(tmp_path: Path, shelf_of: Callable[..., Served]) -> tuple[Served, list[np.ndarray]]:
    values = [with_rows(tmp_path / f"long-s{seed}", 400, seed) for seed in range(5)]
    return shelf_of(), values


def test_every_row_is_there_where_it_fits(rows: tuple[Served, list[np.ndarray]]) -> None:
    served, values = rows
    body = served.get(f"/api/curve?g={served.bench.shelf.every()[0].key}&metric=policy/kl&width=900").json()
    assert [line["exact"] for line in body["lines"]] == [True] * 5
    for line, expected in zip(sorted(body["lines"], key=lambda line: line["run"]), values, strict=True):
        assert line["y"] == expected.tolist()
        assert line["x"] == [10.0 * (i + 1) for i in range(400)]


def test_zoomed_out_the_lowest_and_highest_of_each_column(rows: tuple[Served, list[np.ndarray]]) -> None:
    served, values = rows
    body = served.get("/api/curve?r=long-s0&metric=policy/kl&width=50").json()
    (line,) = body["lines"]
    assert not line["exact"]
    assert line["rows"] == 400
    assert (min(line["y"]), max(line["y"])) == (values[0].min(), values[0].max())
    assert set(line["y"]) <= set(values[0].tolist())


def test_the_band_is_the_reports_at_its_steps(rows: tuple[Served, list[np.ndarray]]) -> None:
    served, _ = rows
    body = served.get(f"/api/curve?g={served.bench.shelf.every()[0].key}&metric=policy/kl").json()
    (group,) = grouping.load(served.root)
    band = curves.curve([group], "policy/kl").groups[0].band
    assert band is not None
    known = {x: (m, low, high) for x, m, low, high in zip(band.x, band.mean, band.low, band.high)}
    (shown,) = body["bands"]
    assert shown["label"] == band.label
    assert len(shown["x"]) == charts.BAND_POINTS
    for x, *ends in zip(shown["x"], shown["mean"], shown["low"], shown["high"], strict=True):
        assert tuple(ends) == known[x]


@pytest.mark.parametrize(("x", "last"), [("steps", 4000.0), ("updates", 400.0), ("time", 200.0), ("nonsense", 4000.0)])
def test_axes(rows: tuple[Served, list[np.ndarray]], x: str, last: float) -> None:
    served, values = rows
    body = served.get(f"/api/curve?r=long-s1&metric=policy/kl&x={x}").json()
    assert body["lines"][0]["x"][-1] == pytest.approx(last)
    assert body["lines"][0]["y"] == values[1].tolist()
    assert {axis for axis, _ in body["axes"]} == {"steps", "updates", "time"}


def test_smoothing_comes_beside_the_rows_and_changes_none(rows: tuple[Served, list[np.ndarray]]) -> None:
    served, values = rows
    body = served.get("/api/curve?r=long-s2&metric=policy/kl&smooth=20").json()
    assert body["lines"][0]["y"] == values[2].tolist()
    assert len(body["lines"][0]["smooth"]) == 400


def test_the_table_of_a_chart_holds_every_row_of_its_stretch(rows: tuple[Served, list[np.ndarray]]) -> None:
    served, values = rows
    text = served.get("/api/curve.csv?r=long-s0&metric=policy/kl&width=50&from=1000&to=2000").text
    lines = list(csv.reader(io.StringIO(text)))[1:]
    assert [float(line[-1]) for line in lines] == values[0][98:201].tolist()


@pytest.mark.parametrize("bad", ["from=much", "to=inf", "width=nan", "g=nothing", "", "metric=nothing&r=long-s0"])
def test_odd_questions_have_an_answer(rows: tuple[Served, list[np.ndarray]], bad: str) -> None:
    answer = rows[0].get(f"/api/curve?{bad}")
    assert answer.status_code in (200, 400, 404)
    assert answer.json()


def test_events_are_marked_where_they_happened(rows: tuple[Served, list[np.ndarray]]) -> None:
    served, _ = rows
    with open(served.root / "long-s0" / "events.jsonl", "ab") as file:
        file.write(encode({"step": 300, "kind": "stage", "name": "second", "time": "2026-11-16T03:00:00.000Z"}))
    marks = served.get("/api/curve?r=long-s0&metric=policy/kl&x=updates").json()["marks"]
    assert {"x": 30.0, "kind": "stage", "text": "stage second"}.items() <= marks[-1].items()


def test_a_run_that_does_not_change_is_read_once_and_room_is_bounded(rows: tuple[Served, list[np.ndarray]]) -> None:
    served, _ = rows
    shelf = served.bench.shelf
    listed = shelf.listed("long-s0")
    assert shelf.run(listed) is shelf.run(listed)
    shelf.most = 1
    for seed in range(5):
        shelf.run(shelf.listed(f"long-s{seed}"))
    assert len(shelf._kept) == 1
