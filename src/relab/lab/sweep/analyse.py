"""What does a sweep say? Trials with intervals, what each axis does, what truly differs, the winner and its luck.

The result is plain data, kept in sweep.json; the terminal and the report's page print it and compute nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

from relab import stats
from relab.base import masks
from relab.base.documents import Settings
from relab.base.jsonl import encode, write_atomic
from relab.base.text import plural
from relab.comparison import answer, numbers
from relab.comparison.outcomes import Outcome
from relab.lab.sweep import race, result, trials
from relab.lab.sweep.plan import LISTED, Sweep
from relab.lab.sweep.result import Analysis, AxisEffect, Differences, TrialResult, Winner
from relab.lab.sweep.trials import Sweeping
from relab.stats import axes
from relab.stats.over_seeds import cut

FILE = "sweep.json"
MOST_PAIRS = 40  # trials up to which every pair is compared; beyond, each with the best
Outcomes = dict[str, list[Outcome]]


def analyse(s: Sweeping, winner: str | None) -> Analysis:
    """Everything, from the runs that are there; kept in the sweep's folder."""
    analysis = analysis_of(s, trials.outcomes(s, s.ledger.points, s.plan.seeds), winner)
    write_atomic(s.folder / FILE, encode(masks.masked(analysis.to_json()), indent=True))
    s.save()  # the look that was taken
    return analysis


def analysis_of(s: Sweeping, outcomes: Outcomes, winner: str | None) -> Analysis:
    plan, cells, bounds = s.plan, cells_of(s, outcomes), widest(s)
    of_seeds, small = plan.method in LISTED, plan.smallest_effect
    rows = [trial_result(s, trial, outcomes[trial]) for trial in outcomes]
    effects = [effect(each, small, bounds) for each in axes.effects(cells, small, of_seeds=of_seeds)]
    gaps, best = differ(s, outcomes, winner), confirmed(s, outcomes, winner)
    return Analysis(
        plan.question, plan.metric, plan.at, plan.direction, small, plan.method,
        axes={each.key: list(each.values) or [each.low, each.high] for each in plan.axes}, seeds=list(plan.seeds),
        trials=rows, effects=effects,
        interactions=[crossing(each) for each in axes.interactions(cells, small, of_seeds=of_seeds)],
        binned=sorted(cells.binned), incomplete=incomplete(s, outcomes), failed=dict(s.ledger.failed), differ=gaps,
        winner=best, notes=notes(s, rows, effects), text=sentence(plan, len(rows), gaps, best),
    )  # fmt: skip


def question_of(s: Sweep) -> numbers.Measure:
    return numbers.Measure(s.metric, s.at, s.last, s.level, s.direction)


def widest(s: Sweeping) -> tuple[float, float]:
    """What the runs of any trial can come to."""
    lows, highs = zip(*s.bounds.values()) if s.bounds else ((-math.inf,), (math.inf,))
    return min(lows), max(highs)


def cells_of(s: Sweeping, outcomes: Outcomes) -> axes.Cells:
    """Trials as cells; points of random, sobol and optuna hardly repeat a value and are cut into thirds."""
    points = [s.ledger.points[trial] for trial in outcomes]
    values = [[x.value for x in group] for group in outcomes.values()]
    return axes.cells_of(points, values, bins=s.plan.method not in LISTED)


# ---- One trial


def trial_result(s: Sweeping, trial: str, outcomes: list[Outcome]) -> TrialResult:
    measure = question_of(s.plan)._replace(bounds=s.bounds.get(trial, numbers.ANY))
    mid, low, high, n, *_ = numbers.interval(outcomes, measure)
    values = [result.RunValue(x.seed, x.value, x.run, x.reached, x.note) for x in outcomes]
    point, dropped = s.ledger.points[trial], s.ledger.dropped.get(trial)
    return TrialResult(trial, point, n, len(s.plan.seeds), mid, low, high, values, dropped)


def incomplete(s: Sweeping, outcomes: Outcomes) -> list[result.Incomplete]:
    """Trials with fewer numbers than seeds, dropped ones apart."""
    gone = []
    for trial, group in outcomes.items():
        n = sum(math.isfinite(x.value) for x in group)
        if n < len(s.plan.seeds) and trial not in s.ledger.dropped:
            why = dict.fromkeys(x.note for x in group if not math.isfinite(x.value))
            gone.append(result.Incomplete(trial, n, len(s.plan.seeds), list(why) or ["not run"]))
    return gone


# ---- Axes


def effect(x: axes.Effect, smallest: float, bounds: tuple[float, float]) -> AxisEffect:
    widest = x.widest and result.Widest(x.widest.a, x.widest.b, x.widest.mid, x.widest.low, x.widest.high)
    means = [result.LevelMean(level, m.mid, *cut((m.low, m.high), m.mid, bounds))
             for level, m in zip(x.levels, x.means)]  # fmt: skip
    return AxisEffect(x.axis, means, widest, x.most, x.noise, x.source, smallest or x.noise, x.verdict)


def crossing(x: axes.Interaction) -> result.Crossing:
    at = x.at and [list(pair) for pair in x.at]
    return result.Crossing(list(x.axes), at, x.mid, x.low, x.high, x.most, x.verdict)


# ---- Which truly differ


def differ(s: Sweeping, outcomes: Outcomes, winner: str | None) -> Differences:
    """Every trial against the best, at a level that holds over all pairs of trials and all looks taken so far."""
    k = len(outcomes)
    if winner is None or k < 2:
        return Differences(math.nan, 0, 0, [], None)
    size = [len(s.plan.seeds), k]
    look = stats.look_number(s.ledger.looks, size)
    if look > len(s.ledger.looks):
        s.ledger.looks.append(size)
    alpha = stats.look_alpha(look)
    rows = [against(s.plan, outcomes, winner, trial, alpha) for trial in outcomes if trial != winner]
    clear = None
    if k <= MOST_PAIRS:
        both = [race.against(s.plan, outcomes, a, b, alpha, k) for a, b in combinations(outcomes, 2)]
        clear = sum(x.low > 0 or x.high < 0 for x in both)
    return Differences(1 - alpha / race.pairs(k), look, race.pairs(k), rows, clear)


def against(s: Sweep, outcomes: Outcomes, winner: str, trial: str, alpha: float) -> result.Gap:
    x = race.against(s, outcomes, winner, trial, alpha, len(outcomes))
    verdict = "worse" if x.high < 0 else "better" if x.low > 0 else "cannot tell"
    return result.Gap(trial, x.delta, x.low, x.high, list(x.n), verdict)


# ---- The winner


def confirmed(s: Sweeping, outcomes: Outcomes, winner: str | None) -> Winner | None:
    """The winner on the seeds that chose it and on fresh ones; the difference is the luck of having been chosen."""
    if winner is None:
        return None
    fresh = trials.outcomes(s, [winner], s.plan.fresh)[winner]
    point, selection = s.ledger.points[winner], trial_result(s, winner, outcomes[winner])
    if not fresh:
        return Winner(winner, point, selection, None, None)
    x = answer.answer(fresh, outcomes[winner], 0.0, s.plan.direction, s.plan.at, metric=s.plan.metric, looks=1,
                      names=("fresh seeds", "selection"), m=s.plan.last, reach=s.plan.level)  # fmt: skip
    bias = result.Bias(x.delta, x.low, x.high, list(x.n), x.level)
    again = replace(trial_result(s, winner, fresh), planned=len(s.plan.fresh))
    return Winner(winner, point, selection, again, bias)


# ---- What must be said


def notes(s: Sweeping, rows: list[TrialResult], effects: list[AxisEffect]) -> list[str]:
    said = []
    n = len(s.plan.seeds)
    if n < answer.LEAST:
        said.append(f"{plural(n, 'seed')} a trial: no trial can be told from another under {answer.LEAST}")
    if s.plan.method == "optuna":
        said.append("later trials were chosen by earlier results: effects of axes are descriptions, not tests")
    elif s.plan.method == "one_at_a_time":
        said.append("one axis was changed at a time: what axes do together was not asked")
    elif s.plan.method != "grid":
        said.append("effects of axes are averages over the points drawn; values that hardly repeat are cut into thirds")
    if s.plan.at == "first_step_reaching":
        late = sum(not each.reached for row in rows for each in row.values)
        said += [f"{late} runs never reached {s.plan.level:g} and count with the steps that they had"] if late else []
    if failing := sum(row.failed > 0 for row in rows):
        said.append(f"{failing} trials have runs that failed; each counts as the worst number of all in the ranking")
    crossed = [each.axis for each in effects if each.verdict == axes.CONFOUNDED]
    said += [f"what {axis} does cannot be told: it changes only together with other axes" for axis in crossed]
    if s.plan.method == "grid" and any(not row.n for row in rows):
        said.append("with cells missing, effects of axes assume that axes add up")
    return said


def sentence(s: Sweep, k: int, gaps: Differences, winner: Winner | None) -> str:
    """The answer in words."""
    from relab.base.text import number

    if winner is None:
        return f"None of {k} trials has a number."
    point, picked, fresh, bias = point_text(winner.point), winner.selection, winner.fresh, winner.bias
    text = f"Best of {k} trials: {point}, {s.metric} {number(picked.mean)} on the {picked.n} seeds that chose it"
    if fresh and fresh.n and bias:
        flattery = f"flattered it by {number(bias.delta)}{ends(bias)}" if bias.delta > 0 else "did not flatter it"
        text += f" and {number(fresh.mean)}{ends(fresh)} on {fresh.n} fresh ones: the choice {flattery}"
    others = len(gaps.against_best)
    worse = sum(each.verdict == "worse" for each in gaps.against_best)
    return f"{text}. {worse} of {others} others are clearly worse, {others - worse} cannot be told from it."


def point_text(point: Settings) -> str:
    shown = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in point.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items())


def ends(span: result.Span) -> str:
    return ends_of(span.low, span.high)


def ends_of(low: float, high: float) -> str:
    from relab.base.text import number

    return f" [{number(low)}, {number(high)}]" if math.isfinite(low) and math.isfinite(high) else ""
