"""Does a world-model agent solve CartPole, and does it stay solved? The study of a DreamerV3 research log.

Each question is an experiment file in this folder (`relab experiment FILE` runs it alone); the log's own runs are
settings below log/, each one command (`relab train src/relab/lab/studies/dreamer/log/tuned_v2.yaml`).
docs/studies/dreamer.md says what has been shown.
"""

from __future__ import annotations

from relab.lab.studies import Step
from relab.lab.studies.dreamer import steps
from relab.lab.studies.dreamer.page import page

__all__ = ["SUMMARY", "page", "plan"]

SUMMARY = "a world model and an actor-critic in its dreams: solved, kept solved, and what keeps it"
RUN_S = 180  # of one core: 3,870 updates, 17 evaluations


def plan(full: bool) -> list[Step]:
    """About two hours of one core; `full` asks the log's other questions too."""
    listed = [
        Step("seeds", "the shipped settings on seeds 0 to 4: solved when, lowest afterwards", 5 * RUN_S, steps.seeds),
        Step("replay_critic", "without the critic's loss on real rewards", 10 * RUN_S, steps.ask("replay_critic")),
        Step("parts", "return scale, slow critic, linear bins: one taken out at a time, two seeds each", 8 * RUN_S,
             steps.ask("parts")),
        Step("free_bits", "free bits by a clamp, or with the gradient passed below it", 10 * RUN_S,
             steps.ask("free_bits")),
        Step("ratio", "1, 4 or 8 updates of the model for each of actor and critic", 15 * RUN_S, steps.ask("ratio")),
    ]  # fmt: skip
    more = {
        "return_scale": ("advantages by the spread of returns, or as they are", 10 * RUN_S),
        "width": ("width 64 or 256", 35 * RUN_S),
    }
    return listed + [Step(name, what, cost, steps.ask(name)) for name, (what, cost) in more.items() if full]
