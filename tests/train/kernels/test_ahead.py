"""A second process compiles ahead: what it has done is known, what it cannot do is nobody's loss."""

import sys

from relab.train.kernels import ahead


def parts():
    yield "one"
    yield "two"


def fails():
    yield "one"
    raise RuntimeError("no compiler")


def of_here(name):
    return f"{__name__}:{name}"


def test_parts_are_waited_for_one_by_one(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))
    second = ahead.Ahead(of_here("parts"))
    assert second.ready("one", wait=True)
    assert "one" in second.parts
    assert second.ready("two", wait=True)


def test_a_process_that_fails_is_not_waited_for(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))
    second = ahead.Ahead(of_here("fails"))
    assert second.ready("two", wait=True)
    assert second.over


def test_one_core_compiles_alone(monkeypatch):
    monkeypatch.setattr(ahead, "usable_cores", lambda: 1)
    assert ahead.start(of_here("parts")) is None


def test_a_killed_process_ends_the_waiting():
    second = ahead.Ahead("time:sleep", "x")
    second.process.kill()
    assert second.ready("learner", wait=True)
