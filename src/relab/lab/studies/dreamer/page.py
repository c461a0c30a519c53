"""What did the Dreamer study find? Its results as Markdown, with what has not been run named."""

from __future__ import annotations

from typing import Any

from relab.lab.studies import StepResult
from relab.lab.studies.dreamer.steps import KEPT, SOLVED, TIMES

PARTS = ("seeds", "replay_critic", "parts", "free_bits", "ratio", "return_scale", "width")


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


def table(runs: list[dict[str, Any]]) -> str:
    head = "| seed | solved at step | at update | lowest after | watched for | kept | last |"
    return "\n".join([head, "|" + "---|" * 7, *(f"| {' | '.join(cells(run))} |" for run in runs)])


def cells(run: dict[str, Any]) -> list[str]:
    numbers = [shown(run[key]) for key in ("solved_at_step", "solved_at_update", "lowest")]
    return [str(run["seed"]), *numbers, f"{run['watched']:.1f} x", "yes" if run["kept"] else "no",
            f"{run['returns'][-1]:g}"]  # fmt: skip


def shown(x: float | None) -> str:
    return "never" if x is None else f"{x:,}"


def solved(x: dict[str, Any]) -> str:
    runs = x["runs"]
    kept, ever = sum(r["kept"] for r in runs), sum(r["solved_at_step"] is not None for r in runs)
    return f"## The shipped settings\n\n{ever} of {len(runs)} seeds solved, {kept} kept.\n\n{table(runs)}"


def answered(x: dict[str, Any]) -> str:
    answers = "\n".join(f"- {answer['text']}" for answer in x["answers"])
    arms = "\n\n".join(f"**{arm}**\n\n{table(runs)}" for arm, runs in x["arms"].items())
    few = min(len(runs) for runs in x["arms"].values())
    note = "\n\nExploratory: fewer than five seeds an arm." if few < 5 else ""
    return f"## {x['question']}\n\n{answers}{note}\n\n{arms}"
