"""An engine that is made up at its border alone: each job is a process of relab's own node on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Sequence

from relab.lab.execute.cluster import JobState
from relab.lab.execute.desk import Desk


class Machines:
    """An engine at whose border each job is a process here; `kill` takes a machine away, job and all."""

    every_s, limits = 0.0, False

    def __init__(self, cores: int = 4, names: Sequence[str] = ("alpha",)) -> None:
        self.cores, self.names = cores, names
        self.jobs: dict[str, subprocess.Popen[bytes]] = {}
        self.sizes: list[int] = []

    def send(self, at: Desk, ids: Sequence[str], avoid: Collection[str] = ()) -> str:
        self.sizes.append(len(ids))
        job = f"job-{len(self.jobs)}"
        place = next(name for name in self.names if name not in avoid)
        words = [sys.executable, "-m", "relab.lab.execute.node", str(at.folder), job, *ids]
        env = {**os.environ, "SLURMD_NODENAME": place}
        self.jobs[job] = subprocess.Popen(words, start_new_session=True, env=env)
        return job

    def places(self) -> int:
        return len(self.names)

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        return {job: JobState("running") for job in jobs if job in self.jobs and self.jobs[job].poll() is None}

    def drop(self, job: str) -> None:
        self.jobs[job].terminate()

    def kill(self, job: str) -> None:
        os.killpg(self.jobs[job].pid, signal.SIGKILL)
        self.jobs[job].wait()

    def room(self) -> int:
        return self.cores

    def close(self) -> None:
        for process in self.jobs.values():
            process.wait(30)
