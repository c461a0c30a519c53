"""Which values do the libraries start from? Defaults of Stable-Baselines3 and CleanRL, under a run's own keys.

From the signatures of stable_baselines3 2.9.2 (ppo.py, a2c.py, dqn.py, sac.py, td3.py) and the arguments of CleanRL's
ppo.py, dqn.py, sac_continuous_action.py and td3_continuous_action.py (commit 7a96de2). A count of steps is cut to what
a short run can bear: learning must begin, and targets must be copied, long before its end.
"""

from __future__ import annotations

from typing import Any

from relab.base.documents import Settings
from relab.health.view import View

GRADIENT = {"max_grad_norm": 0.5, "value_coef": 0.5, "vf_coef": 0.5, "gamma": 0.99}
SB3: dict[str, dict[str, Any]] = {
    "ppo": GRADIENT | {"lr": 3e-4, "epochs": 10, "lam": 0.95, "clip": 0.2, "ent_coef": 0.0},
    "a2c": GRADIENT | {"lr": 7e-4, "lam": 1.0, "ent_coef": 0.0},
    "dqn": {"lr": 1e-4, "buffer_size": 1_000_000, "learning_starts": 100, "tau": 1.0, "gamma": 0.99, "train_freq": 4,
            "gradient_steps": 1, "target_update_interval": 10_000, "exploration_fraction": 0.1,
            "exploration_initial_eps": 1.0, "exploration_final_eps": 0.05, "max_grad_norm": 10.0},
    "sac": {"lr": 3e-4, "buffer_size": 1_000_000, "learning_starts": 100, "tau": 0.005, "gamma": 0.99, "train_freq": 1,
            "gradient_steps": 1, "target_update_interval": 1, "ent_coef": "auto", "target_entropy": "auto"},
    "td3": {"lr": 1e-3, "buffer_size": 1_000_000, "learning_starts": 100, "tau": 0.005, "gamma": 0.99, "train_freq": 1,
            "gradient_steps": 1, "policy_delay": 2, "target_policy_noise": 0.2, "target_noise_clip": 0.5},
}  # fmt: skip
CLEANRL: dict[str, dict[str, Any]] = {
    "ppo": GRADIENT | {"lr": 2.5e-4, "epochs": 4, "lam": 0.95, "clip": 0.2, "ent_coef": 0.01},
    "dqn": {"lr": 2.5e-4, "buffer_size": 10_000, "learning_starts": 10_000, "tau": 1.0, "gamma": 0.99,
            "train_frequency": 10, "target_network_frequency": 500, "exploration_fraction": 0.5, "start_e": 1.0,
            "end_e": 0.05},
    "sac": {"policy_lr": 3e-4, "q_lr": 1e-3, "buffer_size": 1_000_000, "learning_starts": 5000, "tau": 0.005,
            "gamma": 0.99, "policy_frequency": 2, "target_network_frequency": 1, "alpha": 0.2},
    "td3": {"lr": 3e-4, "buffer_size": 1_000_000, "learning_starts": 25_000, "tau": 0.005, "gamma": 0.99,
            "policy_noise": 0.2, "exploration_noise": 0.1, "policy_frequency": 2, "noise_clip": 0.5},
}  # fmt: skip
SHORT_OF = {"learning_starts": 0.05, "target_update_interval": 0.02, "target_network_frequency": 0.02}  # of all steps
THEIR_WORDS = ("train_frequency", "target_network_frequency", "start_e", "end_e", "policy_lr", "q_lr", "update_epochs",
               "anneal_lr", "clip_coef", "exp_name", "policy_frequency")  # fmt: skip


def library(view: View) -> str:
    """cleanrl or sb3: the settings of single-file scripts have names of their own."""
    words = {key.rpartition(".")[2] for key in view.config}
    return "cleanrl" if words & {*THEIR_WORDS} else "sb3"


def usual_values(view: View) -> list[tuple[str, Settings]]:
    """(Whose values, those values under the keys that this run's config has); none for relab's runs and unknown
    algorithms. A default that is too long for so short a run is cut, and no longer called a default."""
    whose = library(view)
    table = (CLEANRL if whose == "cleanrl" else SB3).get(str(view.algo))
    if view.history.trained_by_relab or table is None:
        return []
    known = {key: word for key in view.config if (word := key.rpartition(".")[2]) in table}
    steps = max(view.last_step, int(view.planned or 0) if view.unfinished else 0)
    cut = {key: most for key, word in known.items() if (most := _most(word, steps)) < _size(table[word])}
    label = f"{'CleanRL' if whose == 'cleanrl' else 'Stable-Baselines3'}'s default for {str(view.algo).upper()}"
    shares = {key: f"{SHORT_OF[known[key]]:.0%} of the run's steps; {label}, {table[known[key]]:,}, is too long for it"
              for key in cut}  # fmt: skip
    whole = {key: table[word] for key, word in known.items() if key not in cut}
    return [(label, whole), *((shares[key], {key: most}) for key, most in cut.items())]


def _most(word: str, steps: int) -> float:
    return max(1, int(SHORT_OF[word] * steps)) if word in SHORT_OF else float("inf")


def _size(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
