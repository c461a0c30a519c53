"""relab runs disk, relab runs prune: what the runs take on the disk, and what of it can go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relab.base.text import plural
from relab.commands.options import AsJson, RunsFolder, Unasked
from relab.commands.runs_common import Target, Words, ask, each, mended, of_row, opened, targets
from relab.commands.runs_text import clean, size, table


@dataclass(frozen=True)
class Disk:
    """What each run takes on the disk, biggest first, and what could go with `prune` and `purge`. Changes nothing."""

    names: Words = ()
    """runs; none: all"""
    top: int = 20
    """how many to show; 0 shows all"""
    json: AsJson = False
    runs: RunsFolder = Path("runs")


@dataclass(frozen=True)
class Prune:
    """Remove checkpoints that are neither best nor last; logs stay as they are. Shows what would go, and asks.

    The last checkpoint of a run that could be resumed always stays. Running runs, and those of other tools, are left
    alone. Checkpoints that are gone cannot be brought back.
    """

    names: Words = ()
    """runs; none: all below the folder"""
    keep: str = "best,last"
    """what stays: best, last, or both with a comma"""
    yes: Unasked = False
    runs: RunsFolder = Path("runs")


def own_runs(names: Sequence[str], root: Path) -> list[Target]:
    if names:
        return targets(names, root)
    from relab.runs import listing

    index = mended(root)
    rows = [row for old in (False, True) for row in listing.select(index, listing.Query(archived=old)).rows]
    return [of_row(row) for row in rows]


def disk(args: Disk) -> int:
    from relab.runs import moves
    from relab.runs.disk import use

    owned = own_runs(args.names, args.runs)
    rows = sorted(((t, use(t.folder)) for t in owned if t.format == "relab"), key=lambda pair: -pair[1].total)
    index = opened(args.runs) if args.runs.is_dir() else None
    trash = [gone for folder in (index.trash if index else []) for gone in moves.deleted(folder)]
    if args.json:
        from relab.base.jsonl import encode

        keys = ("total", "checkpoints", "free", "why_not")
        rows_json = [{"run": t.name, **{key: getattr(u, key) for key in keys}} for t, u in rows]
        print(encode({"schema": 1, "runs": rows_json, "trash": sum(gone.size for gone in trash)}).decode(), end="")
        return 0
    cells = [[clean(t.name), size(u.total), size(u.checkpoints), size(u.free) if u.free else "", clean(u.why_not)]
             for t, u in rows]  # fmt: skip
    print(
        table(("name", "total", "checkpoints", "can go", "remark"), cells[: args.top or None])
        if cells
        else "no runs of relab's here"
    )
    free, whole = sum(u.free for _, u in rows), sum(u.total for _, u in rows)
    print(f"{plural(len(rows), 'run')}, {size(whole)}; relab runs prune frees {size(free)}, relab runs purge"
          f" {size(sum(gone.size for gone in trash))}")  # fmt: skip
    return 0


def prune(args: Prune) -> int:
    from relab.runs import disk

    keep = [word for word in args.keep.split(",") if word]
    disk.check_keep(keep)
    uses = [(t, disk.idle_use(t.folder, keep)) for t in own_runs(args.names, args.runs) if t.format == "relab"]
    for target, usage in uses:
        if usage.why_not:
            print(clean(f"{target.name} is left alone: {usage.why_not}"))
    plan = [(target, usage) for target, usage in uses if usage.removable and not usage.why_not]
    if not plan:
        print("nothing to remove")
        return 0
    cells = [[clean(t.name), str(len(u.removable)), size(u.free)] for t, u in plan]
    print(table(("name", "checkpoints", "can go"), cells))
    count, free = sum(len(u.removable) for _, u in plan), sum(u.free for _, u in plan)
    if not ask(
        f"remove {plural(count, 'checkpoint')} of {plural(len(plan), 'run')} for good ({size(free)})?", args.yes
    ):
        return 0
    return each([t for t, _ in plan], "pruned", lambda t: f"{size(disk.prune(t.folder, keep))} freed")
