"""How is a real Ray cluster of three nodes started on one machine, and ended without touching anybody else's?

python tests/cluster/ray_nodes.py       start one, print its address, wait; Ctrl-C ends it

Each node is a raylet with a number of cores of its own, in one process tree (ray.cluster_utils). Only processes that
this started are ever ended, each by its id.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
MEMORY = 200 * 2**20  # of each node's object store: nothing but names goes through it


class RayNodes:
    """A head and two more nodes; a context that ends what it started."""

    def __init__(self, nodes: int = 3, cores: int = 2) -> None:
        self.nodes, self.cores = nodes, cores
        self.cluster: Any = None
        self.more: list[Any] = []

    def __enter__(self) -> RayNodes:
        from ray.cluster_utils import Cluster

        args = {"num_cpus": self.cores, "object_store_memory": MEMORY, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=args)
        for _ in range(self.nodes - 1):
            self.add()
        return self

    def add(self, **words: Any) -> None:
        """One more node."""
        self.more.append(self.cluster.add_node(num_cpus=self.cores, object_store_memory=MEMORY, **words))

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def pids(self, node: Any) -> list[int]:
        """The processes of a node: its raylet, and what that has started."""
        return [info.process.pid for infos in node.all_processes.values() for info in infos]

    def kill(self, which: int = 0) -> None:
        """kill -9 of a node's raylet, as a machine that loses its power."""
        node = self.more.pop(which)
        (raylet,) = node.all_processes["raylet"]
        os.kill(raylet.process.pid, signal.SIGKILL)

    def kill_head(self) -> None:
        """kill -9 of what knows all nodes, and of its raylet."""
        for kind in ("gcs_server", "raylet"):
            for info in self.cluster.head_node.all_processes.get(kind, []):
                os.kill(info.process.pid, signal.SIGKILL)

    def __exit__(self, *_: object) -> None:
        self.cluster.shutdown()


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
