"""What does a rule see of a run? Columns with robust summaries, settings, what the environment is like, evaluations."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from relab.base.numbers import HUGE
from relab.base.places import WHOLE
from relab.config import registry
from relab.config.views import flatten
from relab.health import guess
from relab.health.curve import Curve, finite_curve
from relab.health.estimates import enough, shown
from relab.health.features import Key, features
from relab.health.rule import Evidence, Missing
from relab.record.evaluations import MODES, Estimate, evaluations, judging_metric, outcome_of, share_error
from relab.record.history import History
from relab.runs.course import Course, course_of, is_return
from relab.runs.verdict import Verdict, began, verdict_of

ITERATIONS = ("outer_iters", "iterations", "total_iterations", "num_iterations", "max_iterations")
LOADED = re.compile(
    r"(?i)(^|[._])(load_model_path|load_path|trained_agent|init_from|checkpoint_path|pretrained|start_from)$"
)
ENTROPIES = 8  # rows from which the sign of an entropy can be told


@dataclass
class View:
    """One run as the rules see it; whatever is not there raises Missing."""

    history: History
    name: str
    reference: View | None = None
    is_parent: bool = False  # the reference is the parent, not a run the user named
    state: str = ""  # finished, running, stale, interrupted, failed, unknown
    suspect: bool | None = None  # rules warn about its learning: its settings are no model; None: not asked

    @cached_property
    def meta(self) -> dict[str, Any]:
        return {key: _fitting(value) for key, value in self.history.meta.items()}

    @cached_property
    def config(self) -> dict[str, Any]:
        """Dotted key -> value."""
        return {key: _fitting(value) for key, value in flatten(self.history.config).items()}

    @property
    def trust(self) -> str:
        """What a command that runs the code of this run needs besides: " --trust" for a plug-in's."""
        ours = self.history.trained_by_relab
        return registry.trust_word(self.config.get("env.name"), self.config.get("algo.name")) if ours else ""

    @property
    def algo(self) -> str | None:
        """The family of the algorithm: ppo, a2c, sac, td3, dqn, or its own name; None where nothing tells."""
        return self._algorithm.family

    @property
    def algo_is_guessed(self) -> bool:
        """Whether what is logged tells it: no name, or that of a script."""
        return self._algorithm.guessed

    @cached_property
    def _algorithm(self) -> guess.Algorithm:
        return guess.algorithm(self.config.get("algo.name"), self.history.columns)

    @cached_property
    def spec(self) -> dict[str, Any]:
        spec = self.meta.get("spec")
        return spec if isinstance(spec, dict) else {}

    @property
    def action(self) -> dict[str, Any]:
        action = self.spec.get("action")
        return action if isinstance(action, dict) else {}

    @property
    def choices(self) -> list[int]:
        """How many actions there are in each dimension; none where nothing sound tells."""
        n = self.action.get("n")
        return [x for x in (n if isinstance(n, list) else [n]) if type(x) is int and x > 0]

    @property
    def kind(self) -> str | None:
        """discrete or continuous; what no spec says, a range or a negative entropy tells."""
        said = self.action.get("kind")
        kind = said if isinstance(said, str) else None
        if kind is None and (self.action.get("low") or self._negative_entropy or self._named_continuous):
            return "continuous"
        if kind is None and self._named_discrete:
            return "discrete"
        if not isinstance(kind, str):  # of a damaged record
            return None
        return "discrete" if kind == "multi_discrete" else kind

    @cached_property
    def _negative_entropy(self) -> bool:
        column = self.history.columns.get("policy/entropy")
        below = column is not None and len(column.values) > 0 and bool(np.nanmin(column.values) < -1e-6)
        return below and not self.entropy_turned

    @cached_property
    def entropy_turned(self, near: float = 0.01, most: int = 6, rises: float = 0.05) -> int:
        """The number of actions whose entropy is logged with the wrong sign: it begins at -ln n, as a policy does that
        knows nothing yet, rises towards 0, and is never above it. 0 where it does not look so."""
        column = self.history.columns.get("policy/entropy")
        values = column.values[np.isfinite(column.values)] if column is not None else np.zeros(0)
        if len(values) < ENTROPIES or values.max() > 1e-6 or self._named_continuous or self.action.get("low"):
            return 0
        start, end = float(values[0]), float(np.median(values[-3:]))
        fits = [n for n in range(2, most + 1) if abs(start + math.log(n)) < near * math.log(n)]
        return fits[0] if fits and end > (1 - rises) * start else 0

    @property
    def _named_continuous(self) -> bool:
        """Single-file scripts are called after it: ppo_continuous_action."""
        return "continuous" in str(self.config.get("algo.name", "")).lower()

    @property
    def _named_discrete(self) -> bool:
        """Epsilon is of choices, Stable-Baselines3 logs the spread of every Gaussian, and an entropy that stays just
        above 0 is that of choices."""
        names = self.history.mapping
        gaussian = any(name.rpartition("/")[2] in ("std", "action_std") for name in self.history.columns)
        theirs = {"train/entropy_loss", "train/explained_variance", "rollout/ep_rew_mean"} <= {*names}
        spread_is_missing = theirs and "train/std" not in names and not gaussian
        epsilon = self.has("policy/exploration") and not guess.acts(self.history.columns)
        return spread_is_missing or epsilon or (self._vanished_entropy and not gaussian)

    @cached_property
    def _vanished_entropy(self, below: float = 0.05, rows: int = 3) -> bool:
        column = self.history.columns.get("policy/entropy")
        return column is not None and int(np.sum(np.abs(column.values) < below)) >= rows

    @property
    def has_choice(self) -> bool:
        """Whether the policy can decide anything at all: some tiny environments have one action."""
        return self.kind != "discrete" or max(self.choices, default=2) > 1

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
        curve = self._curves.get(metric)
        if curve is None:
            curve = self._curves[metric] = finite_curve(metric, self.history.columns[metric])
        if len(curve) < rows:
            raise Missing(f"{rows} finite values of {metric} (there are {len(curve)})")
        return curve

    @cached_property
    def _curves(self) -> dict[str, Curve]:
        """Those that a rule has asked for; many ask for the same."""
        return {}

    @cached_property
    def planned(self) -> float | None:
        """The last step that was planned, on the axis of the run; None where the config does not say."""
        counted = set(self.history.axes.values()) or {"agent_steps"}
        whole = counted == {"iteration"}  # counted from 0, so that the last one is one less
        keys = ITERATIONS if whole else ("total_steps",)
        values = [v for k, v in self.config.items() if k.removeprefix("foreign.") in keys]
        return next((float(v) - whole for v in values if isinstance(v, (int, float)) and v > whole), None)

    @property
    def unfinished(self) -> bool:
        """Whether the run has a way before it still: what is said about its end, or its last third, must wait."""
        length = self.length
        cut = length is not None and self.last_step < WHOLE * length
        return self.state == "running" or (self.state != "finished" and cut)

    def early(self, part: float = 0.5) -> bool:
        """Whether an unfinished run still has most of its way before it, as far as anybody knows."""
        return self.unfinished and self.length is not None and self.last_step < part * self.length

    @property
    def length(self) -> float | None:
        """How long the run was to be, at least: its planned steps, else to where its exploration was to fall."""
        if self.planned is not None or not self.has("policy/exploration"):
            return self.planned
        return self.curve("policy/exploration", rows=0).line_to_zero()

    @property
    def until(self) -> float | None:
        """The step at which an unfinished run is to end; infinite where nobody says, None of a run that has ended."""
        return (self.planned or math.inf) if self.unfinished else None

    @cached_property
    def rows(self) -> int:
        """How often the run logged its numbers: rows of its longest column."""
        return max((len(c.steps) for c in self.history.columns.values()), default=0)

    @cached_property
    def last_step(self) -> int:
        return max((int(c.steps.max()) for c in self.history.columns.values() if len(c.steps)), default=0)

    @cached_property
    def features(self) -> dict[Key, float]:
        """Its curves in a few numbers, as the table of healthy runs holds them."""
        return features(self.history, self.until)

    # ---- Evaluations

    @cached_property
    def _evals(self) -> dict[str, list[Estimate]]:
        """By mode, those with a number."""
        played = {mode: evaluations(self.history.evals, mode, self.outcome) for mode in MODES}
        return {mode: [e for e in course if not math.isnan(e.mean)] for mode, course in played.items()}

    @property
    def outcome(self) -> str:
        """What its environment is judged by: return or success."""
        return outcome_of(self.meta)

    @property
    def judged_by(self) -> str:
        """The metric of the evaluations that decide."""
        return self.judging(self.by)

    def judging(self, mode: str) -> str:
        return judging_metric(self.outcome, mode)

    @property
    def by(self) -> str:
        mode = self.config.get("eval.by", "det")
        return mode if mode in ("det", "sampled") else "det"

    def evals(self, mode: str = "", at_least: int = 1) -> list[Estimate]:
        """The evaluations of a mode (by default the one that decides), in order; of what the run is judged by."""
        return enough(self._evals.get(mode or self.by, []), mode or self.by, at_least)

    def returns(self, mode: str, at_least: int = 0) -> list[Estimate]:
        """The returns of its evaluations, whatever it is judged by."""
        played = [e for e in evaluations(self.history.evals, mode) if not math.isnan(e.mean)]
        return enough(played, mode, at_least)

    def has_evals(self, mode: str) -> bool:
        return bool(self._evals.get(mode))

    @cached_property
    def _course(self) -> Course:
        """What the run is judged by, in every command."""
        return course_of(self.history)

    @cached_property
    def verdict(self) -> Verdict:
        return verdict_of(self.history)

    def course(self, at_least: int = 5) -> list[Estimate]:
        """How the return went: the evaluations, else the training returns in ten blocks; Missing with fewer points."""
        good = [e for e in self._course.points if math.isfinite(e.mean)]
        if not is_return(self._course.metric) or len(good) < at_least:
            raise Missing(f"{at_least} evaluations, or returns in training")
        return good

    @cached_property
    def first_update(self) -> int:
        """The first step at which a method with a replay buffer shows an update; 0 where none does."""
        return guess.first_update(self.history.columns) if self.algo in guess.BUFFERED else 0

    def low_since(self, level: float) -> int:
        """The step from which the return lies below a level; before the first update of training nothing began."""
        good = self.course(at_least=1)
        trained = [i for i, e in enumerate(good) if e.step > self.first_update] or [*range(len(good))]
        start = next((i for i in trained if all(e.mean < level for e in good[i:])), trained[-1])
        return began(self.history, self._course, good, start, level)

    def evidence(self, course: list[Estimate]) -> Evidence:
        """The course in numbers."""
        if self.has_evals(self.by):
            return shown(course, self.judged_by)
        steps, values = [e.step for e in course], [e.mean for e in course]
        error = 0.0 if math.isnan(course[-1].se) else course[-1].se
        n, rows = course[-1].n, "row" if course[-1].n == 1 else "rows"
        means = f"mean of {n} episodes each" if self._course.evaluated else f"means of up to {n} {rows} each"
        what = means if n else "evaluations without their episodes"
        return Evidence(self.earned, steps, values, f"{what}, standard error of the last {error:.3g}")

    @property
    def earned(self) -> str:
        """The column that says what the run earned; "" without."""
        return self._course.metric if is_return(self._course.metric) else ""

    @property
    def diverged(self) -> str:
        """Why what the run is judged by is not finite, as every command has it; empty where it is."""
        return self._course.flaw if self.earned else ""

    def standing(self, until: float = math.inf) -> Estimate | None:
        """How good the run is at its end, the run's one outcome; none if it diverged, or is too short to tell.

        `until` asks for an earlier step: the last point up to it, none where it had no point yet.
        """
        end = self._course.outcome if self.earned else None
        if end is not None and end.step > until:
            end = next((p for p in reversed(self._course.points) if p.step <= until and math.isfinite(p.mean)), None)
        short = end is not None and math.isnan(end.se) and not self.has_evals(self.by)
        return None if short else end

    def random(self) -> tuple[float, float]:
        """What a random policy earns: mean and its standard error."""
        level = self.spec.get("random")
        try:
            if self.outcome == "success":
                return float(level["success"]), share_error(float(level["success"]), int(level["n"]))  # type: ignore[index]
            mean, sd, n = (float(level[key]) for key in ("return_mean", "return_std", "n"))  # type: ignore[index]
        except (TypeError, KeyError, ValueError):
            raise Missing("meta.spec.random") from None
        return mean, sd / math.sqrt(max(n, 1))

    def floor(self, course: list[Estimate]) -> float:
        """What counts as nothing learned: the random policy's return, else that of the run's start."""
        try:
            return self.random()[0]
        except Missing:
            return min(course[0].mean, course[-1].mean) if self.resumed else course[0].mean

    def ceiling(self) -> float:
        """The highest return there can be: the best reward at each step up to the horizon; of a share, 1."""
        if self.outcome == "success":
            return 1.0
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
        return self.share_of_ceiling(mean) >= 0.95

    def above_random(self) -> bool:
        """Whether the last evaluation stands clear of the random policy."""
        last, (level, error) = self.evals()[-1], self.random()
        return last.mean - level > 3 * math.hypot(error, 0.0 if math.isnan(last.se) else last.se)

    def well_above_random(self, last: Estimate) -> bool:
        """Whether a level is clear of the random policy; False where that is not known."""
        try:
            level, error = self.random()
        except Missing:
            return False
        return last.mean - level > 5 * math.hypot(error, 0.0 if math.isnan(last.se) else last.se)

    def share_of_ceiling(self, mean: float) -> float:
        """How much of the way from random to the highest return; NaN where that is not known."""
        try:
            low, high = self.random()[0], self.ceiling()
        except Missing:
            return math.nan
        return (mean - low) / (high - low) if high > low else math.nan

    # ---- Where the run stands among its files

    @cached_property
    def best(self) -> dict[str, Any]:
        """What the record gives as evidence for its best checkpoint."""
        from relab.base.jsonl import RecordError, read_json

        if self.history.source != "relab":
            evidence = self.meta.get("best")
            return evidence if isinstance(evidence, dict) else {}
        try:
            return read_json(self.history.folder, "checkpoints/best.json")
        except (RecordError, OSError):
            return {}

    @property
    def resumed(self) -> bool:
        """Whether it began with what another run, or an earlier part of it, had learned."""
        loaded = [v for k, v in self.config.items() if LOADED.search(k) and v not in (None, "", False)]
        return bool(self.meta.get("parent") or self.meta.get("resumed") or loaded)

    @cached_property
    def kinds(self) -> set[str]:
        """Kinds of event that happened."""
        return {str(event.get("kind")) for event in self.history.events}


def _fitting(value: Any) -> Any:
    """A value of a file as one that arithmetic can take: integers beyond every double are infinite."""
    if type(value) is int and abs(value) >= HUGE:
        return math.inf if value > 0 else -math.inf
    if isinstance(value, dict):
        return {key: _fitting(item) for key, item in value.items()}
    return [_fitting(item) for item in value] if isinstance(value, list) else value


def ends(a: View, b: View) -> tuple[Estimate | None, Estimate | None]:
    """Where two runs stand after as many steps as the shorter one has: a longer run had more time to learn."""
    until = min(a.last_step, b.last_step)
    return a.standing(until), b.standing(until)


def episodes(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The episodes of an evaluation's row, whatever a stranger wrote there."""
    rows = row.get("episodes")
    return [e for e in rows if isinstance(e, dict)] if isinstance(rows, list) else []


@dataclass
class ViewGroup:
    """Views of runs that share everything but the seed."""

    name: str  # the key that its runs share
    views: list[View] = field(default_factory=list)
    label: str = ""  # what people call it, the same in every command
