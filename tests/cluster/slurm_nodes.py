"""How is a real Slurm of two nodes started on one machine, without systemd, and ended without touching anybody else's?

python tests/cluster/slurm_nodes.py       start one, print what to put into the environment, wait; Ctrl-C ends it

Debian's slurmctld, slurmd, slurm-client and munge, installed or unpacked below $SLURM_ROOT (`apt-get download`, then
`dpkg -x`). Two slurmd on one host, a key and a socket of its own for munge, no cgroups, no accounting, all files below
one temporary folder. Only processes that this started are ever ended, each by its id.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(os.environ.get("SLURM_ROOT", "/"))
CONF = """
ClusterName=relabtest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,batch_sched_delay=1,bf_interval=2
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdTimeout=15
InactiveLimit=0
KillWait=20
MinJobAge=30
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cores} RealMemory=2000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cores} RealMemory=2000 State=UNKNOWN
PartitionName=usual Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=10
PartitionName=urgent Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=off
"""


def program(*names: str) -> str | None:
    """The first of these that is there, unpacked or installed."""
    for name in names:
        for folder in ("usr/sbin", "usr/bin"):
            if (path := ROOT / folder / name).is_file():
                return str(path)
    return next((path for name in names if (path := shutil.which(name))), None)


def missing() -> str:
    """Which program is not there; empty where all are."""
    needed = (("munged",), ("slurmctld-wlm", "slurmctld"), ("slurmd-wlm", "slurmd"), ("sbatch-wlm", "sbatch"))
    return next((names[-1] for names in needed if program(*names) is None), "")


class SlurmNodes:
    """A controller and two nodes; a context that ends what it started."""

    def __init__(self, cores: int = 2) -> None:
        self.cores, self.folder = cores, Path(tempfile.mkdtemp(prefix="relab-slurm-"))
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> SlurmNodes:
        try:
            self.write()
            self.begin_munge()
            self.begin_controller()
            for node in ("n1", "n2"):
                self.begin_node(node)
            self.wait_for(lambda: self.up() == 2, "two nodes that are idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    # ---- What is set up

    def write(self) -> None:
        plugins = next(iter([*ROOT.glob("usr/lib/*/slurm-wlm"), *Path("/usr/lib").glob("*/slurm-wlm")]))
        for name in ("state", "spool-n1", "spool-n2", "bin"):
            (self.folder / name).mkdir()
        host = platform.node().split(".")[0]
        text = CONF.format(host=host, folder=self.folder, plugins=plugins, ports=free_ports(3), cores=self.cores)
        (self.folder / "slurm.conf").write_text(text)
        for name in ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun"):  # under the names that users know
            path = program(f"{name}-wlm", name)
            if path:
                (self.folder / "bin" / name).symlink_to(path)

    @property
    def env(self) -> dict[str, str]:
        """What a user of this Slurm has in the environment."""
        env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"),
               "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}  # fmt: skip
        return env if Path("/") == ROOT else {**env, "LD_LIBRARY_PATH": unpacked_libraries()}

    def begin_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.folder.chmod(0o755)
        words = ["--foreground", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                 f"--pid-file={self.folder}/munged.pid", f"--seed-file={self.folder}/munge.seed",
                 f"--log-file={self.folder}/munged.log", "--force"]  # fmt: skip
        self.begin("munged", program("munged"), *words, conf=False)
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munge's socket")

    def begin_controller(self, fresh: bool = True) -> None:
        """`fresh`: without what an earlier one knew."""
        self.begin("slurmctld", program("slurmctld-wlm", "slurmctld"), *(["-c"] if fresh else []))

    def kill_controller(self) -> None:
        controller = self.daemons.pop("slurmctld")
        controller.kill()
        controller.wait()

    def begin_node(self, node: str) -> None:
        stepd = program("slurmstepd-wlm", "slurmstepd")
        self.begin(node, program("slurmd-wlm", "slurmd"), "-N", node, *(["-d", stepd] if stepd else []))

    def begin(self, name: str, path: str | None, *words: str, conf: bool = True) -> None:
        assert path is not None, f"{name} is not there: {missing()}"
        own = ["-f", str(self.folder / "slurm.conf"), "-D"] if conf else []
        with open(self.folder / f"{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen([path, *own, *words], stdout=out, stderr=out, env=self.env,
                                                  start_new_session=True)  # fmt: skip

    # ---- What a test does to it

    def call(self, *words: str) -> str:
        return subprocess.run(words, capture_output=True, text=True, env=self.env, check=False).stdout.strip()

    def up(self) -> int:
        return self.call("sinfo", "--noheader", "--Node", "--format=%T", "--partition=usual").split().count("idle")

    def kill(self, node: str = "n2") -> None:
        """kill -9 of a node's slurmd and of the steps that it started: a machine that loses its power."""
        slurmd = self.daemons.pop(node)
        jobs = [pid for pid in pids() if works_for(pid, node, self.folder)]
        steps = {above for pid in jobs if comm(above := parent(pid)).startswith("slurmstepd")}
        os.kill(slurmd.pid, signal.SIGKILL)
        slurmd.wait()
        for pid in [*steps, *jobs]:  # the steps first: none is left who could tell how a job ended
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_for(self, true: object, what: str, seconds: float = 90) -> None:
        until = time.monotonic() + seconds
        while not true():  # type: ignore[operator]
            if time.monotonic() > until:
                raise TimeoutError(f"no {what} after {seconds:g} s; see {self.folder}")
            time.sleep(0.5)

    def __exit__(self, *_: object) -> None:
        for name in ("n1", "n2", "slurmctld", "munged"):
            process = self.daemons.pop(name, None)
            if process is not None:
                process.terminate()
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- Libraries, ports and processes


def unpacked_libraries() -> str:
    """Where those lie that were unpacked. Of an installed Slurm the system knows it: named here, its folder would give
    another libpython to a Python that is not the system's."""
    folders = [
        str(path) for pattern in ("usr/lib/*/slurm-wlm", "usr/lib/x86_64-linux-gnu") for path in ROOT.glob(pattern)
    ]
    return ":".join([*folders, os.environ.get("LD_LIBRARY_PATH", "")])


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def works_for(pid: int, node: str, folder: Path) -> bool:
    """Whether a process is part of a job on a node of this Slurm, by what it has in its environment."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"SLURMD_NODENAME={node}".encode() in words and f"SLURM_CONF={folder}/slurm.conf".encode() in words


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # one that was started in the background ignores Ctrl-C
        signal.signal(number, signal.default_int_handler)
    with SlurmNodes() as nodes:
        libraries = nodes.env.get("LD_LIBRARY_PATH", "")
        print(f"export SLURM_CONF={nodes.folder}/slurm.conf PATH={nodes.folder}/bin:$PATH"
              f"{f' LD_LIBRARY_PATH={libraries}' if libraries else ''}", flush=True)  # fmt: skip
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            sys.exit(0)
