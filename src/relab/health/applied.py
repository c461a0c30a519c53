"""How many rules are about a run, and how many of them could be asked? So that a pass says what it is worth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from relab.health.engine import NotChecked, applies, families
from relab.health.rule import Rule
from relab.health.view import View


class Applied(NamedTuple):
    """All rules there are, those for this algorithm and kind of action, those with their data."""

    known: int
    apply: int
    checked: int
    algo: str | None
    guessed: bool = False  # by what is logged
    actions: str | None = None  # discrete or continuous
    also: tuple[str, ...] = ()  # the algorithms that a fine-tuning is made of

    def __str__(self) -> str:
        by = " (a guess by what is logged)" if self.guessed else ""
        actions = f"{self.actions} actions" if self.actions else ""
        name = " and ".join(filter(None, (self.algo, *self.also)))
        kind = f" to {name}{by}{f' with {actions}' if actions else ''}" if name else f" to {actions}" if actions else ""
        return f"{self.apply} of {self.known} rules apply{kind}, {self.checked} had their data"


def applied(rules: Iterable[Rule], view: View, not_checked: Iterable[NotChecked]) -> Applied:
    """Counts for one run, out of what the engine could not ask; rules about groups and folders are about it too."""
    every = list(rules)
    alone = {rule.slug for rule in every if rule.scope == "run"}
    mine = {rule.slug for rule in every if rule.slug not in alone or applies(rule, view)}
    gone = {each.slug for each in not_checked if each.run == view.name or each.slug not in alone}
    also = tuple(sorted(families(view) - {view.algo}))
    guessed = view.algo_is_guessed
    return Applied(len(every), len(mine), len(mine - gone), view.algo, guessed, view.kind, also)
