"""Are the seeds that chose a sweep's winner kept apart from its fresh ones, in the command and in Python?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import relab
from relab import cli
from report.made import write_run

CHOOSING, FRESH, OTHER = [190.0, 200, 210, 205, 195], [100.0, 110, 90, 105, 95], [80.0, 81, 79, 82, 78]


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Two trials of five seeds, the winner with five fresh ones."""
    folder = tmp_path / "sw"
    trials = {"won": [*enumerate(CHOOSING), *enumerate(FRESH, 10_000)], "lost": [*enumerate(OTHER)]}
    for name, finals in trials.items():
        for seed, value in finals:
            config = {"algo": {"name": "ppo", "lr": 0.1 if name == "won" else 0.2}}
            write_run(folder / "runs" / f"{name}_s{seed}", [10.0, value], seed, config=config)
    names = [f"won_s{seed}" for seed, _ in trials["won"]]
    winner = {"selection": values(names[:5]), "fresh": values(names[5:])}
    (folder / "sweep.json").write_text(json.dumps({"winner": winner}))
    return folder


def values(names: list[str]) -> dict:
    return {"values": [{"run": name} for name in names]}


def rows(folder: Path, capsys) -> dict[str, dict]:
    assert cli.main(["compare", str(folder), "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    return {str(row["settings"]["algo.lr"]): row for row in task["variants"]}


def test_the_winner_counts_by_its_fresh_seeds(sweep: Path, capsys):
    won = rows(sweep, capsys)["0.1"]
    assert (won["mean"]["n"], won["mean"]["mid"]) == (5, 100.0)
    assert cli.main(["compare", str(sweep)]) == 0
    assert "the 5 runs that chose it flatter it, and are left out" in capsys.readouterr().out
    runs = relab.load(sweep)
    assert "5 fresh, 5 that chose it | 100" in repr(runs)
    assert relab.compare(runs).answers[0].n == (5, 5)
    assert relab.compare(runs).answers[0].delta == pytest.approx(-20)


@pytest.mark.parametrize("text", ["{}", "[1]", "{", '{"winner": null}', '{"winner": {"fresh": 3, "selection": []}}'])
def test_without_a_choice_that_can_be_read_all_count(sweep: Path, text: str, capsys):
    (sweep / "sweep.json").write_text(text)
    assert rows(sweep, capsys)["0.1"]["mean"]["n"] == 10


CONTRADICTED = [
    (["lost_s2", "lost_s3", "lost_s4"], ["won_s10000"]),  # of another config
    (["lost_s3"], ["lost_s3", "lost_s4"]),
    (["lost_s3"], ["lost_s4", "gone"]),
    (["lost_s3"], ["lost_s4", "\0"]),
]


@pytest.mark.parametrize(("chose", "fresh"), CONTRADICTED)
def test_a_choice_that_its_runs_contradict_leaves_nothing_out(sweep: Path, chose: list, fresh: list, capsys):
    (sweep / "sweep.json").write_text(json.dumps({"winner": {"selection": values(chose), "fresh": values(fresh)}}))
    found = rows(sweep, capsys)
    assert (found["0.1"]["mean"]["n"], found["0.2"]["mean"]["n"]) == (10, 5)


def test_seeds_that_chose_it_are_kept_where_no_fresh_one_is_there(sweep: Path, capsys):
    for seed in range(10_000, 10_005):
        (sweep / "runs" / f"won_s{seed}").rename(sweep / f"away{seed}")
    for seed in range(10_000, 10_005):
        (sweep / f"away{seed}" / "meta.json").unlink()
        (sweep / f"away{seed}" / "metrics.jsonl").unlink()
    assert rows(sweep / "runs", capsys)["0.1"]["mean"]["mid"] == 200.0
