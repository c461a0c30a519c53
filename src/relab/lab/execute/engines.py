"""Which engine runs it? Processes of this machine, a Ray cluster or Slurm; and which of them answer here."""

from __future__ import annotations

from pathlib import Path

from relab.lab.execute.cluster import Border, Cluster
from relab.lab.execute.where import Where


def of(where: Where, folder: Path, workers: int | None = None) -> Cluster | None:
    """The executor for the runs of a folder; None: processes of this machine, which need nothing.

    `workers`: at most so many runs at a time. EngineError where the engine is not installed or does not answer.
    """
    return None if where.here else Cluster(border(where), folder, where, workers)


def border(where: Where) -> Border:
    from relab.lab.execute.ray_border import RayBorder

    return RayBorder(where)
