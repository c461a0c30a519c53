"""What did an evaluation of many agents come to? Survival, deaths and where they began, agents of an episode as one.

Episodes are plain data: who died when, and how the danger started. All agents of an episode meet the same danger, so
intervals are over episodes; a share of 1,152 agents in 12 episodes rests on 12 samples, not on 1,152.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relab import stats
from relab.base.documents import Document
from relab.base.numbers import is_finite, to_int
from relab.base.streams import generator
from relab.schedules.sectors import SECTORS, sector

PROBE = "multi_eval"  # the name of such rows in a record
FULL = "multi_eval_full"  # and of the full one at the end of a run
PERCENTILES = (10, 25, 50, 75, 90)
RESAMPLES = 999
ANGLE, SPEED = 30.0, 0.4  # bins of a cluster: degrees of heading, speed


@dataclass(frozen=True)
class Episode:
    """One world, played once."""

    seed: int
    agents: int
    deaths: tuple[int, ...]  # the step of each death, in order; who is not in it lived to the end
    heading: float | None = None  # degrees, of the danger when the episode began
    speed: float | None = None

    @property
    def final(self) -> float:
        """Share that lived to the end."""
        return 1 - len(self.deaths) / self.agents

    def before(self, step: int) -> int:
        return sum(death < step for death in self.deaths)

    def to_dict(self) -> Document:
        first = self.deaths[0] if self.deaths else None
        about = {"seed": self.seed, "agents": self.agents, "final": self.final, "first_death": first}
        start = {} if self.heading is None else {"heading": self.heading, "speed": self.speed}
        return about | {"step_one": self.before(2)} | start


@dataclass(frozen=True)
class Result:
    """The numbers of an evaluation, and for those that have one an interval clustered by episode."""

    values: dict[str, float]
    ends: dict[str, tuple[float, float, float]] = field(default_factory=dict)  # name -> noise, low, high (95 %)
    effective: dict[str, float] = field(default_factory=dict)  # share -> independent trials that its agents are worth


def summarise(episodes: Sequence[Episode], horizon: int, early: Sequence[int] = (100,)) -> Result:
    """Average and lowest final survival, early deaths, percentiles of all death steps and of first deaths, step one."""
    agents = np.array([e.agents for e in episodes], float)
    lived = agents - [len(e.deaths) for e in episodes]
    steps = [death_steps(e, horizon) for e in episodes]
    firsts = [float(x.min()) for x in steps]
    counts = {f"early_death_{t}": np.array([e.before(t) for e in episodes], float) for t in early}
    ones = np.array([e.before(2) for e in episodes], float)
    values = {"avg_final": float((lived / agents).mean()), "min_final": float((lived / agents).min())}
    values |= {name: float(x.sum() / agents.sum()) for name, x in counts.items()}
    values |= {f"death_p{q}": float(np.percentile(np.concatenate(steps), q)) for q in PERCENTILES}
    values |= {f"first_death_p{q}": float(np.percentile(firsts, q)) for q in PERCENTILES}
    values |= {"step_one_count": float(ones.sum()), "step_one_share": float(ones.sum() / agents.sum())}
    values |= {"episodes": float(len(episodes)), "agents": float(agents.sum())}
    rates = {"avg_final": lived, "step_one_share": ones} | counts
    ends = {name: _rate(hits, agents) for name, hits in rates.items()} if len(episodes) > 1 else {}
    ends |= {"death_p10": _percentile(steps)} if len(episodes) > 1 else {}
    worth = {name: stats.effective_episodes(hits, agents) for name, hits in rates.items()} if len(episodes) > 1 else {}
    return Result(values, ends, worth)


def death_steps(episode: Episode, horizon: int) -> np.ndarray:
    """Of all agents; one that lived to the end counts with the horizon."""
    alive = episode.agents - len(episode.deaths)
    return np.array([*episode.deaths, *[horizon] * alive], float)


def _rate(hits: np.ndarray, agents: np.ndarray) -> tuple[float, float, float]:
    rate = stats.clustered_rate(hits, agents)
    noise = float((hits / agents).std(ddof=1) / np.sqrt(len(hits)))
    return noise, float(rate.low), float(rate.high)


def _percentile(steps: Sequence[np.ndarray], q: int = 10) -> tuple[float, float, float]:
    """Bootstrap over episodes, from a stream of its own."""
    rng = generator(0, "multi_eval_percentile")
    rows = rng.integers(0, len(steps), (RESAMPLES, len(steps)))
    if len({len(x) for x in steps}) == 1:  # the same numbers at once: as many agents in every episode
        drawn = np.percentile(np.stack(steps)[rows].reshape(RESAMPLES, -1), q, axis=1)
    else:
        drawn = np.array([np.percentile(np.concatenate([steps[i] for i in row]), q) for row in rows])
    return float(drawn.std(ddof=1)), float(np.percentile(drawn, 2.5)), float(np.percentile(drawn, 97.5))


# ---- Starts


@dataclass(frozen=True)
class Bin:
    """Starts of like heading and speed of the danger, and who died of them in step one."""

    first: float  # heading in degrees, from here
    last: float  # up to here
    sectors: str  # directions that its starts headed into
    slow: float  # speed, from here
    fast: float  # up to here
    starts: int
    deaths: int
    share: float  # of all deaths in step one

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether an episode's start falls into it."""
        heading, speed = row.get("heading"), row.get("speed")
        if heading is None or speed is None or not (is_finite(heading) and is_finite(speed)):
            return False
        return bin_of(heading, speed, self.last - self.first, self.fast - self.slow) == (self.first, self.slow)


def bin_of(heading: float, speed: float, angle: float = ANGLE, width: float = SPEED) -> tuple[float, float]:
    """Where the bin of a start begins, in degrees and in speed."""
    width = round(width, 9)
    return heading % 360 // angle * angle, round(speed // width * width, 9)


@dataclass(frozen=True)
class Sector:
    """One of the eight directions: its starts, their agents, and who of them died in step one."""

    sector: str
    starts: int
    agents: int
    deaths: int


def clusters(rows: Sequence[Mapping[str, Any]], angle: float = ANGLE, speed: float = SPEED) -> list[Bin]:
    """Deaths at step one by heading and speed of the danger: bins, most deaths first, each with the starts that fell
    into it. A bin with many deaths may only be one with many starts."""
    starts, deaths = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    headed: dict[tuple[int, int], set[str]] = {}
    for row in rows:
        if is_finite(row.get("heading")) and is_finite(row.get("speed")):
            key = int(row["heading"] % 360 // angle), int(row["speed"] // speed)
            starts[key] += 1
            headed.setdefault(key, set()).add(sector(row["heading"]))
            deaths[key] += to_int(row.get("step_one")) or 0
    total = sum(deaths.values())
    bins = [Bin(a * angle, (a + 1) * angle, ", ".join(sorted(headed[a, s], key=SECTORS.index)), round(s * speed, 9),
                round((s + 1) * speed, 9), starts[a, s], n, n / total if total else 0.0)
            for (a, s), n in deaths.items()]  # fmt: skip
    return sorted(bins, key=lambda each: (-each.deaths, each.first, each.slow))


def by_sector(rows: Sequence[Mapping[str, Any]]) -> list[Sector]:
    """Starts, agents and deaths at step one in each of the eight directions."""
    starts, agents, deaths = Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        if is_finite(row.get("heading")):
            name = sector(row["heading"])
            starts[name] += 1
            agents[name] += to_int(row.get("agents")) or 0
            deaths[name] += to_int(row.get("step_one")) or 0
    return [Sector(name, starts[name], agents[name], deaths[name]) for name in SECTORS]


CONCENTRATION = ("step_one_top_share", "step_one_sector_share")


def concentration(rows: Sequence[Mapping[str, Any]], direction: str = "NE", fast: float = 1.8) -> dict[str, float]:
    """How much of the deaths in step one come from like starts: the largest bin's share, and that of fast danger from
    one direction. Empty without headings or deaths. The largest of many bins of few deaths is large by chance.

    >>> rows = [{"heading": 50, "speed": 2.0, "step_one": 3}, {"heading": 200, "speed": 1.0, "step_one": 1}]
    >>> concentration(rows)
    {'step_one_top_share': 0.75, 'step_one_sector_share': 0.75}
    """
    bins = clusters(rows)
    total = sum(each.deaths for each in bins)
    if not total:
        return {}
    known = [row for row in rows if is_finite(row.get("heading")) and is_finite(row.get("speed"))]
    aimed = [row for row in known if sector(row["heading"]) == direction and row["speed"] >= fast]
    hit = sum(to_int(row.get("step_one")) or 0 for row in aimed)
    return dict(zip(CONCENTRATION, (bins[0].share, hit / total), strict=True))


def velocity(row: Mapping[str, Any]) -> tuple[float, float]:
    angle = np.radians(row["heading"])
    return float(row["speed"] * np.cos(angle)), float(row["speed"] * np.sin(angle))


def worst(rows: Sequence[Mapping[str, Any]], k: int) -> list[Mapping[str, Any]]:
    """The k episodes that the fewest survived; of equals those with the earlier first death, then by seed."""
    known = [row for row in rows if row.get("final") is not None]
    return sorted(known, key=lambda row: (row["final"], row.get("first_death") or np.inf, row["seed"]))[:k]
