"""Which change makes it better, and is that more than luck? A loop that proposes, checks, runs, judges and goes on.

Nothing is kept that its noise could have made: the error is shared by all that is ever proposed, hidden seeds decide,
and the evaluator is locked. Everything is a function of the loop's folder: killed anywhere, it goes on.
"""

from relab.base.interrupts import Interrupted
from relab.lab.loop.drive import Looping, facts, glance, look, prepare, run_one
from relab.lab.loop.journal import claimed, running
from relab.lab.loop.lock import TamperedError
from relab.lab.loop.plan import Loop, kept, load
from relab.lab.loop.policy import RefusedError

__all__ = [
    "Interrupted",
    "Loop",
    "Looping",
    "RefusedError",
    "TamperedError",
    "claimed",
    "facts",
    "glance",
    "kept",
    "load",
    "look",
    "prepare",
    "run_one",
    "running",
]
