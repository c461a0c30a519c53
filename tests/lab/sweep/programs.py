"""A real program that is swept in hundredths of a second, what it was called for, and what the sweep `s` found."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from relab import cli

# Without site-packages and the like: half the time that such a program takes is Python's start.
PYTHON = f"{sys.executable} -I -S"
HEAD = '''
import os, sys, time, zlib
*values, seed, run = sys.argv[1:]
with open("calls.txt", "a") as file:
    file.write(os.path.basename(run) + "\\n")
if os.path.exists("slow"):
    time.sleep(float(open("slow").read()))
def noise(*key):
    """About normal, with a standard deviation of 1; `random` would take longer to import than all the rest."""
    return sum(zlib.crc32(repr((k, key)).encode()) for k in range(12)) / 2**32 - 6
def told(**numbers):
    with open(os.path.join(run, "progress.csv"), "w") as file:
        print("step", *numbers, sep=",", file=file)
        print(1, *[0] * len(numbers), sep=",", file=file)
        print(2, *numbers.values(), sep=",", file=file)
'''


def calls() -> list[str]:
    return Path("calls.txt").read_text().split() if Path("calls.txt").exists() else []


def body() -> dict:
    return json.loads(Path("sweeps/s/sweep.json").read_text())


def relab(*words: str, code: int = 0) -> None:
    assert cli.main(["sweep", *words]) == code


def start() -> subprocess.Popen:
    command = [sys.executable, "-m", "relab.cli", "sweep", "s.yaml", "--yes", "--workers", "2"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def kill_after(done: int) -> None:
    """A sweep in a process of its own, killed when so many runs had begun; what it had started comes to its end."""
    process = start()
    wait_for(lambda: len(calls()) >= done)
    process.send_signal(signal.SIGKILL)
    process.wait()
