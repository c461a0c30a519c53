"""Does the answer hold on seeds that had no part in it? The same question on as many fresh seeds, beside the first.

experiments/NAME-replicate/          an experiment of its own: the same question, other seeds
experiments/NAME*/replication.json   first, second and pooled answer, in both folders
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relab.base import masks
from relab.base.documents import Document
from relab.base.jsonl import encode, write_atomic
from relab.comparison import answer
from relab.lab.experiment.conclude import compare as ask
from relab.lab.experiment.conclude import keep_pooled, looks, pooled_look
from relab.lab.experiment.question import Experiment

FRESH = 10_000  # the first seed of a replication: no first question goes that far
FILE = "replication.json"
SUFFIX = "-replicate"


def fresh(e: Experiment) -> Experiment:
    """The same question on as many seeds that it has not used."""
    start = max(FRESH, max(e.seeds) + 1)
    return replace(e, seeds=tuple(range(start, start + len(e.seeds))))


def folder_of(folder: Path) -> Path:
    return folder.with_name(folder.name + SUFFIX)


@dataclass(frozen=True)
class Replication:
    """One comparison, answered three times: on its own seeds, on fresh ones, on both."""

    first: answer.Answer
    second: answer.Answer  # owes nothing to the first
    pooled: answer.Answer  # counts the first seeds again: a look more at the same question
    change: tuple[float, float, float]  # second delta minus first, with its ends
    text: str

    def to_dict(self) -> Document:
        parts = {"first": self.first, "second": self.second, "pooled": self.pooled}
        keys = ("delta", "low", "high")
        return {
            "names": list(self.first.names), "text": self.text, "change": dict(zip(keys, self.change, strict=True)),
            **{name: x.to_dict() for name, x in parts.items()},
        }  # fmt: skip


def compare(
    e: Experiment, folder: Path, first: Sequence[answer.Answer], second: Sequence[answer.Answer]
) -> list[Replication]:
    """First, second and pooled answer of every comparison; kept in the folders of both."""
    looked = looks(folder)
    replications = [replication(e, pair, looked.get(pair[0].names[1], [])) for pair in zip(first, second, strict=True)]
    keep_pooled(folder, {each.pooled.names[1]: each.pooled.n for each in replications})
    body = {"schema": 1, "question": e.question, "replications": [each.to_dict() for each in replications]}
    for place in (folder, folder_of(folder)):
        write_atomic(place / FILE, encode(masks.masked(body), indent=True))
    return replications


def replication(e: Experiment, pair: tuple[answer.Answer, answer.Answer], looked: list[list[int]]) -> Replication:
    first, second = pair
    arms = {name: [*a, *b] for name, a, b in zip(first.names, (first.a, first.b), (second.a, second.b), strict=True)}
    size = [x + y for x, y in zip(first.n, second.n, strict=True)]
    before = looked[: looked.index(pooled_look(size))] if pooled_look(size) in looked else looked
    bounds = (-math.inf if first.bottom is None else first.bottom, math.inf if first.top is None else first.top)
    pooled = ask(e, first.names, arms, [*before, list(first.n)], bounds)
    pooled.notes.append(f"{_pooled_note(pooled)}; the second answer alone owes nothing to the first")
    return Replication(first, second, pooled, change(first, second), sentence(first, second))


def _pooled_note(pooled: answer.Answer) -> str:
    again = "the pooled answer counts the seeds of the first one again"
    if pooled.reason == "spent":
        return f"{again}, and the declared looks have no error left for it: it has an interval and no verdict"
    return f"{again}: it is look {pooled.look} at the question, hence its {100 * pooled.level:.4g} % interval"


def change(first: answer.Answer, second: answer.Answer) -> tuple[float, float, float]:
    """Second delta minus first; the ends join both intervals as Newcombe (1998) joins two rates'."""
    d = second.delta - first.delta
    low = d - math.hypot(second.delta - second.low, first.high - first.delta)
    return d, low, d + math.hypot(second.high - second.delta, first.delta - first.low)


def sentence(first: answer.Answer, second: answer.Answer) -> str:
    """Whether the answer came out again, and what the size of the difference did."""
    seeds = f"{min(second.n)} fresh seeds"
    now = f"{second.delta:+.4g} [{second.low:+.4g}, {second.high:+.4g}]" if math.isfinite(second.low) else ""
    after = f": {now}, after {first.delta:+.4g}" if now else ""
    if min(second.n) < answer.LEAST or min(first.n) < answer.LEAST:
        return f"No replication under {answer.LEAST} seeds a variant."
    if first.verdict == second.verdict:
        again = "is still open" if first.verdict == answer.OPEN else f"held ({first.verdict} again)"
        return f"The answer {again} on {seeds}{after}."
    if first.verdict == answer.OPEN:
        return f"The answer was open; on {seeds} it is {second.verdict}{after}."
    if second.verdict == answer.OPEN:
        return f"The {first.verdict} did not come out again on {seeds}, which {second.verdict}{after}."
    return f"The answer turned round on {seeds}: it was {first.verdict}, now {second.verdict}{after}."
