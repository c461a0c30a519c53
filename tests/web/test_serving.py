"""Does the server end as it should? SIGTERM, as a system sends it, leaves no process and no complaint behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import made_up


@pytest.mark.slow
def test_a_server_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    for seed in range(2):
        made_up.run(tmp_path / "runs" / f"a-s{seed}", 100.0, seed=seed)
    words = [sys.executable, "-m", "relab.cli", "serve", str(tmp_path / "runs"), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        where = server.stdout.readline().split(" at ")[1].split()[0]
        for _ in range(100):
            try:
                with urllib.request.urlopen(f"{where}today/more", timeout=60) as answer:  # a process examines the runs
                    assert b"Can be told apart" in answer.read()
                break
            except OSError:
                time.sleep(0.2)
        else:
            pytest.fail("nobody answers")
        server.send_signal(signal.SIGTERM)
        said = server.stdout.read()
    assert "resource_tracker" not in said
    assert said.strip() == "relab: interrupted"
    assert server.returncode == 130
