"""Which options tell what a log does not say? The same for every reading command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from relab.base.places import printable as _clean
from relab.base.text import plural

if TYPE_CHECKING:
    from relab.formats.read.find import LoadedRuns, Tell
    from relab.formats.read.hints import Hints
    from relab.health.examine import Report
    from relab.record.history import History


MANY = 3  # groups that the guess names
TABLES = ("csv", "jsonl")  # formats without names of their own


@dataclass(frozen=True)
class Hinting:
    """What the user knows besides the logs (docs/importers.md)."""

    group: str | None = None
    """pattern over run names, 'name_s{seed}': runs that fit belong together; remembered, '' forgets it"""
    spec: str | None = None
    """what the log cannot know: horizon=200,action.low=-2,action.high=2, or a YAML file"""
    command: str | None = None
    """command line of the runs, or a file that holds it, where the log has none"""
    mapping: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """what their names mean: frames=step,score=return/mean,cost=-return/mean, or a YAML file (name or {name, factor});
    repeatable"""
    show_mapping: bool = False
    """print what relab calls the metrics and settings of these runs, and end"""

    def of(self, path: Path) -> Hints:
        """The hints for a path: these options, its relab.toml, the pattern of the last time."""
        from relab.formats.read import hints
        from relab.formats.read.pattern import Pattern
        from relab.formats.read.spec import read_spec

        if self.group == "":
            hints.remember_group(path, "")
        options = hints.Hints(
            Pattern.parse(self.group) if self.group else None,
            read_spec(self.spec) if self.spec is not None else {},
            hints.command_text(self.command) if self.command is not None else "",
            self.names(),
        )
        return hints.of_folder(path, options)

    def names(self) -> dict[str, tuple[str, float]]:
        """What `--mapping` explains, of all times that it was given."""
        from relab.formats.read import hints

        return {theirs: ours for text in self.mapping for theirs, ours in hints.mapping_of(text).items()}

    def load(self, path: Path, tell: Tell | None = None, whole: bool = True) -> LoadedRuns:
        """All runs at or below a path, read with these hints; a pattern that fits is kept for the next time.

        Where the path is not the whole of what is read, the names of `--mapping` may be those of another one.
        """
        from relab.formats.read import find

        loaded = find.load_all(path, self.of(path), tell)
        self.check_group(path, [run.name for run in loaded.runs])
        if whole:
            self.check_mapping([run.history for run in loaded.runs])
        if strange := unexplained(loaded):
            _say_or_refuse(strange, loaded, refuse=not self.mapping and not self.show_mapping)
        return loaded

    def together(self, tell: Tell | None = None) -> Reading:
        return Reading(self, tell)

    def shown(self, path: Path) -> str:
        """What --show-mapping prints."""
        from relab.formats.read.shown import mapping_text

        return mapping_text(self.load(path).runs)

    def check_group(self, path: Path, names: list[str]) -> None:
        from relab.config.base import require
        from relab.formats.read import hints
        from relab.formats.read.pattern import Pattern

        if self.group and names:
            fits = Pattern.parse(self.group).fits
            some = ", ".join(repr(name) for name in names[:3])
            require(any(fits(name) for name in names), f"`--group {self.group}` fits none of the {len(names)} runs,"
                    f" which are called {some}")  # fmt: skip
            hints.remember_group(path, self.group)

    def check_mapping(self, runs: Sequence[History]) -> None:
        """Names that no run has are a slip: an error where it is all of them, else a line that says which."""
        from relab.config.base import require

        if not self.mapping:
            return
        names = self.names()
        theirs = dict.fromkeys(name for run in runs for name in [*run.mapping, *run.explained])
        lost = [name for name in names if name not in theirs]
        columns = f"theirs are {', '.join([*theirs][:5]) or 'none'}"
        require(len(lost) < len(names) or not names, f"none of the runs has a column that {', '.join(self.mapping)}"
                f" names; {columns}")  # fmt: skip
        if lost:
            said = f"relab: `--mapping` explains {', '.join(lost)}, which no run has; {columns}"
            print(_clean(said), file=sys.stderr)


@dataclass
class Reading:
    """Reads one path after the other; names of `--mapping` may be those of any of them."""

    hinting: Hinting
    tell: Tell | None
    runs: list[History] = field(default_factory=list)

    def __call__(self, path: Path) -> LoadedRuns:
        loaded = self.hinting.load(path, self.tell, whole=False)
        self.runs += [run.history for run in loaded.runs]
        return loaded

    def check(self) -> None:
        self.hinting.check_mapping(self.runs)


def _say_or_refuse(strange: str, loaded: LoadedRuns, refuse: bool) -> None:
    """Tables of which nothing at all is understood cannot be judged: an answer about them would be about nothing."""
    from relab.base.jsonl import RecordError

    tables = all(run.history.source in TABLES and not run.history.explained for run in loaded.runs)
    if refuse and tables and all(_is_strange(run.history) for run in loaded.runs):
        raise RecordError(strange)
    print(_clean(f"relab: {strange}"), file=sys.stderr)


def unexplained(loaded: LoadedRuns) -> str:
    """The first run of which relab knows no metric and no return, with the --mapping that would explain its columns."""
    from relab.formats.read.strange_names import advice_of

    strange = [run for run in loaded.runs if _is_strange(run.history)]
    if not strange:
        return ""
    others = len(strange) - 1
    more = f" ({plural(others, 'more run')} {'is' if others == 1 else 'are'} like it)" if others else ""
    return f"{strange[0].name}{more}: {advice_of(strange[0].history)}"


def _is_strange(history: History) -> bool:
    from relab.formats.read.source import FOREIGN
    from relab.runs.course import is_return

    names = history.mapping.values()
    return bool(names) and all(ours.startswith(FOREIGN) and not is_return(ours) for ours in names)


def guess(report: Report, path: Path, hinting: Hinting) -> str:
    """How runs without a config were put together, said before anything is concluded from it; empty where none were."""
    from relab.formats.read.hints import recall_group
    from relab.record.state import NAMED

    named = {group.name.removeprefix(NAMED): group.views for group in report.groups if group.name.startswith(NAMED)}
    if sum(len(views) for views in named.values()) < 2:
        return ""
    counts = ", ".join(f"{name} ({plural(len(views), 'run')})" for name, views in [*named.items()][:MANY])
    more = f" and {len(named) - MANY} more" if len(named) > MANY else ""
    pattern = hinting.group or getattr(recall_group(path), "text", "")
    how = f"grouped by {pattern!r}" if pattern else "grouped by name"
    other = "" if hinting.group else "; --group 'name_s{seed}' for another way"
    return _clean(f"{how}: {counts}{more}{other}") + "\n"
