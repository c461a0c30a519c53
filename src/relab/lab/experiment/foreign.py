"""What became of a foreign program's run? A state file beside its folder; nothing of relab's inside of it.

It is finished when its process ended by itself with exit code 0 and left one run that an importer can read. A run that
was cut short starts again from an empty folder, unless the question says how it resumes. One that ended while no relab
was there to see it counts by the exit code that was kept of it. Only folders that this experiment has made (there is a
state file that says so) are ever deleted.
"""

from __future__ import annotations

import datetime
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from relab.base import blame, masks
from relab.base.enclosed import subfolder
from relab.base.jsonl import RecordError, encode, write_atomic
from relab.base.processes import birth, lives, ours
from relab.config.base import require
from relab.formats.read import find, foreign_state
from relab.lab.execute import keeper
from relab.lab.execute.outlook import last_words
from relab.lab.experiment import template
from relab.record.history import History
from relab.record.run_folder import now

if TYPE_CHECKING:
    from relab.lab.experiment.cells import Cell
    from relab.lab.experiment.question import Experiment


def command(e: Experiment, cell: Cell) -> list[str]:
    """The next try's command line; its folder is there and, unless it resumes, empty. No words: it has finished.

    Who looks whether a process lives, and only then how it ended, misses none that ends in between.
    """
    check_alone(cell)
    before = known(cell)
    if foreign_state.status(before) == "finished":
        return []
    goes_on = bool(before) and cell.folder.is_dir() and (e.resume or bool(e.resume_command))
    if not goes_on:
        empty(cell.folder, bool(before))
    words = e.resume_command if goes_on and e.resume_command else e.command
    run = str(cell.folder.resolve())  # absolute: some programs change their working folder
    code_path(cell).unlink(missing_ok=True)  # an earlier try's: what it says is in the state by now
    line = template.fill(words, {**e.settings(cell.variant), "seed": cell.seed, "run": run})
    keep(cell, {
        "schema": 1, "kind": foreign_state.KIND, "question": e.question, "variant": cell.variant, "seed": cell.seed,
        "settings": e.settings(cell.variant), "command": line, "shown": shlex.join(masks.masked(line)),
        "created": now(), "tries": int(before.get("tries", 0)) + 1, "exit_code": None, "stopped": False, "problem": "",
    })  # fmt: skip
    return line


def empty(folder: Path, ours: bool) -> None:
    """An empty folder for a first or repeated try; what somebody else put there is not touched."""
    there = folder.exists() or folder.is_symlink()
    if there and folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        return  # a call that was killed right here had made it
    require(ours or not there, f"{folder} was not made by this experiment and is not deleted; move it away")
    if there:
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def check_alone(cell: Cell) -> None:
    """A process that outlived a killed `relab experiment` still writes there: two of them would mix their rows."""
    pid = alive(cell)
    require(pid is None, f"process {pid} of an earlier call still runs {cell.folder.name};"
                         " wait for it, or end it (relab queue orphans --end)")  # fmt: skip


def alive(cell: Cell) -> int | None:
    """The process that was started last, if it or one that it started still runs."""
    state = known(cell)
    pid = state.get("pid")
    if not state or state.get("exit_code") is not None:
        return None
    if isinstance(pid, int) and lives(pid, state.get("birth")):
        return pid
    run = str(cell.folder.resolve())  # by this where relab was killed before it could write the process down
    mine = [each.pid for each in ours() if each.job == cell.folder.name and (each.pid == pid or run in each.command)]
    if not mine:
        known(cell)  # a process that ended while it was looked for has left its exit code
    return mine[0] if mine else None


def known(cell: Cell) -> foreign_state.State:
    """What is known of the run; of one that ended while no relab was there, its exit code is written down first."""
    state = foreign_state.read_state(cell.folder)
    if not state or state.get("exit_code") is not None:
        return state
    kept = keeper.read(code_path(cell))
    if kept is None:
        return state
    began = datetime.datetime.fromisoformat(state["created"]).timestamp()
    ended(cell, keeper.signed(kept.code), code_path(cell).stat().st_mtime - began, stopped=kept.stopped)
    return foreign_state.read_state(cell.folder)


def code_path(cell: Cell) -> Path:
    return foreign_state.state_path(cell.folder).with_suffix(".code")


def started(cell: Cell, process: subprocess.Popen[bytes]) -> None:
    keep(cell, {**foreign_state.read_state(cell.folder), "pid": process.pid, "birth": birth(process.pid)})


def ended(cell: Cell, code: int, seconds: float, stopped: bool) -> None:
    """How it ended, and what is wrong with what it left."""
    problem = what_is_wrong(cell.folder) if code == 0 and not stopped else ""
    facts: foreign_state.State = {
        **foreign_state.read_state(cell.folder),
        **{"exit_code": code, "ended": now(), "seconds": seconds, "stopped": stopped, "problem": problem},
    }
    keep(cell, facts)
    code_path(cell).unlink(missing_ok=True)


def keep(cell: Cell, state: foreign_state.State) -> None:
    path = foreign_state.state_path(cell.folder)
    subfolder(path.parent.parent, path.parent.name)
    write_atomic(path, encode(masks.masked(state), indent=True), several=True)


# ---- What it wrote


def what_is_wrong(folder: Path) -> str:
    try:
        read(folder)
    except RecordError as error:
        return str(error)
    return ""


def read(folder: Path) -> History:
    """The one run below a folder, with the experiment's facts; RecordError where there is none, or more than one."""
    sources = list(find.find(folder))
    if not sources:
        wrote = sorted(str(Path(at, name).relative_to(folder)) for at, _, names in os.walk(folder) for name in names)
        what = f"only {', '.join(wrote[:5])}" if wrote else "nothing"
        raise RecordError(f"it wrote {what} below its {{run}} folder, and no run that relab can read"
                          f" (formats: {find.format_names()}); see to it that the command logs into"
                          " {run}")  # fmt: skip
    if len(sources) > 1:
        some = ", ".join(source.name for source in sources[:5]) + (" ..." if len(sources) > 5 else "")
        raise RecordError(f"it wrote {len(sources)} runs below its {{run}} folder ({some}), but one is expected:"
                          " which of them counts cannot be told")  # fmt: skip
    try:
        return find.read(sources[0])
    except Exception as error:  # whatever a stranger's file holds
        raise RecordError(f"{sources[0].name} could not be read: {blame.reason(error)}") from None


def why(folder: Path, log: Path) -> str:
    """Why a run failed, in one line."""
    state = foreign_state.read_state(folder)
    if state.get("problem"):
        return str(state["problem"])
    code = state.get("exit_code")
    how = f"killed by signal {-code}" if isinstance(code, int) and code < 0 else f"exit code {code}"
    return f"{how}; {last_words(log)}"
