"""What do engines have of ours, and where? Runs of experiments, sweeps and loops that wait or run on other machines.

Read from the desks of the folders below; of Slurm's own line only why a job waits. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from relab.base import processes
from relab.base.documents import Document
from relab.lab.execute.cluster import JobState
from relab.lab.execute.desk import SILENT_S, Desk, Dispatch, name_of
from relab.lab.execute.engine_error import EngineError

ROOTS = ("experiments", "sweeps", "loops")


@dataclass(frozen=True)
class Away:
    """One run that was given to an engine and has not ended."""

    run: str
    folder: str
    engine: str  # ray | slurm
    job: str
    state: str  # waiting | running | silent | left
    host: str
    since_s: float | None  # it runs, or waits
    why: str  # it waits, as the engine says it

    def to_json(self) -> Document:
        return asdict(self)


def away(base: Path = Path()) -> list[Away]:
    """Of every experiment, sweep and loop below the usual folders; the last try of each run."""
    desks = [Desk(path.parent) for root in ROOTS for path in sorted((base / root).glob("*/engine")) if path.is_dir()]
    rows = [(desk, id_, dispatch) for desk in desks for id_, dispatch in last_tries(desk).items()]
    states = slurm_states(dispatch.job for _, _, dispatch in rows)
    return [row for desk, id_, dispatch in rows if (row := of(desk, id_, dispatch, states)) is not None]


def last_tries(desk: Desk) -> dict[str, Dispatch]:
    """Id -> to whom it was given."""
    tries: dict[str, str] = {}
    jobs = desk.dispatches()
    for id_ in sorted(jobs, key=lambda each: int(each.rpartition(".")[2] or 0)):
        tries[name_of(id_)] = id_
    return {id_: jobs[id_] for id_ in tries.values()}


def of(desk: Desk, id_: str, dispatch: Dispatch, states: dict[str, JobState] | None) -> Away | None:
    """None for what has ended. `states`: of Slurm's jobs; None where it does not answer."""
    end, sign, there = desk.end(id_), desk.sign(id_), (states or {}).get(dispatch.job)
    if end is not None and not (end.again and there is not None):
        return None
    clock, engine = desk.clock(), "slurm" if dispatch.job.isdigit() else "ray"
    first = (name_of(id_), str(desk.folder.parent), engine, dispatch.job)
    if sign is not None and sign.silent_s <= SILENT_S:
        return Away(*first, "running", sign.host, max(0.0, clock - sign.since), "")
    waits_s = max(0.0, clock - dispatch.since)
    if there is not None and (sign is None or there.state == "waiting"):
        return Away(*first, "waiting", "", waits_s, there.why)
    if sign is not None:
        return Away(*first, "silent", sign.host, waits_s, f"no sign of life for {sign.silent_s:.0f} s")
    if engine == "ray" and processes.is_alive(dispatch.by) is False:
        return Away(*first, "left", "", waits_s, "its submitter is gone: the same call goes on with it")
    if engine == "slurm" and states is not None:
        return Away(*first, "left", "", waits_s, "Slurm has it no more: the same call goes on with it")
    return Away(*first, "waiting", "", waits_s, "for a worker of Ray" if engine == "ray" else "Slurm does not answer")


def slurm_states(jobs: Iterable[str]) -> dict[str, JobState] | None:
    """Of jobs that Slurm numbers; None where it does not answer."""
    numbers = {job for job in jobs if job.isdigit()}
    if not numbers:
        return {}
    from relab.lab.execute import slurm_border

    try:
        return slurm_border.states(numbers)
    except EngineError:
        return None
