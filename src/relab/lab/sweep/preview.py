"""What would a sweep start? Its cells and those that are missing, without starting or writing anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relab.lab.sweep import cost, names, plan, trials


@dataclass(frozen=True)
class Preview:
    """Cells that are known beforehand, the names of those that are missing, and all runs that are left to do."""

    cells: int
    missing: list[str]
    runs: int


def preview(sweep: plan.Sweep, folder: Path) -> Preview:
    """The runs that would be started; optuna's are not known yet."""
    plan.check_again(sweep, folder)
    sweeping = trials.Sweeping(sweep, folder, trials.open_ledger(folder) if plan.begun(folder) else trials.Ledger())
    points = [] if sweep.method == "optuna" else sweep.points()
    sweeping.ledger.points |= {names.trial(point, sweep.short): point for point in points}
    cells = sweeping.cells(sweeping.alive, sweep.seeds)
    return Preview(len(cells), [cell.folder.name for cell in sweeping.missing(cells)], cost.missing(sweeping)[0])
