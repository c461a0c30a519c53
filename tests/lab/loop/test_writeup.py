"""Does the write-up of a run import no code that only the run's own record names?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from relab.config import layers
from relab.lab.loop import writeup
from relab.record.history import History

BASE = {"algo.name": "ppo", "env.name": "cartpole-v1"}


def made(env: str) -> History:
    run = History(Path("r"), meta={"schema": 1})
    run.config = layers.to_dict(layers.from_dict({"algo": "ppo", "env": "cartpole"}))
    run.config["env"]["name"] = env
    return run


def test_a_record_that_names_other_code_than_its_loop_is_not_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(History, "trained_by_relab", True)
    Path("evilrun.py").write_text("open('ran', 'w').close()\n")
    assert " rows, minibatch " in writeup.batch(made("cartpole-v1"), BASE)
    assert writeup.batch(made("evilrun:make"), BASE) == ""
    assert not Path("ran").exists()
    assert "evilrun" not in sys.modules
