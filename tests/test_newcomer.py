"""What does somebody meet who reads a log for the first time? Errors that name their cause, lines that are whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relab.cli import main


@pytest.fixture
def logs(tmp_path, monkeypatch) -> Path:
    """Two plain logs in the working folder: no settings, no evaluations."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        rows = [{"step": 100 * i, "episode_return": float(i % 7 + i), "loss": 1 / (i + 1)} for i in range(100)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize(
    ("metric", "said"),
    [("episode_retrun", "the nearest: episode_return"), ("nokey", "they have return/mean, ")],
)
def test_a_metric_that_no_run_has_is_an_error(logs, capsys, metric, said):
    assert main(["compare", "--metric", metric, "a.jsonl", "b.jsonl"]) == 2
    told = capsys.readouterr()
    assert (told.out, said in told.err, "none of the 2 runs has this metric" in told.err) == ("", True, True)


def test_a_metric_that_one_run_has_is_none(logs, capsys):
    assert main(["compare", "--metric", "loss", "a.jsonl", "b.jsonl"]) == 0


@pytest.mark.parametrize("into", ["nosuchdir/x.md", "nosuchdir/notes"])
def test_a_note_makes_no_folders_on_the_way(logs, capsys, into):
    assert main(["note", "a.jsonl", "--into", into]) == 2
    told = capsys.readouterr().err
    assert "the folder nosuchdir does not exist; make it first (mkdir -p nosuchdir)" in told
    assert not Path("nosuchdir").exists()


@pytest.mark.parametrize("into", ["x.md", "notes"])
def test_a_note_begins_a_log_or_a_folder_where_there_is_one(logs, into):
    assert main(["note", "a.jsonl", "--into", into]) == 0
    assert Path(into).exists()


@pytest.mark.parametrize("columns", [50, 118, 300])
def test_limits_are_wrapped_and_not_cut(logs, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    with open("a.jsonl", "a") as file:
        file.write('{"step": 5, broken by a kill in the middle of a row that is long\n')
    main(["examine", "a.jsonl"])
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("limits: "))
    whole = " ".join(line.strip() for line in lines[at:])
    assert "in the middle of a row that is long" in whole
    assert "rules apply" in whole
    assert "..." not in whole
    assert max(map(len, lines[at:])) <= min(columns, 118)
