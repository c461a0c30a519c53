"""Which settings does a log tell by the way? A step size, clip range or entropy weight that never moves is a setting.

Asked where the run's settings do not say it. What moves is none: of an annealed rate the log has values, not the plan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relab.config.views import flatten
from relab.formats.read.source import FOREIGN, Source
from relab.record.history import History
from relab.record.state import group_key

ORIGIN = "read from the log"
LEAST = 2  # rows: one value alone cannot tell whether it moves
ROUNDING = 1e-6  # of the value: some logs keep single precision
DIGITS = 6


class Logged(NamedTuple):
    """A setting that logs hold."""

    key: str
    columns: tuple[str, ...]  # relab's metric first; else the last part of the tool's name
    words: tuple[str, ...]  # in a key of the settings: it may say the same, and the log is not asked


SETTINGS = (
    Logged("algo.lr", ("optim/lr", "learning_rate", "lr"), ("lr", "learning", "step_size", "optim")),
    Logged("algo.ent_coef", ("optim/ent_coef", "ent_coef", "entropy_coef"), ("ent_", "entropy")),
    Logged("algo.temperature", ("optim/temperature",), ("temperature", "alpha", "ent_", "entropy")),
    Logged("algo.clip", ("clip_range", "clip_coef", "clip_param"), ("clip",)),
)


def add(history: History, source: Source) -> None:
    """Fill what the run's settings lack; each value says where it is from. The run's group is by what else is known."""
    group = history.config.get("algo", {})
    if history.trained_by_relab or not isinstance(group, dict):
        return
    known = [key.lower() for key, value in flatten(history.config).items() if value is not None]
    for setting in SETTINGS:
        if any(word in key for key in known for word in setting.words):
            continue
        theirs, value = _constant(history, setting)
        if value is None:
            continue
        history.meta["config_hash"] = group_key(history, source.name)  # a short run's rate may only seem constant
        group[setting.key.removeprefix("algo.")] = value
        history.config = {**history.config, "algo": group}
        history.provenance[setting.key] = ORIGIN
        history.keys.setdefault(theirs, setting.key)


def _constant(history: History, setting: Logged) -> tuple[str, float | None]:
    """What the tool calls it, and the one value that its column has."""
    for theirs, ours in history.mapping.items():
        last = theirs.rpartition("/")[2].lower()
        if ours == setting.columns[0] or (ours.startswith(FOREIGN) and last in setting.columns):
            values = history.columns[ours].values if ours in history.columns else np.zeros(0)
            values = values[~np.isnan(values)]
            if len(values) >= LEAST and np.ptp(values) <= ROUNDING * abs(values[0]):
                return last, float(f"{values[0]:.{DIGITS}g}")
    return "", None


def of(history: History) -> dict[str, float]:
    """The settings of a run that its log told."""
    flat = flatten(history.config)
    return {key: flat[key] for key, origin in history.provenance.items() if origin == ORIGIN and key in flat}
