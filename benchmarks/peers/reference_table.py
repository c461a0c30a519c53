"""What do healthy runs look like, in numbers? Makes the shipped table anew from the runs of healthy_runs.py.

    python -m benchmarks.peers.reference_table RUNS [--out src/relab/health/reference_table.json]

Only runs of the part `table` that reached their task's level are read; held-out runs are never touched.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.peers import plan, tasks
from benchmarks.peers.healthy_listing import outcomes
from relab.formats.read import find
from relab.health import outside, reference
from relab.health.features import features

TABLE = Path(reference.__file__).with_name(reference.FILE)
LARGEST = 500_000  # bytes


def task(row: dict[str, Any]) -> str:
    """By its name in Gymnasium, where relab has one of its own."""
    return plan.RELAB_LEVEL.get(row["task"], row["task"])


def healthy(root: Path, row: dict[str, Any]) -> reference.HealthyRun:
    sources = list(find.find(root / row["path"]))
    if len(sources) != 1:
        raise ValueError(f"{row['path']}: a run is one source, but relab finds {len(sources)}")
    cell = f"{row['tool']} {task(row)} {row['variant']}"
    kind = "discrete" if tasks.ALL[task(row)].choices else "continuous"
    return reference.HealthyRun(row["algo"], kind, cell, features(find.read(sources[0])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path, default=TABLE)
    args = parser.parse_args()
    rows = [row for row in outcomes(args.runs) if row["part"] == "table" and row["healthy"]]
    known = {case.name for case in plan.cases("table")}
    runs = [healthy(args.runs, row) for row in rows if row["path"] in known]
    count = Counter(run.algo for run in runs)
    made = {"runs": len(runs), "tasks": len({task(row) for row in rows}), "by_algo": dict(sorted(count.items())),
            "by_tool": dict(sorted(Counter(row["tool"] for row in rows).items()))}  # fmt: skip
    data = reference.dump(outside.with_scores(runs), made)
    if len(data) > LARGEST:
        raise ValueError(f"the table may have {LARGEST} bytes, but has {len(data)}")
    args.out.write_bytes(data)
    print(f"{len(runs)} runs, {len(data)} bytes: {made}")


if __name__ == "__main__":
    main()
