"""Is TensorBoard's file written while a run trains, and does a resumed run show every step once?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relab.base.jsonl import read_jsonl
from relab.config import layers
from relab.formats.read import find
from relab.formats.read.tfevents import read
from relab.formats.write.live_board import FOLDER, LiveBoard
from relab.record.run_folder import Record
from relab.train import session
from small_runs import resolve, run

BOARD = {"record__tensorboard": "true"}


def board(folder: Path) -> dict[str, dict[int, float]]:
    """tag -> step -> value; a step that was written twice is an error."""
    (path,) = (folder / FOLDER).iterdir()
    scalars = read(path).scalars
    for tag, series in scalars.items():
        assert len(set(series.steps)) == len(series.steps), f"{tag} has a step twice"
    return {tag: dict(zip(series.steps, series.values)) for tag, series in scalars.items()}


def logged(folder: Path) -> dict[str, dict[int, float]]:
    rows = read_jsonl(folder / "metrics.jsonl")[0]
    named: dict[str, dict[int, float]] = {}
    for row in rows:
        for name, value in row.items():
            if "/" in name and isinstance(value, (int, float)):
                named.setdefault(name, {})[row["step"]] = value
    return named


def same(one: dict[str, dict[int, float]], other: dict[str, dict[int, float]]) -> bool:
    return one.keys() == other.keys() and all(
        one[tag].keys() == other[tag].keys() and np.allclose(list(one[tag].values()), list(other[tag].values()),
                                                             rtol=1e-6, equal_nan=True) for tag in one)  # fmt: skip


def test_every_metric_is_in_it_and_the_importer_still_sees_one_run(tmp_path: Path) -> None:
    run(tmp_path / "run", **BOARD)
    shown = board(tmp_path / "run")
    assert same({tag: v for tag, v in shown.items() if not tag.startswith("time/")}, logged(tmp_path / "run"))
    assert "time/sps" in shown
    assert [source.format for source in find.find(tmp_path)] == ["relab"]


def test_it_is_there_while_the_run_trains(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Record.create(folder, {"algo": {"name": "x"}}, {}, {"seed": 0}) as record:
        record.mirror = LiveBoard(folder, {}, record.meta["created"], 0, pytest.fail)
        record.append_metrics(10, {"return/mean": 1.5})
        assert board(folder)["return/mean"] == {10: 1.5}, "not only once the run has ended"


KILLED = """
import os, signal, sys
from relab.train import session
from small_runs import resolve, run
sys.path.insert(0, sys.argv[2])
from relab.train.loop import Trainer
iterate = Trainer.iterate
def dying(self):
    if self.state.counts.iteration == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    iterate(self)
Trainer.iterate = dying
run(__import__("pathlib").Path(sys.argv[1]), record__tensorboard="true", eval__every="600")
"""


@pytest.mark.slow
def test_killed_and_resumed_it_shows_each_step_once(tmp_path: Path) -> None:
    from where import TESTS

    folder = tmp_path / "run"
    dead = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(TESTS)], cwd=TESTS, check=False)
    assert dead.returncode < 0
    before = max(board(folder)["return/length"])
    assert session.resume(folder).status == "finished"
    after = {tag: v for tag, v in board(folder).items() if not tag.startswith("time/")}
    assert same(after, logged(folder))
    assert max(after["return/length"]) > before


def test_a_disk_that_takes_no_more_ends_the_file_and_not_the_run(tmp_path: Path) -> None:
    said: list[str] = []
    folder = tmp_path / "run"
    with Record.create(folder, {"algo": {"name": "x"}}, {}, {"seed": 0}) as record:
        mirror = LiveBoard(folder, {}, record.meta["created"], 0, said.append)
        record.mirror = mirror
        assert mirror.out is not None
        mirror.out.close()
        mirror.out._file = open("/dev/full", "wb")  # noqa: SIM115 - closed by the mirror
        for step in range(3):
            record.append_metrics(step, {"return/mean": 1.0})
    assert len(said) == 1
    assert "No space left" in said[0]
    assert len(read_jsonl(folder / "metrics.jsonl")[0]) == 3


def test_it_is_no_other_config() -> None:
    hashes = {layers.config_hash(resolve(**more).config) for more in ({}, BOARD)}
    assert len(hashes) == 1
