"""How far did a world model come that learned alone? By its loss, and by how well it foresees where that was measured.

Such a run (`mode=model`) is not judged by what its policy earns: the policy stays as it began.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relab.base.numbers import is_finite
from relab.base.text import number
from relab.config.views import flatten

if TYPE_CHECKING:  # a listing of thousands of runs reads no history
    from relab.record.history import History

LOSS, FORESEES = "model/loss", "open_loop_error"


@dataclass(frozen=True)
class ModelFit:
    """Of a whole run; NaN where it was not logged."""

    first: float  # loss in the first row that has one
    last: float
    foreseen: float = math.nan  # mean squared error ahead, as a share of what varies; 1: as a constant
    noise: float = math.nan

    @property
    def useful(self) -> bool:
        """Whether it foresees better than a constant, or, where nobody looked, whether its loss fell."""
        return self.foreseen < 1 if math.isfinite(self.foreseen) else self.last < self.first


def learns_model(run: History) -> bool:
    """Whether the world model alone learned in a run of relab's."""
    return run.trained_by_relab and flatten(run.config).get("algo.mode") == "model"


def model_of(run: History) -> ModelFit | None:
    """None where nothing was learned yet."""
    column = run.columns.get(LOSS)
    losses = [] if column is None else [float(x) for x in column.values if math.isfinite(x)]
    if not losses:
        return None
    rows = [row for row in run.probes if row.get("metric") == FORESEES and is_finite(row.get("value"))]
    foreseen, noise = (rows[-1].get(name) if rows else None for name in ("value", "noise"))
    return ModelFit(losses[0], losses[-1], *(float(x) if is_finite(x) else math.nan for x in (foreseen, noise)))


def model_sentence(fit: ModelFit | None) -> str:
    """
    >>> model_sentence(ModelFit(40.0, 8.0, 0.25, 0.03))
    'World model alone, its loss went from 40 to 8; it foresees with 0.25 ± 0.03 of the error of a constant'
    """
    if fit is None:
        return "World model alone, without an update yet"
    if math.isfinite(fit.foreseen):
        noise = f" ± {number(float(f'{fit.noise:.2g}'))}" if math.isfinite(fit.noise) else ""
        ahead = f"it foresees with {number(fit.foreseen)}{noise} of the error of a constant"
    else:
        ahead = "how far it foresees was not measured (`relab probe RUN open_loop`)"
    return f"World model alone, its loss went from {number(fit.first)} to {number(fit.last)}; {ahead}"
