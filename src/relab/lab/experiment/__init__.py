"""Is B better than A, and can we tell? A declared question, variants over seeds, runs, and an answer.

Everything here is a function of the experiment's folder: killed or called again, it goes on with what is missing, and
no finished run is repeated. The first variant is the control; every other one is compared with it.
"""

from relab.base.interrupts import Interrupted
from relab.lab.experiment.again import LOG, Repeat, tried_before
from relab.lab.experiment.cells import (
    Cell,
    check_cells,
    finished,
    histories,
    prepare,
    rounds,
    run,
    settled,
    status,
    why_failed,
)  # fmt: skip
from relab.lab.experiment.conclude import conclude, decided
from relab.lab.experiment.forecast import STARTUP_S, Forecast, forecast
from relab.lab.experiment.question import Experiment, load
from relab.lab.experiment.queued import enqueue
from relab.lab.experiment.replicate import Replication, folder_of, fresh
from relab.lab.experiment.replicate import compare as replicate

__all__ = [
    "LOG", "STARTUP_S", "Cell", "Experiment", "Forecast", "Interrupted", "Repeat", "Replication", "check_cells",
    "conclude", "decided", "enqueue", "finished", "folder_of", "forecast", "fresh", "histories", "load", "prepare",
    "replicate", "rounds", "run", "settled", "status", "tried_before", "why_failed",
]  # fmt: skip
