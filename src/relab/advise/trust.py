"""May a checkpoint that is called the best be gone on with? A ledger of what speaks for it; a gap is a refusal.

    range       its number is one that the metric can have (a success rate of 1,715 is none)
    evaluated   the record holds the evaluation that it was chosen by, with that number
    episodes    on how many: fewer than 20 follow luck, unless fresh ones bear it out
    protocol    the same task, and judged by the same actions, as the run that is to begin with it
    fresh       it was evaluated again on episodes that nothing was chosen on, and is not clearly worse there

`relab train` refuses what the record contradicts (range, evaluated, fresh); a loop needs all of it, and makes the fresh
evaluation itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.jsonl import RecordError, read_json
from relab.base.numbers import is_finite, is_number
from relab.base.text import number
from relab.config.views import diff, flatten
from relab.record.bounds import bounds_of
from relab.record.evaluations import evaluations
from relab.record.history import History, load

ENOUGH = 20  # episodes that a best checkpoint should be chosen on
CLEARLY = 3.0  # standard errors
CONTRADICTED = ("range", "evaluated", "fresh")


@dataclass(frozen=True)
class Entry:
    """One line of the ledger; `ok` is None where nothing is known."""

    name: str
    ok: bool | None
    text: str


@dataclass(frozen=True)
class Ledger:
    """What speaks for the best checkpoint of a run."""

    run: str
    best: Document
    entries: list[Entry] = field(default_factory=list)

    def gaps(self, strict: bool) -> list[Entry]:
        """What speaks against it; `strict`: what is not known does, too."""
        if strict:
            return [entry for entry in self.entries if not entry.ok]
        return [entry for entry in self.entries if entry.ok is False and entry.name in CONTRADICTED]

    def refusal(self, strict: bool) -> str:
        """One sentence with the reason and what to do; empty for one that is trusted."""
        gaps = self.gaps(strict)
        if not gaps:
            return ""
        why = "; ".join(f"{entry.name}: {entry.text}" for entry in gaps)
        return (f"the best checkpoint of {self.run} must not be gone on with ({why}); name another (RUN@latest,"
                f" RUN@STEP), or evaluate it: `relab eval {self.run} --checkpoint best --episodes 100`")  # fmt: skip

    def to_dict(self) -> Document:
        return {"run": self.run, "best": self.best, "trusted": not self.gaps(strict=True),
                "ledger": [vars(entry) for entry in self.entries]}  # fmt: skip


def ledger(folder: Path, settings: Mapping[str, Any] | None = None, fresh: Document | None = None) -> Ledger:
    """Of relab's own run; `settings` are those of the run that is to begin with it, `fresh` an evaluation made now."""
    name = folder.resolve().name
    try:
        best, run = read_json(folder, "checkpoints/best.json"), load(folder)
    except (RecordError, OSError) as error:
        return Ledger(name, {}, [Entry("evaluated", False, f"it has no best checkpoint that can be read ({error})")])
    value, mode = best.get("value"), mode_of(best)
    again = _again(run, best, mode, fresh)
    entries = [_range(run, best), _evaluated(run, best, mode), again, _episodes(best, again), _protocol(run, settings)]
    return Ledger(name, best | {"value": float(value) if is_number(value) else None}, [e for e in entries if e])


def mode_of(best: Mapping[str, Any]) -> str:
    """det or sampled, as its metric ends."""
    return "sampled" if str(best.get("metric") or "").endswith("_sampled") else "det"


def _key(best: Mapping[str, Any]) -> str:
    return "success" if "success" in str(best.get("metric") or "") else "mean"


def _range(run: History, best: Mapping[str, Any]) -> Entry:
    metric, value = str(best.get("metric") or ""), best.get("value")
    low, high = bounds_of(run, metric)
    ok = is_finite(value) and low - 1e-9 * abs(low if math.isfinite(low) else 1) <= value <= high + 1e-9 * abs(
        high if math.isfinite(high) else 1
    )
    return Entry("range", bool(ok), f"{metric or 'its metric'} is {value!r:.40}, and can be {low:g} to {high:g}")


def _evaluated(run: History, best: Mapping[str, Any], mode: str) -> Entry:
    metric, step = str(best.get("metric") or ""), best.get("step")
    if not re.fullmatch(r"eval/\w+", metric):
        return Entry(
            "evaluated", False, f"it was chosen on {metric or 'nothing that is named'}, which is no evaluation"
        )
    rows = [e for e in evaluations(run.evals, mode) if e.step == step]
    known = [e.success if _key(best) == "success" else e.mean for e in rows]
    value = best.get("value")
    same = [
        x for x in known if x is not None and is_number(value) and math.isclose(x, value, rel_tol=1e-6, abs_tol=1e-9)
    ]
    there = bool(same)
    said = f"step {step:,}" if isinstance(step, int) else "its step"
    return Entry("evaluated", there, f"{said} of its record {'has' if there else 'does not have'} that evaluation")


def _again(run: History, best: Mapping[str, Any], mode: str, fresh: Document | None) -> Entry:
    """The last fresh evaluation of this checkpoint: just made, or an event of the run (`relab eval`)."""
    rows = [row for row in run.events if (row.get("kind") or row.get("event")) == "evaluation"]
    events = [row for row in rows if row.get("step") == best.get("step") and not row.get("changes")]
    modes = (fresh or (events[-1] if events else {})).get("modes")
    facts = modes.get(mode) if isinstance(modes, dict) else None
    value = facts.get(_key(best)) if isinstance(facts, dict) else None
    if not isinstance(facts, dict) or not is_finite(value) or not is_finite(best.get("value")):
        return Entry("fresh", None, "it was not evaluated again on fresh episodes")
    n, sd = int(facts.get("n") or 0), facts.get("sd")
    error = float(sd) * math.sqrt(1 / max(n, 1) + 1 / max(int(best.get("n") or 1), 1)) if is_finite(sd) else 0.0
    worse = best["value"] - value > CLEARLY * error + 1e-9
    text = f"{number(float(value))} on {n} fresh episodes, {number(float(best['value']))} when it was chosen"
    return Entry("fresh", not worse, text)


def _episodes(best: Mapping[str, Any], again: Entry) -> Entry:
    n = best.get("n")
    enough = isinstance(n, int) and n >= ENOUGH
    if not enough and again.ok:
        return Entry("episodes", True, f"{n} when it was chosen; the fresh ones bear it out")
    return Entry("episodes", enough, f"it was chosen on {n} episodes, {ENOUGH} are the least")


def _protocol(run: History, settings: Mapping[str, Any] | None) -> Entry | None:
    if settings is None:
        return None
    mine, other = flatten(run.config), flatten(settings)
    keys = [key for key in {**mine, **other} if key.startswith("env.") or key == "eval.by"]
    apart = [key for key in keys if diff({"x": mine.get(key)}, {"x": other.get(key)})]
    text = f"another {', '.join(apart[:3])}" if apart else "the same task, judged by the same actions"
    return Entry("protocol", not apart, text)
