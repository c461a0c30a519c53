"""A second process compiles ahead: what it has done is known, what it cannot do is nobody's loss."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from relab.config import registry
from relab.config.ppo import PPO
from relab.train.kernels import ahead
from relab.train.kernels.ahead import Ahead
from small_runs import resolve


@contextlib.contextmanager
def second(code: str) -> Iterator[Ahead]:
    """A second process that runs this instead of compiling."""
    process = ahead.Ahead("builtins:exec", code)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.communicate()


def test_parts_are_waited_for_one_by_one(tmp_path, monkeypatch):
    (tmp_path / "parts_to_compile.py").write_text("def parts():\n    yield 'one'\n    yield 'two'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    process = ahead.Ahead("parts_to_compile:parts")
    assert process.ready("one", wait=True)
    assert process.parts == {"one"}
    assert process.ready("two", wait=True)
    assert not process.over
    process.process.communicate()


@pytest.mark.parametrize("code", ["raise RuntimeError", "import os; os._exit(9)"])
def test_a_process_that_fails_is_not_waited_for(code):
    with second(code) as process:
        assert process.ready("one", wait=True)
        assert process.over


def test_a_killed_process_ends_the_waiting():
    with second("import time; time.sleep(600)") as process:
        assert not process.ready("one")
        process.process.kill()
        assert process.ready("one", wait=True)


def test_one_core_compiles_alone(monkeypatch):
    monkeypatch.setattr(ahead, "usable_cores", lambda: 1)
    assert ahead.start("builtins:exec", "one core") is None


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What would have been started, on a machine without kernels."""
    calls = []
    monkeypatch.setattr(ahead, "start", lambda *words: calls.append(words))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return calls


def test_a_first_run_starts_it_before_torch_is_there(started):
    ahead.start_early(resolve(env="cartpole").config)
    assert started == [("relab.train.algos.ppo:compile_parts", "cartpole-v1")]
    assert callable(registry.load(started[0][0]))


def test_what_was_compiled_before_is_not_compiled_ahead(started, tmp_path):
    (tmp_path / "algos_1").mkdir()
    (tmp_path / "algos_1" / "ppo_learner.ppo_epochs-170.py311.nbi").touch()
    ahead.start_early(resolve(env="cartpole").config)
    assert started == []


@pytest.mark.parametrize("settings", [{"algo__rnn": "gru"}, {"env": "gym:CartPole-v1"}, {"algo": "dqn"}])
def test_nothing_is_compiled_ahead_for_others(started, settings):
    """Torch learns, somebody else's environment would be made, or the algorithm has no such parts."""
    ahead.start_early(resolve(**settings).config)
    assert started == []


def test_the_kernel_that_tells_is_there():
    module, name = PPO().compiled_ahead()[1].split(".")
    assert hasattr(registry.load(f"relab.train.algos.{module}:{name}"), "py_func")


def test_it_is_imported_without_torch_and_numba():
    code = "import relab.train.kernels.ahead, sys; print([m for m in ('torch', 'numba') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
