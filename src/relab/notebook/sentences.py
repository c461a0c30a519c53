"""How are an answer, a verdict, a family and a score said in a log's language? Data in, one sentence out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from relab.advise.calibration import signed, span
from relab.advise.proposal import shown
from relab.advise.score import HIT, MISS, Score
from relab.base.text import number
from relab.comparison.answer import LEAST, OPEN, YES
from relab.comparison.outcomes import by_its_end
from relab.comparison.pairs import Pair
from relab.comparison.wording import MANY, WITHIN
from relab.config import lineage
from relab.config.lineage import Factor
from relab.config.views import MISSING
from relab.notebook.words import Words
from relab.report.first import name_of
from relab.runs.grouping import Group
from relab.runs.sentences import COUNTED, counted_as, finals, interval_text
from relab.runs.verdict import Verdict

KEYS = 6  # factors that are named
NAMED = 3  # configs


# ---- Answers


def answer(w: Words, x: Mapping[str, Any]) -> str:
    """An answer of answer.json in one sentence; in English it is the one that the experiment printed."""
    a, b = x["names"]
    needed = x.get("seeds_needed")
    more = seeds_words(w, needed) if needed else ""
    if min(x["n"]) < LEAST:
        so_far = w.say("answer.so_far", b=b, delta=f"{x['delta']:+.4g}", what=_what(w, x)) if _measured(x) else ""
        return w.say("answer.few", least=LEAST, a=a, b=b, n_a=x["n"][0], n_b=x["n"][1], so_far=so_far, more=more)
    names = {"a": a, "b": b, "numbers": numbers(w, x)}
    smallest = f"{x['smallest_effect']:.4g}"
    key = "answer.matters" if x.get("shows") == "smallest effect" else "answer.unsure"
    matters = w.say(key, smallest=smallest) if x["smallest_effect"] else ""
    if x["verdict"] == YES:
        return w.say("answer.yes", matters=matters, **names)
    if x.get("reason"):
        why = _why(w, x)
        if not math.isfinite(x["low"]):
            return w.say("answer.unmeasured", a=a, b=b, why=why, what=_what(w, x), seeds=_seeds(w, x))
        return w.say("answer.untold", why=why, **names)
    if x["verdict"] == OPEN:
        by = w.say("answer.by", smallest=smallest) if x["smallest_effect"] else ""
        return w.say("answer.open", by=by, more=f"{matters if x.get('shows') else ''}{more}", **names)
    worse = x["shows"] == "below 0" if x.get("shows") else x["high"] < 0  # earlier versions did not say
    return w.say("answer.worse", **names) if worse else w.say("answer.no", smallest=smallest, **names)


def explored(w: Words, pair: Pair) -> str:
    """A comparison that nobody declared: numbers, and no answer."""
    x = pair.answer
    seeds = w.say("answer.seeds", n_a=x.n[1], n_b=x.n[0])
    names = {"a": pair.a, "b": pair.b, "delta": signed(x.delta), "seeds": seeds}
    if min(x.n) < LEAST or not (math.isfinite(x.low) and math.isfinite(x.high)):
        return w.say("answer.explored_few", least=LEAST, **names)
    return w.say("answer.explored", low=signed(x.low), high=signed(x.high), **names)


def _measured(x: Mapping[str, Any]) -> bool:
    return isinstance(x.get("delta"), (int, float)) and math.isfinite(x["delta"])


def _why(w: Words, x: Mapping[str, Any]) -> str:
    """Why there is no answer although there are seeds enough."""
    a, b = x["names"]
    level = f"{x['reach']:g}" if x.get("reach") is not None else w.say("answer.level")
    top = "" if x.get("top") is None else f"{x['top']:.4g}"
    return w.say(f"answer.{x['reason']}", a=a, b=b, level=level, grid=f"{x.get('grid') or 0:.4g}", top=top)


def seeds_words(w: Words, ends: Sequence[int]) -> str:
    """How many seeds should tell, or that so many are not worth running."""
    if ends[0] > MANY:
        return f"{w.say('semicolon')}{hopeless(w)}"
    return w.say("answer.more", span=seeds_span(w, ends))


def hopeless(w: Words) -> str:
    return w.say("answer.hopeless", many=f"{MANY:,}")


def seeds_span(w: Words, ends: Sequence[int]) -> str:
    if ends[0] == ends[1]:
        return str(ends[0])
    most = w.say("answer.beyond", many=f"{MANY:,}") if ends[1] > MANY else str(ends[1])
    return w.say("answer.span", low=ends[0], high=most)


def numbers(w: Words, x: Mapping[str, Any]) -> str:
    ends = {key: f"{x[key]:+.4g}" for key in ("delta", "low", "high")}
    return w.say("answer.numbers", what=_what(w, x), sure=_sure(w, x), **ends)


def _sure(w: Words, x: Mapping[str, Any]) -> str:
    k = x.get("comparisons") or 1
    many = w.say("answer.many", k=k) if k > 1 else ""
    return w.say("answer.sure", level=f"{100 * x['level']:.4g}", seeds=_seeds(w, x), many=many)


def _seeds(w: Words, x: Mapping[str, Any]) -> str:
    n, paired = x["n"], str(x.get("method")).startswith(WITHIN)
    return w.say("answer.pairs", n=n[0]) if paired else w.say("answer.seeds", n_a=n[0], n_b=n[1])


def _what(w: Words, x: Mapping[str, Any]) -> str:
    if x["at"] == "first_step_reaching":
        return w.say("what.first_step_reaching", metric=x["metric"], reach=f"{x.get('reach') or math.nan:g}")
    if x["at"] == "mean_last_m":
        return w.say("what.mean_last_m", metric=x["metric"], m=x.get("m"))
    if x["at"] == "success_rate":
        return w.say("what.success_rate")
    tenth = by_its_end(x["metric"]) or any(run.get("by_end") for run in (*x["a"], *x["b"]))
    return w.say("what.end_of_training" if tenth else "what.final", metric=x["metric"])


# ---- What became of runs


def of_groups(w: Words, groups: Sequence[Group]) -> list[str]:
    """A line for each config; of more than a few only how many runs did what: a mean over configs says nothing."""
    every = [[run.verdict for run in group.distinct] for group in groups]
    if len(groups) == 1:
        return [verdicts(w, every[0])]
    if len(groups) > NAMED:
        return [outcome(w, [v for own in every for v in own])]
    return [f"{group.label}{w.say('colon')}{verdicts(w, own)}" for group, own in zip(groups, every)]


def verdicts(w: Words, per_seed: Sequence[Verdict]) -> str:
    """Learned: 9.9 -> 500 (random 19.5); of several seeds, how many did what."""
    good = [v for v in per_seed if v.points and math.isfinite(v.final)]
    if not good:
        return outcome(w, per_seed)
    first = number(sum(v.points[0].mean for v in good) / len(good))
    random = next((v.random for v in good if v.random), None)
    level = f" ({w.say('verdict.random', value=number(random.mean))})" if random else ""
    text = f"{first} → {interval_text(finals(good))}{level}"
    return w.say("verdict.sentence", verdict=outcome(w, per_seed), numbers=text)


def outcome(w: Words, per_seed: Sequence[Verdict]) -> str:
    """In a word or two, or with how many seeds each."""
    kinds = [counted_as(v) for v in per_seed]
    if len(kinds) == 1:
        return w.say(f"verdict.{kinds[0]}")
    counts = {kind: kinds.count(kind) for kind in COUNTED if kind in kinds}
    said = [w.say("verdict.counted", verdict=w.say(f"verdict.{k}"), n=n, of=len(kinds)) for k, n in counts.items()]
    return w.list(said)


def title(w: Words, folder: Path, groups: list[Group]) -> str:
    """The name of a run, or of a folder with how much it holds, and the tools that it was read from."""
    (name, formats), runs = name_of(folder, groups), sum(len(group.runs) for group in groups)
    key = "run" if runs == 1 else "runs" if len(groups) == 1 else "configs"
    read = w.say("title.read", formats=w.list(formats)) if formats else ""
    return w.say(f"title.{key}", name=name, configs=len(groups), runs=runs) + read


# ---- Families and factors


def factor_line(w: Words, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """One factor, none, or confounded."""
    factors = lineage.factors(before, after)
    if len(factors) > 1:
        return w.say("factor.confounded", n=len(factors), keys=keys_of(w, factors))
    if factors:
        return w.say("factor.one", key=factors[0].key, **_ends(factors[0]))
    quiet = [c.key for c in lineage.quiet(before, after)]
    return w.say("factor.none", keys=w.list(quiet[:KEYS])) if quiet else w.say("factor.nothing")


def keys_of(w: Words, factors: Sequence[Factor]) -> str:
    return w.list([each.key for each in factors[:KEYS]] + (["..."] if len(factors) > KEYS else []))


def family_line(w: Words, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> str:
    """Which family it is; where that is a new one, because of what. Empty for configs that name no environment."""
    family = lineage.family(after)
    if family is None:
        return ""
    why = because(w, before, after) if before is not None else ""
    return w.say("family.new", family=family.name, why=why) if why else w.say("family.same", family=family.name)


def because(w: Words, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    changes = lineage.opened(before, after)
    return w.list([w.say("family.changed", key=each.key, **_ends(each)) for each in changes[:KEYS]])


def _ends(factor: Factor) -> dict[str, str]:
    return {"a": _value(factor.a), "b": _value(factor.b)}


def _value(value: Any) -> str:
    return "(none)" if value is MISSING else shown(value)


# ---- Predictions


def score(w: Words, s: Score) -> str:
    """What was predicted, what was measured, and whether that is a hit."""
    bounds = {key: "?" if s.predicted[key] is None else signed(s.predicted[key]) for key in ("low", "high")}  # type: ignore[arg-type]
    said = w.say("score.bounds", **bounds) if s.kind == "bounds" else span(s.predicted)
    n = s.measured.seeds
    why = w.sentences[f"why.{s.reason}"].format(what=s.what)
    verdict = w.say(f"score.{s.verdict}") if s.verdict in (HIT, MISS) else w.say("score.open", why=why)
    return w.say("score.line", metric=s.metric or "-", predicted=said, measured=span(vars(s.measured)),
                 seeds=w.say("answer.seeds", n_a=n[0], n_b=n[1]), verdict=verdict)  # fmt: skip
