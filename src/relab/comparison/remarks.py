"""What must be said of the runs behind an answer? Which do not count, which have no number, which all agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from relab.comparison.wording import COUNTED
from relab.stats import humps
from relab.stats.over_seeds import LEAST

if TYPE_CHECKING:
    from relab.comparison.outcomes import Outcome


def unique(arm: Sequence[Outcome], name: str, notes: list[str]) -> list[Outcome]:
    """A seed twice is not two samples: the last run of it counts, as in the report."""
    counted = {(x.part, x.seed): i for i, x in enumerate(arm) if x.seed is not None}
    kept = []
    for i, x in enumerate(arm):
        if x.seed is not None and counted[x.part, x.seed] != i:
            notes.append(f"{name}: seed {x.seed} is there more than once; {x.run or 'an earlier run'} is left out")
        else:
            kept.append(x)
    return kept


def nameless_seeds(outcomes: Mapping[str, Sequence[Outcome]]) -> list[str]:
    """Several runs of one config that name no seed may be seeds, or one seed made anew."""
    counts = {label: sum(x.seed is None for x in arm) for label, arm in outcomes.items()}
    who = [f"{label} ({n})" for label, n in counts.items() if n > 1]
    more = f" and {len(who) - 3} more" if len(who) > 3 else ""
    return [f"runs that name no seed are taken for different seeds: {', '.join(who[:3])}{more}"] if who else []


def partners(arms: list[list[Outcome]], notes: list[str]) -> list[list[Outcome]]:
    """Both arms in the order of their common seeds."""
    by_seed = [{x.seed: x for x in arm if x.seed is not None} for arm in arms]
    both = sorted(set(by_seed[0]) & set(by_seed[1]))
    alone = sum(len(arm) for arm in arms) - 2 * len(both)
    if alone:
        notes.append(f"{alone} runs without a partner of the same seed are left out")
    return [[arm[seed] for seed in both] for arm in by_seed]


def missing(arms: list[list[Outcome]], names: tuple[str, str]) -> list[str]:
    notes = []
    for arm, name in zip(arms, names, strict=True):
        for note, who in _sharing([x for x in arm if not math.isfinite(x.value)]):
            have, are = ("have", "are") if who.startswith(("seeds ", "runs ")) else ("has", "is")
            notes.append(f"{name}: {who} {have} no number ({note or 'not finite'}) and {are} left out of delta")
        noted = [x for x in arm if x.note and math.isfinite(x.value)]
        notes += [f"{name}: {note} ({who})" for note, who in _sharing(noted)]
    return notes


def _sharing(arm: list[Outcome]) -> list[tuple[str, str]]:
    """What is to be said of several seeds is said once: each note, and whose it is."""
    pairs = []
    for note in dict.fromkeys(x.note for x in arm):
        mine = [x for x in arm if x.note == note]
        word = "run" if all(x.seed is None for x in mine) else "seed"
        who = [str(x.seed) if x.seed is not None else x.run or "?" for x in mine]
        pairs.append((note, f"{word}{'s' if len(who) > 1 else ''} {', '.join(who)}"))
    return pairs


def constant(arms: list[list[Outcome]], names: tuple[str, str], at: str) -> list[str]:
    """Seeds that all agree hide what fewer than one in n does; an interval of a mean cannot know of it."""
    if at == "success_rate":
        return []  # its interval allows for it
    notes = []
    for arm, name in zip(arms, names, strict=True):
        if any(x.diverged or not x.reached for x in arm):
            continue  # not all ended alike
        values = np.array([x.value for x in arm if math.isfinite(x.value)])
        if len(values) >= LEAST and values.std() <= 0.02 * abs(values.mean()):
            unseen = 1 - 0.05 ** (1 / len(values))
            notes.append(
                f"all {len(values)} seeds of {name} agree; up to {unseen:.0%} of its runs could end elsewhere unseen"
            )
    return notes


def apart(values: list[np.ndarray], names: tuple[str, str], bounds: tuple[float, float]) -> list[str]:
    """Where outcomes fall into two groups, how many of each variant are in which; and where no run of one comes near
    the other's, that few seeds do not show that none would."""
    if min(map(len, values)) < LEAST:
        return []
    a, b = values[0][None], values[1][None]
    split = humps.humps(a, b)
    if not split.two[0]:
        return []
    if split.mixed[0]:
        return [f"{COUNTED} and count as solved or failed: {split.high_a[0]} of {a.size} of {names[0]} and"
                f" {split.high_b[0]} of {b.size} of {names[1]} in the upper one"]  # fmt: skip
    n, each = min(map(len, values)), f"the runs of {names[0]} and {names[1]} form a group each"
    unseen = f"{n} seeds can miss up to {1 - 0.05 ** (1 / n):.0%} of such runs"
    if humps.counted(a, b, split, bounds)[0]:
        counts = f"{split.high_a[0]} of {a.size} against {split.high_b[0]} of {b.size} in the upper one"
        return [f"{each} and count as solved or failed, {counts}: the interval allows for runs that end in the other's"
                f" group; {unseen}"]  # fmt: skip
    return [f"{each}: the interval says how far these are apart, and does not allow for runs that end in the other's"
            f" group; {unseen}"]  # fmt: skip
