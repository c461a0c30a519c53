"""Do a run's rows become the right columns, and is all that could not be read said?"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from relab.base.jsonl import RecordError
from relab.record import history
from relab.record.run_folder import Record
from relab.runs.verdict import verdict_of

CONFIG = {"algo": {"name": "ppo", "lr": 3e-4}, "seed": 0}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    with Record.create(path, CONFIG, {"seed": "defaults"}, {"intent": "x"}) as record:
        record.append_metrics(10, {"return/mean": 1.0, "return/std": 0.5})
        record.append_metrics(20, {"return/mean": math.nan, "return/std": math.inf})
        record.append_metrics(30, {"eval/return_det": 7})
        record.append_metrics(40, {"return/std": None, "return/mean": 4.0})
        record.append_metrics(50, {"return/mean": 5.0, "return/std": 2.5, "return/success": True})
        record.append_timing(50, {"time/sps": 1e5})
        record.append_eval({"step": 30, "mode": "det", "noise": 0.0, "episodes": []})
        record.append_event("start", 0)
        record.append_probe({"step": 30, "probe": "p", "value": 1.0, "noise": 0.1, "n": 5})
    return path


def snapshot(folder):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


def test_rows_become_columns(folder):
    before = snapshot(folder)
    run = history.load(folder)
    assert run.problems == []
    steps, values = run.column("return/mean")
    assert (steps.dtype, values.dtype) == (np.int64, np.float64)
    assert steps.tolist() == [10, 20, 40, 50]
    np.testing.assert_array_equal(values, [1.0, math.nan, 4.0, 5.0])
    assert run.column("return/std").steps.tolist() == [10, 20, 50], "null is missing, not NaN"
    assert run.column("return/std").values.tolist() == [0.5, math.inf, 2.5]
    assert run.column("return/success").values.tolist() == [1.0]
    assert [c.tolist() for c in run.columns["eval/return_det"]] == [[30], [7.0]]
    assert run.columns["time/sps"].values.tolist() == [1e5]
    assert run.axes["return/mean"] == "agent_steps"
    assert snapshot(folder) == before, "reading never writes"


def test_the_rest_comes_along(folder):
    run = history.load(folder)
    assert (run.config, run.provenance, run.meta["intent"]) == (CONFIG, {"seed": "defaults"}, "x")
    assert (run.evals[0]["mode"], run.events[0]["kind"], run.probes[0]["n"]) == ("det", "start", 5)


def test_a_missing_column_names_the_nearest(folder):
    with pytest.raises(KeyError, match=r"no metric `return/meen`; the nearest of its 5 is `return/mean`"):
        history.load(folder).column("return/meen")


def test_what_cannot_be_read_is_listed(folder):
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(b'{"axis":"agent_steps","return/mean":1}\n{"step":1.5,"return/mean":1}\n')
        file.write(b'{"step":60,"return/mean":"high","return/std":[1,2],"return/max":3}\n\x00\xff\n{"step":70,"ret')
    (folder / "meta.json").write_text("{broken")
    (folder / "config.yaml").write_text("a: 1\na: 2\n")
    (folder / "evals.jsonl").unlink()
    run = history.load(folder)
    text = "\n".join(f"{p.file}:{p.line} {p.message}" for p in run.problems)
    for part in (
        "meta.json:None",
        "config.yaml:2",
        "row 6 needs an integer step, but has None",
        "row 7 needs an integer step, but has 1.5",
        "`return/mean` is no number in 1 row, first 'high'",
        "`return/std` is no number in 1 row, first [1, 2]",
        "metrics.jsonl:9 not a JSON object",
        "metrics.jsonl:10 the last line is truncated",
        "evals.jsonl:None the file is missing",
    ):
        assert part in text
    assert len(run.problems) == 9
    assert run.column("return/mean").steps.tolist() == [10, 20, 40, 50]
    assert run.column("return/max").values.tolist() == [3.0]
    assert run.meta == {}


def test_a_file_without_permission_is_a_problem_not_a_crash(folder, monkeypatch):
    (folder / "events.jsonl").unlink()
    (folder / "events.jsonl").mkdir()
    run = history.load(folder)
    assert [p.file for p in run.problems] == ["events.jsonl"]
    assert run.column("return/mean").steps.size == 4


def test_links_out_of_the_folder_are_not_followed(folder, tmp_path):
    (tmp_path / "secret").write_text('{"step":1,"axis":"agent_steps","return/mean":99}\n')
    (folder / "metrics.jsonl").unlink()
    (folder / "metrics.jsonl").symlink_to(tmp_path / "secret")
    run = history.load(folder)
    assert "return/mean" not in run.columns
    assert "must lie inside" in run.problems[0].message


def test_a_folder_without_a_run_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RecordError, match="no run folder"):
            history.load(path)


def test_metrics_alone_are_a_run(folder):
    for name in os.listdir(folder):
        if name != "metrics.jsonl":
            (folder / name).unlink()
    run = history.load(folder)
    assert run.column("return/mean").steps.size == 4
    assert {p.file for p in run.problems} >= {"meta.json", "config.yaml", "events.jsonl"}


def test_many_values_are_exact(tmp_path):
    """Every value of a longer run, against the numbers that were written."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 20)) * 10.0 ** rng.integers(-300, 300, (500, 20))
    with Record.create(tmp_path / "run", CONFIG, {}, {}) as record:
        for step, row in enumerate(table):
            record.append_metrics(step, {f"env/{i}": x for i, x in enumerate(row)})
    run = history.load(tmp_path / "run")
    for i in range(20):
        np.testing.assert_array_equal(run.columns[f"env/{i}"].values, table[:, i])
        np.testing.assert_array_equal(run.columns[f"env/{i}"].steps, np.arange(500))


def test_evaluations_become_columns(tmp_path):
    rows = [
        {"step": 0, "mode": "det", "noise": 1.0, "episodes": [episode(1.0), episode(3.0)]},
        {
            "step": 0,
            "mode": "sampled",
            "noise": 1.0,
            "episodes": [episode(5.0, success=True), episode(0.0, end="unused")],
        },
        {"step": 10, "mode": "det", "noise": 1.0, "episodes": [episode(7.0), episode("NaN", end="cap")]},
        {"step": 20, "mode": "greedy", "episodes": []},
        {"step": 20, "episodes": "none"},
    ]
    (tmp_path / "metrics.jsonl").write_text("")
    (tmp_path / "evals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = history.load(tmp_path)
    steps, values = run.column("eval/return_det")
    assert steps.tolist() == [0, 10]
    assert values[0] == 2.0
    assert np.isnan(values[1]), "an episode that never ended has no return, and a mean without it would be too short"
    assert run.column("eval/std_det").values[0] == 1.0
    assert run.column("eval/return_sampled").values.tolist() == [5.0]
    assert run.column("eval/success_sampled").values.tolist() == [1.0]
    assert "eval/success_det" not in run.columns
    assert [(p.file, p.line) for p in run.problems if "no evaluation" in p.message] == [
        ("evals.jsonl", 4),
        ("evals.jsonl", 5),
    ]


def episode(ret, success=None, end="fell"):
    return {"seed": 1, "return": ret, "length": 4, "success": success, "end": end}


def test_lists_where_numbers_should_be_are_reported_and_left_out(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "policy/kl": [1.0]}\n{"step": 2, "policy/kl": [2.0]}\n')
    run = history.load(tmp_path)
    assert "policy/kl" not in run.columns
    assert any("`policy/kl` is no number in 2 rows" in problem.message for problem in run.problems)


# ---- Rows in which no episode ended


def trained(**columns) -> history.History:
    """A run of twenty rows whose return is NaN in the last ten, beside what else it logged."""
    returns = np.r_[np.arange(10.0), np.full(10, math.nan)]
    named = {"return/mean": returns} | {name.replace("_", "/", 1): np.asarray(x) for name, x in columns.items()}
    steps = np.arange(20, dtype=np.int64) * 100
    return history.History(Path("x"), {name: history.Column(steps, x) for name, x in named.items()})


FINE, TORN = np.ones(20), np.r_[np.ones(15), np.full(5, math.nan)]
COUNTS = np.r_[np.ones(10), np.zeros(10)]


@pytest.mark.parametrize(
    ("columns", "diverged"),
    [
        ({"return_episodes": COUNTS}, False),
        ({"return_episodes": COUNTS, "value_loss": FINE}, False),
        ({"value_loss": FINE}, False),
        ({"return_episodes": COUNTS, "value_loss": TORN}, True),
        ({"value_loss": FINE, "policy_loss": TORN}, True),
        ({"return_episodes": FINE, "value_loss": FINE}, True),  # episodes ended, and earned no number
        ({"policy_entropy": FINE}, False),  # the policy is sound at the end
        ({"policy_entropy": TORN}, True),
        ({}, True),  # nothing says why
    ],
)
def test_a_return_without_episodes_is_no_divergence_and_a_loss_that_is_nan_is(columns, diverged):
    run = trained(**columns)
    values = history.measured(run, "return/mean").values
    assert bool(history.flaw(values, history.end_rows(np.arange(len(values))))) == diverged
    assert (verdict_of(run).kind == "broken") == diverged
    assert len(run.columns["return/mean"].values) == 20, "the record itself stays as it is"


def test_only_nan_and_only_returns_of_training_may_be_gaps():
    run = trained(value_loss=FINE, eval_return=np.full(20, math.nan))
    assert len(history.measured(run, "eval/return").values) == 20
    run.columns["return/mean"].values[-1] = math.inf
    assert history.flaw(history.measured(run, "return/mean").values, 5) == "1 of its last 5 values not finite"
