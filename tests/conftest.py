"""Shared by all tests: a cache folder of their own, so that nothing of the user's is read or written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import kernels

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "relab"


if "PYTEST_XDIST_WORKER" not in os.environ:
    for index in kernels.stale(PACKAGE):
        index.unlink(missing_ok=True)  # compiled anew by whoever calls it


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
