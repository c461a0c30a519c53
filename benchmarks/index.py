"""How long does a list of 100,000 runs take? Rebuild, list and group-by of the index, over synthetic run folders.

Run as `python -m benchmarks.index [RUNS]`. The folders are small: 10 seeds of each config, the heads of a real run and
four evaluations of 10 episodes; no checkpoints. List and group-by are whole processes, from start to exit.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import BIN, machine, summary, timed, warn_if_busy, write
from relab.base.jsonl import encode
from relab.config import layers
from relab.config.layers import Layer
from relab.config.yaml_io import format_yaml
from relab.record import provenance
from relab.runs.index import Index

RUNS, SEEDS, REPEATS = 100_000, 10, 5
TARGETS = {"rebuild_runs_per_s": 2000, "list_s": 1.0, "group_s": 3.0}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    warn_if_busy(started := machine())
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as root:
        runs = Path(root) / "runs"
        os.environ["XDG_CACHE_HOME"] = str(Path(root) / "cache")
        begin = time.perf_counter()
        make(runs, count)
        print(f"{count:,} folders written in {time.perf_counter() - begin:.0f} s")
        results = measure(runs, count)  # written before the folders are removed, which takes as long
        write("index", {"runs": count, "seeds_per_config": SEEDS, "targets": TARGETS, **results}, started)


def measure(runs: Path, count: int) -> dict[str, Any]:
    begin, cpu = time.perf_counter(), time.process_time()
    index = Index(runs, fresh=True)
    index.refresh()
    rebuild, used = time.perf_counter() - begin, time.process_time() - cpu
    size = index.file.stat().st_size
    index.close()
    print(f"rebuild: {count / rebuild:,.0f} runs/s ({count / used:,.0f} by processor time), {size / 1e6:.0f} MB")
    found: dict[str, Any] = {"rebuild_runs_per_s": round(count / rebuild), "index_mb": round(size / 1e6, 1),
                             "rebuild_runs_per_cpu_s": round(count / used)}  # fmt: skip
    for name, words in {"list_s": [], "group_s": ["--by", "algo.lr"], "filter_s": ["algo.lr<1e-3"]}.items():
        before = children_s()
        done = [timed([BIN / "relab", "runs", runs, *words]) for _ in range(REPEATS)]
        cpu = round((children_s() - before) / REPEATS, 2)
        load = [round(each.load, 2) for each in done]
        found[name] = summary([each.seconds for each in done], 2) | {"load": load, "cpu_s": cpu}
        print(f"{name}: median {found[name]['median']} s of {found[name]['samples']}, load {load}, processor {cpu} s")
    return found


def children_s() -> float:
    """Processor seconds of the processes that have ended: what a quiet machine would take, about."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make(root: Path, count: int) -> None:
    """Folders as a small run leaves them, but for the rows of its metrics."""
    words = {"env": "cartpole", "algo.lr": "0.001234", "seed": "0"}
    values = layers.to_dict(layers.resolve([Layer("command line", words)]).config)
    text = format_yaml(values)
    facts = {"schema": 1, "status": "finished", "threads": 1, "command": "relab train ppo env=cartpole", "parent": None,
             "spec": {"env": "cartpole-v1", "horizon": 500, "agents": 1}, "packages": provenance.packages(),
             "machine": provenance.machine()}  # fmt: skip
    head = encode(facts | {"id": "ID", "seed": -7, "heartbeat": "2026-11-01T00:10:00.000Z", "created": "DATE"}, True)
    root.mkdir(parents=True)
    same = {"metrics.jsonl": encode({"step": 2048, "axis": "agent_steps", "return/mean": 21.0}), "events.jsonl": b""}
    for i in range(count):
        folder = f"{root}/run-{i:06d}"
        os.mkdir(folder)
        lr, seed = 1e-4 + 1e-7 * (i // SEEDS), i % SEEDS
        date = f"2026-11-01T{i // 3600 % 24:02d}:{i // 60 % 60:02d}:{i % 60:02d}.000Z"
        meta = head.replace(b'"ID"', b'"%012x"' % i).replace(b"-7", b"%d" % seed).replace(b"DATE", date.encode())
        body = text.replace("0.001234", repr(lr)).replace("\nseed: 0", f"\nseed: {seed}")
        files = {"meta.json": meta, "config.yaml": body.encode(), "evals.jsonl": evaluation(i, 0) + evaluation(i, 2048)}
        for name, data in files.items():
            with open(f"{folder}/{name}", "wb", 0) as file:
                file.write(data)
        for name, data in same.items():  # nobody reads them here: links to a few files
            if i % 10_000 == 0:
                (root.parent / name).unlink(missing_ok=True)
                (root.parent / name).write_bytes(data)
            os.link(root.parent / name, f"{folder}/{name}")


def evaluation(i: int, step: int) -> bytes:
    episodes = [{"seed": k, "return": float(i % 400 + k), "length": 20 + k, "success": None, "end": "fell"}
                for k in range(10)]  # fmt: skip
    row = {"step": step, "axis": "agent_steps", "noise": None, "episodes": episodes}
    return encode({**row, "mode": "det"}) + encode({**row, "mode": "sampled"})


if __name__ == "__main__":
    main()
