"""Do runs of every format survive a conversion, and is nothing else touched by it?"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from relab import cli
from relab.base.jsonl import RecordError
from relab.config.base import ConfigError
from relab.config.views import flatten
from relab.formats.read import find
from relab.formats.write import naming, rows
from relab.formats.write.convert import TARGETS, convert
from relab.formats.write.mlflow_files import keys_of
from relab.record.history import Column, History
from relab.record.state import group_key, seed_of
from relab.runs.grouping import load
from where import fixtures, histories

OWN = histories() / "healthy" / "ladder-value"


def place(name: str) -> Path:
    return OWN if name == "relab" else fixtures() / name


def contents(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file()}  # fmt: skip


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def back(source: Path, out: Path, to: str, names: str = "relab") -> list[tuple[find.Loaded, History]]:
    """Each run of the source beside what is read of its conversion."""
    done = convert(source, to, out, names)
    assert not done.broken
    converted = {run.name: run.history for run in find.load_all(out / ("wide" if to == "csv" else "")).runs}
    ending = ".csv" if to == "csv" else ""
    return [(run, converted.get(row.folder + ending) or next(iter(converted.values())))
            for run, row in zip(find.load_all(source).runs, done.runs, strict=True)]  # fmt: skip


def same(a: Column, b: Column, single: bool = False) -> None:
    np.testing.assert_array_equal(a.steps, b.steps)
    values = a.values.astype(np.float32).astype(np.float64) if single else a.values
    np.testing.assert_array_equal(values, b.values)


@pytest.mark.parametrize("name", list(find.FORMATS))
def test_a_run_folder_of_relab_reads_back_the_same(name, tmp_path):
    for run, converted in back(place(name), tmp_path / "out", "relab"):
        first = run.history
        assert set(converted.columns) == set(first.columns)
        for metric, column in first.columns.items():
            same(column, converted.columns[metric])
            assert converted.axes[metric] == first.axes[metric], metric
        assert repr(converted.config) == repr(first.config)
        assert [{**row, "axis": ""} for row in converted.evals] == [{**row, "axis": ""} for row in first.evals]
        assert repr((converted.events, converted.probes)) == repr((first.events, first.probes))
        assert (converted.source, converted.mapping, converted.factors) == (first.source, first.mapping, first.factors)
        assert {k: repr(v) for k, v in first.meta.items()}.items() <= {
            k: repr(v) for k, v in converted.meta.items()
        }.items()
        assert group_key(converted, "x") == group_key(first, run.name)
        assert seed_of(converted, "x") == seed_of(first, run.name)
        assert converted.problems == []


@pytest.mark.parametrize("to", ["tensorboard", "wandb", "mlflow"])
@pytest.mark.parametrize("name", ["relab", "sb3"])
def test_numbers_and_settings_arrive_in_other_formats(name, to, tmp_path):
    done = convert(place(name), to, tmp_path / "out")
    converted = find.load_all(tmp_path / "out")
    assert {run.source.format for run in converted.runs} == {to}
    by_name = {run.history.meta.get("name", run.name): run.history for run in converted.runs}
    for run, row in zip(find.load_all(place(name)).runs, done.runs, strict=True):
        history = by_name[row.folder.removeprefix("offline-")]  # without it `wandb sync` would pass over the folder
        for metric in ("return/mean", "policy/entropy", "eval/return_det"):
            if metric in run.history.columns:
                same(run.history.columns[metric], history.columns[metric], single=to == "tensorboard")
        lr = [each.config.get("algo", {}).get("lr") for each in (history, run.history)]
        assert lr[0] == lr[1]
        assert seed_of(history, "x") == seed_of(run.history, run.name)


def test_original_names_have_the_signs_and_scales_of_their_tool(tmp_path):
    for run, converted in back(fixtures() / "sb3" / "ppo_cartpole_seed0", tmp_path / "out", "tensorboard", "original"):
        assert converted.mapping["train/entropy_loss"] == "policy/entropy"  # and so its sign was turned twice
        for metric in ("policy/entropy", "value/loss"):
            np.testing.assert_allclose(converted.columns[metric].values, run.history.columns[metric].values, rtol=1e-6)
        assert run.history.factors == {"policy/entropy": -1.0, "value/loss": 0.5}
        assert converted.config["algo"]["lr"] == run.history.config["algo"]["lr"]


@pytest.fixture
def odd() -> History:
    """Numbers that are none, two rows of one step, two axes, names that want to leave the folder."""
    history = History(Path(), source="csv")
    history.columns = {
        "foreign/../../etc": Column(np.array([1, 2]), np.array([1.0, 2.0])),
        "foreign/=cmd": Column(np.array([1, 2]), np.array([math.inf, -math.inf])),
        "return/mean": Column(np.array([1, 1, 7]), np.array([math.nan, 0.1, 1e300])),
        "foreign/iteration": Column(np.array([3]), np.array([5.0])),
    }
    history.axes = {**dict.fromkeys(history.columns, "env_steps"), "foreign/iteration": "iteration"}
    history.config = {"foreign": {"a|b": "x\ny", "../up": math.nan, "n": None, "list": [1, {"z": 2}]}}
    return history


@pytest.mark.parametrize("to", list(TARGETS))
def test_odd_numbers_and_names_stay_inside(odd, to, tmp_path, monkeypatch):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.csv").write_text("step,x\n1,2\n2,3\n")
    monkeypatch.setattr(find, "read", lambda source, hints=None: odd)
    convert(source, to, tmp_path / "box" / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["box", "source"]
    assert [path.name for path in (tmp_path / "box").iterdir()] == ["out"]
    monkeypatch.undo()
    converted = find.load_all(tmp_path / "box" / "out" / ("wide" if to == "csv" else "")).runs[0].history
    large, small = (math.inf, float(np.float32(0.1))) if to == "tensorboard" else (1e300, 0.1)
    kept = [large] if to == "loop" else [math.nan, small, large]  # which holds the last value of each metric
    np.testing.assert_array_equal(converted.columns["return/mean"].values, kept)


def test_a_table_is_safe_in_a_spreadsheet_and_keeps_every_number(odd, tmp_path, monkeypatch):
    source = tmp_path / "a.csv"
    source.write_text("step,x\n1,2\n2,3\n")
    monkeypatch.setattr(find, "read", lambda source, hints=None: odd)
    convert(source, "csv", tmp_path / "out")
    wide = table(tmp_path / "out" / "wide" / "a.csv")
    assert [row["return/mean"] for row in wide if row["return/mean"]] == ["nan", "0.1", "1e+300"]
    assert [(row["iteration/step"], row["iteration"]) for row in wide if row["iteration"]] == [("3", "5.0")]
    assert [row["'=cmd"] for row in wide if row["'=cmd"]] == ["inf", "-inf"]
    long = table(tmp_path / "out" / "long.csv")
    assert [(r["step"], r["value"]) for r in long if r["metric"] == "return/mean"] == [("1", "nan"), ("1", "0.1"),
                                                                                       ("7", "1e+300")]  # fmt: skip


def test_steps_that_go_back_keep_their_order(tmp_path):
    history = History(Path(), {"a": Column(np.array([5, 3]), np.array([1.0, 2.0]))}, {"a": "agent_steps"})
    assert [(row.step, row.values["a"]) for row in rows.rows_of(history, ["a"])] == [(5, 1.0), (3, 2.0)]


def test_names_become_folders():
    taken: set[str] = set()
    names = [naming.folder_name(name, taken) for name in ("a/b", "A/B", "../x", ".hidden", "é" * 300, "", "x" * 300)]
    assert names[:4] == ["a__b", "A__B-2", "x", "hidden"]
    assert all(len(name) <= 110 and "/" not in name and name[0] not in "._" for name in names)
    assert len({name.lower() for name in names}) == len(names)


def test_names_in_other_scripts_stay(tmp_path):
    """They were left out: two configs came to be called -2 and run."""
    for level, name in enumerate(("基线", "大网络", "naïve")):
        for seed in range(2):
            (tmp_path / "logs").mkdir(exist_ok=True)
            (tmp_path / "logs" / f"{name}_s{seed}.csv").write_text(f"step,reward\n1,{level}\n2,{seed}\n")
    for to in ("csv", "tensorboard", "mlflow", "wandb", "relab"):
        convert(tmp_path / "logs", to, tmp_path / to)
        assert {group.label for group in load(tmp_path / to)} == {"基线", "大网络", "naïve"}, to


@pytest.mark.parametrize("to", ["csv", "tensorboard", "mlflow", "wandb"])
@pytest.mark.parametrize("style", ["relab", "original"])
def test_settings_are_known_again(to, style, tmp_path):
    """algo.steps, algo.epochs, algo.envs and algo.minibatches came back as foreign, and a name beat what was logged."""
    folder = tmp_path / "logs" / "CartPole-v1__mine__0__1700000000"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("global_step,reward\n1,2\n2,3\n")
    said = {
        "env": "CartPole-v1",
        "algo": "ppo",
        "n_steps": 8,
        "n_epochs": 3,
        "n_envs": 2,
        "num_minibatches": 4,
        "奖励": "x",
    }
    (folder / "config.json").write_text(json.dumps(said | {"seed": 0}))
    (before,) = find.load_all(tmp_path / "logs").runs
    convert(tmp_path / "logs", to, tmp_path / "out", style)
    (after,) = find.load_all(tmp_path / "out" / ("wide" if to == "csv" else "")).runs
    known, again = flatten(before.history.config), flatten(after.history.config)
    assert {key: again.get(key) for key in known} == known


def test_no_file_stands_where_a_folder_must():
    assert list(keys_of(["eval", "eval/x", "EVAL/y"])) == ["eval_", "eval/x", "EVAL/y"]


# ---- What may be written where


@pytest.mark.parametrize("to", list(TARGETS))
def test_the_source_is_only_read_and_the_bytes_are_the_same_twice(to, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(fixtures() / "jsonl", source)
    before = contents(source)
    convert(source, to, tmp_path / "a")
    for path in source.rglob("*"):
        os.utime(path)  # what was touched since is still the same run
    convert(source, to, tmp_path / "b")
    assert contents(source) == before
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "source"]


def test_a_target_is_new_empty_or_the_same_conversion(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    shutil.copytree(fixtures() / "jsonl", source)
    for inside in (source, source / "out"):
        with pytest.raises(ConfigError, match="must lie outside"):
            convert(source, "csv", inside)
    out.mkdir()
    convert(source, "csv", out)
    (source / "b_seed1").rename(source / "b_seed2")
    convert(source, "csv", out)
    assert sorted(path.name for path in (out / "wide").glob("*.csv")) == ["b_seed0.csv", "b_seed2.csv"]
    with pytest.raises(ConfigError, match=r"another conversion .*to 'csv', not 'relab'"):
        convert(source, "relab", out)
    (out / "long.csv").write_text("mine")
    with pytest.raises(ConfigError, match=r"was changed after its conversion \(long.csv\)"):
        convert(source, "csv", out)
    assert (out / "long.csv").read_text() == "mine"


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("words")
    with pytest.raises(ConfigError, match="files of something else"):
        convert(fixtures() / "jsonl", "csv", tmp_path / "out")
    assert contents(tmp_path / "out").keys() == {"thesis.tex"}


def test_a_failed_conversion_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("relab.formats.write.csv_tables.write", full)
    with pytest.raises(OSError, match="no space left"):
        convert(fixtures() / "jsonl", "csv", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_runs_that_cannot_be_read_are_named_and_the_others_written(tmp_path, monkeypatch, capsys):
    read = find.read

    def some(source, hints=None):
        if "seed1" in source.name:
            raise RecordError("torn")
        return read(source, hints)

    monkeypatch.setattr(find, "read", some)
    words = ["convert", str(fixtures() / "jsonl"), "--to", "csv", "--out", str(tmp_path / "out")]
    assert cli.main(words) == 2
    said = capsys.readouterr()
    assert "not readable: b_seed1: RecordError: torn" in said.err
    assert "1 run (jsonl) as csv" in said.out


def test_the_command_prints_json(tmp_path, capsys):
    import json

    words = ["convert", str(fixtures() / "jsonl"), "--to", "relab", "--out", str(tmp_path / "out"), "--json"]
    assert cli.main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["to"], document["out"]) == ("relab", str(tmp_path / "out"))
    assert [run["as"] for run in document["runs"]] == ["b_seed0", "b_seed1"]
    assert all(run["values"] > 0 for run in document["runs"])


def test_a_converted_run_is_still_examined_as_its_tools(tmp_path):
    from relab.health.examine import examine

    source = fixtures() / "sb3"
    convert(source, "relab", tmp_path / "out")
    before, after = examine(source), examine(tmp_path / "out")
    assert sorted(f.slug for f in after.main) == sorted(f.slug for f in before.main)
    assert sorted(len(g.views) for g in after.groups) == sorted(len(g.views) for g in before.groups)


@pytest.mark.parametrize("name", list(find.FORMATS))
def test_tables_read_back_as_the_same_runs_with_the_same_numbers(name, tmp_path):
    written = convert(place(name), "csv", tmp_path / "out")
    again = find.load_all(tmp_path / "out")
    assert not again.unread
    assert not again.broken
    by_name = {run.source.path.stem: run.history for run in again.runs}
    assert set(by_name) == {run.folder for run in written.runs}
    for run, said in zip(find.load_all(place(name)).runs, written.runs, strict=True):
        first, second = run.history, by_name[said.folder]
        assert set(second.columns) == set(first.columns)
        for metric, column in first.columns.items():
            same(column, second.columns[metric])
            assert second.axes[metric] == first.axes[metric], metric
        assert (second.config, second.source) == (first.config, first.source)


def test_tables_with_the_tools_own_names_are_as_many_runs(tmp_path):
    written = convert(place("sb3"), "csv", tmp_path / "out", "original")
    assert len(find.load_all(tmp_path / "out").runs) == len(written.runs)
