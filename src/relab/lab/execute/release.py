"""Which relab is this? Its version and a hash of its code: two machines that work on one experiment must agree."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import relab

PACKAGE = Path(relab.__file__).resolve().parent


@functools.cache
def release() -> str:
    """relab 0.1.0, code 3f2a9c1d: the same on two machines where every source file is the same."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"relab {relab.__version__}, code {digest.hexdigest()[:8]}"


def difference(home: str, host: str) -> str:
    """Why this machine may not work for the one that asked; empty where it may."""
    if home == release():
        return ""
    return (f"{host} has {release()}, but the runs were submitted by {home}: install the same on both"
            " (pip install the same version, or check out the same commit)")  # fmt: skip
