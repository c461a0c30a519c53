"""What will a call of a loop cost? Runs times the time of one: measured where some are finished, else from a pilot."""

from __future__ import annotations

import math

from relab.lab.experiment.forecast import forecast as pilot
from relab.lab.loop.drive import Looping
from relab.lab.loop.plan import BASE


def forecast(loop: Looping, proposals: int) -> tuple[float, float]:
    """(least, most) seconds: all proposals are dropped at their first look; all are kept."""
    s, workers = loop.plan.seeds, loop.arms.workers
    one = loop.seconds_per_run() or first_price(loop)
    loop.arms.time.guess = one
    noise = 0 if loop.state.noise else s.noise
    least, most = proposals * s.first, proposals * s.most
    return tuple(one * math.ceil((noise + n) / workers) for n in (least, most))  # type: ignore[return-value]


def first_price(loop: Looping) -> float:
    """Seconds of a run before there is one: a few iterations of relab's trainer; of a foreign program its first run."""
    cells = loop.arms.cells(BASE, range(loop.plan.seeds.noise))
    return pilot(loop.arms.experiment, cells, loop.arms.folder, loop.arms.workers).seconds_per_run
