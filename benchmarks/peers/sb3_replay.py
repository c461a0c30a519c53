"""How many updates a second does Stable-Baselines3 make? The peer of replay_methods.py, run in its own venv.

One environment, one update a step; no logging, no evaluation. The clock runs from the first update to the end.
"""

from __future__ import annotations

import argparse
import json
import time

import torch
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.callbacks import BaseCallback

STARTS = 1000


class Clock(BaseCallback):
    """Notes when learning begins."""

    def _on_step(self) -> bool:
        if self.num_timesteps == STARTS:
            self.began, self.used = time.perf_counter(), time.process_time()
        return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("algo", choices=("dqn", "sac"))
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    shared = {"batch_size": args.batch, "learning_starts": STARTS, "train_freq": 1, "gradient_steps": 1,
              "device": "cpu", "policy_kwargs": {"net_arch": [args.hidden, args.hidden]},
              "buffer_size": 100_000}  # fmt: skip
    make, env = (DQN, "CartPole-v1") if args.algo == "dqn" else (SAC, "Pendulum-v1")
    clock = Clock()
    make("MlpPolicy", env, **shared).learn(args.steps, callback=clock)
    seconds, used = time.perf_counter() - clock.began, time.process_time() - clock.used
    print(json.dumps({"updates": args.steps - STARTS, "seconds": seconds, "processor_seconds": used}))


if __name__ == "__main__":
    main()
