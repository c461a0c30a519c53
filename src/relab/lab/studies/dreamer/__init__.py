"""Does a world-model agent solve CartPole, and does it stay solved? The study of a DreamerV3 research log.

Each question is an experiment file in this folder (`relab experiment FILE` runs it alone); the log's own runs are
settings below log/, each one command (`relab train src/relab/lab/studies/dreamer/log/tuned_v2.yaml`).
docs/studies/dreamer.md says what has been shown.
"""

from __future__ import annotations

from dataclasses import replace

from relab.lab.studies import Step
from relab.lab.studies.dreamer import steps
from relab.lab.studies.dreamer.page import page

__all__ = ["SUMMARY", "page", "plan"]

SUMMARY = "a world model and an actor-critic in its dreams: solved, kept solved, and what keeps it"
RUN_S = 440  # of one core, a run of the shipped settings: 8,064 updates
SHORT_S = 110  # one of a question: 1,920 updates


def plan(full: bool) -> list[Step]:
    """In the order of what they are worth; runs that an earlier step made are not made again."""
    listed = [
        Step("seeds", "the shipped settings, seeds 60 to 64: solved when, lowest afterwards", 5 * RUN_S, steps.seeds),
        question("slow_critic", "without a slow copy that holds the critic back, or with one", 10),
        question("average", "acting weights that follow slowly, slower, or are the learned ones", 10),
        explored("parts", "one part taken out or put back at a time, two seeds each", 26),
        question("replay_critic", "without the critic's loss on real rewards", 6),
        question("free_bits", "free bits with the gradient passed below them, or by a clamp", 5),
        question("return_scale", "advantages by the spread of returns, or as they are", 5),
        question("ratio", "1, 4 or 8 updates of the model for each of actor and critic", 6),
    ]
    more = [
        question("dreams", "dreams of 32 steps, or of 15", 2),
        question("width", "width 64 or 256", 30),
    ]
    return listed + more if full else listed


def question(name: str, what: str, runs: float) -> Step:
    """`runs`: as many of usual size as its new ones take the time of."""
    return Step(name, what, runs * SHORT_S, steps.ask(name), steps.ask(name, fresh=True))


def explored(name: str, what: str, runs: float) -> Step:
    """Too few seeds for an answer, so there is nothing that could be asked again."""
    return replace(question(name, what, runs), again=None)
