"""relab faults: plant known faults in real runs and count how often the examiner names them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relab.base.terminal import keep_going
from relab.commands import dry_run
from relab.commands.options import DryRun
from relab.commands.parsing import parse

if TYPE_CHECKING:
    from relab.lab.faults.suite import Alarm, Matrix, Rate, Score

EXAMPLES = """
  relab faults                                        every fault, seeds 0 to 2: about a quarter of an hour of one core
  relab faults --only gradient-clip-1e-6 --seeds 0 1  one fault
  relab faults --envs cartpole-dreamer --seeds 0      Dreamer's: 18 runs of about a minute of one core
  relab faults --healthy runs/ other/logs             count false alarms on your own healthy runs too
  relab faults --dry-run                              which runs that would train
  relab faults --list                                 the faults, and which findings count as naming each
"""


@dataclass(frozen=True)
class Faults:
    """Plant each fault in real training runs, let the examiner see a copy that does not name it, score the findings."""

    only: tuple[str, ...] = ()
    """faults to plant; default: all"""
    seeds: tuple[int, ...] = (0, 1, 2)
    """a run each; with two or more, a healthy run of another seed serves as reference"""
    envs: tuple[str, ...] = ("cartpole", "pendulum")
    """environments to train on"""
    healthy: tuple[Path, ...] = ()
    """folders of healthy runs made elsewhere, of any format that relab reads"""
    out: Path = Path("faults")
    """folder for the runs and the matrix; what is there is not trained again"""
    workers: int = 1
    """processes that train side by side"""
    list: bool = False
    """only list the faults"""
    json: bool = False
    """print the matrix as JSON"""
    dry_run: DryRun = False


def main(words: Sequence[str]) -> int:
    args = parse(Faults, "faults", words, EXAMPLES)
    from relab.config.base import require

    require(args.workers >= 1, f"`--workers` must be at least 1, but is {args.workers}")
    from relab.lab.faults import suite

    suite.check(args.only, args.envs, args.seeds)
    if args.list:
        print(listed(args.only))
        return 0
    if args.dry_run:
        return dry_run.say(planned(args), args.json)
    keep_going()
    scores = suite.run_suite(args.out, args.only, args.envs, args.seeds, args.workers, say)
    healthy = suite.healthy_alarms(args.out, scores, args.healthy)
    scorecard = suite.Matrix(shlex.join(["relab", "faults", *words]), commit(), list(args.seeds), scores, healthy)
    keep(args.out, scorecard)
    print(encoded(scorecard) if args.json else markdown(scorecard), end="")
    return 0


def planned(args: Faults) -> list[str]:
    """What --dry-run says."""
    from relab.lab.faults import suite

    todo = suite.planned(args.only, args.envs, args.seeds)
    left = suite.missing(args.out, todo)
    folders = "".join(f" and the runs below {folder}" for folder in args.healthy)
    return [*(f"train {case.label}" for case in left), f"examine {len(todo)} runs{folders}",
            f"write {args.out / 'faults.json'} and {args.out / 'faults.md'}"]  # fmt: skip


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def encoded(scorecard: Matrix) -> str:
    from relab.base.jsonl import encode

    return encode(scorecard.to_json()).decode()


def commit() -> str | None:
    from relab.record import provenance

    known: str | None = provenance.start(Path(__file__).parent).collect()["commit"]
    return known


def keep(out: Path, scorecard: Matrix) -> None:
    from relab.base.jsonl import write_atomic

    out.mkdir(parents=True, exist_ok=True)
    for name, text in (("faults.json", encoded(scorecard)), ("faults.md", markdown(scorecard))):
        write_atomic(out / name, text.encode())


def listed(only: Sequence[str]) -> str:
    from relab.lab.faults.catalogue import FAULTS

    chosen = [FAULTS[name] for name in only] if only else FAULTS.values()
    return "\n".join(
        f"{f.name} ({', '.join(f.envs)})\n  counts: {', '.join(sorted(f.causes))}{f'{chr(10)}  {f.why}' * bool(f.why)}"
        for f in chosen
    )


# ---- The matrix as Markdown


def markdown(scorecard: Matrix) -> str:
    parts = [head(scorecard), matrix(scorecard.scores), missed(scorecard.scores), wolves(scorecard.healthy)]
    return "\n\n".join(part for part in parts if part) + "\n"


def share(rate: Rate) -> str:
    if not rate.n:
        return "not measured"
    return f"{rate.hits} of {rate.n} ({rate.share:.0%}, 95 % interval {rate.low:.0%} to {rate.high:.0%})"


def head(scorecard: Matrix) -> str:
    s, seeds = scorecard.summary, ", ".join(map(str, scorecard.seeds))
    lines = [
        f"`{scorecard.command}` at commit {scorecard.commit or 'unknown'}, seeds {seeds}.",
        "",
        f"- cause among the first three findings, run alone: {share(s.alone)}",
        f"- beside a healthy run of another seed: {share(s.beside)}",
        f"- healthy runs with a warning or an error: {share(s.healthy_runs)}",
        f"- healthy folders with one: {share(s.healthy_folders)}",
    ]
    return "\n".join(lines)


def table(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def matrix(scores: list[Score]) -> str:
    """A row per fault and environment: how many seeds had the cause named, and what was said first."""
    rows = [["fault", "environment", "named alone", "beside a healthy run", "findings of the first seed"]]
    planted = [s for s in scores if s.case.fault is not None]
    for key in dict.fromkeys((s.case.fault or "", s.case.env) for s in planted):
        mine = [s for s in planted if (s.case.fault, s.case.env) == key]
        beside = [s for s in mine if s.beside is not None]
        alone = f"{sum(s.named(s.first) for s in mine)} of {len(mine)}"
        near = f"{sum(s.named(s.beside) for s in beside)} of {len(beside)}" if beside else "-"
        rows.append([*key, alone, near, ", ".join(mine[0].first) or "none"])
    return table(rows) if planted else ""


def missed(scores: list[Score]) -> str:
    """Each case whose cause was not named, with what was said instead."""
    rows = [["not named", "seed", "alone", "beside", "further down"]]
    for s in scores:
        alone, beside = s.named(s.first), s.beside is None or s.named(s.beside)
        if s.case.fault is not None and not (alone and beside):
            said = ["named" if alone else ", ".join(s.first) or "nothing"]
            said.append("named" if beside else ", ".join(s.beside or []) or "nothing")
            rows.append([f"{s.case.fault}, {s.case.env}", str(s.case.seed), *said, ", ".join(s.also)])
    return table(rows) if len(rows) > 1 else ""


def wolves(healthy: list[Alarm]) -> str:
    rows = [["healthy folder", "runs", "with a warning or an error", "rules"]]
    for each in healthy:
        rules = ", ".join(f"{slug} x{n}" for slug, n in sorted(each.slugs.items()))
        rows.append([each.folder, str(each.runs), str(each.alarmed), rules or "none"])
    return table(rows) if healthy else ""
