"""A real program that a loop can improve in hundredths of a second, and a loop around it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from relab.lab import loop
from relab.lab.loop.drive import Looping

PYTHON = f"{sys.executable} -I -S"
PROGRAM = """
import math, os, sys, zlib
x, y, seed, run = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with open("calls.txt", "a") as file:
    file.write(os.path.basename(run) + "\\n")
word = (seed * 2654435761 + zlib.crc32(f"{x} {y}".encode())) % 2**32
total = 0.0
for _ in range(12):
    word = (1664525 * word + 1013904223) % 2**32
    total += word / 2**32
score = 4 - 4 * abs(math.log10(x)) + (total - 6)
with open(os.path.join(run, "progress.csv"), "w") as file:
    print("step,my_score", "1,0", f"2,{score}", sep="\\n", file=file)
"""
ASKED = """
question: Which x is best?
command: {python} program.py {{x}} {{y}} {{seed}} {{run}}
base: {{x: {x}, y: 1.0}}
metric: my_score
smallest_effect: 0.5
range: [-100, 100]
findings: false
sampler: sobol
seeds: {{noise: 6, first: 2, confirm: 5, again: 1}}
policy:
  allow:
    x: {{low: 0.01, high: 10, log: true}}
    y: {{low: 0, high: 5}}
{more}
"""

Write = Callable[..., Path]


def write(x: float = 0.1, more: str = "", program: str = PROGRAM) -> Path:
    """The program and its loop, in the current folder."""
    Path("program.py").write_text(program)
    path = Path("l.yaml")
    path.write_text(ASKED.format(python=PYTHON, x=x, more=more))
    return path


def prepare(path: Path = Path("l.yaml"), lines: list[str] | None = None) -> Looping:
    said = [] if lines is None else lines
    return loop.prepare(loop.load(path), Path("loops/l"), 2, said.append)


def calls() -> list[str]:
    return Path("calls.txt").read_text().split() if Path("calls.txt").exists() else []
