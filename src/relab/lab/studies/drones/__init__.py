"""What does a swarm of quadrotors learn, and how well over seeds? The study of a drone-swarm log.

The physics is written afresh from the log's numbers, so that a number beside one of the log's compares our physics with
theirs. docs/studies/drones.md has the results.
"""

from __future__ import annotations

from relab.lab.studies import Step
from relab.lab.studies.drones import steps
from relab.lab.studies.drones.page import page

__all__ = ["SUMMARY", "page", "plan"]

SUMMARY = "a swarm of quadrotors that hovers and races with one policy, and learns to carry boxes from nothing"
SECONDS = 7.0  # of one core, a million agent-steps


def plan(full: bool) -> list[Step]:
    """Tables first; `full` has every seed at the largest budget."""
    listed = [
        course("hover_race", "one policy for hover and race", steps.SEEDS),
        course("pick_place", "pick-and-place from nothing", steps.SEEDS),
        course("pick_place_long", "pick-and-place with more steps", steps.SEEDS[:1]),
    ]
    more = [
        course("hover_race_long", "one policy for hover and race with more steps", steps.SEEDS[:1]),
        course("hover_race_full", "one policy for hover and race, the whole budget", steps.SEEDS),
        course("pick_place_full", "pick-and-place, the whole budget", steps.SEEDS),
    ]
    return listed + more if full else listed


def course(name: str, what: str, seeds: tuple[int, ...]) -> Step:
    million = int(steps.COURSES[name]["total_steps"]) / 1e6
    text = f"{what}: {million:g} M agent-steps, seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else (
        f"{what}: {million:g} M agent-steps, seed {seeds[0]}")  # fmt: skip
    return Step(name, text, SECONDS * million * len(seeds), steps.trained(name, seeds))
