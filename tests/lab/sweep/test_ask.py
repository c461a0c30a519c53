"""Does Optuna choose the points, and does a killed sweep take up what it had asked for? Skipped without Optuna."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from programs import HEAD, PYTHON, body, calls, kill_after, relab

from relab.config.base import ConfigError
from relab.lab import sweep

try:
    import optuna
except ImportError:
    optuna = None

needs_optuna = pytest.mark.skipif(optuna is None, reason="optuna is not installed: pip install 'relab[optuna]'")
PROGRAM = f"""{HEAD}
x, rnn, size = float(values[0]), values[1], int(values[2])
told(score=-((x - 3) ** 2) + (size / 100 if rnn == "gru" else 0) + noise(x, seed) / 10)
"""
ASKED = f"""
question: Which x?
command: {PYTHON} program.py {{x}} {{rnn}} {{size}} {{seed}} {{run}}
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


@pytest.mark.skipif(optuna is not None, reason="optuna is installed")
def test_without_optuna_it_says_how_to_get_it(here):
    plan = sweep.load(here / "s.yaml")
    with pytest.raises(ConfigError, match=r"pip install 'relab\[optuna\]'"):
        sweep.estimate(sweep.prepare(plan, here / "x"), 1)


@needs_optuna
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_optuna_chooses_and_is_told(here, capsys):
    relab("s.yaml", "--yes", "--workers", "2")
    analysis = body()
    assert len(analysis["trials"]) == 8
    assert len(calls()) == len(set(calls())) == 8 * 2 + 2
    assert all(t["point"]["x"] < 9 for t in analysis["trials"])
    assert all(("size" in t["point"]) == (t["point"]["rnn"] == "gru") for t in analysis["trials"])
    assert any("descriptions, not tests" in note for note in analysis["notes"])
    before = calls()
    relab("s.yaml", "--yes")
    assert calls() == before
    Path("s.yaml").write_text(ASKED.replace("trials: 8", "trials: 10"))
    relab("s.yaml", "--yes")
    assert len(body()["trials"]) == 10
    assert before == calls()[: len(before)]


@needs_optuna
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_kill_minus_nine_and_what_was_asked_for_is_taken_up(here):
    Path("slow").write_text("0.3")
    kill_after(5)
    Path("slow").unlink()
    time.sleep(1)
    relab("s.yaml", "--yes")
    assert len(body()["trials"]) == 8
    assert {t["n"] for t in body()["trials"]} == {2}
    assert sum(calls().count(name) > 1 for name in set(calls())) <= 2
