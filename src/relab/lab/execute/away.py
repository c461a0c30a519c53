"""What do engines have of ours, and where? Runs of experiments and sweeps that wait or run on other machines.

Read from the desks of the folders below; of Slurm's own line only why a job waits. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from relab.base.documents import Document
from relab.lab.execute.cluster import JobState
from relab.lab.execute.desk import SILENT_S, Desk, name_of
from relab.lab.execute.engine_error import EngineError

ROOTS = ("experiments", "sweeps", "loops")


@dataclass(frozen=True)
class Away:
    """One run that was given to an engine and has not ended."""

    run: str
    folder: str
    job: str
    state: str  # waiting | running | silent
    host: str
    since_s: float | None  # it runs
    why: str  # it waits, as the engine says it

    def to_json(self) -> Document:
        return asdict(self)


def away(base: Path = Path()) -> list[Away]:
    """Of every experiment and sweep below the usual folders; the last try of each run."""
    desks = [Desk(path.parent) for root in ROOTS for path in sorted((base / root).glob("*/engine")) if path.is_dir()]
    rows = [(desk, id_, job) for desk in desks for id_, job in last_tries(desk).items()]
    states = slurm_states(job for _, _, job in rows)
    return [row for desk, id_, job in rows if (row := of(desk, id_, job, states)) is not None]


def last_tries(desk: Desk) -> dict[str, str]:
    """Id -> job."""
    tries: dict[str, str] = {}
    sent = desk.sent()
    for id_ in sorted(sent, key=lambda each: int(each.rpartition(".")[2] or 0)):
        tries[name_of(id_)] = id_
    return {id_: sent[id_] for id_ in tries.values()}


def of(desk: Desk, id_: str, job: str, states: dict[str, JobState]) -> Away | None:
    """None for what has ended."""
    end, sign, there = desk.end(id_), desk.sign(id_), states.get(job)
    if end is not None and not (end.again and there is not None):
        return None
    folder, name = str(desk.folder.parent), name_of(id_)
    if sign is not None and sign.silent_s <= SILENT_S:
        since = max(0.0, desk.clock() - sign.since)
        return Away(name, folder, job, "running", sign.host, since, "")
    if there is not None or sign is None:
        return Away(name, folder, job, "waiting", "", None, there.why if there is not None else "")
    return Away(name, folder, job, "silent", sign.host, None, f"no sign of life for {sign.silent_s:.0f} s")


def slurm_states(jobs: Iterable[str]) -> dict[str, JobState]:
    """Of jobs that Slurm numbers; none where it does not answer."""
    numbers = {job for job in jobs if job.isdigit()}
    if not numbers:
        return {}
    from relab.lab.execute import slurm_border

    try:
        return slurm_border.states(numbers)
    except EngineError:
        return {}
