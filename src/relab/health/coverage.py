"""Which of the catalogue's checks does relab make, and why not the others? Every id has rules, a place, or a reason.

Ids are those of the catalogue of 96 checks in six groups. A rule says by its own id what it covers; ALSO names what a
rule covers besides, ELSEWHERE the part of relab that answers where no rule over a single run can, REASONS why data
alone cannot decide.
"""

from __future__ import annotations

from typing import NamedTuple

from relab.health.rule import all_rules

COUNTS = {"A": 18, "B": 12, "C": 14, "D": 12, "E": 10, "F": 30}
IDS = tuple(f"{letter}{i}" for letter, n in COUNTS.items() for i in range(1, n + 1))

ALSO: dict[str, tuple[str, ...]] = {
    "A10": ("update-too-large", "diverged"),
    "A11": ("critic-expects-nothing",),
    "B4": ("peak-then-collapse", "evaluations-swing"),
    "C2": ("constant-ratio", "rate-out-of-range"),
    "C6": ("probe-hit-cap",),
    "D5": ("ratio-clip-biases",),
    "F19": ("rows-hardly-used", "replay-ratio-jump"),
}
ELSEWHERE: dict[str, str] = {
    "B3": "`relab compare`: which metric moved before the return fell (`comparison/leading.py`)",
    "F2": "`relab compare` and `relab experiment`: a difference has an interval, or cannot be told yet"
    " (`comparison/answer.py`)",
    "F22": "`relab compare`: runs that differ in more than what is compared are kept apart (`comparison/key.py`)",
    "F24": "`relab examine --notes`: numbers in notes are held against the records (`notebook/check/claims.py`)",
    "F26": "the engine: a finding that the reference run has too is told as such (`health/engine.py`)",
}
REASONS: dict[str, str] = {
    "C8": "a ratio of a number with a copy of itself looks like a right one; only the program's source tells",
    "D8": "noise of the advantages is known only when the same state is rolled out again; no log holds that",
    "F27": "which agent's action the training wrapper applied is in its source, not in any number",
    "F30": "whether a fix has a test is in the repository; relab's own equations are held to known answers in its tests"
    " (of lambda-returns: a spike of V one step on moves them by gamma (1 - lambda), one at the same step does not)",
}
NOT_TWICE: dict[str, str] = {
    "A10": "an entropy that swings is found through the updates that make it swing; on its own it fired on 2 of 12"
    " healthy runs",
    "B4": "two swings of 40 % are normal early in CartPole (5 of 6 healthy runs); swings count where data is fixed, or"
    " where what was gained is lost",
}


class Covered(NamedTuple):
    """One check of the catalogue."""

    id: str
    slugs: tuple[str, ...]  # rules that make it
    place: str  # where else it is made
    reason: str  # why it is not made, or not literally


def coverage() -> list[Covered]:
    """All ids in order."""
    own: dict[str, list[str]] = {}
    for rule in all_rules(plugins=False).values():
        own.setdefault(rule.id, []).append(rule.slug)
    return [Covered(id, tuple(dict.fromkeys((*own.get(id, ()), *ALSO.get(id, ())))), ELSEWHERE.get(id, ""),
                    REASONS.get(id, "") or NOT_TWICE.get(id, "")) for id in IDS]  # fmt: skip


def counted() -> tuple[int, int, int]:
    """(made by rules, made elsewhere, not decidable from data)."""
    found = coverage()
    rules = sum(bool(c.slugs) for c in found)
    places = sum(bool(c.place) and not c.slugs for c in found)
    return rules, places, len(found) - rules - places
