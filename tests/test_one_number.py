"""Is one evaluation the same number everywhere? A run of several agents in a world, through every command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import relab
from relab import cli
from relab.base.text import number
from relab.formats.read import find
from relab.record.evaluations import Evaluation, evaluations
from relab.record.history import load
from small_runs import run

HERD = {"env": "herd", "total_steps": "1024", "eval.every": "512", "eval.episodes": "5"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    for name, lr in (("one", "0.001"), ("other", "0.0001")):
        run(runs / name, **HERD, seed="0", algo__lr=lr)
    return runs / "one"


@pytest.fixture(scope="module")
def last(folder: Path) -> Evaluation:
    """The last deterministic evaluation, from its episodes: what every command must tell."""
    return evaluations(load(folder).evals, "det")[-1]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> str:
        assert cli.main([str(word) for word in words]) == 0
        return capsys.readouterr().out

    return call


def test_the_mean_is_over_worlds(folder: Path, last: Evaluation) -> None:
    """By hand: agents of a world are averaged first. Over single agents both numbers would be others."""
    row = [r for r in load(folder).evals if r["mode"] == "det"][-1]
    played = [e for e in row["episodes"] if e["end"] != "unused"]
    worlds = {e["seed"]: [x["return"] for x in played if x["seed"] == e["seed"]] for e in played}
    means = [math.fsum(returns) / len(returns) for returns in worlds.values()]
    mean = math.fsum(means) / 5
    error = math.sqrt(math.fsum((x - mean) ** 2 for x in means) / 4 / 5)
    assert len(played) > len(worlds) == last.n == 5
    assert (last.mean, last.se) == pytest.approx((mean, error), rel=1e-12)


def test_the_record(folder: Path, last: Evaluation) -> None:
    history = load(folder)
    assert history.columns["eval/return_det"].values[-1] == last.mean
    assert history.columns["eval/episodes"].values[-1] == last.n
    row = [r for r in history.evals if r["mode"] == "det"][-1]
    assert row["noise"] == last.se
    best = json.loads((folder / "checkpoints" / "best.json").read_text())
    chosen = next(e for e in evaluations(history.evals, "det") if e.step == best["step"])
    assert (best["value"], best["noise"], best["n"]) == (chosen.mean, chosen.se, chosen.n)


def test_runs(folder: Path, last: Evaluation, said: Any) -> None:
    (listed,) = [each for each in json.loads(said("runs", folder.parent, "--json"))["runs"] if each["name"] == "one"]
    assert (listed["outcome"], listed["error"], listed["episodes"]) == (last.mean, last.se, last.n)


def test_a_run_that_is_judged_by_sampled_actions(tmp_path: Path, said: Any) -> None:
    """`eval.by` decides everywhere, in the listing and in comparisons too."""
    for name, lr in (("one", "0.001"), ("other", "0.0001")):
        run(tmp_path / name, total_steps="1024", eval__every="512", eval__by="sampled", seed="0", algo__lr=lr)
    last = evaluations(load(tmp_path / "one").evals, "sampled")[-1]
    assert last.mean != evaluations(load(tmp_path / "one").evals, "det")[-1].mean
    (listed,) = [each for each in json.loads(said("runs", tmp_path, "--json"))["runs"] if each["name"] == "one"]
    assert (listed["metric"], listed["outcome"]) == ("eval/return_sampled", last.mean)
    assert f"{last.mean:.4g} ± {last.se:.2g}" in said("examine", tmp_path / "one")
    (task,) = json.loads(said("compare", tmp_path / "one", tmp_path / "other", "--json"))["tasks"]
    assert task["metric"] == "eval/return_sampled"


def test_examine_and_report(folder: Path, last: Evaluation, said: Any) -> None:
    assert f"{last.mean:.4g} ± {last.se:.2g}" in said("examine", folder)
    page = json.loads(said("report", folder, "--json"))
    assert number(last.mean) in page["sentence"]
    (table,) = [s["tables"][0] for s in page["sections"] if s["title"] == "Evaluations"]
    cells = dict(zip(table["head"], [row for row in table["rows"] if row[1] == "det"][-1]))
    assert (cells["n"], cells["mean"]) == (str(last.n), number(last.mean))


def test_note(folder: Path, last: Evaluation, said: Any) -> None:
    entry = said("note", folder)
    assert f"| 5 | eval/return_det {number(last.mean)}" in entry
    assert f"± {number(last.se)} (standard error)" in entry


def test_compare(folder: Path, said: Any) -> None:
    """At the last evaluation before the step that both runs have reached."""
    (task,) = json.loads(said("compare", folder, folder.parent / "other", "--json"))["tasks"]
    (own,) = [variant for variant in task["variants"] if variant["settings"]["algo.lr"] == 0.001]
    at = [e for e in evaluations(load(folder).evals, "det") if e.step <= task["step"]][-1]
    assert own["values"] == [at.mean]


def test_python(folder: Path, last: Evaluation) -> None:
    (own,) = [row for row in relab.load(folder.parent).table() if row["run"] == "one"]
    assert own["final"] == last.mean


@pytest.mark.parametrize("command", ["examine", "report", "compare", "note"])
def test_a_command_reads_each_run_once(
    folder: Path, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any
) -> None:
    names, real = [], find.read

    def read(source: Any, *hints: Any) -> Any:
        names.append(source.name)
        return real(source, *hints)

    monkeypatch.setattr(find, "read", read)
    both = [folder, folder.parent / "other"]
    paths = {"note": [folder], "examine": [folder.parent]}.get(command, both)
    said(command, *paths, *(["--out", tmp_path / "page.html"] if command == "report" else []))
    assert sorted(names) == (["one"] if command == "note" else ["one", "other"])
