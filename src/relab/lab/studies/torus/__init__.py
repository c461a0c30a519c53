"""What does an off-policy actor-critic with probes do whose report said PASS? The study of the torus.

Known answers: closed forms of the ratios, the fixed point without bootstrap (the teacher), what a critic's step can
move. The original report's own config never leaves its initialisation; another one learns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from relab.base.documents import Document
from relab.lab.studies import Step
from relab.lab.studies.torus import grid, steps
from relab.lab.studies.torus.write_up import page

__all__ = ["SUMMARY", "page", "plan"]

SUMMARY = "off-policy actor-critic with probes on a torus: known ratios, fixed points, a critic that does not move"


def plan(full: bool) -> list[Step]:
    """Tier 1, and with `full` the grid of the original report over three seeds."""
    quick = [
        Step("original", "the original config, with probes at 40 iterations: identities, and what examine says",
             90, steps.original),
        Step("corpus", "the same identities on the original logs, where they are at hand", 5, steps.corpus),
        Step("sanity", "on-policy, fixed target policy, no bootstrap, all three: what must hold to the last bit", 20,
             steps.sanity),
        Step("coupled", "draws that share one generator make an effect of the offset; named streams do not", 40,
             steps.coupled),
        question("learns", "5 seeds: without bootstrap the critic finds the teacher, with a step that is large enough",
                 180, steps.learns),
        question("sharp", "5 seeds: at gamma 0.99, target policy fixed, the critic goes to w_sharp", 150, steps.sharp),
        question("offset", "5 seeds x 4 offsets: the original report's axis moves nothing", 260, steps.offset),
    ]  # fmt: skip
    return quick + ([grid.step()] if full else [])


def question(name: str, what: str, seconds: float, ask: Callable[..., Document]) -> Step:
    """A declared comparison: it can be asked once more, on seeds that had no part in its answer."""
    return Step(name, what, seconds, ask, partial(ask, fresh=True))
