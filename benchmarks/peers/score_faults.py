"""How many faults of replay methods, offline methods and world models does the examiner name? Asks it about real runs.

    python -m benchmarks.peers.score_faults FOLDER... [--json OUT]

A folder is what sb3_faults.py, offline_runs.py or sheeprl wrote: FAULT/RUN, `healthy` among the faults. A fault counts
as named when one of CAUSES is among the first three findings of its run, examined alone. CAUSES were written down from
what a fault is, as in relab.lab.faults.catalogue: a finding that says what is wrong, not that something is. A fault did
no harm when the run ended clear of random all the same; where the level of random is not known, that cannot be told.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from relab.base.jsonl import RecordError
from relab.health.examine import examine
from relab.health.render import lead
from relab.stats.rates import wilson

CAUSES: dict[str, set[str]] = {
    "lr-times-100": {"steps-too-large"},
    "lr-over-1000": {"steps-too-small"},
    "no-target-network": {"no-target-network"},
    "target-never-updated": {"target-network-frozen"},
    "gamma-short": {"discount-out-of-range"},
    "gamma-one": {"discount-out-of-range", "value-above-dataset", "value-beyond-end"},  # offline ones mask no ends
    "reward-times-1000": {"value-in-other-units", "critic-loss-blow-up"},  # the second says to scale rewards
    "reward-negated": {"value-sign-turned", "worse-than-random"},  # the second names a sign error first
    "learning-starts-late": {"learning-never-started"},
    "buffer-tiny": {"replay-too-small"},
    "updates-rare": {"rows-hardly-used"},
    "temperature-huge": {"temperature-drowns-reward"},
    "target-entropy-unreachable": {"target-entropy-unreachable", "temperature-runaway"},
    "exploration-stays": {"exploration-never-ends"},
    "cap-reached": {"weights-at-cap"},
    "weights-uniform": {"weights-uniform"},
    "few-rows-decide": {"few-rows-decide"},
    "value-above-q": {"value-above-q", "advantage-one-sided"},  # an expectile near 1 puts V above all actions
    "bootstrap-beyond-end": {"value-beyond-end", "value-above-dataset", "value-above-bound"},
    "freebits": {"dynamics-never-trained"},
    "collapsed": {"posterior-collapsed"},
}


class Scored(NamedTuple):
    """One run: its fault, what was said first, whether that names the fault, the loudest finding."""

    fault: str
    run: str
    algo: str
    first: list[str]
    named: bool
    loud: list[str]
    learned: bool


def score(folder: Path, fault: str) -> Scored:
    report = examine(folder)
    view = report.runs[0].view
    first = [f.slug for f in lead(report.main)]
    loud = [f.slug for f in report.main if f.severity in ("warning", "error")]
    last = view.standing()
    learned = last is not None and view.well_above_random(last)
    named = bool(CAUSES.get(fault, set()) & set(first))
    return Scored(fault, folder.name, str(view.algo), first, named, loud, learned)


def all_scores(root: Path) -> list[Scored]:
    found = []
    for folder in sorted(path for path in root.glob("*/*") if path.is_dir()):
        if folder.parent.name == "healthy" or folder.parent.name in CAUSES:
            try:
                found.append(score(folder, folder.parent.name))
            except RecordError as error:
                print(f"{folder}: left out: {error}")
    return found


def share(hits: int, n: int) -> str:
    if not n:
        return "0 of 0"
    interval = wilson(hits, n)
    return f"{hits} of {n} ({hits / n:.0%}, {interval.low:.0%} to {interval.high:.0%})"


def table(scores: list[Scored]) -> list[str]:
    lines = ["| fault | algorithm | named | warned | did no harm | findings of the first run |",
             "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    cells: dict[tuple[str, str], list[Scored]] = {}
    for each in scores:
        if each.fault != "healthy":
            cells.setdefault((each.fault, each.algo), []).append(each)
    for (fault, algo), group in sorted(cells.items()):
        said, n = ", ".join(group[0].first) or "none", len(group)
        counts = [sum(s.named for s in group), sum(bool(s.loud) for s in group), sum(s.learned for s in group)]
        lines.append(f"| {fault} | {algo} | {' | '.join(f'{k} of {n}' for k in counts)} | {said} |")
    return lines


def by_algorithm(scores: list[Scored]) -> list[str]:
    """What was named, and what healthy runs were warned about, of each method by itself."""
    lines = ["| algorithm | faulty runs named | healthy runs warned about |", "| --- | --- | --- |"]
    for algo in sorted({s.algo for s in scores}):
        faulty, healthy = split([s for s in scores if s.algo == algo])
        said = share(sum(s.named for s in faulty), len(faulty)), share(sum(bool(s.loud) for s in healthy), len(healthy))
        lines.append(f"| {algo} | {said[0]} | {said[1]} |")
    return lines


def split(scores: list[Scored]) -> tuple[list[Scored], list[Scored]]:
    return [s for s in scores if s.fault != "healthy"], [s for s in scores if s.fault == "healthy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    scores = [each for folder in args.folders for each in all_scores(folder)]
    faulty, healthy = split(scores)
    print("\n".join([*table(scores), "", *by_algorithm(scores)]))
    print(f"\ncause among the first three: {share(sum(s.named for s in faulty), len(faulty))}")
    alarmed = [s for s in healthy if s.loud]
    print(f"healthy settings with a warning or an error: {share(len(alarmed), len(healthy))};"
          f" {sum(s.learned for s in healthy)} of {len(healthy)} ended clear of random")  # fmt: skip
    for each in alarmed:
        print(f"  {each.run}: {', '.join(each.loud)}")
    if args.json:
        told: dict[str, Any] = {"cases": [s._asdict() for s in scores]}
        args.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
