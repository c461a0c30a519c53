"""relab coverage: how often do relab's intervals hold the truth, and how often does it call a winner by mistake?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relab.commands.parsing import parse

if TYPE_CHECKING:
    from relab.stats.simulate import Cell

EXAMPLES = """
  relab coverage
  relab coverage --reps 100000 --seed 1
  relab coverage --json
  relab coverage --race
  relab coverage --loop --reps 1000
"""


@dataclass(frozen=True)
class Coverage:
    """Simulate the intervals behind an answer on outcomes of known shape: coverage, A/A error, power."""

    reps: int = 10_000
    """experiments simulated for each cell"""
    seed: int = 0
    """of the simulation"""
    race: bool = False
    """what racing in a sweep saves instead, and how often it drops the best (docs/sweep.md)"""
    loop: bool = False
    """how often a loop keeps what is no better, and what is (docs/loop.md)"""
    json: bool = False
    """print every cell as JSON"""


def main(words: Sequence[str]) -> int:
    args = parse(Coverage, "coverage", words, EXAMPLES)
    from relab.config.base import require
    from relab.stats import simulate, simulate_pairs, simulate_power

    require(args.reps >= 100, f"`--reps` must be at least 100, but is {args.reps}")
    if args.race or args.loop:
        return print_races(args) if args.race else print_loops(args)
    tables = (simulate.table, simulate_power.table, simulate_pairs.table)
    cells = [cell for table in tables for cell in table(args.reps, args.seed)]
    if args.json:
        from relab.base.jsonl import encode

        rows = [{**cell._asdict(), "error": cell.error} for cell in cells]
        print(encode({"reps": args.reps, "seed": args.seed, "cells": rows}).decode(), end="")
        return 0
    print(markdown(cells, args.reps, args.seed))
    return 0


def print_races(args: Coverage) -> int:
    from relab.base.jsonl import encode
    from relab.stats import racing

    rows = racing.savings(args.reps, args.seed)
    if args.json:
        print(encode({"reps": args.reps, "seed": args.seed, "races": [row._asdict() for row in rows]}).decode(), end="")
        return 0
    print("| arms | how many | runs saved | best dropped |\n| --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row.case} | {row.arms} | {100 * row.saved:.1f} % | {100 * row.lost:.2f} % |")
    return 0


def print_loops(args: Coverage) -> int:
    from relab.base.jsonl import encode
    from relab.stats import simulate_loop

    rows = simulate_loop.table(args.reps, args.seed)
    if args.json:
        print(encode({"reps": args.reps, "seed": args.seed, "loops": [row._asdict() for row in rows]}).decode(), end="")
    else:
        print(simulate_loop.markdown(rows, args.seed))
    return 0


def markdown(cells: list[Cell], reps: int, seed: int) -> str:
    """The tables, as they stand in docs/statistics.md."""
    heads, marks = introductions(reps, seed), marked_cells()
    parts: dict[str, list[Cell]] = {name: [] for name in heads}
    for cell in cells:
        parts[cell.kind if cell.kind in parts else "cover"].append(cell)
    return "\n\n".join(
        f"{text}\n\n{grid(parts[name], 'look ' if name == 'looks' else 'n = ', marks.get(name))}"
        for name, text in heads.items()
    )


def introductions(reps: int, seed: int) -> dict[str, str]:
    """What stands above each table, by the kind of its cells."""
    from relab.stats.simulate import EPISODES, LEAST_COVER, LEVEL, LOOKS
    from relab.stats.simulate_pairs import ALPHA, KIND
    from relab.stats.simulate_power import KINDS

    power = (
        "At {}: `A/A error` is the answer's where nothing differs, `coverage` how often its interval holds the true"
        " difference, `answer` its power, `before` that of the widened Welch interval of earlier versions, the others"
        " those of a test that might stand in its place (`*`: not valid there, it errs too often). `share of the best`"
        " is the answer's power over that of the best valid test."
    )
    return {
        "cover": f"{reps:,} simulated experiments a cell, seed {seed}; ± is one standard error. Intervals of"
        f" {LEVEL:.0%}; `*` marks cells below {LEAST_COVER}. Success rates have {EPISODES} episodes a seed. `shown`:"
        " how often there is an interval, which there is not where both arms are at a known ceiling.",
        "looks": "Chance that any look so far calls a winner (either way) between identical arms;"
        f" `*` marks cells above {1 - LEVEL:.0%}. `halves` is what relab does where no looks are declared, here at"
        f" {LOOKS} seeds a variant.",
        "family": "Chance that any variant is called better or worse than the control when all are alike; `*` marks"
        f" cells above {1 - LEVEL:.0%}. `5 % shared` is what relab does.",
        **{kind: power.format(f"{100 * alpha:g} %") for kind, alpha in KINDS.items()},
        KIND: f"The same for pairs, at {100 * ALPHA:g} %: half of the variance is the seed's, `before` is t widened by"
        " Hall's correction.",
    }


def marked_cells() -> dict[str, Callable[[Cell], bool]]:
    """Which cells of a table get a star, by their kind."""
    from relab.stats.simulate import LEAST_COVER, LEVEL
    from relab.stats.simulate_pairs import KIND
    from relab.stats.simulate_power import KINDS

    def too_often(cell: Cell) -> bool:
        return cell.value > 1 - LEVEL + 3 * cell.error

    def too_seldom(cell: Cell) -> bool:
        return cell.value < LEAST_COVER and cell.method != "shown"

    power: dict[str, Callable[[Cell], bool]] = dict.fromkeys([*KINDS, KIND], lambda cell: cell.mark)
    return {**power, "cover": too_seldom, "looks": too_often, "family": too_often}


def grid(cells: list[Cell], label: str, marked: Callable[[Cell], bool] | None) -> str:
    """A Markdown table: a row per pair of arms and method, a column per n."""
    columns = sorted({cell.n for cell in cells})
    rows: dict[tuple[str, ...], dict[int, str]] = {}
    for cell in cells:
        text = f"{cell.value:.3f} ± {cell.error:.3f}{'*' if marked and marked(cell) else ''}"
        rows.setdefault((cell.kind, cell.a, cell.b, cell.method), {})[cell.n] = text
    head = ["of", "A", "B", "method", *(f"{label}{n}" for n in columns)]
    body = [[*key, *(row.get(n, "") for n in columns)] for key, row in rows.items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])
