"""What does the end of an experiment or a sweep leave behind? Its page and its entry in the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from relab.notebook import folder as notes
from relab.notebook import making
from relab.report import content, render, sections


@dataclass
class Written:
    """What was written, and what could not be."""

    pages: list[Path] = field(default_factory=list)
    log: Path | None = None
    problems: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # what went wrong in the runs, a line each


def of_experiment(folder: Path, log: Path | None) -> Written:
    """The report and the entry; what cannot be written is said, and the answer stands without it."""
    written = Written()
    try:
        facts = content.content([folder], earlier=making.known_here)
        page = sections.build(folder, facts)
        written.findings = [f"{f.finding.slug} in {f.where}: {f.finding.message}" for f in page.findings]
        written.pages = render.write(page, folder)
        if log is not None:
            entry = making.of_page(folder, page, facts.proposal, log, groups=facts.groups)
            written.log, _ = notes.write(log, entry)
    except Exception as error:  # hours of runs must not end in a traceback because of a page about them
        written.problems.append(f"not written: {error}")
    return written


def of_sweep(folder: Path) -> Written:
    """The report; what cannot be written is said, and the result stands without it."""
    written = Written()
    try:
        facts = content.of_folder(folder, making.known_here)
        written.pages = render.write(sections.build(folder, facts), folder)
    except Exception as error:  # hours of runs must not end in a traceback because of a page about them
        written.problems.append(f"the report was not written: {error}")
    return written
