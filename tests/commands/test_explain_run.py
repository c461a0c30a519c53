"""Does `relab explain METRIC RUN` find a run by its name, and say what it has?"""

from __future__ import annotations

import pytest

from relab import cli
from report.made import write_run


@pytest.fixture
def logs(tmp_path, monkeypatch):
    write_run(tmp_path / "logs" / "ok_s0", [20.0, 90, 70], 0)
    monkeypatch.chdir(tmp_path)


def printed(capsys, *words: str, code: int = 0) -> str:
    assert cli.main(list(words)) == code
    streams = capsys.readouterr()
    return streams.out if code == 0 else streams.err


def test_a_metric_without_a_healthy_range(logs, capsys):
    text = printed(capsys, "explain", "eval/return_det", "ok_s0")
    assert "ok_s0, 3 rows: first 20 at step 0, last 70 at step 2,000, best 90 at step 1,000" in text
    assert "No healthy range of eval/return_det is known" in text


def test_a_metric_that_the_run_lacks(logs, capsys):
    assert "ok_s0 does not log 'policy/kl'" in printed(capsys, "explain", "policy/kl", "ok_s0", code=2)


def test_other_commands_take_the_name_too(logs, capsys):
    assert "1 run" in printed(capsys, "examine", "ok_s0")


def test_a_name_that_two_folders_have(logs, tmp_path, capsys):
    write_run(tmp_path / "more" / "ok_s0", [20.0], 0)
    said = printed(capsys, "explain", "eval/return_det", "ok_s0", code=2)
    assert "means 2 folders below this one: logs/ok_s0, more/ok_s0; write its path" in said
