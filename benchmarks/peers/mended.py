"""Does what `relab next` proposes mend a sick run? Bad settings of mended_kinds.py: run, ask, change, run again.

    .venv-sb3/bin/python -m benchmarks.peers.mended OUT --relab ".venv/bin/relab" [--part apart] [--only NAME ...]
    python -m benchmarks.peers.mended_table OUT

The proposal is taken as it is typed (`relab next --json`): its change, and nothing else, is made to the settings of the
same script or library. Where that did not mend it, `next` is asked again about the changed run, up to three changes in
all. OUT/mended.jsonl has a line for each sick run that was made; those listed are not made again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers import making, plan, scripts, tasks
from benchmarks.peers.mended_kinds import KEPT_APART, KINDS, SEEDS, SEEDS_APART, Bad, Settings
from benchmarks.peers.mended_table import CHANGES, LIST, Row, rows

PARTS = {"development": (KINDS, SEEDS), "apart": (KEPT_APART, SEEDS_APART)}
STEPS = ("total_timesteps", "n_timesteps", "total_steps")  # what runs of Stable-Baselines3 call their length


def settings_of(kind: Bad) -> Settings:
    base = (plan.SB3 if kind.tool == "sb3" else plan.CLEANRL)[kind.algo]["a"]
    return base | {"gamma": plan.gamma(kind.task, base["gamma"])} | kind.settings


def made(kind: Bad, seed: int, settings: Settings, folder: Path) -> float:
    """The level of what was learned with these settings; of a run that died, none."""
    folder.mkdir(parents=True)
    try:
        if kind.tool == "cleanrl":
            policy = scripts.by_script(kind.algo, kind.task, seed, settings, folder / "runs")
        else:
            total = next((settings[key] for key in STEPS if key in settings), None)
            own = {key: value for key, value in settings.items() if key not in STEPS}
            place = folder / f"{kind.algo}/{kind.task}_1"
            policy = making.by_sb3(kind.algo, kind.task, seed, own, place, ("csv", "eval", "zip"), total=total)
        return making.evaluated(policy, tasks.ALL[kind.task])
    except (ValueError, RuntimeError):  # networks that became NaN: the log ends here, as it would
        return math.nan


def proposal(folder: Path, relab: list[str]) -> dict[str, Any]:
    done = subprocess.run([*relab, "next", str(folder), "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["proposal"]  # type: ignore[no-any-return]


def typed(words: str) -> Iterator[tuple[str, Any]]:
    """`learning_rate=0.0003` or `--learning-rate 0.0003`, as settings."""
    tokens = words.replace("=", " ").split()
    for key, value in zip(tokens[::2], tokens[1::2], strict=True):
        try:
            number = float(value)
        except ValueError:
            yield key.strip("-").replace("-", "_"), value
            continue
        yield key.strip("-").replace("-", "_"), int(number) if number.is_integer() and "." not in value else number


def half(kind: Bad, before: float, after: float) -> bool:
    """Whether it went half of the way from the sick run to the level asked. A run that died stands at random."""
    low, top = tasks.LEVELS[kind.task]
    start = low if math.isnan(before) else before
    return after >= start + 0.5 * (low + tasks.WAY * (top - low) - start)


def treated(kind: Bad, seed: int, folder: Path, relab: list[str]) -> Row:
    """The sick run, and what became of it after each change that was proposed."""
    settings, place = settings_of(kind), folder / "0"
    levels, changes, reasons = [made(kind, seed, settings, place)], [], []
    for number in range(CHANGES):
        if tasks.reached(kind.task, levels[-1]):
            break
        advice = proposal(place, relab)
        reasons.append(advice.get("rationale") or advice.get("why") or "")
        if not advice.get("diff"):
            break
        changes.append(dict(typed(advice["command"])))
        settings, place = settings | changes[-1], folder / str(number + 1)
        levels.append(made(kind, seed, settings, place))
    return {"levels": levels, "changes": changes, "reasons": reasons, "sick": not tasks.reached(kind.task, levels[0]),
            "mended": [tasks.reached(kind.task, level) for level in levels[1:]],
            "half": [half(kind, levels[0], level) for level in levels[1:]]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--relab", default=".venv/bin/relab", help="how relab is called, in one string")
    parser.add_argument("--part", choices=list(PARTS), default="development")
    parser.add_argument("--seeds", type=int, nargs="+", default=[])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no further run after these")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    began, (kinds, seeds) = time.monotonic(), PARTS[args.part]
    listed = {(row["kind"], row["algo"], row["seed"]) for row in rows(args.out)}
    waiting = [(k, s) for s in args.seeds or seeds for k in kinds if k.name in (args.only or [k.name])]
    for kind, seed in (pair for pair in waiting if (pair[0].name, pair[0].algo, pair[1]) not in listed):
        if time.monotonic() - began > args.seconds:
            return
        number = hashlib.sha1(f"{kind} {seed}".encode()).hexdigest()[:8]  # says nothing of the fault: paths are read
        shutil.rmtree(args.out / number, ignore_errors=True)
        known = {"part": args.part, "path": number, "seed": seed} | kind._asdict() | {"kind": kind.name}
        row = known | treated(kind, seed, args.out / number, shlex.split(args.relab))
        with (args.out / LIST).open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{kind.name} s{seed}: {row['levels']}, {row['changes']}", flush=True)


if __name__ == "__main__":
    main()
