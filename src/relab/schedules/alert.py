"""Should somebody be told? An alert: a condition that must hold several checks in a row before it fires."""

from __future__ import annotations

from dataclasses import dataclass

from relab.schedules.gate import Condition, ScheduleError, Values


@dataclass(frozen=True)
class Alert:
    """Fires when its condition holds `patience` checks in a row, one check every `cadence` iterations."""

    name: str
    when: Condition
    patience: int = 1
    cadence: int = 1

    def __post_init__(self) -> None:
        if self.patience < 1 or self.cadence < 1:
            raise ScheduleError(
                f"alert {self.name} needs patience >= 1 and cadence >= 1, but got {self.patience} and {self.cadence}"
            )

    @property
    def wait(self) -> int:
        """Iterations from the first check that holds to the one that fires."""
        return (self.patience - 1) * self.cadence

    def decide(self, values: Values) -> AlertDecision:
        """Whether it fires now, on values of which the newest is last. Pure."""
        column, streak = list(values.get(self.when.metric, ())), 0
        while streak < len(column) and self.when.look({self.when.metric: column[: len(column) - streak]}).met:
            streak += 1
        return AlertDecision(streak >= self.patience, streak, column[-1] if column else None, self.when.threshold)


@dataclass(frozen=True)
class AlertDecision:
    """Whether it fired, how many checks in a row hold, the newest value and its bar."""

    fires: bool
    streak: int
    value: float | None
    threshold: float
