"""Are MLflow's stores read without mlflow, and left as they were?"""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import relab
from relab.formats.read import find
from relab.record.history import History

FIXTURES = Path(__file__).parent / "fixtures" / "mlflow"


def runs(folder: Path) -> dict[str, History]:
    loaded = find.load_all(folder)
    assert loaded.broken == []
    return {run.name: run.history for run in loaded.runs}


@pytest.mark.parametrize("place", ["mlflow.db", "mlruns"])
def test_both_stores_hold_the_same(place: str) -> None:
    by_name = {run.meta["name"]: run for run in runs(FIXTURES / place).values()}
    assert sorted(by_name) == ["ppo-seed0", "ppo-seed1"]
    run = by_name["ppo-seed1"]
    assert run.column("return/mean_100").steps.tolist() == [100 * i for i in range(10)]
    assert run.column("return/mean_100").values.tolist() == [20.0 + i for i in range(10)]
    expected = [1.5, np.nan, np.inf, -np.inf]
    assert np.array_equal(run.column("foreign/train/loss").values, expected, equal_nan=True)
    assert run.config["algo"] == {"lr": 3e-4, "clip": 0.2}
    assert (run.meta["seed"], run.meta["status"]) == (1, "failed")
    assert by_name["ppo-seed0"].meta["status"] == "finished"
    assert run.problems == []


def test_both_stores_beside_each_other_are_found() -> None:
    assert len(runs(FIXTURES)) == 4


def test_nothing_is_written_beside_the_base(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "mlflow.db", tmp_path)
    before = (tmp_path / "mlflow.db").read_bytes()
    assert len(runs(tmp_path)) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["mlflow.db"]
    assert (tmp_path / "mlflow.db").read_bytes() == before


def test_deleted_runs_are_left_out(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "mlflow.db", tmp_path)
    with sqlite3.connect(tmp_path / "mlflow.db") as base:
        base.execute("UPDATE runs SET lifecycle_stage = 'deleted' WHERE name = 'ppo-seed0'")
    base.close()
    assert [run.meta["name"] for run in runs(tmp_path).values()] == ["ppo-seed1"]


def test_rows_that_wait_in_the_log_are_said(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "mlflow.db", tmp_path)
    (tmp_path / "mlflow.db-wal").write_bytes(b"something")
    assert all("not in the base yet" in run.problems[0].message for run in runs(tmp_path).values())


def test_broken_lines_of_a_file_store(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "mlruns", tmp_path / "mlruns")
    path = next(tmp_path.rglob("ep_rew_mean"))
    path.write_text(path.read_text() + "1700 nonsense 5\n1700 3.5 1000\n")
    broken = [run for run in runs(tmp_path).values() if run.problems]
    assert [p.message for p in broken[0].problems] == ["1 lines are not `timestamp value step`; they were left out"]
    assert broken[0].column("return/mean_100").values[-1] == 3.5


def test_flipped_bytes_break_one_base_at_most(tmp_path: Path) -> None:
    """Whatever a damaged base holds, finding the others goes on, and a failure has a reason."""
    chance, whole = random.Random(3), (FIXTURES / "mlflow.db").read_bytes()
    (tmp_path / "good").mkdir()
    (tmp_path / "bad").mkdir()
    shutil.copy(FIXTURES / "mlflow.db", tmp_path / "good")
    for case in range(40):
        data = bytearray(whole[: chance.randrange(100, len(whole))] if case % 4 == 0 else whole)
        for _ in range(60):
            data[chance.randrange(16, len(data))] ^= 1 << chance.randrange(8)
        (tmp_path / "bad" / "mlflow.db").write_bytes(data)
        loaded = find.load_all(tmp_path)
        assert sum(run.name.startswith("good") for run in loaded.runs) == 2
        assert all(reason for _, reason in loaded.broken)


def test_runs_of_one_given_name_belong_together_where_nothing_is_logged_of_their_settings(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "mlflow.db", tmp_path)
    with sqlite3.connect(tmp_path / "mlflow.db") as base:
        base.execute("UPDATE runs SET name = 'baseline'")
        base.execute("DELETE FROM params")
    base.close()
    (group,) = relab.load(tmp_path).groups
    assert (group.label, len(group.runs)) == ("baseline", 2)
