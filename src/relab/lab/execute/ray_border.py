"""How does a Ray cluster take jobs? A task for each, that is never retried by Ray: what was lost is decided at home.

A task holds nothing but the name of the desk and of its orders; where a run goes on is read from its folder. Ray ends
tasks when their driver dies: the runs write a checkpoint then, and the next call of relab goes on with them.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Collection, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from relab.config.base import ConfigError
from relab.lab.execute import parcels, ray_post
from relab.lab.execute.cluster import JobState
from relab.lab.execute.desk import Desk
from relab.lab.execute.engine_error import EngineError
from relab.lab.execute.where import Where

TIMEOUT_S = 10.0  # for an address to answer
ADDRESS = re.compile(r"(?:ray://)?(\[.+\]|[^:/]+):(\d{1,5})")


class RayBorder:
    """A Ray cluster; without an address the one of $RAY_ADDRESS, else one that is started on this machine."""

    every_s = 0.2
    limits = False  # Ray knows no limit of time: the node keeps it

    def __init__(self, where: Where) -> None:
        self.where, self.ray = where, connected(where.address)
        self.tasks: dict[str, Any] = {}
        memory = {} if where.memory_mb is None else {"memory": int(where.memory_mb * 2**20)}
        needs = {"num_cpus": where.cores, "num_gpus": where.gpus, **memory}
        work = _task if where.shared else ray_post.carry_out_apart
        self.task = self.ray.remote(max_retries=0, **needs)(work)  # one kind of task: Ray schedules by kinds
        self.office = None if where.shared else ray_post.open_office(self.ray)
        self.files = {} if where.shared else carried(where.files)
        self.desks: dict[str, tuple[Desk, list[str]]] = {}  # by job, where no folder is shared

    def send(self, desk: Desk, ids: Sequence[str], avoid: Collection[str] = ()) -> str:
        job = f"ray-{ids[0]}"
        task = self.task.options(label_selector={"ray.io/node-id": f"!in({','.join(avoid)})"}) if avoid else self.task
        if self.where.shared:
            self.tasks[job] = task.remote(str(desk.folder), list(ids), job)
            return job
        self.desks[job] = desk, list(ids)
        parcel = parcels.pack(desk.folder.parent, ids)
        self.tasks[job] = task.remote(self.office, parcel, self.files, str(desk.folder.parent), list(ids), job,
                                      self.where.scratch)  # fmt: skip
        return job

    def places(self) -> int:
        cores = [node["Resources"].get("CPU", 0) for node in self.ray.nodes() if node["Alive"]]
        return sum(some >= self.where.cores for some in cores)

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        known = {job: task for job, task in self.tasks.items() if job in jobs}
        ready: set[Any] = set()
        if known:
            done, _ = self.ray.wait(list(known.values()), num_returns=len(known), timeout=0)
            ready = set(done)
        self._fetch()  # after the question who is done: of those all has arrived
        for job in [job for job, task in known.items() if task in ready]:
            self._settle(job, known.pop(job))
        return {job: JobState("running", host="") for job in known}

    def _fetch(self) -> None:
        """What workers that share no folder with us have sent; and which of them are to end."""
        if self.office is None or not self.desks:
            return
        asks = [id_ for desk, ids in self.desks.values() for id_ in ids if desk.is_to_end(id_)]
        for job, some in self.ray.get(self.office.fetch.remote(asks)).items():
            for changes in some if job in self.desks else []:
                desk, ids = self.desks[job]
                parcels.apply(desk.folder.parent, changes, ids)

    def _settle(self, job: str, task: Any) -> None:
        """What a task raised is a fault of the engine's: of a machine that is gone, nothing; else it is said."""
        del self.tasks[job]
        self.desks.pop(job, None)
        try:
            self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, self.ray.exceptions.TaskCancelledError):  # by us
                return
            if isinstance(error.cause, EngineError):
                raise ConfigError(
                    str(error.cause)
                ) from None  # no engine that is silent for a while: nothing will mend it
            raise ConfigError(f"{job} failed on its machine before it began: {error.cause!r:.300}") from None
        except self.ray.exceptions.RayError:  # lost with its worker, node or head
            pass

    def drop(self, job: str) -> None:
        if job in self.tasks:
            self.ray.cancel(self.tasks[job], force=False)

    def room(self) -> int:
        return max(1, int(self.ray.cluster_resources().get("CPU", 1) // self.where.cores))

    def close(self) -> None:
        """The connection stays, for the next round of a sweep or a loop; Ray ends it with this process."""


def _task(desk: str, ids: list[str], job: str) -> None:
    import ray

    from relab.lab.execute.node import carry_out

    carry_out(desk, ids, job, place=ray.get_runtime_context().get_node_id())


def carried(names: Sequence[str]) -> dict[str, bytes]:
    """The files and folders that go along, below the folder that relab was called in: path -> bytes."""
    paths = [path for name in names for path in ([Path(name)] if Path(name).is_file() else Path(name).rglob("*"))]
    return parcels.read({path.as_posix(): path for path in paths if path.is_file() and "__pycache__" not in path.parts})


def connected(address: str | None) -> Any:
    """The ray module, with a connection; an address that does not answer is an error within seconds."""
    try:
        import ray
        import ray.exceptions
    except ModuleNotFoundError:
        raise EngineError("`--on ray` needs Ray: pip install 'relab[ray]'") from None
    if ray.is_initialized():
        return ray
    where = address or os.environ.get("RAY_ADDRESS") or None
    check_answers(where)
    try:
        ray.init(address=where, logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False,
                 configure_logging=False)  # fmt: skip
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        text = str(error).split("\n")[0][:200]
        raise EngineError(f"no Ray cluster answers at {where or 'this machine'}: {text};"
                          " `ray status` asks the same") from None  # fmt: skip
    keep_silent(ray)
    return ray


def keep_silent(ray: Any) -> None:
    """Ray prints the log of a machine that it has lost on our standard output, between the lines of `--json`.

    `log_to_driver` does not reach that, and it has no other public switch; how runs ended is on the desk.
    """
    if hasattr(ray._private.worker, "_worker_logs_enabled"):
        ray._private.worker._worker_logs_enabled = False


def check_answers(address: str | None) -> None:
    """EngineError where nobody listens: Ray itself would end this whole process after a while, without a word to us."""
    match = ADDRESS.fullmatch(address or "")
    if match is None:
        return
    try:
        socket.create_connection((match[1].strip("[]"), int(match[2])), TIMEOUT_S).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise EngineError(f"no Ray cluster answers at {address}: {why}; `ray status` asks the same") from None


def offered() -> str:
    """What `relab doctor` says: the version, and what the cluster of $RAY_ADDRESS has."""
    address, version = os.environ.get("RAY_ADDRESS"), metadata.version("ray")
    if not address:  # Ray takes a second to import, which is for those who use it
        return f"Ray {version}; $RAY_ADDRESS is not set: --on ray starts a Ray on this machine"
    import ray

    was = ray.is_initialized()
    there = connected(address).cluster_resources()
    nodes = sum(key.startswith("node:") and "__" not in key for key in there)
    if not was:
        ray.shutdown()
    has = f"{nodes} nodes, {there.get('CPU', 0):g} cores, {there.get('GPU', 0):g} GPUs"
    return f"Ray {version} at {address}: {has}"
