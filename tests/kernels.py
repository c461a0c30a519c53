"""Which compiled kernels no longer match their source? Numba watches the file that a kernel stands in, but not those
that it calls into."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import syntax


def stale(package: Path) -> list[Path]:
    """Numba's index files that are older than a module which their kernel's module imports, at any depth."""
    indexes, newest = [], {}
    for index in sorted(package.rglob("*.nbi")):
        source = index.parent.parent / f"{index.name.partition('.')[0]}.py"
        if source not in newest:
            newest[source] = max((path.stat().st_mtime for path in reached(source, package)), default=float("inf"))
        if index.stat().st_mtime < newest[source]:
            indexes.append(index)
    return indexes


def reached(source: Path, package: Path) -> set[Path]:
    """A module of the package and all that it imports, at any depth."""
    files, waiting = set(), [source] if source.is_file() else []
    while waiting:
        here = waiting.pop()
        files.add(here)
        waiting += imported(here, package) - files
    return files


@functools.cache
def imported(source: Path, package: Path) -> frozenset[Path]:
    """The package's files that a module's import statements name."""
    names = set()
    for node in ast.walk(syntax.tree(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    places = (package.parent.joinpath(*name.split(".")) for name in names if name.split(".")[0] == package.name)
    files = (file for place in places for file in (place.with_suffix(".py"), place / "__init__.py"))
    return frozenset(file for file in files if file.is_file())
