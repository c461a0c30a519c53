"""How did the schedule go? Stages, gates and multi-evaluations of one run, relab's own or another program's.

Both kinds of run give the same rows: probes named multi_eval, events of kind stage, gate and alert. What a log does not
say (single deaths, survival by episode) is left out, and a line says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.base.text import number
from relab.record.history import History
from relab.report.drawings import Bars, Columns, Dots, Drawing, Evaluation, Plan, Polar, Timeline
from relab.report.parts import Section, Table, section, table
from relab.runs.grouping import Run
from relab.schedules import change, evaluated
from relab.schedules.command import parse_command

Rows = list[Document]
MOST = 12  # rows of a table of bins or seeds
BINS = 25
LEAST = 5  # evaluations of a trend


def schedule(run: Run) -> Section | None:
    """The section, where a run has multi-evaluations or a gate that decided."""
    history, rows = run.history, rows_of(run.history)
    decisions = decisions_of(history)
    if not rows and not decisions:
        return None
    lines = [*_size(history, rows), *_full(history), *_changes(rows), *_gate_lines(decisions), *_alert_lines(history)]
    tables = [t for t in (_evaluations(rows, decisions), _by_stage(rows), _sectors(rows), _clusters(rows),
                          _worst(run, rows)) if t]  # fmt: skip
    return section("Schedule", lines, tables, figures=figures(history, rows, decisions))


def rows_of(history: History) -> Rows:
    """The multi-evaluations in order; of one that a resumed run made again, the last."""
    good = [row for row in history.probes if row.get("probe") == evaluated.PROBE and isinstance(row.get("values"), dict)
            and isinstance(row.get("iteration"), int)]  # fmt: skip
    return [row for _, row in sorted({row["iteration"]: row for row in good}.items())]


def decisions_of(history: History) -> dict[str, dict[int, str]]:
    """gate -> iteration -> decision."""
    decisions: dict[str, dict[int, str]] = {}
    for event in history.events:
        at, said = event.get("iteration", event.get("step")), event.get("decision")
        if event.get("kind") == "gate" and isinstance(at, int) and isinstance(said, str):
            decisions.setdefault(str(event.get("gate", "gate")), {})[at] = said
    return decisions


# ---- Lines


def _size(history: History, rows: Rows) -> list[str]:
    """Episodes x agents as run, and as configured where that is another number."""
    if not rows:
        return ["no multi-evaluation in the log"]
    n, agents = rows[-1].get("n"), rows[-1]["values"].get("agents")
    each = f" x {agents / n:.0f} agents" if n and agents else ""
    said = rows[-1].get("configured") or _claimed(history)
    other = f"; the settings say {said} episodes" if said and said != n else ""
    shared = "intervals are over episodes, whose agents share one danger"
    return [f"{len(rows)} multi-evaluations of {n} episodes{each}{other}; {shared}"]


def _full(history: History) -> list[str]:
    """The full evaluation at the end, apart from those that gates looked at."""
    rows = [row for row in history.probes if row.get("probe") == evaluated.FULL and isinstance(row.get("values"), dict)]
    return [f"full evaluation after iteration {row.get('iteration')}, {row.get('n')} episodes: avg_final"
            f" {_ranged(row, 'avg_final')}, min_final {_shown(row['values'].get('min_final'))}, deaths in step one"
            f" {_counted(row['values'])}" for row in rows[-1:]]  # fmt: skip


def _claimed(history: History) -> int | None:
    command = history.meta.get("command")
    claims = parse_command(command).claims if isinstance(command, str) else []
    return claims[0].episodes if claims else None


def _changes(rows: Rows) -> list[str]:
    lines = []
    ones = change.counts_change(rows)
    if ones is not None:
        known = ones.p_clustered is not None
        by = f"; by episode (design effect {ones.design:.2g}) p = {ones.p_clustered:.2g}" if known else ""
        lines.append(f"deaths in step one: {sum(ones.counts)} of {ones.trials:,} ({ones.rate:.2%}); the same at every"
                     f" evaluation? chi2 = {ones.chi2:.2f}, df {ones.df}, p = {ones.p:.2g}{by}")  # fmt: skip
    names = dict.fromkeys(n for row in rows for n in row["values"] if n.startswith(("avg_final", "early_death_")))
    for name in list(names)[:2]:
        trend = change.trend(rows, name)
        if trend is not None and trend.n < LEAST:
            lines.append(f"{name}: {trend.first:.3f} at first, {trend.last:.3f} at last ({trend.n} evaluations, too few"
                         " for a trend)")  # fmt: skip
        elif trend is not None:
            ends = f"[{trend.low:+.3f}, {trend.high:+.3f}], p = {trend.p:.2g} ({trend.n} evaluations)"
            lines.append(f"{name}: {trend.first:.3f} at first, {trend.last:.3f} at last; {trend.per_ten:+.3f} in ten"
                         f" iterations {ends}")  # fmt: skip
    return lines


def _gate_lines(decisions: Mapping[str, Mapping[int, str]]) -> list[str]:
    by_gate = {gate: Counter(rows.values()).most_common() for gate, rows in decisions.items()}
    return [f"{gate}: {', '.join(f'{n} {word}' for word, n in counts)}" for gate, counts in by_gate.items()]


def _alert_lines(history: History) -> list[str]:
    fired = [e for e in history.events if e.get("kind") == "alert"]
    return [f"alert at iteration {e.get('iteration', e.get('step'))}: {e.get('message')}" for e in fired]


# ---- Tables


def _evaluations(rows: Rows, decisions: Mapping[str, Mapping[int, str]]) -> Table | None:
    if not rows:
        return None
    early = next((n for n in rows[-1]["values"] if n.startswith("early_death_")), "")
    rolling = change.medians([row["values"].get(early, math.nan) for row in rows])
    head = ["iteration", "stage", "type", "avg_final", "min_final", early or "early death", "median of 3", "death_p10",
            "step one", *decisions]  # fmt: skip
    cells = []
    for row, median in zip(rows, rolling):
        values = row["values"]
        line = [str(row["iteration"]), str(row.get("stage") or "-"), str(row.get("type") or "-"),
                _ranged(row, "avg_final"), _shown(values.get("min_final")), _ranged(row, early), _shown(median),
                _ranged(row, "death_p10"), _counted(values)]  # fmt: skip
        cells.append(line + [of_gate.get(row["iteration"], "-") for of_gate in decisions.values()])
    return table(head, cells, "Multi-evaluations (95 % intervals clustered by episode, where the log allows them)")


def _shown(value: Any) -> str:
    return number(float(value)) if isinstance(value, (int, float)) and math.isfinite(value) else "-"


def _ranged(row: Mapping[str, Any], name: str) -> str:
    low, high = ((row.get(side) or {}).get(name) for side in ("low", "high"))
    ends = "" if low is None or high is None else f" [{number(low)}, {number(high)}]"
    return _shown(row["values"].get(name)) + ends


def _counted(values: Mapping[str, Any]) -> str:
    count, n = values.get("step_one_count"), values.get("agents")
    return f"{count:.0f} of {n:,.0f} ({count / n:.2%})" if count is not None and n else "-"


def _by_stage(rows: Rows) -> Table | None:
    """Pooled over the evaluations of a stage, and of a type: what stages are compared by."""
    groups: dict[tuple[str, str], Rows] = {}
    for row in rows:
        for kind in ("stage", "type"):
            if row.get(kind):
                groups.setdefault((kind, str(row[kind])), []).append(row)
    if not groups:
        return None
    cells = []
    for (kind, name), members in groups.items():
        sums = change.pooled(members)
        early = next((n for n in sums if n.startswith("early_death_")), "")
        top = evaluated.concentration(_starts(members)).get("step_one_top_share")
        cells.append([kind, name, str(len(members)), _shown(sums["avg_final"]), _shown(sums["min_final"]),
                      _shown(sums.get(early)), _shown(sums["death_p10"]), _counted(sums), _shown(top)])  # fmt: skip
    head = ["by", "name", "evaluations", "avg_final", "min_final", "early death", "death_p10", "step one",
            "largest bin's share"]  # fmt: skip
    return table(head, cells, "By stage and type of what was trained (means over evaluations; counts added)")


def _starts(rows: Rows) -> list[Document]:
    """Every episode, with the iteration, stage and type of what was trained when it was played."""
    return [{**each, **{key: row.get(key) for key in ("iteration", "stage", "type")}}
            for row in rows for each in row.get("episodes") or []]  # fmt: skip


def _sectors(rows: Rows) -> Table | None:
    cells = evaluated.by_sector(_starts(rows))
    if not any(cell.starts for cell in cells):
        return None
    lines = [[f"{c.sector} ({(45 * k - 22.5) % 360:g} to {45 * k + 22.5:g} degrees)", str(c.starts),
              str(c.deaths), f"{c.deaths / c.agents:.2%}" if c.agents else "-"]
             for k, c in enumerate(cells)]  # fmt: skip
    return table(["direction", "starts", "deaths in step one", "of its agents"], lines,
                 "Where the danger headed at the start: 45 degrees each, centred on the direction")  # fmt: skip


def _clusters(rows: Rows) -> Table | None:
    starts = _starts(rows)
    clusters = [cell for cell in evaluated.clusters(starts) if cell.deaths]
    if not clusters:
        return None
    lines = [[f"{c.first:g} to {c.last:g}", f"{c.slow:g} to {c.fast:g}", c.sectors, str(c.starts), str(c.deaths),
              f"{c.share:.1%}", *(_deaths_by(starts, c, key) for key in ("stage", "type"))]
             for c in clusters[:MOST]]  # fmt: skip
    more = f", the first {MOST} of {len(clusters)}" if len(clusters) > MOST else ""
    return table(["heading", "speed", "direction", "starts", "deaths", "share of them", "by stage", "by type"], lines,
                 f"Deaths in step one by heading and speed{more}; the largest of many bins of few deaths is large by"
                 " chance")  # fmt: skip


def _deaths_by(starts: list[Document], cell: evaluated.Bin, key: str) -> str:
    """The deaths of a bin by what was trained: `ne 3, main 5`."""
    mine, counts = [s for s in starts if cell.holds(s)], Counter[str]()
    for each in mine:
        counts[str(each.get(key) or "-")] += each.get("step_one") or 0
    return ", ".join(f"{name} {n}" for name, n in counts.most_common() if n)


def _worst(run: Run, rows: Rows) -> Table | None:
    """The episodes that went worst, with the command that plays them again."""
    starts = _starts(rows)
    known = evaluated.worst(starts, MOST)
    if known:
        chosen = [(e, f"{e['final']:.1%} lived", e.get("first_death")) for e in known]
    else:
        hit = sorted((e for e in starts if e.get("step_one")), key=lambda e: -e["step_one"])[:MOST]
        chosen = [(e, f"{e['step_one']} died in step one", 1) for e in hit]
    lines = [[str(e["iteration"]), str(e.get("stage") or "-"), str(e.get("type") or "-"), str(e["seed"]), said,
              _shown(first), _shown(e.get("heading")), _shown(e.get("speed")), *_replay(run, rows, e)]
             for e, said, first in chosen]  # fmt: skip
    head = ["iteration", "stage", "type", "seed", "outcome", "first death", "heading", "speed"]
    head += ["play it again"] if run.history.trained_by_relab else []
    return table(head, lines, "Worst episodes") if lines else None


def _replay(run: Run, rows: Rows, episode: Mapping[str, Any]) -> list[str]:
    """The command; of another program's run there is none."""
    if not run.history.trained_by_relab:
        return []
    row = next(row for row in rows if row["iteration"] == episode["iteration"])
    place = [e["seed"] for e in row["episodes"]].index(episode["seed"])
    return [f"relab video {run.name} --multi {episode['iteration']} --episode {place}"]


# ---- Figures


def figures(history: History, rows: Rows, decisions: Mapping[str, Mapping[int, str]]) -> list[Drawing]:
    drawn: list[Drawing] = [timeline(history, rows, decisions)]
    drawn += [_against(rows, name) for name in _moved(rows)]
    cells = evaluated.by_sector(_starts(rows))
    drawn += [Polar(cells)] if any(c.starts for c in cells) else []
    drawn += by_type(rows)
    deaths = [(step, n) for row in rows for step, n in row.get("deaths") or []]
    return drawn + ([_histogram(deaths, rows)] if deaths else [])


def by_type(rows: Rows) -> list[Drawing]:
    """Bars for each type of stage, where there are two or more: survival, early deaths, deaths in step one."""
    groups: dict[str, Rows] = {}
    for row in rows:
        if row.get("type"):
            groups.setdefault(str(row["type"]), []).append(row)
    if len(groups) < 2:
        return []
    pooled = {f"{name} ({len(members)})": change.pooled(members) for name, members in groups.items()}
    early = [n for n in next(iter(pooled.values())) if n.startswith("early_death_")]
    shares = {"avg_final": "avg_final", **{n: n for n in early[:1]}, "step_one_share": "died in step one"}
    return [Columns({name: value for name, sums in pooled.items() if (value := _share(sums, key)) is not None},
                    f"{up}, by type (evaluations)") for key, up in shares.items()]  # fmt: skip


def _share(sums: Mapping[str, Any], key: str) -> float | None:
    if key == "step_one_share" and sums.get("agents"):
        return float(sums["step_one_count"] / sums["agents"]) if sums.get("step_one_count") is not None else None
    value = sums.get(key)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def timeline(history: History, rows: Rows, decisions: Mapping[str, Mapping[int, str]]) -> Timeline:
    ends = [row["iteration"] for row in rows] + [at for of_gate in decisions.values() for at in of_gate]
    for name in ("data/iteration", "foreign/schedule/tail_stage_index"):
        if name in history.columns:
            column = history.columns[name]
            ends.append(int(column.values.max() if name == "data/iteration" else column.steps.max()))
    end = max(ends)
    shown = [Evaluation(row["iteration"], row["values"].get("avg_final"), row["values"].get("min_final"),
                        (row.get("low") or {}).get("avg_final"), (row.get("high") or {}).get("avg_final"))
             for row in rows]  # fmt: skip
    gates = {name: sorted(of_gate.items()) for name, of_gate in decisions.items()}
    return Timeline("avg_final (line), min_final (grey)", end, shown, bands(history, end), gates)


def bands(history: History, end: int) -> list[Plan]:
    """Each plan's stages as (from, to, label), from the events."""
    starts_of: dict[str, dict[int, str]] = {}
    for event in history.events:
        at = event.get("iteration", event.get("step"))
        if event.get("kind") == "stage" and isinstance(at, int):
            starts_of.setdefault(str(event.get("schedule", "stage")), {})[at] = stage_label(event)
    plans = []
    for name, moves in starts_of.items():
        starts = sorted(moves)
        ends = [*(start - 1 for start in starts[1:]), end]
        stages = [(a - 1, max(b, a), moves[a]) for a, b in zip(starts, ends)]
        plans.append(Plan(name.removesuffix("_label"), stages))
    return plans


def stage_label(event: Mapping[str, Any]) -> str:
    """A stage by its type first, where it has one: the source's name may speak of another.

    >>> stage_label({"stage": "stage2:seeds_ne", "type": "main"}), stage_label({"stage": "1:ne", "type": "ne"})
    ('main: stage2:seeds_ne', '1:ne')
    """
    stage, kind = str(event.get("stage")), event.get("type")
    return stage if not kind or stage.partition(":")[2] == kind else f"{kind}: {stage}"


def _moved(rows: Rows) -> list[str]:
    """Settings that were not the same at every evaluation; at most two."""
    names = dict.fromkeys(name for row in rows for name in row.get("settings") or {})
    values = {name: {(row.get("settings") or {}).get(name) for row in rows} for name in names}
    return [name for name, settings in values.items() if len(settings) > 1 and None not in settings][:2]


def _against(rows: Rows, name: str) -> Dots:
    points = [(float(row["settings"][name]), row["values"]["avg_final"], str(row["iteration"])) for row in rows
              if row["values"].get("avg_final") is not None]  # fmt: skip
    return Dots(points, name, "avg_final, labelled by iteration")


def _histogram(deaths: Sequence[tuple[int, int]], rows: Rows) -> Bars:
    horizon = max([row.get("horizon") or 0 for row in rows] + [step for step, _ in deaths])
    steps, counts = np.array(deaths).T
    heights, edges = np.histogram(steps, bins=BINS, range=(0, horizon), weights=counts)
    up = f"deaths over {len(rows)} multi-evaluations"
    return Bars(edges.tolist(), heights.tolist(), "step of the death", up)
