"""Is nothing lost and nothing done twice on a real Ray cluster and a real Slurm, with a node killed in the middle?

`make test-cluster` runs these; they take minutes, and real daemons. Where an engine is not there they are skipped, and
say so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import cells
import slurm_nodes
from ray_nodes import RayNodes
from slurm_nodes import SlurmNodes

from relab.lab.execute import engines, local
from relab.lab.execute.local import Job, Local
from relab.lab.execute.slots import Slots
from relab.lab.execute.where import Where

pytestmark = pytest.mark.cluster
CELLS = int(os.environ.get("CLUSTER_CELLS", "200"))
MARK = "relab-cluster-result"
QUESTION = """
question: does a smaller clip range learn as much
base: {{env: cartpole, total_steps: {steps}, algo.envs: 8, algo.steps: 64, eval.every: 2048, eval.episodes: 5}}
variants: {{usual: {{}}, smaller: {{algo.clip: 0.1}}}}
seeds: 2
{more}
"""


@pytest.fixture(scope="module")
def ray_nodes() -> Iterator[RayNodes]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed (pip install 'relab[ray]')")
    with RayNodes() as nodes:
        yield nodes
        import ray

        ray.shutdown()


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmNodes]:
    if slurm_nodes.missing():
        pytest.skip(f"{slurm_nodes.missing()} is not there: apt-get install slurm-wlm munge, or set SLURM_ROOT")
    with SlurmNodes() as nodes:
        before = dict(os.environ)
        os.environ.update(nodes.env)
        try:
            yield nodes
        finally:
            os.environ.clear()
            os.environ.update(before)


def after(true: Callable[[], bool], do: Callable[[], None]) -> threading.Thread:
    """Do it once something is true, while the test goes on."""

    def wait() -> None:
        while not true():
            time.sleep(0.05)
        do()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


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
    killer = after(half_done(folder, todo), lambda: ray_nodes.kill(0))
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
    killer = after(half_done(folder, todo), lambda: slurm.kill("n2"))
    began = time.monotonic()
    result = local.run(todo, 1, at=executor)
    killer.join(1)
    assert not killer.is_alive(), "no node was killed"
    slurm.begin_node("n2")
    slurm.wait_for(lambda: slurm.up() == 2, "node that came back", 120)
    hold_against(folder, home, result, time.monotonic() - began, "slurm")


# ---- Real trainings


def experiment(folder: Path, engine: str, steps: int, more: str = "") -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    (folder / "q.yaml").write_text(QUESTION.format(steps=steps, more=more))
    words = [sys.executable, "-m", "relab.cli", "experiment", "q.yaml", "--yes", "--no-log", "--on", engine]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def trained(folder: Path) -> dict[str, bytes]:
    """What must be the same wherever a run was made: rows, evaluations, weights."""
    runs = folder / "experiments" / "q" / "runs"
    names = ("metrics.jsonl", "evals.jsonl", "checkpoints/latest/*.safetensors")
    return {str(path.relative_to(runs)): path.read_bytes() for name in names for path in sorted(runs.glob(f"*/{name}"))}


def statuses(folder: Path) -> list[str]:
    metas = sorted((folder / "experiments" / "q" / "runs").glob("*/meta.json"))
    return [json.loads(path.read_text())["status"] for path in metas]


def running(folder: Path) -> bool:
    return any(path.stat().st_size > 0 for path in (folder / "experiments" / "q" / "runs").glob("*/metrics.jsonl"))


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    out, _ = process.communicate(timeout=1200)
    assert process.returncode == code, out
    return out


@pytest.fixture(scope="module")
def trained_here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("here") / "x"
    finish(experiment(folder, "local", 20_000))
    return trained(folder)


def test_ray_submitter_is_killed_and_called_again(
    tmp_path: Path, ray_nodes: RayNodes, trained_here: dict[str, bytes]
) -> None:
    folder = tmp_path / "x"
    first = experiment(folder, f"ray:{ray_nodes.address}", 20_000)
    after(lambda: running(folder), first.kill).join(600)
    first.wait()
    assert set(statuses(folder)) - {"finished"}, "it was killed too late to be a test"
    finish(experiment(folder, f"ray:{ray_nodes.address}", 20_000))
    assert statuses(folder) == ["finished"] * 4
    assert trained(folder) == trained_here


def test_slurm_submitter_is_killed_and_its_jobs_are_adopted(
    tmp_path: Path, slurm: SlurmNodes, trained_here: dict[str, bytes]
) -> None:
    folder = tmp_path / "x"
    first = experiment(folder, "slurm", 20_000)
    after(lambda: running(folder), first.kill).join(600)
    first.wait()
    tries = {path.name for path in (folder / "experiments/q/engine/sent").iterdir()}
    finish(experiment(folder, "slurm", 20_000))
    now = {path.name for path in (folder / "experiments/q/engine/sent").iterdir()}
    assert now >= tries
    assert {name for name in now if ".2" in name} == set(), "what Slurm had was sent again"
    assert trained(folder) == trained_here


def test_slurm_preempts_and_the_run_goes_on(tmp_path: Path, slurm: SlurmNodes, trained_here: dict[str, bytes]) -> None:
    folder = tmp_path / "x"
    process = experiment(folder, "slurm", 20_000)
    after(lambda: running(folder), lambda: urgent(slurm)).join(600)
    finish(process)
    assert trained(folder) == trained_here


def urgent(slurm: SlurmNodes) -> None:
    """A job of a partition that counts more takes both nodes for a few seconds."""
    slurm.call("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--wrap=sleep 3", "--output=/dev/null")


def test_slurm_time_limit(tmp_path: Path, slurm: SlurmNodes) -> None:
    """A minute is too short for these runs: each is told, writes a checkpoint, and its job stands in the line again."""
    folder = tmp_path / "x"
    process = experiment(folder, "slurm", 400_000, "execute: {minutes: 1}")
    starts: list[Any] = []

    def resumed() -> bool:
        events = (folder / "experiments" / "q" / "runs").glob("*/events.jsonl")
        starts[:] = [path for path in events if '"resume"' in path.read_text()]
        return bool(starts) or process.poll() is not None

    after(resumed, lambda: None).join(900)
    process.send_signal(signal.SIGINT)
    finish(process, 130)
    assert starts, "no run was resumed"
    assert slurm.call("squeue", "--noheader") == "", "a cancelled experiment left jobs in the line"


# ---- What it costs


def test_overhead(tmp_path: Path, ray_nodes: RayNodes) -> None:
    """Seconds for each of many programs that do nothing; printed, and held against nothing."""
    for name, count, at in (
        ("local", 200, None),
        ("ray", 1000, Where(on=f"ray:{ray_nodes.address}")),
        ("ray, ten in a job", 1000, Where(on=f"ray:{ray_nodes.address}", pack=10)),
    ):
        folder = tmp_path / name
        folder.mkdir()
        executor = Local(Slots(2, None)) if at is None else engines.of(at, folder)
        todo = [Job(f"n{i}", lambda: ["true"], (folder / f"done-{i}").exists, folder / "logs" / f"n{i}.log",
                    elsewhere=["touch", str(folder / f"done-{i}")], relab=False) for i in range(count)]  # fmt: skip
        if at is None:
            todo = [Job(each.name, lambda words=each.elsewhere: words, each.done, each.log) for each in todo]  # type: ignore[misc]
        began = time.monotonic()
        result = local.run(todo, 2, at=executor)
        assert len(result.finished) == count
        print(f"{MARK} overhead on {name}: {count} runs, {(time.monotonic() - began) / count:.3f} s each", flush=True)
