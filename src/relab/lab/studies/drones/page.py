"""What did the drone study find? Its results as Markdown, every seed, and what has not been run."""

from __future__ import annotations

from collections import Counter

from relab import stats
from relab.base.documents import Document
from relab.lab.studies import StepResult
from relab.lab.studies.drones.steps import COURSES, WORLDS

TITLES = {
    "hover_race": "Hover and race with one policy",
    "pick_place": "Pick-and-place from nothing",
    "hover_race_long": "Hover and race, one seed with more steps",
    "pick_place_long": "Pick-and-place, one seed with more steps",
    "hover_race_full": "Hover and race, the whole budget",
    "pick_place_full": "Pick-and-place, the whole budget",
}
BOUNDS = {"score": (-1024.0, 1024.0)}  # others are shares
PICKED = ("score", "compat_perfect_deliv", "success", "oob")  # numbers of pick-and-place in the table


def page(results: dict[str, StepResult]) -> str:
    parts = ["# Drones: what a swarm learns", sources(results)]
    parts += [course(name, results[name].numbers) for name in COURSES if name in results]
    missing = [name for name in COURSES if name not in results]
    if missing:
        parts.append(f"Not run: {', '.join(missing)}.")
    return "\n\n".join(parts) + "\n"


def sources(results: dict[str, StepResult]) -> str:
    seconds = sum(result.seconds for result in results.values())
    commits = sorted({str(result.commit)[:12] for result in results.values()})
    return (f"{len(results)} steps in {seconds / 60:.0f} minutes, commit {', '.join(commits)}. Every policy (its newest"
            f" weights) played {WORLDS} fresh worlds of 8 drones; intervals are over seeds, 95 %. Our physics, not"
            " theirs.")  # fmt: skip


def course(name: str, x: Document) -> str:
    runs = x["runs"]
    make = both if x["task"] == "hover_race" else boxes
    size = f"{runs[0]['steps'] / 1e6:.1f} M agent-steps, {len(runs)} seed{'s' * (len(runs) > 1)}."
    return f"## {TITLES[name]}\n\n{size}\n\n{make(runs)}\n\n{ends(runs)}"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def both(runs: list[Document]) -> str:
    """Performance of hover, of race and their mean, and the same where a ring that is hit ends the race."""
    head = ["seed", "hover", "race", "mean", "race to the first hit", "mean with that", "mean, sampled", "minutes",
            "steps/s"]  # fmt: skip
    rows = [[str(run["seed"]), *(f"{x:.3f}" for x in levels(run)), *speed(run)] for run in runs]
    columns = list(zip(*(levels(run) for run in runs)))
    return table(head, [*rows, ["**all**", *(over_seeds(list(column)) for column in columns), "", ""]])


def levels(run: Document) -> list[float]:
    hover, race, strict = (run["played"][play]["det"]["performance"] for play in ("hover", "race", "race_to_the_hit"))
    sampled = [run["played"][play]["sampled"]["performance"] for play in ("hover", "race")]
    return [hover, race, (hover + race) / 2, strict, (hover + strict) / 2, sum(sampled) / 2]


def boxes(runs: list[Document]) -> str:
    head = ["seed", *PICKED, "deliveries", "perfect ones", "score, sampled", "success, sampled", "minutes", "steps/s"]
    names = [("det", name) for name in (*PICKED, "deliveries", "perfect_deliveries")]
    names += [("sampled", "score"), ("sampled", "success")]
    columns = [(name, [run["played"]["pick_place"][mode][name] for run in runs]) for mode, name in names]
    rows = [[str(run["seed"]), *(f"{column[k]:.4g}" for _, column in columns), *speed(run)]
            for k, run in enumerate(runs)]  # fmt: skip
    last = ["**all**", *(over_seeds(column, name) for name, column in columns), "", ""]
    return table(head, [*rows, last])


def speed(run: Document) -> list[str]:
    return [f"{run['seconds'] / 60:.1f}", f"{run['per_second']:,.0f}"]


def over_seeds(values: list[float], name: str = "") -> str:
    bounds = (0.0, float("inf")) if name.endswith("deliveries") else BOUNDS.get(name, (0.0, 1.0))
    interval = stats.mean_over_seeds(values, bounds)
    ends = f" [{interval[1]:.3g}, {interval[2]:.3g}]" if len(values) >= 5 else ""
    return f"**{interval[0]:.3g}**{ends}"


def ends(runs: list[Document]) -> str:
    """How the deterministic episodes of all seeds ended."""
    lines = []
    for task in runs[0]["played"]:
        total: Counter[str] = Counter()
        for run in runs:
            total.update(run["played"][task]["det"]["ends"])
        words = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in total.most_common())
        lines.append(f"{task.replace('_', ' ')}, deterministic, ended by: {words}.")
    return "\n".join(lines)
