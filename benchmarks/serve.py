"""How fast is the dashboard with many runs and long curves, and how much memory does it take?

python -m benchmarks.serve              a folder of 5,000 runs, a curve of a million rows; writes results/serve.json
python -m benchmarks.serve --runs 100000   the same with 100,000 runs, which take some minutes to make and to read

For each folder: how long until the server answers and has read it, the first byte and the whole of every page, what a
person waits for in a browser (open, filter, sort, show more, scroll), and the memory of the server.

The server is the command itself, in a process of its own. Frames are counted in chromium where it is there.
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from relab.base.jsonl import encode
from relab.config import layers
from relab.config.layers import Layer

RESULTS = Path(__file__).parent / "results" / "serve.json"
PATHS = {
    "list": "/runs",
    "by_outcome": "/runs?sort=outcome",
    "words": "/runs/table?q=c00042",
    "setting": "/runs/table?q=lr%3C1e-4",
    "outcome": "/runs/table?q=outcome%3E490",
    "more": "/runs/table?top=500",
    "today": "/today",
    "compare": "/compare",
    "notebook": "/notebook",
}
SEEDS, ROWS, CALLS, ZOOMS = 5, 1_000_000, 15, 60
SCROLLS = 90  # frames of a walk down the table


@dataclass(frozen=True)
class Serve:
    """Measure `relab serve`."""

    runs: int = 5_000
    """runs of the folder, five seeds a config"""
    rows: int = ROWS
    """rows of the long curve"""
    indexed: int = 100_000
    """runs that stand in the index alone, for the search"""
    out: Path = RESULTS
    """where the numbers go"""


def main() -> None:
    args = tyro.cli(Serve)
    with tempfile.TemporaryDirectory(prefix="relab-serve-") as place:
        os.environ["XDG_CACHE_HOME"] = f"{place}/cache"
        many, long = Path(place) / "many", Path(place) / "long"
        make_many(many, args.runs)
        make_long(long / "long-s0", args.rows)
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        body = {"commit": commit(), "machine": machine, "load": os.getloadavg()[0],
                "many": measure_many(many, args.runs), "long": measure_long(long, args.rows),
                "indexed": measure_indexed(Path(place) / "indexed", args.indexed)}  # fmt: skip
    known = json.loads(args.out.read_text()) if args.out.is_file() else {}
    args.out.write_text(json.dumps({**known, str(args.runs): body}, indent=1) + "\n")
    print(json.dumps(body, indent=1))


def commit() -> str:
    run = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return run.stdout.strip()


# ---- Folders


def make_many(root: Path, runs: int) -> None:
    """Finished runs of relab's form: settings, a head and two evaluations each."""
    base = layers.to_dict(layers.resolve([Layer("made", {"env": "cartpole"})]).config)
    spec = {"env": "cartpole-v1", "horizon": 500, "reward_low": 1.0, "reward_high": 1.0}
    for number in range(runs):
        config, seed = divmod(number, SEEDS)
        folder = root / f"sweep-{config // 100:03d}" / f"c{config:05d}-s{seed}"
        folder.mkdir(parents=True)
        settings = {**base, "seed": seed, "algo": {**base["algo"], "lr": 1e-5 * (1 + config), "envs": 8 << config % 4}}
        (folder / "config.yaml").write_text(layers.format_yaml(settings))
        meta = {"schema": 1, "status": "finished", "id": f"{number:012x}", "seed": seed, "spec": spec,
                "created": "2026-11-01T00:00:00.000Z", "heartbeat": "2026-11-01T00:10:00.000Z"}  # fmt: skip
        (folder / "meta.json").write_bytes(encode(meta, indent=True))
        rows = b"".join(_evaluation(step, 10.0 + (config * 7 + seed * 13 + step) % 490) for step in (0, 40_960))
        (folder / "evals.jsonl").write_bytes(rows)
        (folder / "metrics.jsonl").write_bytes(encode({"step": 40_960, "axis": "agent_steps", "policy/kl": 0.01}))


def _evaluation(step: int, value: float) -> bytes:
    episodes = [{"seed": i, "return": value, "length": 9, "success": None, "end": "fell"} for i in range(5)]
    return encode({"step": step, "axis": "agent_steps", "mode": "det", "noise": None, "episodes": episodes})


def make_long(folder: Path, rows: int) -> None:
    make_many(folder.parent / "made", 1)
    (folder.parent / "made" / "sweep-000" / "c00000-s0").rename(folder)
    with open(folder / "metrics.jsonl", "wb") as file:
        for i in range(rows):
            file.write(b'{"step":%d,"axis":"agent_steps","policy/kl":%.6f}\n' % (i + 1, (i * 7919 % 10007) / 10007))


# ---- The server


class Server:
    def __init__(self, root: Path):
        command = [sys.executable, "-m", "relab.cli", "serve", str(root), "--port", "0"]
        self.began = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        match = re.search(r"at (http://\S+)/", self.process.stdout.readline())
        assert match is not None
        self.address, self.started = match[1], time.perf_counter() - self.began

    def get(self, path: str) -> tuple[float, float, bytes]:
        """Seconds to the first byte and to the last, and what came."""
        began = time.perf_counter()
        with urllib.request.urlopen(self.address + path, timeout=600) as answer:
            first = answer.read(1)
            at_first = time.perf_counter() - began
            rest = answer.read()
        return at_first, time.perf_counter() - began, first + rest

    def memory_mb(self, what: str = "VmRSS") -> float:
        """Now, or at the highest (VmHWM)."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return float(re.search(rf"{what}:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]

    def cpu_s(self) -> float:
        """Seconds of a core that the server took so far: on a busy machine the clock on the wall says little."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)


def times(server: Server, path: str, calls: int = CALLS) -> dict[str, float]:
    """Milliseconds: median and worst, of the first byte and of the whole."""
    before = server.cpu_s()
    every = [server.get(path)[:2] for _ in range(calls)]
    cpu = 1000 * (server.cpu_s() - before) / calls
    firsts, wholes = ([1000 * each[i] for each in every] for i in (0, 1))
    return {"first_byte_ms": round(statistics.median(firsts), 1), "first_byte_worst_ms": round(max(firsts), 1),
            "whole_ms": round(statistics.median(wholes), 1), "whole_worst_ms": round(max(wholes), 1),
            "cpu_ms": round(cpu, 1)}  # fmt: skip


def measure_many(root: Path, runs: int) -> dict[str, Any]:
    server = Server(root)
    try:
        wait_for(server, f"{runs // SEEDS:,} groups")
        body: dict[str, Any] = {"runs": runs, "start_s": round(server.started, 2),
                                "indexed_s": round(time.perf_counter() - server.began, 1)}  # fmt: skip
        body["memory_mb_before"] = round(server.memory_mb())
        for name, path in PATHS.items():
            body[name] = times(server, path)
        for _ in range(100 if runs <= 10_000 else 10):
            server.get("/runs/table?q=outcome%3E400")
        body["browser"] = browse(server)
        body["memory_mb_after"] = round(server.memory_mb())
        body["memory_mb_peak"] = round(server.memory_mb("VmHWM"))
        return body
    finally:
        server.close()


def browse(server: Server) -> dict[str, Any] | None:
    """Milliseconds that a person waits at the table of runs, from key or click to the rows; None without chromium."""
    if (browser := chromium()) is None:
        return None
    try:
        page = browser.page(1440, 900)
        page.open(f"{server.address}/runs", "document.querySelector('tbody.group')")
        opened = page.run(
            "(t => [t.responseStart, t.domContentLoadedEventEnd])(performance.getEntriesByType('navigation')[0])"
        )
        page.run("""window.timed = (act) => new Promise(done => { const began = performance.now();
          const seen = new MutationObserver(() => { seen.disconnect();
            requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))); });
          seen.observe(document.querySelector('#table'), { childList: true }); act(); });
          window.filtered = (words) => timed(() => { document.querySelector('#q').value = words;
            document.querySelector('#filter').dispatchEvent(new Event('input')); });""")
        body = {"first_byte_ms": round(opened[0], 1), "open_ms": round(opened[1], 1)}
        acts = {
            "search": "filtered('c00042')", "filter": "filtered('lr<1e-4')", "all": "filtered('')",
            "sort": "timed(() => document.querySelector('[data-sort=outcome]').click())",
            "show_more": "timed(() => document.querySelector('#more').click())",
        }  # fmt: skip
        for name, act in acts.items():
            body[f"{name}_ms"] = round(page.run(act), 1)
        gaps = page.run(f"""(async () => {{ const gaps = []; let last = performance.now();
          const step = (document.documentElement.scrollHeight - innerHeight) / {SCROLLS};
          for (let i = 0; i < {SCROLLS}; i++) {{ scrollTo(0, step * i); await new Promise(requestAnimationFrame);
            const now = performance.now(); gaps.push(now - last); last = now; }}
          return gaps.slice(1).sort((a, b) => a - b); }})()""")
        body["rows"] = page.run("document.querySelectorAll('tbody.group').length")
        body["scroll_frame_ms"] = round(gaps[len(gaps) // 2], 1)
        body["scroll_p95_ms"] = round(gaps[int(len(gaps) * 0.95)], 1)
        return body
    finally:
        browser.close()


def chromium() -> Any:
    """The browser of the tests; None where there is none."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from browser import CHROMIUM, Browser

    return Browser() if CHROMIUM else None


def measure_indexed(root: Path, runs: int) -> dict[str, Any]:
    """Seconds of a core to list and to search so many runs; their folders are not made, the index is filled by hand."""
    from relab.runs.glance import Glance
    from relab.runs.index import Index
    from relab.web import query
    from relab.web.bench import Bench
    from relab.web.pages.runs import table_html
    from relab.web.shelf import Shelf

    root.mkdir()
    index, configs = Index(root), dict[bytes, int]()
    for number in range(runs):
        config, seed = divmod(number, SEEDS)
        settings = {
            "algo.name": "ppo",
            "env.name": "cartpole-v1",
            "algo.lr": 1e-6 * (1 + config),
            "algo.envs": 8 << config % 4,
        }
        glance = Glance(id=f"{number:012x}", env="cartpole-v1", algo="ppo", seed=seed, status="finished", steps=40_960)
        glance.sign, glance.settings = 1e9 + number, settings
        glance.metric, glance.outcome = "eval/return_det", float(number * 7 % 490)
        index._put(f"/c{config:05d}-s{seed}".encode(), "", 1, f"c{config:05d}-s{seed}", glance, configs)
    index.db.commit()
    index.close()
    bench = Bench(root, "", Shelf(root), root / "queue")
    body: dict[str, Any] = {"runs": runs}
    questions = {
        "first_list": {},
        "list": {},
        "words": {"q": "c00042"},
        "setting": {"q": "lr<1e-4"},
        "by_outcome": {"sort": "outcome"},
    }
    for name, params in questions.items():
        began = time.process_time()
        table_html(bench, query.parse(params))
        body[f"{name}_cpu_s"] = round(time.process_time() - began, 2)
    bench.shelf.close()
    return body


def wait_for(server: Server, text: str) -> None:
    while text.encode() not in server.get("/runs/table?top=1")[2]:
        time.sleep(0.5)


def measure_long(root: Path, rows: int) -> dict[str, Any]:
    server = Server(root)
    try:
        wait_for(server, "1 group")
        path = "/api/curve?r=long-s0&metric=policy/kl&width=1400"
        began, before = time.perf_counter(), server.cpu_s()
        server.get(path)
        body: dict[str, Any] = {"rows": rows, "first_read_s": round(time.perf_counter() - began, 2)}
        body["first_read_cpu_s"] = round(server.cpu_s() - before, 2)
        body["whole"] = times(server, path)
        body["zoomed"] = times(server, f"{path}&from={rows // 3}&to={rows // 2}")
        body["frames"] = frames(server, rows)
        body["memory_mb"] = round(server.memory_mb())
        return body
    finally:
        server.close()


def frames(server: Server, rows: int) -> dict[str, float] | None:
    """Milliseconds that the page takes to draw one step of a zoom, with the rows that it has; None without chromium."""
    if (browser := chromium()) is None:
        return None
    try:
        page = browser.page(1440, 900)
        there = "relab.charts.find(c => c.figure.dataset.metric === 'policy/kl')?.plot"
        page.open(f"{server.address}/run/long-s0?find=kl", there)
        script = f"""(async () => {{
          const chart = relab.charts.find(c => c.figure.dataset.metric === 'policy/kl'), took = [], gaps = [];
          let last = performance.now();
          for (let i = 0; i < {ZOOMS}; i++) {{
            await new Promise(requestAnimationFrame);
            const now = performance.now(); gaps.push(now - last); last = now;
            relab.view.from = {rows} * i / {3 * ZOOMS}; relab.view.to = {rows} * (1 - i / {3 * ZOOMS});
            chart.plot.setScale("x", {{ min: relab.view.from, max: relab.view.to }});
            chart.plot.redraw();
            await null; took.push(performance.now() - now);
          }}
          const sorted = a => a.slice(1).sort((x, y) => x - y), mid = a => sorted(a)[a.length >> 1];
          const top = a => sorted(a)[Math.floor(a.length * .95) - 1];
          return [mid(took), top(took), mid(gaps), top(gaps), chart.data.lines[0].x.length]; }})()"""
        draw, worst, gap, slow, points = page.run(script)
        numbers = {"draw_ms": draw, "draw_p95_ms": worst, "frame_ms": gap, "frame_p95_ms": slow}
        return {name: round(value, 2) for name, value in numbers.items()} | {
            "frames_per_s": round(1000 / gap, 1),
            "points_drawn": points,
        }
    finally:
        browser.close()


if __name__ == "__main__":
    main()
