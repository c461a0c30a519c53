"""How fast is a record written and read? Rows appended per second, and 1,000,000 metric values read back.

Run as `python -m benchmarks.record`.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.common import machine, warn_if_busy, write
from relab.record import glossary, history
from relab.record.run_folder import Record

ROWS, COLUMNS = 20_000, 50


def main() -> None:
    warn_if_busy(started := machine())
    names = [name for name in glossary.METRICS if not name.startswith("time/")][:COLUMNS]
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "run"
        record = Record.create(folder, {"env": {"name": "none"}}, {}, {})
        begin = time.perf_counter()
        for step in range(ROWS):
            record.append_metrics(step, {name: step + 0.1 * k for k, name in enumerate(names)})
        append_s = time.perf_counter() - begin
        record.close()
        reads = []
        for _ in range(5):
            begin = time.perf_counter()
            found = history.load(folder)
            reads.append(time.perf_counter() - begin)
    values = sum(len(column.values) for column in found.columns.values())
    print(f"{ROWS / append_s:,.0f} rows of {len(names)} values appended a second")
    print(f"{values:,} values read in {min(reads):.2f} s")
    write("record", {"rows_per_s": ROWS / append_s, "columns": len(names), "values": values, "read_s": reads}, started)


if __name__ == "__main__":
    main()
