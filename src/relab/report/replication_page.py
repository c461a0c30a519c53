"""What does a page say of a replication? First, second and pooled answer of each comparison, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.jsonl import RecordError, read_json
from relab.report.parts import Table, table

FILE = "replication.json"
WHICH = {"first": "first", "second": "second, on fresh seeds", "pooled": "pooled"}
HEAD = ["answer", "seeds", "difference", "interval", "verdict"]


@dataclass(frozen=True)
class ReplicationPage:
    """What stands between the headline and the runs."""

    texts: list[str]
    tables: list[Table]
    notes: list[str]


def build(path: Path) -> ReplicationPage | None:
    """None where the folder, or the one above its runs, holds no replication that can be read."""
    folder = path.resolve()
    for place in (folder, folder.parent) if folder.name == "runs" else (folder,):
        try:
            rows = read_json(place, FILE)["replications"]
            return page(rows) if rows else None
        except (RecordError, OSError, KeyError, TypeError, ValueError, AttributeError):
            continue
    return None


def page(rows: list[Document]) -> ReplicationPage:
    tables = [
        table(
            HEAD,
            [_row(which, row[which]) for which in WHICH],
            f"Replication: {row['names'][1]} against {row['names'][0]}",
        )
        for row in rows
    ]
    notes = dict.fromkeys(str(row["pooled"]["notes"][-1]) for row in rows if row["pooled"]["notes"])
    return ReplicationPage([str(row["text"]) for row in rows], tables, list(notes))


def _row(which: str, x: Mapping[str, Any]) -> list[str]:
    known = math.isfinite(float(x["low"]))
    ends = f"[{x['low']:+.4g}, {x['high']:+.4g}] at {100 * x['level']:.4g} %" if known else "none"
    return [WHICH[which], " and ".join(map(str, x["n"])), f"{x['delta']:+.4g}", ends, str(x["verdict"])]
