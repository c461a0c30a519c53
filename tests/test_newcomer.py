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


@pytest.fixture
def opens(monkeypatch) -> list[str]:
    """The files that are opened to be read as a whole, one entry each time."""
    from relab import limits

    found: list[str] = []
    blocks = limits.blocks
    monkeypatch.setattr(limits, "blocks", lambda path, *rest: found.append(Path(path).name) or blocks(path, *rest))
    return found


@pytest.mark.parametrize("column", ["loss", "seed"])
def test_a_log_that_has_not_changed_is_not_read_again_to_be_listed(tmp_path, opens, column, capsys):
    from relab.importers import tabular

    log = tmp_path / "logs" / "progress.csv"
    log.parent.mkdir()
    log.write_text(f"step,return,{column}\n" + "".join(f"{i},{i},{i % 2}\n" for i in range(100)))
    listed = []
    for _ in range(3):
        tabular._load.cache_clear()  # as in another process
        assert main(["runs", str(tmp_path), "--json"]) == 0
        listed.append(json.loads(capsys.readouterr().out)["runs"])
    assert opens == ["progress.csv"]
    assert listed[0] == listed[1] == listed[2]
    seeds = [f"logs/progress.csv/seed={seed}" for seed in (0, 1)]
    assert sorted(run["name"] for run in listed[2]) == (seeds if column == "seed" else ["logs"])
    with open(log, "a") as file:
        file.write("200,200,2\n")
    assert main(["runs", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == (3 if column == "seed" else 1)
    assert opens == ["progress.csv"] * 2


def test_what_a_log_held_is_forgotten_with_the_log(tmp_path):
    from relab.index import Index

    (tmp_path / "a.csv").write_text("step,return\n1,2\n")
    (tmp_path / "b.csv").write_text("step,return\n1,2\n")
    index = Index(tmp_path)
    index.refresh()
    (tmp_path / "b.csv").unlink()
    index.refresh()
    assert [Path(path.decode()).name for (path,) in index.db.execute("SELECT path FROM splits")] == ["a.csv"]
    index.close()
