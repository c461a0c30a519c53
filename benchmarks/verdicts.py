"""How often is a made course of evaluations called what it is? Still, rising and collapsing ones, with few episodes.

    python -m benchmarks.verdicts [--tries 15]

Episodes spread as CartPole's (exponential, normal), solve or fail, as costs do, and with heavy tails.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from relab.record.history import History
from relab.runs.verdict import verdict_of

CARTPOLE = {"env": "CartPole-v1", "reward_low": 1.0, "reward_high": 1.0, "horizon": 500,
            "random": {"return_mean": 22.2, "return_std": 11.3, "n": 1000}}  # fmt: skip
COSTS = {"env": "made-up", "random": {"return_mean": -1200.0, "return_std": 300.0, "n": 1000}}
Draw = Callable[[float, int, np.random.Generator], np.ndarray]
WORLDS: dict[str, tuple[Draw, dict[str, Any] | None, float, float]] = {  # episodes, what is known, random, learned
    "exponential": (lambda m, n, rng: np.minimum(8 + rng.exponential(max(m - 8, 0.3), n), 500), CARTPOLE, 22.2, 200.0),
    "normal": (lambda m, n, rng: np.clip(rng.normal(m, 0.3 * m, n), 8, 500), CARTPOLE, 22.2, 300.0),
    "solve or fail": (lambda m, n, rng: np.where(rng.random(n) < (m - 22.2) / 478, 500, 22.2 + rng.normal(0, 3, n)),
                      CARTPOLE, 22.2, 350.0),
    "costs": (lambda m, n, rng: rng.normal(m, 0.25 * abs(m) + 20, n), COSTS, -1200.0, -400.0),
    "heavy tails": (lambda m, n, rng: m + 100 * rng.standard_t(3, n), None, 0.0, 600.0),
}  # fmt: skip
RIGHT = {"still": ("flat", "learned", "top", "unclear"), "rising": ("learned", "top"), "collapsing": ("lost",)}


def levels(kind: str, k: int, low: float, high: float) -> np.ndarray:
    """The true return at each of k evaluations; a collapse loses all in its last quarter."""
    if kind == "still":
        return np.full(k, high)
    if kind == "rising":
        return low + (high - low) * np.clip(1.6 * np.linspace(0, 1, k), 0, 1)
    low_part = max(2, k // 4)
    up = low + (high - low) * np.clip(2 * np.linspace(0, 1, k - low_part), 0, 1)
    return np.concatenate([up, np.full(low_part, low)])


def run(kind: str, world: str, k: int, n: int, rng: np.random.Generator) -> History:
    draw, spec, low, high = WORLDS[world]
    rows = [{"step": 5000 * (i + 1), "mode": "det",
             "episodes": [{"seed": j, "return": float(x), "length": 9} for j, x in enumerate(draw(level, n, rng))]}
            for i, level in enumerate(levels(kind, k, low, high))]  # fmt: skip
    return History(Path("run"), evals=rows, meta={"spec": spec} if spec else {})


def share(kind: str, n: int, tries: int) -> tuple[int, int]:
    """(Courses that were called what they are, all of them), over all worlds and numbers of evaluations."""
    right = total = 0
    for place, world in enumerate(WORLDS):
        for k in (5, 10, 20, 50, 100):
            rng = np.random.default_rng([k, n, place, list(RIGHT).index(kind)])
            kinds = [verdict_of(run(kind, world, k, n, rng)).kind for _ in range(tries)]
            right, total = right + sum(each in RIGHT[kind] for each in kinds), total + tries
    return right, total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=15)
    tries = parser.parse_args().tries
    print("| course | 3 episodes | 5 | 10 | 20 |\n|---|---:|---:|---:|---:|")
    for kind in RIGHT:
        cells = [share(kind, n, tries) for n in (3, 5, 10, 20)]
        print(f"| {kind} | " + " | ".join(f"{100 * right / total:.1f} % of {total}" for right, total in cells) + " |")


if __name__ == "__main__":
    main()
