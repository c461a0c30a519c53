"""What stands folded below the first screen? Run info, health, scales, metrics, probes, samples and the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relab.base.text import number
from relab.record import evaluations
from relab.record.history import Column, History
from relab.report import course, scales
from relab.report.curves import curve
from relab.report.parts import Examined, Section, local_time, section, table
from relab.report.schedule import schedule
from relab.runs.grouping import Group, Run, shown
from relab.schedules.evaluated import PROBE
from relab.stats import mean_interval, slope

CORE = (
    "return/mean", "eval/return_det", "eval/return_sampled", "eval/success_det", "policy/entropy", "policy/kl",
    "policy/clip_share", "policy/std_mean", "value/explained_variance", "value/loss", "value/td_loss", "value/w_norm",
    "value/teacher_error", "policy/rho2_mean", "policy/tracking_gap", "optim/grad_norm", "optim/lr",
)  # fmt: skip
SAMPLES = (
    "return/mean", "policy/entropy", "policy/kl", "value/explained_variance", "value/td_loss", "value/teacher_error",
    "policy/tracking_gap", "policy/rho2_mean", "value/w_norm", "optim/grad_norm",
)  # fmt: skip
INFO = (
    "name", "id", "intent", "parent", "seed", "status", "why", "created", "heartbeat", "config_hash", "commit",
    "threads", "deterministic",
)  # fmt: skip
TIMES = ("created", "heartbeat")
HEALTH_HEAD = ["severity", "rule", "where", "finding", "since step", "explained by", "try"]
METRIC_HEAD = [
    "metric", "last", "min", "max", "mean of last k", "slope of last k per 1,000 steps", "k", "not finite",
]  # fmt: skip
HEAD_TAIL = 8
SMALL = 8  # small figures on a page
DETAILED = 24  # runs with sections of their own; more would bury the page


def sections(groups: list[Group], health: Section, full: bool) -> list[Section]:
    """All folded sections, in the order of a run report: info, health, scales, metrics, probes, samples, the rest."""
    runs = [run for group in groups for run in group.runs]
    if len(runs) == 1:
        return [info(runs[0], full), health, *_made(small_curves(groups)), *_of_run(runs[0], full)]
    parts = [health, overview(groups), *_made(small_curves(groups))]
    for run in runs[:DETAILED]:
        parts += [replace(part, run=run.name) for part in [info(run, full), *_of_run(run, full)]]
    if len(runs) > DETAILED:
        parts.append(section("Other runs", lines=[f"runs without a section here: {len(runs) - DETAILED}"]))
    return parts


def _of_run(run: Run, full: bool) -> list[Section]:
    parts = [scales.section_of(run), core(run), all_metrics(run)]
    parts += [probes(run), samples(run), evaluated(run), schedule(run), course.stages(run), course.throughput(run)]
    parts += [course.events(run), course.artefacts(run), course.problems(run), patch(run) if full else None]
    return [part for part in parts if part]


def _made(part: Section | None) -> list[Section]:
    return [part] if part else []


# ---- Health, overview


def health(examined: Examined) -> Section:
    """Everything `relab examine` knows: fired, shared with the reference, limits, muted, not checked."""
    fired, shared = examined.fired, examined.shared
    tables = [table(HEALTH_HEAD, [_finding_row(f) for f in fired])] if fired else []
    if shared:
        tables.append(table(HEALTH_HEAD, [_finding_row(f) for f in shared], "Also in the reference"))
    if examined.muted:
        rows = [[slug, str(why)] for slug, why in examined.muted.items()]
        tables.append(table(["rule", "because"], rows, "Muted"))
    gone = [[str(g.get(k) or "") for k in ("slug", "run", "missing")] for g in examined.not_checked]
    if gone:
        tables.append(table(["rule", "run", "missing"], gone, "Not checked"))
    for title, key, head in (("Not read", "not_read", ["where", "why"]), ("Remarks", "remarks", ["run", "text"])):
        cells = [[str(row[name]) for name in head] for row in getattr(examined, key)]
        tables += [table(head, cells, title)] if cells else []
    first = f"{len(fired)} finding{'s' if len(fired) != 1 else ''}" if examined.done else "not examined"
    return section("Health", [first if fired or not examined.done else "no finding", *examined.limits], tables)


def _finding_row(f: dict[str, Any]) -> list[str]:
    return [f["severity"], f["slug"], f["where"], f["message"], _onset(f), str(f.get("explained_by") or ""), _tries(f)]


def _onset(finding: dict[str, Any]) -> str:
    at = finding.get("onset")
    return number(at["step"]) if isinstance(at, dict) and isinstance(at.get("step"), (int, float)) else ""


def _tries(finding: dict[str, Any]) -> str:
    tries = finding.get("try")
    return "; ".join(try_text(t) for t in tries) if isinstance(tries, list) else ""


def try_text(one: Any) -> str:
    if isinstance(one, dict):
        return f"{one.get('key')}: {_short(one.get('from'))} → {_short(one.get('to'))}"
    return str(one)


def _short(value: Any) -> str:
    """0.0067 for 0.006666666666666667."""
    return f"{value:.3g}" if isinstance(value, float) else shown(value)


def overview(groups: list[Group]) -> Section:
    rows = [[g.label, r.name, shown(r.seed), r.state, r.verdict.kind, number(r.verdict.final),
             _best(r)] for g in groups for r in g.runs]  # fmt: skip
    return section("Runs", [], [table(["config", "run", "seed", "status", "verdict", "last", "best (step)"], rows)])


def _best(run: Run) -> str:
    best = run.verdict.best
    return f"{number(best.mean)} ({best.step:,})" if best else ""


# ---- One run


def info(run: Run, full: bool) -> Section:
    meta = run.history.meta
    machine, packages = ({**facts} if isinstance(facts := meta.get(k), dict) else {} for k in ("machine", "packages"))
    rows = [(key, local_time(meta[key]) if key in TIMES and meta.get(key) else meta.get(key)) for key in INFO]
    rows = [("format", run.history.source), ("seed (from the name)", run.seed), *rows] if _foreign(run) else rows
    rows += [
        (key, machine.get(key))
        for key in (*(["host"] if full else []), "system", "cpu", "cores", "memory_mb", "python")
    ]
    rows += [(key, packages.get(key)) for key in ("relab", "torch", "numpy", "numba", "gymnasium")]
    rows += [("uncommitted changes", _patch_hash(meta)), ("untracked files", _untracked(meta))]
    return section("Run info", [], [table(["", ""], [[k, str(v)] for k, v in rows if v not in (None, "", [])])])


def _foreign(run: Run) -> bool:
    return run.history.source != "relab"


def _patch_hash(meta: dict[str, Any]) -> str:
    patch = meta.get("patch")
    if not isinstance(patch, dict) or not patch.get("bytes"):
        return ""
    return f"{patch['bytes']} bytes, sha256 {str(patch.get('sha256'))[:16]}"


def _untracked(meta: dict[str, Any]) -> str:
    untracked = meta.get("untracked")
    return str(untracked.get("count") or "") if isinstance(untracked, dict) else ""


def patch(run: Run) -> Section | None:
    kept = run.history.meta.get("patch")
    text = kept.get("text") if isinstance(kept, dict) else None
    return section("Uncommitted changes", code=str(text)) if text else None


def core(run: Run) -> Section | None:
    names = [name for name in CORE if name in run.history.columns]
    return metrics_section("Core metrics", run.history, names)


def all_metrics(run: Run) -> Section | None:
    names = sorted(n for n in run.history.columns if n not in CORE and not n.startswith("time/"))
    return metrics_section("All other metrics", run.history, names)


def metrics_section(title: str, history: History, names: list[str]) -> Section | None:
    rows = [metric_row(name, history.columns[name]) for name in names if len(history.columns[name].values)]
    return section(title, [], [table(METRIC_HEAD, rows)]) if rows else None


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
    if len(values) > 2 and (values == values[0]).all() and math.isfinite(values[0]):
        return "0"
    fit = slope(steps / 1000, values)
    if not math.isfinite(fit.slope):
        return "too few"
    if not math.isfinite(fit.high):
        return f"{fit.slope:.3g} ± ?"
    half = fit.high - fit.slope
    return f"{fit.slope:.3g} ± {half:.2g}" + ("" if abs(fit.slope) > half else " (flat)")


def samples(run: Run) -> Section | None:
    columns = {name: run.history.columns[name] for name in SAMPLES if name in run.history.columns}
    if not columns:  # a foreign run that names nothing as relab does
        columns = dict(list(run.history.columns.items())[:8])
    steps = sorted({int(s) for c in columns.values() for s in c.steps})
    cells = {name: dict(zip(c.steps.tolist(), c.values.tolist())) for name, c in columns.items()}
    rows = [[f"{s:,}", *(number(cells[n][s]) if s in cells[n] else "-" for n in columns)] for s in steps]
    head = ["step", *columns]
    if not rows:
        return None
    if len(rows) <= 2 * HEAD_TAIL:
        return section("Samples", [], [table(head, rows)])
    return section("Samples", [], [table(head, rows[:HEAD_TAIL], "Head"), table(head, rows[-HEAD_TAIL:], "Tail")])


def evaluated(run: Run) -> Section | None:
    rows = []
    for row in run.history.evals:
        for level in evaluations.evaluations([row], str(row.get("mode"))):
            played = list(evaluations.episodes(row))
            rows.append([_count(level.step), level.mode, *_eval_cells(evaluations.samples(played)), _ends(played)])
    head = ["step", "mode", "n", "mean", "95 % interval over episodes", "min", "max", "how they ended"]
    return section("Evaluations", [], [table(head, rows)]) if rows else None


def _count(step: Any) -> str:
    return f"{step:,}" if isinstance(step, int) else shown(step)


def _eval_cells(sample: list[float]) -> list[str]:
    returns = np.array(sample)
    with np.errstate(invalid="ignore"):
        mean = mean_interval(returns)
    ends = f"[{number(mean.low)}, {number(mean.high)}]" if math.isfinite(mean.low) else "none"
    return [str(mean.n), number(mean.mid), ends, number(float(returns.min())), number(float(returns.max()))]


def _ends(played: Sequence[Mapping[str, Any]]) -> str:
    ends = [str(e.get("end")) for e in played]
    return ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))


def probes(run: Run) -> Section | None:
    """A table per probe, a row per number it gives."""
    numbers: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for row in run.history.probes:
        step = row.get("step") if row.get("probe") != PROBE else None  # those have a section of their own
        for key, value in row.items():
            if isinstance(step, int) and key != "step" and type(value) in (int, float, bool):  # a flag as 0 and 1
                numbers.setdefault(str(row.get("probe")), {}).setdefault(key, []).append((step, float(value)))
    tables = [table(METRIC_HEAD, [metric_row(key, _column(pairs)) for key, pairs in parts.items()], name)
            for name, parts in numbers.items()]  # fmt: skip
    return section("Probes", [], tables) if tables else None


def _column(pairs: list[tuple[int, float]]) -> Column:
    return Column(np.array([s for s, _ in pairs], np.int64), np.array([v for _, v in pairs]))


def small_curves(groups: list[Group]) -> Section | None:
    """The core metrics of all groups as small figures in the same colours; foreign ones where there is room."""
    judged = {run.verdict.metric for group in groups for run in group.runs}
    logged = dict.fromkeys(name for group in groups for run in group.runs for name in run.history.columns)
    names = [name for name in (*CORE, *(n for n in logged if n.startswith("foreign/"))) if name in logged]
    chosen = [name for name in dict.fromkeys(names) if name not in judged][:SMALL]
    return section("Curves", [], figures=[curve(groups, name) for name in chosen]) if chosen else None
