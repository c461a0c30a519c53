"""Which settings does relab ship for an algorithm on an environment? Above the defaults, below everything else."""

from __future__ import annotations

from typing import Any

from relab.base.documents import Settings

_LADDER = {
    "total_steps": 20_000,
    "eval": {"every": 5_000},
    "algo": {"lr": 3e-3, "envs": 16, "steps": 8, "minibatches": 2},
}

# five rewards before the target network's word, and a target that follows slowly: with three rewards or whole copies
# every run fell back on the way (seeds 100 to 104, docs/studies/dqn.md)
_DQN = {"n_step": 5, "target_every": 1, "tau": 0.005, "updates_per_step": 0.5, "minibatch": 128, "lr_final": 0.01}
# twice the steps at half the updates each: with 60,000 one of five seeds lost CartPole again before the end, with gamma
# 0.99 and half the updates two did; the learning rate falls over the whole run
_DQN_CARTPOLE = {"total_steps": 120_000, "eval": {"every": 5_000}, "algo": _DQN | {"gamma": 0.98}}

# dense reward, and a success that cuts: one that ends pays for trembling at the goal (docs/studies/pickcube.md). Chosen
# on seed 100; the learning rate falls to 0, without which success is lost again
_DENSE: Settings = {"reward": "dense", "success": "cuts"}
_PICKCUBE: Settings = {
    "gamma": 0.8, "lam": 0.9, "envs": 64, "steps": 32, "epochs": 8, "minibatches": 8, "lr": 1e-3,
    "lr_schedule": "linear", "hidden": (128, 128, 128), "log_std_init": -0.5,
}  # fmt: skip
_CRITIC: Settings = {"total_steps": 30, "eval": {"every": 0, "episodes": 100}}
_FINETUNE: Settings = {
    "total_steps": 10,
    "eval": {"every": 1, "episodes": 100},
    "algo": {"envs": 50, "steps": 100, "epochs": 20, "minibatches": 5},
}
# the environment of an algorithm that is made for one
HOME = {"tracking_ac": "torus-v1"}

# where nothing is shipped for the environment: what CartPole has, but the usual dreams, so that a run takes minutes,
# not days. One run on Pendulum swung it up after 4,000 steps; nothing is known elsewhere (docs/algorithms/dreamer.md)
ANYWHERE: dict[str, Settings] = {
    "finetune": {"total_steps": 10, "eval": {"every": 1}},  # their clock is the iteration
    "critic": {"total_steps": 30, "eval": {"every": 0}},
    "dreamer": {
        "total_steps": 32_768,
        "eval": {"every": 2_048},
        "algo": {
            "envs": 4, "steps": 64, "learning_starts": 512, "updates_per_step": 0.25, "sequences": 8, "length": 25,
            "latents": "stored", "deter": 64, "stoch": 16, "bins": 81, "obs_scale": 100.0, "lam": 1.0,
            "slow_scale": 0.0, "free_bits": "straight", "lr": 1e-3, "lr_warmup": 100, "lr_final": 0.05,
            "acting_rate": 0.005, "collects": "learned",
        },
    },
}  # fmt: skip

# (algorithm, environment with version) -> nested settings, as they would stand in a YAML file.
PRESETS: dict[tuple[str, str], Settings] = {
    # small batches and large steps that shrink: solved in about 10,000 steps (chosen on seeds 100 to 114), and it stays
    # so until the end (seeds 200 to 207; a step size that follows the KL was as fast and lost it on one seed of five)
    ("ppo", "cartpole-v1"): {
        "total_steps": 100_000,
        "eval": {"every": 2048},
        "algo": {
            "envs": 16, "steps": 64, "epochs": 4, "minibatches": 8, "lr": 3e-3, "lr_schedule": "linear",
            "gamma": 0.99, "lam": 0.9, "max_grad_norm": 5.0,
        },
    },
    # a short horizon is enough to swing up; rewards of -16 to 0 want scaling
    ("ppo", "pendulum-v1"): {
        "total_steps": 100_000,
        "eval": {"every": 8192},
        "algo": {
            "envs": 16, "steps": 128, "epochs": 10, "minibatches": 16, "lr": 1e-3, "gamma": 0.95, "norm_return": True,
        },
    },
    ("ppo", "gym:Acrobot-v1"): {
        "total_steps": 100_000,
        "eval": {"every": 8192},
        "algo": {
            "envs": 16, "steps": 64, "epochs": 4, "minibatches": 8, "lr": 1e-3, "lr_schedule": "adaptive_kl",
            "target_kl": 0.03, "lam": 0.94,
        },
    },
    # death pays -50 and a step at most 1.2, hence scaled returns; chosen on seed 100: nothing more is learned after 3 M
    ("ppo", "fish-v1"): {
        "total_steps": 4_000_000,
        "eval": {"every": 500_000, "episodes": 10},
        "algo": {
            "envs": 32, "steps": 128, "epochs": 4, "minibatches": 16, "lr": 1e-3, "lr_schedule": "linear",
            "norm_return": True,
        },
    },
    # chosen in runs of 3 to 40 M steps on seed 100 (docs/studies/drones.md): long episodes, so worlds of all ages in a
    # batch; a small network, so that one core makes many steps; many small updates; scaled returns, because a crash
    # costs 21 and the critic's gradient would take nearly all of the norm that the policy's is clipped with
    ("ppo", "drones-v1"): {
        "total_steps": 20_000_000,
        "eval": {"every": 2_000_000, "episodes": 8},
        "algo": {
            "envs": 112, "steps": 32, "stagger": True, "epochs": 3, "minibatches": 64, "lr": 7e-4,
            "lr_schedule": "linear", "norm_obs": True, "norm_return": True, "log_std_init": -0.7, "log_std_min": -4.0,
        },
    },
    # chosen on seeds 100 to 104, none of which the study's table holds (docs/studies/dreamer.md)
    ("dreamer", "cartpole-v1"): {
        "total_steps": 32_768,
        "eval": {"every": 512},
        "algo": {
            "envs": 4, "steps": 64, "learning_starts": 512, "updates_per_step": 0.25, "sequences": 8, "length": 25,
            "ends": 0.3, "latents": "stored", "deter": 64, "stoch": 16, "bins": 81, "gamma": 0.997, "obs_scale": 100.0,
            "imagine": 32, "lam": 1.0, "slow_scale": 0.0, "free_bits": "straight", "lr": 1e-3, "lr_warmup": 100,
            "lr_final": 0.05, "lr_until": 0.375, "acting_rate": 0.002, "collects": "learned",
        },
    },
    ("ppo", "pickcube-gantry-v1"): {
        "total_steps": 300_000,
        "eval": {"every": 8_192, "episodes": 50},
        "env": _DENSE,
        "algo": _PICKCUBE,
    },
    ("ppo", "pickcube-v1"): {
        "total_steps": 1_000_000,
        "eval": {"every": 32_768, "episodes": 50},
        "env": _DENSE,
        "algo": _PICKCUBE | {"envs": 128},
    },
    # a start of which half succeeds, with its noise and without: at over 95 % there is little to learn but less noise
    ("finetune", "pickcube-gantry-v1"): _FINETUNE
    | {"start_from": "shipped:pickcube-gantry@65536", "algo": _FINETUNE["algo"] | {"log_std": -2.0}},
    ("critic", "pickcube-gantry-v1"): _CRITIC
    | {"start_from": "shipped:pickcube-gantry@65536", "algo": {"log_std": -2.0}},
    ("critic", "pickcube-v1"): _CRITIC | {"start_from": "shipped:pickcube@262144", "algo": {"log_std": -1.5}},
    ("finetune", "pickcube-v1"): _FINETUNE
    | {"start_from": "shipped:pickcube@262144", "algo": _FINETUNE["algo"] | {"log_std": -1.5}},
    ("dqn", "cartpole-v1"): _DQN_CARTPOLE,
    ("dqn", "gym:CartPole-v1"): _DQN_CARTPOLE,
    ("dqn", "gym:Acrobot-v1"): {"total_steps": 60_000, "eval": {"every": 5_000}, "algo": _DQN},
    # a network of a sixteenth of the default's weights: as good on seed 100, in a ninth of the time; on seeds 100 to
    # 103 gamma 0.95 had no setback on the way (0.99: two) and ended 4.5 lower
    ("sac", "pendulum-v1"): {
        "total_steps": 20_000,
        "eval": {"every": 2_500},
        "algo": {"hidden": (64, 64), "lr": 1e-3, "minibatch": 128},
    },
    ("ppo", "herd-v1"): {"total_steps": 400_000, "algo": {"envs": 32, "lr": 1e-3}},
    # 200 iterations of 16 x 200 steps; evaluated at the start and at the end, since the question is about the critic
    ("tracking_ac", "torus-v1"): {"total_steps": 640_000, "eval": {"every": 0}},
    **{("ppo", f"ladder-{rung}-v1"): _LADDER for rung in ("value", "backprop", "discount", "policy", "both")},
}  # fmt: skip


# with 0.99 haste was worth a crash: 14 % of the drones were lost, most of them through a wall near their target
_PICK_PLACE: Settings = {"algo.gamma": 0.995}
# what one task of an environment has in the place of some of these settings; "": where no task is named
OF_TASK: dict[tuple[str, str], dict[str, Settings]] = {
    ("ppo", "drones-v1"): {"": _PICK_PLACE, "pick_place": _PICK_PLACE},
}


def preset_of(algo: str, env: str) -> Settings:
    """Of an algorithm on an environment, else of the algorithm wherever nothing is shipped; empty where neither is."""
    return PRESETS.get((algo, env)) or ANYWHERE.get(algo, {})


def of_task(algo: str | None, env: str | None, task: Any) -> Settings:
    """What a task (`env.task`) of an environment has besides, by whole keys."""
    return OF_TASK.get((algo or "", env or ""), {}).get(str(task), {})
