"""What stands folded below the first screen? Run info, health, scales, metrics, probes, samples and the rest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.base.numbers import is_number
from relab.base.text import count, number, plural
from relab.config.views import flatten
from relab.health.engine import NotChecked
from relab.health.rule import Finding
from relab.record import evaluations
from relab.record.history import Column, History
from relab.record.state import NAMED as NAMED_GROUP
from relab.report import course, scales, sure, words
from relab.report.curves import curve, possible
from relab.report.parts import PageHealth, PlacedFinding, Section, Table, local_time, section, table
from relab.report.samples import samples
from relab.report.schedule import schedule
from relab.runs.grouping import Group, Run, shown
from relab.runs.sentences import poor_words, verdict_words
from relab.schedules.evaluated import PROBE
from relab.stats import slope

CORE = (
    "return/mean", "eval/return_det", "eval/return_sampled", "eval/success_det", "policy/entropy", "policy/kl",
    "policy/clip_share", "policy/std_mean", "value/explained_variance", "value/loss", "value/td_loss", "value/w_norm",
    "value/teacher_error", "policy/rho2_mean", "policy/tracking_gap", "optim/grad_norm", "optim/lr",
)  # fmt: skip
KEY_SETTINGS = (
    "total_steps", "outer_iters", "algo.envs", "algo.steps", "algo.trajectories", "algo.horizon", "algo.epochs",
    "algo.minibatches", "algo.minibatch", "algo.lr", "algo.gamma", "algo.lam", "algo.clip", "algo.ent_coef",
    "algo.n_step", "algo.tau", "algo.alpha_w", "algo.alpha_pi", "algo.beta", "algo.sigma_mu", "algo.sigma_pi",
    "algo.theta_mu_offset_scale", "env.p_mix",
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
ACTIONS = {"det": "Deterministic actions", "sampled": "Sampled actions"}
ALL = "all"  # what a check of several runs together is told of
NAMED = 3  # runs that a cell names; more are counted
SMALL = 8  # small figures on a page
DETAILED = 24  # runs with sections of their own; more would bury the page


def sections(groups: list[Group], examined: PageHealth, full: bool) -> list[Section]:
    """All folded sections, in the order of a run report: info, health, scales, metrics, probes, samples, the rest."""
    poor = poor_words([run.verdict for group in groups for run in group.runs])
    about, findings = health(examined, poor), [placed.finding for placed in (*examined.fired, *examined.shared)]
    runs = [run for group in groups for run in group.runs]
    if len(runs) == 1:
        return [info(runs[0], full), about, *_made(small_curves(groups)), *_of_run(runs[0], full, findings)]
    parts = [about, overview(groups), *_made(small_curves(groups))]
    for run in runs[:DETAILED]:
        parts += [replace(part, run=run.name) for part in [info(run, full), *_of_run(run, full, findings)]]
    if len(runs) > DETAILED:
        parts.append(section("Other runs", lines=[_left_out(len(runs) - DETAILED)]))
    return parts


def _left_out(n: int) -> str:
    return f"{plural(n, 'run')} more, listed under Runs: `relab report` with the folder of one makes its own page"


def _of_run(run: Run, full: bool, findings: Sequence[Finding]) -> list[Section]:
    mine = [finding for finding in findings if finding.run == run.name]
    parts = [scales.section_of(run, mine), core(run), all_metrics(run)]
    parts += [probes(run), samples(run), evaluated(run), schedule(run), course.stages(run), course.throughput(run)]
    parts += [course.events(run), course.artefacts(run), course.problems(run), patch(run) if full else None]
    return [part for part in parts if part]


def _made(part: Section | None) -> list[Section]:
    return [part] if part else []


# ---- Health, overview


def health(examined: PageHealth, poor: str = "") -> Section:
    """Everything `relab examine` knows: fired, shared with the reference, limits, muted, not checked."""
    fired, shared = examined.fired, examined.shared
    tables = [table(HEALTH_HEAD, [_finding_row(f) for f in fired])] if fired else []
    if shared:
        tables.append(table(HEALTH_HEAD, [_finding_row(f) for f in shared], "Also in the reference"))
    if examined.muted:
        rows = [[slug, str(why)] for slug, why in examined.muted.items()]
        tables.append(table(["rule", "because"], rows, "Muted"))
    if examined.not_checked:
        tables.append(unchecked(examined.not_checked))
    unread, remarks = [[x.where, x.why] for x in examined.not_read], [[x.run, x.text] for x in examined.remarks]
    tables += [table(["where", "why"], unread, "Not read")] if unread else []
    tables += [table(["run", "text"], remarks, "Remarks")] if remarks else []
    return section("Health", [passed(examined, poor), *examined.limits], tables)


def passed(examined: PageHealth, poor: str = "") -> str:
    """PASS or FAIL in a line; what was not checked is said beside a PASS, which it limits. `poor`: what became of runs
    that did not learn, whom no PASS is given."""
    if not examined.done:
        return "not examined"
    fired = examined.fired
    count = plural(len(fired), "finding") if fired else "no finding"
    bad = [f for f in fired if f.finding.severity in ("error", "warning")]
    gone = len({g.slug for g in examined.not_checked})
    count += ", none of them a warning or an error" if fired and not bad else ""
    unchecked = f" ({plural(gone, 'rule')} not checked)" if gone else ""
    if bad:
        return f"FAIL: {count}"
    return f"NO CAUSE FOUND ({poor}): {count}{unchecked}" if poor else f"PASS: {count}{unchecked}"


def unchecked(gone: Sequence[NotChecked]) -> Table:
    """What is missing, with the rules that wait for it; which runs lack it only where there are several."""
    rows = not_checked(gone)
    several = len({each.run for each in gone} - {ALL}) > 1 and any(row[2] != ALL for row in rows)
    head = ["missing", "rules that need it", "runs"]
    return table(head[: 2 + several], [row[: 2 + several] for row in rows], "Not checked")


def not_checked(gone: Sequence[NotChecked]) -> list[list[str]]:
    """A row for each thing that is missing, the one that most rules wait for first."""
    rules: dict[str, dict[str, None]] = {}
    runs: dict[str, dict[str, None]] = {}
    for each in gone:
        missing = each.missing or "not known"
        rules.setdefault(missing, {})[each.slug] = None
        runs.setdefault(missing, {})[each.run] = None
    most = len({run for some in runs.values() for run in some} - {ALL})
    return [
        [missing, ", ".join(slugs), ALL if len(runs[missing]) == most > 1 else _named(list(runs[missing]))]
        for missing, slugs in sorted(rules.items(), key=lambda item: -len(item[1]))
    ]


def _named(runs: list[str]) -> str:
    return ", ".join(runs[:NAMED]) + (f" and {len(runs) - NAMED} more" if len(runs) > NAMED else "")


def _finding_row(placed: PlacedFinding) -> list[str]:
    f = placed.finding
    since, advice = "" if f.onset is None else number(f.onset), "; ".join(map(try_text, f.suggest))
    return [f.severity or "", f.slug, placed.where, f.message, since, f.explained_by or "", advice]


def try_text(one: Any) -> str:
    if isinstance(one, dict):
        why = f" ({one['why']})" if one.get("why") else ""
        return f"{one.get('name', one.get('key'))}: {_short(one.get('from'))} → {_short(one.get('to'))}{why}"
    return str(one)


def _short(value: Any) -> str:
    """0.0067 for 0.006666666666666667."""
    return f"{value:.3g}" if isinstance(value, float) else shown(value)


def overview(groups: list[Group]) -> Section:
    rows = [[g.label, r.name, r.seed_name, r.state, verdict_words(r.verdict), number(r.verdict.final),
             _best(r)] for g in groups for r in g.runs]  # fmt: skip
    return section("Runs", [], [table(["config", "run", "seed", "status", "verdict", "last", "best (step)"], rows)])


def _best(run: Run) -> str:
    best = run.verdict.peak
    return f"{number(best.mean)} ({best.step:,})" if best else ""


# ---- One run


def info(run: Run, full: bool) -> Section:
    meta = run.history.meta
    machine, packages = ({**facts} if isinstance(facts := meta.get(k), dict) else {} for k in ("machine", "packages"))
    rows = [(key, local_time(meta[key]) if key in TIMES and meta.get(key) else meta.get(key)) for key in INFO]
    named = run.seed if meta.get("seed") is None and run.history.config.get("seed") is None else None
    rows = [("format", run.history.source), ("seed (from the name)", named), *rows] if _foreign(run) else rows
    rows += [
        (key, machine.get(key))
        for key in (*(["host"] if full else []), "system", "cpu", "cores", "memory_mb", "python")
    ]
    rows += [(key, packages.get(key)) for key in ("relab", "torch", "numpy", "numba", "gymnasium")]
    rows.insert(0, ("key settings", key_settings(run.history.config)))
    rows += [("uncommitted changes", _patch_hash(meta)), ("untracked files", _untracked(meta))]
    said = [[words.INFO.get(k, k), _fact(k, v)] for k, v in rows if v not in (None, "", [])]
    return section("Run info", [], [table(["", ""], [row for row in said if row[1]])])


def _fact(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key == "config_hash" and str(value).startswith(NAMED_GROUP):  # a run without settings: its name tells its group
        return ""
    if key == "memory_mb" and is_number(value):
        return f"{value / 1024:.0f} GB"
    return words.reason(str(value)) if key == "why" else str(value)


def key_settings(config: Mapping[str, Any]) -> str:
    """The settings that a reader asks for first, in one line, as far as the run has them."""
    flat = flatten(config)
    named = {key.rpartition(".")[2]: next((flat[k] for k in (key, f"foreign.{key.rpartition('.')[2]}", f"foreign.{key}")
                                           if flat.get(k) is not None), None) for key in KEY_SETTINGS}  # fmt: skip
    return ", ".join(f"{name}={shown(value)}" for name, value in named.items() if value is not None)


def _foreign(run: Run) -> bool:
    return run.history.source != "relab"


def _patch_hash(meta: Document) -> str:
    patch = meta.get("patch")
    if not isinstance(patch, dict) or not patch.get("bytes"):
        return ""
    return f"{patch['bytes']} bytes, sha256 {str(patch.get('sha256'))[:16]}"


def _untracked(meta: Document) -> str:
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
    part = metrics_section("All other metrics", run.history, names)
    return replace(part, tables=[explained(each) for each in part.tables]) if part else None


def metrics_section(title: str, history: History, names: list[str]) -> Section | None:
    rows = [metric_row(name, history.columns[name]) for name in names if len(history.columns[name].values)]
    return section(title, [], [metric_table(rows)]) if rows else None


def explained(metrics: Table) -> Table:
    """With the glossary's words beside names that are codes; another tool's names have none there."""
    said = [words.meaning(row[0]) for row in metrics.rows]
    if not any(said):
        return metrics
    return replace(metrics, head=[*metrics.head, "what it is"], rows=[[*r, s] for r, s in zip(metrics.rows, said)])


def metric_table(rows: list[list[str]], caption: str = "") -> Table:
    """The last column counts what is not finite; most runs have nothing of the kind, and no column."""
    columns = len(METRIC_HEAD) - (not any(row[-1] for row in rows))
    return table(METRIC_HEAD[:columns], [row[:columns] for row in rows], caption)


def metric_row(name: str, column: Column) -> list[str]:
    """k is the last quarter of the rows, ten at least; the slope carries the half width of its 95 % interval."""
    values = column.values
    k = min(len(values), max(10, len(values) // 4))
    good, tail = values[np.isfinite(values)], values[-k:]
    last = tail[np.isfinite(tail)]
    ends = [_number(float(f(good))) if len(good) else "none" for f in (np.min, np.max)]
    bad = len(values) - len(good)
    return [words.both(name), _number(float(values[-1])), *ends, _number(float(last.mean())) if len(last) else "none",
            slope_text(column.steps[-k:], tail), str(k), str(bad) if bad else ""]  # fmt: skip


def _number(value: float) -> str:
    """Counters grow large: 1.19M instead of 1.189e+06."""
    return count(value) if 1e6 <= abs(value) < 1e12 else number(value)


def slope_text(steps: np.ndarray, values: np.ndarray) -> str:
    if len(values) > 2 and (values == values[0]).all() and math.isfinite(values[0]):
        return "0"
    fit = slope(steps / 1000, values)
    if not math.isfinite(fit.slope):
        return "too few"
    if not math.isfinite(fit.high):
        return f"{_slope(fit.slope)} (noise not known)"
    half = fit.high - fit.slope
    return f"{_slope(fit.slope)} ± {_slope(half, 2)}" + ("" if abs(fit.slope) > half else " (flat)")


def _slope(value: float, digits: int = 3) -> str:
    return f"{value:,.0f}" if 99.5 <= abs(value) < 1e6 else f"{value:.{digits}g}"


def evaluated(run: Run) -> Section | None:
    modes: dict[str, list[list[str]]] = {}
    for row in run.history.evals:
        for level in evaluations.evaluations([row], str(row.get("mode"))):
            played = list(evaluations.episodes(row))
            cells = _eval_cells(evaluations.samples(played), possible(f"eval/return_{level.mode}", [run]))
            modes.setdefault(level.mode, []).append([_count(level.step), *cells, _ends(played)])
    head = ["step", "n", "mean", "95 % interval over episodes", "min", "max", "how they ended"]
    tables = [table(head, together(rows), ACTIONS.get(mode, f"{mode} actions")) for mode, rows in modes.items()]
    return section("Evaluations", [], tables) if tables else None


def together(rows: list[list[str]]) -> list[list[str]]:
    """Rows that follow each other and say the same as one: 24,576 to 131,072 (53 times)."""
    merged = []
    for _, some in itertools.groupby(rows, key=lambda row: row[1:]):
        same = list(some)
        steps = f"{same[0][0]} to {same[-1][0]} ({len(same)} times)" if len(same) > 1 else same[0][0]
        merged.append([steps, *same[0][1:]])
    return merged


def _count(step: Any) -> str:
    return f"{step:,}" if isinstance(step, int) else shown(step)


def _eval_cells(sample: list[float], limits: tuple[float, float]) -> list[str]:
    mean = sure.over_episodes(sample, limits)
    ends = f"[{number(mean.low)}, {number(mean.high)}]" if math.isfinite(mean.low) else "none"
    return [str(mean.n), number(mean.mid), ends, number(min(sample)), number(max(sample))]


def _ends(played: Sequence[Mapping[str, Any]]) -> str:
    ends = [str(e.get("end")) for e in played]
    return ", ".join(f"{ends.count(end)} {end.replace('_', ' ')}" for end in dict.fromkeys(ends))


def probes(run: Run) -> Section | None:
    """A table per probe, a row per number it gives."""
    numbers: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for row in run.history.probes:
        multi = str(row.get("probe")).startswith(PROBE)
        step = None if multi else row.get("step")  # those have a section of their own
        for key, value in row.items():
            if isinstance(step, int) and key != "step" and type(value) in (int, float, bool):  # a flag as 0 and 1
                numbers.setdefault(str(row.get("probe")), {}).setdefault(key, []).append((step, float(value)))
    tables = [metric_table([metric_row(key, _column(pairs)) for key, pairs in parts.items()], name)
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
