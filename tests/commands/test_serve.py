"""Does `relab serve` come up where it says, and end when it is told to? And what does it refuse?"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from relab.cli import main
from relab.web import serving


def test_what_cannot_be_served_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "nowhere")]) == 64
    assert "is no folder" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--port", "99999"]) == 64
    assert main(["watch", str(tmp_path / "nowhere")]) != 0
    assert main(["watch", str(tmp_path), "--every", "0"]) == 64


def test_a_port_that_is_taken_is_passed_over_unless_it_was_named() -> None:
    first = serving.listening("127.0.0.1", 0, exactly=True)
    port = first.getsockname()[1]
    try:
        with pytest.raises(Exception, match="--port"):
            serving.listening("127.0.0.1", port, exactly=True)
        second = serving.listening("127.0.0.1", port, exactly=False)
        assert second.getsockname()[1] > port
        second.close()
    finally:
        first.close()


def test_the_address_holds_the_token_only_where_others_can_come() -> None:
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        port = here.getsockname()[1]
        assert serving.address("127.0.0.1", here, "secret") == f"http://127.0.0.1:{port}/"
        assert serving.address("0.0.0.0", here, "secret").endswith(f":{port}/?token=secret")


@pytest.mark.slow
def test_it_comes_up_answers_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "relab.cli", "serve", str(tmp_path), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        match = re.search(r"at (http://127\.0\.0\.1:\d+/)", process.stdout.readline())
        assert match is not None
        with urllib.request.urlopen(match[1] + "runs", timeout=60) as answer:
            assert b"No runs here yet" in answer.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert "Traceback" not in errors
        assert process.returncode in (0, 130)
    finally:
        process.kill()
        process.wait()
