"""relab runs: which runs are there, and keeping them in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from relab.base.documents import Document
from relab.base.near import nearest
from relab.base.text import plural
from relab.commands.hinting import Hinting
from relab.commands.options import AsJson
from relab.commands.parsing import parse
from relab.commands.runs_common import opened
from relab.config.base import require

if TYPE_CHECKING:
    from relab.formats.read.hints import Hints
    from relab.runs.index import Index
    from relab.runs.listing import ListedRun, Query

EXAMPLES = """
  relab runs                                     the newest runs below runs/
  relab runs logs/ --match 'ppo.*' --sort outcome
  relab runs algo.lr=3e-4 'outcome>400' --state finished
  relab runs --tag baseline --json
  relab runs logs/ --mapping score=return/mean   what their columns mean, where relab cannot know
  relab runs --by lr,env                         groups that share these settings
  relab runs tag baseline brave-otter calm-lynx  (untag)
  relab runs star brave-otter                    (unstar)
  relab runs note brave-otter "first with the new reward"
  relab runs rename brave-otter first-try
  relab runs archive 'sweep-*'                   (unarchive)
  relab runs delete brave-otter                  into the trash; relab runs undo brings it back
  relab runs purge                               empties the trash, for good; asks first
  relab runs disk                                what each run takes, and what can go
  relab runs prune --keep best,last              removes the other checkpoints; asks first

`relab runs VERB --help` shows the options of a verb.
"""
SHOWN = 50
VERBS = ("tag", "untag", "star", "unstar", "note", "rename", "archive", "unarchive", "delete", "undo", "purge", "disk",
         "prune")  # fmt: skip
KEYS = ("name", "format", "id", "env", "algo", "seed", "state", "metric", "outcome", "error", "episodes", "steps",
        "size", "parent", "tags", "note", "copies", "problem")  # fmt: skip


@dataclass(frozen=True)
class Runs:
    """List the runs at or below a folder, of any tool: newest first, the same run in two places as one.

    Settings are compared with = != < > <= >=, in quotes where the shell would take them; so are outcome, steps, size
    (100MB), age (7d), seed, env, algo, name, id and format. A verb as the first word does something with runs: tag,
    untag, star, unstar, note, rename, archive, unarchive, delete, undo, purge, disk, prune.
    """

    words: tyro.conf.Positional[tuple[str, ...]] = ()
    """a folder (default: runs), and comparisons: algo.lr=3e-4 'outcome>400' 'age<7d'"""
    match: Annotated[str | None, tyro.conf.arg(aliases=["-m"])] = None
    """regular expression that the name must match somewhere"""
    tag: str | None = None
    """only runs with this tag (several with commas: all of them)"""
    state: Literal["running", "finished", "interrupted", "failed", "stale", "ended", "unknown"] | None = None
    """only runs in this state"""
    starred: bool = False
    """only runs with a star"""
    archived: bool = False
    """the archived runs instead of the others"""
    sort: str = "age"
    """age, name, outcome, size, steps, seed, env, state or a setting; with a minus before it the other way round"""
    by: str | None = None
    """group by these settings (with commas): how many runs, and their last outcomes"""
    top: int | None = None
    """how many to show; 0 shows all (default: 50; all with --json)"""
    json: AsJson = False
    rebuild: bool = False
    """read every run anew instead of those that changed"""
    known: Hinting = field(default_factory=Hinting)


def main(words: Sequence[str]) -> int:
    if words and words[0] in VERBS:
        from relab.commands import runs_verbs

        return runs_verbs.main(words[0], words[1:])
    args = parse(Runs, "runs", words, EXAMPLES)
    path, filters = split(args.words)
    if args.known.show_mapping:
        print(args.known.shown(path))
        return 0
    index = opened(path, args.rebuild, checked(args.known, path))
    query = query_of(args, filters)
    if args.by:
        print(by_text(index, query, args), end="")
    else:
        print(json_text(index, query, args) if args.json else list_text(index, query, args), end="")
    return 0


def checked(known: Hinting, path: Path) -> Hints | None:
    """What the user says about these logs; a mapping or a pattern that fits none of them is an error."""
    if known == Hinting() or not path.is_dir():
        return None
    known.load(path)
    return known.of(path)


def split(words: Sequence[str]) -> tuple[Path, list[Any]]:
    """The folder and the comparisons among the words; what exists is a folder, whatever it is called."""
    from relab.runs.listing import parse_filter

    paths = [word for word in words if Path(word).exists() or parse_filter(word) is None]
    if paths and not Path(paths[0]).exists():
        near = "".join(f" (the nearest is {verb})" for verb in nearest(paths[0], VERBS))
        what = f"{paths[0]} is neither a folder nor a verb{near}"
        raise FileNotFoundError(f"{what}; --match finds runs by name")
    require(len(paths) <= 1, f"one folder at a time, but got {', '.join(paths)}; runs by name: --match")
    filters = [condition for word in words if word not in paths and (condition := parse_filter(word))]
    return Path(paths[0] if paths else "runs"), filters


def query_of(args: Runs, filters: list[Any]) -> Query:
    from relab.runs.listing import Query

    limit = (0 if args.json else SHOWN) if args.top is None else args.top
    require(limit >= 0, f"`--top` must not be negative, but is {limit}")
    tags = [tag for tag in (args.tag or "").split(",") if tag]
    return Query(args.match, filters, tags, args.state, args.starred, args.archived, args.sort, limit)


def list_text(index: Index, query: Query, args: Runs) -> str:
    from relab.commands import runs_text
    from relab.runs.listing import select

    listed = select(index, query)
    lines = [runs_text.runs(listed)] if listed.rows else []
    if not listed.rows:
        every = index.remarks().runs
        lines.append(f"no such run: {plural(every, 'run')} below {index.root}" if every else empty(index))
    elif listed.total > len(listed.rows):
        lines.append(f"the first {len(listed.rows)} of {plural(listed.total, 'run')}; --top 0 shows all")
    else:
        lines.append(plural(listed.total, "run"))
    return "\n".join([*lines, *remarks(index)]) + "\n"


def empty(index: Index) -> str:
    from relab.formats.read.find import format_names

    return f"no runs below {index.root}: no folder there is of a format that relab reads ({format_names()})"


def remarks(index: Index) -> list[str]:
    """What else there is to know about the folder, a line each."""
    from relab.commands.runs_text import clean

    notes = index.remarks()
    counts = [f"{plural(notes.archived, 'run')} archived (--archived)"] if notes.archived else []
    counts += [f"{notes.deleted} in the trash (relab runs undo, relab runs purge)"] if notes.deleted else []
    lines = ["; ".join(counts)] if counts else []
    for name, to in notes.renaming:
        lines.append(f"{name}: a rename to {to} was cut short; the next rename, tag or move ends it")
    lines += [f"{name}: {problem}" for name, problem in notes.broken[:3]]
    more = len(notes.broken) - 3
    lines += [f"{plural(more, 'run')} more could not be read in full (--json tells why)"] if more > 0 else []
    if index.cut:
        lines.append("there are more than 20,000 folders, and not all were looked into; give a folder further down")
    return [clean(line) for line in lines]


def json_text(index: Index, query: Query, args: Runs) -> str:
    import orjson  # jsonl.encode looks at every value, which takes seconds for 100,000 runs

    from relab.runs.listing import select

    listed = select(index, query)
    rows = [as_json(row) for row in listed.rows]
    whole = {"schema": 1, "path": unicode(index.root), "total": listed.total, "runs": rows}
    return orjson.dumps(whole, option=orjson.OPT_APPEND_NEWLINE).decode()


def as_json(run: ListedRun) -> Document:
    from relab.base.jsonl import plain
    from relab.runs.listing import iso

    odd = {"outcome": plain(run.outcome), "error": plain(run.error), "copies": list(map(unicode, run.copies))}
    times = {"created": iso(run.created), "last_sign": iso(run.sign)}
    flags = {"star": bool(run.star), "archived": bool(run.archived)}
    return {**{key: getattr(run, key) for key in KEYS}, **odd, **times, **flags, "folder": unicode(run.folder)}


def unicode(path: Any) -> str:
    """A path as text that can be printed anywhere; bytes that are no text become question marks."""
    return str(path).encode("utf-8", "replace").decode()


def by_text(index: Index, query: Query, args: Runs) -> str:
    from relab.commands import runs_text
    from relab.runs.listing import groups

    keys = [key for key in (args.by or "").split(",") if key]
    require(bool(keys), "`--by` needs settings to group by, e.g. --by algo.lr,env")
    grouped = groups(index, query, keys)
    if args.json:
        from relab.base.jsonl import encode

        rows = [asdict(group) for group in grouped]
        return encode({"schema": 1, "path": str(index.root), "by": keys, "groups": rows}).decode()
    shown = grouped[: query.limit or None]
    lines = [runs_text.groups(shown)] if grouped else [f"no such run below {index.root}"]
    if len(shown) < len(grouped):
        lines.append(f"the first {len(shown)} of {plural(len(grouped), 'group')}; --top 0 shows all")
    note = "n runs with an outcome: the mean, lowest and highest of their last ones; no test, no interval (relab"
    return "\n".join([*lines, f"{note} compare gives both)"] if grouped else lines) + "\n"
