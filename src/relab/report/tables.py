"""What stands folded below the first screen? Run info, health, metrics, evaluations, throughput, events, artefacts.

A section is {title, lines, tables: [{caption, head, rows}], code}; cells are text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from relab.history import Column, History
from relab.report.gather import Group, Run, shown
from relab.screen import count, duration, number
from relab.stats import mean_interval, slope

CORE = (
    "return/mean", "eval/return_det", "eval/return_sampled", "eval/success_det", "policy/entropy", "policy/kl",
    "policy/clip_share", "policy/std_mean", "value/explained_variance", "value/loss", "optim/grad_norm", "optim/lr",
)  # fmt: skip
SAMPLES = ("return/mean", "policy/entropy", "policy/kl", "value/explained_variance", "optim/grad_norm")
INFO = (
    "name", "id", "intent", "parent", "seed", "status", "why", "created", "heartbeat", "config_hash", "commit",
    "threads", "deterministic",
)  # fmt: skip
HEAD_TAIL = 5
MOST_EVENTS = 60
DETAILED = 24  # runs with sections of their own; more would bury the page


def sections(
    groups: list[Group], findings: list[dict[str, Any]], not_checked: list[dict[str, Any]], full: bool
) -> list[dict]:
    """All folded sections: health once, the rest per run."""
    runs = [run for group in groups for run in group.runs]
    found = [health(findings, not_checked)]
    if len(runs) > 1:
        found.append(overview(groups))
    several = len(runs) > 1
    for run in runs[:DETAILED]:
        parts = [core, all_metrics, samples, evaluations, probes, throughput, events, artefacts, problems]
        made = [info(run, full), *(part(run) for part in parts)] + ([patch(run)] if full else [])
        for part in made:
            if part:
                found.append({**part, "run": run.name if several else ""})
    if len(runs) > DETAILED:
        found.append(section("Other runs", lines=[f"{len(runs) - DETAILED} more runs have no sections here"]))
    return found


def section(
    title: str, lines: Iterable[str] = (), tables: Iterable[dict[str, Any]] = (), code: str = ""
) -> dict[str, Any]:
    return {"title": title, "lines": list(lines), "tables": list(tables), "code": code, "run": ""}


def table(head: list[str], rows: list[list[str]], caption: str = "") -> dict[str, Any]:
    return {"caption": caption, "head": head, "rows": rows}


# ---- Health, overview


def health(findings: list[dict[str, Any]], not_checked: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [[f["severity"], f["slug"], f["where"], f["message"], _onset(f), _tries(f)] for f in findings]
    gone = [[str(g.get("slug") or ""), str(g.get("run") or ""), str(g.get("missing") or "")] for g in not_checked]
    made = [table(["severity", "rule", "where", "finding", "since step", "try"], rows)] if rows else []
    if gone:
        made.append(table(["rule", "run", "missing"], gone, "Not checked"))
    return section("Health", [] if rows else ["no finding"], made)


def _onset(finding: dict[str, Any]) -> str:
    at = finding.get("onset")
    return number(at["step"]) if isinstance(at, dict) and isinstance(at.get("step"), (int, float)) else ""


def _tries(finding: dict[str, Any]) -> str:
    tries = finding.get("try")
    return "; ".join(try_text(t) for t in tries) if isinstance(tries, list) else ""


def try_text(one: Any) -> str:
    if isinstance(one, dict):
        return f"{one.get('key')}: {shown(one.get('from'))} → {shown(one.get('to'))}"
    return str(one)


def overview(groups: list[Group]) -> dict[str, Any]:
    rows = [[g.label, r.name, shown(r.seed), r.state, r.verdict.kind, number(r.verdict.final),
             _best(r)] for g in groups for r in g.runs]  # fmt: skip
    return section("Runs", [], [table(["config", "run", "seed", "status", "verdict", "last", "best (step)"], rows)])


def _best(run: Run) -> str:
    best = run.verdict.best
    return f"{number(best.mean)} ({best.step:,})" if best else ""


# ---- One run


def info(run: Run, full: bool) -> dict[str, Any]:
    meta = run.history.meta
    machine, packages = ({**found} if isinstance(found := meta.get(k), dict) else {} for k in ("machine", "packages"))
    rows = [(key, meta.get(key)) for key in INFO]
    rows += [
        (key, machine.get(key))
        for key in (*(["host"] if full else []), "system", "cpu", "cores", "memory_mb", "python")
    ]
    rows += [(key, packages.get(key)) for key in ("relab", "torch", "numpy", "numba", "gymnasium")]
    rows += [("uncommitted changes", _patch_hash(meta)), ("untracked files", _untracked(meta))]
    return section("Run info", [], [table(["", ""], [[k, str(v)] for k, v in rows if v not in (None, "", [])])])


def _patch_hash(meta: dict[str, Any]) -> str:
    found = meta.get("patch")
    if not isinstance(found, dict) or not found.get("bytes"):
        return ""
    return f"{found['bytes']} bytes, sha256 {str(found.get('sha256'))[:16]}"


def _untracked(meta: dict[str, Any]) -> str:
    found = meta.get("untracked")
    return str(found.get("count") or "") if isinstance(found, dict) else ""


def patch(run: Run) -> dict[str, Any] | None:
    found = run.history.meta.get("patch")
    text = found.get("text") if isinstance(found, dict) else None
    return section("Uncommitted changes", code=str(text)) if text else None


def core(run: Run) -> dict[str, Any] | None:
    names = [name for name in CORE if name in run.history.columns]
    return metrics_section("Core metrics", run.history, names)


def all_metrics(run: Run) -> dict[str, Any] | None:
    names = sorted(n for n in run.history.columns if n not in CORE and not n.startswith("time/"))
    return metrics_section("All other metrics", run.history, names)


def metrics_section(title: str, history: History, names: list[str]) -> dict[str, Any] | None:
    rows = [metric_row(name, history.columns[name]) for name in names if len(history.columns[name].values)]
    head = ["metric", "last", "min", "max", "mean of last k", "slope of last k per 1,000 steps", "k", "not finite"]
    return section(title, [], [table(head, rows)]) if rows else None


def metric_row(name: str, column: Column) -> list[str]:
    """k is the last quarter of the rows, ten at least; the slope carries the half width of its 95 % interval."""
    values = column.values
    k = min(len(values), max(10, len(values) // 4))
    good, tail = values[np.isfinite(values)], values[-k:]
    last = tail[np.isfinite(tail)]
    ends = [number(float(f(good))) if len(good) else "none" for f in (np.min, np.max)]
    bad = len(values) - len(good)
    return [name, number(float(values[-1])), *ends, number(float(last.mean())) if len(last) else "none",
            slope_text(column.steps[-k:], tail), str(k), str(bad) if bad else ""]  # fmt: skip


def slope_text(steps: np.ndarray, values: np.ndarray) -> str:
    if len(values) > 2 and np.ptp(values) == 0:
        return "0"
    found = slope(steps / 1000, values)
    if not math.isfinite(found.slope):
        return "too few"
    if not math.isfinite(found.high):
        return f"{found.slope:.3g} ± ?"
    half = found.high - found.slope
    return f"{found.slope:.3g} ± {half:.2g}" + ("" if abs(found.slope) > half else " (flat)")


def samples(run: Run) -> dict[str, Any] | None:
    columns = {name: run.history.columns[name] for name in SAMPLES if name in run.history.columns}
    if not columns:
        return None
    steps = sorted({int(s) for c in columns.values() for s in c.steps})
    cells = {name: dict(zip(c.steps.tolist(), c.values.tolist())) for name, c in columns.items()}
    rows = [[f"{s:,}", *(number(cells[n][s]) if s in cells[n] else "-" for n in columns)] for s in steps]
    head = ["step", *columns]
    if len(rows) <= 2 * HEAD_TAIL:
        return section("Samples", [], [table(head, rows)])
    return section("Samples", [], [table(head, rows[:HEAD_TAIL], "Head"), table(head, rows[-HEAD_TAIL:], "Tail")])


def evaluations(run: Run) -> dict[str, Any] | None:
    rows = []
    for row in run.history.evals:
        found = row.get("episodes")
        episodes = (
            [e for e in found if isinstance(e, dict) and e.get("end") != "unused"] if isinstance(found, list) else []
        )
        returns = np.array([e["return"] for e in episodes if isinstance(e.get("return"), (int, float))], np.float64)
        if len(returns):
            rows.append([shown(row.get("step")), str(row.get("mode")), *_eval_cells(returns), _ends(episodes)])
    head = ["step", "mode", "n", "mean", "95 % interval over episodes", "min", "max", "how they ended"]
    return section("Evaluations", [], [table(head, rows)]) if rows else None


def _eval_cells(returns: np.ndarray) -> list[str]:
    with np.errstate(invalid="ignore"):
        found = mean_interval(returns)
    ends = f"[{number(found.low)}, {number(found.high)}]" if math.isfinite(found.low) else "none"
    return [str(found.n), number(found.mid), ends, number(float(returns.min())), number(float(returns.max()))]


def _ends(episodes: list[dict[str, Any]]) -> str:
    ends = [str(e.get("end")) for e in episodes]
    return ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))


def probes(run: Run) -> dict[str, Any] | None:
    found: dict[str, list[float]] = {}
    for row in run.history.probes:
        if isinstance(row.get("value"), (int, float)):
            found.setdefault(str(row.get("probe")), []).append(float(row["value"]))
    rows = [[name, number(v[-1]), number(min(v)), number(max(v)), str(len(v))] for name, v in found.items()]
    return section("Probes", [], [table(["probe", "last", "min", "max", "measurements"], rows)]) if rows else None


# ---- Time, events, files


def elapsed(run: History) -> float:
    """Seconds over all parts of a run that was resumed: the clock starts again at each resume."""
    column = run.columns.get("time/elapsed_s")
    if column is None or not len(column.values):
        return math.nan
    ends = np.append(np.diff(column.values) < 0, True)
    return float(column.values[ends].sum())


def throughput(run: Run) -> dict[str, Any] | None:
    columns, seconds = run.history.columns, elapsed(run.history)
    if not math.isfinite(seconds) or seconds <= 0:
        return None
    parts = {
        n: float(np.nansum(columns[f"time/{n}_s"].values))
        for n in ("collect", "update", "eval", "save", "log")
        if f"time/{n}_s" in columns
    }
    steps, training = int(columns["time/elapsed_s"].steps[-1]), parts.get("collect", 0) + parts.get("update", 0)
    lines = [f"end to end: {count(steps / seconds)} steps/s ({steps:,} steps in {duration(seconds)})"]
    if training:
        lines.append(f"in training (collect and update): {count(steps / training)} steps/s")
    rows = [[name, duration(s), f"{s / seconds:.0%}"] for name, s in parts.items()]
    return section("Throughput", lines, [table(["part", "time", "share"], rows)])


def events(run: Run) -> dict[str, Any] | None:
    kept = [e for e in run.history.events if e.get("kind") != "checkpoint"]
    gone = len(run.history.events) - len(kept)
    lines = [f"{gone} checkpoints not listed"] if gone else []
    if len(kept) > MOST_EVENTS:
        lines.append(f"the last {MOST_EVENTS} of {len(kept)}")
    rows = [
        [shown(e.get("step")), str(e.get("kind")), str(e.get("time") or ""), _event_text(e)]
        for e in kept[-MOST_EVENTS:]
    ]
    return section("Events", lines, [table(["step", "kind", "time (UTC)", "what"], rows)]) if rows or lines else None


def _event_text(event: dict[str, Any]) -> str:
    rest = {k: v for k, v in event.items() if k not in ("step", "axis", "kind", "time", "pid")}
    return ", ".join(f"{k}: {_event_text(v) if isinstance(v, dict) else v}" for k, v in rest.items())


def artefacts(run: Run) -> dict[str, Any]:
    """Files of the run folder, relative to it; links are not followed."""
    folder = run.history.folder
    files = sorted(
        p for p in [*folder.glob("*"), *folder.glob("checkpoints/*"), *folder.glob("media/*")] if not p.is_symlink()
    )
    kept = [p for p in files if p.name not in ("report.md", "report.html")]  # made from the rest, as this page is
    rows = [[p.relative_to(folder).as_posix() + ("/" if p.is_dir() else ""), _size(p)] for p in kept]
    return section("Artefacts", [], [table(["file", "size"], rows)])


def _size(path: Path) -> str:
    inside = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    return f"{count(sum(p.stat().st_size for p in inside))}B"


def problems(run: Run) -> dict[str, Any] | None:
    rows = [[p.file, shown(p.line), p.message] for p in run.history.problems]
    return section("What could not be read", [], [table(["file", "line", "problem"], rows)]) if rows else None
