"""Which entry does a folder get, and in which language? The one asked for, else the one it has, else the log's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from relab.comparison.pairs import Pair
from relab.notebook import entry, log, superseding
from relab.notebook.page import Entry
from relab.report import content, sections
from relab.report.page import Page
from relab.runs.grouping import Group

known_here = partial(log.earlier, Path("experiments"))  # what the experiments and logs of this folder have tried


def of_folder(folder: Path, into: Path | None = None, lang: str | None = None, roots: Sequence[Path] = ()) -> Entry:
    """The entry of a run or an experiment, from what is found in its folder."""
    facts = content.of_folder(folder, known_here, compare=not entry.is_experiment(folder))
    page = sections.build(folder, facts)
    return of_page(folder, page, facts.proposal, into, lang, roots, facts.groups, facts.pairs)


def of_page(
    folder: Path,
    page: Page,
    proposal: str,
    into: Path | None = None,
    lang: str | None = None,
    roots: Sequence[Path] = (),
    groups: list[Group] | None = None,
    pairs: Sequence[Pair] = (),
) -> Entry:
    """The same from what a page says already, and from its runs and comparisons where they have been read and made."""
    new = entry.build(folder, page, proposal, lang or "en", roots, groups, pairs)
    if lang is None and (kept := language(into, new.id)) != new.lang:
        new = entry.build(folder, page, proposal, kept, roots, groups, pairs)
    return superseding.kept(new, into)


def language(into: Path | None, id_: str) -> str:
    """The language that an entry has in a log, else the log's own."""
    if into is None or not into.exists():
        return "en"
    known = {one.id: one.lang for one in log.entries([into])}
    return known.get(id_) or log.language([into])
