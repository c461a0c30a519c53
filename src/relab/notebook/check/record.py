"""What does a run's record say of a name and a number? Its columns, probes and settings under every name they go by.

A number matches as what it stands for in a column: the row of a step, the last one, the peak, the low, the first, a
mean, any other row. It matches when it differs by less than one unit of its last shown digit (rounded or cut off).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from relab.base.documents import Settings
from relab.formats.read.common import KNOWN
from relab.health.curve import Curve
from relab.health.view import View
from relab.logger import KEYS
from relab.notebook.check import words as w
from relab.notebook.check.when import ANY, SHARE, Step
from relab.notebook.check.wording import Number

TAILS = (5, 10, 20, 50, 100)  # rows over which people average the end of a curve
GENERIC = set("mean std min max loss length value values n stage total count index time step steps lr noise".split())
SAME_AXIS = {"agent_steps": "env_steps"}
COUNTERS = ("data/", "time/")
MAX_PROBE_ROWS, MAX_KNOWN = 100_000, 50_000
SPOKEN = {phrase.lower(): names for phrase, names in w.table(w.PHRASES).items()}
SPOKEN_KEYS = {phrase.lower(): names for phrase, names in w.table(w.SETTING_PHRASES).items()}
VARIANTS = ("_k1", "_mean", "_100", "_avg")  # of a metric, that are called by its name
MINUS = {"train/entropy_loss": "policy/entropy"}  # a tool's name for minus what relab's name means


def normal(name: str) -> str:
    """How names are compared.

    >>> normal("Explained Variance"), normal("foreign/train.ent-coef"), normal("策略熵")
    ('explained_variance', 'train_ent_coef', '策略熵')
    """
    return re.sub(r"[\W_]+", "_", name.lower().removeprefix("foreign/").removeprefix("foreign.")).strip("_")


def parts(name: str) -> list[str]:
    """Its words, digits apart: early_death100 -> early, death, 100."""
    return re.findall(r"[a-z]+|\d+", name.lower())


@dataclass(frozen=True)
class Names:
    """What a word in a write-up can mean in one run."""

    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    exact: bool = True  # False: a shortened name

    def __bool__(self) -> bool:
        return bool(self.columns or self.keys)


@dataclass
class RunRecord:
    """One run, ready to be asked."""

    view: View
    axes: dict[str, str] = field(default_factory=dict)
    known: dict[str, Names] = field(default_factory=dict)  # phrases that were looked up

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """Every column and every number of the probes, finite values only, in order of steps."""
        curves = {name: Curve(name, c.steps, c.values) for name, c in self.view.history.columns.items()}
        self.axes |= {name: self.view.history.axes.get(name, "") for name in curves}
        for name, rows in self._probes().items():
            curves.setdefault(name, Curve(name, np.array([s for s, _ in rows]), np.array([v for _, v in rows])))
        for own, ours in MINUS.items():
            if self.view.history.mapping.get(own) == ours and ours in curves:
                curves[own] = Curve(own, curves[ours].steps, -curves[ours].values)
                self.axes[own] = self.axes.get(ours, "")
        good = {name: np.isfinite(c.values) for name, c in curves.items()}
        return {n: Curve(n, c.steps[good[n]], c.values[good[n]]) for n, c in curves.items() if good[n].any()}

    def _probes(self) -> dict[str, list[tuple[int, float]]]:
        points: dict[str, list[tuple[int, float]]] = {}
        for row in self.view.history.probes[:MAX_PROBE_ROWS]:
            step, kind = row.get("step"), str(row.get("probe") or "probe")
            for key, value in row.items():
                if type(step) is int and key != "step" and type(value) in (int, float):
                    points.setdefault(f"{kind}/{key}", []).append((step, float(value)))
                    self.axes[f"{kind}/{key}"] = str(row.get("axis") or "")
        return points

    @cached_property
    def settings(self) -> Settings:
        return {k: v for k, v in self.view.config.items() if not isinstance(v, (dict, list))}

    @cached_property
    def own_words(self) -> set[str]:
        """Names of the algorithm and the environment: they narrow nothing."""
        names = [str(self.settings.get(key) or "") for key in ("algo.name", "env.name")] + [self.view.algo or ""]
        return {word for name in names for word in (name.lower(), *re.findall(r"[a-z0-9]+", name.lower())) if word}

    @cached_property
    def aliases(self) -> dict[str, list[str]]:
        """Normal name -> columns."""
        names = [(name, name) for name in self.curves]
        names += [
            (own, ours) for own, ours in self.view.history.mapping.items() if ours in self.curves and own not in MINUS
        ]
        names += [(word, ours) for word, ours in KNOWN.items() if ours in self.curves]
        names += [(phrase, ours) for phrase, some in SPOKEN.items() for ours in some if ours in self.curves]
        return _by_alias(names, "/")

    @cached_property
    def keys(self) -> dict[str, list[str]]:
        """Normal name -> settings."""
        names = [(key, key) for key in self.settings]
        names += [(word, ours) for word, ours in KEYS.items() if ours in self.settings]
        names += [(phrase, ours) for phrase, some in SPOKEN_KEYS.items() for ours in some if ours in self.settings]
        return _by_alias(names, ".")

    @cached_property
    def _parts(self) -> dict[str, list[str]]:
        return {name: parts(name.rpartition("/")[2]) for name in self.curves}

    def look(self, phrase: str) -> Names:
        """What a phrase names here: exactly, else as a shortened name that fits one metric alone."""
        if phrase not in self.known:
            if len(self.known) > MAX_KNOWN:
                self.known.clear()
            self.known[phrase] = self._look(phrase)
        return self.known[phrase]

    def _look(self, phrase: str) -> Names:
        alias = normal(phrase)
        columns = self.aliases.get(alias, [])
        keys = self.keys.get(alias) or self.keys.get(normal(phrase.rpartition(".")[2]), [])
        if columns or keys or "_" not in phrase:
            return Names(tuple(columns), tuple(keys))
        words = parts(alias)
        loose = [name for name, there in self._parts.items() if _within(words, there)]
        alone = len({name.rpartition("/")[2] for name in loose}) == 1 and len(words) > 1
        return Names(tuple(loose) if alone else (), (), False)

    # ---- Numbers

    def counts(self, column: str, step: Step) -> bool:
        """Whether a column counts what the quoted step counts."""
        if step.axis in (ANY, SHARE):
            return True
        axis = self.axes.get(column, "")
        return SAME_AXIS.get(axis, axis) == SAME_AXIS.get(step.axis, step.axis)

    def place(self, column: str, step: Step) -> tuple[float, float] | None:
        """First and last step that are meant, in what the column counts; None where it cannot be told."""
        if not self.counts(column, step):
            return None
        size = float(self.curves[column].steps[-1]) if step.axis == SHARE else 1.0
        first = step.number.value * size
        last = first if step.end is None else step.end.value * size
        beyond = step.axis == ANY and last > 1.1 * float(self.curves[column].steps[-1])
        return None if beyond or not math.isfinite(first + last) else (first, last)

    def spacing(self, column: str) -> float:
        curve = self.curves[column]
        return float(np.median(np.diff(curve.steps))) if len(curve) > 1 else 0.0

    def row(self, column: str, step: Step) -> int | None:
        """The row of a quoted step, None where there is none as near as half the way between two rows."""
        place = self.place(column, step)
        if place is None or step.end is not None:
            return None
        curve = self.curves[column]
        near = int(np.argmin(np.abs(curve.steps - place[0])))
        width = max(step.number.unit / 2, self.spacing(column) / 2)
        outside = not curve.steps[0] <= place[0] <= curve.steps[-1] and step.number.unit <= 1
        width = 1.0 if outside else width
        return near if abs(float(curve.steps[near]) - place[0]) <= width else None

    def at(self, column: str, step: Step) -> float | None:
        """The value at a quoted step; None where the column has no row there, or counts something else."""
        row = self.row(column, step)
        return None if row is None else float(self.curves[column].values[row])

    def near(self, column: str, step: Step, quoted: Number) -> bool:
        """Whether the number stands one row beside the quoted step: some count from 0, others from 1."""
        row = self.row(column, step)
        if row is None:
            return False
        reach = self.beside(column, step)
        return any(fits(quoted, float(v)) for v in self.curves[column].values[max(0, row - reach) : row + reach + 1])

    def beside(self, column: str, step: Step) -> int:
        """How many rows to the side may be meant: none where iterations are quoted, and rows are further apart."""
        counted = self.axes.get(column) in ("iteration", "updates", "episodes") and step.number.unit <= 1
        return 0 if counted and self.spacing(column) > 1 and step.axis != SHARE else 1

    def window(self, column: str, step: Step | None) -> Curve:
        """The part of a curve that a claim speaks of; all of it without a step."""
        curve = self.curves[column]
        place = None if step is None else self.place(column, step)
        if step is None or place is None:
            return curve
        upto = (-math.inf, place[0])
        ends = {"by": upto, "within": upto, "until": upto, "after": (place[0], math.inf), "between": place}
        low, high = ends.get(step.relation, (place[0], place[0]))
        some = (curve.steps >= low) & (curve.steps <= high)
        return Curve(curve.name, curve.steps[some], curve.values[some])

    def alike(self, word: str, columns: Iterable[str], role: str = "") -> list[str]:
        """The columns, and those that the same word may mean: a tool's own beside relab's, a best episode's."""
        own = list(columns)
        if "/" in word or not own:
            return own
        if "_" in word:
            exact = set(parts(word))
            return own + [name for name in self.curves if name not in own and exact <= set(parts(name))]
        heads = {parts(name.rpartition("/")[2])[0] for name in own if parts(name.rpartition("/")[2])}
        more = [n for n in self.curves if n.startswith("foreign/") and set(parts(n.rpartition("/")[2])) & heads]
        more += [f"{name}{end}" for name in own for end in VARIANTS + (("_max",) if role == "peak" else ())]
        if any(name.startswith(("return/", "eval/return")) for name in own):
            more += {"peak": ["return/max"], "low": ["return/min"]}.get(role, [])
        return own + [name for name in more if name in self.curves and name not in own]

    def stands_for(self, column: str, quoted: Number) -> list[str]:
        """As what a number stands in a column: last, peak, low, first, mean of the last 10, step 40."""
        curve = self.curves[column]
        v = curve.values
        levels = [("last", v[-1]), ("peak", v.max()), ("low", v.min()), ("first", v[0]), ("mean", v.mean())]
        levels += [(f"mean of the last {k}", v[-k:].mean()) for k in TAILS if k < len(v)]
        tags = [name for name, value in levels if fits(quoted, float(value))]
        if not tags and (rows := np.flatnonzero(fits_all(quoted, v))).size and quoted.digits > 1:
            tags = [f"{self.axis_word(column)} {int(curve.steps[rows[0]]):,}"]
        return tags

    def axis_word(self, column: str) -> str:
        axis = self.axes.get(column, "")
        return "iteration" if axis == "iteration" else "step"

    def anywhere(self, quoted: Number, word: str, step: Step | None = None) -> str:
        """A column that holds the number (at the step, where one is quoted); empty where none does.

        Only columns whose names share a word with the metric's can be meant; counts of steps hold every number, and are
        none.
        """
        shared = set(parts(word)) - GENERIC
        for name, curve in self.curves.items():
            if name.startswith(COUNTERS) or not set(parts(name)) & shared:
                continue
            if step is not None:
                value = self.at(name, step)
                if (value is not None and fits(quoted, value)) or self.near(name, step, quoted):
                    return name
            elif bool(fits_all(quoted, curve.values).any()) or self.stands_for(name, quoted):
                return name
        return ""


def _by_alias(names: Iterable[tuple[str, str]], sign: str) -> dict[str, list[str]]:
    """Normal name -> what it may mean, for (a name, what it means)."""
    meanings: dict[str, dict[str, None]] = {}
    for name, meaning in names:
        for alias in _ends(name, sign):
            meanings.setdefault(alias, {})[meaning] = None
    return {alias: list(each) for alias, each in meanings.items()}


def _ends(name: str, sign: str) -> Iterable[str]:
    """A name and its last parts, without those that say nothing alone."""
    cells = name.removeprefix("foreign" + sign).split(sign)
    whole = [normal(sign.join(cells[i:])) for i in range(len(cells))]
    return [alias for alias in whole if alias and (alias not in GENERIC or len(cells) == 1) and len(alias) > 1]


def _within(words: list[str], there: list[str]) -> bool:
    """Whether the words of one name come in the other, in order."""
    rest = iter(there)
    return all(word in rest for word in words)


def reach(quoted: Number) -> float:
    """How far from the quoted number a value may be and still be what was meant."""
    exact = quoted.unit if quoted.digits > 1 else quoted.unit / 2  # one digit is rounded, more may be cut off
    return (max(2 * exact, 0.03 * abs(quoted.value)) if quoted.hedged else exact) * (1 + 1e-9)


def fits(quoted: Number, value: float) -> bool:
    """Whether a value shows as the quoted number; a percentage may stand for a share."""
    return bool(fits_all(quoted, np.array([value]))[0])


def fits_all(quoted: Number, values: np.ndarray) -> np.ndarray:
    fitting = np.abs(values - quoted.value) < reach(quoted)
    if quoted.percent:
        fitting |= np.abs(values * 100 - quoted.value) < reach(quoted)
    return fitting | (np.abs(values) == abs(quoted.value) if quoted.value == 0 else False)


def far(quoted: Number, value: float) -> bool:
    """Whether they differ by more than rounding, a slip of the last digits, or a percent can explain."""
    size = 100 if quoted.percent and abs(value) <= 1.5 else 1
    gap = abs(value * size - quoted.value)
    share = 0.15 if quoted.hedged else 0.02
    return math.isfinite(value) and gap > 3 * quoted.unit and gap > share * max(abs(value * size), abs(quoted.value))
