"""How do our environments appear in Gymnasium? `gymnasium.make("relab.train.envs.gym_register:relab/CartPole-v1")`.

Importing this module registers the single-agent ones (Gymnasium 1.x loads no plug-ins by itself). Nothing heavy is
imported until one is made.
"""

from __future__ import annotations

import gymnasium

# Gymnasium's id: (our id, time limit that Gymnasium's TimeLimit wrapper adds, with the defaults of configs/envs.py)
EXPORTED: dict[str, tuple[str, int | None]] = {
    "relab/CartPole-v1": ("cartpole-v1", 500),
    "relab/Pendulum-v1": ("pendulum-v1", 200),
    "relab/LadderValue-v1": ("ladder-value-v1", None),
    "relab/LadderBackprop-v1": ("ladder-backprop-v1", None),
    "relab/LadderDiscount-v1": ("ladder-discount-v1", None),
    "relab/LadderPolicy-v1": ("ladder-policy-v1", None),
    "relab/LadderBoth-v1": ("ladder-both-v1", None),
}


def register() -> None:
    """Add them to Gymnasium's registry; a second call changes nothing."""
    for gym_id, (name, limit) in EXPORTED.items():
        if gym_id not in gymnasium.registry:
            gymnasium.register(
                id=gym_id,
                entry_point="relab.train.envs.gym_export:GymEnv",
                kwargs={"env": name},
                max_episode_steps=limit,
            )


register()
