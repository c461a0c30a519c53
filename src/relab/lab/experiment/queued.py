"""Which runs of an experiment does a queue still have to make? An entry for each that is missing and not there yet."""

from __future__ import annotations

from pathlib import Path

from relab.lab.execute import submit
from relab.lab.execute.queue import Queue
from relab.lab.experiment.cells import Cell, settled


def enqueue(queue: Queue, folder: Path, root: Path, cells: list[Cell]) -> tuple[list[str], int]:
    """The ids of new entries, each of which continues the question as it was kept; and how many were there before."""
    there, added = queue.keys(), []
    words = ["experiment", str(folder / "experiment.yaml"), "--name", folder.name, "--root", str(root), "--yes"]
    for cell in cells:
        key = str(cell.folder.resolve())
        if not settled(cell) and key not in there:
            added.append(queue.add(submit.relab([*words, f"--only={cell.folder.name}"], key=key)).id)
    return added, sum(str(cell.folder.resolve()) in there for cell in cells)
