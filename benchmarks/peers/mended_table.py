"""How many sick runs did `relab next` mend? The table of what benchmarks.peers.mended made, kind by kind.

python -m benchmarks.peers.mended_table OUT [--part apart]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from relab.stats.rates import wilson

LIST = "mended.jsonl"
CHANGES = 3  # in a row, at most
HEAD = ["kind", "task", "level when sick", "first change", "level then", "mended by it", "by up to three changes"]
Row = dict[str, Any]


def rows(out: Path) -> list[Row]:
    path = out / LIST
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def line(name: str, own: list[Row]) -> list[str]:
    """A kind: levels seed by seed, what was changed first, and how many of its runs that mended."""
    sick = [row for row in own if row["sick"]]
    first = dict.fromkeys(" ".join(f"{k}={v}" for k, v in row["changes"][0].items()) for row in sick if row["changes"])
    before, then = (", ".join(f"{row['levels'][i]:.3g}" for row in sick if len(row["levels"]) > i) for i in (0, 1))
    once, more = (f"{sum(any(row['mended'][:n]) for row in sick)} of {len(sick)}" for n in (1, CHANGES))
    who = f"{own[0]['tool']} {own[0]['algo']}: {name}"
    return [who, own[0]["task"], before or "none was", "; ".join(first) or "none",
            then, once, more]  # fmt: skip


def total(sick: list[Row], key: str, changes: int) -> str:
    hits = sum(any(row[key][:changes]) for row in sick)
    rate = wilson(hits, len(sick))
    return f"{hits} of {len(sick)} ({hits / len(sick):.0%}, {rate.low:.0%} to {rate.high:.0%})"


def table(listed: list[Row]) -> str:
    kinds: dict[tuple[str, str], list[Row]] = {}
    for row in listed:
        kinds.setdefault((row["kind"], row["algo"]), []).append(row)
    lines = [HEAD, ["---"] * len(HEAD), *(line(name, own) for (name, _), own in kinds.items())]
    sick = [row for row in listed if row["sick"]]
    ill = [[row for row in own if row["sick"]] for own in kinds.values() if any(row["sick"] for row in own)]
    once, more = (sum(any(any(row["mended"][:n]) for row in own) for own in ill) for n in (1, CHANGES))
    sums = [f"kinds that were sick: {len(ill)} of {len(kinds)}; one seed or more mended by one change in {once},"
            f" by up to three in {more}",
            f"mended by one change: {total(sick, 'mended', 1)}",
            f"by up to three in a row: {total(sick, 'mended', CHANGES)}",
            f"half mended by one: {total(sick, 'half', 1)}"]  # fmt: skip
    return "\n".join([*(f"| {' | '.join(cells)} |" for cells in lines), "", *sums])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--part", default="development")
    args = parser.parse_args()
    print(table([row for row in rows(args.out) if row["part"] == args.part]))


if __name__ == "__main__":
    main()
