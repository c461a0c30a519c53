"""How often does a loop keep what is no better, and what is? The whole of it (relab.stats.keeping), with made-up runs.

Each loop: an A/A set, then twenty proposals, each with its first look, its fresh seeds beside some of the present best,
and the measurement after it was kept; the best config moves on with what is kept. `null`: no proposal does anything.
Otherwise one proposal in four is better by so many standard deviations of the noise between seeds, the others by none.
Beside it stands what loops without any of this do: keep whatever is higher in one run than the best number so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from relab.stats import keeping

PROPOSALS, NOISE, FIRST, CONFIRM, AGAIN = 20, 8, 3, 6, 2  # as a loop has them where its file says nothing else
ERROR = 0.05
EVERY = 4  # one proposal in so many is better

Draw = Callable[[np.random.Generator, int, float], np.ndarray]


def _solved(rng: np.random.Generator, n: int, level: float) -> np.ndarray:
    """A run solves it (1) or fails (0): half of them, more with a higher level; the spread is about a half."""
    return (rng.random(n) < min(0.5 + 0.5 * level, 0.99)) + 0.02 * rng.normal(size=n)


SHAPES: dict[str, Draw] = {
    "normal": lambda rng, n, level: rng.normal(level, 1.0, n),
    "heavy tails (t, 3)": lambda rng, n, level: rng.standard_t(3, n) / math.sqrt(3) + level,
    "skewed (exponential)": lambda rng, n, level: rng.exponential(1.0, n) - 1 + level,
    "skewed to the left": lambda rng, n, level: 1 - rng.exponential(1.0, n) + level,
    "solve or fail": _solved,
}
EFFECTS = {"null": 0.0, "+1 sd": 1.0, "+2 sd": 2.0, "+3 sd": 3.0}


class Row(NamedTuple):
    """Loops of one kind: shares and means over `reps` of them."""

    shape: str
    effect: str
    any_false: float  # loops with at least one keep of a change that does nothing
    false_keeps: float  # such keeps a loop
    kept_share: float  # of the changes that are better, NaN where none is
    runs: float  # a loop
    naive_keeps: float  # of changes that do nothing, a loop, by the rule `higher in one run`
    reps: int


class Made(NamedTuple):
    """One loop."""

    false_keeps: int
    true_keeps: int
    better: int
    runs: int


def table(
    reps: int, seed: int, shapes: dict[str, Draw] | None = None, effects: dict[str, float] | None = None
) -> list[Row]:
    rows = []
    for i, (shape, draw) in enumerate((shapes or SHAPES).items()):
        for j, (name, effect) in enumerate((effects or EFFECTS).items()):
            if shape == "solve or fail" and effect > 1:
                continue  # from half to all is one standard deviation: there is nothing beyond
            rng = np.random.default_rng([seed, i, j])
            rows.append(_row(shape, name, [one_loop(rng, draw, effect) for _ in range(reps)],
                             [naive(rng, draw, effect) for _ in range(reps)]))  # fmt: skip
    return rows


def _row(shape: str, effect: str, made: list[Made], naive_keeps: list[int]) -> Row:
    false = np.array([one.false_keeps for one in made])
    better = sum(one.better for one in made)
    share = sum(one.true_keeps for one in made) / better if better else math.nan
    return Row(shape, effect, float((false > 0).mean()), float(false.mean()), share,
               float(np.mean([one.runs for one in made])), float(np.mean(naive_keeps)), len(made))  # fmt: skip


@dataclass
class Simulated:
    """A loop under way: what its best config is truly worth, and the made-up runs of every config."""

    rng: np.random.Generator
    draw: Draw
    level: float = 0.0
    best: int = 0
    base: np.ndarray = field(default_factory=lambda: np.zeros(0))  # runs of the best that had no part in choosing it
    groups: dict[int, np.ndarray] = field(default_factory=dict)  # config -> all its runs
    runs: int = 0

    def make(self, config: int, n: int, level: float) -> np.ndarray:
        new = self.draw(self.rng, n, level)
        self.groups[config] = np.concatenate([self.groups.get(config, np.zeros(0)), new])
        self.runs += n
        return new

    def first_look(self, runs: np.ndarray) -> bool:
        return keeping.first_look(self.base, runs, keeping.pooled([*self.groups.values()])).go_on

    def decide(self, k: int, mine: float) -> bool:
        """One decision about fresh runs, a second where the first cannot tell."""
        alpha, fresh = keeping.share(k, PROPOSALS, ERROR) / keeping.LOOKS, np.zeros(0)
        for _ in range(keeping.LOOKS):
            fresh = np.concatenate([fresh, self.make(k, CONFIRM, mine)])
            self.base = np.concatenate([self.base, self.make(self.best, AGAIN, self.level)])
            spread = keeping.pooled([*self.groups.values()])
            delta = float(fresh.mean() - self.base.mean())
            if delta > keeping.floor(spread, len(self.base), len(fresh), alpha):
                made = keeping.decide(self.base, fresh, alpha, spread)
            else:  # it cannot be kept, whatever its interval is
                made = keeping.Decision(False, delta, 0.0, 0.0, 0.0, alpha, "floor")
            if made.keep or not keeping.ahead(made, keeping.standard_error(self.base, fresh), 0.0):
                break
        return made.keep


def one_loop(rng: np.random.Generator, draw: Draw, effect: float) -> Made:
    """Twenty proposals against a best that moves on."""
    loop, kept, better = Simulated(rng, draw), {False: 0, True: 0}, 0
    loop.base = loop.make(0, NOISE, 0.0)
    for k in range(1, PROPOSALS + 1):
        real = effect > 0 and k % EVERY == 0
        better += real
        mine = loop.level + effect * real
        if not loop.first_look(loop.make(k, FIRST, mine)) or not loop.decide(k, mine):
            continue
        stands = loop.make(k, NOISE, mine)
        if loop.first_look(stands):
            kept[real] += 1
            loop.level, loop.base, loop.best = mine, stands, k
    return Made(kept[False], kept[True], better, loop.runs)


def naive(rng: np.random.Generator, draw: Draw, effect: float) -> int:
    """Keeps of changes that do nothing, where one run that is higher than the best number so far is enough."""
    level, best, kept = 0.0, float(draw(rng, 1, 0.0)[0]), 0
    for k in range(1, PROPOSALS + 1):
        real = effect > 0 and k % EVERY == 0
        value = float(draw(rng, 1, level + effect * real)[0])
        if value > best:
            kept, best, level = kept + (not real), value, level + effect * real
    return kept


def markdown(rows: list[Row], seed: int) -> str:
    """The table of docs/loop.md."""
    head = ["noise between seeds", "changes", "loops with a keep by luck", "keeps by luck a loop", "better ones kept",
            "runs a loop", "keeps by luck, `higher in one run`"]  # fmt: skip
    lines = [head, ["---"] * len(head)]
    for row in rows:
        share = "-" if math.isnan(row.kept_share) else f"{row.kept_share:.0%}"
        error = math.sqrt(max(row.any_false * (1 - row.any_false), 1 / row.reps) / row.reps)
        lines.append([row.shape, row.effect, f"{row.any_false:.3f} ± {error:.3f}", f"{row.false_keeps:.3f}", share,
                      f"{row.runs:.0f}", f"{row.naive_keeps:.1f}"])  # fmt: skip
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    of = f"{rows[0].reps:,} simulated loops a row, seed {seed}, {PROPOSALS} proposals each"
    return f"{of}; ± is one standard error.\n\n{body}"
