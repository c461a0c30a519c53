"""What would the questions cost at the sizes of the original log? Its worlds, steps, samples and epochs, by question.

`relab study pickcube --full` asks every question a second time with these in place of the small ones; 5,000 states are
run again 32 times in each iteration, which takes days of one core (the plan says how many before anything starts).
"""

from __future__ import annotations

from typing import Any

GAE = {"envs": 50, "steps": 100, "minibatches": 5, "epochs": 20, "total_steps": 10, "eval.every": 1}
AGAIN = {"envs": 100, "steps": 50, "minibatches": 5, "mc_samples": 16, "epochs": 200, "total_steps": 10,
         "eval.every": 1}  # fmt: skip
FIXED = {"envs": 128, "steps": 200, "minibatches": 32, "mc_samples": 16, "epochs": 4, "total_steps": 100,
         "eval.every": 5}  # fmt: skip
IQL = {"envs": 512, "steps": 50, "minibatches": 32, "epochs": 4, "total_steps": 100, "eval.every": 5}
LARGE = [512] * 10

# question -> settings of all its arms, and of single arms
SIZES: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "gamma": (GAE, {}),
    "advantage": (GAE, {}),
    "update": (GAE, {}),
    "critic": (GAE, {}),
    "tricks": (GAE, {"large": {"critic_hidden": LARGE}, "both": {"critic_hidden": LARGE}}),
    "follow": (AGAIN | {"beta": 0.5}, {}),
    "online": (AGAIN | {"beta": 0.5}, {}),
    "samples": (AGAIN | {"beta": 0.5, "mc_samples": 4}, {}),
    "beta": (AGAIN, {}),
    "equal": ({"total_steps": 10, "eval.every": 1},
              {"rerollout": {"envs": 100, "minibatches": 5, "mc_samples": 5, "epochs": 100},
               "gae_batch": {"envs": 100, "minibatches": 5, "epochs": 100},
               "gae_simulator": {"envs": 7500, "minibatches": 500}}),
    "fixed_follow": (FIXED, {}),
    "expectile": (IQL, {}),
    "iql_data": (IQL, {"several": {"data_episodes": 200}, "own": {"data_episodes": 1000}}),
}  # fmt: skip
# Seconds of one core by run: 10 iterations of GAE, or of 5,000 x 32 re-rollouts (406 s each); 25,600 x 32 once; IQL.
SECONDS = {"gae": 60.0, "again": 4200.0, "fixed": 2300.0, "iql": 600.0}
KIND = {"follow": "again", "online": "again", "samples": "again", "beta": "again", "equal": "again",
        "fixed_follow": "fixed", "expectile": "iql", "iql_data": "iql"}  # fmt: skip


def seconds(question: str, runs: int) -> float:
    return runs * SECONDS[KIND.get(question, "gae")]


def sized(declared: dict[str, Any], question: str) -> dict[str, Any]:
    """The experiment with the log's sizes."""
    base, arms = SIZES[question]
    variants = {name: {**settings, **arms.get(name, {})} for name, settings in declared["variants"].items()}
    return {**declared, "base": {**declared["base"], **base}, "variants": variants}
