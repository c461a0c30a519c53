"""Does a process that is killed leave nothing behind on the screen?"""

from __future__ import annotations

import signal
import subprocess
import sys

HOLDS = """
import multiprocessing, sys
from relab.base import leash
{before}
held = multiprocessing.get_context("spawn").Semaphore(1)
print("ready", flush=True)
sys.stdin.read()
"""


def killed(before: str) -> str:
    """What is left on the screen by a process that held a semaphore; to its end, which is the tracker's."""
    code = HOLDS.format(before=before)
    child = subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, stderr=-1, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGKILL)
    return child.communicate(timeout=60)[1]


def test_the_semaphores_of_a_killed_process_are_taken_away_in_silence():
    assert "leaked semaphore" in killed("")  # as Python does it
    assert killed("leash.keep_tracker_silent()") == ""
