"""How is a verdict said? One sentence for a run, for a group of seeds, for many configs; the same in every command."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relab.base.text import number
from relab.record import glossary
from relab.runs.course import RETURNS
from relab.runs.models import model_sentence
from relab.runs.values import fit_sentence
from relab.runs.verdict import FEWEST, KEPT_HALF, LITTLE, Verdict, base_of
from relab.stats import SeedMean, mean_over_seeds


def sentence(v: Verdict) -> str:
    """Learned: 9.9 -> 500 (random 19.5), solved after 10,240 steps."""
    if v.kind == "none":
        return "No result yet: no evaluation was made and no episode has ended"
    if v.kind == "broken":
        return _broken(v)
    if v.kind == "fit":
        return fit_sentence(v.fit)
    if v.kind == "model":
        return model_sentence(v.model)
    if v.kind == "unjudged":
        return "Not judged, no return was logged"
    if v.possible:
        return f"Not judged, the returns have another sign than the environment's own ({_span(v.possible)}): {_numbers(v)}"
    if v.share:
        name, start, end = v.share
        return f"Learned by {name}: {number(start)} → {number(end)}, though not by the return: {_numbers(v)}"
    if v.kind == "unstable":
        return _unstable(v) + silence([v])
    return _head(v).format(best=_best(v), step=f"{_turn(v):,}") + _numbers(v) + _solved(v) + silence([v])


def _span(bounds: tuple[float, float]) -> str:
    """1 to 500; 0 or less."""
    low, high = bounds
    if not math.isfinite(low) or not math.isfinite(high):
        return f"{number(low)} or more" if math.isfinite(low) else f"{number(high)} or less"
    return f"{number(low)} to {number(high)}"


def silence(verdicts: Sequence[Verdict]) -> str:
    """Said of runs whose logs go on long after their last return: what they are judged by is not their end."""
    silent = [v.silent for v in verdicts if v.silent is not None]
    if not silent:
        return ""
    if len(verdicts) == 1:
        return f", but the log has no return after step {silent[0]:,}"
    return f"; {len(silent)} of {len(verdicts)} logs have no return at their end (after step {min(silent):,})"


def _turn(v: Verdict) -> int:
    """The step at which it fell, where it did; else that of its best."""
    return v.fall.step if v.fall else v.best.step if v.best else 0


def spread_words(v: Verdict) -> str:
    """112.5 to 492.5"""
    low, high, _ = v.spread
    return f"{number(low.mean)} to {number(high.mean)}"


def _unstable(v: Verdict) -> str:
    """Unstable: evaluations from step 2,000 on spread from 112.5 to 492.5, the last is 481 (random 22.2)."""
    what = "evaluations" if v.evaluated else f"means of {_called(v.metric).strip() or v.metric} over a tenth of training"
    level = f" (random {number(v.random.mean)})" if v.random else ""
    return (f"Unstable: {what} from step {v.spread[2]:,} on spread from {spread_words(v)}, the last is"
            f" {number(v.final)}{level}")  # fmt: skip


def _head(v: Verdict) -> str:
    if v.kind == "top" and v.level is not None:
        return f"Solved ({number(v.level)}) throughout: "
    if v.trained:
        rise = f"{number(v.trained.start)} → {number(v.trained.end)}"
        when = " before the first evaluation" if v.trained.early else ""
        return f"Learned{when}, by the returns of training ({rise}), evaluations: "
    if v.kind == "learned" and (lacks := _lacks(v)):
        return lacks
    if v.kind == "learned" and v.dip and not v.share:
        return f"Learned, from {number(v.dip.mean)} on, to which its first value fell: "
    if counted_as(v) == "rising" and v.rising:
        rise = f"{number(v.rising.start)} → {number(v.rising.end)}"
        return f"Training rises ({rise}), evaluations do not yet: "
    if v.hardly:
        return "Hardly learned, its second half stays near random: "
    if v.kind == "not" and v.random is None:
        return "Did not learn, ends below where it began: "
    if v.kind == "flat" and v.random is None:
        return "No gain since the first value (what random earns is not known): "
    if v.kind in ("flat", "gained", "fell"):
        return _since(v)
    if v.kind == "unclear" and v.stages > 1:
        return f"Cannot tell, because the task changed ({v.stages} stages): "
    return _HEADS[v.kind]


def _since(v: Verdict) -> str:
    """Better than random, and gained 0.2 ± 0.13 since the first value (95 % interval): """
    gain, wide = v.change
    moved = f"{number(abs(gain))} ± {number(float(f'{wide:.2g}'))}"
    if v.kind == "gained":
        return f"Better than random, and gained {moved} since the first value (95 % interval): "
    if v.kind == "fell":
        return f"Fell by {moved} since the first value (95 % interval): "
    signed = f"{'+' if gain >= 0 else '−'}{moved} since the first value"
    if len(v.points) <= FEWEST:
        return f"Better than random, too short to tell a gain ({signed}): "
    return f"Better than random, but no gain beyond the noise ({signed}): "


def _lacks(v: Verdict) -> str:
    lack = _lack(v)
    if lack == "below":
        return "Learned, but ends far below its best ({best}, after {step} steps), as far as the noise tells: "
    return f"Learned little, {_way(v):.0%} of the way from random to solved: " if lack == "little" else ""


def _way(v: Verdict) -> float:
    """The share of the way from random to solved; infinite where one of them is not known."""
    random, solved = v.random, v.yardstick.solved
    known = random is not None and solved is not None and solved > random.mean
    return (v.final - random.mean) / (solved - random.mean) if known else math.inf  # type: ignore[union-attr,operator]


def _lack(v: Verdict) -> str:
    """What speaks against a plain "learned": it was far better before, or has hardly begun; empty where nothing does."""
    base = base_of(v.dip or v.points[0], v.random)
    if v.yardstick.at_top(v.final) or v.best is None:
        return ""
    if v.final - base.mean < KEPT_HALF * (v.best.mean - base.mean):
        return "below"
    return "little" if _way(v) < LITTLE else ""


_HEADS = {
    "learned": "Learned: ",
    "top": "At its ceiling throughout: ",
    "unclear": "Cannot tell whether it learned, the noise is too large: ",
    "part": "Lost part of what it had learned after {step} steps ({best}): ",
    "lost": "Lost what it had learned, from step {step} on ({best}): ",
    "not": "Did not learn: ",
    "worse": "Did not learn, ends worse than a random policy: ",
    "short": "Too few values or steps to tell: ",
}


def _best(v: Verdict) -> str:
    return best_words(v.evaluated, v.best.mean) if v.best else "best not known"


def best_words(evaluated: bool, value: float) -> str:
    """The best of a run in the one way that every command means it.

    >>> best_words(True, 490.0), best_words(False, 298.42)
    ('best evaluation 490', 'best tenth of training 298.4')
    """
    return f"best {'evaluation' if evaluated else 'tenth of training'} {number(value)}"


def _numbers(v: Verdict) -> str:
    ends = [v.points[0], v.points[-1]] if len(v.points) > 1 else v.points[-1:]
    level = f" (random {number(v.random.mean)})" if v.random else ""
    return _called(v.metric) + " → ".join(number(p.mean) for p in ends) + level


def _called(metric: str) -> str:
    """What stands before the numbers: nothing before a return of evaluations, which is what one expects."""
    if metric.startswith("return/mean"):
        return "training return "
    if metric.startswith("eval/success"):
        return "success rate "
    if metric.startswith("foreign/"):
        return f"{metric.removeprefix('foreign/')} "  # as its tool calls it
    return f"{metric} " if metric in RETURNS and metric not in glossary.RETURNS else ""


def _solved(v: Verdict) -> str:
    if v.level is None or v.kind == "top":
        return ""
    at = number(v.level)
    if v.reached is None:
        return f", {at} not reached"
    if v.reached.solved is not None:
        return f", solved ({at}) after {v.reached.solved:,} steps"
    times = "once, at" if v.reached.times == 1 else f"{v.reached.times} times, first at"
    return f", reached {at} {times} {v.reached.step:,} steps"


def _broken(v: Verdict) -> str:
    since = f"from step {v.lost:,} on" if v.lost is not None else "at its end" + (f", {v.flaw}" if v.flaw else "")
    return f"Broke: the return is not a number ({v.points[-1].mean}) {since}"


def group_sentence(verdicts: list[Verdict]) -> str:
    """Learned on 4 of 5 seeds: 10.1 -> 487 [410, 564] (mean, 95 % interval, random 19.5)."""
    if len(verdicts) == 1:
        return sentence(verdicts[0])
    text = _counted([counted_as(v) for v in verdicts], _fallen_below(verdicts))
    return text[:1].upper() + text[1:] + ": " + _group_numbers(verdicts) + silence(verdicts)


def brief_sentence(verdicts: list[Verdict]) -> str:
    """learned on 4 of 5 seeds, unstable on 1 of 5 seeds, ends at 487."""
    end = finals([v for v in verdicts if v.points and v.metric == verdicts[0].metric])
    where = f", ends at {number(end.mid)}" if end.n and math.isfinite(end.mid) else ""
    kinds = [counted_as(v) for v in verdicts]
    counted = _counted(["learned" if kind == "top" else kind for kind in kinds], _fallen_below(verdicts))
    return counted + where + silence(verdicts)


def counted_as(v: Verdict) -> str:
    """What a run counts as beside others: what its own sentence begins with."""
    if v.kind == "learned" and not v.share and not v.trained and (lack := _lack(v)):
        return lack
    if v.kind == "short" and v.rising:
        return "rising"
    return "hardly" if v.hardly and v.kind == "not" and not v.share else v.kind


def verdict_words(v: Verdict) -> str:
    """The same in words: learned little."""
    return COUNTED[counted_as(v)]


def beside_number(v: Verdict) -> str:
    """What the last number of a run does not tell: did not learn; nothing of one that plainly learned."""
    kind = counted_as(v)
    if kind in PLAIN:
        return ""
    return COUNTED[kind] + (f" ({spread_words(v)})" if kind == "unstable" else "")


def poor_words(verdicts: Sequence[Verdict]) -> str:
    """What became of the runs that a finding should explain: did not learn; 2 of 3 did not learn, 1 of 3 learned little."""
    kinds = [counted_as(v) for v in verdicts]
    poor = {kind: kinds.count(kind) for kind in COUNTED if kind in POORLY and kind in kinds}
    return ", ".join(COUNTED[kind] if len(kinds) == 1 else f"{n} of {len(kinds)} {COUNTED[kind]}" for kind, n in poor.items())


def _counted(kinds: list[str], below: int) -> str:
    """What became of all seeds, the bad ones too; `below`: those that lost it and ended worse than random."""
    counts = {kind: kinds.count(kind) for kind in COUNTED if kind in kinds}
    fallen = {"lost": f" ({below} of them down to worse than random)"} if below else {}
    return ", ".join(
        COUNTED[kind] + _on_seeds(kind, count, len(kinds)) + fallen.get(kind, "") for kind, count in counts.items()
    )


def _fallen_below(verdicts: list[Verdict]) -> int:
    """Which the rule worse-than-random counts as well."""
    return sum(counted_as(v) == "lost" and v.below_random for v in verdicts)


def _on_seeds(kind: str, how_many: int, n: int) -> str:
    if n == 1:
        return ""
    if how_many < n:
        return f" on {how_many} of {n} seeds"
    if n == 2:
        return " on either seed" if kind == "not" else " on both seeds"
    return f" on any of {n} seeds" if kind == "not" else f" on all {n} seeds"


def many_sentence(verdicts: list[Verdict], configs: int) -> str:
    """14 configs: 3 runs learned, 9 too few values or steps to tell."""
    kinds = [counted_as(v) for v in verdicts]
    words = [f"{kinds.count(kind)} {text}" for kind, text in COUNTED.items() if kind in kinds]
    return f"{configs} configs, {len(kinds)} runs: {', '.join(words)}"


COUNTED = {
    "learned": "learned", "below": "learned, but far below its best at the end", "little": "learned little",
    "hardly": "hardly learned", "top": "at the top throughout", "part": "learned and lost part of it",
    "lost": "learned and lost it", "unstable": "unstable", "fell": "fell below its start", "gained": "gained, not far beyond the noise",
    "not": "did not learn", "flat": "no gain beyond the noise", "unclear": "too noisy to tell", "worse": "worse than random", "broken": "broke",
    "short": "too few values or steps to tell", "rising": "training rises, evaluations do not yet", "unjudged": "not judged", "opposite": "not judged (returns of another sign)", "fit": "critic alone",
    "model": "world model alone", "none": "no result",
}  # fmt: skip

PLAIN = ("learned", "top", "fit", "model", "none", "unjudged")  # the number, or that there is none, says enough
POORLY = ("below", "little", "hardly", "lost", "unstable", "fell", "not", "worse", "broken")


def _group_numbers(verdicts: list[Verdict]) -> str:
    counted = [v for v in verdicts if v.points and math.isfinite(v.final) and v.metric == verdicts[0].metric]
    if not counted:
        return "no number to give"
    firsts = np.mean([v.points[0].mean for v in counted])
    random = next((v.random for v in counted if v.random), None)
    end = finals(counted)
    spread = f" from {number(end.least)} to {number(end.most)}" if not end.known and end.least < end.most else ""
    notes = [f"mean of seeds{spread}", *([f"random {number(random.mean)}"] if random else [])]
    return f"{number(float(firsts))} → {number(end.mid) if spread else interval_text(end)} ({', '.join(notes)})"


def finals(verdicts: list[Verdict]) -> SeedMean:
    """Mean over seeds of the outcome, with the one interval for it, within what the environment allows."""
    marks = [v.yardstick for v in verdicts if v.points]
    low = min((y.lowest for y in marks if math.isfinite(y.lowest)), default=-math.inf)
    high = max((y.highest for y in marks if math.isfinite(y.highest)), default=math.inf)
    return mean_over_seeds([v.final for v in verdicts], (low, high))


def interval_text(x: SeedMean) -> str:
    """487 [410, 500]; under five seeds, where no interval has been shown to hold, 487 (from 412 to 500)."""
    if not x.n or x.least == x.most:  # nothing varied, which an interval of width 0 would overstate
        return number(x.mid)
    if not x.known:
        return f"{number(x.mid)} (from {number(x.least)} to {number(x.most)})"
    return f"{number(x.mid)} [{number(x.low)}, {number(x.high)}]"
