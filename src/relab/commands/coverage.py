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
"""


@dataclass(frozen=True)
class Coverage:
    """Simulate the intervals behind an answer on outcomes of known shape: coverage, A/A error, power."""

    reps: int = 20_000
    """experiments simulated for each cell"""
    seed: int = 0
    """of the simulation"""
    json: bool = False
    """print every cell as JSON"""


def main(words: Sequence[str]) -> int:
    args = parse(Coverage, "coverage", words, EXAMPLES)
    from relab.config.base import require
    from relab.stats import simulate

    require(args.reps >= 100, f"`--reps` must be at least 100, but is {args.reps}")
    cells = simulate.table(args.reps, args.seed)
    if args.json:
        from relab.base.jsonl import encode

        rows = [{**cell._asdict(), "error": cell.error} for cell in cells]
        print(encode({"reps": args.reps, "seed": args.seed, "cells": rows}).decode(), end="")
        return 0
    print(markdown(cells, args.reps, args.seed))
    return 0


def markdown(cells: list[Cell], reps: int, seed: int) -> str:
    """The tables, as they stand in docs/statistics.md."""
    from relab.stats.simulate import EPISODES, LEAST_COVER, LEVEL, LOOKS

    head = (
        f"{reps:,} simulated experiments a cell, seed {seed}; ± is one standard error. Intervals of {LEVEL:.0%};"
        f" `*` marks cells below {LEAST_COVER}. Success rates have {EPISODES} episodes a seed."
    )
    again = (
        f"Chance that any look so far calls a winner (either way) between identical arms, at {LOOKS} seeds a variant;"
        f" `*` marks cells above {1 - LEVEL:.0%}. `spent` is what relab does."
    )
    family = (
        "Chance that any variant is called better or worse than the control when all are alike; `*` marks cells above"
        f" {1 - LEVEL:.0%}. `5 % shared` is what relab does."
    )
    power = "Chance that the interval lies above 0 when B is better by so many standard deviations."

    def too_often(cell: Cell) -> bool:
        return cell.value > 1 - LEVEL + 3 * cell.error

    groups = {"cover": head, "looks": again, "family": family, "power": power}
    parts: dict[str, list[Cell]] = {name: [] for name in groups}
    for cell in cells:
        parts[cell.kind if cell.kind in parts else "cover"].append(cell)
    marks = {"cover": lambda cell: cell.value < LEAST_COVER, "looks": too_often, "family": too_often}
    return "\n\n".join(
        f"{text}\n\n{grid(parts[name], 'look ' if name == 'looks' else 'n = ', marks.get(name))}"
        for name, text in groups.items()
    )


def grid(cells: list[Cell], label: str, marked: Callable[[Cell], bool] | None) -> str:
    """A Markdown table: a row per pair of arms and method, a column per n."""
    columns = sorted({cell.n for cell in cells})
    rows: dict[tuple[str, ...], dict[int, str]] = {}
    for cell in cells:
        text = f"{cell.value:.3f} ± {cell.error:.3f}{'*' if marked and marked(cell) else ''}"
        rows.setdefault((cell.kind, cell.a, cell.b, cell.method), {})[cell.n] = text
    head = ["of", "A", "B", "method", *(f"{label}{n}" for n in columns)]
    body = [[*key, *(row[n] for n in columns)] for key, row in rows.items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])
