"""Does Optuna choose the points, and does a killed sweep take up what it had asked for? Skipped without Optuna."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relab import cli, sweep
from relab.config import ConfigError

try:
    import optuna
except ImportError:
    optuna = None

needs_optuna = pytest.mark.skipif(optuna is None, reason="optuna is not installed: pip install 'relab[optuna]'")
PROGRAM = """
import pathlib, random, sys, time
x, rnn, size, seed, run = float(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), pathlib.Path(sys.argv[5])
with open("calls.txt", "a") as file:
    file.write(run.name + "\\n")
if pathlib.Path("slow").exists():
    time.sleep(0.3)
score = -((x - 3) ** 2) + (size / 100 if rnn == "gru" else 0) + random.Random(f"{x} {seed}").gauss(0, 0.1)
(run / "progress.csv").write_text("step,score\\n1,0\\n2,%s\\n" % score)
"""
ASKED = f"""
question: Which x?
command: {sys.executable} program.py {{x}} {{rnn}} {{size}} {{seed}} {{run}}
metric: score
method: optuna
trials: 8
axes:
  x: {{low: 0, high: 10}}
  rnn: [none, gru]
  size: {{values: [16, 64], when: {{rnn: gru}}, otherwise: 0}}
constraints: [x < 9]
seeds: 2
confirm: 2
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "s.yaml").write_text(ASKED)
    return tmp_path


def calls() -> list[str]:
    return Path("calls.txt").read_text().split() if Path("calls.txt").exists() else []


def body() -> dict:
    return json.loads(Path("sweeps/s/sweep.json").read_text())


@pytest.mark.skipif(optuna is not None, reason="optuna is installed")
def test_without_optuna_it_says_how_to_get_it(here):
    asked = sweep.load(here / "s.yaml")
    with pytest.raises(ConfigError, match=r"pip install 'relab\[optuna\]'"):
        sweep.estimate(sweep.prepare(asked, here / "x"), 1)


@needs_optuna
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_optuna_chooses_and_is_told(here, capsys):
    assert cli.main(["sweep", "s.yaml", "--yes", "--workers", "2"]) == 0
    found = body()
    assert len(found["trials"]) == 8
    assert len(calls()) == len(set(calls())) == 8 * 2 + 2
    assert all(t["point"]["x"] < 9 for t in found["trials"])
    assert all(("size" in t["point"]) == (t["point"]["rnn"] == "gru") for t in found["trials"])
    assert any("descriptions, not tests" in note for note in found["notes"])
    before = calls()
    assert cli.main(["sweep", "s.yaml", "--yes"]) == 0
    assert calls() == before
    Path("s.yaml").write_text(ASKED.replace("trials: 8", "trials: 10"))
    assert cli.main(["sweep", "s.yaml", "--yes"]) == 0
    assert len(body()["trials"]) == 10
    assert before == calls()[: len(before)]


@needs_optuna
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_kill_minus_nine_and_what_was_asked_for_is_taken_up(here):
    Path("slow").touch()
    command = [sys.executable, "-m", "relab.cli", "sweep", "s.yaml", "--yes", "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while len(calls()) < 5 and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    Path("slow").unlink()
    time.sleep(1)
    assert cli.main(["sweep", "s.yaml", "--yes"]) == 0
    assert len(body()["trials"]) == 8
    assert {t["n"] for t in body()["trials"]} == {2}
    assert sum(calls().count(name) > 1 for name in set(calls())) <= 2
