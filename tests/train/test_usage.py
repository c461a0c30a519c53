"""Does a run tell what it uses: cores, memory, seconds by part, and two speeds that are not the same?"""

from __future__ import annotations

import json

import pytest

from relab.train.usage import Usage
from small_runs import run

SPENT = {"collect_s": 2.0, "update_s": 1.0, "log_s": 0.5, "eval_s": 1.5, "save_s": 0.0}
WITHIN = {"env_s": 0.5, "act_s": 1.2, "copy_s": 0.3}


def test_training_and_end_to_end_are_kept_apart():
    row = Usage().row(600, SPENT, WITHIN, "cpu")
    assert row["time/sps_train"] == pytest.approx(200.0)  # of three seconds; time/sps counts all five
    assert (row["time/env_s"], row["time/act_s"], row["time/copy_s"]) == (0.5, 1.2, 0.3)
    assert 0 < row["time/memory_share"] < 1
    assert row["time/cores"] >= 0
    assert "time/gpu_mb" not in row


def test_the_last_line_says_where_the_time_went(monkeypatch):
    usage = Usage(began=0.0)
    monkeypatch.setattr("relab.train.usage.time.perf_counter", lambda: 10.0)
    usage.row(600, SPENT, WITHIN, "cpu")
    line = usage.line()
    assert line.startswith("time: evaluation 15%, acting 12%, learning 10%, ")
    assert "collecting" not in line  # its parts are known
    assert "other 50%" in line  # of ten seconds five are of no part
    assert line.endswith("200/s while training, 60/s in all")


def test_evaluations_outside_of_an_iteration_and_the_profiler_are_named(monkeypatch):
    clock = iter([0.0, 4.5])
    usage = Usage(began=0.0)
    monkeypatch.setattr("relab.train.usage.time.perf_counter", lambda: next(clock))
    with usage.timed("eval_s"):
        pass
    monkeypatch.setattr("relab.train.usage.time.perf_counter", lambda: 10.0)
    usage.row(600, SPENT | {"profile_s": 0.5}, {}, "cpu")
    assert usage.line().startswith("time: evaluation 60%, collecting 20%, learning 10%, ")
    assert "profiling 5%" in usage.line()
    assert "other" not in usage.line()


def test_parts_that_are_not_known_are_not_told():
    usage = Usage()
    usage.row(600, SPENT, {}, "cpu")
    assert "collecting" in usage.line()
    assert "acting" not in usage.line()
    assert Usage().line() == ""


def test_a_run_of_many_rows_records_its_parts(tmp_path):
    """More rows than one call collects: environment and policy take turns, and each is timed."""
    folder = run(tmp_path / "run", env="herd", algo__envs="400", total_steps="2000", algo__steps="4").folder
    rows = [json.loads(line) for line in (folder / "timing.jsonl").read_text().splitlines()]
    for row in rows:
        parts = row["time/env_s"] + row["time/act_s"] + row["time/copy_s"]
        assert parts == pytest.approx(row["time/collect_s"], rel=1e-3)
        assert row["time/sps_train"] >= row["time/sps"]
