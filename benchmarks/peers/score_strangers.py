"""How many faults in strangers' logs does the examiner name, and how many healthy runs does it warn about?

    python -m benchmarks.peers.score_strangers --faults OUT --healthy OUT [--part held-out-2] [--json FILE]

Each run is examined alone, as its owner would. A fault is seen when a warning or an error among the first three
findings is about one of its kind's topics or names one of its signs (fault_kind.py, which also says of which runs the
log shows the fault). A healthy run is one that reached its task's level.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers import fault_kind, fault_kinds, fault_kinds_held_out, fault_kinds_later
from benchmarks.peers.fault_kind import Kind
from benchmarks.peers.healthy_listing import outcomes
from benchmarks.peers.score_faults import share
from relab.base.jsonl import RecordError
from relab.health.examine import examine
from relab.health.render import lead
from relab.health.rule import Finding
from relab.health.rules.outside import side_of

KINDS = {kind.name: kind for kind in (*fault_kinds.KINDS, *fault_kinds_held_out.KINDS, *fault_kinds_later.KINDS)}
LOUD = ("warning", "error")
OUTSIDE = "outside-healthy-runs"


class Scored(NamedTuple):
    path: str
    tool: str
    label: str  # kind of fault, or algorithm and task
    first: list[str]  # what is shown first, loud or not
    loud: list[str]  # all warnings and errors
    seen: bool
    shown: bool = True  # whether the log shows the fault
    new: bool = False  # whether the kind was unknown when the part was frozen


def slugs(kind: Kind) -> set[str]:
    return {slug for topic in kind.topics for slug in fault_kind.TOPICS[topic]}


def counts(finding: Finding, kind: Kind) -> bool:
    """Whether a finding is about one of the kind's topics, or names one of its signs."""
    signs = {(e.metric, side_of(e)) for e in finding.evidence} if finding.slug == OUTSIDE else set()
    return finding.severity in LOUD and (finding.slug in slugs(kind) or bool(signs & {*kind.signs}))


def scored(root: Path, row: dict[str, Any], label: str, kind: Kind | None) -> Scored:
    try:
        findings = examine(root / row["path"]).main
    except RecordError as error:
        print(f"{row['path']}: {error}")
        return Scored(row["path"], row["tool"], label, [], [], False)
    first = lead(findings)
    loud = [finding.slug for finding in findings if finding.severity in LOUD]
    seen = kind is not None and any(counts(finding, kind) for finding in first)
    return Scored(row["path"], row["tool"], label, [f.slug for f in first], loud, seen)


def of_faults(root: Path, part: str) -> list[Scored]:
    rows = [row for row in outcomes(root) if row["part"] == part]
    return [_of_fault(root, row, KINDS[row["kind"]]) for row in rows]


def _of_fault(root: Path, row: dict[str, Any], kind: Kind) -> Scored:
    new = kind in (fault_kinds_later if row["part"] == "held-out-2" else fault_kinds_held_out).KINDS
    return scored(root, row, row["kind"], kind)._replace(shown=kind.shown(row["reached"]), new=new)


def of_healthy(root: Path, part: str) -> list[Scored]:
    rows = [row for row in outcomes(root) if row["part"] == part and row["healthy"] and row["tool"] != "relab"]
    return [scored(root, row, f"{row['algo']} on {row['task']}", None) for row in rows]


def by_tool(scores: list[Scored], what: str) -> Iterable[str]:
    for tool in ("", *sorted({score.tool for score in scores})):
        group = [score for score in scores if tool in ("", score.tool)]
        hits = sum(score.seen if what == "seen" else bool(score.loud) for score in group)
        yield f"  {tool or 'all'}: {share(hits, len(group))}"


def of_all(sick: list[Scored], well: list[Scored]) -> Iterable[str]:
    """Each group under its heading."""
    groups = {"faults seen, all runs": sick, "runs whose log shows the fault": [s for s in sick if s.shown],
              "of these, kinds that no rule knew": [s for s in sick if s.shown and s.new],
              "of these, known kinds, a new seed": [s for s in sick if s.shown and not s.new]}  # fmt: skip
    for heading, scores in groups.items():
        yield from (heading, *by_tool(scores, "seen"))
    yield from ("healthy runs warned about", *by_tool(well, "loud"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=Path)
    parser.add_argument("--healthy", type=Path)
    parser.add_argument("--part", choices=["development", "held-out", "held-out-2"], default="development")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    sick = of_faults(args.faults, args.part) if args.faults else []
    well = of_healthy(args.healthy, "table" if args.part == "development" else args.part) if args.healthy else []
    for score in sick:
        word = "seen  " if score.seen else "missed" if score.shown else "hidden"
        print(f"{word} {score.label} {score.path}: {', '.join(score.first) or 'nothing'}")
    for score in (score for score in well if score.loud):
        print(f"alarm  {score.path}: {', '.join(score.loud)}")
    print("\n".join(of_all(sick, well)))
    if args.json:
        args.json.write_text(json.dumps([score._asdict() for score in sick + well], indent=1) + "\n")


if __name__ == "__main__":
    main()
