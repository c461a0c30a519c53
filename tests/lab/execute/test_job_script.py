"""The batch script of a job: does it end with relab's node, pass on what it is told, and hold nothing but its lines?"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from relab.config.base import ConfigError
from relab.lab.execute import local, slurm_border, where
from relab.lab.execute.desk import Desk
from relab.lab.execute.local import Job
from relab.lab.execute.where import Where

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="no bash")


def shell(node: str, folder: Path) -> subprocess.Popen[str]:
    """A job whose node is this; `scontrol` writes down that it was asked to requeue."""
    (folder / "scontrol").write_text("#!/bin/sh\necho requeue > " + str(folder / "again") + "\n")
    (folder / "scontrol").chmod(0o755)
    text = "\n".join([f"export PATH={folder}:$PATH", f"{node} &", *slurm_border.WAITING])
    return subprocess.Popen([str(BASH), "-c", text], text=True)


@needs_bash
@pytest.mark.parametrize(("node", "code"), [
    ("bash -c 'kill -9 $$'", 137), ("bash -c 'exit 0'", 0), ("bash -c 'exit 78'", 78), ("bash -c 'exit 75'", 75),
])  # fmt: skip
def test_the_script_ends_as_its_node_does(tmp_path: Path, node: str, code: int) -> None:
    """A node that was killed let the script spin for ever, and the run was never taken up."""
    assert shell(node, tmp_path).wait(20) == code
    assert (tmp_path / "again").exists() == (code == 75)


@needs_bash
@pytest.mark.parametrize("seconds", [0.0, 0.4])
def test_a_signal_is_passed_on_and_the_node_is_waited_for(tmp_path: Path, seconds: float) -> None:
    node = tmp_path / "node.py"
    node.write_text(
        "import signal, sys, time\n"
        "def stop(*_):\n    time.sleep(float(sys.argv[1])); sys.exit(75)\n"
        "signal.signal(signal.SIGUSR1, stop); open(sys.argv[2], 'w').close(); time.sleep(60)\n"
    )
    ready = tmp_path / "ready"
    process = shell(f"{sys.executable} {node} {seconds} {ready}", tmp_path)
    while not ready.exists():
        time.sleep(0.02)
    process.send_signal(10)
    assert process.wait(20) == 75
    assert (tmp_path / "again").exists()


@needs_bash
@pytest.mark.parametrize("settings", [{"venv": "/nope"}, {"modules": ["nope"]}])
def test_an_environment_that_is_not_there_ends_the_job(tmp_path: Path, settings: dict[str, Any]) -> None:
    """It went on with whatever Python was on the path."""
    desk = Desk(tmp_path).make()
    text = slurm_border.script(where.of({"on": "slurm", **settings}), desk, ["a-s0.1"])
    done = subprocess.run([str(BASH), "-c", text], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == slurm_border.REFUSED
    assert "nope" in done.stderr or "module" in done.stderr


@pytest.mark.parametrize("settings", [
    {"partition": "usual\ntouch x"}, {"account": "a b"}, {"venv": "v\ntouch x"}, {"modules": ["m\r\ntouch x"]},
    {"env": {"A=1; touch x; B": "1"}}, {"env": 3}, {"env": ["a"]}, {"lines": 3}, {"lines": ["--array=1-3"]},
    {"lines": ["--output=x"]},
    {"on": "ray:"}, {"on": "ray://127.0.0.1:10001"}, {"on": "ray:somewhere"},
    {"minutes": float("inf")}, {"cores": 10**9}, {"gpus": float("nan")},
])  # fmt: skip
def test_what_is_no_setting_is_refused(settings: dict[str, Any]) -> None:
    """Two of these were executed as commands."""
    with pytest.raises(ConfigError, match=r"execute|--on"):
        where.of({"on": "slurm", **settings})


def test_values_of_variables_are_no_commands(tmp_path: Path) -> None:
    text = slurm_border.script(Where(on="slurm", env={"A": "1; touch x\n$(touch y)"}), Desk(tmp_path).make(), ["a.1"])
    assert "export A='1; touch x\n$(touch y)'" in text


def test_variables_are_set_here_too(tmp_path: Path) -> None:
    """The same file gave other results at home."""
    out = tmp_path / "out"
    words = [sys.executable, "-c", f"import os; open({str(out)!r}, 'w').write(os.environ.get('MINE', ''))"]
    job = Job("a", lambda: words, out.exists, tmp_path / "logs" / "a.log")
    local.run([job], 1, env={"MINE": "hello"})
    assert out.read_text() == "hello"
