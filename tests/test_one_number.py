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
from relab.formats.read.tfevents import Writer
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
    (table,) = [s["tables"][0] for s in page["sections"] if s["title"] == "Evaluations"]  # of deterministic actions
    cells = dict(zip(table["head"], table["rows"][-1]))
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


@pytest.mark.parametrize("to", ["relab", "csv", "tensorboard", "mlflow"])
def test_convert(folder: Path, last: Evaluation, to: str, tmp_path: Path, said: Any) -> None:
    said("convert", folder, "--to", to, "--out", tmp_path / to)
    (run,) = relab.load(tmp_path / to)
    assert run.verdict.final == pytest.approx(last.mean, rel=1e-6)


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


# ---- Logs of other tools: the outcome is the mean of the last tenth of the rows, in every command

VALUES = [round(20 + 4.3 * i + 7 * math.sin(i), 2) for i in range(60)]


def sb3_csv(folder: Path, values: list[float]) -> None:
    rows = [f"{2048 * (i + 1)},{v},{v},0.1" for i, v in enumerate(values)]
    head = "time/total_timesteps,rollout/ep_rew_mean,rollout/ep_len_mean,train/value_loss"
    (folder / "progress.csv").write_text("\n".join([head, *rows]) + "\n")


def plain_csv(folder: Path, values: list[float]) -> None:
    rows = [f"{100 * i},{v}" for i, v in enumerate(values)]
    (folder / "log.csv").write_text("\n".join(["step,return", *rows]) + "\n")


def cleanrl(folder: Path, values: list[float]) -> None:
    with Writer(folder, wall=1.7e9) as writer:
        for i, value in enumerate(values):
            writer.scalar("charts/episodic_return", value, 100 * i, wall=1.7e9 + i)


@pytest.mark.parametrize("write", [sb3_csv, plain_csv, cleanrl])
def test_another_tools_run_has_one_outcome(write: Any, tmp_path: Path, said: Any) -> None:
    for name, shift in (("CartPole-v1__ppo__1", 0.0), ("CartPole-v1__ppo2__1", 3.0)):
        (tmp_path / "logs" / name).mkdir(parents=True)
        write(tmp_path / "logs" / name, [v + shift for v in VALUES])
    one, other = sorted((tmp_path / "logs").iterdir(), key=lambda p: "ppo2" in p.name)
    end = math.fsum(VALUES[-6:]) / 6  # a tenth of sixty rows
    (run,) = relab.load(one)
    assert run.verdict.final == pytest.approx(end, rel=1e-6)
    (listed,) = json.loads(said("runs", one, "--json"))["runs"]
    assert listed["outcome"] == pytest.approx(end, rel=1e-6)
    assert f"{end:.4g} ± " in said("examine", one)
    assert number(end) in json.loads(said("report", one, "--json"))["sentence"]
    assert number(end) in said("note", one)
    (task,) = json.loads(said("compare", one, other, "--json"))["tasks"]
    values = sorted(value for variant in task["variants"] for value in variant["values"])
    assert values == pytest.approx([end, end + 3.0], rel=1e-6)
    assert relab.load(one).table()[0]["final"] == run.verdict.final
    (answer,) = relab.compare(one, other).answers
    assert abs(answer.delta) == pytest.approx(3.0, rel=1e-4)
