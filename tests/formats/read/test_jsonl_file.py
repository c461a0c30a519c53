"""Are files of JSON lines read like tables, nested objects and Python's NaN included?"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from relab.formats.read import find, jsonl_file
from relab.record.history import History
from relab.record.state import seed_of


def read(tmp_path: Path, rows: list, name: str = "metrics.jsonl") -> History:
    (tmp_path / name).write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    (run,) = find.load_all(tmp_path).runs
    return run.history


def test_nested_objects_become_groups(tmp_path):
    history = read(tmp_path, [{"step": i, "train": {"loss": {"value": i}, "reward": 2 * i}} for i in (1, 2)])
    assert history.source == "jsonl"
    assert history.column("return/mean").values.tolist() == [2, 4]
    assert history.column("value/loss").steps.tolist() == [1, 2]
    assert history.mapping["train/loss/value"] == "value/loss"


def test_pythons_nan_and_quoted_nan_are_both_read_and_null_is_missing(tmp_path):
    rows = ['{"step": 1, "reward": NaN}', '{"step": 2, "reward": "NaN"}', '{"step": 3, "reward": -Infinity}']
    history = read(tmp_path, [*rows, '{"step": 4, "reward": null}', '{"step": 5, "reward": 1}'])
    column = history.column("return/mean")
    assert column.steps.tolist() == [1, 2, 3, 5]
    assert math.isnan(column.values[0])
    assert math.isnan(column.values[1])
    assert column.values[2] == -math.inf
    assert history.problems == []


def test_keys_that_come_in_later_are_empty_before(tmp_path):
    history = read(tmp_path, [{"step": 1, "reward": 1}, {"step": 2, "reward": 2, "kl": 0.5}])
    assert history.column("policy/kl").steps.tolist() == [2]


def test_broken_and_cut_lines_are_reported_and_the_others_read(tmp_path):
    (tmp_path / "log.jsonl").write_text(
        '{"step": 1, "reward": 1}\nnoise\n[1]\n{"step": 2, "reward": 2}\n{"step": 3, "rew'
    )
    (run,) = find.load_all(tmp_path).runs
    assert run.history.column("return/mean").steps.tolist() == [1, 2]
    assert [(p.line, p.message.split(":")[0]) for p in run.history.problems] == [
        (2, "not a JSON object"),
        (3, "not a JSON object"),
        (5, "the last line is cut"),
    ]


def test_lists_and_text_are_no_metrics_and_truth_is_a_number(tmp_path):
    history = read(tmp_path, [{"step": i, "hist": [1, 2], "note": "x", "success": i > 1} for i in (1, 2)])
    assert history.column("return/success").values.tolist() == [0, 1]
    assert set(history.columns) == {"return/success"}


def test_relabs_own_rows_are_left_to_relab(tmp_path):
    history = read(tmp_path, [{"step": 1, "axis": "agent_steps", "return/mean": 1.0}])
    assert history.source == "relab"


def test_tables_of_both_kinds_lie_side_by_side_unless_one_is_the_folders_own(tmp_path):
    (tmp_path / "a.csv").write_text("step,reward\n1,2\n2,3\n")
    (tmp_path / "b.jsonl").write_text('{"step": 1, "reward": 2}\n')
    assert [(run.name, run.source.format) for run in find.load_all(tmp_path).runs] == [
        ("a.csv", "csv"),
        ("b.jsonl", "jsonl"),
    ]
    (tmp_path / "a.csv").rename(tmp_path / "progress.csv")
    assert [run.source.format for run in find.load_all(tmp_path).runs] == ["csv"]


def test_a_run_per_seed(tmp_path):
    rows = [{"seed": seed, "step": step, "reward": seed} for seed in (0, 1) for step in (1, 2)]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs = find.load_all(tmp_path).runs
    assert [(run.name, seed_of(run.history, run.name)) for run in runs] == [
        ("runs.jsonl/seed=0", 0),
        ("runs.jsonl/seed=1", 1),
    ]


@pytest.mark.parametrize(
    "line", [b"{" * 5000, b'{"a":' * 5000, b'{"a": 1e999}', b'{"a": %s}' % (b"9" * 5000), b"{\xff}"]
)
def test_lines_made_to_hurt_are_problems(line):
    table = jsonl_file.parse(b'{"step": 1, "reward": 2}\n' + line + b"\n", "x.jsonl")
    assert table.cells["reward"][0] == 2
    assert len(table.lines) + len(table.problems) == 2


def test_more_names_than_anyone_reads_are_cut_off():
    table = jsonl_file.parse(json.dumps({f"k{i}": i for i in range(jsonl_file.MAX_COLUMNS + 10)}).encode(), "x.jsonl")
    assert len(table.cells) == jsonl_file.MAX_COLUMNS
    assert len(table.problems) == 1


def test_a_number_beyond_every_double_is_infinite_and_its_row_stays(tmp_path):
    rows = [
        '{"step": 1, "reward": 1.0, "loss": 3}',
        '{"step": 2, "reward": 1e400, "loss": 2}',
        '{"step": 3, "loss": 1}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n")
    (run,) = find.load_all(tmp_path).runs
    assert run.history.columns["return/mean"].values.tolist() == [1.0, math.inf]
    assert run.history.columns["foreign/loss"].values.tolist() == [3, 2, 1]
    assert run.history.problems == []


ROWS = [{"step": i, "return": 10.0 * i, "entropy": 0.5} for i in range(1, 6)]
LR = {"algo": {"lr": 3e-4}, "seed": 4}
FIRST_LINES = [
    ({"config": {"lr": 3e-4, "seed": 4}}, LR),
    ({"step": 0, "config": {"lr": 3e-4, "seed": 4}}, LR),
    ({"type": "config", "lr": 3e-4, "seed": 4, "time": "12:00"}, LR),
    ({"type": "config", "data": {"learning_rate": 3e-4, "seed": 4}}, LR),
    ({"event": "start", "hparams": {"lr": 3e-4}, "seed": 4}, LR),
    ({"_config": {"lr": 3e-4, "seed": 4}}, LR),
    ({"params": {"lr": 3e-4, "seed": 4}}, LR),
    ({"lr": 3e-4, "seed": 4}, LR),
    ({"lr": 3e-4, "steps": 9, "env": "A-v1"},
     {"algo": {"lr": 3e-4}, "foreign": {"steps": 9}, "env": {"name": "A-v1"}}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "config"), FIRST_LINES)
def test_settings_in_the_first_line_are_the_runs_settings(tmp_path, line, config):
    history = read(tmp_path, [line, *ROWS])
    assert history.config == config
    assert history.problems == []
    assert history.column("return/mean").steps.tolist() == [1, 2, 3, 4, 5]
    assert set(history.columns) == {"return/mean", "policy/entropy"}


def test_files_beside_each_other_are_logs_although_their_first_lines_hold_settings_alone(tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("\n".join(json.dumps(row) for row in ({"config": {"depth": 2}}, *ROWS)))
    assert [run.history.config for run in find.load_all(tmp_path).runs] == [{"foreign": {"depth": 2}}] * 2


@pytest.mark.parametrize("line", [{"loss": 2.0}, {"return": 5.0, "seed": 1}, {"event": "start", "pid": 7}])
def test_a_first_line_of_numbers_without_a_step_is_no_config(tmp_path, line):
    history = read(tmp_path, [line, *ROWS])
    assert "foreign" not in history.config
    assert "algo" not in history.config
    assert any("without an integer step" in problem.message for problem in history.problems)


def test_what_the_log_says_counts_more_than_a_config_file_beside_it_and_nothing_else_of_the_file_is_lost(tmp_path):
    (tmp_path / "config.json").write_text('{"learning_rate": 1.0, "gamma": 0.9}')
    history = read(tmp_path, [{"config": {"lr": 3e-4}}, *ROWS])
    assert history.config == {"algo": {"lr": 3e-4, "gamma": 0.9}}


def test_settings_that_are_nested_too_deeply_are_left_alone(tmp_path):
    deep = '{"config": ' + '{"a": ' * 990 + "1" + "}" * 991
    assert read(tmp_path, [deep, *ROWS]).column("return/mean").steps.tolist() == [1, 2, 3, 4, 5]
