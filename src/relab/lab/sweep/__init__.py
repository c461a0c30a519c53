"""Which of many configs is best, what does each axis do, and how sure is that? Trials over seeds, one number per run.

Everything here is a function of the sweep's folder: killed or called again, it goes on with what is missing, and no
finished run is repeated. A trial is what an experiment calls a variant, and runs by the same machinery.
"""

from relab.base.interrupts import Interrupted
from relab.lab.experiment.cells import status
from relab.lab.sweep.analyse import analyse
from relab.lab.sweep.cost import Cost, estimate, missing
from relab.lab.sweep.plan import Sweep, load
from relab.lab.sweep.preview import Preview, preview
from relab.lab.sweep.result import Analysis
from relab.lab.sweep.run import prepare, run, run_one
from relab.lab.sweep.trials import Sweeping

__all__ = [
    "Analysis", "Cost", "Interrupted", "Preview", "Sweep", "Sweeping", "analyse", "estimate", "load", "missing",
    "prepare", "preview", "run", "run_one", "status",
]  # fmt: skip
