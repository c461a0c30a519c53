"""How well does a critic fit that was fitted to a policy which stays as it is? By worlds that were held out.

Such a run (`relab train critic`) is not judged by what its policy earns: that never changes. What counts is the share of
the returns' variance that the critic explains in held-out worlds; a constant explains 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relab.base.text import number
from relab.config.views import flatten

if TYPE_CHECKING:  # a listing of thousands of runs reads no history
    from relab.record.history import History

FIT = "value/explained_variance"
CRITIC = "critic"  # the algorithm


@dataclass(frozen=True)
class Fit:
    """At the end of a run; NaN and 0 where it was not logged."""

    explained: float
    error: float = math.nan  # mean squared
    rows: int = 0  # held out
    episodes: int = 0  # held out

    @property
    def useful(self) -> bool:
        """Whether it is better than a constant."""
        return self.explained > 0


def fits_values(run: History) -> bool:
    """Whether the critic alone learned in a run of relab's."""
    return run.trained_by_relab and flatten(run.config).get("algo.name") == CRITIC


def fit_of(run: History) -> Fit | None:
    """None where nothing was logged yet."""
    explained = _last(run, FIT)
    if math.isnan(explained):
        return None
    rows, episodes = (_last(run, f"data/held_out_{what}") for what in ("rows", "episodes"))
    counted = [0 if math.isnan(n) else int(n) for n in (rows, episodes)]
    return Fit(explained, _last(run, "value/val_loss"), counted[0], counted[1])


def _last(run: History, metric: str) -> float:
    column = run.columns.get(metric)
    return float(column.values[-1]) if column is not None and len(column.values) else math.nan


def fit_words(fit: Fit) -> str:
    """
    >>> fit_words(Fit(0.62, 0.0041, 812, 31))
    'explains 62 % of the variance of returns in held-out worlds (mean squared error 0.0041, 31 episodes, 812 rows)'
    """
    seen = [f"{n} {what}" for n, what in ((fit.episodes, "episodes"), (fit.rows, "rows")) if n]
    error = [f"mean squared error {number(fit.error)}"] if math.isfinite(fit.error) else []
    beside = f" ({', '.join(error + seen)})" if error or seen else ""
    return f"explains {100 * fit.explained:.0f} % of the variance of returns in held-out worlds{beside}"


def fit_sentence(fit: Fit | None) -> str:
    if fit is None:
        return "A critic without a result yet: nothing was held out"
    if fit.useful:
        return f"The critic {fit_words(fit)}"
    return f"The critic is no better than a constant, which explains 0 %: it {fit_words(fit)}"
