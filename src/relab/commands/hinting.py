"""Which options tell what a log does not say? The same for every reading command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relab.base.places import printable as _clean

if TYPE_CHECKING:
    from relab.formats.read.find import LoadedRuns, Tell
    from relab.formats.read.hints import Hints
    from relab.health.examine import Report


MANY = 3  # groups that the guess names


@dataclass(frozen=True)
class Hinting:
    """What the user knows besides the logs (docs/importers.md)."""

    group: str | None = None
    """pattern over run names, 'name_s{seed}': runs that fit belong together; remembered, '' forgets it"""
    spec: str | None = None
    """what the log cannot know: horizon=200,action.low=-2,action.high=2, or a YAML file"""
    command: str | None = None
    """command line of the runs, or a file that holds it, where the log has none"""
    mapping: Path | None = None
    """YAML file of their metric names: relab's name, or {name, factor}"""
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
            hints.mapping_file(self.mapping) if self.mapping is not None else {},
        )
        return hints.of_folder(path, options)

    def load(self, path: Path, tell: Tell | None = None) -> LoadedRuns:
        """All runs at or below a path, read with these hints; a pattern that fits is kept for the next time."""
        from relab.formats.read import find

        loaded = find.load_all(path, self.of(path), tell)
        self.check(path, loaded)
        return loaded

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

    def check(self, path: Path, loaded: LoadedRuns) -> None:
        """A pattern that no run fits, or names that none has, are slips; a pattern that fits is kept."""
        from relab.config.base import require
        from relab.formats.read import hints

        self.check_group(path, [run.name for run in loaded.runs])
        if self.mapping is not None:
            theirs = dict.fromkeys(name for run in loaded.runs for name in run.history.mapping)
            some = set(theirs) & set(hints.mapping_file(self.mapping))
            require(bool(some), f"none of the runs has a metric that {self.mapping} names;"
                    f" theirs are {', '.join([*theirs][:5]) or 'none'}")  # fmt: skip


def guess(report: Report, path: Path, hinting: Hinting) -> str:
    """How runs without a config were put together, said before anything is concluded from it; empty where none were."""
    from relab.formats.read.hints import recall_group

    named = {group.name.removeprefix("named "): group.views for group in report.groups if group.name[:6] == "named "}
    if sum(len(views) for views in named.values()) < 2:
        return ""
    counts = ", ".join(f"{name} ({len(views)} run{'s' * (len(views) != 1)})" for name, views in [*named.items()][:MANY])
    more = f" and {len(named) - MANY} more" if len(named) > MANY else ""
    pattern = hinting.group or getattr(recall_group(path), "text", "")
    how = f"grouped by {pattern!r}" if pattern else "grouped by name"
    other = "" if hinting.group else "; --group 'name_s{seed}' for another way"
    return _clean(f"{how}: {counts}{more}{other}") + "\n"
