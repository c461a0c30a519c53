"""What did the Dreamer study find? Its results as Markdown, with what has not been run named."""

from __future__ import annotations

from statistics import median
from typing import Any

from relab.lab.studies import StepResult
from relab.lab.studies.dreamer.steps import KEPT, SOLVED, TIMES

Row = dict[str, Any]  # of a run, as steps.of_run makes it
PARTS = ("seeds", "slow_critic", "average", "parts", "free_bits", "return_scale", "ratio", "dreams", "replay_critic",
         "width")  # fmt: skip


def page(results: dict[str, StepResult]) -> str:
    parts = ["# Dreamer: CartPole solved, and kept solved?", sources(results)]
    parts += [(solved if name == "seeds" else answered)(results[name].numbers) for name in PARTS if name in results]
    missing = [name for name in PARTS if name not in results]
    if missing:
        parts.append(f"Not run: {', '.join(missing)}.")
    return "\n\n".join(parts) + "\n"


def sources(results: dict[str, StepResult]) -> str:
    seconds = sum(result.seconds for result in results.values())
    commits = sorted({str(result.commit)[:12] for result in results.values()})
    return (f"{len(results)} steps in {seconds / 60:.0f} minutes, commit {', '.join(commits)}. Solved: a deterministic"
            f" evaluation of 20 first episodes means {SOLVED:g} or more. Kept: none below {KEPT:g} for {TIMES} times as"
            " many further updates; a run that ends earlier is not kept.")  # fmt: skip


HEAD = ("seed", "solved at step", "at update", "seconds", "lowest after", "further updates", "times", "kept", "last")


def table(runs: list[Row]) -> str:
    lines = [HEAD, ["---"] * len(HEAD), *(cells(run) for run in runs)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cells(run: Row) -> list[str]:
    step, update, lowest = (shown(run[key]) for key in ("solved_at_step", "solved_at_update", "lowest"))
    return [str(run["seed"]), step, update, shown(seconds(run)), lowest, f"{run['further']:,}", f"{run['watched']:.1f}",
            "yes" if run["kept"] else "no", f"{run['returns'][-1]:g}"]  # fmt: skip


def seconds(run: Row) -> int | None:
    """Of the clock until it was solved."""
    if run["solved_at_step"] is None or run["seconds"] is None:
        return None
    return round(run["seconds"][run["steps"].index(run["solved_at_step"])])


def shown(x: float | None) -> str:
    return "never" if x is None else f"{x:,}"


def solved(x: dict[str, Any]) -> str:
    runs = x["runs"]
    kept, ever = sum(r["kept"] for r in runs), [r for r in runs if r["solved_at_step"] is not None]
    lines = [f"{len(ever)} of {len(runs)} seeds solved, {kept} kept.", *([spread(ever)] if ever else [])]
    return "## The shipped settings\n\n" + " ".join(lines) + f"\n\n{table(runs)}"


def spread(runs: list[Row]) -> str:
    """Median, smallest and largest of what it took."""
    units = {"solved_at_step": "steps", "solved_at_update": "updates"}
    values = {unit: [run[key] for run in runs] for key, unit in units.items()}
    clock = [s for s in map(seconds, runs) if s is not None]
    values |= {"seconds of the clock": clock} if clock else {}
    parts = [f"{median(xs):,g} {unit} ({min(xs):,} to {max(xs):,})" for unit, xs in values.items()]
    return f"Solved after a median of {', '.join(parts)}; lowest afterwards {min(r['lowest'] for r in runs):g}."


def answered(x: dict[str, Any]) -> str:
    answers = "\n".join(f"- {answer['text']}" for answer in x["answers"])
    arms = "\n\n".join(f"**{arm}**\n\n{table(runs)}" for arm, runs in x["arms"].items())
    few = min(len(runs) for runs in x["arms"].values())
    note = "\n\nExploratory: fewer than five seeds an arm." if few < 5 else ""
    return f"## {x['question']}\n\n{answers}{note}\n\n{arms}"
