"""Are runs that cannot be one config told apart, and runs that can be left together?"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import relab
from relab import cli
from relab.record.history import load
from relab.runs import identity
from report.made import write_run


def groups(folder: Path, *runs: tuple[str, int | None, list[float]]) -> dict[str, list[str]]:
    for name, seed, values in runs:
        write_run(folder / name, values, seed)  # type: ignore[arg-type]
    return {group.label: [run.name for run in group.runs] for group in relab.load(folder).groups}


def test_the_same_settings_and_seed_with_other_numbers_are_told_apart_by_name(tmp_path):
    runs = [("ok_s0", 0, [1.0, 2]), ("x1000_s0", 0, [1e3, 2e3]), ("ok_s1", 1, [1.0, 3]), ("x1000_s1", 1, [1e3, 3e3])]
    assert groups(tmp_path, *runs) == {"ok": ["ok_s0", "ok_s1"], "x1000": ["x1000_s0", "x1000_s1"]}


@pytest.mark.parametrize(
    "runs",
    [
        [("ok_s0", 0, [1.0, 2]), ("copy_s0", 0, [1.0, 2])],  # the same numbers: a copy
        [("ok_s0", 0, [1.0, 2, 3]), ("cut_s0", 0, [1.0, 2])],  # as far as it came
        [("ok_s0", 0, [1.0, 2]), ("more_s1", 1, [1.0, 3])],  # nothing says that they are not seeds of one config
        [("try_1", 0, [1.0, 2]), ("try_2", 0, [1.0, 3])],  # counted, not named
        [("ppo__1__1700000000", 1, [1.0, 2]), ("ppo__1__1700000999", 1, [1.0, 3])],
        [("2026-11-16-calm-lynx", 0, [1.0, 2]), ("2026-11-16-red-fox", 0, [1.0, 3])],  # names that relab made up
        [("calm-lynx-12-1f0c602a", None, [1.0, 2]), ("red-fox-7-99ab01cd", None, [1.0, 3])],  # MLflow, with its ids
    ],
)
def test_runs_that_may_be_one_config_stay_together(tmp_path, runs):
    assert len(groups(tmp_path, *runs)) == 1


def test_values_in_names_are_no_counters(tmp_path):
    assert set(groups(tmp_path, ("scale_1", 0, [1.0, 2]), ("scale_10", 0, [10.0, 20]))) == {"scale_1", "scale_10"}


def test_evaluations_alone_do_not_part_runs_that_trained_alike(tmp_path):
    """Stable-Baselines3's worlds for evaluation have no seed."""
    for name, seen in (("ok_s0", 5.0), ("cut_s0", 7.0)):
        write_run(tmp_path / name, [1.0, 2, 3], 0)
        file = tmp_path / name / "evals.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for row in rows:
            row["episodes"] = [dict(each, **{"return": seen}) for each in row["episodes"]]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    a, b = (load(tmp_path / name) for name in ("ok_s0", "cut_s0"))
    assert identity.parting(a, b) is None


def test_values_that_are_not_finite_are_compared(tmp_path):
    a, b = (load(write_run(tmp_path / name, [1.0, math.inf, math.nan], 0)) for name in ("a", "b"))
    assert identity.parting(a, b) is None


def test_compare_says_what_it_told_apart_and_how_to_pool_it(tmp_path, capsys):
    groups(tmp_path, ("ok_s0", 0, [1.0, 2]), ("x1000_s0", 0, [1e3, 2e3]))
    assert cli.main(["compare", str(tmp_path)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("warning: ok, x1000 have the same settings, but ok_s0 and x1000_s0, both with seed 0, have"
                            " return/mean 1 and 1,000 at step 0")  # fmt: skip
    assert "--by settings" in first
    assert cli.main(["compare", str(tmp_path), "--by", "settings"]) == 0
    assert capsys.readouterr().out.startswith("Nothing to compare: 2 runs")


def test_compare_by_name(tmp_path, capsys):
    groups(tmp_path, ("ok_s0", 0, [1.0, 2]), ("more_s1", 1, [1.0, 3]))
    assert cli.main(["compare", str(tmp_path)]) == 0
    assert "more, ok have the same settings and count as seeds of one config; --by name" in capsys.readouterr().out
    assert cli.main(["compare", str(tmp_path), "--by", "name", "--json"]) == 0
    variants = json.loads(capsys.readouterr().out)["tasks"][0]["variants"]
    assert [row["label"] for row in variants] == ["more", "ok"]


def test_settings_that_nobody_knows_are_not_the_same(tmp_path, capsys):
    for name, seed in (("ok_s0", 0), ("more_s1", 1)):
        meta = {"config_hash": "named both"}
        write_run(tmp_path / name, [1.0, 2 + seed], seed, config={"total_steps": None}, meta=meta)
        (tmp_path / name / "config.yaml").write_text(f"seed: {seed}\n")
    assert cli.main(["compare", str(tmp_path)]) == 0
    assert "more, ok have no settings in their logs and count as seeds of one config" in capsys.readouterr().out


def test_runs_that_name_no_seed_are_said_to_be_taken_for_seeds(tmp_path, capsys):
    groups(tmp_path, *((f"{arm}_{i}", None, [1.0, 2 + i + 5 * len(arm)]) for arm in ("ok", "other") for i in (1, 2)))
    assert cli.main(["compare", str(tmp_path)]) == 0
    assert "runs that name no seed are taken for different seeds: other (2), ok (2)" in capsys.readouterr().out
    assert cli.main(["examine", str(tmp_path)]) == 0
    assert "runs that name no seed are taken for different seeds" in " ".join(capsys.readouterr().out.split())
