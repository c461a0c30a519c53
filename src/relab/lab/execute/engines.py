"""Which engine runs it? Processes of this machine, a Ray cluster or Slurm; and which of them answer here."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path

from relab.lab.execute.cluster import Border, Cluster
from relab.lab.execute.engine_error import EngineError
from relab.lab.execute.where import Where


def of(where: Where, folder: Path, workers: int | None = None) -> Cluster | None:
    """The executor for the runs of a folder; None: processes of this machine, which need nothing.

    `workers`: at most so many runs at a time. EngineError where the engine is not installed or does not answer.
    """
    return None if where.here else Cluster(border(where), folder, where, workers)


def border(where: Where) -> Border:
    if where.engine == "slurm":
        from relab.lab.execute.slurm_border import SlurmBorder

        return SlurmBorder(where)
    from relab.lab.execute.ray_border import RayBorder

    return RayBorder(where)


@dataclass(frozen=True)
class Offer:
    """How an engine stands on this machine."""

    engine: str
    there: bool  # installed
    state: str
    remedy: str = ""


def offers() -> list[Offer]:
    """Ray and Slurm: not installed, does not answer, or what it has."""
    known = {"ray": importlib.util.find_spec("ray") is not None, "slurm": shutil.which("sbatch") is not None}
    remedies = {"ray": "pip install 'relab[ray]' for --on ray", "slurm": "--on slurm works where sbatch is on the path"}
    return [_offer(name, remedies[name]) if there else Offer(name, False, "not installed", remedies[name])
            for name, there in known.items()]  # fmt: skip


def _offer(name: str, remedy: str) -> Offer:
    from relab.lab.execute import ray_border, slurm_border

    try:
        return Offer(name, True, {"ray": ray_border.offered, "slurm": slurm_border.offered}[name]())
    except EngineError as error:
        return Offer(name, True, f"does not answer: {error}", remedy)
