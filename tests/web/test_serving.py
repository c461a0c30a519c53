"""Does the server hold out, and end as it should? Clients that never end a request hold up nobody else; SIGTERM, as a
system sends it, leaves no process and no complaint behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

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
        slow = [half_a_request(where) for _ in range(100)]
        with urllib.request.urlopen(f"{where}runs", timeout=60) as answer:
            assert answer.status == 200
        for each in slow:
            each.close()
        server.send_signal(signal.SIGTERM)
        said = server.stdout.read()
    assert "resource_tracker" not in said
    assert said.strip() == "relab: interrupted"
    assert server.returncode == 130


def half_a_request(where: str) -> socket.socket:
    """A client that has begun to ask, and never says the rest."""
    parts = urlsplit(where)
    client = socket.create_connection((parts.hostname, parts.port))
    client.sendall(b"GET /runs HTTP/1.1\r\nHo")
    return client
