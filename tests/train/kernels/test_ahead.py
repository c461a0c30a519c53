"""A second process compiles ahead: what it has done is known, what it cannot do is nobody's loss."""

import contextlib
from collections.abc import Iterator

import pytest

from relab.train.kernels import ahead
from relab.train.kernels.ahead import Ahead


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
