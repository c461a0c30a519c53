"""Is nothing lost and nothing done twice on a real Ray cluster and a real Slurm, with a node killed in the middle?

`make test-cluster` runs these; they take minutes, and real daemons. Where an engine is not there they are skipped, and
say so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import cells
import pytest
from ray_nodes import RayNodes
from slurm_nodes import SlurmNodes
from trainings import MARK, later

from relab.lab.execute import engines, local
from relab.lab.execute.local import Job
from relab.lab.execute.where import Where

pytestmark = pytest.mark.cluster
CELLS = int(os.environ.get("CLUSTER_CELLS", "200"))


def at_home(folder: Path, count: int) -> dict[str, bytes]:
    folder.mkdir()
    local.run(cells.jobs(folder, count, 0.0), 2)
    return cells.rows(folder)


def half_done(folder: Path, todo: list[Job]) -> Callable[[], bool]:
    return lambda: len(list(folder.glob("runs/cell-*/ended"))) >= len(todo) // 2


def hold_against(folder: Path, home: dict[str, bytes], result: local.Result, seconds: float, engine: str) -> None:
    """0 lost, 0 twice, the same bytes; the numbers are printed for the docs."""
    ended, begun = cells.lines(folder, "ended"), cells.lines(folder, "begun")
    print(f"{MARK} {engine}: {len(home)} cells, {len(home) - len(ended)} lost, {sum(n > 1 for n in ended)} twice,"
          f" {sum(n > 1 for n in begun)} begun again, {seconds:.0f} s", flush=True)  # fmt: skip
    assert result.failed == []
    assert ended == [1] * len(home)
    assert cells.rows(folder) == home


# ---- 200 cells, and a node that dies


def test_ray_loses_a_node(tmp_path: Path, ray_nodes: RayNodes) -> None:
    home = at_home(tmp_path / "home", CELLS)
    folder = tmp_path / "away"
    folder.mkdir()
    todo = cells.jobs(folder, CELLS, 0.05)
    executor = engines.of(Where(on=f"ray:{ray_nodes.address}"), folder)
    killer = later(half_done(folder, todo), lambda: ray_nodes.kill(0))
    began = time.monotonic()
    result = local.run(todo, 1, at=executor)
    killer.join(1)
    assert not killer.is_alive(), "no node was killed"
    hold_against(folder, home, result, time.monotonic() - began, "ray")


def test_slurm_loses_a_node(tmp_path: Path, slurm: SlurmNodes) -> None:
    home = at_home(tmp_path / "home", CELLS)
    folder = tmp_path / "away"
    folder.mkdir()
    todo = cells.jobs(folder, CELLS, 0.05)
    executor = engines.of(Where(on="slurm", pack=10, at_once=60), folder)
    killer = later(half_done(folder, todo), lambda: slurm.kill("n2"))
    began = time.monotonic()
    result = local.run(todo, 1, at=executor)
    killer.join(1)
    assert not killer.is_alive(), "no node was killed"
    slurm.begin_node("n2")
    slurm.wait_for(lambda: slurm.up() == 2, "node that came back", 120)
    hold_against(folder, home, result, time.monotonic() - began, "slurm")
