"""Did the run do what was predicted? The prediction kept in its record against what it and its parent came to.

A score belongs to a proposal: all finished runs that came from it (one number a seed) against all runs of its parent's
config. Runs that the prediction was made from are no test of it, and are not counted.

    hit          the measured difference lies inside of [low, high], and is known at least as sharply as that is wide
    miss         it lies outside, by more than its own noise
    cannot tell  anything else, with the reason

Nothing is written: the score follows from the records whenever somebody asks.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relab import stats
from relab.advise import tried
from relab.base.documents import Document
from relab.base.enclosed import neighbour
from relab.base.jsonl import RecordError
from relab.base.numbers import is_finite
from relab.comparison.outcomes import DIRECTIONS, outcome
from relab.config.lineage import NO_FACTOR
from relab.config.views import diff, flatten
from relab.record.history import History, load
from relab.record.state import group_key, seed_of, state_of

HIT, MISS, OPEN = "hit", "miss", "cannot tell"
INTERVAL, BOUNDS, POINT, NONE = "interval", "bounds", "point", "none"
ENDED = ("finished", "ended")
SCORED = ("final", "success_rate")  # what a prediction may be about
MOST = 500  # run folders of one folder that are read
LEVEL = 0.95
# Why a score is what it is; {what} is the run, state or settings that it is about. The log's languages have the same.
WHY = {
    "inside": "inside",
    "outside": "outside, by more than its noise",
    "no_parent": "its parent {what} is not here",
    "not_ended": "its run is {what}",
    "not_scored": "a prediction at {what} is not scored",
    "changed_more": "the run changed more than was proposed: {what}",
    "no_number": "there is no number to compare",
    "no_interval": "no interval was predicted",
    "one_seed": "one seed a side: the noise of seeds is not known",
    "within_noise": "outside, but within its noise of the interval",
    "less_sharp": "inside, but known less sharply than the prediction is wide",
}


@dataclass(frozen=True)
class Measured:
    """A difference of two configs, + is better; low and high are null where its noise is not known."""

    delta: float | None
    low: float | None
    high: float | None
    seeds: tuple[int, int]  # parent, child
    noise: str


@dataclass(frozen=True)
class Score:
    """One prediction and what became of it."""

    runs: list[str]
    parent: str
    diff: Document
    metric: str
    kind: str  # interval, bounds (no data: only what is possible), point (no interval), none
    predicted: dict[str, float | None]  # delta, low, high
    measured: Measured
    verdict: str
    reason: str  # key of WHY
    what: str = ""
    date: str = ""

    @property
    def why(self) -> str:
        return WHY[self.reason].format(what=self.what)

    @property
    def error(self) -> float | None:
        """Measured minus predicted."""
        ends = self.measured.delta, self.predicted["delta"]
        return None if None in ends else ends[0] - ends[1]  # type: ignore[operator]

    @property
    def inside(self) -> bool | None:
        """Whether the measured difference lies in the predicted interval, whatever its noise."""
        if self.kind not in (INTERVAL, BOUNDS) or self.measured.delta is None:
            return None
        return _inside(self.measured.delta, self.predicted)

    def to_dict(self) -> Document:
        body = asdict(self) | {"why": self.why, "error": self.error, "inside": self.inside}
        return body | {"measured": body["measured"] | {"seeds": list(self.measured.seeds)}}


# ---- Which runs


@dataclass
class Pool:
    """Runs that are known here, each folder once; others are read when they are asked for."""

    roots: Sequence[Path] = ()  # where parents are looked for besides: folders of runs, folders of experiments
    known: dict[Path, History] = field(default_factory=dict)
    read: set[Path] = field(default_factory=set)

    def beside(self, folder: Path) -> list[History]:
        """All runs in a folder."""
        home = folder.resolve()
        if home not in self.read:
            self.read.add(home)
            for meta in sorted(home.glob("*/meta.json"))[:MOST]:
                self._add(meta.parent)
        return [run for path, run in self.known.items() if path.parent == home]

    def _add(self, folder: Path) -> None:
        if folder in self.known or folder.is_symlink():
            return
        with contextlib.suppress(RecordError, OSError, ValueError):  # told by the commands that read the folder itself
            self.known[folder] = load(folder)

    def parent(self, run: History) -> History | None:
        """The run that it was made from: beside it, else below the other roots, by name and id."""
        name, id_ = run.meta.get("parent"), run.meta.get("parent_id")
        below = [place for root in self.roots for place in sorted(root.glob("*/runs"))]
        places = [run.folder.resolve().parent, *self.roots, *below]
        for folder in (neighbour(place, name) for place in places):
            if folder is not None:
                self._add(folder)
                one = self.known.get(folder)
                if one is not None and (id_ is None or one.meta.get("id") == id_):
                    return one
        return None


def predicted_of(run: History) -> Document | None:
    """What its record says was predicted; None for a run that came from no proposal."""
    kept = run.meta.get("proposal")
    if not isinstance(kept, dict) or not all(isinstance(kept.get(key), dict) for key in ("diff", "predicted")):
        return None
    whole = all(isinstance(change, dict) and {"from", "to"} <= set(change) for change in kept["diff"].values())
    return dict(kept["predicted"]) if whole else None


def of_run(run: History, roots: Sequence[Path] = ()) -> Score | None:
    """The score of the prediction that a run came from, with the other seeds of it beside."""
    if predicted_of(run) is None:
        return None
    pool = Pool(roots)
    pool.known[run.folder.resolve()] = run
    pool.beside(run.folder.resolve().parent)
    return score(siblings(run, pool.beside(run.folder.resolve().parent)), pool)


def siblings(run: History, runs: Iterable[History]) -> list[History]:
    """The runs of the same proposal, this one among them."""
    mine = proposal_key(run)
    return [one for one in runs if predicted_of(one) is not None and proposal_key(one) == mine]


def proposal_key(run: History) -> str:
    """Runs of one proposal share it; a parent without an id is another one in another folder."""
    kept = run.meta["proposal"]
    parent = run.meta.get("parent_id") or (str(run.folder.resolve().parent), run.meta.get("parent"))
    return repr((parent, sorted(kept["diff"].items(), key=repr),
                 sorted(kept["predicted"].items(), key=repr), group_key(run, run.folder.name)))  # fmt: skip


def collect(runs: Iterable[History], roots: Sequence[Path] = ()) -> list[Score]:
    """The scores of all proposals among these runs, oldest first."""
    pool, groups = Pool(roots), {}  # type: ignore[var-annotated]
    for run in runs:
        if run.source == "relab" and predicted_of(run) is not None:
            pool.known[run.folder.resolve()] = run
            groups.setdefault(proposal_key(run), []).append(run)
    return sorted((score(group, pool) for group in groups.values()), key=lambda s: (s.date, s.runs))


# ---- The score


def score(children: Sequence[History], pool: Pool) -> Score:
    """One proposal's runs against the runs of its parent's config."""
    first, parent = children[0], pool.parent(children[0])
    said = predicted_of(first) or {}
    ends = {key: _number(said.get(key)) for key in ("delta", "low", "high")}
    done = [run for run in children if state_of(run) in ENDED]
    base = _twins(parent, pool) if parent is not None else []
    effect = measured(base, done, said)
    problem = _problem(first, parent, done, said)
    verdict, reason = (OPEN, problem[0]) if problem else judged(kind_of(ends), ends, effect)
    return Score(
        [run.folder.name for run in children], str(first.meta.get("parent")), dict(first.meta["proposal"]["diff"]),
        str(said.get("metric") or ""), kind_of(ends), ends, effect, verdict, reason,
        problem[1] if problem else "", max(tried.day(run.meta) for run in children),
    )  # fmt: skip


def _number(x: Any) -> float | None:
    return float(x) if is_finite(x) else None


def kind_of(ends: Mapping[str, float | None]) -> str:
    if ends["delta"] is None:
        return NONE if ends["low"] is None and ends["high"] is None else BOUNDS
    return POINT if ends["low"] is None or ends["high"] is None else INTERVAL


def _twins(parent: History, pool: Pool) -> list[History]:
    """The parent and the runs beside it that differ from it in the seed alone."""
    key = group_key(parent, parent.folder.name)
    runs = [run for run in pool.beside(parent.folder.resolve().parent) if group_key(run, run.folder.name) == key]
    return [run for run in runs or [parent] if state_of(run) in ENDED]


def _problem(
    first: History, parent: History | None, done: Sequence[History], said: Mapping[str, Any]
) -> tuple[str, str] | None:
    """Why it cannot be measured at all, and what that is about; None where it can."""
    if parent is None:
        return "no_parent", str(first.meta.get("parent"))
    if not done:
        return "not_ended", state_of(first)
    if said.get("at", "final") not in SCORED:
        return "not_scored", str(said.get("at"))
    more = unproposed(parent, done[0])
    return ("changed_more", ", ".join(more[:3])) if more else None


def unproposed(parent: History, child: History) -> list[str]:
    """Settings that differ from the parent's and were not proposed; what is measured and the seed may differ."""
    proposed = {key: change["to"] for key, change in child.meta["proposal"]["diff"].items()}
    other = [c for c in diff(parent.config, child.config) if not NO_FACTOR.fullmatch(c.key) or c.key == "total_steps"]
    flat = flatten(child.config)
    kept = {key for key, to in proposed.items() if key in flat and not diff({"x": flat[key]}, {"x": to})}
    start = {"start_from", "start_parts"} if child.meta["proposal"].get("resume_from") else set()
    return [*(c.key for c in other if c.key not in {*proposed, *start}), *(key for key in proposed if key not in kept)]


def measured(parents: Sequence[History], children: Sequence[History], said: Mapping[str, Any]) -> Measured:
    """The difference of means, one number a seed, with the noise that seeds have."""
    a, b = (_values(runs, said) for runs in (parents, children))
    n, sign = (len(a), len(b)), DIRECTIONS.get(str(said.get("direction") or "higher"), 1)
    if not len(a) or not len(b):
        return Measured(None, None, None, n, WHY["no_number"])
    delta, half, noise = _noise(a, b)
    if half is None:
        return Measured(sign * delta, None, None, n, noise)
    below, above = half if sign > 0 else half[::-1]
    return Measured(sign * delta, sign * delta - below, sign * delta + above, n, noise)


def _values(runs: Sequence[History], said: Mapping[str, Any]) -> np.ndarray:
    """One number a seed: a seed that ran twice is no second sample, and the last run of it counts."""
    values: dict[str, float] = {}
    at = str(said.get("at") or "final")
    for run in runs if at in SCORED else []:
        seed = seed_of(run, run.folder.name)
        value = outcome(run, at, str(said.get("metric") or "")).value
        if math.isfinite(value):
            values[run.folder.name if seed is None else repr(seed)] = value
    return np.array(list(values.values()), np.float64)


def _noise(a: np.ndarray, b: np.ndarray) -> tuple[float, tuple[float, float] | None, str]:
    """delta, how far it may be off below and above, and from what; a lone run gets the other side's spread."""
    delta = float(b.mean() - a.mean())
    if min(len(a), len(b)) >= 2:
        interval = stats.size_of_difference(a, b)
        return delta, (delta - interval.low, interval.high - delta), f"{LEVEL:.0%} interval over seeds"
    many = a if len(a) > len(b) else b
    if len(many) < 2:
        return delta, None, WHY["one_seed"]
    spread = float(many.std(ddof=1)) * math.sqrt(1 + 1 / len(many))
    half = stats.t_quantile(0.5 + LEVEL / 2, len(many) - 1) * spread
    return delta, (half, half), f"{LEVEL:.0%}, with the spread of the {len(many)} seeds of the other side"


def judged(kind: str, said: Mapping[str, float | None], effect: Measured) -> tuple[str, str]:
    """(verdict, key of WHY)."""
    if effect.delta is None:
        return OPEN, "no_number"
    if kind in (NONE, POINT):
        return OPEN, "no_interval"
    if effect.low is None or effect.high is None:
        return OPEN, "one_seed"
    low, high = _ends(said)
    if effect.high < low or effect.low > high:
        return MISS, "outside"
    if not _inside(effect.delta, said):
        return OPEN, "within_noise"
    return (OPEN, "less_sharp") if effect.high - effect.low > high - low else (HIT, "inside")


def _ends(said: Mapping[str, float | None]) -> tuple[float, float]:
    low, high = said["low"], said["high"]
    return -math.inf if low is None else low, math.inf if high is None else high


def _inside(delta: float, said: Mapping[str, float | None]) -> bool:
    low, high = _ends(said)
    return low <= delta <= high
