"""How is a comparison told? A screen of lines; words from logs lose their control characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relab.base.places import printable as clean
from relab.base.text import number, plural
from relab.comparison.build import Result
from relab.comparison.numbers import LEAST, Peak
from relab.comparison.pairs import Pair
from relab.comparison.profile import Share
from relab.comparison.settings_text import KEYS, LABEL, others, side_by_side
from relab.comparison.settings_text import short as short
from relab.comparison.task import Task
from relab.comparison.variant import Mean, Threshold, Variant
from relab.comparison.wording import beside, seeds_words
from relab.runs.naming import by_value

WIDTH, MEAN = 25, 24  # of the dots, and the least of the mean with its interval
DOTS = "·∙•●"  # nobody, one seed, two, three and more
ROWS, TASKS, MOST_LINES = 7, 4, 15  # on the screen without -v
WARNINGS, NOTES, APART = 2, 3, 2
BESIDE = 3  # variants whose settings stand beside each other; of more it is said who has another value than most
UNITS = {"sim_steps": "simulator ", "updates": "update "}  # before "steps", where they were asked for
SAID, EXPLORED = 4, 2  # variants in a line of words, comparisons that nobody declared


def text(result: Result, verbose: bool = False) -> str:
    """At most some fifteen lines without `verbose`."""
    if not result.tasks:
        lines = [_nothing(result), *_notes(result.notes, verbose, 1), *_apart(result, verbose), *_leads(result)]
        return "\n".join(clean(x) for x in [*_warnings(result, verbose), *lines, *_unread(result, verbose)])
    if verbose:
        lines = [line for task in result.tasks for line in [*_task(task, len(task.variants)), *details(task)]]
    else:
        lines = _one(result.tasks[0], result) if len(result.tasks) == 1 else _several(result)
    lines += profile_lines(result) + _end(result, verbose)
    return "\n".join(clean(line) for line in [*_warnings(result, verbose), *lines])


def _warnings(result: Result, verbose: bool) -> list[str]:
    some = result.warnings if verbose else result.warnings[:WARNINGS]
    left = len(result.warnings) - len(some)
    return [*(f"warning: {line}" for line in some), *([f"{plural(left, 'such warning')} more (-v)"] if left else [])]


def _end(result: Result, verbose: bool) -> list[str]:
    notes = [*result.notes, *(note for task in result.tasks for note in task.notes)]
    said = [*_notes(notes, verbose, len(result.tasks)), *_apart(result, verbose), *_leads(result)]
    return [*said, *_unread(result, verbose)]


def _unread(result: Result, verbose: bool) -> list[str]:
    some = result.unread if verbose else result.unread[:1]
    more = f" and {len(result.unread) - 1} more (-v)" if len(result.unread) > len(some) else ""
    return [f"not read: {line}{more}" for line in some]


def _one(task: Task, result: Result) -> list[str]:
    """What is always said, and as much of the rest as fits on the screen."""
    head, extra = [*_task(task, ROWS), *_settings(task)], [*_times(task), *_areas(task), *_peaks(task)]
    must = [*_verdicts(task), *_ceiling(task), *_parts(task)]
    room = MOST_LINES - len(head) - len(must) - len(_end(result, False))
    return [*head, *must, *extra[: max(room, 1)]]


def _several(result: Result) -> list[str]:
    """The best two of each task, of as many tasks as fit on the screen."""
    lines, shown = [], TASKS if len(result.tasks) <= TASKS else TASKS - 1
    for task in result.tasks[:shown]:
        lines += [*_task(task, 2, brief=True), *_ceiling(task)]
    lines += [f"and {len(result.tasks) - shown} more tasks (-v)"] if len(result.tasks) > shown else []
    return lines + _all_pairs(result.tasks)


def _all_pairs(tasks: Sequence[Task]) -> list[str]:
    """Declared ones in full, the others counted."""
    pairs = [p for task in tasks for p in task.pairs]
    rest = [p for p in pairs if not p.declared]
    enough = sum(min(p.answer.n) >= LEAST for p in rest)
    said = f"{enough} of {len(rest)} have {LEAST} seeds on both sides, which a verdict would need (-v for each)"
    return [*_declared_lines(pairs), *([f"exploratory comparisons with {_whom(tasks)}: {said}"] if rest else [])]


def _whom(tasks: Sequence[Task]) -> str:
    why = {task.reference.why for task in tasks}
    return why.pop().replace("--reference", "the one named") if len(why) == 1 else "the reference of each task"


def _nothing(result: Result) -> str:
    return f"Nothing to compare: {plural(result.runs, 'run')}, and no two configs that may be compared."


# ---- A task


def _task(task: Task, most: int, brief: bool = False) -> list[str]:
    """The head of a task and its variants, best first."""
    (low, high), n = _ends(task), sum(len(arm.runs) for arm in task.arms)
    timed = task.measure.at == "first_step_reaching"
    where = step_text(task)
    shown = f", best {most} shown" if len(task.variants) > most else ""
    counts = f"{plural(len(task.arms), 'variant')}{shown}, {plural(n, 'run')}"
    head = f"{task.env}: {task.measure.words}{where}; {counts} ({_sources(task)})"
    wide = max([MEAN, *(len(mean_text(task, row)) for row in task.variants[:most])])
    rows = [_row(task, row, low, high, wide) for row in task.variants[:most]]
    if brief:
        return [f"{head}; dots from {number(low)} to {number(high)}", *rows]
    scale = f"{number(low)} {'':{max(1, WIDTH - len(number(low)) - len(number(high)) - 2)}} {number(high)}"
    column = "median, reached by" if timed else "mean [95 %]" if has_interval(task) else "mean"
    return [head, f"  {'best first':{LABEL}}  n  {column:{wide}} {scale}", *rows]


def has_interval(task: Task) -> bool:
    """Whether a variant has seeds enough for an interval: no heading promises one that nobody gets."""
    return any(math.isfinite(row.mean.low) for row in task.variants)


def step_text(task: Task) -> str:
    """Where the numbers were taken: at one step, or where each run's last row up to the common step is."""
    if task.measure.at == "first_step_reaching" or task.evaluated is None:
        return ""
    low, high = task.evaluated
    unit = f"{UNITS.get(task.axis or '', '')}step"
    at = f"{unit} {high:,}" if low == high else f"{unit}s {low:,} to {high:,}"
    common = (
        "the common one" if low == high == task.step else f"the last up to {task.step:,.0f}, where the shortest ends"
    )
    return f" at {at}{', ' + common if task.beyond else ''}"


def _sources(task: Task) -> str:
    counts: dict[str, int] = {}
    for arm in task.arms:
        for run in arm.runs:
            counts[run.history.source] = counts.get(run.history.source, 0) + 1
    return ", ".join(f"{k} {v}" for k, v in sorted(counts.items()))


def _ends(task: Task) -> tuple[float, float]:
    values = [v for row in task.variants for v in row.values if math.isfinite(v)]
    return (min(values), max(values)) if values else (0.0, 1.0)


def _row(task: Task, row: Variant, low: float, high: float, wide: int) -> str:
    """The dots of all rows begin at one place: they are read against one scale."""
    mean = mean_text(task, row)
    better = f"  P(better) {share(row)}" if row.better else ""
    return f"  {short(row.label):{LABEL}} {row.mean.n:2}  {mean:{wide}} {dots(row.values, low, high)}{better}"


def mean_text(task: Task, row: Variant) -> str:
    if task.measure.at == "first_step_reaching":
        threshold = row.threshold
        return f"{median(threshold)}, {threshold.reached} of {threshold.n}" if threshold else "none"
    return "diverged" if row.diverged and not row.mean.n else spread(row.mean)


def spread(mean: Mean) -> str:
    """62.2 [0, 141]; without ends where there are too few seeds, or nothing varied."""
    if not mean.n:
        return "no number"
    if not math.isfinite(mean.low) or mean.low == mean.high:
        return number(mean.mid)
    return f"{number(mean.mid)} [{number(mean.low)}, {number(mean.high)}]"


def median(threshold: Threshold) -> str:
    return f"{threshold.median:,.0f}" if math.isfinite(threshold.median) else "not reached by half"


def share(row: Variant) -> str:
    """Of pairs of runs, one of this variant and one of the reference, in how many this one is better."""
    return "{:.2f} [{:.2f}, {:.2f}]".format(*row.better) if row.better else "-"


def dots(values: Sequence[float], low: float, high: float, width: int = WIDTH) -> str:
    """Every seed as a dot on one line; larger where several lie on one place. What reads as one number is one place.

    >>> dots([500.0, 499.99999], 499.99999, 500.0, 5)
    '··•··'
    """
    counts, apart = [0] * width, number(low).removesuffix(".0") != number(high).removesuffix(".0")
    for value in values:
        if math.isfinite(value):
            place = (value - low) / (high - low) if apart else 0.5
            counts[min(width - 1, max(0, round(place * (width - 1))))] += 1
    return "".join(DOTS[min(c, len(DOTS) - 1)] for c in counts)


# ---- What it means


def details(task: Task) -> list[str]:
    """All there is to say of a task below its table."""
    first = [*_settings(task, True), *_verdicts(task, True), *_ceiling(task), *_times(task, True)]
    return [*first, *_areas(task, True), *_peaks(task, True), *_noises(task, True), *_parts(task)]


def joined(lines: Sequence[str]) -> list[str]:
    """What belongs to a line is set in from it: both as one.

    >>> joined(["areas:", "  a 1", "  b 2", "declared"])
    ['areas: a 1; b 2', 'declared']
    """
    whole: list[str] = []
    for line in lines:
        if line.startswith("  ") and whole:
            whole[-1] += ("" if whole[-1].endswith(":") else ";") + " " + line.strip()
        else:
            whole.append(line)
    return whole


def _listed(head: str, said: Sequence[str], verbose: bool) -> list[str]:
    """In one line, the first of them; with -v all of them, each in a line of its own."""
    if verbose:
        return [f"{head}:", *(f"  {each}" for each in said)]
    left = len(said) - SAID
    return [f"{head}: {', '.join(said[:SAID])}{f' and {left} more (-v)' if left > 0 else ''}"]


def _settings(task: Task, verbose: bool = False) -> list[str]:
    if not task.keys or (len(task.variants) > ROWS and not verbose):
        return []
    beside = len(task.variants) <= BESIDE
    keys = task.keys if verbose else task.keys[: KEYS if beside else 2 * KEYS]
    labels = [short(row.label) for row in task.variants]
    texts = {key: side_by_side([row.settings[key] for row in task.variants]) for key in keys}
    said = [f"{k} {' | '.join(texts[k]) if beside else by_value(texts[k], labels)}" for k in keys]
    head = "differ, in this order" if beside else "differ"
    if verbose:
        return _listed(head, said, verbose)
    more = f"; also {others(task.keys, len(keys))}" if len(task.keys) > len(keys) else ""
    return [f"{head}: " + "; ".join(said) + more]


def _verdicts(task: Task, verbose: bool = False) -> list[str]:
    """Declared comparisons, and the first of those that nobody declared; how many are left out is said."""
    declared = _declared_lines(task.pairs)
    rest = [p for p in task.pairs if not p.declared]
    shown = rest if verbose else rest[:EXPLORED] if not declared else []
    left = len(rest) - len(shown)
    more = [f"{plural(left, 'exploratory comparison')} {'more ' * bool(shown)}(-v)"] if left else []
    return declared + _against(task, bool(shown)) + [_explored(p) for p in shown] + more


def _against(task: Task, shown: bool) -> list[str]:
    """Whom comparisons that nobody declared are with, where there was a choice."""
    if not shown or len(task.variants) < 3 or task.reference.why == "--reference":
        return []
    return [f"held against {short(task.reference.label)}, {task.reference.why} (--reference NAME for another)"]


def _declared_lines(pairs: Sequence[Pair]) -> list[str]:
    lines = []
    for pair in pairs:
        if pair.declared:
            holm = f" (Holm p = {pair.adjusted:.2g})" if math.isfinite(pair.adjusted) else ""
            lines.append(f"declared ({pair.declared}): {pair.answer.text}{holm}")
            lines += [f"  {note}" for note in beside(pair.answer.notes)]
    return lines


def _explored(pair: Pair) -> str:
    """A comparison that nobody declared: numbers, and no verdict."""
    x = pair.answer
    seeds = f"; {seeds_words(pair.needed)}" if pair.needed else ""
    if min(x.n) < 1:
        gone = " and ".join(short(name) for name, n in ((pair.b, x.n[1]), (pair.a, x.n[0])) if n < 1)
        return f"exploratory: {short(pair.b)} against {short(pair.a)}: {gone} without a number"
    if min(x.n) < LEAST:
        return (f"exploratory: {short(pair.b)} against {short(pair.a)}: {_signed(x.delta)}, too few seeds to tell"
                f" ({x.n[1]} and {x.n[0]}; no verdict under {LEAST}){seeds}")  # fmt: skip
    if x.reason == "unreached":
        return f"exploratory: {short(pair.b)} against {short(pair.a)}: no run of either reached it: nothing to tell"
    if not (math.isfinite(x.low) and math.isfinite(x.high)):
        return (f"exploratory: {short(pair.b)} against {short(pair.a)}: {_signed(x.delta)}, no interval: no seed"
                f" differs{seeds}")  # fmt: skip
    return (f"exploratory: {short(pair.b)} against {short(pair.a)}: {_signed(x.delta)}"
            f" [{_signed(x.low)}, {_signed(x.high)}] (95 %, + is better){seeds}")  # fmt: skip


def _signed(x: float) -> str:
    return f"+{number(x)}" if x > 0 else number(x)


def _ceiling(task: Task) -> list[str]:
    if not task.at_ceiling:
        return []
    level = f" --level {task.level[0]:g}" if task.level else " --level L"
    return [f"all {len(task.variants)} are at the ceiling ({number(task.ceiling)}), where this metric tells nothing"
            f" apart: use --at first_step_reaching{level}"]  # fmt: skip


def _times(task: Task, verbose: bool = False) -> list[str]:
    timed = [(each.label, each.threshold) for each in task.variants if each.threshold]
    if not timed or task.level is None or task.measure.at == "first_step_reaching":
        return []
    sources = {x.source for _, x in timed}
    own = {source: f", {source}" if len(sources) > 1 else "" for source in sources}
    said = [f"{short(label)} {median(x)} ({x.reached} of {x.n}{own[x.source]})" for label, x in timed]
    how = f"; {timed[0][1].source}" if len(sources) == 1 else ""
    unit = UNITS.get(task.axis or "", "")
    until = f", up to step {task.step:,.0f}" if task.beyond else ""
    return _listed(f"median {unit}steps to {task.level[0]:g} ({task.level[1]}{how}{until})", said, verbose)


def _areas(task: Task, verbose: bool = False) -> list[str]:
    rows = [row for row in task.variants if row.area.n]
    if not rows:
        return []
    low, high = rows[0].area.start, rows[0].area.end
    said = [f"{short(row.label)} {number(row.area.mean)}" for row in rows]
    return _listed(f"area under the curve (mean height, steps {low:,.0f} to {high:,.0f})", said, verbose)


def _peaks(task: Task, verbose: bool = False) -> list[str]:
    rows = [row for row in task.variants if row.peak]
    if not rows:
        return []
    usual = max(row.peak.m for row in rows if row.peak)
    said = [f"{short(row.label)} {number(p.peak)}{_chance(p)} / {number(p.final)} / {number(p.last)}"
            f"{f' (of {p.m})' if p.m < usual else ''}" for row in rows if (p := row.peak)]  # fmt: skip
    return _listed(f"peak / final / mean of last {usual}", said, verbose)


def _chance(p: Peak) -> str:
    """How much of a peak is luck, where that is known."""
    return f" (by chance +{p.bias:.2g})" if math.isfinite(p.bias) else ""


def _noises(task: Task, verbose: bool = False) -> list[str]:
    known = [(each.label, each.noise) for each in task.variants if each.noise and math.isfinite(each.noise.share)]
    said = [f"{short(label)} {noise.share:.0%}" for label, noise in known]
    what = "of the variance between seeds, noise of the evaluation itself"
    return _listed(what, said, verbose) if said else []


def _parts(task: Task) -> list[str]:
    if not task.parts:
        kinds = ", ".join(task.part_kinds[:3])
        return [f"these runs have parts: --per {task.part_kinds[0]} (of {kinds}) for a table of them"] if kinds else []
    lines = ["  part" + " " * 20 + "  ".join(f"{short(row.label, 18):18}" for row in task.variants)]
    for part in task.parts:
        cells = [part["arms"].get(row.label) for row in task.variants]
        said = "  ".join(f"{number(c['mean']) + ' (' + str(c['runs']) + ')' if c else '-':18}" for c in cells)
        lines.append(f"  {short(str(part['part']), 22):22}  {said}")
    return lines


# ---- Over all


def over_all(result: Result) -> list[str]:
    """What concerns several tasks, or none."""
    return [
        *_warnings(result, True),
        *profile_lines(result),
        *_notes(result.notes, True, 1),
        *_apart(result, True),
        *_leads(result),
    ]


def profile_lines(result: Result) -> list[str]:
    if not result.profile:
        return list(result.profile_notes)
    say = f" ({'; '.join(result.profile_notes)})" if result.profile_notes else ""
    lines = [f"over {result.profile[0].tasks} tasks, share of runs at or above a score (0 random, 1 top){say}"]
    for row in result.profile:
        shares = "  ".join(f"{s.tau:g}: {interval(s)}" for s in row.shares[1:])
        iqm = f"  IQM {row.iqm[0]:.2f} [{row.iqm[1]:.2f}, {row.iqm[2]:.2f}]" if row.iqm else ""
        lines.append(f"  {short(row.label, 12):12} {row.runs:2} runs  mean {row.mean:.2f}  {shares}{iqm}")
    return lines


def interval(s: Share) -> str:
    ends = f" [{s.low:.2f}, {s.high:.2f}]" if math.isfinite(s.low) else ""
    return f"{s.share:.2f}{ends}"


def _notes(notes: Sequence[str], verbose: bool, tasks: int) -> list[str]:
    kept = list(dict.fromkeys(notes))
    some = kept if verbose else kept[: NOTES if tasks == 1 else 1]
    left = len(kept) - len(some)
    more = [f"and {plural(left, 'more note')} (-v)"] if left else []
    return [f"note: {note}" for note in some] + more


def _apart(result: Result, verbose: bool) -> list[str]:
    if not result.apart:
        return []
    some = result.apart if verbose else result.apart[:APART]
    more = f"; and {len(result.apart) - len(some)} more (--why)" if len(result.apart) > len(some) else ""
    return ["not compared: " + "; ".join(f"{short(label)}: {reason}" for label, reason in some) + more]


def _leads(result: Result) -> list[str]:
    if result.leads is None:
        return []
    if not result.lead_runs:
        return ["leading indicators: no run learned something and lost it again"]
    lines = [f"what moved before the return fell, in {result.lead_runs} runs (exploratory; Spearman of changes, lag in"
             " evaluations, p by circular shifts, Holm over all metrics):"]  # fmt: skip
    lines += [f"  {lead.metric:32} {lead.lag} before  {lead.rho:+.2f}  p = {lead.p:.2g}, after Holm {lead.adjusted:.2g}"
              for lead in result.leads[:5]]  # fmt: skip
    return lines if result.leads else [*lines, "  none: no metric has enough rows"]


# ---- Why


def why(result: Result) -> str:
    """Which facts the runs share, which differ, which are unknown."""
    lines = []
    for name, values in result.facts.items():
        known = {v: labels for v, labels in values.items() if v is not None}
        known_text = "; ".join(f"{_fact(v)} ({_count(labels)})" for v, labels in known.items()) or "unknown"
        gone = f"; unknown ({_count(values[None])})" if None in values and known else ""
        mark = "differs" if len(known) > 1 else "unknown" if not known else "partly unknown" if gone else "same"
        lines.append(f"{name:12} {mark:15} {known_text}{gone}")
    lines += ["", "Must be the same where known: environment, observation, action, horizon, reward, unit of steps."
              " Evaluation and budget may differ: runs are compared at the common step."]  # fmt: skip
    lines += [f"not compared: {label}: {reason}" for label, reason in result.apart]
    return "\n".join(clean(line) for line in lines)


def _fact(value: Any) -> str:
    return ", ".join(str(v) for v in value) if isinstance(value, tuple) else str(value)


def _count(labels: Sequence[str]) -> str:
    return short(", ".join(dict.fromkeys(labels)), 40) if len(labels) < 3 else f"{len(labels)} configs"
