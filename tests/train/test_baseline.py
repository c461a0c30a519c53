"""Is the random policy's return that of the environment as it is now?"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from drift_env import DRIFT
from relab.config import envs
from relab.config.registry import env_class
from relab.train import baseline
from relab.train.envs.gym_bridge import Gym


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with somebody's own module, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits fall into one second
    return tmp_path


def earned(text: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """What the random policy earns in the environment of that text, as a new process would find it."""
    Path("drift.py").write_text(text)
    monkeypatch.delitem(sys.modules, "drift", raising=False)
    importlib.invalidate_caches()
    return float(baseline.random_baseline(importlib.import_module("drift").Drift(), {"name": "drift"})["return_mean"])


def test_an_environment_that_was_edited_is_measured_again(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = earned(DRIFT, monkeypatch)
    assert before < 0
    assert earned(DRIFT.replace("* 1.0", "* 100.0"), monkeypatch) == pytest.approx(100 * before)
    assert earned(DRIFT, monkeypatch) == before


def test_what_random_actions_rarely_meet_is_noticed_in_the_text(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earned(DRIFT, monkeypatch)
    monkeypatch.setattr(baseline, "measure", lambda env: {"baseline": {"return_mean": 1.0}, "first": []})
    assert earned(DRIFT + "\nRARE = 1\n", monkeypatch) == 1.0


def test_a_file_that_the_environment_reads_counts_too(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = earned(DRIFT, monkeypatch)
    (at_home / "price.txt").write_text("3")
    assert earned(DRIFT, monkeypatch) == pytest.approx(3 * before)


def test_an_environment_that_was_not_edited_is_measured_once(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = earned(DRIFT, monkeypatch)
    monkeypatch.setattr(baseline, "measure", lambda env: pytest.fail("measured again"))
    assert earned(DRIFT, monkeypatch) == before


class Mine(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Somebody's own layer around one of Gymnasium's."""


@pytest.mark.parametrize("name", ["cartpole-v1", "gym:CartPole-v1"])
def test_what_has_a_version_is_not_played_again(name: str) -> None:
    params = envs.Gym(name) if name.startswith("gym:") else None
    assert baseline.sources(env_class(name)(params)) == ""


def test_a_wrapper_of_somebodys_own_is_his_code() -> None:
    gymnasium.register("Wrapped-v0", entry_point=lambda **words: Mine(gymnasium.make("CartPole-v1", **words)))
    try:
        assert baseline.sources(Gym(envs.Gym("gym:Wrapped-v0"))) != ""
    finally:
        del gymnasium.registry["Wrapped-v0"]
