"""TensorBoard while a run trains: every row of metrics and timing goes into RUN/tensorboard as well, at once.

The record stays the truth. Whenever training begins or goes on, the event file is made anew from the record, so that a
run that was killed and resumed shows each step once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from relab.base.documents import Settings
from relab.base.enclosed import inside, listed, subfolder
from relab.base.jsonl import read_jsonl
from relab.config.views import flatten
from relab.formats.read.tfevents import Writer
from relab.formats.write.naming import seconds_of
from relab.formats.write.tensorboard_files import TABLE, settings_table, single

FOLDER = "tensorboard"
SOURCES = ("metrics.jsonl", "timing.jsonl")
SUFFIX = "relab.live"


class LiveBoard:
    """Called with every row that a record appends."""

    def __init__(self, folder: Path, config: Settings, created: Any, step: int, lost: Callable[[str], None]):
        """`step`: where training stands, rows beyond it are left out; `lost`: is told once if it cannot be written."""
        self.lost = lost
        self.out: Writer | None = None
        self._guard(lambda: self._begin(folder, config, seconds_of(created), step))

    def _begin(self, folder: Path, config: Settings, created: float | None, step: int) -> None:
        place = subfolder(folder, FOLDER)
        for path in listed(folder, FOLDER):
            if path.name.startswith("events.out.tfevents.") and path.name.endswith(SUFFIX):
                path.unlink()
        self.out = out = Writer(place, created, SUFFIX)
        out.text(TABLE, settings_table(flatten(config)), wall=created)
        for name in SOURCES:
            for row in read_jsonl(inside(folder, name))[0] if os.path.exists(folder / name) else ():
                if row["step"] <= step:
                    self._row(row)
        out.flush()

    def __call__(self, name: str, row: Mapping[str, Any]) -> None:
        if self.out is not None and name in SOURCES:
            self._guard(lambda: self._row(row, flush=True))

    def _row(self, row: Mapping[str, Any], flush: bool = False) -> None:
        assert self.out is not None
        for name, value in row.items():
            if "/" in name and isinstance(value, (int, float)):
                self.out.scalar(name, single(float(value)), int(row["step"]))
        if flush:
            self.out.flush()

    def _guard(self, write: Callable[[], None]) -> None:
        """Training goes on without it: the record has every row."""
        try:
            write()
        except OSError as error:
            self.close()
            self.lost(f"TensorBoard's file is not written any more ({error}); the record is whole,"
                      " and `relab convert RUN --to tensorboard` makes the file again")  # fmt: skip

    def close(self) -> None:
        out, self.out = self.out, None
        if out is not None:
            with contextlib.suppress(OSError):  # what was left in memory finds no room
                out.close()
