"""What becomes of a school that learns to escape? The study of a fish-school log: its questions, over seeds.

The physics is written afresh from the log's numbers, so every ratio to the log is of our physics, not theirs. Each
question is an experiment file in this folder (`relab experiment FILE` runs it alone); docs/studies/fish.md has the
results of seeds 0 to 4.
"""

from __future__ import annotations

from relab.lab.studies import Step
from relab.lab.studies.fish import steps
from relab.lab.studies.fish.page import page

__all__ = ["SUMMARY", "page", "plan"]

SUMMARY = "a school that learns to escape: own or shared control, curriculum, gates, starts mined from the worst"


def plan(full: bool) -> list[Step]:
    """Tier 1 takes half an hour of one core; `full` asks the log's other questions too."""
    listed = [
        Step("floor", "deaths in the first step that no policy prevents: exact and simulated", 30, steps.floor),
        Step("log", "what the original log holds, where its folder lies beside the repository", 5, steps.log),
        Step(
            "bytes", "same seed and command twice, and killed at iteration 44: the same bytes?", 180, steps.same_bytes
        ),
        question("control", "one action per fish against one for all; a gate that can open", 600),
        question("rows", "the same at as many rows: 6 schools against 128", 400),
        question("ne", "stages of north-east starts only against none", 600),
        question("step_one", "deaths in the first step after such stages and without", 600),
    ]
    more = {
        "threshold": "bars above the floor and more episodes against the log's gate",
        "warning": "a warning at 0.68 with patience 2 against 0.65 with patience 3",
    }
    return listed + [question(name, what, 600) for name, what in more.items() if full]


def question(name: str, what: str, seconds: float) -> Step:
    return Step(name, what, seconds, steps.ask(name), steps.ask(name, fresh=True))
