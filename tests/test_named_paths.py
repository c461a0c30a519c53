"""What becomes of a path that a record names, when somebody has sent the record? Nothing outside is opened for it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relab import cli
from relab.base import limits
from relab.base.enclosed import is_path, named, neighbour
from relab.config.yaml_io import read_yaml, write_yaml
from relab.schedules.gate import ScheduleError
from relab.schedules.sources import read_starts
from relab.train import checkpoint, session, steering
from shelves import make, set_meta
from small_runs import Interrupt, resolve, run

BAD = ("a\0b", "x" * 5000, "/".join(["d"] * 2500), "~", "~root/x", "..", "a/..", "/dev/zero", "", ".", "*", "[")
PROPOSAL = {
    "diff": {"algo.lr": {"from": 1, "to": 2}},
    "predicted": {"metric": "eval/return_det", "delta": 1, "low": 0, "high": 2},
}
READ = (
    "examine runs", "examine runs/sent --json", "report runs/sent --out page.html", "note runs/sent",
    "note runs/sent --into LOG.md", "runs", "compare runs", "diff runs/sent runs/other", "next runs/sent",
    "runs disk", "gate lint runs/sent", "doctor", "train next_config.yaml --print-config",
)  # fmt: skip
MAY_FAIL = ("gate", "train")  # a run without a schedule, a proposal whose parent is not there
Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """A command that waits for a pipe ends with an error here, not with the day."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for ever"))
    signal.alarm(120)
    yield
    signal.alarm(0)


# ---- Names of runs


@pytest.mark.parametrize("bad", BAD, ids=lambda text: repr(text)[:12])
def test_no_name_in_a_record_ends_a_command(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    for k, name in enumerate(("sent", "other")):
        make(Path("runs") / name, seed=str(k))
    set_meta(Path("runs/sent"), parent=bad, parent_id=bad, proposal=PROPOSAL, resumed=bad, checkpoint=bad, name=bad)
    write_yaml("next_config.yaml", {"parent": bad, "diff": PROPOSAL["diff"]})
    for line in READ:
        code = cli.main(line.split())
        err = capsys.readouterr().err
        assert code == 0 or line.startswith(MAY_FAIL), (line, err)
        assert "Errno" not in err, line


def test_a_parent_lies_beside_its_run_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("runs/a", "runs/deep/b", "elsewhere"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "meta.json").write_text("{}")
    (tmp_path / "meta.json").write_text("{}")
    (tmp_path / "runs/link").symlink_to(tmp_path / "elsewhere")
    runs = tmp_path / "runs"
    assert neighbour(runs, "a") == neighbour(runs, "/other/runs/a") == runs / "a"
    for value in ("..", "a/..", "link", "elsewhere", "a\0", "x" * 300, "b", "", None, 3, ["a"]):
        assert neighbour(runs, value) is None, value
    assert named("~") == "~", "a folder may be called so; nobody's home is meant"
    assert not is_path("é" * 200)


# ---- Files of starts

FISH = {"env": "fish", "env__agents": "12", "total_steps": "99999", "eval__every": "0", "eval__episodes": "2",
        "algo__envs": "4"}  # fmt: skip


def plan(source: Any) -> dict[str, Any]:
    return {"total": 40, "every": 20, "queues": {"tail": {"stages": [{"iterations": 40, "source": str(source)}]}}}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of starts that are opened from here on."""
    paths: list[str] = []
    real = steering.read_starts
    monkeypatch.setattr(steering, "read_starts", lambda path: paths.append(str(path)) or real(path))
    return paths


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a queue out of a file, interrupted; then its record names a file outside."""
    work, outside = tmp_path / "work", tmp_path / "outside.json"
    work.mkdir()
    monkeypatch.chdir(work)
    for path in (outside, work / "starts.json"):
        path.write_text(json.dumps([[1.5, 1.2], [1.8, 0.9]]))
    run(Path("runs/sent"), Interrupt(2), **FISH, schedule=json.dumps(plan("starts.json")))
    point(Path("runs/sent"), outside)
    return outside


def point(folder: Path, source: Any) -> None:
    settings = read_yaml(folder / "config.yaml")
    write_yaml(folder / "config.yaml", settings | {"schedule": plan(source)})


def forget(folder: Path) -> None:
    """As if it had been killed before its first checkpoint."""
    (folder / "checkpoints" / "latest.json").unlink()
    assert checkpoint.last(folder / "checkpoints") is None


def test_resume_opens_no_file_that_a_record_names(sent: Path, opened: list[str]) -> None:
    for bad in (sent, "/dev/zero", "/etc/passwd", "a\0b", "x" * 5000):
        point(Path("runs/sent"), bad)
        assert session.resume(Path("runs/sent"), Interrupt(1)).status == "interrupted"
    assert opened == [], "the starts are in the checkpoint"


def test_without_a_checkpoint_it_asks_for_trust(sent: Path, opened: list[str], capsys: Said) -> None:
    forget(Path("runs/sent"))
    for bad in (sent, "/dev/zero", "../outside.json", "x" * 5000):
        point(Path("runs/sent"), bad)
        assert cli.main(["resume", "runs/sent", "--quiet"]) == 64
        assert "--trust" in capsys.readouterr().err
    assert opened == []
    point(Path("runs/sent"), sent)
    session.resume(Path("runs/sent"), Interrupt(1), trust=True)
    assert opened == [str(sent)]


def test_a_file_of_the_current_folder_is_ones_own(sent: Path, opened: list[str]) -> None:
    forget(Path("runs/sent"))
    point(Path("runs/sent"), "starts.json")
    session.resume(Path("runs/sent"), Interrupt(1))
    assert opened == ["starts.json"]


@pytest.mark.parametrize("words", ["--parent runs/sent", "runs/sent/config.yaml", "next_config.yaml"])
def test_a_new_run_after_a_record_asks_too(sent: Path, words: str, opened: list[str], capsys: Said) -> None:
    old = read_yaml(Path("runs/sent/config.yaml"))["seed"]
    write_yaml("next_config.yaml", {"parent": "sent", "diff": {"seed": {"from": old, "to": old + 1}}})
    line = ["train", *words.split()]
    assert cli.main([*line, "--print-config"]) == 64
    assert "--trust" in capsys.readouterr().err
    assert opened == []
    assert cli.main([*line, "--trust", "--print-config"]) == 0
    if not words.startswith("next"):
        typed = f"schedule={json.dumps(plan(sent))}"
        assert cli.main([*line, typed, "--print-config"]) == 0, "typed, and so one's own word"


@pytest.mark.parametrize(
    "line", ["examine runs/sent", "report runs/sent --out p.html", "gate lint runs/sent", "note runs/sent", "next runs"]
)
def test_readers_open_none(sent: Path, line: str, opened: list[str]) -> None:
    os.mkfifo("pipe")
    point(Path("runs/sent"), Path("pipe").resolve())
    cli.main(line.split())
    assert opened == []


# ---- Pipes and devices that somebody names himself


def test_no_pipe_or_device_keeps_a_command_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.yaml")
    for name in ("pipe.yaml", "/dev/zero", "/dev/tty"):
        with pytest.raises(ScheduleError, match=r"pipe, a socket or a device|No such device"):
            read_starts(name)
        for read in (limits.read_bytes, limits.read_end):
            with pytest.raises(OSError, match=r"pipe, a socket or a device|No such device"):
                read(name, 1000)
    for line in ("train pipe.yaml --print-config", "train ppo schedule=pipe.yaml --print-config", "gate lint pipe.yaml",
                 "experiment pipe.yaml", "sweep pipe.yaml"):  # fmt: skip
        assert cli.main(line.split()) in (2, 64), line
    assert limits.read_bytes(os.devnull, 1000) == b"", "an empty file, as everywhere"


def test_what_one_names_oneself_is_read(tmp_path: Path) -> None:
    (tmp_path / "starts.json").write_text("[[1, 2]]")
    (tmp_path / "link.json").symlink_to(tmp_path / "starts.json")
    cfg = resolve(**FISH, schedule=json.dumps(plan(tmp_path / "link.json"))).config
    assert list(steering.make(cfg, session.make_env(cfg)).sources) == [str(tmp_path / "link.json")]


def test_the_queue_takes_no_such_run(sent: Path, opened: list[str], capsys: Said) -> None:
    assert cli.main(["queue", "add", "train", "--parent", "runs/sent"]) == 64
    assert "--trust" in capsys.readouterr().err
    assert opened == []
