"""How does a queue look on a screen? A line for each entry, the running ones first."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from relab.base import limits
from relab.base.text import count, duration

if TYPE_CHECKING:
    from relab.lab.execute.away import Away
    from relab.lab.execute.outlook import Outlook

ORDER = ("running", "waiting", "paused", "failed", "cancelled", "done")
WIDE, NARROW = 100, 50  # of a command, alone and in a table
TAIL = 15  # lines of a log


def listing(folder: Path, paused: bool, counts: Mapping[str, int], rows: Sequence[Outlook], left: float | None) -> str:
    """Counts, then the entries by state; `rows` may be some of them only."""
    totals = ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])
    pace = f"; about {duration(left)} for what waits" if left is not None and not paused else ""
    lines = [f"{folder}: {totals or 'empty'}{pace}" + ("; PAUSED (relab queue resume goes on)" if paused else "")]
    for state in ORDER:
        shown = [row for row in rows if row.item.state == state]
        lines += [state, *(f"  {line(row)}" for row in shown)] if shown else []
        if len(shown) < counts[state]:
            lines.append(f"  ... and {counts[state] - len(shown)} more (--top 0 shows all)")
    return "\n".join(lines)


def line(row: Outlook) -> str:
    text = " ".join(row.entry.shown.split()) if row.entry else ""  # a program may be a text of many lines
    words = text if len(text) <= WIDE else text[: WIDE - 3] + "..."
    facts = {"running": running, "waiting": waiting, "failed": failed, "done": took}.get(row.item.state, lambda row: [])
    more = [fact for fact in [*priority(row), *facts(row)] if fact]
    return f"{row.item.id[:8]}  {words or row.problem}" + (f"  ({'; '.join(more)})" if more else "")


def everywhere(rows: Sequence[Outlook], aways: Sequence[Away]) -> str:
    """What waits and runs on every engine, in one table: where, since when, why it does not run yet."""
    here = [(row.item.state, "here", "this machine" if row.item.state == "running" else "", duration(row.age_s),
             short(row), "; ".join(fact for fact in (running if row.item.state == "running" else waiting)(row) if fact))
            for row in rows if row.item.state in ("running", "waiting")]  # fmt: skip
    there = [(row.state, row.engine, row.host, "" if row.since_s is None else duration(row.since_s),
              f"{row.folder}: {row.run}", "; ".join(part for part in (f"job {row.job}", row.why) if part))
             for row in aways]  # fmt: skip
    order = ("running", "waiting", "silent", "left")
    table = [("state", "engine", "where", "since", "what", "more")]
    table += sorted([*here, *there], key=lambda line: order.index(line[0]))
    widths = [max(len(line[k]) for line in table) for k in range(5)]
    lines = ["  ".join([*(f"{cell:{wide}}" for cell, wide in zip(line, widths)), line[5]]).rstrip() for line in table]
    return "\n".join(lines)


def short(row: Outlook) -> str:
    text = " ".join(row.entry.shown.split()) if row.entry else ""
    return f"{row.item.id[:8]} {text if len(text) <= NARROW else text[: NARROW - 3] + '...'}"


def priority(row: Outlook) -> list[str]:
    return [f"priority {row.item.name.priority}"] if row.item.name.priority else []


def running(row: Outlook) -> list[str]:
    where = "its worker is gone; the next one takes it over" if row.without_worker else ""
    run = row.progress
    if run is None or not run.total_steps:
        return [where]
    share = f"{run.step / run.total_steps:.0%} of {count(run.total_steps)} steps"
    return [f"{share}, {duration(run.eta_s)} left", where]


def waiting(row: Outlook) -> list[str]:
    last, tries = (row.result or {}).get("how"), row.item.name.tries
    return [f"try {tries + 1}, the last one was {last}" if tries and last else ""]


def failed(row: Outlook) -> list[str]:
    return [str(row.problem)]


def took(row: Outlook) -> list[str]:
    outcome = row.result or {}
    seconds, rss = outcome.get("seconds"), outcome.get("rss_mb")
    return [f"{duration(seconds)}" if seconds is not None else "", f"{rss:.0f} MB" if rss else ""]


def one(row: Outlook) -> str:
    """All about one entry."""
    lines = [line(row), f"  state     {row.item.state}", f"  came      {duration(row.age_s)} ago", *contents(row)]
    lines += [f"  worker    {row.item.name.worker}"] if row.item.name.worker else []
    outcome = row.result or {}
    if outcome:
        facts = {key: outcome[key] for key in ("code", "seconds", "rss_mb", "load") if outcome.get(key) is not None}
        numbers = ", ".join(f"{key} {value:.4g}" for key, value in facts.items())
        lines.append(f"  last try  {outcome.get('how')} at {outcome.get('at')}" + (f" ({numbers})" if numbers else ""))
    return "\n".join([*lines, f"  log       {row.log}", *tail(row.log)])


def contents(row: Outlook) -> list[str]:
    """What the entry's own file says; of one that cannot be read, that nothing is known."""
    entry = row.entry
    if entry is None:
        return ["  folder    None", "  words     ", "  needs     None core(s), memory as learned"]
    memory = f"{entry.memory_mb:g} MB" if entry.memory_mb else "memory as learned"
    lines = [f"  folder    {entry.cwd}", f"  words     {shlex.join(entry.words)}",
             f"  needs     {entry.cores} core(s), {memory}"]  # fmt: skip
    return lines + ([f"  run       {entry.run}"] if entry.run else [])


def tail(log: Path) -> list[str]:
    try:
        text = limits.read_end(log, 20_000).decode(errors="replace")
    except OSError:
        return []
    return [f"    | {text_line}" for text_line in text.splitlines()[-TAIL:]]
