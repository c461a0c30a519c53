"""How many steps a second does rejax's PPO learn from CartPole? A peer of small_batches.py, run in its own venv.

The same geometry as relab's; what is left open is chosen in favour of the peer: everything is compiled before the clock
starts, evaluation is off (its callback returns nothing, and is called once), and nothing is logged.
"""

from __future__ import annotations

import argparse
import json
import time

import jax
from rejax import PPO


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    args = parser.parse_args()
    algo = PPO.create(
        env="CartPole-v1", num_envs=4, num_steps=128, num_epochs=4, num_minibatches=4, learning_rate=3e-4,
        total_timesteps=args.steps, eval_freq=args.steps, skip_initial_evaluation=True, max_grad_norm=0.5,
        agent_kwargs={"hidden_layer_sizes": (64, 64), "activation": "tanh"},
    )  # fmt: skip
    algo = algo.replace(eval_callback=lambda algo, ts, rng: ())
    train = jax.jit(algo.train)
    jax.block_until_ready(train(jax.random.PRNGKey(0)))  # compiles
    each = []
    for seed in range(1, args.rounds + 1):
        began = time.perf_counter()
        jax.block_until_ready(train(jax.random.PRNGKey(seed)))
        each.append(args.steps / (time.perf_counter() - began))
    print(json.dumps({"each": each}))


if __name__ == "__main__":
    main()
