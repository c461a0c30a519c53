"""Is a kernel compiled once where several processes want it at once, and does nobody wait for nothing?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from relab.train.kernels import turns

KERNEL = """
from relab.train.kernels.jit import njit

@njit(cache=True)
def add(x):
    return x + 1
"""
CALL = """
import sys, adding
print("begun", flush=True)
assert adding.add(1) == 2
print(sum(adding.add.stats.cache_hits.values()), sum(adding.add.stats.cache_misses.values()))
"""
HOLD = """
import adding
from relab.train.kernels import turns
with turns.turn(adding.add):
    print("held", flush=True)
    input()
    {body}
"""


@pytest.fixture
def start(tmp_path: Path):
    """Starts Python with a kernel that no process has compiled; ends what is left of it."""
    (tmp_path / "adding.py").write_text(KERNEL)
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = []

    def python(code: str) -> subprocess.Popen[str]:
        started.append(subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], env=variables, **pipes))
        return started[-1]

    yield python
    for process in started:
        process.kill()
        process.communicate()


def test_who_comes_second_waits_and_finds_the_kernel_on_disk(start) -> None:
    first = start(HOLD.format(body="adding.add(1)"))
    assert first.stdout.readline() == "held\n"
    second = start(CALL)
    assert second.stdout.readline() == "begun\n"
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0.3)
    first.communicate("\n")
    assert second.communicate(timeout=60)[0] == "1 0\n", "one hit in the cache, nothing compiled"


def test_a_process_that_was_killed_holds_nobody_up(start) -> None:
    first = start(HOLD.format(body="pass"))
    assert first.stdout.readline() == "held\n"
    first.send_signal(signal.SIGKILL)
    second = start(CALL)
    assert second.communicate(timeout=60)[0] == "begun\n0 1\n", "compiled by itself"


@pytest.mark.parametrize("folder", [None, "/proc/nowhere", "/dev/null/below"])
def test_where_nothing_can_be_locked_nothing_is(folder: str | None) -> None:
    assert turns._file(folder) is None
