"""Does `relab train --profile` leave a trace, and the run as it would have been?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relab import cli
from relab.record import history
from relab.train.profile import Profile

WORDS = ["train", "ppo", "env=cartpole", "total_steps=1024", "algo.envs=8", "algo.steps=16", "eval.every=0",
         "eval.episodes=2", "algo.minibatches=2", "algo.epochs=1", "--quiet"]  # fmt: skip


@pytest.mark.slow
def test_a_trace_of_two_iterations_and_the_same_metrics(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert cli.main([*WORDS, "--runs", str(tmp_path), "--name", "plain"]) == 0
    assert cli.main([*WORDS, "--runs", str(tmp_path), "--name", "traced", "--profile", "2"]) == 0
    trace = json.loads((tmp_path / "traced" / "profile" / "trace.json").read_text())
    parts = [event for event in trace["traceEvents"] if event.get("name") == "collect" and event.get("ph") == "X"]
    assert len([each for each in parts if each.get("cat") == "user_annotation"]) == 2
    assert "Self CPU" in (tmp_path / "traced" / "profile" / "operations.txt").read_text()
    assert [e["folder"] for e in history.load(tmp_path / "traced").events if e["kind"] == "profile"] == ["profile"]
    assert (tmp_path / "plain" / "metrics.jsonl").read_bytes() == (tmp_path / "traced" / "metrics.jsonl").read_bytes()
    assert not (tmp_path / "plain" / "profile").exists()
    assert "USDT" not in capfd.readouterr().err
    rows = [json.loads(line) for line in (tmp_path / "traced" / "timing.jsonl").read_text().splitlines()]
    assert sum(row.get("time/profile_s", 0.0) for row in rows) > 0.0


def test_fewer_than_no_iterations_are_refused(capsys: pytest.CaptureFixture[str]):
    assert cli.main([*WORDS, "--profile", "-1"]) == 64
    assert "at least 0 iterations" in capsys.readouterr().err


def test_a_profile_that_was_not_asked_for_does_nothing(tmp_path: Path):
    profile = Profile()
    profile.watch(5)
    assert (profile.note(tmp_path), profile.finish(tmp_path), list(tmp_path.iterdir())) == (None, None, [])
