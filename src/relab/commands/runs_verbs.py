"""relab runs VERB: label, rename, archive, delete and bring back runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from relab.base.jsonl import RecordError
from relab.base.text import plural
from relab.commands.options import OneRun, RunsFolder, SomeRuns, Unasked
from relab.commands.parsing import parse
from relab.commands.runs_common import Target, Words, ask, each, mended, opened, ours, targets
from relab.commands.runs_disk import Disk, Prune, disk, prune
from relab.commands.runs_text import clean, size
from relab.config.base import ConfigError, require
from relab.runs.labels import Labels

# ---- Labels


@dataclass(frozen=True)
class Tag:
    """Give runs a tag, or several (with commas). Kept in labels.json of the run folder."""

    tag: tyro.conf.Positional[str]
    """the tag"""
    names: SomeRuns
    runs: RunsFolder = Path("runs")


@dataclass(frozen=True)
class Untag(Tag):
    """Take a tag from runs, or several (with commas)."""


@dataclass(frozen=True)
class Some:
    """Some runs, by their names."""

    names: SomeRuns
    runs: RunsFolder = Path("runs")


@dataclass(frozen=True)
class Star(Some):
    """Mark runs with a star: they show it in the list, and --starred finds them."""


@dataclass(frozen=True)
class Unstar(Some):
    """Take the star from runs."""


@dataclass(frozen=True)
class Note:
    """Give a run a short note; an empty text removes it. (`relab note` writes entries for a log.)"""

    name: OneRun
    text: tyro.conf.Positional[str]
    """what to note"""
    runs: RunsFolder = Path("runs")


def label(words: Sequence[str], root: Path, change: Callable[[Any], Any]) -> int:
    from relab.runs import moves

    def do(target: Target) -> str:
        if target.format == "relab":
            return shown(moves.relabel(target.folder, change))
        return shown(moves.relabel_foreign(target.folder, target.key, change)) + " (in your cache folder)"

    return each(targets(words, root), "labelled", do)


def shown(labels: Labels) -> str:
    parts = ["star" if labels.star else "", " ".join(["tags", *labels.tags]) if labels.tags else ""]
    parts.append(f'"{labels.note}"' if labels.note else "")
    return ", ".join(part for part in parts if part) or "no labels"


def tag(args: Tag) -> int:
    from relab.runs.labels import tagged

    return label(args.names, args.runs, tagged(args.tag.split(","), add=not isinstance(args, Untag)))


def star(args: Star | Unstar) -> int:
    from relab.runs.labels import starred

    return label(args.names, args.runs, starred(isinstance(args, Star)))


def note(args: Note) -> int:
    from relab.runs.labels import noted

    return label([args.name], args.runs, noted(args.text))


# ---- Moves


@dataclass(frozen=True)
class Rename:
    """Give a run folder another name; its id stays. Not while it is running, and not for a cell of an experiment."""

    name: OneRun
    new: tyro.conf.Positional[str]
    """the new name: one plain folder name"""
    force: bool = False
    """also when other runs name it as their parent, and would no longer find it"""
    runs: RunsFolder = Path("runs")


@dataclass(frozen=True)
class Archive(Some):
    """Put runs out of sight, into .archive beside them: other commands no longer see them."""


@dataclass(frozen=True)
class Unarchive(Some):
    """Bring archived runs back to where they were."""


@dataclass(frozen=True)
class Delete(Some):
    """Move runs into the trash (.trash beside them); `relab runs undo` brings them back, `purge` frees the disk."""


@dataclass(frozen=True)
class Undo:
    """Bring deleted runs back to where they lay: the last one, or those that are named."""

    names: Words = ()
    """name or id of a deleted run; none: the one that was deleted last"""
    to: Path | None = None
    """where to put it instead: a folder that is not there yet"""
    runs: RunsFolder = Path("runs")


@dataclass(frozen=True)
class Purge:
    """Remove deleted runs for good: all that is in the trash, or those that are named. Asks first."""

    names: Words = ()
    """name or id of a deleted run; none: all"""
    yes: Unasked = False
    runs: RunsFolder = Path("runs")


def rename(args: Rename) -> int:
    from relab.runs import moves

    moves.check_name(args.new)
    (target, *more) = targets([args.name], args.runs)
    require(not more, f"one run at a time can be renamed, but {args.name} means {len(more) + 1}")
    children = [] if args.force else opened(target.folder.parent).children(target.folder.name)
    if children:
        runs = f"{plural(len(children), 'run')} ({', '.join(children[:3])})"
        raise RecordError(f"{target.name} is the parent of {runs}, and would no longer be found by that name;"
                          " --force renames it all the same")  # fmt: skip

    def do(target: Target) -> str:
        moves.run(moves.rename(ours(target), args.new))
        return f"is now {args.new}"

    return each([target], "renamed", do)


def shift(args: Archive | Unarchive) -> int:
    from relab.runs import moves

    steps, word = (moves.archive, "archived") if isinstance(args, Archive) else (moves.unarchive, "brought back")

    def do(target: Target) -> str:
        moves.run(steps(ours(target)))
        return word

    return each(targets(args.names, args.runs), word, do)


def delete(args: Delete) -> int:
    from relab.runs import moves

    def do(target: Target) -> str:
        home = moves.experiment_of(ours(target))
        moves.run(moves.delete(target.folder))
        again = f"; the experiment {home.name} runs it anew when it is called again" if home else ""
        return f"in the trash{again}; relab runs undo {target.folder.name}{where(args.runs)} brings it back"

    return each(targets(args.names, args.runs), "deleted", do)


def where(runs: Path) -> str:
    return "" if runs == Path("runs") else f" --runs {runs}"


def undo(args: Undo) -> int:
    from relab.runs import moves

    trashed = moves.in_trash(mended(args.runs).trash, args.names, args.runs)
    if not trashed:
        print(f"nothing was deleted below {args.runs}")
        return 0
    chosen = trashed if args.names else trashed[-1:]
    by_folder = {gone.entry: gone for gone in chosen}
    require(args.to is None or len(chosen) == 1, f"--to takes one run at a time, but got {len(chosen)}")

    def do(target: Target) -> str:
        moves.run(moves.undo(by_folder[target.folder], args.to))
        return f"back at {args.to or by_folder[target.folder].home}"

    return each([Target(gone.name, gone.entry) for gone in chosen], "brought back", do)


def purge(args: Purge) -> int:
    from relab.runs import moves

    trashed = moves.in_trash(mended(args.runs).trash, args.names, args.runs)
    if not trashed:
        print(f"the trash below {args.runs} is empty")
        return 0
    for gone in trashed:
        when = f"{gone.at[:16].replace('T', ' ')} UTC" if gone.at else "at an unknown time"
        print(clean(f"{gone.name}  {size(gone.size)}  deleted {when}"))
    if not ask(f"remove {plural(len(trashed), 'run')} for good ({size(sum(g.size for g in trashed))})?", args.yes):
        return 0
    by_folder = {gone.entry: gone for gone in trashed}

    def do(target: Target) -> str:
        moves.run(moves.purge(by_folder[target.folder]))
        return "removed"

    return each([Target(gone.name, gone.entry) for gone in trashed], "removed", do)


# ---- The table of verbs

VERBS: dict[str, tuple[type[Any], Callable[[Any], int], str]] = {
    "tag": (Tag, tag, "relab runs tag baseline brave-otter calm-lynx"),
    "untag": (Untag, tag, "relab runs untag baseline 'sweep-*'"),
    "star": (Star, star, "relab runs star brave-otter"),
    "unstar": (Unstar, star, "relab runs unstar brave-otter"),
    "note": (Note, note, 'relab runs note brave-otter "first with the new reward"'),
    "rename": (Rename, rename, "relab runs rename brave-otter first-try"),
    "archive": (Archive, shift, "relab runs archive 'sweep-*'"),
    "unarchive": (Unarchive, shift, "relab runs unarchive sweep-3"),
    "delete": (Delete, delete, "relab runs delete brave-otter"),
    "undo": (Undo, undo, "relab runs undo\n  relab runs undo brave-otter"),
    "purge": (Purge, purge, "relab runs purge\n  relab runs purge brave-otter --yes"),
    "disk": (Disk, disk, "relab runs disk --top 0"),
    "prune": (Prune, prune, "relab runs prune --keep best,last\n  relab runs prune brave-otter --keep best --yes"),
}


def main(verb: str, words: Sequence[str]) -> int:
    args, do, example = VERBS[verb]
    options = parse(args, f"runs {verb}", words, f"\n  {example}")
    runs = options.runs
    if not runs.is_dir() and not (getattr(options, "names", ()) or hasattr(options, "name")):
        raise ConfigError(f"{runs} is no folder; --runs FOLDER says where the runs are")
    return do(options)
