"""relab examine: what went wrong in these runs, since when, with the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from relab import names
from relab.commands.parsing import parse
from relab.configs.base import ConfigError

EXAMPLES = """
  relab examine runs/
  relab examine brave-otter --against calm-lynx
  relab examine runs/ --fail-on warning --json
  relab examine runs/ --ignore throughput-drop --because "the machine was shared"
"""


@dataclass(frozen=True)
class Examine:
    """What went wrong in a run or a folder of runs: findings with their numbers, most important first."""

    path: tyro.conf.Positional[str] = "runs"
    """run (folder, name, part of it, id) or folder of runs"""
    against: str | None = None
    """run to hold the findings against; else the parent, where a run has one"""
    runs: Path = Path("runs")
    """folder that holds the run folders, for names"""
    json: bool = False
    """print as JSON"""
    fail_on: Literal["info", "warning", "error"] | None = None
    """exit 1 when a finding is at least this severe"""
    verbose: Annotated[bool, tyro.conf.arg(aliases=["-v"])] = False
    """show all findings, groups, and rules that were not checked"""
    ignore: str | None = None
    """slugs of rules to leave out, with commas between them"""
    because: str | None = None
    """why they are left out; must be given with --ignore"""


def main(words: Sequence[str]) -> int:
    args = parse(Examine, "examine", words, EXAMPLES)
    muted = muted_slugs(args.ignore, args.because)
    from relab.health.examine import examine  # the parser has said no before anything is read

    against = None if args.against is None else names.find(args.against, args.runs)
    report = examine(folder(args.path, args.runs), against, muted)
    if args.json:
        from relab.jsonl import encode

        print(encode(report.to_json()).decode(), end="")
    else:
        from relab.health.render import text

        print(text(report, args.verbose))
    return 1 if args.fail_on and report.reaches(args.fail_on) else 0


def folder(word: str, runs: Path) -> Path:
    """A folder as it stands, or the run a name means."""
    return Path(word) if Path(word).is_dir() else names.find(word, runs)


def muted_slugs(ignore: str | None, because: str | None) -> dict[str, str]:
    """Slug -> reason; a rule is never left out without one."""
    if not ignore:
        if because:
            raise ConfigError("`--because` gives the reason for `--ignore SLUG`, but no slug is ignored")
        return {}
    if not because or not because.strip():
        raise ConfigError(f'`--ignore {ignore}` needs a reason: --because "..."')
    from relab.health.rule import all_rules
    from relab.registry import nearest

    known = all_rules()
    for slug in ignore.split(","):
        if slug not in known:
            raise ConfigError(f"there is no rule {slug!r}; the nearest is {nearest(slug, list(known))!r}")
    return dict.fromkeys(ignore.split(","), because)
