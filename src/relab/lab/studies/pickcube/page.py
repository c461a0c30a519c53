"""What did the pickcube study find? Its results as Markdown, with what has not been run named."""

from __future__ import annotations

from typing import Any

from relab.lab.studies import StepResult

QUESTIONS = ("gamma", "advantage", "update", "panda", "follow", "online", "critic", "fixed_follow", "equal", "iql_data",
             "expectile", "tricks", "samples", "beta")  # fmt: skip


def page(results: dict[str, StepResult]) -> str:
    parts = ["# Pickcube: what makes a policy better", sources(results)]
    if "standard" in results:
        parts.append(standard(results["standard"].numbers))
    parts += [question(results[name].numbers) for name in QUESTIONS if name in results]
    if "rank" in results:
        parts.append(rank(results["rank"].numbers))
    whole = [name for name in results if name.startswith("full_")]
    parts += [f"# At the log's own sizes\n\n{question(results[name].numbers)}" for name in whole]
    missing = [name for name in ("standard", *QUESTIONS, "rank") if name not in results]
    left = [f"Not run: {', '.join(missing)}."] if missing else []
    left += [] if whole else ["Not run: any question at the log's own sizes (`relab study pickcube --full`)."]
    parts += left
    return "\n\n".join(parts) + "\n"


def sources(results: dict[str, StepResult]) -> str:
    seconds = sum(result.seconds for result in results.values())
    commits = sorted({str(result.commit)[:12] for result in results.values()})
    return (f"{len(results)} steps in {seconds / 60:.0f} minutes, commit {', '.join(commits)}. Success is the share of"
            " 100 first episodes at an evaluation; a run's number is the mean of its last two.")  # fmt: skip


def standard(x: dict[str, Any]) -> str:
    return ("## Standardised advantages have no scale\n\nRewards times 16 move no weight by more than"
            f" {x['standardised']:.1g} where advantages are standardised, and by up to {x['raw']:.2g} where they are"
            " not (three iterations, one seed).")  # fmt: skip


def rank(x: dict[str, Any]) -> str:
    head = "## Does the advantages' rank correlation predict what a run gains?\n\n"
    if "rank" not in x:
        return f"{head}Only {len(x['runs'])} runs with re-rollouts are there."
    said = [f"{words}: Spearman's {y['rho']:+.2f} [{y['low']:+.2f}, {y['high']:+.2f}]" for words, y in
            (("rank correlation of two halves", x["rank"]), ("signal to noise", x["snr"]))]  # fmt: skip
    n, seeds = x["rank"]["n"], x["rank"]["seeds"]
    return f"{head}{'; '.join(said)} (gain in success within seeds, {n} runs, {seeds} seeds drawn again)."


def question(x: dict[str, Any]) -> str:
    lines = [f"## {x['question']}", "", *(str(each["text"]) for each in x["answers"]), ""]
    head = ("arm", "each seed", "mean", "start", "best row", "sampled", "steps of batches", "of the simulator")
    lines += [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(arm(name, runs))} |" for name, runs in x["arms"].items()]
    return "\n".join(lines)


def arm(name: str, runs: list[dict[str, Any]]) -> list[str]:
    """Ends by seed, their mean, and beside them what a peak would have said."""
    ends = [sum(run["det"][-2:]) / len(run["det"][-2:]) for run in runs]
    sampled = [sum(run["sampled"][-2:]) / len(run["sampled"][-2:]) for run in runs]
    peaks, starts = [max(run["det"][1:]) for run in runs], [run["det"][0] for run in runs]
    counts = [mean([run[f"data/{key}_steps"] for run in runs]) for key in ("env", "sim")]
    return [f"`{name}`", ", ".join(f"{100 * x:.0f}" for x in ends), *(f"{100 * mean(x):.1f} %"
            for x in (ends, starts, peaks, sampled)), *(f"{x:,.0f}" for x in counts)]  # fmt: skip


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
