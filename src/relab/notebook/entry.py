"""What does an entry say? Date, question, answer, family, evidence with n, what differs, findings, command, what next.

An entry is a function of the files of the run or the experiment: written again from the same files it is the same, to
the byte. `page` is what a report says about the folder (report.sections.build), already safe to share.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relab.comparison.pairs import Pair
from relab.notebook import of_experiment, of_run
from relab.notebook.page import Entry
from relab.notebook.words import words
from relab.report.page import Page
from relab.runs.grouping import Group


def is_experiment(folder: Path) -> bool:
    return (folder / "experiment.yaml").is_file()


def build(
    folder: Path,
    page: Page,
    proposal: str = "",
    lang: str = "en",
    roots: Sequence[Path] = (),
    groups: list[Group] | None = None,
    pairs: Sequence[Pair] = (),
) -> Entry:
    """The entry of a run's or an experiment's folder; `proposal` is what `relab next` prints about it.

    `roots` are folders of runs and of experiments in which a parent is looked for that does not lie beside its child.
    `groups` are the runs of the folder, where they have been read already, `pairs` comparisons that the page is about.
    """
    if is_experiment(folder):
        return of_experiment.build(folder, page, proposal, words(lang))
    return of_run.build(folder, page, proposal, words(lang), roots, groups, pairs)
