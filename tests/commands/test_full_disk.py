"""Does a full disk say which file, how much and what to do, and does the run go on once there is room again?"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relab.base import jsonl
from relab.base.jsonl import DiskFullError, RecordError, write_atomic
from relab.base.media import write_film
from relab.cli import main
from relab.config import layers
from relab.record import run_folder
from relab.train import checkpoint, replay, session
from small_runs import fingerprint, resolve, run

BIG = 4 << 20  # bytes of the small disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes, which a test may fill."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={BIG}", "none", str(place)], capture_output=True, text=True
    )
    if not mounted or mounted.returncode:
        pytest.skip(f"a small file system can be mounted by root alone ({mounted and mounted.stderr.strip()})")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """A file that takes all of the disk but `leave` bytes."""
    ballast = disk / "ballast"
    with open(ballast, "wb") as file:
        file.write(b"x" * (shutil.disk_usage(disk).free - leave))
    return ballast


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    run(folder)
    return folder


@pytest.mark.parametrize("leave", [40_000, 60_000, 100_000, 150_000, 200_000])
def test_a_run_on_a_full_disk_goes_on_after_it(leave: int, disk: Path, whole: Path) -> None:
    ballast = fill(disk, leave)
    with pytest.raises(DiskFullError) as caught:
        run(disk / "run")
    message = str(caught.value)
    assert re.match(r"/\S+/disk/run/\S+ could not be written: the disk is full \([\d,]+ ", message), message
    ballast.unlink()
    if not (disk / "run").exists():  # it had not begun
        assert message.endswith("free some space, then call it again")
        return
    assert message.endswith(f"then `relab resume {disk / 'run'}`")
    assert not list(disk.glob("run/**/.*")), "nothing half-written takes up room"
    assert session.resume(disk / "run").status == "finished"
    assert fingerprint(disk / "run") == fingerprint(whole)


REPLAYED = {"algo": "dqn", "algo__replay": "1500", "algo__learning_starts": "200", "algo__hidden": "[8]"}


@pytest.mark.parametrize("leave", [60_000, 90_000, 120_000])
@pytest.mark.some(1)
def test_a_replay_that_no_longer_fits_is_told_and_goes_on(leave: int, disk: Path, tmp_path: Path) -> None:
    run(tmp_path / "whole", **REPLAYED)
    ballast = fill(disk, leave)
    with pytest.raises(DiskFullError, match=r"could not be written: the disk is full \([\d,]+ ") as caught:
        run(disk / "run", **REPLAYED)
    assert str(caught.value).endswith(f"then `relab resume {disk / 'run'}`")
    assert run_folder.read_meta(disk / "run")["status"] == "failed"
    assert not slots_cut(disk / "run" / "data" / "replay"), "no half-written slot takes up room"
    ballast.unlink()
    assert session.resume(disk / "run").status == "finished"
    assert fingerprint(disk / "run") == fingerprint(tmp_path / "whole")
    rows, expected = (replay.read(folder / "data" / "replay") for folder in (disk / "run", tmp_path / "whole"))
    for name, values in expected.items():
        np.testing.assert_array_equal(rows[name], values)


def slots_cut(folder: Path) -> list[str]:
    """The files of a replay that end within a slot."""
    size = json.loads((folder / "fields.json").read_text())["slot_bytes"] if (folder / "fields.json").exists() else 1
    return [path.name for path in folder.glob("*.rows") if path.stat().st_size % size]


@pytest.mark.parametrize("per_file", [10, 1000])
def test_a_replay_that_did_not_fit_is_taken_back_and_written_later(
    per_file: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums, too, are those of what was written."""
    monkeypatch.setattr(replay, "SEGMENT_BYTES", per_file * 800)
    kept = [replay.Data(tmp_path / name) for name in ("a", "b")]
    for data in kept:
        assert data.root is not None
        data.root.mkdir()
        ring = data.replay("replay", {"obs": ((100,), np.float32)}, 100, 2)
        for k in range(25):
            ring.add(obs=np.full((2, 100), k, np.float32))
    limit = 4096 if per_file == 1000 else 2 * 4096
    monkeypatch.setattr(replay, "open_rows", small_files(replay.open_rows, limit))
    with pytest.raises(DiskFullError):
        kept[0].lengths()
    assert not slots_cut(tmp_path / "a" / "data" / "replay")
    monkeypatch.undo()
    monkeypatch.setattr(replay, "SEGMENT_BYTES", per_file * 800)
    assert [data.lengths() for data in kept] == [{"replay": 25}] * 2
    assert kept[0].sums() == kept[1].sums()
    for name, values in replay.read(tmp_path / "b" / "data" / "replay").items():
        np.testing.assert_array_equal(replay.read(tmp_path / "a" / "data" / "replay")[name], values)


def small_files(opened: Callable[[Path], Any], limit: int) -> Callable[[Path], Any]:
    """Of all files together, only so many bytes can be written."""
    left = [limit]

    def open_rows(path: Path) -> Any:
        file = opened(path)

        class Small(io.BufferedRandom):
            def write(self, data: Any) -> int:
                room = min(left[0], len(data))
                left[0] -= room
                super().write(data[:room])
                super().flush()
                if room < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return room

        return Small(file.detach())

    return open_rows


def test_a_run_of_somebodys_own_code_says_the_word_that_its_resume_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_env.py").write_text("from relab.train.envs.cartpole import CartPole as Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(run_folder, "write_row", lambda fd, data, path: full(path))
    with pytest.raises(DiskFullError) as caught:
        run(tmp_path / "run", env="my_env:Mine")
    assert str(caught.value).endswith(f"then `relab resume {tmp_path / 'run'} --trust`")
    assert run_folder.read_meta(tmp_path / "run")["status"] == "failed"


def full(path: Path) -> None:
    raise jsonl.disk_full(path, None, errno.ENOSPC)


def test_the_last_words_of_a_run_need_no_room(disk: Path) -> None:
    kept = run_folder.Record.create(disk / "run", layers.to_dict(resolve().config), {}, {})
    fill(disk, 0)
    with pytest.raises(DiskFullError):
        kept.update_meta(status="failed")
    kept.last_words("failed", "x" * 10_000)
    assert run_folder.read_meta(disk / "run")["status"] == "failed"
    kept.last_words("failed", "short")
    assert run_folder.read_meta(disk / "run")["why"] == "short"
    kept.close()


def test_a_replays_file_says_it(tmp_path: Path) -> None:
    """The rows themselves, where no row of the record comes first."""
    data = replay.Data(tmp_path)
    kept = data.replay("replay", {"obs": ((100,), np.float32)}, 100, 2)
    for _ in range(50):
        kept.add(obs=np.ones((2, 100), np.float32))
    message = limited(lambda: data.lengths() and None, 4096)
    where = tmp_path / "data" / "replay" / "00000000.rows"
    assert message.startswith(f"DiskFullError: {where} could not be written")
    assert "40,000 bytes were wanted" in message
    assert data.lengths() == {"replay": 50}, "once there is room"
    assert replay.read(tmp_path / "data" / "replay")["obs"].shape == (50, 2, 100)


def test_the_command_line_says_it_in_one_line(disk: Path, whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(disk, 0)
    assert main(["report", str(whole), "--out", str(disk / "page.html")]) == 2
    assert main(["note", str(whole), "--into", str(disk / "LOG.md")]) == 2
    assert main(["queue", "add", "--queue", str(disk / "queue"), "--", "true"]) == 2
    assert main(["convert", str(whole), "--to", "csv", "--out", str(disk / "csv")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    for line, name in zip(lines, ("page", "LOG.md", "queue/", "csv/")):
        assert line.startswith(f"relab: {disk}/{name}"), line
        assert "could not be written: the disk is full" in line
        assert line.endswith("free some space, then call it again")


def test_a_film_names_its_file_and_leaves_no_part(disk: Path) -> None:
    frames = [np.random.default_rng(i).integers(0, 255, (64, 64, 3), np.uint8) for i in range(40)]
    for leave in (0, 8192):
        ballast = fill(disk, leave)
        for name in ("a.mp4", "a.gif"):
            with pytest.raises(DiskFullError, match=f"{name} could not be written: the disk is full"):
                write_film(disk / name, frames, 10)
        assert not (disk / "a.mp4").exists()
        (disk / "a.gif").unlink(missing_ok=True)
        ballast.unlink()


def test_what_is_only_a_cache_may_fail(
    disk: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(disk, 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(disk))
    for words in (["runs", str(whole.parent)], ["examine", str(whole)], ["examine", str(whole), "--new"]):
        assert main(words) == 0, words
        assert "finished" in capsys.readouterr().out
    assert run(tmp_path / "run", total_steps="128").status == "finished"


KERNEL = """
from relab.train.kernels.jit import compiled, njit
@njit(cache=True)
def double(x):
    return 2 * x
assert double(3) == 6
compiled(double)
"""


@pytest.mark.parametrize("place", ["disk", "/dev/null/none"])
def test_a_kernel_that_cannot_be_kept_runs(place: str, disk: Path, tmp_path: Path) -> None:
    fill(disk, 0)
    (tmp_path / "kernel.py").write_text(KERNEL)
    env = os.environ | {"NUMBA_CACHE_DIR": place if place[0] == "/" else str(disk)}
    done = subprocess.run([sys.executable, str(tmp_path / "kernel.py")], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_captured_program_goes_on(disk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = "for i in range(3000): print(f'step {i} loss {i / 7}')"
    fill(disk, 20_000)
    assert main(["capture", "--runs", str(disk), "--name", "run", "--", sys.executable, "-c", code]) == 0
    out, err = capfd.readouterr()
    assert "step 2999 " in out
    assert err.count("the disk is full") == 1
    for file in disk.glob("run/*.jsonl"):
        assert all(json.loads(line) for line in file.read_text().splitlines())


# ---- Without a disk of one's own


def no_room(*_: Any) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def quota(*_: Any) -> int:
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


@pytest.mark.parametrize(("write", "why"), [(no_room, "the disk is full"), (quota, "the quota .* is used up")])
def test_every_row_says_it(
    write: Callable[..., int], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = resolve()
    kept = run_folder.Record.create(tmp_path / "run", layers.to_dict(resolved.config), {}, {})
    monkeypatch.setattr(os, "write", write)
    remedy = re.escape(f"then `relab resume {tmp_path / 'run'}`")
    for name, act in {
        "metrics.jsonl": lambda: kept.append_metrics(0, {"return/mean": 1.0}),
        "events.jsonl": lambda: kept.append_event("finish", 0),
        "meta.json": lambda: kept.update_meta(status="finished"),
    }.items():
        with pytest.raises(DiskFullError, match=rf"run/{name} could not be written: {why} \([\d,]+ bytes .*{remedy}"):
            act()
    kept.close()
    with pytest.raises(DiskFullError, match=r"events.jsonl could"):
        run_folder.append_event_to(tmp_path / "run", "evaluation", 0)
    with pytest.raises(DiskFullError, match=r"new/config.yaml could .* free some space, then call it again"):
        run_folder.Record.create(tmp_path / "new", layers.to_dict(resolved.config), {}, {})
    assert not (tmp_path / "new").exists(), "the name is free for the next try"
    assert not list(tmp_path.glob("run/.*"))


def test_a_disk_error_is_known_as_both(tmp_path: Path) -> None:
    error = jsonl.disk_full(tmp_path / "x", 3, errno.ENOSPC)
    assert isinstance(error, RecordError)
    assert isinstance(error, OSError)
    assert error.errno == errno.ENOSPC


def limited(work: Callable[[], None], size: int) -> str:
    """What `work` says in a process whose files may not grow beyond `size` bytes."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            work()
            text = "nothing"
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with open(read, "rb") as file:
        return file.read().decode()


def test_arrays_of_a_checkpoint_say_it(tmp_path: Path) -> None:
    tree = {"params": {"w": np.zeros(10_000)}, "adam": {"m": np.zeros(10)}}
    message = limited(lambda: checkpoint.save(tmp_path, 7, tree, {}) and None, 4096)
    where = tmp_path / "step-000000000007" / "weights.safetensors"
    assert message.startswith(f"DiskFullError: {where} could not be written: the file may not grow any further here")
    assert "80,000 bytes were wanted" in message
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_replaced_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    message = limited(lambda: write_atomic(tmp_path / "a", b"x" * 9000), 4096)
    assert message.startswith(f"DiskFullError: {tmp_path / 'a'} could not be written")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"
