"""Source files parsed, for tests that look at the code itself: each file once a process, however many tests ask."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


def tree(file: Path) -> ast.Module:
    return _parsed(file, file.stat().st_mtime_ns)


@functools.cache
def _parsed(file: Path, changed: int) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))
