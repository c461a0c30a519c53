"""What makes a policy better once it exists? The study of a fine-tuning log about a cube that is picked up.

Each question is an experiment file in this folder (`relab experiment FILE` runs it alone; `critic` needs critics that
the study fits first). All start from a checkpoint that relab brings with it, of which half of the episodes succeed, on
the gantry. docs/studies/pickcube.md says what has been shown.
"""

from __future__ import annotations

from relab.lab.studies import Step
from relab.lab.studies.pickcube import full as sizes
from relab.lab.studies.pickcube import steps
from relab.lab.studies.pickcube.page import page

__all__ = ["SUMMARY", "page", "plan"]

SUMMARY = "fine-tuning a gripper: GAE, Monte-Carlo, re-rollouts, AWR and IQL, and what of a log's claims survives"
GAE_S, RERUN_S, IQL_S = 15.0, 45.0, 25.0  # of one core: a run of 6 GAE iterations, of 4 with 4 re-rollouts, of IQL

# question, what it asks, seconds of one core, runs at the log's own sizes
QUESTIONS = (
    ("gamma", "discount 0.8 or 0.99", 10 * GAE_S, 10),
    ("advantage", "GAE or Monte-Carlo returns", 5 * GAE_S, 5),
    ("update", "PPO or AWR at as many updates", 5 * GAE_S, 5),
    ("panda", "the same on the Panda", 20 * GAE_S, 0),
    ("follow", "re-rollouts follow the current policy, or the best", 10 * RERUN_S, 10),
    ("online", "batches collected anew, or one", 2 * RERUN_S, 5),
    ("critic", "a critic that begins anew, or fitted before, to whose values", 12 * GAE_S, 10),
    ("vstar", "the critic of the start, or of the best policy, by the runs of `critic`", 0.0, 0),
    ("fixed_follow", "on fixed data: follow the data's policy, or the best", 10 * RERUN_S, 10),
    ("equal", "re-rollouts or GAE at as many steps of batches, and of the simulator", 10 * RERUN_S, 15),
    ("iql_data", "IQL: the start's own data, or of several policies", 10 * IQL_S, 10),
    ("expectile", "IQL: expectile 0.5, 0.7, 0.9", 15 * IQL_S, 15),
    ("tricks", "scaled rewards, a larger critic", 30 * GAE_S, 15),
    ("samples", "1, 4 or 16 re-rollouts of each state", 5 * 4 * RERUN_S, 15),
    ("beta", "temperature 0.1, 0.5, 1, 2", 15 * RERUN_S, 15),
)


def plan(full: bool) -> list[Step]:
    """In the order of what they are worth; arms that an earlier question trained are not trained again."""
    listed = [Step("standard", "scale of standardised advantages: the same weights?", 60, steps.standard)]
    listed += [Step(name, what, seconds, steps.ask(name), steps.ask(name, fresh=True))
               for name, what, seconds, _ in QUESTIONS]  # fmt: skip
    listed += [Step("rank", "does rank correlation predict the result?", 5, steps.rank)]
    if full:
        listed += [Step(f"full_{name}", f"at the log's sizes: {what}", sizes.seconds(name, runs), steps.ask(name, True))
                   for name, what, _, runs in QUESTIONS if runs]  # fmt: skip
    return listed
