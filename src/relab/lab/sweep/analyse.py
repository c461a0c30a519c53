"""What does a sweep say? Trials with intervals, what each axis does, what truly differs, the winner and its luck.

The result is plain data, kept in sweep.json; the terminal and the report's page print it and compute nothing.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

from relab import stats
from relab.base import masks
from relab.base.jsonl import encode, write_atomic
from relab.comparison import answer, numbers
from relab.lab.sweep import race, trials
from relab.lab.sweep.plan import Sweep
from relab.lab.sweep.trials import Sweeping
from relab.stats import axes

SCHEMA = 1
FILE = "sweep.json"
MOST_PAIRS = 40  # trials up to which every pair is compared; beyond, each with the best
Outcomes = dict[str, list[answer.Outcome]]


def analyse(s: Sweeping, winner: str | None) -> dict[str, Any]:
    """Everything, from the runs that are there; kept in the sweep's folder."""
    found = trials.outcomes(s, s.ledger.points, s.plan.seeds)
    cells = cells_of(s, found)
    of_seeds, small = s.plan.method == "grid", s.plan.smallest_effect
    highest = max(s.ceilings.values(), default=math.inf)
    body = {
        "schema": SCHEMA, "question": s.plan.question, "metric": s.plan.metric, "at": s.plan.at,
        "direction": s.plan.direction, "smallest_effect": small, "method": s.plan.method,
        "axes": {each.key: list(each.values) or [each.low, each.high] for each in s.plan.axes},
        "seeds": list(s.plan.seeds), "trials": [row(s, trial, found[trial]) for trial in found],
        "effects": [effect(each, small, highest) for each in axes.effects(cells, small, of_seeds=of_seeds)],
        "interactions": [crossing(each) for each in axes.interactions(cells, small, of_seeds=of_seeds)],
        "binned": sorted(cells.binned), "incomplete": incomplete(s, found), "failed": dict(s.ledger.failed),
        "differ": differ(s, found, winner), "winner": confirmed(s, found, winner),
    }  # fmt: skip
    body["notes"] = notes(s, body)
    body["text"] = sentence(s.plan, body)
    write_atomic(s.folder / FILE, encode(masks.masked(body), indent=True))
    s.save()  # the look that was taken
    return body


def asked(s: Sweep) -> numbers.Measure:
    return numbers.Measure(s.metric, s.at, s.last, s.level, s.direction)


def cells_of(s: Sweeping, found: Outcomes) -> axes.Cells:
    """Trials as cells; points of random, sobol and optuna hardly repeat a value and are cut into thirds."""
    points = [s.ledger.points[trial] for trial in found]
    values = [[x.value for x in group] for group in found.values()]
    return axes.cells_of(points, values, bins=s.plan.method != "grid")


# ---- One trial


def row(s: Sweeping, trial: str, found: list[answer.Outcome]) -> dict[str, Any]:
    mid, low, high, n, _ = numbers.interval(found, asked(s.plan), s.ceilings.get(trial, math.inf))
    return {
        "trial": trial, "point": s.ledger.points[trial], "n": n, "planned": len(s.plan.seeds), "mean": mid, "low": low,
        "high": high, "values": [each(x) for x in found], "dropped": s.ledger.dropped.get(trial),
    }  # fmt: skip


def each(x: answer.Outcome) -> dict[str, Any]:
    return {"seed": x.seed, "value": x.value, "run": x.run, "reached": x.reached, "note": x.note}


def incomplete(s: Sweeping, found: Outcomes) -> list[dict[str, Any]]:
    """Trials with fewer numbers than seeds, dropped ones apart."""
    gone = []
    for trial, group in found.items():
        n = sum(math.isfinite(x.value) for x in group)
        if n < len(s.plan.seeds) and trial not in s.ledger.dropped:
            why = dict.fromkeys(x.note for x in group if not math.isfinite(x.value))
            gone.append({"trial": trial, "n": n, "planned": len(s.plan.seeds), "why": list(why) or ["not run"]})
    return gone


# ---- Axes


def effect(found: axes.Effect, smallest: float, ceiling: float) -> dict[str, Any]:
    widest = found.widest and {"from": found.widest.a, "to": found.widest.b, "delta": found.widest.mid,
                               "low": found.widest.low, "high": found.widest.high}  # fmt: skip
    means = [{"level": level, "mean": m.mid, "low": m.low, "high": numbers.capped(m.high, m.mid, ceiling)}
             for level, m in zip(found.levels, found.means)]  # fmt: skip
    return {"axis": found.axis, "levels": means, "widest": widest, "most": found.most, "noise": found.noise,
            "noise_from": found.source, "bound": smallest or found.noise, "verdict": found.verdict}  # fmt: skip


def crossing(found: axes.Interaction) -> dict[str, Any]:
    at = found.at and [list(pair) for pair in found.at]
    return {"axes": list(found.axes), "at": at, "delta": found.mid, "low": found.low, "high": found.high,
            "most": found.most, "verdict": found.verdict}  # fmt: skip


# ---- Which truly differ


def differ(s: Sweeping, found: Outcomes, winner: str | None) -> dict[str, Any]:
    """Every trial against the best, at a level that holds over all pairs of trials and all looks taken so far."""
    k = len(found)
    if winner is None or k < 2:
        return {"level": math.nan, "look": 0, "pairs": 0, "against_best": [], "clear_pairs": None}
    size = [len(s.plan.seeds), k]
    look = stats.look_number(s.ledger.looks, size)
    if look > len(s.ledger.looks):
        s.ledger.looks.append(size)
    alpha = stats.look_alpha(look)
    rows = [against(s.plan, found, winner, trial, alpha) for trial in found if trial != winner]
    clear = None
    if k <= MOST_PAIRS:
        both = [race.against(s.plan, found, a, b, alpha, k) for a, b in combinations(found, 2)]
        clear = sum(x.low > 0 or x.high < 0 for x in both)
    return {"level": 1 - alpha / race.pairs(k), "look": look, "pairs": race.pairs(k), "against_best": rows,
            "clear_pairs": clear}  # fmt: skip


def against(s: Sweep, found: Outcomes, winner: str, trial: str, alpha: float) -> dict[str, Any]:
    x = race.against(s, found, winner, trial, alpha, len(found))
    verdict = "worse" if x.high < 0 else "better" if x.low > 0 else "cannot tell"
    return {"trial": trial, "delta": x.delta, "low": x.low, "high": x.high, "n": list(x.n), "verdict": verdict}


# ---- The winner


def confirmed(s: Sweeping, found: Outcomes, winner: str | None) -> dict[str, Any] | None:
    """The winner on the seeds that chose it and on fresh ones; the difference is the luck of having been chosen."""
    if winner is None:
        return None
    fresh = trials.outcomes(s, [winner], s.plan.fresh)[winner]
    body: dict[str, Any] = {
        "trial": winner,
        "point": s.ledger.points[winner],
        "selection": row(s, winner, found[winner]),
    }
    if not fresh:
        return {**body, "fresh": None, "bias": None}
    x = answer.answer(fresh, found[winner], 0.0, s.plan.direction, s.plan.at, metric=s.plan.metric, looks=1,
                      names=("fresh seeds", "selection"), m=s.plan.last, reach=s.plan.level)  # fmt: skip
    bias = {"delta": x.delta, "low": x.low, "high": x.high, "n": list(x.n), "level": x.level}
    return {**body, "fresh": {**row(s, winner, fresh), "planned": len(s.plan.fresh)}, "bias": bias}


# ---- What must be said


def notes(s: Sweeping, body: dict[str, Any]) -> list[str]:
    said = []
    n = len(s.plan.seeds)
    if n < answer.LEAST:
        said.append(f"{n} seed{'s' if n > 1 else ''} a trial: no trial can be told from another under {answer.LEAST}")
    if s.plan.method == "optuna":
        said.append("later trials were chosen by earlier results: effects of axes are descriptions, not tests")
    elif s.plan.method != "grid":
        said.append("effects of axes are averages over the points drawn; values that hardly repeat are cut into thirds")
    if s.plan.at == "first_step_reaching":
        late = sum(not v["reached"] for t in body["trials"] for v in t["values"])
        said += [f"{late} runs never reached {s.plan.level:g} and count with the steps that they had"] if late else []
    failing = [t for t in body["trials"] if any(v["note"].startswith("failed") for v in t["values"])]
    if failing:
        said.append(
            f"{len(failing)} trials have runs that failed; each counts as the worst number of all in the ranking"
        )
    crossed = [e for e in body["effects"] if e["verdict"] == axes.CONFOUNDED]
    said += [f"what {e['axis']} does cannot be told: it changes only together with other axes" for e in crossed]
    if s.plan.method == "grid" and any(not t["n"] for t in body["trials"]):
        said.append("with cells missing, effects of axes assume that axes add up")
    return said


def sentence(s: Sweep, body: dict[str, Any]) -> str:
    """The answer in words."""
    from relab.base.text import number

    winner, k = body["winner"], len(body["trials"])
    if winner is None:
        return f"None of {k} trials has a number."
    point = told(winner["point"])
    picked, fresh, bias = winner["selection"], winner["fresh"], winner["bias"]
    text = f"Best of {k} trials: {point}, {s.metric} {number(picked['mean'])} on the {picked['n']} seeds that chose it"
    if fresh and fresh["n"]:
        text += f" and {number(fresh['mean'])}{ends(fresh)} on {fresh['n']} fresh ones: the choice flattered it by"
        text += f" {number(bias['delta'])}{ends(bias)}"
    rows = body["differ"]["against_best"]
    worse = sum(r["verdict"] == "worse" for r in rows)
    return f"{text}. {worse} of {len(rows)} others are clearly worse, {len(rows) - worse} cannot be told from it."


def told(point: dict[str, Any]) -> str:
    shown = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in point.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items())


def ends(row: dict[str, Any]) -> str:
    from relab.base.text import number

    known = math.isfinite(row["low"]) and math.isfinite(row["high"])
    return f" [{number(row['low'])}, {number(row['high'])}]" if known else ""
