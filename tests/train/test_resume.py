"""Does a run that was interrupted or killed go on to the same bytes?"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kill.subjects import SUBJECTS
from relab import cli
from relab.base.jsonl import read_jsonl
from relab.config import registry
from relab.config.dreamer import Dreamer
from relab.record import glossary
from relab.record.run_folder import Record, read_meta
from relab.train import checkpoint, loop, session
from relab.train.algos import dreamer
from relab.train.screen import Silent
from small_runs import Interrupt, fingerprint, run
from where import ROOT, TESTS

DRIVER = TESTS / "kill" / "kill_driver.py"


@pytest.mark.parametrize("kind", SUBJECTS)
def test_interrupted_and_resumed_run_has_the_same_bytes(kind: str, tmp_path: Path) -> None:
    settings = {"total_steps": "1024", **SUBJECTS[kind]}
    run(tmp_path / "whole", **settings)
    first = run(tmp_path / "parts", Interrupt(at=3), **settings)
    assert (first.status, first.why) == ("interrupted", "SIGINT received")
    assert 0 < first.step < read_meta(tmp_path / "whole")["step"]
    assert session.resume(tmp_path / "parts").status == "finished"
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


def test_many_interruptions_and_resumes(tmp_path: Path) -> None:
    run(tmp_path / "whole")
    outcome = run(tmp_path / "parts", Interrupt(at=2))
    while outcome.status == "interrupted":
        outcome = session.resume(tmp_path / "parts", Interrupt(at=3, number=signal.SIGTERM))
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")
    events, _ = read_jsonl(tmp_path / "parts" / "events.jsonl")
    kinds = [event["kind"] for event in events]
    assert kinds.count("resume") == kinds.count("interrupt") >= 4


class Notes(Silent):
    """Keeps what the screen is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_resumed_run_says_what_it_restored_and_what_it_reset(tmp_path: Path) -> None:
    run(tmp_path / "run", Interrupt(at=2))
    notes = Notes()
    session.resume(tmp_path / "run", notes)
    said = notes.notes[-1]
    assert said.startswith("  resumed at step ")
    assert ": restored weights, optimiser, worlds, " in said
    assert said.endswith("random streams; reset nothing")
    assert dreamer.resets(Dreamer(collector="own")).startswith("the collector's worlds")
    assert not dreamer.resets(Dreamer())


class Counter:
    """A companion with a memory: counts iterations and writes what it counted."""

    def __init__(self) -> None:
        self.began = self.ended = 0

    def before(self, trainer: loop.Trainer) -> None:
        self.began += 1

    def after(self, trainer: loop.Trainer, metrics: dict[str, float]) -> None:
        self.ended += 1
        row = {"probe": "count", "value": self.began + self.ended, "noise": 0.0, "n": self.ended}
        trainer.record.append_probe({"step": trainer.step, **row})

    def to_tree(self) -> dict[str, Any]:
        return {"began": self.began, "ended": self.ended}

    def load(self, tree: dict[str, Any]) -> None:
        self.began, self.ended = tree["began"], tree["ended"]


def test_companions_go_along_and_are_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = glossary.Metric("time/counter_s", "s", 0, math.inf, 0, "seconds of the test's companion")
    monkeypatch.setitem(glossary.METRICS, "time/counter_s", seconds)
    monkeypatch.setattr(session, "companions_of", lambda cfg, env, fresh: {"counter": Counter()})
    run(tmp_path / "whole")
    run(tmp_path / "parts", Interrupt(at=3))
    session.resume(tmp_path / "parts")
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")
    rows, _ = read_jsonl(tmp_path / "whole" / "probes.jsonl")
    assert [row["value"] for row in rows] == [2 * (k + 1) for k in range(len(rows))]
    timing, _ = read_jsonl(tmp_path / "whole" / "timing.jsonl")
    assert all(row["time/counter_s"] > 0 for row in timing)


class Stop(Interrupt):
    """Ends the process's work at the k-th iteration as a kill would: nothing more is written."""

    def iteration(self, row: Mapping[str, Any]) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class Killed(BaseException):
    pass


def cut(folder: Path, monkeypatch: pytest.MonkeyPatch, at: int, go_on: bool = False) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Record, "update_meta", lambda *_, **__: None)
        with pytest.raises(Killed):
            session.resume(folder, Stop(at)) if go_on else run(folder, Stop(at))


def test_cut_short_many_times_before_the_second_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "whole")
    cut(tmp_path / "parts", monkeypatch, at=1)
    root = tmp_path / "parts" / "checkpoints"
    for _ in range(3):
        cut(tmp_path / "parts", monkeypatch, at=1, go_on=True)
        assert checkpoint.steps(root) == ["step-000000000000"]
        for pointer in ("latest", "best"):
            checkpoint.load(root, pointer)
    assert session.resume(tmp_path / "parts").status == "finished"
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")
    assert read_meta(tmp_path / "parts")["init"] == read_meta(tmp_path / "whole")["init"]


@pytest.mark.parametrize("lost", [1, 99])
def test_a_run_whose_last_checkpoints_were_deleted_goes_on_from_an_earlier_one(lost: int, tmp_path: Path) -> None:
    run(tmp_path / "whole")
    run(tmp_path / "parts", Interrupt(at=12))
    root = tmp_path / "parts" / "checkpoints"
    for name in checkpoint.steps(root)[-lost:]:
        shutil.rmtree(root / name)
    assert session.resume(tmp_path / "parts").status == "finished"
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


@pytest.mark.parametrize("there", [(), ("config.yaml",), ("config.yaml", "provenance.json", ".meta.json.tmp")])
def test_killed_before_there_was_a_record_both_commands_say_what_to_do(
    there: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "early").mkdir()
    for name in there:
        (tmp_path / "early" / name).write_text("seed: 1")
    for word in (str(tmp_path / "early"), "early"):
        assert cli.main(["resume", word, "--runs", str(tmp_path)]) == 2
        err = capsys.readouterr().err
        assert f"{tmp_path / 'early'} holds no run yet: a training was killed there before it had begun" in err
        assert "delete that folder and call `relab train` again" in err
    assert cli.main(["train", "ppo", "env=cartpole", "--runs", str(tmp_path), "--name", "early"]) == 64
    assert "delete it (it holds no run yet)" in capsys.readouterr().err
    (tmp_path / "early" / "thesis.md").write_text("mine")
    assert cli.main(["resume", "early", "--runs", str(tmp_path)]) == 2
    assert "delete" not in capsys.readouterr().err


def test_killed_right_after_meta_json_a_run_begins_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(Record, "__init__", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            run(tmp_path / "parts")
    assert sorted(os.listdir(tmp_path / "parts")) == ["config.yaml", "meta.json", "provenance.json"]
    assert session.resume(tmp_path / "parts").status == "finished"
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")
    assert read_meta(tmp_path / "parts")["init"] == read_meta(tmp_path / "whole")["init"]


def test_resume_of_a_complete_run_changes_nothing(tmp_path: Path) -> None:
    run(tmp_path / "run")
    before = fingerprint(tmp_path / "run")
    outcome = session.resume(tmp_path / "run")
    assert (outcome.status, outcome.step) == ("finished", 2048)
    assert fingerprint(tmp_path / "run") == before


def test_everything_that_is_registered_is_among_the_subjects() -> None:
    envs = {registry.resolve_env_name(each.get("env", "cartpole")) for each in SUBJECTS.values()}
    assert envs >= set(registry.env_names())
    assert any(name.startswith(registry.GYM) for name in envs)
    assert {each.get("algo", "ppo") for each in SUBJECTS.values()} == set(registry.algo_names())


def killed(folder: Path, kills: int, *more: str) -> dict[str, int]:
    """The driver's counts; the runs that went wrong are named with the seed that brings them back."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    words = [sys.executable, str(DRIVER), str(kills), "--folder", str(folder), *more]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert done.stdout, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, (found["seed"], found["notes"])
    return found["total"]


def test_kill_9_again_and_again(tmp_path: Path) -> None:
    found = killed(tmp_path, 6, "--only", "discrete", "--lanes", "1", "--seed", "5")
    assert (found["kills"], found["unreadable"], found["lost"], found["different"]) == (6, 0, 0, 0)
    assert found["kills"] > found["runs"], "several times each"
    assert found["early"] + found["torn"] > 0


def test_the_table_of_kills_is_put_between_its_marks() -> None:
    from kill import kill_driver

    story = vars(kill_driver.Story("gym", kills=3, early=2, different=["best.json"]))
    found = kill_driver.summary([story], ["gym"]) | {"seconds": 7.0}
    page = (ROOT / "docs" / "reliability.md").read_text()
    once = kill_driver.put(page, found, "here")
    assert "3 kills of 1 runs" in once
    assert "\n| gym | 1 | 3 | 2 | 0 | 0 | 0 | 0 | 0 | 1 |\n" in once
    assert kill_driver.put(once, found, "here") == once, "a second time it takes the first one's place"


@pytest.mark.slow
def test_kill_9_again_and_again_over_everything(tmp_path: Path) -> None:
    found = killed(tmp_path, 100)  # others each time
    assert (found["kills"], found["unreadable"], found["lost"], found["different"]) == (100, 0, 0, 0)
