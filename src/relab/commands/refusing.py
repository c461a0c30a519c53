"""What is left of an experiment or a sweep that nobody agreed to? Nothing that was not there before."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

MADE = ("runs", "logs")  # what is in one of these has cost something, and stays


@dataclass
class Answer:
    """The exit code of what was started; None where somebody said no."""

    code: int | None = None


@contextmanager
def unless_refused(folders: Sequence[Path]) -> Iterator[Answer]:
    """Inside, folders are written; those that are new and hold no run are removed after a no or an error."""
    answer, new, roots = Answer(), [x for x in folders if not x.exists()], [x.parent for x in folders]
    new_roots = [root for root in roots if not root.exists()]
    try:
        yield answer
    finally:
        if answer.code is None:
            for folder in (each for each in new if not _has_runs(each)):
                shutil.rmtree(folder, ignore_errors=True)
            for root in new_roots:
                with suppress(OSError):  # not empty, or not there
                    root.rmdir()


def _has_runs(folder: Path) -> bool:
    return any(True for name in MADE for _ in (folder / name).glob("*"))
