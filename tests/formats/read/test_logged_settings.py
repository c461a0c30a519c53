"""Does a log's constant step size count as a setting, where no settings say it, and only there?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import relab
from relab import cli
from relab.formats.read.logged_settings import ORIGIN
from relab.record.state import group_key
from runs.test_together import progress


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    for seed in range(2):
        progress(tmp_path / "grid" / "small" / f"seed{seed}", 50, seed, 3e-4)
        progress(tmp_path / "grid" / "large" / f"seed{seed}", 90, seed, 1e-2)
    return tmp_path / "grid"


def out(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert cli.main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_a_constant_rate_is_a_setting_and_says_where_it_is_from(grid, capsys):
    said = out(capsys, "diff", grid / "small/seed0", grid / "large/seed0")
    assert said == "algo.lr  0.0003 -> 0.01  (x33.33)  (read from the log)\n"
    assert "differ, in this order: algo.lr 0.01 | 0.0003" in out(capsys, "compare", grid)
    run = relab.load(grid)["small/seed0"]
    assert (run.history.config["algo"]["lr"], run.history.provenance["algo.lr"]) == (0.0003, ORIGIN)


@pytest.mark.parametrize("rates", [np.linspace(3e-4, 0, 30), [3e-4] + 29 * [np.nan]])
def test_a_rate_that_moves_or_that_one_row_has_is_none(tmp_path, rates):
    progress(tmp_path / "run", 50, 0, rates)
    assert "lr" not in relab.load(tmp_path)[0].history.config["algo"]


@pytest.mark.parametrize("key", ["learning_rate", "optimizer.step_size", "actor_lr"])
def test_what_the_settings_say_stays_and_so_does_the_group(tmp_path, key):
    rows = ["global_step,reward,learning_rate", *(f"{100 * i},{i},0.01" for i in range(1, 20)), ""]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    (tmp_path / "config.json").write_text(json.dumps({"algo": "ppo", key: 0.5}))
    with_column = relab.load(tmp_path)[0]
    assert ORIGIN not in with_column.history.provenance.values()
    (tmp_path / "log.csv").write_text("\n".join(row.rpartition(",")[0] for row in rows))
    without = relab.load(tmp_path)[0]
    assert group_key(with_column.history, "log.csv") == group_key(without.history, "log.csv")


def test_runs_without_settings_stay_in_groups_by_name(tmp_path):
    for name in ("wrapped-s0", "wrapped-s1", "plain-s0"):
        rows = ["global_step,reward,lr", *(f"{100 * i},{i},0.01" for i in range(1, 20)), ""]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + name[-1])
    assert sorted(len(group.runs) for group in relab.load(tmp_path).groups) == [1, 2]


def test_runs_of_one_name_with_two_rates_are_two_groups(tmp_path):
    for seed, lr in enumerate((3e-4, 3e-4, 1e-2)):
        progress(tmp_path / "same" / f"seed{seed}", 50, seed, lr)
    groups = relab.load(tmp_path).groups
    assert {group.label: len(group.runs) for group in groups} == {"lr=0.0003": 2, "lr=0.01": 1}


def test_groups_outlive_a_conversion(grid, tmp_path, capsys):
    out(capsys, "convert", grid, "--to", "csv", "--out", tmp_path / "csv")
    assert sorted(len(group.runs) for group in relab.load(tmp_path / "csv").groups) == [2, 2]
    assert "same-seed-differs" not in out(capsys, "examine", tmp_path / "csv")
