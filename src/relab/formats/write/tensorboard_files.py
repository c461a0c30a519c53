"""A run as a folder with an event file that TensorBoard shows: scalars, and the settings as CleanRL's text table.

Event files hold 32 bits of a number: about seven digits.
"""

from __future__ import annotations

from pathlib import Path

from relab.base.documents import Settings
from relab.formats.read.find import Loaded
from relab.formats.read.tfevents import Writer
from relab.formats.write.naming import Clock, named, settings_of

TABLE = "hyperparameters"


def write(run: Loaded, folder: Path, style: str) -> None:
    history, clock = run.history, Clock(run.history)
    with Writer(folder, clock.begin, "relab.0") as out:
        settings = settings_of(history, style)
        if settings:
            out.text(TABLE, settings_table(settings), wall=clock.begin)
        points = []
        for number, (name, column, axis) in enumerate(named(history, style)):
            walls = clock.at(column.steps, axis).tolist()
            steps, values = column.steps.tolist(), column.values.tolist()
            points += [(s, number, i, name, v, w) for i, (s, v, w) in enumerate(zip(steps, values, walls, strict=True))]
        for step, _, _, name, value, wall in sorted(points, key=lambda p: p[:3]):
            out.scalar(name, single(value), step, wall)


def settings_table(settings: Settings) -> str:
    lines = [f"|{_cell(key)}|{_cell(value)}|" for key, value in settings.items()]
    return "\n".join(["|param|value|", "|-|-|", *lines])


def _cell(value: object) -> str:
    return str(value).replace("|", "/").replace("\n", " ")


def single(value: float) -> float:
    """A number that does not fit into 32 bits is written as the infinity that it would become."""
    return value if value != value or abs(value) <= 3.4028235e38 else float("inf") if value > 0 else float("-inf")
