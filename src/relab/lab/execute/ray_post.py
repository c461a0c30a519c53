"""How do a Ray worker and its submitter talk where they share no folder? By a post office beside the submitter.

The worker unpacks its parcel into a folder of its own, carries the orders out there as on any machine, and sends what
changed every second; the answer says which orders are to end. The office is an actor on the submitter's node and goes
with it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from relab.base import processes
from relab.lab.execute import parcels
from relab.lab.execute.desk import Desk
from relab.lab.execute.node import carry_out
from relab.lab.execute.parcels import Changes, Mirror, Parcel

PREFIX = "relab-apart-"  # of the folders, and the number of the process that has one
EVERY_S = 1.0
LATE_S = 60.0  # for the office to answer


class Office:
    """Keeps what workers send until the submitter fetches it."""

    def __init__(self) -> None:
        self.boxes: dict[str, list[Changes]] = {}
        self.asks: set[str] = set()

    def put(self, job: str, changes: Changes) -> set[str]:
        """What a worker sends; which orders are to end."""
        self.boxes.setdefault(job, []).append(changes)
        return self.asks

    def fetch(self, asks: Collection[str]) -> dict[str, list[Changes]]:
        """What arrived since the last call."""
        self.asks |= set(asks)
        boxes, self.boxes = self.boxes, {}
        return boxes


def open_office(ray: Any) -> Any:
    """The actor, on this very node: it is needed as long as the submitter is, and no longer."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(Office).remote()


def carry_out_apart(
    office: Any, parcel: Parcel, files: Parcel, home: str, ids: Sequence[str], job: str, scratch: str | None
) -> None:
    """On the worker: the orders in a folder of its own, mirrored home while they run."""
    import ray

    def send(changes: Changes) -> set[str]:
        return set(ray.get(office.put.remote(job, changes), timeout=LATE_S))

    place = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=swept(scratch))
    try:
        folder = settle(Path(place), parcel, files, Path(home), ids)
        with Sender(Mirror.of(folder, ids, parcel), Desk(folder), send):
            carry_out(str(Desk(folder).folder), ids, job, place=ray.get_runtime_context().get_node_id())
    finally:
        shutil.rmtree(place, ignore_errors=True)


def swept(scratch: str | None) -> str:
    """Where folders are made, without those of workers that were killed here."""
    root = Path(scratch or tempfile.gettempdir())
    for path in root.glob(f"{PREFIX}*-*"):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and processes.birth(int(pid)) is None and path.stat().st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)
    return str(root)


def settle(place: Path, parcel: Parcel, files: Parcel, home: Path, ids: Sequence[str]) -> Path:
    """Unpack; the folder has its own name here, because commands say it."""
    folder, cwd = place / "home" / home.name, place / "cwd"
    cwd.mkdir(parents=True)
    parcels.unpack(parcel, folder)
    parcels.unpack(files, cwd)
    desk = Desk(folder).make()
    for id_ in ids:
        desk.put(parcels.moved(desk.order(id_), home, folder, cwd))
    return folder


class Sender:
    """Sends what changed every second, in a thread; on leaving once more, until all of it is there."""

    def __init__(self, mirror: Mirror, desk: Desk, send: Any, every_s: float = EVERY_S) -> None:
        self.mirror, self.desk, self.send, self.every_s = mirror, desk, send, every_s
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def __enter__(self) -> Sender:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        self.once(last=True)

    def work(self) -> None:
        while not self.over.wait(self.every_s):
            try:
                self.once()
            except Exception:  # nobody is left who waits for it: the run writes a checkpoint and ends
                self.obey(set(self.mirror.ids))
                return

    def once(self, last: bool = False) -> None:
        more = True
        while more:
            changes = self.mirror.look(last)
            self.obey(self.send(changes))
            more = changes.more

    def obey(self, ids: Collection[str]) -> None:
        for id_ in set(ids) & set(self.mirror.ids):
            self.desk.ask(id_)
