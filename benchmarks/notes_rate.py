"""How often does `relab examine --notes` call a true sentence wrong, or let a false one pass? Sentences made from runs.

Run as `python -m benchmarks.notes_rate [--runs DIR] [--more DIR ...] [--alone] [--draws N] [--set NAME] [--seed N]
[-v]`; with --alone nothing is trained, and only the runs of --more are written about. For each run it
draws values out of the record, puts them into sentences whose truth is known by construction, and counts what the
check says of each: one sentence a text in the first three sets, whole write-ups (notes_writeups.py) from the fourth
on. The phrases of a set were written before it was first measured and are not changed after; a set that led to a
change of the code is spent, and the next one measures it. Runs come from relab's own, trained on the spot into DIR
where it is empty; the fixtures that other libraries wrote and the histories of the rules; records beside the
repository, where there are any; and the folders of --more.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks import notes_phrases
from benchmarks.common import ROOT, machine, write
from benchmarks.notes_sentences import SETS
from benchmarks.notes_writeups import Piece, curve_facts, of_run, write_up
from relab.config.views import flatten
from relab.health import examine
from relab.health.curve import Curve
from relab.health.view import View
from relab.notebook.check import notes
from relab.notebook.check.wording import plain
from relab.stats.rates import wilson

RUNS = 10  # seeds of relab's own
CHILDREN = {"one": ("algo.lr", "0.0005"), "two": ("algo.clip", "0.1"), "three": ("algo.ent_coef", "0.03"),
            "four": ("algo.gamma", "0.95"), "five": ("algo.lam", "0.8"), "six": ("algo.value_coef", "0.9"),
            "seven": ("algo.max_grad_norm", "1.0"), "eight": ("algo.lr", "0.008")}  # fmt: skip
PLACES = (ROOT / "tests/formats/read/fixtures/sb3", ROOT / "tests/formats/read/fixtures/rllib",
          ROOT.parent / "shared/corpus")  # fmt: skip
CURVE_FACTS, RUN_FACTS = 6, 3  # claims of a write-up
PER_RUN = 2  # sentences of each kind about one run
NAMED = {"eval/return_det": "eval return", "return/mean": "episode return", "policy/entropy": "entropy",
         "value/loss": "value loss", "policy/kl": "approx_kl", "value/explained_variance": "explained variance",
         "policy/clip_share": "clip fraction"}  # fmt: skip


@dataclass(frozen=True)
class Said:
    """A sentence about a run, and whether it is true."""

    run: str
    kind: str
    true: bool
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("notes_runs"))
    parser.add_argument("--more", type=Path, nargs="*", default=[])
    parser.add_argument("--set", choices=[*SETS, *notes_phrases.SETS], default=list(notes_phrases.SETS)[-1])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--draws", type=int, default=1, help="write-ups of each run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    started = machine()
    rows: list[tuple[Said | Piece, str]] = []
    runs = 0
    for place in [*([] if args.alone else standard(args.runs)), *args.more]:
        report = examine.examine(place)
        runs += len(report.runs)
        for seed in range(args.seed, args.seed + args.draws):
            rng = Random(f"{seed} {place.name}")
            rows += measured(report, SETS[args.set], rng) if args.set in SETS else of_texts(report, args.set, rng)
    print(f"{runs} runs")
    if args.v:
        wrong = [(said, got) for said, got in rows if (got == "contradicted") == said.true]
        print("\n".join(f"{said.kind}, {said.true}, {got}: {said.run}: {said.text}" for said, got in wrong))
    table = counted(rows)
    print(shown(table))
    write(f"notes_rate_{args.set}", {"set": args.set, "seed": args.seed, "runs": runs, "kinds": table}, started)


def standard(runs: Path) -> Iterator[Path]:
    """relab's own runs, made where they are missing; histories, fixtures, records beside the repository."""
    make(runs)
    yield from (runs, *histories(), *(path for path in PLACES if path.is_dir()))


def histories() -> Iterator[Path]:
    """Those of the rules; half of them are made on the spot."""
    sys.path.insert(0, str(ROOT / "tests"))
    import where

    yield from (where.histories() / kind for kind in ("healthy", "faulty"))


def make(folder: Path) -> None:
    """Ten short runs of PPO on CartPole, and eight that change one setting of the first each."""
    train = [sys.executable, "-m", "relab.cli", "train", "--quiet", "--runs", str(folder)]
    for seed in range(RUNS):
        if not (folder / f"base-s{seed}").exists():
            words = ["ppo", "env=cartpole", "total_steps=20000", f"seed={seed}", "--name", f"base-s{seed}"]
            subprocess.run([*train, *words], check=True)
    for name, (key, value) in CHILDREN.items():
        if not (folder / f"child-{name}").exists():
            words = [f"{key.removeprefix('algo.')}={value}", "--parent", "base-s0", "--name", f"child-{name}"]
            subprocess.run([*train, *words], check=True)


# ---- Sentences


def measured(report: examine.Report, words: dict[str, list[str]], rng: Random) -> list[tuple[Said | Piece, str]]:
    """Every sentence about the runs of one place, with what the check says of it."""
    views = [run.view for run in report.runs if len(run.view.history.columns)]
    found: list[tuple[Said | Piece, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for view in views:
            for said in sentences(view, words, rng):
                path = Path(folder) / "LOG.md"
                path.write_text(f"## Run `{view.name}`\n\n{said.text}\n", encoding="utf-8")
                found.append((said, verdict(notes.check(path, report), said)))
    return found


def verdict(found: notes.Notes, said: Said) -> str:
    if said.kind.startswith("change "):
        return "contradicted" if found.unsaid else "matched"
    states = {each.status for each in found.checked if each.claim.line == 3}
    return next((state for state in ("contradicted", "matched") if state in states), "unmatched")


def of_texts(report: examine.Report, name: str, rng: Random) -> list[tuple[Said | Piece, str]]:
    """Every claim of a write-up about each run of one place, with what the check says of it."""
    verdicts: list[tuple[Said | Piece, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "LOG.md"
        for text, pieces in texts(report, name, rng):
            path.write_text(text, encoding="utf-8")
            verdicts += attributed(notes.check(path, report), pieces)
    return verdicts


def texts(report: examine.Report, name: str, rng: Random) -> Iterator[tuple[str, list[Piece]]]:
    words, names, keys = notes_phrases.SETS[name]
    views = [run.view for run in report.runs if len(run.view.history.columns)]
    for view in views:
        about = list(of_run(view, views, keys, names, rng))
        facts = curve_facts(view, names, rng, CURVE_FACTS) + rng.sample(about, min(RUN_FACTS, len(about)))
        if facts:
            yield write_up(view, facts, words, rng)


def attributed(checks: notes.Notes, pieces: list[Piece]) -> list[tuple[Said | Piece, str]]:
    """What the check says of each piece; a contradiction that belongs to none of them is a false alarm of its own."""
    states: dict[int, set[str]] = {id(piece): set() for piece in pieces}
    strays: list[tuple[Said | Piece, str]] = []
    for each in checks.checked:
        owners = [piece for piece in pieces if belongs(each.claim.line, each.claim.text, piece)]
        for piece in owners[:1]:
            states[id(piece)].add(each.status)
        if not owners and each.status == "contradicted":
            strays.append((Piece(str(each.claim.run), "stray", True, each.claim.quote), "contradicted"))
    order = ("contradicted", "matched", "unmatched")
    return strays + [(p, next((s for s in order if s in states[id(p)]), "unmatched")) for p in pieces]


def belongs(line: int, text: str, piece: Piece) -> bool:
    if piece.line:
        return piece.line == line
    return bool(text.strip(" .")) and text.strip(" .") in plain(piece.text)


def sentences(view: View, words: dict[str, list[str]], rng: Random) -> Iterator[Said]:
    facts = [*of_curves(view, rng), *of_evaluations(view, rng), *of_settings(view, rng), *of_changes(view)]
    for kind, true, values in facts:
        if kind in words:
            yield Said(view.name, kind, true, rng.choice(words[kind]).format(**values))


Fact = tuple[str, bool, dict[str, Any]]


def of_curves(view: View, rng: Random) -> Iterator[Fact]:
    names = [name for name in NAMED if view.has(name) and np.isfinite(view.history.columns[name].values).sum() >= 8]
    for name in rng.sample(names, min(PER_RUN, len(names))):
        curve, told = view.curve(name), rng.choice([f"`{name}`", NAMED[name]])
        peak, last = float(curve.values.max()), float(curve.values[-1])
        at = rng.randrange(len(curve))
        base = {"m": told, "last": number(last), "peak": number(peak), "step": int(curve.steps[at]),
                "here": number(float(curve.values[at]))}  # fmt: skip
        yield "final", True, base
        yield "peak", True, base
        if rows_at(curve, at) == 1:
            yield "at step", True, base
            other = another(curve, at, rng)
            if other is not None:
                yield "wrong step", False, base | {"here": number(other)}
        span = float(np.ptp(curve.values)) or abs(last) or 1.0
        yield "wrong final", False, base | {"last": number(peak + (0.5 + rng.random()) * span)}
        low = float(curve.values.min())
        middle = low + 0.5 * span
        if abs(middle - peak) > 0.2 * span:
            yield "wrong peak", False, base | {"peak": number(middle)}


def of_evaluations(view: View, rng: Random) -> Iterator[Fact]:
    """Only where episodes are known is the noise; a peak is far from the end at four of its errors."""
    if not view.has_evals(view.by):
        return
    rows = [e for e in view.evals() if math.isfinite(e.se)]
    if len(rows) < 3:
        return
    best, last = max(rows, key=lambda e: e.mean), rows[-1]
    error = max(float(np.median([e.se for e in rows])), best.se, last.se)
    if best is not last and best.mean - last.mean > 4 * error:
        yield "peak as result", False, {"peak": number(best.mean)}
        yield "peak and end", True, {"peak": number(best.mean), "last": number(last.mean)}
    pairs = [(a, b) for a, b in pairwise(rows) if a.mean != b.mean]
    rng.shuffle(pairs)
    for a, b in pairs[: 2 * PER_RUN]:
        gap, noise = b.mean - a.mean, math.hypot(a.se, b.se)
        told = {"a": number(a.mean), "b": number(b.mean), "noise": number(noise)}
        if 0 < gap < noise:
            yield "luck as gain", False, told
            yield "luck as luck", True, told
        elif gap > 4 * noise:
            yield "gain", True, told


def of_settings(view: View, rng: Random) -> Iterator[Fact]:
    wanted = ("algo.lr", "algo.gamma", "algo.clip", "algo.ent_coef", "algo.epochs", "algo.envs", "algo.lam")
    flat = {key: value for key, value in flatten(view.history.config).items() if key in wanted}
    plain = [(key, value) for key, value in flat.items() if isinstance(value, (int, float)) and value]
    for key, value in rng.sample(plain, min(PER_RUN, len(plain))):
        told = {"k": key.removeprefix("algo."), "v": value}
        yield "setting", True, told
        yield "wrong setting", False, told | {"v": float(f"{value * rng.choice((0.25, 0.5, 2, 4)):.4g}")}


def of_changes(view: View) -> Iterator[Fact]:
    """Names of runs say nothing of the settings: one that does tells the change."""
    if view.name.startswith("child-"):
        key, value = CHILDREN[view.name.removeprefix("child-")]
        last = number(view.curve("return/mean", 1).last)
        told = {"k": key.removeprefix("algo."), "v": value, "last": last, "parent": "base-s0"}
        yield "change told", True, told
        yield "change untold", False, told


def rows_at(curve: Curve, at: int) -> int:
    return int((curve.steps == curve.steps[at]).sum())


def another(curve: Curve, at: int, rng: Random) -> float | None:
    """A value of the same curve far enough from the one at this step."""
    here, span = float(curve.values[at]), float(np.ptp(curve.values))
    far = [float(v) for v in curve.values if abs(float(v) - here) > 0.3 * span]
    return rng.choice(far) if far and span > 0 else None


def number(value: float) -> str:
    return f"{value:.4g}"


# ---- Counts


def counted(rows: list[tuple[Said | Piece, str]]) -> list[dict[str, Any]]:
    """Per kind, then all true and all false ones: how many were contradicted, matched, neither, with an interval."""
    kinds = list(dict.fromkeys((said.kind, said.true) for said, _ in rows))
    made = [_row(kind, true, [got for s, got in rows if s.kind == kind and s.true == true]) for kind, true in kinds]
    made.sort(key=lambda row: not row["true"])
    return made + [_row("all", true, [got for s, got in rows if s.true == true]) for true in (True, False)]


def _row(kind: str, true: bool, states: list[str]) -> dict[str, Any]:
    count, wrong = Counter(states), sum(state == "contradicted" for state in states)
    low, high = wilson(wrong, len(states))[1:3]
    return {"kind": kind, "true": true, "n": len(states), "contradicted": wrong, "matched": count["matched"],
            "unmatched": count["unmatched"], "share": wrong / len(states), "low": low, "high": high}  # fmt: skip


def shown(table: list[dict[str, Any]]) -> str:
    lines = ["| sentences | n | contradicted | matched | not matched |", "|---|---|---|---|---|"]
    for row in table:
        told = f"{row['contradicted']} ({row['share']:.1%}, {row['low']:.1%} to {row['high']:.1%})"
        kind = f"{'true' if row['true'] else 'false'}: {row['kind']}"
        lines.append(f"| {kind} | {row['n']} | {told} | {row['matched']} | {row['unmatched']} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
