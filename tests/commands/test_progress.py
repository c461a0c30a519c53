"""Does a long reading show how far it is, on stderr alone?"""

from __future__ import annotations

import pytest

from relab.base import limits
from relab.commands import progress
from relab.commands.progress import Progress


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_every_few_seconds_in_a_pipe(clock, capsys):
    with Progress("reading run") as tell:
        for second in range(12):
            clock[0] = float(second)
            tell(second, 12, "a\x1b[2J")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "reading run 5 of 12: a?[2J (5 s)\nreading run 10 of 12: a?[2J (10 s)\n"


def test_files_that_are_read_a_part_at_a_time_are_told(clock, tmp_path, capsys):
    (tmp_path / "progress.csv").write_bytes(b"x" * 5_000_000)
    with Progress("reading run"):
        for number, _ in enumerate(limits.blocks(tmp_path / "progress.csv", block=1_000_000)):
            clock[0] = 3.0 * number
    assert capsys.readouterr().err == "reading progress.csv: 3 of 5 MB (6 s)\n"
    list(limits.blocks(tmp_path / "progress.csv"))  # nobody watches any more
    assert capsys.readouterr().err == ""


def test_one_line_on_a_terminal_that_is_gone_afterwards(clock, monkeypatch, capsys):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True)
    with Progress("reading run") as tell:
        tell(0, 2, "first")
        clock[0] = 2.5
        tell(1, 2, "second")
    assert capsys.readouterr().err == "\r\x1b[Kreading run 1 of 2: second\r\x1b[K"
