"""relab examine: what went wrong in these runs, since when, with the numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from relab.base import masks
from relab.commands.hinting import Hinting, guess
from relab.commands.options import AsJson, RunsFolder
from relab.commands.parsing import parse
from relab.commands.progress import Progress
from relab.config.base import ConfigError, require
from relab.record import names

if TYPE_CHECKING:
    from relab.health.examine import Report
    from relab.health.memory import News

EXAMPLES = """
  relab examine runs/
  relab examine brave-otter --against calm-lynx
  relab examine logs/ppo logs/sac run.csv         several at once
  relab examine runs/ --new                       what changed since the last look
  relab examine runs/ --watch --fail-on error     look again while they train; ends at the first error
  relab examine progress.csv                      another tool's log (docs/importers.md)
  relab examine logs/ --group 'ppo_{lr}_s{seed}'  which runs differ in the seed alone; remembered
  relab examine runs/ --notes LOG.md              are the numbers in a write-up those of the runs?
  relab examine runs/ --ignore throughput-drop --because "the machine was shared"
"""


UNREADABLE = 2  # exit code: there are runs, but none that can be read


@dataclass(frozen=True)
class Examine:
    """What went wrong in a run or a folder of runs: findings with their numbers, most important first."""

    paths: tyro.conf.Positional[tuple[str, ...]] = ("runs",)
    """runs (folder, name, part of it, id), folders of runs, or files of other tools"""
    against: str | None = None
    """run to hold the findings against; else the parent, else the best comparable run"""
    new: bool = False
    """only what changed since the last look at this folder"""
    watch: bool = False
    """look again as the runs go on and print what is new, until none is running"""
    every: float = 5.0
    """seconds between two looks of --watch"""
    runs: RunsFolder = Path("runs")
    json: AsJson = False
    fail_on: Literal["info", "warning", "error"] | None = None
    """exit 1 when a finding is at least this severe"""
    verbose: Annotated[bool, tyro.conf.arg(aliases=["-v"])] = False
    """show all findings, groups, and rules that were not checked"""
    notes: Path | None = None
    """write-up (Markdown or text) whose numbers and claims are checked against the runs"""
    ignore: str | None = None
    """slugs of rules to leave out, with commas between them"""
    because: str | None = None
    """why they are left out; must be given with --ignore"""
    known: Hinting = field(default_factory=Hinting)


def main(words: Sequence[str]) -> int:
    args = parse(Examine, "examine", words, EXAMPLES)
    require(args.every > 0, f"`--every` must be more than 0 seconds, but is {args.every}")
    require(args.notes is None or args.notes.is_file(), f"`--notes` must be a file, but there is none at {args.notes}")
    muted = muted_slugs(args.ignore, args.because)
    against = None if args.against is None else names.place(args.against, args.runs)
    paths = [names.place(word, args.runs) for word in args.paths]
    if args.known.show_mapping:
        print("\n".join(args.known.shown(path) for path in paths))
        return 0
    look = partial(one_look, paths, against, muted, args.known)
    if args.watch:
        return watch(args, look)
    report, changed = look()
    print(output(args, report, changed), end="")
    return code(args, report)


def one_look(paths: Sequence[Path], against: Path | None, muted: dict[str, str], known: Hinting) -> tuple[Report, News]:
    """Examine, compare with the last look, and remember this one; several paths together are a look of their own."""
    from relab.health import memory
    from relab.health.examine import examine_loaded  # the parser has said no before anything is read
    from relab.record.run_folder import now
    from relab.runs.together import loaded_below

    path = paths[0] if len(paths) == 1 else Path(", ".join(map(str, paths)))
    with Progress("reading run") as tell:
        loaded = loaded_below(paths, lambda each: known.load(each, tell, whole=False))
        known.check_mapping([run.history for run in loaded.runs])
        tell.word = "examining run"
        report = examine_loaded(loaded, path, against, muted, tell=tell, hints=known.of(paths[0]))
    changed = memory.news(report, memory.recall(path))
    memory.remember(path, memory.snapshot(report, now()))
    return report, changed


def output(args: Examine, report: Report, changed: News) -> str:
    """What is printed: text for people, or all of it as JSON."""
    if args.json:
        return as_json(args, report, changed)
    from relab.health import render

    text = render.news(report, changed) if args.new else render.text(report, args.verbose)
    if not args.new:
        text = guess(report, names.place(args.paths[0], args.runs), args.known) + text
    if args.notes:
        from relab.notebook.check import notes  # only whoever asks waits for it

        text += "\n" + notes.text(notes.check(args.notes, report), args.verbose)
    return text + "\n"


def as_json(args: Examine, report: Report, changed: News) -> str:
    from relab.advise import propose
    from relab.base.jsonl import encode
    from relab.notebook.check import notes

    extra = {"proposal": propose(report, names.place(args.paths[0], args.runs)).to_dict()}
    extra |= {"new": changed.to_json()} if args.new or args.watch else {}
    extra |= {"notes": notes.check(args.notes, report).to_json()} if args.notes else {}
    return encode(masks.masked(report.to_json() | extra)).decode()


def code(args: Examine, report: Report) -> int:
    if not report.runs:
        return UNREADABLE
    return 1 if args.fail_on and report.reaches(args.fail_on) else 0


def watch(args: Examine, look: Callable[[], tuple[Report, News]]) -> int:
    """All there is at first, then what is new; ends when no run is running, or a finding is severe enough."""
    report, changed = look()
    print(output(args, report, changed), end="", flush=True)
    try:
        while not code(args, report) and any(run.view.state == "running" for run in report.runs):
            time.sleep(args.every)
            report, changed = look()
            if not changed.empty:
                print(output(replace(args, new=True), report, changed), end="", flush=True)
    except KeyboardInterrupt:
        return 0
    return code(args, report)


def muted_slugs(ignore: str | None, because: str | None) -> dict[str, str]:
    """Slug -> reason; a rule is never left out without one."""
    if not ignore:
        if because:
            raise ConfigError("`--because` gives the reason for `--ignore SLUG`, but no slug is ignored")
        return {}
    if not because or not because.strip():
        raise ConfigError(f'`--ignore {ignore}` needs a reason: --because "..."')
    from relab.base.near import hint
    from relab.health.rule import all_rules

    known = all_rules()
    for slug in ignore.split(","):
        if slug not in known:
            raise ConfigError(f"there is no rule {slug!r}{hint(slug, known, '; the nearest is {!r}')}")
    return dict.fromkeys(ignore.split(","), because)
