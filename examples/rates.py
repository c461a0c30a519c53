"""Which of fifteen conclusions stand? Success rates of a public experiment log, with the intervals they came without.

    python examples/rates.py        prints the tables of docs/examples/rates.md

The numbers are those of the log of OfflineRLPlayGround (ManiSkill3's PickCube-v1, commits d53c0cc and 57ef663): one
seed a run, success over the episodes that 128 environments finish in 50 steps. Where the log gives no number of
episodes, it is taken as the smallest from 128 on (one for each environment) that can give the quoted rate: 93.2 % is
123 of 132, and no number of 128. ENOUGH is the largest number that the log gives anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from relab.comparison.numbers import expected_best_rate
from relab.stats import holm, wilson

FIRST, ENOUGH = 128, 241
ALPHA = 0.05
FLOOR = 1e-12  # the smallest p that is looked for

# conclusion | quoted, in %: better, worse | unselected: better, n, worse, n | what is quoted | k | also differs
# n is 0 where the log gives none; k is the number of evaluations in the second half, of which a peak is the best.
TABLE = """
MC returns: gamma 0.8 learns faster than 0.99        | 84.1  34.4 | 84.1   0  34.4   0 | iteration 10 | 0  |
a pretrained critic beats a reset one                | 93.2  90.7 | 93.2   0  90.7   0 | final        | 0  |
few samples: gamma 0.8 beats 0.99                    | 93.2  85.2 | 93.2   0  85.2   0 | final        | 0  |
the expert's value function beats the optimal one's  | 93.2  83.3 | 93.2   0  83.3   0 | final        | 0  |
PPO: re-rollouts (5) beat GAE                        | 95.8  92.0 | 94.8 173  92.0 150 | peak         | 5  | simulator steps
AWR (16 re-rollouts) beats PPO (5)                   | 98.8  95.8 | 98.8 241  94.8 173 | peak         | 5  | epochs 200, 100; re-rollouts
AWR: beta 0.5 is the best, 1.0 the next              | 99.2  98.8 | 97.7   0  98.8 241 | peak         | 5  |
AWR: 16 re-rollouts beat 1                           | 99.2  97.5 | 97.7   0  94.9   0 | peak         | 5  | simulator steps
AWR: gamma 0.8 beats 0.99                            | 99.2  97.5 | 97.7   0  97.5   0 | peak         | 5  |
online AWR beats offline AWR                         | 99.2  85.3 | 97.7   0  77.5   0 | peak         | 5  | data, updates, re-rollouts, beta
AWR: the optimal policy's re-rollouts beat its own   | 99.2  95.5 | 97.7   0  94.5   0 | peak         | 5  | re-rollouts 16, 1
offline: re-rollouts beat IQL                        | 85.3  76.2 | 77.5   0  70.8   0 | peak         | 10 | batch, beta, iterations, lr
IQL: data of one checkpoint beat those of five       | 83.2  76.4 | 79.7   0  73.2   0 | peak         | 10 | number of transitions
offline, one checkpoint: re-rollouts beat IQL        | 89.1  83.2 | 77.2   0  79.7   0 | peak         | 10 | environments, steps
offline: own re-rollouts beat the optimal policy's   | 89.1  83.9 | 77.2   0  72.9   0 | peak         | 10 |
"""  # noqa: E501 - a table reads by its columns


class Row(NamedTuple):
    """One conclusion: `better` is the side that the log calls better."""

    claim: str
    quoted: tuple[float, float]
    better: float
    n_better: int
    worse: float
    n_worse: int
    what: str
    k: int
    confounds: str


def rows() -> Iterator[Row]:
    for line in TABLE.strip().splitlines():
        claim, quoted, found, what, k, confounds = (cell.strip() for cell in line.split("|"))
        high, low = (float(x) / 100 for x in quoted.split())
        b, n, w, m = (float(x) for x in found.split())
        yield Row(claim, (high, low), b / 100, int(n), w / 100, int(m), what, int(k), confounds)


def episodes(rate: float, least: int) -> int:
    """The smallest number of episodes from `least` on of which some share rounds to the rate, in tenths of a percent.

    >>> episodes(0.932, 128), episodes(0.852, 128)
    (132, 128)
    """
    return next(n for n in range(least, 10 * least) if abs(round(rate * n) / n - rate) <= 0.0005 + 1e-9)


def counted(rate: float, n: int, unknown: int) -> tuple[int, int]:
    """(successes, episodes)"""
    n = n or episodes(rate, unknown)
    return round(rate * n), n


def difference(row: Row, level: float, unknown: int = FIRST) -> tuple[float, float, float]:
    """better - worse with Newcombe's interval (1998) of two independent rates."""
    (p, low_p, high_p), (q, low_q, high_q) = (
        wilson(*counted(rate, n, unknown), level)[:3]
        for rate, n in ((row.better, row.n_better), (row.worse, row.n_worse))
    )
    return p - q, p - q - math.hypot(p - low_p, high_q - q), p - q + math.hypot(high_p - p, q - low_q)


def p_value(row: Row, unknown: int = FIRST) -> float:
    """The smallest alpha whose interval leaves out 0."""
    low, high = FLOOR, 1 - 1e-9
    for _ in range(60):
        middle = math.sqrt(low * high)
        _, a, b = difference(row, 1 - middle, unknown)
        low, high = (low, middle) if a > 0 or b < 0 else (middle, high)
    return high


def verdicts(unknown: int = FIRST) -> list[tuple[Row, float, str]]:
    """Each conclusion with its p after Holm, and whether the two policies differ as said."""
    found = list(rows())
    adjusted = holm([p_value(row, unknown) for row in found])
    return [(row, p, _verdict(row, p)) for row, p in zip(found, adjusted)]


def _verdict(row: Row, p: float) -> str:
    if p < ALPHA:
        return "stands" if row.better > row.worse else "the reverse"
    return "not shown" if row.better > row.worse else "not shown, points the other way"


def by_chance(row: Row) -> str:
    """How far the best of the late evaluations lies above their true rate, in points, if that is the final one."""
    if row.what != "peak":
        return "-"
    n = row.n_better or episodes(row.better, FIRST)
    return f"+{100 * (expected_best_rate(row.better, n, row.k) - row.better):.1f}"


HEAD = ("conclusion", "quoted", "best of k by chance", "unselected", "difference, 95 %", "p (Holm)", "two policies",
        "also differs")  # fmt: skip


def main_table() -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    generous = {row.claim: verdict for row, _, verdict in verdicts(ENOUGH)}
    for row, p, verdict in verdicts():
        d, low, high = (100 * x for x in difference(row, 1 - ALPHA))
        also = "" if generous[row.claim] == verdict else f" (**borderline**: {generous[row.claim]} if n were {ENOUGH})"
        quoted = f"{100 * row.quoted[0]:.1f}, {100 * row.quoted[1]:.1f} ({row.what})"
        found = f"{_rate(row.better, row.n_better)}, {_rate(row.worse, row.n_worse)}"
        cells = (row.claim, quoted, by_chance(row), found, f"{d:+.1f} [{low:+.1f}, {high:+.1f}]", _p(p),
                 verdict + also, row.confounds or "-")  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _p(p: float) -> str:
    floor = FLOOR * len(list(rows()))
    return f"< {floor:.2g}" if p <= 1.01 * floor else f"{p:.2g}"


def _rate(rate: float, n: int) -> str:
    hits, all_ = counted(rate, n, FIRST)
    return f"{100 * rate:.1f} ({hits} of {all_}{'' if n else '?'})"


def count() -> str:
    found = [verdict for _, _, verdict in verdicts()]
    stand = [row for row, _, verdict in verdicts() if verdict == "stands"]
    clean = sum(not row.confounds for row in stand)
    other = sum(verdict.endswith("other way") for verdict in found)
    return (
        f"Of {len(found)} conclusions {len(stand)} stand as differences between two policies, {clean} of them between"
        f" runs that differ in one setting; {other} point the other way at the end of the runs."
    )


if __name__ == "__main__":
    print(main_table())
    print()
    print(count())
