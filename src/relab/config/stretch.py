"""What becomes of a schedule that is a share of the run, where the run has another length? It stretches with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from relab.base.documents import Settings
from relab.base.numbers import is_number
from relab.config.presets import preset_of
from relab.config.views import flatten

OURS = ("preset", "defaults")  # layers that chose the shares for the shipped length


class Fall(NamedTuple):
    """A step size that falls along the run."""

    final: float  # share of it that is left
    until: float  # share of the run after which it falls no further
    straight: bool = True
    settable: bool = True  # whether the share of the run is a setting

    def keeping(self, old: int, new: int) -> str:
        """Settings with which a run of `new` steps has the step sizes of the first `new` of `old` ones; empty where
        none can say it."""
        end = self.until * old
        if not self.settable:
            return ""
        if new >= end:
            return f"algo.lr_until={end / new:.4g}"
        return f"algo.lr_until=1 algo.lr_final={1 - (1 - self.final) * new / end:.4g}" if self.straight else ""


def fall_of(settings: Mapping[str, Any]) -> Fall | None:
    """Of a run's flat settings; None where its step size does not fall along the run."""
    final, until = settings.get("algo.lr_final"), settings.get("algo.lr_until", 1.0)
    falls = settings.get("algo.lr_schedule", "linear") == "linear"
    if not falls or not is_number(final) or not is_number(until) or final == 1 or not until:
        return None
    straight = settings.get("algo.lr_shape", "line") == "line"
    return Fall(float(final), float(until), straight, "algo.lr_until" in settings)


def sentence(settings: Mapping[str, Any], old: int, new: int, whose: str) -> str:
    """What another length does to the step size, and what keeps it; empty where nothing changes."""
    fall = fall_of(settings)
    if fall is None or old == new:
        return ""
    keep = fall.keeping(old, new)
    share = f" (lr_until {fall.until:g} of {new:,})" if fall.settable else ""
    return (f"the step size falls to {fall.final:.0%} until step {fall.until * new:,.0f}{share}, where it does so until"
            f" {fall.until * old:,.0f} in {whose}{f'; {keep} would keep its step sizes' if keep else ''}"
            )  # fmt: skip


def against_shipped(settings: Settings, provenance: Mapping[str, str]) -> str:
    """The sentence for a run that has the shipped shares and another length."""
    preset = flatten(preset_of(str(settings.get("algo.name")), str(settings.get("env.name"))))
    old, new = preset.get("total_steps"), settings.get("total_steps")
    ours = all(provenance.get(f"algo.{name}") in OURS for name in ("lr_until", "lr_final"))
    if type(old) is not int or type(new) is not int or not ours or "algo.lr_until" not in settings:
        return ""
    return sentence(settings, old, new, f"the shipped {old:,} steps")
