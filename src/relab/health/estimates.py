"""How do levels with their errors stand to each other, and how are they shown as evidence?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relab.health.curve import telling
from relab.health.rule import Evidence, Missing
from relab.record.evaluations import Estimate


def enough(course: Sequence[Estimate], mode: str, at_least: int) -> list[Estimate]:
    if len(course) < at_least:
        raise Missing(f"{at_least} evaluations with their episodes ({mode}; there are {len(course)})")
    return list(course)


def clear(difference: float, a: Estimate, b: Estimate) -> float:
    """A difference of two means in standard errors; infinite where neither has noise."""
    error = math.hypot(*(0.0 if math.isnan(e.se) else e.se for e in (a, b)))
    return difference / error if error > 0 else (math.copysign(math.inf, difference) if difference else 0.0)


def shown(course: list[Estimate], metric: str) -> Evidence:
    """Evaluations as evidence, at most eight, the lowest and the highest among them: no peak is lost."""
    some = [course[i] for i in telling(np.array([e.mean for e in course]))]
    error = 0.0 if math.isnan(some[-1].se) else some[-1].se
    formula = f"mean of {some[-1].n} episodes each, standard error of the last {error:.3g}"
    return Evidence(metric, [e.step for e in some], [e.mean for e in some], formula)
