"""Is it told clearly what an engine cannot do? A real Ray and a real Slurm, and what goes wrong in practice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_nodes import RayNodes
from slurm_nodes import SlurmNodes
from trainings import experiment, finish, report, runs, same, statuses, trained

import relab

pytestmark = pytest.mark.cluster


def test_another_relab_at_the_other_end_is_named_with_both_versions(tmp_path: Path, slurm: SlurmNodes) -> None:
    """The environment that jobs activate has a relab with one line more."""
    other = tmp_path / "other"
    shutil.copytree(Path(relab.__file__).parent, other / "relab", ignore=shutil.ignore_patterns("__pycache__"))
    with open(other / "relab" / "__init__.py", "a") as file:
        file.write("\n# another one\n")
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/activate").write_text(
        f"export PYTHONPATH={other} PATH={os.path.dirname(sys.executable)}:$PATH\n"
    )
    folder = tmp_path / "x"
    out = finish(experiment(folder, "slurm", more=f"execute: {{venv: {tmp_path / 'venv'}}}"), folder, 64)
    assert "but the runs were submitted by relab" in out
    assert "install the same on both" in out
    assert statuses(folder) == [], "a run was begun"
    assert slurm.call("squeue", "--noheader", "--states=R,PD") == ""


def test_a_folder_that_a_machine_cannot_write_is_told_with_its_name(tmp_path: Path) -> None:
    if not RayNodes.can_join():
        pytest.skip("a folder that one node cannot write needs `unshare -m`, which this user may not call")
    folder = tmp_path / "x"
    folder.mkdir()
    with RayNodes(1) as nodes:
        nodes.join(f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}")
        out = finish(experiment(folder, f"ray:{nodes.address}"), folder, 64)
    assert "cannot write to" in out
    assert str(folder) in out
    assert statuses(folder) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for the plan and little more."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "none", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("engine", ["ray", "slurm"])
def test_a_full_disk_is_told_and_with_room_it_goes_on(
    tmp_path: Path, small_disk: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    here, folder, began = tmp_path / "here", small_disk / "x", time.monotonic()
    finish(experiment(here, "local"), here)
    nodes = request.getfixturevalue("ray_nodes" if engine == "ray" else "slurm")
    at = f"ray:{nodes.address}" if engine == "ray" else "slurm"
    process = experiment(folder, at)
    process.wait(1800)
    out = (folder / "out.txt").read_text()
    logs = "".join(path.read_text() for path in (folder / "experiments/q/logs").glob("*"))
    assert "disk" in (out + logs).lower() or "No space left" in out + logs
    assert set(statuses(folder)) - {"finished"}, "there was room for all"
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    finish(experiment(folder, at), folder)
    same(folder, trained(here))
    assert len(list(runs(folder).iterdir())) == 2
    report(f"{engine}, disk full, then with room", began, folder)


def test_an_address_that_does_not_answer_and_an_engine_that_is_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    began = time.monotonic()
    assert "no Ray cluster answers at 127.0.0.1:1" in finish(experiment(folder, "ray:127.0.0.1:1"), folder, 2, 60)
    print(f"\nrelab-cluster-result an address that does not answer: told after {time.monotonic() - began:.0f} s")
    bare = {**os.environ, "PATH": str(tmp_path)}
    assert "sbatch is not there" in finish(experiment(folder, "slurm", env=bare), folder, 2, 60)
    assert not (folder / "experiments").exists(), "something was written before it was told"
