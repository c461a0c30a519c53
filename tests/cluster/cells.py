"""What do the tests on real clusters run? Short programs that leave bytes, count how often they began and ended.

Like relab's own runs they look into their folder first: one that was killed after it had written its end, while Python
was shutting down, is sent again by the engine, which cannot know better, and finds that nothing is left to do.
"""

from __future__ import annotations

import sys
from pathlib import Path

from relab.lab.execute.local import Job

PROGRAM = """
import os, random, sys, time
folder, seed, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
os.makedirs(folder, exist_ok=True)
if os.path.exists(f"{folder}/ended"):
    sys.exit()
with open(f"{folder}/begun", "a") as file:
    file.write("begun\\n")
stream = random.Random(seed)
with open(f"{folder}/rows.jsonl", "w") as file:
    for step in range(10):
        file.write(f'{{"step": {step}, "value": {stream.random()}}}\\n')
        file.flush()
        time.sleep(pause)
with open(f"{folder}/ended", "a") as file:
    file.write("ended\\n")
"""


def program(folder: Path) -> Path:
    path = folder / "program.py"
    path.write_text(PROGRAM)
    return path


def jobs(folder: Path, count: int, pause: float) -> list[Job]:
    """Each works in a folder of its own and is done once it has said so."""
    path = program(folder)
    return [job(path, folder, seed, pause) for seed in range(count)]


def job(path: Path, folder: Path, seed: int, pause: float) -> Job:
    mine = folder / "runs" / f"cell-{seed}"
    words = [sys.executable, str(path), str(mine), str(seed), str(pause)]
    return Job(mine.name, lambda: words, lambda: (mine / "ended").exists(), folder / "logs" / f"{mine.name}.log",
               elsewhere=words, relab=False)  # fmt: skip


def lines(folder: Path, name: str) -> list[int]:
    """How many lines each cell's file has."""
    return [len(path.read_text().splitlines()) for path in sorted(folder.glob(f"runs/cell-*/{name}"))]


def rows(folder: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in folder.glob("runs/cell-*/rows.jsonl")}
