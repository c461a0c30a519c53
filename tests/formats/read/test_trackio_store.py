"""Are the bases of trackio read without trackio, run by run, and what becomes of strange ones?"""

from __future__ import annotations

import math
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import find
from relab.record.history import History
from relab.record.state import group_key

FIXTURES = Path(__file__).parent / "fixtures" / "trackio"


def runs(folder: Path = FIXTURES) -> dict[str, History]:
    loaded = find.load_all(folder)
    assert loaded.broken == []
    return {run.name: run.history for run in loaded.runs}


@pytest.fixture
def base(tmp_path) -> Path:
    return shutil.copy(FIXTURES / "relab.db", tmp_path / "relab.db")


def change(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as base:
        for statement in statements:
            base.execute(statement)
    base.close()
    return path


def test_rows_nested_keys_and_what_is_not_finite():
    run = runs()["relab.db/ppo-0"]
    steps, values = run.column("return/mean")
    assert steps.tolist() == [128 * i for i in range(20)]
    assert values.tolist() == [math.inf if i == 4 else float(i) for i in range(20)]
    assert np.isnan(run.column("policy/kl").values).nonzero()[0].tolist() == [3]
    assert run.axes["return/mean"] == "env_steps"
    assert run.problems == []


def test_settings_and_facts():
    run = runs()["relab.db/ppo-0"]
    assert run.config["algo"] == {"lr": 3e-4, "clip": 0.2}
    assert run.config["foreign"] == {"net.hidden": [64, 64]}
    assert (run.meta["seed"], run.meta["name"], run.meta["group"]) == (0, "ppo-0", "ppo")
    assert run.meta["spec"]["env"] == "CartPole-v1"


def test_runs_of_one_name_are_told_apart_and_seeds_belong_together():
    by_name = runs()
    assert len(by_name) == 3
    assert sorted(run.meta["seed"] for run in by_name.values()) == [0, 1, 2]
    assert len({group_key(run, name) for name, run in by_name.items()}) == 1


def test_a_base_of_an_older_trackio_tells_runs_apart_by_name(base):
    change(base, "DROP INDEX idx_metrics_run_step", "DROP INDEX idx_metrics_run_timestamp",
           "DROP INDEX idx_metrics_run_record", "ALTER TABLE metrics DROP COLUMN run_id")  # fmt: skip
    by_name = runs(base.parent)
    assert list(by_name) == ["relab.db/ppo-0", "relab.db/ppo-1"]
    assert len(by_name["relab.db/ppo-1"].column("return/mean").steps) == 12


def test_rows_that_are_no_objects_are_counted(base):
    change(base, "UPDATE metrics SET metrics = '[1]' WHERE step = 2 AND run_name = 'ppo-0'",
           "UPDATE metrics SET step = 'x' WHERE step = 3 AND run_name = 'ppo-0'",
           "UPDATE configs SET config = x'ff00' WHERE run_name = 'ppo-0'")  # fmt: skip
    run = runs(base.parent)["relab.db/ppo-0"]
    assert len(run.column("return/mean").steps) == 18
    messages = [p.message for p in run.problems]
    assert any("2 rows have no step or hold no JSON object" in message for message in messages)
    assert any("config of this run is no JSON object" in message for message in messages)


def test_names_that_are_paths_stay_names(base):
    change(base, "UPDATE metrics SET run_name = '../../etc/<b>x' WHERE run_name = 'ppo-0'",
           "UPDATE configs SET run_name = '../../etc/<b>x' WHERE run_name = 'ppo-0'")  # fmt: skip
    assert "relab.db/.._.._etc_<b>x" in runs(base.parent)


@pytest.mark.parametrize("table", ["metrics", "configs"])
def test_a_view_in_the_place_of_a_table_is_not_asked(base, table):
    change(base, f"ALTER TABLE {table} RENAME TO was", f"CREATE VIEW {table} AS SELECT * FROM was")
    passed = []
    assert list(find.find(base.parent, passed)) == []
    assert passed[0].where == "relab.db"
    assert "tables of no format that relab reads" in passed[0].why


def test_rows_that_are_not_in_the_base_yet_are_told(base):
    base.with_name("relab.db-wal").write_bytes(b"x" * 100)
    assert any("relab.db-wal" in p.message for p in runs(base.parent)["relab.db/ppo-0"].problems)
