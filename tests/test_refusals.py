"""Is what the system refuses (a pipe, a file in a folder's place, a disk that cannot be written) a sentence?"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from relab import cli
from relab.base import jsonl
from relab.base.errors import refusal
from relab.report import render
from report.made import write_run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs" / "a", (1.0, 2.0, 3.0))
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("report a --out file/page.html", "file must be a folder, but is a file"),
        ("report a --out pipe/page.html", "pipe must be a folder, but is a pipe, a socket or a device"),
        ("report a --out none/page.html", "the folder none of page.md does not exist"),
        ("convert a --to csv --out file/x", "file must be a folder, but is a file"),
        ("examine pipe", "pipe is a pipe, a socket or a device; give a run folder, a file, or a folder of runs"),
        ("compare pipe", "pipe is a pipe, a socket or a device; give a run folder, a file, or a folder of runs"),
        ("note --check pipe", "pipe must be a log, but is a pipe, a socket or a device"),
        ("note --search x --into pipe", "pipe must be a log, but is a pipe, a socket or a device"),
        ("note a --into pipe", "pipe must be a file, but is a pipe, a socket or a device"),
        ("experiment none.yaml", "none.yaml does not exist"),
        ("experiment pipe", "pipe must be a file, but is a pipe, a socket or a device"),
    ],
)
def test_a_path_that_cannot_be_used_is_one_sentence(
    line: str, message: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(line.split()) == 2
    assert capsys.readouterr().err == f"relab: {message}\n"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_place_that_cannot_be_written_is_one_sentence(
    number: int, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = os.open

    def refuse(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if str(path).endswith(".md.tmp"):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    assert cli.main(["report", "a", "--out", "page.html"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("relab: page.md ")
    assert line.endswith("name another place")
    assert "Errno" not in line


def test_what_relab_worded_itself_stays() -> None:
    assert refusal(FileNotFoundError("there is no log LOG.md")) == "there is no log LOG.md"
    assert refusal(OSError(errno.EIO, "Input/output error", "/x")) == "/x: Input/output error"


# ---- Both pages or none


def test_without_room_for_the_second_page_the_first_stays_as_it_was(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = jsonl.write_row

    def full(fd: int, data: bytes, path: Path) -> None:
        if path.suffix == ".html":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd, data, path)

    (place / "page.md").write_text("before")
    monkeypatch.setattr(jsonl, "write_row", full)
    assert cli.main(["report", "a", "--out", "page.html"]) == 2
    assert "page.html could not be written: the disk is full" in capsys.readouterr().err
    assert (place / "page.md").read_text() == "before"
    assert sorted(path.name for path in place.iterdir()) == ["file", "page.md", "pipe", "runs"]


def test_a_folder_in_the_place_of_the_second_page_stops_the_first(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "page.html").mkdir()
    assert cli.main(["report", "a", "--out", "page.md"]) == 2
    assert capsys.readouterr().err == "relab: page.html must be a file, but is a folder\n"
    assert not (place / "page.md").exists()
    assert not list(place.glob(".page*"))


def test_both_pages_replace_those_there_were(place: Path) -> None:
    from relab.report import sections

    for name in ("page.md", "page.html"):
        (place / name).write_text("before")
    pages = render.write(sections.build(place / "runs" / "a"), place, "page")
    assert [page.name for page in pages] == ["page.md", "page.html"]
    assert all(page.read_text() != "before" for page in pages)
