"""Is a run stopped on the findings that the question names, on no others, and does the answer say so?"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

import pytest

import made_up
from relab import cli
from relab.config.base import ConfigError
from relab.health.examine import examine
from relab.lab import experiment
from relab.lab.execute.local import Pace
from relab.lab.experiment import watcher
from relab.lab.experiment.watcher import Watcher
from where import histories

HOT = """
question: Does a learning rate of 1 do better?
at: final
smallest_effect: 5
base:
  env: cartpole
  total_steps: 5_000_000
  algo: {envs: 8, steps: 64, lr_schedule: constant, target_kl: null}
  eval: {every: 2048, episodes: 3}
vary: {lr: [1e-3, 1.0]}
seeds: 5
stop_on: [diverged]
look_every: 0.3
"""


def test_a_diverging_run_is_stopped_and_the_answer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One real run that would take an hour; the other nine are made up."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "experiments" / "question"
    question = experiment.load(made_up.question(tmp_path, HOT))
    cells = experiment.prepare(question, folder)
    hot = next(cell for cell in cells if cell.folder.name == "lr=1.0-s0")
    for cell in cells:
        if cell != hot:
            made_up.cell(cell, value=(100 if cell.variant == "lr=0.001" else 10) + cell.seed)
    assert cli.main(["experiment", "question.yaml", "--only", "lr=1.0-s0"]) == 0
    assert "lr=1.0-s0: stopped" in capsys.readouterr().out
    why = watcher.stopped(hot.folder)
    assert (why["slug"], experiment.settled(hot), experiment.finished(hot)) == ("diverged", True, False)
    events = [json.loads(line) for line in (hot.folder / "events.jsonl").read_text().splitlines()]
    stop = next(event for event in events if event["kind"] == "stop")
    assert (stop["reason"], stop["step"]) == ("finding diverged", why["step"])
    assert events[-2]["kind"] == "checkpoint", "it was asked, not killed"
    assert "run-incomplete" not in [finding.slug for finding in examine(hot.folder).findings]
    before = (hot.folder / "events.jsonl").read_bytes()
    assert cli.main(["experiment", "question.yaml", "--yes", "--no-log"]) == 0
    assert (hot.folder / "events.jsonl").read_bytes() == before, "it is not started again"
    out = capsys.readouterr().out
    assert "(stopped)" in out
    assert "No: lr=1.0 is worse than lr=0.001" in out
    assert "1 run was stopped early on a finding (diverged; 0 of lr=0.001 and 1 of lr=1.0)" in out
    kept = json.loads((folder / "answer.json").read_text())
    assert list(kept["stopped"]) == ["lr=1.0-s0"]
    (marked,) = [x for x in kept["answers"][0]["b"] if x["stopped"]]
    assert marked["note"].startswith("stopped by diverged at step ")
    assert "stopped early on a finding (diverged" in (folder / "report.md").read_text()
    rows = {row["run"]: row["status"] for row in json.loads((folder / "runs.json").read_text())["runs"]}
    assert rows["runs/lr=1.0-s0"] == "stopped"
    watcher.path_of(hot.folder).unlink()
    assert experiment.status(hot) == "interrupted", "without that file it would go on"


PROGRAM = """
import pathlib, sys, time
run = pathlib.Path(sys.argv[3])
with open(run / "progress.csv", "w") as file:
    file.write("step,episode_reward\\n")
    for i in range(1, 10_000 if sys.argv[1] == "0.3" else 40):
        file.write(f"{100 * i},{'nan' if i > 20 and sys.argv[1] == '0.3' else i}\\n")
        file.flush()
        time.sleep(0.01)
"""
FOREIGN = f"""
question: Is a clip of 0.3 better?
command: {sys.executable} program.py {{clip}} {{seed}} {{run}}
metric: episode_reward
vary: {{clip: [0.1, 0.3]}}
seeds: 1
stop_on: error
look_every: 0.2
"""


@pytest.mark.slow
def test_a_foreign_program_is_stopped_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    path = made_up.question(tmp_path, FOREIGN)
    assert cli.main(["experiment", str(path), "--yes", "--no-log", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["failed"] == []
    why = json.loads((tmp_path / "experiments/question/stopped/clip=0.3-s0.json").read_text())
    assert (why["slug"], why["severity"]) == ("non-finite", "error")
    assert "stopped by non-finite" in " ".join(printed["answers"][0]["notes"])


def test_a_finding_must_stand_in_two_looks_with_rows_between_them(tmp_path: Path) -> None:
    run = tmp_path / "x" / "runs" / "a-s0"
    shutil.copytree(histories() / "faulty" / "non-finite", run)
    rows = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(rows[:-2]))
    (run / "timing.jsonl").unlink()
    (run / "evals.jsonl").unlink()
    here = Watcher(("non-finite",), {"a-s0": run})
    assert here.look(["a-s0"]) == [], "once is not enough"
    assert here.look(["a-s0"]) == [], "nor is the same again"
    (run / "metrics.jsonl").write_text("".join(rows))
    other = Watcher(("diverged",), {"a-s0": run}, {"a-s0": {"diverged": 0}})
    assert other.look(["a-s0"]) == [], "another finding is none of its business"
    assert not watcher.stopped(run)
    assert here.look(["a-s0"]) == ["a-s0"]
    assert watcher.stopped(run)["slug"] == "non-finite"


def test_a_run_that_is_not_there_yet_and_a_healthy_one_go_on(tmp_path: Path) -> None:
    run = tmp_path / "x" / "runs" / "a-s0"
    here = Watcher(("error", "warning"), {"a-s0": run}, {"a-s0": {"non-finite": 0}})
    assert here.look(["a-s0"]) == []
    shutil.copytree(histories() / "healthy" / "cartpole", run)
    assert here.look(["a-s0"]) == here.look(["a-s0"]) == []


@pytest.mark.parametrize(
    ("stop_on", "says"),
    [
        ("[divergd]", "got 'divergd'; the nearest is 'diverged'"),
        ("duplicated-seeds", "takes rules about one run"),
        ("single-seed", "takes rules about one run"),
        ("[info]", "takes rules about one run"),
        ("[diverged]\nlook_every: 0", "above 0"),
    ],
)
def test_a_stop_that_cannot_be_asked_for(stop_on: str, says: str, tmp_path: Path) -> None:
    text = HOT.replace("stop_on: [diverged]\nlook_every: 0.3", f"stop_on: {stop_on}")
    with pytest.raises(ConfigError, match=says):
        experiment.load(made_up.question(tmp_path, text))


def test_it_is_part_of_the_question_and_the_pace_is_not(tmp_path: Path) -> None:
    question = experiment.load(made_up.question(tmp_path, HOT))
    experiment.prepare(question, tmp_path / "x")
    assert experiment.load(tmp_path / "x" / "experiment.yaml") == question
    experiment.prepare(experiment.load(made_up.question(tmp_path, HOT.replace("0.3", "5"))), tmp_path / "x")
    other = experiment.load(made_up.question(tmp_path, HOT.replace("[diverged]", "error")))
    with pytest.raises(ConfigError, match="another 'stop_on'"):
        experiment.prepare(other, tmp_path / "x")
    plain = HOT.replace("stop_on: [diverged]\nlook_every: 0.3\n", "")
    experiment.prepare(experiment.load(made_up.question(tmp_path, plain)), tmp_path / "y")
    assert "stop_on" not in (tmp_path / "y" / "experiment.yaml").read_text()


def test_looking_takes_a_twentieth_of_the_time_at_most() -> None:
    pace = Pace(0.0)
    assert pace.due()
    with pace:
        time.sleep(0.05)
    assert not pace.due()
    assert pace.next - time.monotonic() > 0.9


def test_the_runs_of_an_experiment_go_through_a_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELAB_QUEUE", str(tmp_path / "line"))
    (tmp_path / "program.py").write_text(PROGRAM.replace("10_000", "40").replace("nan", "7"))
    path = made_up.question(tmp_path, FOREIGN)
    assert cli.main(["experiment", str(path), "--queue", "--yes"]) == 0
    assert "2 of 2 runs added to " in capsys.readouterr().out
    assert cli.main(["experiment", str(path), "--queue", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == [], "they are asked for already"
    assert cli.main(["queue", "work", "--workers", "2"]) == 0
    assert "2 done, 0 failed" in capsys.readouterr().out
    assert cli.main(["experiment", str(path), "--yes", "--no-log"]) == 0
    assert "all runs are finished" in capsys.readouterr().out
    assert cli.main(["experiment", str(path), "--only", "clip=0.4-s0", "--yes"]) == 64
    assert "must be one of clip=0.1-s0, clip=0.3-s0" in capsys.readouterr().err
