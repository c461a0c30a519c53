"""Which runs are copies of others? Logs that hold times are recorded once: equal bytes are one recording.

Tables without times may be equal for another reason (a seed that nobody reads), which the rules are to find: they are
copies only where one lies in a folder below the other's, under the same name.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from relab.formats.read.source import Source

TIMED = ("tensorboard", "wandb", "swanlab", "sb3", "mlflow", "rllib")
BLOCK = 1 << 20


class Copy(NamedTuple):
    """A run that is another one's copy."""

    source: Source
    of: Source


def without(sources: Iterable[Source]) -> tuple[list[Source], list[Copy]]:
    """The runs without their copies, and these; what comes first is kept."""
    kept: list[Source] = []
    copies: list[Copy] = []
    alike: dict[tuple[int, ...], list[Source]] = {}
    digests: dict[Path, bytes] = {}
    for source in sources:
        sizes = _sizes(source)
        before = alike.setdefault(sizes, []) if any(sizes) else []
        first = next((other for other in before if _same(source, other, digests)), None)
        if first is None:
            kept.append(source)
            before.append(source)
        else:
            copies.append(Copy(source, first))
    return kept, copies


def _sizes(source: Source) -> tuple[int, ...]:
    try:
        return tuple(sorted(file.stat().st_size for file in source.files))
    except OSError:
        return ()


def _same(a: Source, b: Source, digests: dict[Path, bytes]) -> bool:
    numbered = a.format == "tensorboard"  # its keys only count
    if a.format != b.format or (a.key != b.key and not numbered) or not {*a.files}.isdisjoint(b.files):
        return False
    backup = b.folder in a.folder.parents and {file.name for file in a.files} == {file.name for file in b.files}
    if a.format not in TIMED and not backup:
        return False
    try:
        return sorted(_digest(f, digests) for f in a.files) == sorted(_digest(f, digests) for f in b.files)
    except OSError:
        return False


def distinct(files: Sequence[Path]) -> list[Path]:
    """Files without those that are copies of one before them."""
    sizes = Counter(file.stat().st_size for file in files)
    digests: dict[Path, bytes] = {}
    first: dict[object, Path] = {}
    for file in files:
        alone = sizes[file.stat().st_size] == 1
        first.setdefault(file if alone else _digest(file, digests), file)
    return list(first.values())


def _digest(path: Path, known: dict[Path, bytes]) -> bytes:
    if path not in known:
        digest = hashlib.blake2b(digest_size=16)
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
        known[path] = digest.digest()
    return known[path]
