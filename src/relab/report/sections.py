"""What does the first screen of a report say? Plain data from run folders; render.py turns it into pages.

Sentence, curve, outcome, findings, config diff, budget and status, what is not known, the command to repeat it. The
folded sections come from tables.py.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from relab import config, glossary, names
from relab.configs.views import MISSING, diff, flatten
from relab.history import History
from relab.jsonl import RecordError, read_json
from relab.report import gather, tables
from relab.report.gather import Group, Run, shown
from relab.report.share import Cleaner
from relab.report.verdict import finals, group_sentence, interval_text
from relab.screen import count, duration, number
from relab.stats import mean_interval

BAND_SEEDS = 3  # a band over fewer says nothing
TOP = 3  # findings on the first screen
QUIET_KEYS = ("seed", "algo.name", "env.name")  # in the title or the outcome already


def build(
    path: str | os.PathLike[str],
    findings: list[dict[str, Any]] | None = None,
    not_checked: list[dict[str, Any]] | None = None,
    full: bool = False,
    now: float | None = None,
) -> dict[str, Any]:
    """Everything a report says about the runs at or below `path`, safe to share unless `full`. Nothing is written."""
    groups = gather.load(path, now)
    runs = [run for group in groups for run in group.runs]
    found = _fired(findings or [], {group.key: group.label for group in groups})
    data = {
        "title": _title(Path(path), groups),
        "sentence": headline(Path(path), groups),
        "curve": curve(groups, found if len(runs) == 1 else []),
        "outcome": [outcome(group) for group in groups],
        "examined": findings is not None,
        "findings": top(found),
        "more_findings": len({f["slug"] for f in found}) - len(top(found)),
        "config": config_changes(groups),
        "budget": [_budget(group) for group in groups],
        "not_known": not_known(groups, findings is not None, not_checked or []),
        "commands": commands(groups),
        "sections": tables.sections(groups, found, not_checked or [], full),
        "full": full,
    }
    hosts = {str(m["host"]) for r in runs if isinstance(m := r.history.meta.get("machine"), dict) and m.get("host")}
    return Cleaner([Path(path)], hosts, full).clean(data)


def _title(path: Path, groups: list[Group]) -> str:
    runs = [run for group in groups for run in group.runs]
    if len(runs) == 1:
        return runs[0].name
    folder = path.resolve()
    name = folder.parent.name if folder.name == "runs" else folder.name
    configs = f"{len(groups)} configs, " if len(groups) > 1 else ""
    return f"{name}: {configs}{len(runs)} runs"


def _fired(findings: list[dict[str, Any]], labels: dict[str, str]) -> list[dict[str, Any]]:
    """Findings that are not shared with the reference, with the group's label instead of its hash."""
    fired = [f for f in findings if f.get("status", "fired") == "fired"]
    texts = ("slug", "severity", "message")
    return [{**f, **{k: str(f.get(k) or "") for k in texts}, "where": _where(f, labels)} for f in fired]


def top(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first finding of each rule, with how many more runs it was found in."""
    slugs = [f["slug"] for f in findings]
    first = [f for i, f in enumerate(findings) if f["slug"] not in slugs[:i]]
    more = [slugs.count(f["slug"]) - 1 for f in first]
    return [{**f, "where": f["where"] + (f" and {n} more" if n else "")} for f, n in zip(first, more)][:TOP]


def _where(finding: dict[str, Any], labels: dict[str, str]) -> str:
    group = str(finding.get("group") or "")
    return str(finding.get("run") or labels.get(group, group))


# ---- The sentence


def headline(path: Path, groups: list[Group]) -> str:
    """The experiment's answer where there is one; else one sentence per group."""
    answer = experiment_answer(path)
    if answer:
        return answer
    if len(groups) == 1:
        return _progress(groups[0]) + group_sentence([run.verdict for run in groups[0].distinct]) + "."
    parts = [f"{g.label}: {_lower(group_sentence([r.verdict for r in g.distinct]))}" for g in groups[:4]]
    rest = f"; and {len(groups) - 4} more configs" if len(groups) > 4 else ""
    return "; ".join(parts) + rest + "."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _progress(group: Group) -> str:
    """Said first of a run that is not at its end: what follows may change."""
    states = [run.state for run in group.runs]
    if "running" in states:
        step, total = last_step(group.runs[0].history), _total(group.runs[0].history)
        at = f" at {count(step)} of {count(total)} steps" if len(states) == 1 and total else ""
        return f"Still running{at}. So far: "
    gone = [s for s in ("failed", "stale", "interrupted") if s in states]
    return (
        f"{gone[0].capitalize()} at {count(last_step(group.runs[0].history))} steps. "
        if gone and len(states) == 1
        else ""
    )


def experiment_answer(path: Path) -> str | None:
    """The text of answer.json in the folder, or beside a folder `runs`."""
    folder = path.resolve()
    for place in (folder, folder.parent) if folder.name == "runs" else (folder,):
        try:
            found = read_json(place, "answer.json")
            texts = [str(answer["text"]) for answer in found["answers"]]
        except (RecordError, OSError, KeyError, TypeError):
            continue
        return f"{found.get('question', '')} {' '.join(texts)}".strip() if texts else None
    return None


# ---- The curve


def curve(groups: list[Group], findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Every seed as a line; mean and band where there are enough seeds; the random policy; the first onset."""
    metric = next((r.verdict.metric for g in groups for r in g.runs if r.verdict.metric), "")
    levels = dict.fromkeys(number(r.verdict.random.mean) for g in groups for r in g.runs if r.verdict.random)
    return {
        "metric": metric,
        "meaning": glossary.metric(metric).meaning if metric and glossary.known(metric) else "",
        "unit": glossary.metric(metric).unit if metric and glossary.known(metric) else "",
        "axis": next((g.runs[0].history.axes.get(metric, "agent_steps") for g in groups), "agent_steps"),
        "random": [float(level.replace(",", "")) for level in levels],  # several where environments differ
        "onset": onset(findings),
        "groups": [_lines(group, metric) for group in groups],
    }


def onset(findings: list[dict[str, Any]]) -> dict[str, Any] | None:
    for finding in findings:
        at = finding.get("onset")
        if isinstance(at, dict) and isinstance(at.get("step"), (int, float)):
            return {"step": at["step"], "slug": str(finding.get("slug", ""))}
    return None


def _lines(group: Group, metric: str) -> dict[str, Any]:
    lines = [_points(run) for run in group.runs if run.verdict.metric == metric]
    counted = [_points(run) for run in group.distinct if run.verdict.metric == metric]
    return {"label": group.label, "lines": lines, "band": band(counted)}


def _points(run: Run) -> dict[str, Any]:
    points = run.verdict.points
    return {"name": run.name, "seed": run.seed, "x": [p.step for p in points], "y": [p.mean for p in points]}


def band(lines: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Mean and 95 % interval at the steps that all seeds share; none under three seeds."""
    seeds = [dict(zip(line["x"], line["y"])) for line in lines]
    if len(seeds) < BAND_SEEDS:
        return None
    rows = [at for at in sorted(set.intersection(*(set(s) for s in seeds)))
            if all(math.isfinite(s[at]) for s in seeds)]  # fmt: skip
    ends = [mean_interval(np.array([s[at] for s in seeds])) for at in rows]
    if not ends:
        return None
    return {"x": rows, "mean": [e.mid for e in ends], "low": [e.low for e in ends], "high": [e.high for e in ends],
            "label": f"mean, {ends[0].level:.0%} interval (t), n = {len(seeds)} seeds"}  # fmt: skip


# ---- Outcome, config, budget


def outcome(group: Group) -> dict[str, Any]:
    """The last evaluation over seeds x episodes, with an interval or the reason why there is none."""
    runs = group.distinct
    values = [run.verdict.final for run in runs]
    episodes = sorted({run.verdict.points[-1].n for run in runs if run.verdict.points})
    found = finals([run.verdict for run in runs])
    metric = next((run.verdict.metric for run in runs if run.verdict.metric), "no metric")
    return {
        "label": group.label,
        "seeds": len(runs),
        "episodes": " to ".join(dict.fromkeys(str(n) for n in (episodes[:1] + episodes[-1:]))) or "0",
        "metric": metric,
        "value": interval_text(found) if found.n else "none",
        "sure": f"all {found.n} seeds equal: no interval"
        if found.low == found.high
        else _sure(found.n, found.level, runs),
        "each": [{"seed": shown(run.seed), "value": number(v), "run": run.name} for run, v in zip(runs, values)],
    }


def _sure(n: int, level: float, runs: list[Run]) -> str:
    if n >= 2:
        return f"mean of {n} seeds, {level:.0%} interval (t)"
    points = runs[0].verdict.points if runs else []
    noise = f"; over its episodes ± {number(points[-1].se)} (standard error)" if points and points[-1].n > 1 else ""
    return f"{n} seed: no interval over seeds{noise}"


def config_changes(groups: list[Group]) -> dict[str, Any]:
    """Keys that differ between the groups; for one group, from its parent, or from what relab ships."""
    if len(groups) > 1:
        keys = gather.differing(groups)
        rows = [[key, *(shown(flatten(g.config).get(key, MISSING)) for g in groups)] for key in keys]
        return {"against": "Config keys that differ", "head": ["key", *(g.label for g in groups)], "rows": rows}
    run = groups[0].runs[0].history
    against, base = _base(run)
    if base is None:
        changed = {k: v for k, v in run.provenance.items() if str(v).partition(" ")[0] not in ("defaults", "preset")}
        flat = flatten(run.config)
        rows = [
            [key, shown(flat.get(key, MISSING)), str(source)]
            for key, source in changed.items()
            if key not in QUIET_KEYS
        ]
        return {"against": "Config keys that were set", "head": ["key", "value", "from"], "rows": rows}
    rows = [[c.key, shown(c.a), shown(c.b)] for c in diff(base, run.config) if c.key not in QUIET_KEYS]
    return {"against": f"Config against its {against}", "head": ["key", against, "this run"], "rows": rows}


def _base(run: History) -> tuple[str, dict[str, Any] | None]:
    """The parent's config where it lies beside the run; else relab's preset for this algorithm and environment."""
    parent = run.meta.get("parent")
    if isinstance(parent, str) and parent:
        try:
            return "parent", config.read_yaml(
                names.find(Path(parent).name, run.folder.resolve().parent) / "config.yaml"
            )
        except (LookupError, OSError, config.YamlError):
            pass  # told in not_known
    chosen = {key: v for key in ("algo.name", "env.name") if isinstance(v := flatten(run.config).get(key), str)}
    try:
        return "preset", config.to_dict(config.resolve([config.Layer("defaults", chosen)]).config) if len(
            chosen
        ) == 2 else None
    except (config.ConfigError, LookupError, ImportError):
        return "", None


def _budget(group: Group) -> dict[str, str]:
    """How far, how long, how it ended."""
    states = [run.state for run in group.runs]
    status = ", ".join(f"{states.count(s)} {s}" if len(states) > 1 else s for s in dict.fromkeys(states))
    whys = dict.fromkeys(str(why) for run in group.runs if (why := run.history.meta.get("why")))
    steps = [last_step(run.history) for run in group.runs]
    total = _total(group.runs[0].history)
    done = " to ".join(dict.fromkeys((count(min(steps)), count(max(steps)))))
    return {
        "label": group.label,
        "status": status + (f" ({'; '.join(list(whys)[:2])})" if whys else ""),
        "steps": f"{done} of {count(total)} steps" if total else f"{done} steps",
        "time": duration(sum(tables.elapsed(run.history) for run in group.runs))
        + (" in all" if len(states) > 1 else ""),
    }


def last_step(run: History) -> int:
    return max((int(c.steps[-1]) for c in run.columns.values() if len(c.steps)), default=0)


def _total(run: History) -> int | None:
    total = run.config.get("total_steps")
    return total if isinstance(total, int) and not isinstance(total, bool) else None


# ---- What one cannot conclude; how to repeat it


def not_known(groups: list[Group], examined: bool, not_checked: list[dict[str, Any]]) -> list[str]:
    """Limits of what the report can say."""
    runs = [run for group in groups for run in group.runs]
    said = []
    few = min(len(group.distinct) for group in groups)
    if few < 5:
        of = " of a config" if len(groups) > 1 else ""
        said.append(f"{few} seed{'s' if few > 1 else ''}{of}: relab answers from 5 on")
    twice = sum(len(group.runs) - len(group.distinct) for group in groups)
    if twice:
        said.append(f"{twice} runs repeat a seed of their config and are not counted in the outcome")
    if len({str(flatten(group.config).get("env.name")) for group in groups}) > 1:
        said.append("several environments on one axis: their returns do not compare")
    said += _evaluation_limits(runs) + _provenance_limits(runs)
    rows = sum(len(run.history.problems) for run in runs)
    if rows:
        said.append(f"{rows} files or rows could not be read")
    missed = {str(gone.get("slug")) for gone in not_checked}
    if missed or not examined:
        some = ", ".join(sorted(missed)[:2]) + (f" and {len(missed) - 2} more" if len(missed) > 2 else "")
        said.append(f"not checked: {some}" if examined else "health was not examined")
    return said


def _evaluation_limits(runs: list[Run]) -> list[str]:
    sizes = sorted({p.n for run in runs for p in run.verdict.points[-1:]})
    if any(run.verdict.metric == "return/mean" for run in runs):
        return ["no evaluations: judged by training episodes, sampled actions"]
    said = [f"{sizes[0]} episodes per evaluation" + (f" to {sizes[-1]}" if len(sizes) > 1 else "")] if sizes else []
    if any(run.verdict.solved is not None and run.verdict.solved == run.verdict.points[-1].step for run in runs):
        said.append("training stopped at the first good evaluation, so its value is picked high")
    return said + ([] if any(run.verdict.random for run in runs) or not sizes else ["no random baseline"])


def _provenance_limits(runs: list[Run]) -> list[str]:
    metas = [run.history.meta for run in runs]
    said = []
    if not all(meta.get("commit") for meta in metas):
        said.append("no commit recorded")
    if any(isinstance(p := meta.get("patch"), dict) and p.get("bytes") for meta in metas):
        said.append("the code had uncommitted changes")
    orphans = [run for run in runs if run.history.meta.get("parent") and _base(run.history)[0] != "parent"]
    return said + (["the parent was not found beside the run"] if orphans else [])


def commands(groups: list[Group]) -> list[str]:
    """As typed; one per group, because seeds differ in one word."""
    found = [str(group.runs[0].history.meta.get("command") or "") for group in groups]
    return [text for text in found if text]
