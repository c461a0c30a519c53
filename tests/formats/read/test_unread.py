"""Is whatever was not read said, with file, place in it and reason, by every reading command?"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from test_conformance import FIXTURES

from relab import api, cli
from relab.base.jsonl import RecordError
from relab.formats.read import find, unread
from relab.formats.read.unread import Unread
from relab.health.rule import all_rules

GOOD = "global_step,return\n" + "".join(f"{i * 10},{i}\n" for i in range(50))


@pytest.fixture
def root(tmp_path) -> Path:
    return write(tmp_path / "root" / "good" / "progress.csv", GOOD).parents[1]


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def passed(root: Path) -> dict[str, str]:
    loaded = find.load_all(root)
    assert [run.name for run in loaded.runs] == ["good"]
    assert loaded.broken == []
    return dict(loaded.unread)


# ---- Files that are called like logs


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", b"", "empty: whatever opened it wrote nothing"),
        ("a.csv", b"step,x\n" + bytes(99), "byte 7 is 0: binary"),
        ("a.csv", GOOD.encode("utf-16-le"), "byte 1 is 0: binary, or UTF-16 without its mark"),
        ("a.csv", b"1,2\n3,4\n", "its first line must name the columns"),
        ("a.csv", b"colour,taste\nred,sweet\n", "its first line names no step and no metric"),
        ("a.csv", ",".join(f"c{i}" for i in range(21_000)).encode() + b"\n", "names 21,000 columns; a table"),
        ("a.csv", ",".join(f"c{i}" for i in range(90_000)).encode() + b"\n", "names at least 39,"),
        ("a.csv", b"x" * 300_000 + b"\n1\n", "its first line has more than 262,144 bytes"),
        ("a.wandb", b":W&", "byte 0 on is b':W&', not b':W&B'"),
        ("a.wandb", b"", "empty"),
        ("a.swanlab", b"<html>", "byte 0 on is b'<htm', not b':SWL'"),
        ("a.db", b"no base", "byte 0 on is b'no base', not SQLite's beginning"),
        ("a.db", (FIXTURES / "mlflow" / "mlflow.db").read_bytes()[:5000], "it may be cut at its end, byte 5000"),
        ("a.jsonl", b'{"step": 1, "colour": "\xe9"}\n' * 9, "not UTF-8 from byte 23 on"),
        ("a.jsonl", b'{"colour": "red"}\n', "line 1 holds no step or metric"),
        ("a.jsonl", b'{"step": 1, "a":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "nested too deeply"),
        ("metrics.json", b"[1, 2]", "line 1 is no JSON object"),
    ],
)  # fmt: skip
def test_a_file_that_is_called_like_a_log_and_is_none(root, name, content, why):
    write(root / "odd" / name, content)
    write(root / "odd" / "README.md", "nothing is promised by this name")
    reasons = passed(root)
    assert list(reasons) == [f"odd/{name}"]
    assert why in reasons[f"odd/{name}"]


def test_a_base_of_another_kind_names_its_tables(root):
    with sqlite3.connect(root / "other.db") as base:
        base.execute("CREATE TABLE weather (day)")
    base.close()
    assert "tables of no format that relab reads: weather" in passed(root)["other.db"]


def test_a_log_beside_those_of_another_format_is_named(tmp_path):
    """Two loggers in one folder, most often of one run: the second is not read as another, but it is said."""
    events = next((FIXTURES / "tensorboard" / "rewound").glob("*tfevents*"))
    write(tmp_path / "two" / "progress_a.csv", GOOD)
    shutil.copy(events, tmp_path / "two")
    write(tmp_path / "base" / "good.csv", GOOD)
    write(tmp_path / "base" / "rows.jsonl", '{"step": 1, "return": 2}\n')
    shutil.copy(FIXTURES / "mlflow" / "mlflow.db", tmp_path / "base")
    reasons = {gone.where: gone.why for gone in find.load_all(tmp_path).unread}
    assert list(reasons) == ["base/good.csv", "base/rows.jsonl", f"two/{events.name}"]
    assert "the folder was read as mlflow; give this file by its name" in reasons["base/good.csv"]
    assert "the folder was read as csv" in reasons[f"two/{events.name}"]
    assert len(find.load_all(tmp_path / "two" / events.name).runs) == 1


def test_files_in_the_folder_of_a_run_are_the_runs(tmp_path):
    folder = shutil.copytree(FIXTURES / "sb3" / "ppo_cartpole_seed0", tmp_path / "run")
    write(folder / "notes.csv", b"colour\nred\n")
    assert find.load_all(folder).unread == []


def test_a_first_line_of_more_than_a_block_is_read(root):
    rows = "".join(json.dumps({"step": i, "picture": "x" * 300_000, "return": i}) + "\n" for i in range(3))
    write(root / "wide" / "metrics.jsonl", rows)
    loaded = find.load_all(root)
    assert {run.name: len(run.history.columns["return/mean"].steps) for run in loaded.runs} == {"good": 50, "wide": 3}
    assert loaded.unread == []


# ---- Limits, links, importers that fail


def test_folders_beyond_the_limits_are_named(root, monkeypatch):
    write(root / "/".join("abcdefgh") / "progress.csv", GOOD)
    assert passed(root) == {
        "a/b/c/d/e/f/g": "more than 6 folders down, which is not looked into; give a folder above it"
    }
    monkeypatch.setattr(find, "MAX_FOLDERS", 3)
    assert "after 3 folders no further ones are looked into" in passed(root)["a/b"]


def test_links_that_lead_out_are_named_and_others_are_not(root, tmp_path):
    write(tmp_path / "outside" / "progress.csv", GOOD)
    (root / "there").symlink_to(tmp_path / "outside", target_is_directory=True)
    (root / "here").symlink_to(root / "good", target_is_directory=True)
    (root / "round").symlink_to("round")
    assert list(passed(root)) == ["there"]


def test_a_folder_that_cannot_be_listed_is_named(root, monkeypatch):
    (root / "locked").mkdir()
    real = os.scandir

    def scandir(path):
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(find.os, "scandir", scandir)
    assert passed(root) == {"locked": "the folder cannot be listed: Permission denied"}


def test_an_importer_that_fails_is_named_and_the_others_are_asked(root, monkeypatch):
    def sniff(listing):
        raise KeyError("gone")

    monkeypatch.setattr(find.importer("rllib"), "sniff", sniff)
    why = passed(root)["good"]
    assert why.startswith("the importer of rllib failed on it: KeyError: 'gone' (a fault of relab (relab/formats/read/")
    assert why.endswith("; the others were still asked")


def test_many_are_listed_up_to_a_limit(root):
    for i in range(unread.MANY + 50):
        write(root / f"odd_{i}.csv", b"")
    rows = find.load_all(root).unread
    assert len(rows) == unread.MANY + 1
    assert "only the first 200 are listed" in rows[-1].why


def test_names_that_are_no_text_break_nothing(root, capsys):
    write(Path(os.fsdecode(os.fsencode(root) + b"/bad\xff_s1")) / "progress.csv", GOOD)
    write(Path(os.fsdecode(os.fsencode(root) + b"/bad\xff_s1/x")) / "empty.csv", b"")
    for more in ((), ("-v",), ("--json",)):
        assert cli.main(["examine", str(root), *more]) == 0
        shown, err = capsys.readouterr()
        assert "bad" in shown
        assert err == ""


# ---- Every command says it


@pytest.fixture
def mixed(root) -> Path:
    write(root / "odd" / "a.csv", b"")
    write(root / "odd" / "b.wandb", b"")
    return root


def test_examine_says_it_in_its_footer_all_of_it_with_v_and_in_json(mixed, capsys):
    assert cli.main(["examine", str(mixed)]) == 0
    footer = " ".join(capsys.readouterr().out.split())  # it is wrapped
    assert "not read: odd/a.csv (empty: whatever opened it wrote nothing) and 1 more" in footer
    assert cli.main(["examine", str(mixed), "-v"]) == 0
    assert "not read (odd/b.wandb): empty" in capsys.readouterr().out
    assert cli.main(["examine", str(mixed), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["where"] for row in document["not_read"]] == ["odd/a.csv", "odd/b.wandb"]
    assert all(row["slug"] in all_rules() for row in document["not_checked"])


def test_compare_says_it(mixed, capsys):
    assert cli.main(["compare", str(mixed)]) == 0
    assert "not read: odd/a.csv (empty: whatever opened it wrote nothing) and 1 more (-v)" in capsys.readouterr().out
    assert cli.main(["compare", str(mixed), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["not_read"]) == 2


def test_report_says_it(mixed, tmp_path, capsys):
    assert cli.main(["report", str(mixed), "--out", str(tmp_path / "page.html")]) == 0
    assert "not read: odd/a.csv (empty: whatever opened it wrote nothing) and 1 more" in capsys.readouterr().out
    assert "odd/b.wandb" in (tmp_path / "page.html").read_text()
    assert cli.main(["report", str(mixed), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["not_read"]) == 2


def test_convert_says_it(mixed, tmp_path, capsys):
    assert cli.main(["convert", str(mixed), "--to", "csv", "--out", str(tmp_path / "out"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["not_read"][0] == {"where": "odd/a.csv", "why": "empty: whatever opened it wrote nothing"}
    assert "not read: odd/a.csv" in err


def test_python_has_it(mixed):
    runs = api.load(mixed)
    assert [gone.where for gone in runs.unread] == ["odd/a.csv", "odd/b.wandb"]
    assert "odd/b.wandb" in runs._repr_html_()


@pytest.mark.parametrize(
    ("name", "said"), [("empty", "the folder is empty"), ("a.txt", "the file is not of a format that relab reads")]
)
def test_an_empty_folder_and_a_file_of_no_format_are_called_so(tmp_path, name, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("hello\n")
    with pytest.raises(RecordError, match=said):
        find.load_all(tmp_path / name)


def test_a_path_that_is_not_there_is_called_so(tmp_path, capsys):
    assert cli.main(["examine", str(tmp_path / "gone")]) == 2
    assert f"{tmp_path / 'gone'} does not exist" in capsys.readouterr().err


def test_where_no_run_is_left_the_files_are_named(tmp_path, capsys):
    write(tmp_path / "a.csv", b"")
    with pytest.raises(RecordError, match=r"no runs at or below .*: not read: a.csv \(empty"):
        find.load_all(tmp_path)
    assert cli.main(["examine", str(tmp_path)]) == cli.UNREADABLE


def test_runs_none_of_which_can_be_read_are_no_success(tmp_path, capsys):
    with sqlite3.connect(tmp_path / "mlflow.db") as base:
        for name in ("runs", "metrics", "params", "experiments"):
            base.execute(f"CREATE TABLE {name} (x)")
    base.close()
    assert cli.main(["examine", str(tmp_path)]) == cli.UNREADABLE
    assert "nothing checked" in capsys.readouterr().out


def test_one_line_for_a_footer():
    assert unread.summary([]) == ""
    assert unread.summary([Unread("a", "x"), Unread("b", "y")]) == "not read: a (x) and 1 more"


def test_folders_of_programs_are_not_searched(tmp_path):
    log = "step,reward\n" + "".join(f"{i},{i}\n" for i in range(20))
    places = ("runs/a", "venv/lib/p", "node_modules/x", "lib/site-packages/y", "code/__pycache__")
    for place in places:
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "log.csv").write_text(log)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /usr\n")
    loaded = find.load_all(tmp_path)
    assert [run.name for run in loaded.runs] == ["runs/a"]
    assert loaded.unread == []
