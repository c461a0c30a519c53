"""Shared by all tests: a cache folder of their own, so that nothing of the user's is read or written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "relab"


def drop_stale_kernels() -> None:
    """Numba's cache watches only the file a kernel stands in, not those it calls into: after an edit, compile anew."""
    newest = max(path.stat().st_mtime for path in PACKAGE.rglob("*.py"))
    for path in PACKAGE.rglob("*.nbi"):
        if path.stat().st_mtime < newest:
            path.unlink(missing_ok=True)


if "PYTEST_XDIST_WORKER" not in os.environ:
    drop_stale_kernels()


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
