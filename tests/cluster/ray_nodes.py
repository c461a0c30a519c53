"""How is a real Ray cluster of three nodes started on one machine, and ended without touching anybody else's?

python tests/cluster/ray_nodes.py       start one, print its address, wait; Ctrl-C ends it

Each node is a raylet with a number of cores of its own, in one process tree (ray.cluster_utils). Only processes that
this started are ever ended, each by its id.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from slurm_nodes import parent, pids

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_worker_niceness", "0")  # Ray gives way to everybody else by 15
PATIENCE_S = 300.0  # for a node to come up: Ray gives it 30 seconds, which is little on a busy machine
MEMORY = 200 * 2**20  # of each node's object store: nothing but names goes through it


@contextlib.contextmanager
def patiently() -> Iterator[None]:
    """Inside, a node that has not come up is asked for again and again before Ray is told."""
    from ray._private import services

    asks = services.get_node

    def ask(*words: Any, **more: Any) -> Any:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return asks(*words, **more)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    services.get_node = ask
    try:
        yield
    finally:
        services.get_node = asks


class RayNodes:
    """A head and two more nodes; a context that ends what it started."""

    def __init__(self, nodes: int = 3, cores: int = 2) -> None:
        self.nodes, self.cores = nodes, cores
        self.cluster: Any = None
        self.more: list[Any] = []
        self.joined: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> RayNodes:
        with patiently():
            return self.begin()

    def begin(self) -> RayNodes:
        from ray.cluster_utils import Cluster

        args = {
            "num_cpus": self.cores if self.nodes > 1 else 0,
            "object_store_memory": MEMORY,
            "include_dashboard": False,
        }
        self.more.clear()
        self.cluster = Cluster(initialize_head=True, head_node_args=args)
        for _ in range(self.nodes - 1):
            self.add()
        return self

    def add(self, **words: Any) -> None:
        """One more node."""
        with patiently():
            self._add(**words)

    def _add(self, **words: Any) -> None:
        self.more.append(self.cluster.add_node(num_cpus=self.cores, object_store_memory=MEMORY, **words))

    def join(self, prepare: str) -> subprocess.Popen[bytes]:
        """A node in a name space of its own: what is mounted there, as `prepare` says, is seen there alone."""
        words = f"{prepare} && exec {sys.executable} -m ray.scripts.scripts start --address={self.address} --block"
        words += f" --num-cpus={self.cores} --object-store-memory={MEMORY}"
        before = self.cluster_nodes()
        self.joined.append(subprocess.Popen(["unshare", "-m", "sh", "-c", words], start_new_session=True,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))  # fmt: skip
        until = time.monotonic() + PATIENCE_S
        while self.cluster_nodes() <= before:  # one that was killed is counted for some seconds more
            assert time.monotonic() < until, "the node did not come up"
            time.sleep(0.2)
        return self.joined[-1]

    @staticmethod
    def can_join() -> bool:
        """Whether this user may mount file systems that nobody else sees."""
        try:
            return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
        except OSError:
            return False

    def cluster_nodes(self) -> set[str]:
        """Ids of those that live, as far as Ray knows."""
        from ray._private.state import GlobalState
        from ray._raylet import GcsClientOptions

        state = GlobalState()
        state._initialize_global_state(GcsClientOptions.create(self.address, None, True, False))
        return {node["NodeID"] for node in state.node_table() if node["Alive"]}

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def pids(self, node: Any) -> list[int]:
        """The processes of a node: its raylet, and what that has started."""
        return [info.process.pid for infos in node.all_processes.values() for info in infos]

    def kill(self, which: int = 0) -> None:
        """kill -9 of a node's raylet and of all that it started, as a machine that loses its power.

        Of the raylet alone a run notices nothing for seconds: its worker goes on, and may well come to its end.
        """
        node = self.more.pop(which)
        (raylet,) = node.all_processes["raylet"]
        for pid in family(raylet.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_head(self) -> None:
        """kill -9 of what knows all nodes, and of its raylet."""
        for kind in ("gcs_server", "raylet"):
            for info in self.cluster.head_node.all_processes.get(kind, []):
                os.kill(info.process.pid, signal.SIGKILL)

    def __exit__(self, *_: object) -> None:
        for process in self.joined:  # each has a session of its own, with all that it started
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)
        self.joined.clear()
        if self.cluster is not None:
            self.cluster.shutdown()
            self.cluster = None


def family(pid: int) -> list[int]:
    """A process and all below it."""
    above = {each: parent(each) for each in pids()}
    members = [pid]
    for each in members:  # grows meanwhile
        members += [child for child, its in above.items() if its == each]
    return members


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # one that was started in the background ignores Ctrl-C
        signal.signal(number, signal.default_int_handler)
    with RayNodes() as nodes:
        print(nodes.address, flush=True)
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            sys.exit(0)
