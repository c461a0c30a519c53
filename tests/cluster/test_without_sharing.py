"""Does a run come home from a Ray worker that cannot see the folder of its submitter? Without a shared file system.

The worker's node is in a name space of its own in which an empty file system lies over the home folder: whatever it
wrote there would be gone.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_nodes import RayNodes
from trainings import begun, events, experiment, finish, report, runs, same, statuses, trained, wait_for

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("apart")


@pytest.fixture(scope="module")
def nodes(place: Path) -> Iterator[RayNodes]:
    """A head that runs nothing, and a node that does not see `place`."""
    if not RayNodes.can_join():
        pytest.skip("a node that does not see the folder needs `unshare -m`, which this user may not call")
    with RayNodes(1) as cluster:
        cluster.join(f"mount -t tmpfs none {place}")
        yield cluster


def more(place: Path) -> str:
    scratch = place.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    return f"execute: {{shared: false, scratch: {scratch}}}"


@pytest.fixture(scope="module")
def home(place: Path) -> dict[str, bytes]:
    finish(experiment(place / "here", "local"), place / "here")
    return trained(place / "here")


def test_rows_and_checkpoints_come_home_while_runs_go_on(place: Path, nodes: RayNodes, home: dict[str, bytes]) -> None:
    folder, began, sizes = place / "x", time.monotonic(), set()
    process = experiment(folder, f"ray:{nodes.address}", more=more(place))
    while process.poll() is None:
        for path in runs(folder).glob("*/metrics.jsonl"):
            if '"running"' in (path.parent / "meta.json").read_text():
                sizes.add((path.parent.name, path.stat().st_size))
        time.sleep(0.1)
    finish(process, folder)
    same(folder, home)
    assert len(sizes) >= 5, "rows came home at the end alone"
    assert list((place.parent / "scratch").iterdir()) == [], "the worker left its folders behind"
    report("ray without a shared folder", began, folder)


def test_a_lost_worker_is_gone_on_with_from_what_came_home(
    place: Path, nodes: RayNodes, home: dict[str, bytes]
) -> None:
    folder, began = place / "y", time.monotonic()
    process = experiment(folder, f"ray:{nodes.address}", more=more(place))
    wait_for(lambda: begun(folder), "run whose checkpoint came home")
    os.killpg(nodes.joined[-1].pid, signal.SIGKILL)
    nodes.joined.pop().wait()
    nodes.join(f"mount -t tmpfs none {place}")
    finish(process, folder)
    same(folder, home)
    assert events(folder, "resume")
    report("ray without a shared folder, its node killed", began, folder)


def test_a_watcher_stops_a_run_by_what_came_home(place: Path, nodes: RayNodes) -> None:
    folder, began = place / "z", time.monotonic()
    said = more(place) + "\nstop_on: warning\nlook_every: 1"
    finish(experiment(folder, f"ray:{nodes.address}", 10_000_000, said, base="algo.lr: 3"), folder)
    assert len(list((folder / "experiments/q/stopped").iterdir())) == 2
    assert "finished" not in statuses(folder)
    report("ray without a shared folder, stopped by a watcher", began, folder)


def test_a_shared_folder_that_is_none_is_told(place: Path, nodes: RayNodes) -> None:
    folder = place / "w"
    out = finish(experiment(folder, f"ray:{nodes.address}"), folder, 64)
    assert "does not see" in out
    assert "shared: false" in out
