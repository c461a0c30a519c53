"""Small runs of every registered algorithm and environment: what is killed and resumed."""

from __future__ import annotations

import json

from train.envs import dots

dots.register()

SCHEDULE = {
    "total": 9,
    "every": 2,
    "curriculum": {"stages": "2:3,3:3,4:3", "key": "sheep"},
    "phases": {"wolf_speed": [0.0, 0.01, 0.02]},
    "multi_eval": {"episodes": 3, "agents": 3, "early": [20]},
    "gates": {"flock": {"success": ["median(2) min_final >= 0.0"], "failure": "avg_final < 0", "allowance": [1, 2]}},
    "alerts": {"calm": {"when": "flock_stage >= 2", "patience": 2}},
}
HERD = {"env": "herd", "env__agents": "4", "total_steps": "2048", "eval__every": "1024", "save__every": "500"}
TRACKING = {
    "env": "torus", "total_steps": "480", "algo__trajectories": "4", "algo__horizon": "10", "feature_dim": "40",
    "actor_feature_dim": "12", "alpha_w": "5", "alpha_pi": "50", "theta_mu_offset_scale": "0.3", "probes__every": "2",
    "probes__fixed_point__samples": "60", "probes__fixed_point__capped": "true", "probes__distribution__samples": "40",
    "probes__plateau__enabled": "true", "probes__plateau__window": "3", "probes__plateau__min_iter": "3",
    "probes__plateau__cooldown": "3", "eval__every": "160", "env__horizon": "40",
}  # fmt: skip
RUNGS = ("value", "backprop", "discount", "policy", "both")
SUBJECTS: dict[str, dict[str, str]] = {
    "discrete": {"algo__norm_obs": "true", "algo__norm_return": "true"},
    "continuous": {
        "env": "pendulum", "algo__lr_schedule": "linear", "algo__ent_coef": "0.01", "algo__ent_coef_final": "0",
    },
    "adaptive": {"algo__lr_schedule": "adaptive_kl", "algo__target_kl": "0.01", "algo__clip_value": "0.2"},
    "gru": {"algo__rnn": "gru", "algo__bptt": "8"},
    "lstm": {"env": "pendulum", "algo__rnn": "lstm", "algo__bptt": "16"},
    **{f"ladder {rung}": {"env": f"ladder-{rung}"} for rung in RUNGS},
    "agents alone": HERD | {"env__agent_reset": "alone"},
    "agents with world": HERD | {"env__agent_reset": "with_world"},
    "fish": {
        "env": "fish", "env__agents": "4", "env__horizon": "40", "total_steps": "2048", "eval__every": "1024",
        "save__every": "500",
    },
    "swarm": {
        "env": "drones", "env__agents": "2", "env__horizon": "40", "algo__rnn": "mingru", "algo__bptt": "8",
        "algo__optimizer": "muon", "algo__stagger": "true", "total_steps": "2048", "eval__every": "1024",
        "save__every": "500",
    },
    "arm": {"env": "pickcube", "env__reward": "dense", "total_steps": "512"},
    "gantry": {"env": "pickcube-gantry", "env__reward": "dense", "total_steps": "512"},
    "gym": {"env": "gym:CartPole-v1"},
    "images": {"env": f"gym:{dots.ID}"},
    "schedule": HERD | {"total_steps": "9999", "schedule": json.dumps(SCHEDULE)},
    "tracking with probes": {"algo": "tracking_ac"} | TRACKING,
    "replay": {
        "algo": "dqn", "algo__steps": "16", "algo__learning_starts": "100", "algo__replay": "300",
        "algo__minibatch": "16", "algo__n_step": "2", "algo__hidden": "[16]",
    },
    "soft replay": {
        "algo": "sac", "env": "pendulum", "algo__envs": "4", "algo__steps": "32", "algo__learning_starts": "100",
        "algo__replay": "300", "algo__minibatch": "16", "algo__n_step": "2", "algo__hidden": "[16]",
    },
    "critic": {
        "algo": "critic", "env": "ladder-discount", "algo__envs": "12", "algo__steps": "8", "algo__hidden": "[16]",
        "algo__minibatches": "2", "total_steps": "6", "eval__every": "2", "save__every": "1",
    },
    "fine-tuning": {
        "algo": "finetune", "env": "ladder-both", "algo__envs": "8", "algo__steps": "8", "algo__hidden": "[16]",
        "algo__epochs": "2", "algo__minibatches": "2", "algo__advantage": "rerollout", "algo__update": "awr",
        "algo__mc_samples": "2", "algo__slots": "16", "total_steps": "6", "eval__every": "2", "save__every": "1",
    },
    "dreams": {
        "algo": "dreamer", "algo__envs": "4", "algo__steps": "32", "algo__learning_starts": "100",
        "algo__replay": "300", "algo__sequences": "2", "algo__length": "8", "algo__deter": "16", "algo__hidden": "8",
        "algo__stoch": "4",
        "algo__units": "8", "algo__imagine": "3", "algo__updates_per_step": "0.1", "algo__bins": "11",
    },
}  # fmt: skip
# Five or so iterations, three or more checkpoints of which the oldest is deleted, two evaluations after the first.
SHORT = {"total_steps": "640", "eval__every": "256", "save__every": "128", "save__keep": "1", "eval__episodes": "2"}


def settings(name: str) -> dict[str, str]:
    return SHORT | SUBJECTS[name]
