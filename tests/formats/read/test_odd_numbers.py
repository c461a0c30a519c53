"""Is a number that no count can be (NaN, infinite, of thousands of digits, text) left out wherever a log has it?"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from test_conformance import FIXTURES, OWN

from relab.base.numbers import integer, to_int
from relab.config.yaml_io import parse_yaml
from relab.formats.read import console, find, optuna_store
from relab.health.examine import examine
from relab.schedules import change, evaluated
from relab.schedules.gate import ScheduleError, parse_condition

NAN, INF = float("nan"), float("inf")
NO_COUNTS = [NAN, INF, -INF, None, "", "x", "NaN", "1e400", "9" * 5000, 10**400, 1e300, True, [], {}, "1_0", "٣", "²"]
odd = pytest.mark.parametrize("value", NO_COUNTS, ids=lambda value: repr(value)[:12])


@odd
def test_what_is_no_count_is_none(value):
    assert to_int(value) is None


def test_counts_are_integers():
    assert [to_int(value) for value in (0, 3, 3.0, 3.9, "12", " 7 ", -4, b"5")] == [0, 3, 3, 3, 12, 7, -4, 5]


def test_an_integer_is_never_beyond_every_double():
    assert [integer(text) for text in ("12", "-3", "9" * 5000, "-" + "9" * 400, "0x10", "0x" + "f" * 400)] == [
        12, -3, INF, -INF, 16, INF]  # fmt: skip
    with pytest.raises(ValueError, match="could not convert"):
        integer("x" * 400)


def read(folder: Path) -> list[find.Loaded]:
    loaded = find.load_all(folder)
    assert not loaded.broken
    return loaded.runs


# ---- Formats


@odd
@pytest.mark.parametrize("key", ["episodes", "multi_eval_num_fish"])
def test_counts_of_a_swarm(tmp_path, value, key):
    path = Path(shutil.copytree(FIXTURES / "swarm", tmp_path / "runs")) / "escape_v1" / "eval_multi_history.jsonl"
    more = {"summary": {key: value}, "episode_seeds": [1, 2]}
    rows = [json.loads(line) | more for line in path.read_text().splitlines()]
    path.write_text("".join(quoted(json.dumps(row)) + "\n" for row in rows))
    assert all(run.history.probes or run.history.problems for run in read(tmp_path))


def quoted(text: str) -> str:
    """NaN and the infinities as relab's own files say them."""
    return re.sub(r": (NaN|-?Infinity)", r': "\1"', text)


@pytest.mark.parametrize("step", [NAN, INF, -INF, 1e300])
def test_steps_that_a_program_prints(step):
    assert console.as_row({"step": step, "loss": 1.0}) is None
    assert console.as_row({"step": 3.0, "loss": 1.0}) == (3, "env_steps", {"loss": 1.0})


@odd
def test_steps_of_a_trial(tmp_path, value):
    shutil.copytree(FIXTURES / "optuna", tmp_path / "optuna")
    journal = next(path for path in (tmp_path / "optuna").rglob("*") if path.suffix in (".log", ".journal"))
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    rows = [row | {"step": value} if row.get("op_code") == optuna_store.SET_STEP else row for row in rows]
    journal.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert read(journal)


@pytest.mark.parametrize("kind", ["yaml", "json"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_settings_of_thousands_of_digits(tmp_path, kind, digits):
    place = tmp_path / "run"
    place.mkdir()
    (place / "progress.csv").write_text("step,return\n" + "".join(f"{i},{i}\n" for i in range(40)))
    values = {"seed": 1, "envs": integer("1" + "0" * 300), "total_timesteps": "BIG", "batch_size": "BIG", "lr": 0.1}
    text = json.dumps(values) if kind == "json" else "".join(f"{k}: {v}\n" for k, v in values.items())
    (place / f"config.{kind}").write_text(text.replace('"BIG"', "BIG").replace("BIG", "9" * digits))
    (run,) = read(tmp_path)
    assert run.history.config["seed"] == 1, run.history.problems
    failed = [each for each in examine(tmp_path).not_checked if "the rule failed" in each.missing]
    assert not failed


def test_yaml_reads_long_integers():
    assert parse_yaml(f"a: {'9' * 5000}\nb: 0x{'f' * 5000}\nc: 12\n", "x") == {"a": INF, "b": INF, "c": 12}


# ---- What is made of them


def test_starts_without_a_direction_are_left_out():
    starts = [(10.0, 1.0, 2), (NAN, 1.0, 2), (10.0, INF, 2), ("x", 1.0, 1), (10.0, 1.0, NAN)]
    rows = [{"heading": heading, "speed": speed, "step_one": n, "agents": n} for heading, speed, n in starts]
    assert [cell.deaths for cell in evaluated.clusters(rows)] == [2]
    assert [cell.deaths for cell in evaluated.by_sector(rows) if cell.deaths] == [4]


def test_counts_out_of_infinitely_many_show_no_change():
    rows = [{"values": {"step_one_count": 3, "agents": agents}} for agents in (10.0, INF)]
    assert change.counts_change(rows) is None


@pytest.mark.parametrize("window", ["9" * 5000, "٣"])
def test_a_window_is_a_count(window):
    with pytest.raises(ScheduleError, match="a condition reads"):
        parse_condition(f"median({window}) p10 >= 70")


@pytest.mark.parametrize("text", [f"with {'9' * 400} seeds", f"over {'9' * 400} episodes", f"loss 1e{'9' * 5000}"])
def test_notes_with_numbers_beyond_every_count(tmp_path, text):
    from relab.notebook.check import notes

    shutil.copytree(OWN, tmp_path / "run")
    (tmp_path / "LOG.md").write_text(f"run: return 1 {text}.\n")
    notes.check(tmp_path / "LOG.md", examine(tmp_path / "run"))
