"""How does a queue look on a screen? A line for each entry, the running ones first."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from relab.base import limits
from relab.base.text import count, duration

ORDER = ("running", "waiting", "paused", "failed", "cancelled", "done")
WIDE = 100  # of a command
TAIL = 15  # lines of a log
Row = dict[str, Any]


def listing(folder: Path, paused: bool, counts: Mapping[str, int], rows: Sequence[Row], left: float | None) -> str:
    """Counts, then the entries by state; `rows` may be some of them only."""
    totals = ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])
    pace = f"; about {duration(left)} for what waits" if left is not None and not paused else ""
    lines = [f"{folder}: {totals or 'empty'}{pace}" + ("; PAUSED (relab queue resume goes on)" if paused else "")]
    for state in ORDER:
        shown = [row for row in rows if row["state"] == state]
        lines += [state, *(f"  {line(row)}" for row in shown)] if shown else []
        if len(shown) < counts[state]:
            lines.append(f"  ... and {counts[state] - len(shown)} more (--top 0 shows all)")
    return "\n".join(lines)


def line(row: Row) -> str:
    text = " ".join(row["shown"].split())  # a program may be a text of many lines
    words = text if len(text) <= WIDE else text[: WIDE - 3] + "..."
    facts = {"running": running, "waiting": waiting, "failed": failed, "done": took}.get(row["state"], lambda row: [])
    more = [fact for fact in [*priority(row), *facts(row)] if fact]
    return f"{row['id'][:8]}  {words or row['problem']}" + (f"  ({'; '.join(more)})" if more else "")


def priority(row: Row) -> list[str]:
    return [f"priority {row['priority']}"] if row["priority"] else []


def running(row: Row) -> list[str]:
    where = "its worker is gone; the next one takes it over" if row.get("without_worker") else ""
    if not row.get("total_steps"):
        return [where]
    share = f"{row['step'] / row['total_steps']:.0%} of {count(row['total_steps'])} steps"
    return [f"{share}, {duration(row['eta_s'])} left", where]


def waiting(row: Row) -> list[str]:
    last = (row.get("result") or {}).get("how")
    return [f"try {row['tries'] + 1}, the last one was {last}" if row["tries"] and last else ""]


def failed(row: Row) -> list[str]:
    return [str(row["problem"])]


def took(row: Row) -> list[str]:
    outcome = row.get("result") or {}
    seconds, rss = outcome.get("seconds"), outcome.get("rss_mb")
    return [f"{duration(seconds)}" if seconds is not None else "", f"{rss:.0f} MB" if rss else ""]


def one(row: Row) -> str:
    """All about one entry."""
    lines = [line(row), f"  state     {row['state']}", f"  came      {duration(row['age_s'])} ago",
             f"  folder    {row.get('cwd')}", f"  words     {shlex.join(row['words'] or [])}"]  # fmt: skip
    memory = row.get("memory_mb")
    lines.append(f"  needs     {row.get('cores')} core(s), " + (f"{memory:g} MB" if memory else "memory as learned"))
    lines += [f"  run       {row['run']}"] if row.get("run") else []
    lines += [f"  worker    {row['worker']}"] if row["worker"] else []
    outcome = row.get("result") or {}
    if outcome:
        facts = {key: outcome[key] for key in ("code", "seconds", "rss_mb", "load") if outcome.get(key) is not None}
        numbers = ", ".join(f"{key} {value:.4g}" for key, value in facts.items())
        lines.append(f"  last try  {outcome.get('how')} at {outcome.get('at')}" + (f" ({numbers})" if numbers else ""))
    return "\n".join([*lines, f"  log       {row['log']}", *tail(Path(row["log"]))])


def tail(log: Path) -> list[str]:
    try:
        text = limits.read_end(log, 20_000).decode(errors="replace")
    except OSError:
        return []
    return [f"    | {text_line}" for text_line in text.splitlines()[-TAIL:]]
