"""What did a probe say over the run? Its rounds as a curve, as the rules see metrics."""

from __future__ import annotations

import math

import numpy as np

from relab.base.documents import Document
from relab.health.curve import Curve
from relab.health.rule import Missing
from relab.health.view import View


def probed(view: View, probe: str, field: str, rows: int = 1) -> Curve:
    """A number of a probe's rounds over the run."""
    rounds = [row for row in view.history.probes if row.get("probe") == probe and _holds(row, field)]
    pairs = [(row["step"], row[field]) for row in rounds]
    if len(pairs) < rows:
        raise Missing(f"{rows} rounds of the probe {probe} with `{field}` (there are {len(pairs)})")
    steps, values = zip(*pairs) if pairs else ((), ())
    return Curve(f"{probe}.{field}", np.array(steps, np.int64), np.array(values, np.float64))


def _holds(row: Document, field: str) -> bool:
    value = row.get(field)
    return type(row.get("step")) is int and isinstance(value, (int, float)) and math.isfinite(value)
