"""Which number of a run decides, and how is it made? On hidden seeds where that is possible; else as its record says.

loops/NAME/hidden/RUN.json    what the deciding evaluation gave
loops/NAME/hidden/.RUN.raw    the same before the loop has sealed it
loops/NAME/hidden/log         what the judging processes printed

relab's own runs: their last checkpoint plays the episodes of the hidden seeds (judge.py). Foreign commands: the file's
`evaluate` command is called with the run's folder and a hidden seed, and prints the number as its last line (a bare
number, or JSON with `value` and perhaps `n`). A loop without either decides by what the runs logged themselves, and
its page says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from relab.base import limits, masks
from relab.base.documents import Document
from relab.base.enclosed import own, subfolder
from relab.base.interrupts import Interrupted
from relab.base.jsonl import RecordError, decode, encode, read_json, write_atomic
from relab.base.numbers import is_number
from relab.base.processes import PYTHON
from relab.lab.execute import local
from relab.lab.experiment import cells as runs
from relab.lab.experiment import template
from relab.lab.experiment.cells import Cell
from relab.lab.loop import lock
from relab.lab.loop.keys import Key
from relab.lab.loop.plan import HIDDEN, Loop
from relab.lab.loop.seal import genuine, sealed

FOLDER = "hidden"
JUDGE = "relab.lab.loop.judge"
WORDS = {
    "hidden": "the last checkpoint of every run on {n} episodes of hidden seeds",
    "evaluate": "the `evaluate` command on a hidden seed",
    "record": "what each run logged itself: there is no hidden evaluation of this metric",
}


@dataclass(frozen=True)
class Number:
    """What a run came to where it counts; NaN has a reason."""

    value: float
    n: int = 0  # episodes
    why: str = ""


def said(plan: Loop) -> str:
    """Which evaluation decides, in words."""
    return WORDS[plan.decides].format(n=plan.hidden)


def path_of(folder: Path, name: str) -> Path:
    return own(folder, f"{FOLDER}/{name}.json")


def raw_path(folder: Path, name: str) -> Path:
    return own(folder, f"{FOLDER}/.{name}.raw")


# ---- Making them


def judge(plan: Loop, folder: Path, cells: Sequence[Cell], key: Key, workers: int, trust: bool = False) -> int:
    """The deciding evaluation of every finished run that has none yet; one that the loop did not make is removed. How
    many there were."""
    todo = [cell for cell in cells if runs.settled(cell) and not is_made(folder, cell.folder.name, key)]
    if plan.decides == "record" or not todo:
        return 0
    for cell in todo:
        for place in (path_of, raw_path):
            place(folder, cell.folder.name).unlink(missing_ok=True)
    subfolder(folder, FOLDER)
    lock.check(plan, folder)
    lock.forget_bytecode(plan)
    made = _own(plan, folder, todo, workers, trust) if plan.decides == "hidden" else _foreign(plan, folder, todo, key)
    result = local.run(made, workers)
    for cell in todo:
        if plan.decides == "hidden":
            _keep(folder, cell.folder.name, key)
        else:  # `evaluate` prints its number: what lies there is another program's
            raw_path(folder, cell.folder.name).unlink(missing_ok=True)
    if result.interrupted:
        raise Interrupted
    for job in made:
        if job.name in result.failed:
            _gave_up(folder, todo, job, key)
    lock.check(plan, folder)
    return len(todo)


def _own(plan: Loop, folder: Path, todo: Sequence[Cell], workers: int, trust: bool) -> list[local.Job]:
    """One process for as many runs as keep the workers busy: importing torch takes longer than the episodes."""
    parts = [list(todo[i::workers]) for i in range(min(workers, len(todo)))]
    jobs = []
    for i, part in enumerate(parts):
        rows = [
            {"folder": str(c.folder), "checkpoint": "latest", "out": str(raw_path(folder, c.folder.name))} for c in part
        ]
        tasks = own(folder, f"{FOLDER}/.tasks-{i}.json")
        write_atomic(
            tasks, encode({"seed": lock.hidden_seed(plan), "episodes": plan.hidden, "trust": trust, "runs": rows})
        )
        words = [*PYTHON, "-m", JUDGE, str(tasks)]
        done = partial(_all_there, [Path(row["out"]) for row in rows])
        jobs.append(local.Job(f"judge-{i}", partial(list, words), done, folder / FOLDER / "log"))
    return jobs


def _all_there(paths: Sequence[Path]) -> bool:
    return all(path.is_file() for path in paths)


def _keep(folder: Path, name: str, key: Key) -> None:
    """What a judging process wrote, sealed by the loop, which alone has the key."""
    raw = raw_path(folder, name)
    if raw.is_file():
        body = read_json(raw.parent, raw.name)
        write_atomic(path_of(folder, name), encode(sealed(body, key), indent=True))
        raw.unlink()


def _foreign(plan: Loop, folder: Path, todo: Sequence[Cell], key: Key) -> list[local.Job]:
    return [_evaluate(plan, folder, cell, key) for cell in todo]


def _evaluate(plan: Loop, folder: Path, cell: Cell, key: Key) -> local.Job:
    seed, out = lock.hidden_seed(plan), path_of(folder, cell.folder.name)
    log = folder / FOLDER / f"{cell.folder.name}.log"
    facts = {"run": str(cell.folder.resolve()), "seed": seed, "episodes": plan.hidden}
    words = template.fill(plan.evaluate, facts)

    def start() -> list[str]:
        log.unlink(missing_ok=True)
        return words

    def ended(code: int, seconds: float, stopped: bool) -> None:
        if not stopped and code >= 0:
            write_atomic(out, encode(sealed(printed(log, code, cell), key), indent=True))

    return local.Job(f"judge-{cell.folder.name}", start, out.is_file, log, ended=ended)


def printed(log: Path, code: int, cell: Cell) -> Document:
    """The number in the last line that a program printed."""
    lines = limits.read_end(log, 4096).decode(errors="replace").strip().splitlines() if log.is_file() else []
    body: Document = {"schema": 1, "run": cell.folder.name}
    last = masks.mask(lines[-1].strip())[:200] if lines else "nothing"
    if code != 0:
        return body | {"problem": f"`evaluate` ended with exit code {code}; its last words: {last}"}
    try:
        value = decode(lines[-1].encode()) if lines else None
    except ValueError:
        value = None
    value = value if isinstance(value, dict) else {"value": value}
    if not is_number(value.get("value")):
        return body | {
            "problem": f"`evaluate` must print a number, or JSON with `value`, as its last line, but printed {last}"
        }
    return body | {"value": float(value["value"]), "n": value.get("n") if type(value.get("n")) is int else 0}


def _gave_up(folder: Path, todo: Sequence[Cell], job: local.Job, key: Key) -> None:
    """A judging process that died takes its runs' numbers with it: they are said to have none."""
    for cell in todo:
        out = path_of(folder, cell.folder.name)
        if not out.is_file() and (
            job.name == f"judge-{cell.folder.name}" or job.name.removeprefix("judge-").isdecimal()
        ):
            body: Document = {"schema": 1, "run": cell.folder.name, "problem": "its evaluation died"}
            write_atomic(out, encode(sealed(body, key), indent=True))


# ---- Reading them


def is_made(folder: Path, name: str, key: Key) -> bool:
    """Has this loop evaluated the run?"""
    try:
        body = read_json(folder, f"{FOLDER}/{name}.json")
    except (RecordError, OSError):
        return False
    return genuine(body, key) and body.get("run") == name


def vouch(folder: Path, key: Key) -> None:
    """Seal all numbers that there are, as they stand: somebody has looked through them."""
    for path in sorted((folder / FOLDER).glob("*.json")):
        body = read_json(folder, f"{FOLDER}/{path.name}")
        if body.get("run") == path.stem and not genuine(body, key):
            write_atomic(path_of(folder, path.stem), encode(sealed(body, key), indent=True))


def number(plan: Loop, folder: Path, name: str, key: Key) -> Number:
    """What the deciding evaluation of a run gave."""
    try:
        body = read_json(folder, f"{FOLDER}/{name}.json")
    except (RecordError, OSError):
        return Number(math.nan, 0, "it has not been evaluated on the hidden seeds")
    if not is_made(folder, name, key):
        return Number(math.nan, 0, "its number on the hidden seeds was not made by this loop")
    if body.get("problem"):
        return Number(math.nan, 0, str(body["problem"]))
    if plan.decides == "evaluate":
        return Number(float(body["value"]), int(body.get("n") or 0))
    mode, what = HIDDEN[plan.metric]
    facts = body["modes"][mode]
    value = facts[what]
    why = "" if is_number(value) else f"its episodes do not say {what}"
    return Number(float(value) if is_number(value) else math.nan, int(facts["n"]), why)


def checked_program(plan: Loop) -> None:
    """The `evaluate` program is there, before hours are spent on runs that it shall judge."""
    if plan.evaluate:
        from relab.lab.execute import keeper

        keeper.check_program(plan.evaluate[0], None)


__all__ = ["Number", "judge", "number", "path_of", "said"]
