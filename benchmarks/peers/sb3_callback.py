"""One training of Stable-Baselines3 with relab's callback or without, in .venv-sb3: seconds of learn() as JSON.

python benchmarks/peers/sb3_callback.py with FOLDER STEPS
"""

from __future__ import annotations

import json
import sys
import time

import torch
from stable_baselines3 import PPO

from relab.callbacks import SB3Callback


def main(how: str, folder: str, steps: str) -> None:
    torch.set_num_threads(1)
    model = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
    callback = SB3Callback(folder, every=2048) if how == "with" else None
    wall, cpu = time.perf_counter(), time.process_time()
    model.learn(int(steps), callback=callback)
    spent = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    watched = {"share": callback.watch.share, "looks": callback.watch.looks} if callback else {}
    print(json.dumps(spent | watched))


if __name__ == "__main__":
    main(*sys.argv[1:])
