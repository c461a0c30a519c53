"""How does Slurm take jobs? A batch script for each, by sbatch; squeue says which are there, scancel ends one.

No accounting is needed (sacct is never asked): a job that squeue does not know has ended or was lost, and the desk
tells which. Jobs may be requeued by Slurm, after a lost node or a preemption; the script then goes on with what has not
ended, because everything it needs is on the desk. A minute before its time limit the script is told (SIGUSR1): the run
writes a checkpoint, and the script puts its own job into the line again.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

from relab.base import processes
from relab.base.jsonl import SECRET, write_atomic
from relab.lab.execute.cluster import JobState
from relab.lab.execute.desk import Desk
from relab.lab.execute.engine_error import EngineError
from relab.lab.execute.where import Where

PROGRAMS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo")
WAITS = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED", "RESV_DEL_HOLD", "SPECIAL_EXIT")
GONE = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
        "OUT_OF_MEMORY")  # fmt: skip
TIMEOUT_S = 60.0  # for Slurm to answer
REFUSED = 78  # exit code of a job whose environment is not there
NOTICE_S = 60  # before the time limit
JOB = re.compile(r"(\d+)")


class SlurmBorder:
    """The Slurm whose programs are on the path."""

    every_s = 2.0
    limits = True  # it tells a job that its time is nearly up

    def __init__(self, where: Where) -> None:
        self.where = where
        missing = [name for name in PROGRAMS if shutil.which(name) is None]
        if missing:
            raise EngineError(f"`--on slurm` needs Slurm's programs on the path, but {missing[0]} is not there")
        call(["sinfo", "--noheader", "--format=%P"])  # an answer, before anything is written

    def send(self, desk: Desk, ids: Sequence[str], avoid: Collection[str] = ()) -> str:
        folder = desk.folder / "scripts"
        folder.mkdir(exist_ok=True)
        path = folder / f"{ids[0]}.sh"
        write_atomic(path, script(self.where, desk, ids).encode(), several=True, mode=SECRET)
        but = [f"--exclude={','.join(avoid)}"] if avoid else []
        out = str(folder / f"{ids[0]}.out").replace("%", "%%")  # Slurm puts numbers in the place of %j
        match = JOB.match(call(["sbatch", "--parsable", f"--output={out}", *but, str(path)]))
        if match is None:
            raise EngineError(f"sbatch took {path} and named no job")
        return match[1]

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        return states(jobs) if jobs else {}

    def drop(self, job: str) -> None:
        call(["scancel", job])

    def places(self) -> int:
        """Nodes that are up."""
        lines = call(["sinfo", "--noheader", "--Node", "--responding", "--format=%N"]).split()
        return len(set(lines))

    def room(self) -> int:
        """As many runs as the cluster has cores for: more would only stand in its line."""
        nodes = set(call(["sinfo", "--noheader", "--Node", "--format=%N %c"]).splitlines())
        return max(1, sum(int(line.split()[1]) for line in nodes) // self.where.cores)

    def close(self) -> None:
        """Jobs of Slurm need nobody who waits for them."""


def states(jobs: Collection[str]) -> dict[str, JobState]:
    """Those of the jobs that wait or run, with the reason why one waits, in Slurm's own word."""
    answer = call(["squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%r|%N"])
    rows = [line.split("|") for line in answer.splitlines() if line.count("|") == 3]
    return {job: JobState("waiting" if state in WAITS else "running", why if state in WAITS else "", host)
            for job, state, why, host in rows if job in jobs and state not in GONE}  # fmt: skip


def script(where: Where, desk: Desk, ids: Sequence[str]) -> str:
    """The batch script: what is asked for, what is loaded, and relab's node as the job itself."""
    options = [f"--job-name=relab-{job_name(ids[0])}", "--requeue", "--open-mode=append",
               f"--cpus-per-task={where.cores}", "--ntasks=1"]  # fmt: skip
    options += [] if where.memory_mb is None else [f"--mem={int(where.memory_mb)}M"]
    options += [f"--gpus={where.gpus:g}"] * (where.gpus > 0)
    if where.minutes is not None:
        seconds = int(60 * where.minutes)
        options += [f"--time={seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}",
                    f"--signal=B:USR1@{min(NOTICE_S, seconds // 3)}"]  # fmt: skip
    options += [f"--{key}={value}" for key in ("partition", "account") if (value := getattr(where, key))]
    lines = ["#!/bin/bash", *(f"#SBATCH {line}" for line in (*options, *where.lines))]
    lines += [f"module load {shlex.quote(name)} || exit {REFUSED}" for name in where.modules]
    if where.venv is not None:
        lines.append(f"source {shlex.quote(str(Path(where.venv) / 'bin' / 'activate'))} || exit {REFUSED}")
    lines += [f"export {key}={shlex.quote(value)}" for key, value in where.env.items()]
    python = "python" if where.venv is not None or where.modules else shlex.quote(processes.PYTHON[0])
    node = f"{python} -P -m relab.lab.execute.node {shlex.quote(str(desk.folder))} $SLURM_JOB_ID {shlex.join(ids)}"
    return "\n".join([*lines, f"{node} &", *WAITING]) + "\n"


def job_name(id_: str) -> str:
    """Slurm's own name for the job: what stands in a line of a script is cut at blanks."""
    return re.sub(r"[^\w.=,+-]", "_", id_)[:90]


# The shell passes what Slurm says on to the node and waits for it, again as long as it is there: a signal ends `wait`
# early, and what ended meanwhile says once more how (127: it has said so). Exit code 75 of the node: a run is to go on,
# and its job stands in the line again.
WAITING = (
    "node=$!",
    "trap 'kill -USR1 $node' USR1; trap 'kill -TERM $node' TERM",
    "wait $node; code=$?",
    'while [ "$code" -gt 128 ] && kill -0 $node 2>/dev/null; do wait $node; code=$?; done',
    'if [ "$code" -gt 128 ]; then wait $node; last=$?; [ "$last" = 127 ] || code=$last; fi',
    'if [ "$code" = 75 ]; then scontrol requeue $SLURM_JOB_ID; fi',
    "exit $code",
)


def call(words: Sequence[str]) -> str:
    """What a program of Slurm says; what it refuses is an error in its own words."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise EngineError(f"Slurm does not answer: {words[0]} took more than {TIMEOUT_S:g} seconds") from None
    except OSError as error:
        raise EngineError(f"{words[0]} cannot be called: {error.strerror}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().split("\n")[-1][:300]
        raise EngineError(f"Slurm refuses {words[0]}: {said or f'exit code {done.returncode}'}")
    return done.stdout.strip()


def offered() -> str:
    """What `relab doctor` says: the version, the nodes and partitions."""
    version = call(["sinfo", "--version"])
    nodes = sorted(set(call(["sinfo", "--noheader", "--Node", "--format=%N %c %T"]).splitlines()))  # of all partitions
    parts = sorted(set(call(["sinfo", "--noheader", "--format=%R"]).split()))
    cores = sum(int(line.split()[1]) for line in nodes if line.split()[1].isdigit())
    up = sum(line.split()[2] in ("idle", "mixed", "allocated") for line in nodes)
    return f"{version}: {up} of {len(nodes)} nodes up, {cores} cores, partitions {', '.join(parts)}"
