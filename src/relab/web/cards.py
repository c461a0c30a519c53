"""How is what examine said laid out on a page? A card for each rule: where it was found, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from relab.base.documents import Document
from relab.base.text import plural
from relab.health import onsets
from relab.health.onsets import Since
from relab.runs.seeds import SeedGroup

RANK = {"error": 0, "warning": 1, "info": 2}
SHOWN = 6  # cards that stand open to the eye; the others are one click away


def of_groups(
    findings: Iterable[Document], groups: Sequence[SeedGroup], names: set[str] | None = None
) -> list[Document]:
    """The cards of some groups, or of those of their runs that are named."""
    homes = {run.name: group for group in groups for run in group.runs if names is None or run.name in names}
    labels = {group.label for group in groups} if names is None else set()
    mine = [f for f in findings if f.get("run") in homes or f["where"] in labels]
    return [_dressed(card, homes, groups) for card in merged(mine, homes)]


def of_all(findings: Iterable[Document], groups: Sequence[SeedGroup]) -> list[Document]:
    """The cards of a whole folder, worst first."""
    homes = {run.name: group for group in groups for run in group.runs}
    made = [_dressed(card, homes, groups) for card in merged(findings, homes)]
    return sorted(made, key=lambda card: RANK.get(str(card["severity"]), 3))


def merged(findings: Iterable[Document], homes: Mapping[str, SeedGroup]) -> list[Document]:
    """One card for each rule, with the first finding in full and the other runs that have it.

    Configs in which a rule fired about different metrics have a card each: none says of a run what is another's.
    """
    cards: dict[tuple[str, str], Document] = {}
    about: dict[tuple[str, str], str] = {}
    for finding in findings:
        slug, where = str(finding["slug"]), str(finding["where"])
        config = homes[where].key if where in homes else where
        kind = slug, about.setdefault((slug, config), metric_of(finding))
        card = cards.setdefault(kind, {**finding, "others": []})
        if card["where"] != where:
            card["others"].append(finding)
    return list(cards.values())


def metric_of(finding: Document) -> str:
    """What a finding is about first; empty where it shows no number."""
    return next((str(each.get("metric")) for each in finding.get("evidence") or ()), "")


def _dressed(card: Document, homes: Mapping[str, SeedGroup], groups: Sequence[SeedGroup]) -> Document:
    wheres = [str(f["where"]) for f in (card, *card["others"])]
    of = {homes[where].key: homes[where] for where in wheres if where in homes}
    of |= {group.key: group for group in groups if group.label in wheres}
    looked_at = sum(len(_looked_at(group, homes)) for group in of.values()) if of else len(wheres)
    return card | {
        "since": since(card, looked_at, "seeds" if len(of) == 1 else "runs"),
        "places": [group.place for group in of.values()][:4],
        "place": where_text(wheres, list(of.values()), homes, len(groups) > 1),
    }


def where_text(wheres: Sequence[str], of: Sequence[SeedGroup], homes: Mapping[str, SeedGroup], several: bool) -> str:
    """Where a rule fired, in a few words: the run, how many seeds of which config, or how many configs."""
    runs = [where for where in wheres if where in homes]
    if not of:
        return wheres[0] if len(wheres) == 1 else plural(len(wheres), "run")
    if len(of) > 1:
        return f"{plural(len(runs), 'run')} of {plural(len(of), 'config')}"
    group, name = of[0], f"{of[0].label}: " if several else ""
    seen = len(_looked_at(group, homes))
    if not runs or seen == 1:
        return group.label if several else ""
    return f"{name}{len(runs)} of {seen} runs"


def _looked_at(group: SeedGroup, homes: Mapping[str, SeedGroup]) -> list[str]:
    """The runs of a group that a page is about: all of them, or the one whose page it is."""
    return [run.name for run in group.runs if run.name in homes]


def since(card: Document, runs: int, unit: str = "seeds") -> Since | None:
    """When what a card tells began, in the first of the runs that it names; chart and card say the same."""
    dated = [(str(f["where"]), f["onset"]["step"]) for f in (card, *card["others"]) if f.get("onset")]
    return onsets.earliest(dated, runs, unit)
