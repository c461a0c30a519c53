"""How does a script with a SummaryWriter keep a record? What the writer gets, the record gets, one row a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relab.callbacks.watching import Watch


def watch(writer: Any, folder: str, args: Any = None, **facts: Any) -> Watched:
    """A SummaryWriter whose numbers go to a relab record as well: `writer = watch(writer, "runs/mine", args)`.

    `args` are the script's settings, as CleanRL parses them; `facts` are those of Watch (algo, seed, env, every).
    """
    config = dict(args if isinstance(args, Mapping) else vars(args) if args is not None else {})
    return Watched(writer, Watch(folder, config, **facts))


class Watched:
    """The writer as it was; each scalar also goes to the watch, one row a step."""

    def __init__(self, writer: Any, record: Watch):
        self.writer, self.relab = writer, record
        self._step: int | None = None
        self._row: dict[str, list[float]] = {}

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, *more: Any, **named: Any) -> None:
        self.writer.add_scalar(tag, scalar_value, global_step, *more, **named)
        if global_step is None:
            return
        if global_step != self._step:
            self._flush_row()
        with self.relab.unharmed("a number was not kept"):
            self._step, value = int(global_step), float(scalar_value)
            self._row.setdefault(tag, []).append(value)

    def close(self) -> None:
        self.__exit__(None)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, kind: Any, error: Any = None, *more: Any) -> None:
        try:
            self._flush_row()
            self.relab.__exit__(kind, error, *more)
        finally:  # also where the user's own `tell` raises
            self.writer.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.writer, name)

    def _flush_row(self) -> None:
        """Episodes that end in the same step are one number: their mean."""
        row, self._row = self._row, {}
        if row and self._step is not None:
            self.relab.row(self._step, {tag: sum(values) / len(values) for tag, values in row.items()})
