"""How are runs shown as lines? Tables for `relab runs`; no control characters from a folder reach the terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from relab.base.places import printable as clean
from relab.runs.listing import Listed, Row

NAME_WIDTH, TAGS_WIDTH = 44, 40
HEAD = ("name", "env", "algo", "seed", "state", "outcome", "steps", "age", "size", "tags")
RIGHT = {
    "seed",
    "outcome",
    "steps",
    "age",
    "size",
    "runs",
    "n",
    "mean",
    "low",
    "high",
    "total",
    "checkpoints",
    "can go",
}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side; one that is empty throughout is left out."""
    used = [i for i in range(len(head)) if any(row[i] for row in rows)]
    widths = {i: max(len(head[i]), *(len(row[i]) for row in rows)) for i in used}
    lines = []
    for row in (head, *rows):
        cells = [row[i].rjust(widths[i]) if head[i] in RIGHT else row[i].ljust(widths[i]) for i in used]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def runs(listed: Listed) -> str:
    now = time.time()
    return table(HEAD, [[clean(cell) for cell in _cells(row, now)] for row in listed.rows])


def _cells(row: Row, now: float) -> list[str]:
    star = "* " if row["star"] else ""
    tags = " ".join([*row["tags"], *([f'"{row["note"]}"'] if row["note"] else [])])
    copies = f" (+{len(row['copies'])} cop{'ies' if len(row['copies']) > 1 else 'y'})" if row["copies"] else ""
    return [cut(star + row["name"], NAME_WIDTH) + copies, cut(row["env"], 24), cut(row["algo"], 12), cell(row["seed"]),
            row["state"], outcome(row), "" if row["steps"] is None else f"{row['steps']:,}", age(now - row["sign"]),
            size(row["size"]), cut(tags, TAGS_WIDTH)]  # fmt: skip


def outcome(row: Row) -> str:
    """The last evaluation's mean with its standard error; a return of training says so."""
    if not row["metric"]:
        return ""
    if row["outcome"] is None:
        return "nan"
    error = "" if row["error"] is None else f" ±{num(row['error'])}"
    return num(row["outcome"]) + (error if row["metric"].startswith("eval/") else " (train)")


def groups(grouped: Sequence[Row]) -> str:
    keys = list(grouped[0]["values"]) if grouped else []
    head = [*keys, "runs", "finished", "n", "mean", "low", "high", "best"]
    rows = []
    for g in grouped:
        numbers = [num(g[k]) if g[k] is not None else "" for k in ("mean", "low", "high")]
        best = cut(g["best"] or "", NAME_WIDTH) + (
            f" ({', '.join(g['metrics'])} mixed)" if len(g["metrics"]) > 1 else ""
        )
        cells = [*(cell(g["values"][k]) for k in keys), str(g["runs"]), str(g["finished"]), str(g["n"]), *numbers, best]
        rows.append([clean(each) for each in cells])
    return table(head, rows)


def cell(value: Any) -> str:
    if value is None:
        return "-"
    return num(value) if isinstance(value, float) else str(value)


def num(value: float) -> str:
    """Four digits that count, and no exponent where it can be helped."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    return f"{value:.1f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def age(seconds: float) -> str:
    """How long ago, in one unit; a time in the future is a clock that is wrong."""
    if seconds > 1e9:
        return "?"
    if seconds < -60:
        return "in the future"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length or (unit != "d" and seconds >= length):
            return f"{int(seconds // length)} {unit}"
    return f"{max(int(seconds), 0)} s"


def size(count: float) -> str:
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.3g} {unit}" if count < 1000 * length else f"{count / length:,.0f} {unit}"
    return f"{int(count)} B"


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def plural(count: int, word: str = "run") -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
