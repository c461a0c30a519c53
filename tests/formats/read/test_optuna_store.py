"""Is every trial of an Optuna study a run, whichever storage it lies in, without a lock or a file being made?"""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from pathlib import Path

import pytest

from relab.formats.read import find, optuna_store

FIXTURES = Path(__file__).parent / "fixtures" / "optuna"
CHOICE = '{"name": "CategoricalDistribution", "attributes": {"choices": ["a", "b"]}}'
STORES = ["study.db", "journal.log"]


@pytest.mark.parametrize("name", STORES)
def test_trials_that_began_are_runs_with_their_parameters(name):
    runs = find.load_all(FIXTURES / name).runs
    assert [run.name for run in runs] == [f"{name}/ppo/trial={i}" for i in range(5)]  # the sixth waits in the queue
    states = [run.history.meta["status"] for run in runs]
    assert states == ["finished", "finished", "finished", "failed", "finished"]
    assert [event["kind"] for event in runs[2].history.events] == ["stop"]  # pruned
    config = runs[0].history.config
    assert 1e-5 < config["algo"]["lr"] < 1e-2
    assert isinstance(config["algo"]["steps"], int)
    assert config["foreign"]["activation"] in ("tanh", "relu")


@pytest.mark.parametrize("name", STORES)
def test_values_and_intermediate_values(name):
    runs = find.load_all(FIXTURES / name).runs
    lr = runs[0].history.config["algo"]["lr"]
    column = runs[0].history.column("foreign/intermediate_value")
    assert column.steps.tolist() == [0, 1000, 2000, 3000]
    assert column.values.tolist() == [lr, 2 * lr, 3 * lr, 4 * lr]
    assert runs[0].history.column("foreign/value").values.tolist() == [4 * lr]
    assert runs[4].history.column("foreign/intermediate_value").values[-1] == math.inf


def test_both_storages_say_the_same():
    first, second = (find.load_all(FIXTURES / name).runs for name in STORES)
    for a, b in zip(first, second, strict=True):
        assert a.history.config == b.history.config
        assert a.history.column("foreign/intermediate_value").steps.tolist() == (
            b.history.column("foreign/intermediate_value").steps.tolist()
        )


def test_a_database_in_use_is_read_without_a_lock_and_what_is_missing_is_said(tmp_path):
    path = Path(shutil.copy(FIXTURES / "study.db", tmp_path))
    (tmp_path / "study.db-wal").write_bytes(b"x" * 100)
    before = sorted(p.name for p in tmp_path.iterdir())
    runs = find.load_all(path).runs
    assert len(runs) == 5
    assert "study.db-wal holds rows that are not in the base yet" in runs[0].history.problems[0].message
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_other_databases_are_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE trials (x)")
    database.close()
    assert list(find.find(tmp_path)) == []


def test_views_are_not_asked(tmp_path):
    path = tmp_path / "trap.db"
    with sqlite3.connect(path) as database:
        for table in (
            "studies (study_id, study_name)",
            "trials (trial_id, number, study_id, state)",
            "trial_params (x)",
        ):
            database.execute(f"CREATE TABLE {table}")
        database.execute("INSERT INTO studies VALUES (1, 's')")
        database.execute("INSERT INTO trials VALUES (1, 0, 1, 'COMPLETE')")
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT 1 AS trial_id, 0 AS objective, x AS value, '' AS value_type FROM c"  # noqa: E501
        database.execute(f"CREATE VIEW trial_values AS {endless}")
    database.close()
    store = optuna_store.load(path)
    assert store.problems  # trial_params has not the columns that were asked for
    assert all(not trial.values for trial in store.trials.values())


def test_broken_lines_of_a_journal_are_reported_and_the_rest_replayed(tmp_path):
    lines = (FIXTURES / "journal.log").read_text().splitlines()
    broken = [*lines[:3], "noise", '{"op_code": 7, "trial_id": 99, "step": 1, "intermediate_value": 1}', *lines[3:]]
    (tmp_path / "journal.log").write_text("\n".join(broken) + "\n" + '{"op_code": 7, "tri')
    runs = find.load_all(tmp_path).runs
    assert len(runs) == 5
    assert [p.line for p in runs[0].history.problems] == [4, 5, len(broken) + 1]
    assert runs[0].history.problems[-1].message == "the last line is cut"


def test_a_trial_that_was_added_whole_is_read_whole(tmp_path):
    rows = [
        {"op_code": 0, "study_name": "s", "directions": [1]},
        {"op_code": 4, "study_id": 0, "state": 1, "values": [2.5], "params": {"act": 1},
         "intermediate_values": {"5": 1.5}, "distributions": {"act": CHOICE}},
    ]  # fmt: skip
    (tmp_path / "j.log").write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    (run,) = find.load_all(tmp_path).runs
    assert run.history.config == {"foreign": {"act": "b"}}
    assert run.history.column("foreign/intermediate_value").steps.tolist() == [5]
    assert run.history.column("foreign/value").values.tolist() == [2.5]


def test_a_schema_that_is_no_text_is_no_study(tmp_path):
    data = (FIXTURES / "study.db").read_bytes()
    at = data.index(b"CREATE TABLE trial_params")
    (tmp_path / "study.db").write_bytes(data[:at] + b"\xc1" * 30 + data[at + 30 :])
    assert list(find.find(tmp_path)) == []
