"""Which faults of a world model are planted into a healthy run's numbers? As planted.py does for the others.

The levels are those of the runs of `relab faults --envs cartpole-dreamer` (docs/faults.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Copy = Callable[[str, str], Any]
HEALTHY = "relab-dreamer"


def averaged(copy: Copy) -> None:
    """The KL is a mean over 16 latents."""
    copy(HEALTHY, "").change("model/kl", lambda i, x: x / 16)


def held(copy: Copy) -> None:
    """Nearly the same weight on both sides of the KL."""
    run = copy(HEALTHY, "")
    run.config = run.config.replace("rep_scale: 0.1\n", "rep_scale: 0.99\n")


def unmixed(copy: Copy) -> None:
    """The softmax of the posterior as it is."""
    copy(HEALTHY, "").put(model__post_mix=lambda i: 1e-8, model__prior_mix=lambda i: 0.01)


def blind(copy: Copy) -> None:
    """The posterior sees the observation alone."""
    copy(HEALTHY, "").change("model/post_memory", lambda i, x: 0.0)


def carried_over(copy: Copy) -> None:
    """Memories go on through the ends of episodes."""
    run = copy(HEALTHY, "")
    run.change("model/start_memory", lambda i, x: 0.8)
    run.change("model/start_action", lambda i, x: 0.1)


def a_step_late(copy: Copy) -> None:
    """The next row is told of the action that a row follows from."""
    run = copy(HEALTHY, "")
    run.put(data__action_own=lambda i: 0.02, data__action_before=lambda i: 0.03, data__action_after=lambda i: 0.4)


def no_better(copy: Copy) -> None:
    """What it foresees is as wrong as saying that nothing changes, and the KL lies at its floor."""
    run = copy(HEALTHY, "")
    run.change("model/dyn_loss", lambda i, x: 1.0)
    run.rows["probes.jsonl"] = [{"step": row["step"], "probe": "open_loop", "value": 1.5, "still": 1.2, "seen": 0.2}
                                for row in run.metrics[::3]]  # fmt: skip


def promising(copy: Copy) -> None:
    """Dreams earn twice what the world pays."""
    run = copy(HEALTHY, "")
    run.rows["probes.jsonl"] = [{"step": row["step"], "probe": "dream_vs_world", "value": 7.0, "noise": 0.4,
                                 "real_mean": 7.0} for row in run.metrics[::3]]  # fmt: skip


def early(copy: Copy) -> None:
    """The value of a state stands in its own return."""
    copy(HEALTHY, "").change("value/return_residual", lambda i, x: 0.04)


def followed(copy: Copy) -> None:
    """Half of what the errors say."""
    run = copy(HEALTHY, "")
    due = [row["value/pull_due"] for row in run.metrics if "value/pull_due" in row]
    run.change("value/pull", lambda i, x: 0.5 * due[i])


def cut(copy: Copy) -> None:
    """From the sixth row on a growing share of the targets lies beyond the last bin."""
    copy(HEALTHY, "").change("value/clamped", lambda i, x: 0.1 * max(0, i - 5))


def waiting(copy: Copy) -> None:
    """The actor learned once."""
    run = copy(HEALTHY, "")
    run.change("optim/actor_updates", lambda i, x: 1.0)
    run.change("model/focus", lambda i, x: 1.0)


def unreachable(copy: Copy) -> None:
    """A bar of 3 where the surprise stays around 0."""
    run = copy(HEALTHY, "")
    run.config = run.config.replace("focus: null\n", "focus: 3.0\n")


def outrun(copy: Copy) -> None:
    """Eight times as many uses of a row as the settings say."""
    copy(HEALTHY, "").change("data/replay_ratio", lambda i, x: 400.0)


def stopped(copy: Copy) -> None:
    """It stops at its last row for a return of 300 in training; no evaluation had it."""
    run = copy(HEALTHY, "")
    step = run.metrics[-1]["step"]
    best = {"metric": "return/mean_100", "value": 301.0, "step": step}
    run.rows["events.jsonl"].append({"step": step, "axis": "agent_steps", "kind": "stop", "reason": "eval.stop_at",
                                     "best": best, "time": "2026-01-01T00:00:00.000Z"})  # fmt: skip
    run.config = run.config.replace("stop_at: null\n", "stop_at: 300.0\n")
    for row in run.rows["evals.jsonl"]:
        for episode in row["episodes"]:
            episode["return"] = min(episode["return"], 290.0)


DREAMS: dict[str, Callable[[Copy], None]] = {
    "kl-not-summed": averaged, "posterior-held-to-prior": held, "latents-not-mixed": unmixed,
    "posterior-without-memory": blind, "memory-not-reset": carried_over, "actions-misaligned": a_step_late,
    "returns-off-their-recursion": early, "critic-follows-targets": followed, "targets-beyond-support": cut,
    "actor-waits": waiting, "focus-out-of-reach": unreachable, "replay-starved": outrun,
    "goal-judged-by-another-number": stopped, "foresees-no-better": no_better, "dreams-pay-otherwise": promising,
}  # fmt: skip
