"""What does a rule see of a run? Columns with robust summaries, settings, what the environment is like, evaluations."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from relab.configs.views import flatten
from relab.health.rule import Evidence, Missing
from relab.history import History

RETURNS = ("eval/return_det", "eval/return_sampled", "return/mean", "return/mean_100")  # the first there is counts


class Slope(NamedTuple):
    """Change per step and its standard error."""

    value: float
    error: float

    @property
    def significance(self) -> float:
        if self.error > 0:
            return self.value / self.error
        return math.copysign(math.inf, self.value) if self.value else 0.0


@dataclass(frozen=True)
class Curve:
    """One metric over the run, finite values only."""

    name: str
    steps: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def last(self) -> float:
        return float(self.values[-1])

    def tail(self, share: float) -> Curve:
        """The last part of the rows, at least one."""
        start = min(len(self) - 1, int(len(self) * (1 - share)))
        return Curve(self.name, self.steps[start:], self.values[start:])

    def head(self, share: float) -> Curve:
        end = max(1, int(len(self) * share))
        return Curve(self.name, self.steps[:end], self.values[:end])

    def median(self, share: float = 1.0) -> float:
        """Of the last `share` of the rows."""
        return float(np.median(self.tail(share).values))

    def share_above(self, level: float) -> float:
        return float(np.mean(self.values > level))

    def first_above(self, level: float) -> int | None:
        return self.first(self.values > level)

    def first_below(self, level: float) -> int | None:
        return self.first(self.values < level)

    def first(self, mask: np.ndarray) -> int | None:
        found = np.flatnonzero(mask)
        return int(self.steps[found[0]]) if len(found) else None

    def onset(self, mask: np.ndarray) -> int | None:
        """The step from which the mask holds to the end; else where it first holds."""
        off = np.flatnonzero(~mask)
        start = 0 if not len(off) else int(off[-1]) + 1
        return int(self.steps[start]) if start < len(mask) else self.first(mask)

    def slope(self) -> Slope:
        """Least squares, its error widened for lag-1 autocorrelation: n_eff = n (1 - rho) / (1 + rho)."""
        n = len(self)
        if n < 4:
            return Slope(0.0, math.inf)
        x = (self.steps - self.steps.mean()).astype(np.float64)
        value = float((x * self.values).sum() / max((x * x).sum(), 1e-300))
        rest = self.values - self.values.mean() - value * x
        rho = min(max(lag_one(rest), 0.0), 0.95)
        plain = math.sqrt(float((rest**2).sum()) / (n - 2) / max(float((x * x).sum()), 1e-300))
        return Slope(value, plain * math.sqrt((1 + rho) / (1 - rho)))

    def evidence(self, formula: str = "", points: int = 8) -> Evidence:
        """At most eight points, first and last among them."""
        at = np.unique(np.linspace(0, len(self) - 1, min(points, len(self))).round().astype(int))
        return Evidence(self.name, [int(s) for s in self.steps[at]], [float(v) for v in self.values[at]], formula)


def lag_one(x: np.ndarray) -> float:
    total = float((x * x).sum())
    return float((x[1:] * x[:-1]).sum()) / total if total > 0 else 0.0


class Evaluation(NamedTuple):
    """One evaluation: returns of its episodes."""

    step: int
    mean: float
    error: float  # standard error of the mean
    n: int


@dataclass
class View:
    """One run as the rules see it; whatever is not there raises Missing."""

    history: History
    name: str
    reference: View | None = None
    is_parent: bool = False  # the reference is the parent, not a run the user named
    state: str = ""  # finished, running, stale, interrupted, failed, unknown

    @property
    def meta(self) -> dict[str, Any]:
        return self.history.meta

    @cached_property
    def config(self) -> dict[str, Any]:
        """Dotted key -> value."""
        return flatten(self.history.config)

    @cached_property
    def spec(self) -> dict[str, Any]:
        found = self.meta.get("spec")
        return found if isinstance(found, dict) else {}

    @property
    def action(self) -> dict[str, Any]:
        found = self.spec.get("action")
        return found if isinstance(found, dict) else {}

    @property
    def kind(self) -> str | None:
        kind = self.action.get("kind")
        return "discrete" if kind == "multi_discrete" else kind

    @property
    def has_choice(self) -> bool:
        """Whether the policy can decide anything at all: some tiny environments have one action."""
        return self.kind != "discrete" or max(self.action.get("n") or [2]) > 1

    def setting(self, key: str) -> Any:
        if key not in self.config:
            raise Missing(f"the setting {key}")
        return self.config[key]

    def number(self, key: str) -> float:
        """A setting that must be a number."""
        value = self.setting(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Missing(f"a number for {key}")
        return float(value)

    def fact(self, key: str) -> float:
        """A number from meta.spec."""
        value = self.spec.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Missing(f"meta.spec.{key}")
        return float(value)

    def has(self, metric: str) -> bool:
        return metric in self.history.columns

    def curve(self, metric: str, rows: int = 1) -> Curve:
        """A metric's finite values; Missing with fewer than `rows` of them."""
        if metric not in self.history.columns:
            raise Missing(metric)
        steps, values = self.history.columns[metric]
        good = np.isfinite(values)
        if good.sum() < rows:
            raise Missing(f"{rows} finite values of {metric} (there are {int(good.sum())})")
        return Curve(metric, steps[good], values[good])

    @property
    def last_step(self) -> int:
        return max((int(c.steps.max()) for c in self.history.columns.values() if len(c.steps)), default=0)

    # ---- Evaluations

    @cached_property
    def _evals(self) -> dict[str, list[Evaluation]]:
        found: dict[str, list[Evaluation]] = {"det": [], "sampled": []}
        for row in self.history.evals:
            returns = _returns(row)
            if len(returns) and str(row.get("mode")) in found and type(row.get("step")) is int:
                sd = float(returns.std(ddof=1)) if len(returns) > 1 else math.nan
                item = Evaluation(row["step"], float(returns.mean()), sd / math.sqrt(len(returns)), len(returns))
                found[row["mode"]].append(item)
        return found

    @property
    def by(self) -> str:
        mode = self.config.get("eval.by", "det")
        return mode if mode in ("det", "sampled") else "det"

    def evals(self, mode: str = "", at_least: int = 1) -> list[Evaluation]:
        """The evaluations of a mode (by default the one that decides), in order."""
        found = self._evals.get(mode or self.by, [])
        if len(found) < at_least:
            raise Missing(f"{at_least} evaluations with their episodes ({mode or self.by}; there are {len(found)})")
        return found

    def has_evals(self, mode: str) -> bool:
        return bool(self._evals.get(mode))

    def standing(self) -> Evaluation | None:
        """How good the run is at its end: its last evaluation, else its last training returns."""
        if self.has_evals(self.by):
            return self.evals()[-1]
        name = next((n for n in RETURNS if self.has(n)), None)
        try:
            end = self.curve(name or "", 4).tail(0.1)
        except Missing:
            return None
        spread = float(np.diff(self.curve(end.name).tail(0.25).values).std()) / math.sqrt(2)
        return Evaluation(int(end.steps[-1]), float(end.values.mean()), spread / math.sqrt(len(end)), len(end))

    def random(self) -> tuple[float, float]:
        """What a random policy earns: mean and its standard error."""
        found = self.spec.get("random")
        try:
            mean, sd, n = (float(found[key]) for key in ("return_mean", "return_std", "n"))  # type: ignore[index]
        except (TypeError, KeyError, ValueError):
            raise Missing("meta.spec.random") from None
        return mean, sd / math.sqrt(max(n, 1))

    def ceiling(self) -> float:
        """The highest return there can be: the best reward at each step up to the horizon."""
        best, horizon = self.fact("reward_high"), self.fact("horizon")
        if best < 0:
            raise Missing("a known highest return")
        return best * horizon

    @property
    def knows_ceiling(self) -> bool:
        try:
            return self.ceiling() > self.random()[0]
        except Missing:
            return False

    def at_ceiling(self, mean: float) -> bool:
        """Within 5 % of the way from random to the highest return; False where that is not known."""
        try:
            low, high = self.random()[0], self.ceiling()
        except Missing:
            return False
        return high > low and mean >= low + 0.95 * (high - low)

    def above_random(self) -> bool:
        """Whether the last evaluation stands clear of the random policy."""
        last, (level, error) = self.evals()[-1], self.random()
        return last.mean - level > 3 * math.hypot(error, 0.0 if math.isnan(last.error) else last.error)

    # ---- Where the run stands among its files

    @cached_property
    def best(self) -> dict[str, Any]:
        """What the record gives as evidence for its best checkpoint."""
        from relab.jsonl import RecordError, read_json

        try:
            return read_json(self.history.folder, "checkpoints/best.json")
        except (RecordError, OSError):
            return {}

    @cached_property
    def kinds(self) -> set[str]:
        """Kinds of event that happened."""
        return {str(event.get("kind")) for event in self.history.events}


def clear(difference: float, a: Evaluation, b: Evaluation) -> float:
    """A difference of two means in standard errors; infinite where neither has noise."""
    error = math.hypot(*(0.0 if math.isnan(e.error) else e.error for e in (a, b)))
    return difference / error if error > 0 else (math.copysign(math.inf, difference) if difference else 0.0)


def shown(found: list[Evaluation], by: str) -> Evidence:
    """Evaluations as evidence, at most eight."""
    some = found if len(found) <= 8 else [found[round(i)] for i in np.linspace(0, len(found) - 1, 8)]
    error = 0.0 if math.isnan(some[-1].error) else some[-1].error
    formula = f"mean of {some[-1].n} episodes each, last ± {error:.3g}"
    return Evidence(f"eval/return_{by}", [e.step for e in some], [e.mean for e in some], formula)


def _returns(row: dict[str, Any]) -> np.ndarray:
    values = [e.get("return") for e in episodes(row) if e.get("end") != "unused"]
    numbers = all(isinstance(v, (int, float)) for v in values)
    return np.array(values if numbers else [], np.float64)


def episodes(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The episodes of an evaluation's row, whatever a stranger wrote there."""
    found = row.get("episodes")
    return [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []


@dataclass
class Group:
    """Views of runs that share everything but the seed."""

    name: str
    views: list[View] = field(default_factory=list)

    @property
    def title(self) -> str:
        """How the group is told apart: by its config's hash, else by what the runs' names share."""
        return self.name if self.name.startswith("named ") else f"config {self.name}"
