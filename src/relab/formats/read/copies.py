"""Which runs are copies of others? Logs that hold times are recorded once: equal bytes are one recording.

Tables without times may be equal for another reason (a seed that nobody reads), which the rules are to find: they are
copies only where one lies in a folder below the other's, under the same name.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from relab.base.enclosed import open_file
from relab.formats.read.source import Source

TIMED = ("tensorboard", "wandb", "swanlab", "sb3", "mlflow", "rllib")
BLOCK = 1 << 20
Group = tuple[str, str, tuple[int, ...]]  # format, key, sizes
Bytes = tuple[bytes, ...]  # a digest of each file


class Copy(NamedTuple):
    """A run that is another one's copy."""

    source: Source
    of: Source


@dataclass
class _Kept:
    """The runs that were kept so far, by what makes a copy of one: no run is compared with all others."""

    alone: dict[Group, Source | None] = field(default_factory=dict)  # the only one of its sizes: nobody reads it yet
    same: dict[tuple[Group, Bytes], list[Source]] = field(default_factory=dict)
    places: dict[tuple[Group, Path, frozenset[str]], list[Source]] = field(default_factory=dict)
    digests: dict[Path, bytes] = field(default_factory=dict)

    def original(self, source: Source) -> Source | None:
        """The run that this one is a copy of; without one, it is kept itself."""
        sizes = _sizes(source)
        if not any(sizes):
            return None
        group = (source.format, "" if source.format == "tensorboard" else source.key, sizes)  # its keys only count
        before = self.recorded(source, group) if source.format in TIMED else self.above(source, group)
        return next((other for other in before if {*source.files}.isdisjoint(other.files)), None)

    def recorded(self, source: Source, group: Group) -> list[Source]:
        """The kept ones of equal bytes, of which it becomes one itself."""
        if group not in self.alone:
            self.alone[group] = source
            return []
        waits, self.alone[group] = self.alone[group], None
        if waits is not None and (content := self.content(waits)) is not None:
            self.same[group, content] = [waits]
        content = self.content(source)
        if content is None:
            return []
        before = self.same.setdefault((group, content), [])
        if all({*source.files} & {*other.files} for other in before):
            self.same[group, content] = [*before, source]
        return before

    def above(self, source: Source, group: Group) -> list[Source]:
        """The kept ones of equal bytes and names in folders above its own."""
        folder, names = source.folder, frozenset(file.name for file in source.files)
        some = [other for place in folder.parents for other in self.places.get((group, place, names), ())]
        mine = self.content(source) if some else None
        before = [other for other in some if mine is not None and self.content(other) == mine]
        if all({*source.files} & {*other.files} for other in before):
            self.places.setdefault((group, folder, names), []).append(source)
        return before[::-1]  # the uppermost first

    def content(self, source: Source) -> Bytes | None:
        """What its files hold; None where one cannot be read."""
        try:
            return tuple(sorted(_digest(file, self.digests) for file in source.files))
        except OSError:
            return None


def without(sources: Iterable[Source]) -> tuple[list[Source], list[Copy]]:
    """The runs without their copies, and these; what comes first is kept."""
    kept: list[Source] = []
    copies: list[Copy] = []
    known = _Kept()
    for source in sources:
        first = known.original(source)
        if first is None:
            kept.append(source)
        else:
            copies.append(Copy(source, first))
    return kept, copies


def _sizes(source: Source) -> tuple[int, ...]:
    try:
        return tuple(sorted(file.stat().st_size for file in source.files))
    except OSError:
        return ()


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
    """Of the bytes that it has now: a file that is written to meanwhile has an end."""
    if path not in known:
        digest = hashlib.blake2b(digest_size=16)
        with open_file(path) as file:
            left = os.fstat(file.fileno()).st_size
            while left > 0 and (block := file.read(min(BLOCK, left))):
                digest.update(block)
                left -= len(block)
        known[path] = digest.digest()
    return known[path]
