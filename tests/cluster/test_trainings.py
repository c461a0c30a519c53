"""Do trainings that an engine cuts short come to the bytes of an uninterrupted run here? On a real Ray and Slurm.

Two PPO runs on CartPole each time; `make test-cluster` runs these.
"""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from ray_nodes import RayNodes
from slurm_nodes import SlurmNodes
from trainings import STEPS, begun, events, experiment, finish, report, runs, same, statuses, trained, wait_for

pytestmark = pytest.mark.cluster
SOME = 2  # runs of an experiment
LONG = 5 * STEPS  # where the engine takes seconds to notice
MINUTES = float(os.environ.get("CLUSTER_MINUTES", "1"))  # that a job of Slurm may take in the test of its limit


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("here") / "x"
    finish(experiment(folder, "local"), folder)
    return trained(folder)


@dataclass(frozen=True)
class LongHome:
    """Longer trainings at home."""

    files: dict[str, bytes]
    steps_per_s: float


@pytest.fixture(scope="module")
def long_home(tmp_path_factory: pytest.TempPathFactory) -> LongHome:
    folder, began = tmp_path_factory.mktemp("here-long") / "x", time.monotonic()
    finish(experiment(folder, "local", LONG), folder)
    return LongHome(trained(folder), LONG / (time.monotonic() - began))


def ray_at(nodes: RayNodes) -> str:
    return f"ray:{nodes.address}"


# ---- A submitter that is killed


def test_ray_submitter_is_killed_and_called_again(tmp_path: Path, ray_nodes: RayNodes, home: dict[str, bytes]) -> None:
    folder, began = tmp_path / "x", time.monotonic()
    first = experiment(folder, ray_at(ray_nodes))
    wait_for(lambda: begun(folder), "run with a checkpoint")
    first.kill()
    first.wait()
    assert set(statuses(folder)) - {"finished"}, "it was killed too late to be a test"
    finish(experiment(folder, ray_at(ray_nodes)), folder)
    same(folder, home)
    assert events(folder, "resume"), "what had begun was not gone on with"
    report("ray, submitter killed", began, folder)


def test_slurm_submitter_is_killed_and_its_jobs_are_adopted(
    tmp_path: Path, slurm: SlurmNodes, home: dict[str, bytes]
) -> None:
    folder, began = tmp_path / "x", time.monotonic()
    first = experiment(folder, "slurm")
    wait_for(lambda: begun(folder), "run with a checkpoint")
    first.kill()
    first.wait()
    finish(experiment(folder, "slurm"), folder)
    sent = {path.name for path in (folder / "experiments/q/engine/sent").iterdir()}
    assert {name for name in sent if ".2.json" in name} == set(), "what Slurm had was sent again"
    same(folder, home)
    report("slurm, submitter killed", began, folder)


# ---- Worker, node, head


def test_ray_worker_is_killed(tmp_path: Path, ray_nodes: RayNodes, home: dict[str, bytes]) -> None:
    """kill -9 of the process that carries the order out: the run in it dies with it."""
    folder, began = tmp_path / "x", time.monotonic()
    process = experiment(folder, ray_at(ray_nodes))
    wait_for(lambda: begun(folder), "run with a checkpoint")
    os.kill(int(under_way(folder)["pid"]), signal.SIGKILL)
    finish(process, folder)
    same(folder, home)
    assert events(folder, "resume")
    report("ray, worker killed", began, folder)


def test_slurm_worker_is_killed(tmp_path: Path, slurm: SlurmNodes, home: dict[str, bytes]) -> None:
    """kill -9 of relab's node: the job ends with it, and its run is sent again."""
    folder, began = tmp_path / "x", time.monotonic()
    process = experiment(folder, "slurm")
    wait_for(lambda: begun(folder), "run with a checkpoint")
    os.kill(int(under_way(folder)["pid"]), signal.SIGKILL)
    finish(process, folder)
    same(folder, home)
    assert events(folder, "resume")
    assert slurm.call("squeue", "--noheader") == "", "a job outlived its node"
    report("slurm, worker killed", began, folder)


def test_slurm_pack_is_cancelled_and_called_again(tmp_path: Path, slurm: SlurmNodes, home: dict[str, bytes]) -> None:
    """Of a pack of two the first has begun: nothing of it stands in the line again."""
    folder, began, pack = tmp_path / "x", time.monotonic(), "execute: {pack: 2}"
    process = experiment(folder, "slurm", more=pack)
    wait_for(lambda: begun(folder), "run with a checkpoint")
    process.send_signal(signal.SIGINT)
    finish(process, folder, 130, seconds=120)
    assert slurm.call("squeue", "--noheader", "--states=R,PD") == "", "a cancelled pack is in the line"
    finish(experiment(folder, "slurm", more=pack), folder)
    same(folder, home)
    report("slurm, a pack cancelled and called again", began, folder)


def under_way(folder: Path) -> dict[str, object]:
    """Who works on a run that has a checkpoint behind it: host, process."""
    for path in sorted((folder / "experiments/q/engine/alive").iterdir(), reverse=True):
        run = runs(folder) / path.name.rpartition(".")[0]
        latest = run / "checkpoints/latest.json"
        ended = folder / "experiments/q/engine/ends" / f"{path.name}.json"
        if latest.exists() and json.loads(latest.read_text())["step"] > 0 and not ended.exists():
            return dict(json.loads(path.read_text()))
    raise AssertionError("no run was under way")


def test_ray_node_is_lost(tmp_path: Path, home: dict[str, bytes]) -> None:
    """Which node has runs is Ray's affair, but never the head, which has no cores: all others go."""
    folder, began = tmp_path / "x", time.monotonic()
    with RayNodes(1) as nodes:
        nodes.add()
        nodes.add()
        process = experiment(folder, ray_at(nodes))
        wait_for(lambda: begun(folder), "run with a checkpoint")
        while nodes.more:
            nodes.kill()
        nodes.add()
        out = finish(process, folder)
    same(folder, home)
    assert events(folder, "resume"), "no run was on a node that was killed"
    assert "(raylet)" not in out, "Ray's log of the lost node stands in our output"
    report("ray, all nodes but the head killed, one added", began, folder)


def test_slurm_node_is_lost(tmp_path: Path, slurm: SlurmNodes, home: dict[str, bytes]) -> None:
    folder, began = tmp_path / "x", time.monotonic()
    process = experiment(folder, "slurm")
    wait_for(lambda: begun(folder), "run with a checkpoint")
    node = str(under_way(folder)["host"])
    slurm.kill(node)
    finish(process, folder)
    slurm.begin_node(node)
    slurm.wait_for(lambda: slurm.up() == 2, "node that came back", 120)
    same(folder, home)
    assert events(folder, "resume")
    report("slurm, slurmd and jobs of a node killed", began, folder)


def test_slurm_controller_is_lost_and_comes_back(tmp_path: Path, slurm: SlurmNodes, home: dict[str, bytes]) -> None:
    """Jobs go on without it; the submitter waits until it answers again."""
    folder, began = tmp_path / "x", time.monotonic()
    process = experiment(folder, "slurm")
    wait_for(lambda: begun(folder), "run with a checkpoint")
    slurm.kill_controller()
    time.sleep(8)
    slurm.begin_controller(fresh=False)
    finish(process, folder)
    same(folder, home)
    report("slurm, controller killed and begun again", began, folder)


# ---- A machine that is wanted back


def test_slurm_preempts_and_the_run_goes_on(tmp_path: Path, slurm: SlurmNodes, long_home: LongHome) -> None:
    folder, began = tmp_path / "x", time.monotonic()
    process = experiment(folder, "slurm", LONG)
    wait_for(lambda: begun(folder), "run with a checkpoint")
    slurm.call("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--wrap=sleep 3", "--output=/dev/null")
    finish(process, folder)
    same(folder, long_home.files)
    assert events(folder, "interrupt"), "nobody was preempted"
    assert events(folder, "resume")
    report("slurm, preempted by another partition", began, folder)


def test_ray_time_limit(tmp_path: Path, ray_nodes: RayNodes, long_home: LongHome) -> None:
    """Python and torch take some of the fifteen seconds, so that a run needs several tries."""
    cut_short(tmp_path / "x", ray_at(ray_nodes), LONG, MINUTES / 4, long_home.files, "ray")


def test_slurm_time_limit(tmp_path: Path, slurm: SlurmNodes, long_home: LongHome) -> None:
    """Slurm counts in minutes, so that the trainings must be long enough for this machine."""
    here, steps = tmp_path / "here", int(long_home.steps_per_s * 60 * MINUTES * 1.5)
    finish(experiment(here, "local", steps), here)
    cut_short(tmp_path / "x", "slurm", steps, MINUTES, trained(here), "slurm")


def cut_short(folder: Path, at: str, steps: int, minutes: float, home: dict[str, bytes], engine: str) -> None:
    """Jobs end before their runs do: each is told before, writes a checkpoint and goes into the line again."""
    began = time.monotonic()
    finish(experiment(folder, at, steps, f"execute: {{minutes: {minutes}}}"), folder)
    same(folder, home)
    assert events(folder, "interrupt"), "no run was told"
    assert events(folder, "resume")
    report(f"{engine}, time limit of {minutes:g} minutes", began, folder)


# ---- Cancelled


@pytest.mark.parametrize("engine", ["ray", "slurm"])
def test_cancelled_and_called_again(
    tmp_path: Path, engine: str, request: pytest.FixtureRequest, home: dict[str, bytes]
) -> None:
    folder, began = tmp_path / "x", time.monotonic()
    nodes = request.getfixturevalue("ray_nodes" if engine == "ray" else "slurm")
    at = ray_at(nodes) if engine == "ray" else "slurm"
    process = experiment(folder, at)
    wait_for(lambda: begun(folder), "run with a checkpoint")
    process.send_signal(signal.SIGINT)
    assert "call it again to go on" in finish(process, folder, 130)
    assert "running" not in statuses(folder), "a cancelled run says that it runs"
    if engine == "slurm":
        slurm_left = nodes.call("squeue", "--noheader", "--states=R,PD")
        assert slurm_left == "", "a cancelled experiment left jobs in the line"
    finish(experiment(folder, at), folder)
    same(folder, home)
    report(f"{engine}, cancelled and called again", began, folder)


# ---- A machine that is broken, and a run that is not worth its time

BROKEN = """
import os, sys
node = os.environ.get("RELAB_TEST_NODE") or os.environ.get("SLURMD_NODENAME")
if node == "n1" and any(word.startswith("--only") for word in sys.orig_argv):
    print("this machine lacks a library", flush=True)
    os._exit(3)
"""


def fails_on_one_node(place: Path, at: str, home: dict[str, bytes], engine: str) -> None:
    """On one node every run ends with exit code 3 before it begins."""
    folder, began = place / "x", time.monotonic()
    (place / "sitecustomize.py").write_text(BROKEN)
    finish(
        experiment(folder, at, more=f"execute: {{env: {{PYTHONPATH: '{place}:{os.environ.get('PYTHONPATH', '')}'}}}}"),
        folder,
    )
    same(folder, home)
    logs = "".join(path.read_text() for path in (folder / "experiments/q/logs").iterdir())
    assert "one more try, elsewhere" in logs, "nothing failed anywhere"
    report(f"{engine}, a node on which everything fails", began, folder)


def test_slurm_node_on_which_everything_fails(tmp_path: Path, slurm: SlurmNodes, home: dict[str, bytes]) -> None:
    fails_on_one_node(tmp_path, "slurm", home, "slurm")


def test_ray_node_on_which_everything_fails(tmp_path: Path, home: dict[str, bytes]) -> None:
    with RayNodes(1) as nodes:
        nodes.add(env_vars={"RELAB_TEST_NODE": "n1"})
        nodes.add()
        fails_on_one_node(tmp_path, ray_at(nodes), home, "ray")


@pytest.mark.parametrize("engine", ["ray", "slurm"])
def test_a_watcher_stops_runs(tmp_path: Path, engine: str, request: pytest.FixtureRequest) -> None:
    """A learning rate of 3 destroys any policy within seconds: `stop_on` ends the runs, which are not begun again."""
    folder, began = tmp_path / "x", time.monotonic()
    nodes = request.getfixturevalue("ray_nodes" if engine == "ray" else "slurm")
    at = ray_at(nodes) if engine == "ray" else "slurm"
    finish(
        experiment(folder, at, 10_000_000, "stop_on: warning\nlook_every: 1", base="algo.lr: 3"), folder, seconds=400
    )
    assert len(list((folder / "experiments/q/stopped").iterdir())) == SOME
    assert "finished" not in statuses(folder)
    report(f"{engine}, stopped by a watcher", began, folder)


def test_ray_head_is_lost(tmp_path: Path, long_home: LongHome) -> None:
    """Without its head a Ray cluster is gone, and so is the submitter; the next call, on another one, goes on."""
    folder, began = tmp_path / "x", time.monotonic()
    env = {**os.environ, "RAY_gcs_rpc_server_reconnect_timeout_s": "5"}  # a minute otherwise
    with RayNodes(2) as first:
        process = experiment(folder, ray_at(first), LONG, env=env)
        wait_for(lambda: begun(folder), "run with a checkpoint")
        first.kill_head()
        process.wait(900)
    assert process.returncode != 0
    with RayNodes(2) as second:
        finish(experiment(folder, ray_at(second), LONG), folder)
    same(folder, long_home.files)
    assert events(folder, "resume"), "the runs were done before they were ended"
    report("ray, head killed, called again on another cluster", began, folder)
