"""Are copies of a log counted once, and runs that share a folder kept apart?"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from relab.formats.read import copies, find, tfevents
from relab.formats.read.find import LoadedRuns
from relab.formats.read.source import Source
from relab.runs.index import look_through

NOON = 1.7e9


def write(folder: Path, seed: int, wall: float = NOON, first: int = 1, rows: int = 30, pid: int = 0) -> Path:
    with tfevents.Writer(folder, wall=wall, suffix=f"h.{pid or seed}.0") as writer:
        for i in range(rows):
            for tag in ("rollout/ep_rew_mean", "train/approx_kl"):
                writer.scalar(tag, 100.0 * seed + i, 100 * (first + i), wall + 2 * i)
    return writer.path


def outcomes(loaded: LoadedRuns) -> dict[str, list[float]]:
    return {run.name: run.history.column("policy/kl").values.tolist() for run in loaded.runs}


@pytest.mark.parametrize("later", [1, 500])  # at the same time, and one after the other
def test_seeds_that_log_into_one_folder_are_runs_of_their_own(tmp_path, later):
    write(tmp_path, 1)
    write(tmp_path, 2, NOON + later)
    curves = outcomes(find.load_all(tmp_path))
    assert list(curves) == [f"{tmp_path.name}/1", f"{tmp_path.name}/2"]
    assert [values[0] for values in curves.values()] == [100.0, 200.0]
    assert {len(values) for values in curves.values()} == {30}


def test_a_resumed_run_a_second_writer_and_a_false_start_stay_one_run(tmp_path):
    write(tmp_path / "resumed", 1)
    write(tmp_path / "resumed", 2, NOON + 500, first=21)
    write(tmp_path / "false", 1, rows=3)
    write(tmp_path / "false", 2, NOON + 500)
    write(tmp_path / "evaluated", 1)
    with tfevents.Writer(tmp_path / "evaluated", wall=NOON + 1, suffix="h.9.0") as writer:
        for i in range(10):
            writer.scalar("eval/mean_reward", float(i), 300 * i, NOON + 6 * i)
    assert sorted(outcomes(find.load_all(tmp_path))) == ["evaluated", "false", "resumed"]


@pytest.mark.parametrize("place", ["run/backup", "run (copy)", "old/2024/run"])
def test_a_copy_counts_once_and_is_named(tmp_path, place):
    file = write(tmp_path / "run", 1)
    (tmp_path / place).mkdir(parents=True)
    shutil.copy(file, tmp_path / place / file.name)
    loaded = find.load_all(tmp_path)
    assert [run.name for run in loaded.runs] == ["run"]
    assert [(gone.where, gone.why[:13]) for gone in loaded.unread] == [(place, "a copy of run")]
    assert len(look_through(str(tmp_path).encode(), {}).foreign) == 1


def test_a_copy_in_the_same_folder_is_read_once(tmp_path):
    file = write(tmp_path, 1)
    shutil.copy(file, f"{file}.copy")
    (values,) = outcomes(find.load_all(tmp_path)).values()
    assert len(values) == 30


def test_equal_tables_of_two_seeds_are_two_runs(tmp_path):
    """A seed that nobody reads makes equal tables: that is a finding, not a copy."""
    for name in ("s0", "s1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.csv").write_text("step,reward\n" + "".join(f"{i},{i}\n" for i in range(20)))
    assert len(find.load_all(tmp_path).runs) == 2
    shutil.copytree(tmp_path / "s0", tmp_path / "s0" / "old")
    assert [run.name for run in find.load_all(tmp_path).runs] == ["s0", "s1"]


@pytest.mark.parametrize("format_", ["csv", "tensorboard", "wandb"])
def test_many_logs_of_one_size_take_time_in_proportion(tmp_path, format_):
    calls: list[int] = []
    for n in (200, 400):
        folder = tmp_path / str(n)
        folder.mkdir()
        files = [folder / f"{i:04}.log" for i in range(n)]
        for i, file in enumerate(files):
            file.write_text(f"{i:04}" * 100)
        count = 0

        def counted(frame, event, arg):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(counted)
        try:
            kept, gone = copies.without([Source(format_, file, (file,)) for file in files])
        finally:
            sys.setprofile(None)
        assert (len(kept), gone) == (n, [])
        calls.append(count)
    assert calls[1] < 2.5 * calls[0]


@pytest.mark.parametrize("format_", ["csv", "tensorboard", "wandb"])
def test_copies_of_copies_name_the_first(tmp_path, format_):
    files = [tmp_path / place / "log" for place in ("run", "run/a", "run/a/b", "run/c")]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text("1234")
    files.append(tmp_path / "run/a/other")
    files[-1].write_text("4321")
    sources = [Source(format_, file, (file,)) for file in files]
    kept, gone = copies.without(sources)
    assert kept == [sources[0], sources[4]]
    assert [each.of for each in gone] == [sources[0]] * 3
