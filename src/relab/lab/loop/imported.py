"""Which modules beside a program does it import? Read from its text and theirs, never by running anything.

What Python finds first for `import helper` is a file in the program's own folder, one that somebody put there a moment
ago too. Imports that are made up while the program runs (importlib) cannot be seen; the file lists them as `evaluator`.
"""

from __future__ import annotations

import ast
import functools
import glob
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from relab.base import limits

LARGEST = 5_000_000  # bytes of a program that is read


class Import(NamedTuple):
    """One import: `level` dots, then names; `from a.b import c` may mean a module a.b.c."""

    level: int
    names: tuple[str, ...]


def beside(program: Path) -> list[Path]:
    """All modules below the program's folder that it imports, directly or by another of them; in a fixed order."""
    folder, seen, todo = program.parent, {program}, [program]
    while todo:
        here = todo.pop()
        for one in imports(source(here)):
            start = folder if one.level == 0 else up(here.parent, one.level - 1)
            new = [path for path in files_of(start, one.names) if path not in seen and path.is_relative_to(folder)]
            seen |= set(new)
            todo += new
    return sorted(seen - {program})


def up(folder: Path, levels: int) -> Path:
    return folder if levels == 0 else up(folder.parent, levels - 1)


def source(path: Path) -> bytes:
    """What is no Python, or too long for a program, imports nothing."""
    try:
        return limits.read_bytes(path, LARGEST) if path.suffix == ".py" else b""
    except OSError:
        return b""


@functools.lru_cache(maxsize=256)
def imports(text: bytes) -> tuple[Import, ...]:
    """Every import of a source, within functions too."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(one for node in ast.walk(tree) for one in of_node(node))


def of_node(node: ast.AST) -> Iterator[Import]:
    """
    >>> [each for node in ast.walk(ast.parse("import a.b, c; from ..d import e, f")) for each in of_node(node)]
    [Import(level=0, names=('a', 'b')), Import(level=0, names=('c',)), Import(level=2, names=('d', 'e')), \
Import(level=2, names=('d', 'f'))]
    """
    if isinstance(node, ast.Import):
        yield from (Import(0, tuple(each.name.split("."))) for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        first = tuple(node.module.split(".")) if node.module else ()
        yield from (Import(node.level, (*first, each.name)) for each in node.names)


def files_of(folder: Path, names: tuple[str, ...]) -> list[Path]:
    """The files that may be executed for a dotted name: every package on the way, and the module at its end.

    All that lie there, whichever Python prefers, compiled ones too: one that is put beside another may take its place.
    """
    files, place = [], folder
    for name in names:
        compiled = sorted(place.glob(f"{glob.escape(name)}*.so")) if place.is_dir() else []
        options = [base for stem in (place / name / "__init__", place / name) for base in _sources_of(stem)]
        files += [path for path in (*options, *compiled) if path.is_file()]
        place = place / name
    return files


def _sources_of(stem: Path) -> tuple[Path, Path]:
    return stem.with_name(f"{stem.name}.py"), stem.with_name(f"{stem.name}.pyc")


def of_standard_names(folder: Path) -> list[Path]:
    """The modules and packages in a folder that Python finds there before those of its own library."""
    modules: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.name.partition(".")[0] not in sys.stdlib_module_names:
            continue
        if path.is_dir() and any(path.glob("__init__.*")):  # one without comes after the library's
            modules += sorted(each for each in path.rglob("*") if _code(each))
        elif _code(path):
            modules.append(path)
    return modules


def _code(path: Path) -> bool:
    return path.suffix in (".py", ".pyc", ".so") and "__pycache__" not in path.parts and path.is_file()
