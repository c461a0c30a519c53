"""What did the fish study find? Its results as Markdown, measured beside what the log holds."""

from __future__ import annotations

from relab.base.documents import Document
from relab.lab.studies import StepResult
from relab.lab.studies.fish.steps import FROM, interval

OURS = "our physics, not theirs"
BETTER = {"avg_final": 0.84, "early_death_100": 0.11}  # the better of the log's runs


def page(results: dict[str, StepResult]) -> str:
    parts = ["# Fish: a school that learns to escape", sources(results)]
    parts += [make(results[name].numbers) for name, make in PARTS.items() if name in results]
    return "\n\n".join(part for part in parts if part) + "\n"


def sources(results: dict[str, StepResult]) -> str:
    seconds = sum(result.seconds for result in results.values())
    commits = sorted({str(result.commit)[:12] for result in results.values()})
    return (
        f"{len(results)} steps in {seconds / 60:.0f} minutes, commit {', '.join(commits)}. Ratios to the log: {OURS}."
    )


def floor(x: Document) -> str:
    return (
        f"## Deaths in the first step\n\nExact: {x['centre']:.4f} with the predator at the centre, {x['exact']:.4f}"
        f" under the starts of the study; played by {x['fish']:,} fish in {x['schools']:,} schools: {x['played']:.4f}"
        f" (standard error {x['noise']:.4f}, over schools)."
    )


def log(x: Document) -> str:
    if "missing" in x:
        return "## The log\n\nThe original log's folder is not beside the repository; nothing of it is shown."
    rows = ["| run | iteration | avg_final | min_final | early_death_100 | step_one | death_p10 |", "|" + "---|" * 7]
    for run in x["runs"]:
        for k, iteration in enumerate(run["iterations"]):
            numbers = [run[n][k] for n in ("avg_final", "min_final", "early_death_100", "step_one_share", "death_p10")]
            cells = [*(f"{v:.3f}" for v in numbers[:4]), f"{numbers[4]:.0f}"]
            rows.append(f"| {run['run']} | {iteration} | {' | '.join(cells)} |")
    return "## The log\n\nEvery evaluation of its runs (96 fish, 12 episodes):\n\n" + "\n".join(rows)


def same_bytes(x: Document) -> str:
    said = "the same bytes" if x["same"] else "NOT the same bytes"
    how = "killed at iteration 44 and resumed" if x["resumed"] else "which ended before it could be killed"
    return f"## The same command twice\n\nTwo runs and a third, {how}: {said} ({', '.join(x['digests'].values())})."


def question(x: Document) -> str:
    lines = [f"## {x['question']}", ""]
    lines += [str(each["text"]) for each in x["answers"]] + [""]
    for name, runs in x["arms"].items():
        lines += arm(name, runs)
    return "\n".join(lines).rstrip()


def arm(name: str, runs: list[Document]) -> list[str]:
    """Every seed, and the mean from iteration 24 on with its interval."""
    head = f"`{name}`, evaluations from iteration {FROM} on ({len(runs)} seeds; {OURS}):"
    rows = ["| seed | avg_final | early_death_100 | lowest min_final | step_one | gate stages |", "|" + "---|" * 6]
    for run in runs:
        late = run["late"]
        cells = [f"{late['avg_final']:.3f}", f"{late['early_death_100']:.3f}", f"{min(run['min_final']):.3f}",
                 f"{late['step_one_share']:.4f}", str(run["stage"])]  # fmt: skip
        rows.append(f"| {run['seed']} | {' | '.join(cells)} |")
    return [head, "", *rows, "", *(over_seeds(key, runs) for key in BETTER), ""]


def over_seeds(key: str, runs: list[Document]) -> str:
    mid, low, high = interval([run["late"][key] for run in runs])
    return f"- {key}: {mid:.3f} [{low:.3f}, {high:.3f}] (95 %, {len(runs)} seeds); the log's better run {BETTER[key]}."


PARTS = {"floor": floor, "log": log, "bytes": same_bytes} | dict.fromkeys(
    ("control", "rows", "ne", "threshold", "warning", "step_one"), question
)
