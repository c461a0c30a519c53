"""The two clusters that the tests share: begun with the first test that asks for one, ended after the last."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import slurm_nodes
from ray_nodes import RayNodes
from slurm_nodes import SlurmNodes
from trainings import end_all


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    yield
    end_all()


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
