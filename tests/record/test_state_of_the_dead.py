"""Is a run that was killed on this machine said to run?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from relab.base import writers
from relab.record import history
from relab.record.run_folder import Record, read_meta
from relab.record.state import state_of

CHILD = """
import sys
from pathlib import Path
from relab.base import processes
from relab.record.run_folder import Record
Record.create(Path(sys.argv[1]), {}, {}, {"owner": processes.myself()})
print("there", flush=True)
sys.stdin.read()
"""


def test_a_killed_run_is_stale_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", CHILD, str(folder)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == b"there\n"
        assert state_of(history.load(folder)) == "running"
        child.kill()
        child.wait()
    assert state_of(history.load(folder)) == "stale"


@pytest.mark.parametrize(("last", "state"), [(49_152, "finished"), (46_080, "running"), (1_024, "running")])
def test_a_foreign_log_with_all_planned_steps_in_it_is_finished(tmp_path: Path, last: int, state: str) -> None:
    """Updates of 1,024 steps: after 49,152 of 50,000 there is no room for another one."""
    (tmp_path / "events").write_text("written just now")
    run = history.History(tmp_path, source="tensorboard", config={"total_steps": 50_000})
    for name, gap in (("policy/loss", 1_024), ("return/mean", 16)):
        steps = np.arange(gap, last + 1, gap)
        run.columns[name], run.axes[name] = history.Column(steps, np.ones(len(steps))), "env_steps"
    assert state_of(run) == state


def test_one_of_another_machine_lives_by_its_heartbeat(tmp_path: Path) -> None:
    Record.create(tmp_path / "run", {}, {}, {}).close()
    meta = read_meta(tmp_path / "run") | {"owner": "elsewhere_00000000_17_99"}
    (tmp_path / "run" / "meta.json").write_text(json.dumps(meta))
    assert state_of(history.load(tmp_path / "run")) == "running"


def copied(tmp_path, started, rows):
    """A log of another tool whose one file was written just now; some such tools open it for each row."""
    (tmp_path / "log.csv").write_text("x\n")
    run = history.History(tmp_path, source="tensorboard", meta={"started": started} if started else {})
    elapsed = np.asarray(rows, np.float64)
    run.columns["time/elapsed_s"] = history.Column(np.arange(len(elapsed)), elapsed)
    return run


def test_a_copy_of_an_old_log_is_not_running(tmp_path):
    assert state_of(copied(tmp_path, "2020-01-01T00:00:00+00:00", np.arange(40.0))) == "ended"


def test_a_log_that_says_no_time_is_taken_for_growing(tmp_path):
    assert state_of(copied(tmp_path, "", np.arange(40.0))) == "running"


WRITER = """
import sys
with open(sys.argv[1] + "/progress.csv", "w") as log, open(sys.argv[1] + "/monitor.csv", "w") as episodes:
    print("x", file=log, flush=True)
    print("x", file=episodes, flush=True)
    print("there", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="there is no /proc that tells who writes a file")
def test_a_log_runs_while_its_program_has_it_open_and_not_a_second_longer(tmp_path: Path) -> None:
    """All files of its first seconds are as old as those of a copy, and files of one that has ended are new as well."""
    run = history.History(tmp_path, source="sb3")
    writers.forget()
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == b"there\n"
        assert state_of(run) == "running"
        silent = time.time() - 300
        for name in ("progress.csv", "monitor.csv"):
            os.utime(tmp_path / name, (silent, silent))
        assert state_of(run) == "ended", "a notebook keeps files open that nobody writes to any more"
        for name in ("progress.csv", "monitor.csv"):
            os.utime(tmp_path / name)
        child.communicate()
    writers.forget()
    assert state_of(run) == "ended"


def row_by_row(tmp_path: Path, names: tuple[str, ...], gap: float, silent: float) -> history.History:
    """Ten rows, `gap` seconds apart, of a program that opens its files for each; the last was `silent` seconds ago."""
    newest = time.time() - silent
    for name in names:
        (tmp_path / name).write_text("step,reward\n" + "".join(f"{n},1\n" for n in range(10)))
        os.utime(tmp_path / name, (newest, newest))
    os.utime(tmp_path, (newest - 10 * gap, newest - 10 * gap))  # when the files were made
    run = history.History(tmp_path, source="csv", files=tuple(tmp_path / name for name in names))
    run.columns["return/mean"] = history.Column(np.arange(10), np.ones(10))
    return run


@pytest.mark.parametrize("names", [("progress.csv",), ("log.csv", "episodes.csv")])
@pytest.mark.parametrize(
    ("gap", "silent", "state"),
    [(1, 1, "running"), (1, 20, "running"), (1, 40, "ended"), (60, 100, "running"), (60, 300, "ended"),
     (3_600, 800, "running"), (3_600, 1_000, "ended")],
)  # fmt: skip
def test_a_log_that_nobody_holds_open_lives_by_its_own_rhythm(tmp_path, names, gap, silent, state):
    """Half a minute at least, then as long as four of its rows, a quarter of an hour at most."""
    assert state_of(row_by_row(tmp_path, names, gap, silent)) == state


def test_files_that_were_made_when_they_were_last_written_are_a_copy(tmp_path):
    assert state_of(row_by_row(tmp_path, ("log.csv", "episodes.csv"), 0, 1)) == "ended"
