"""How long does an update of sheeprl's DreamerV3 take? The peer of dreamer_peer.py, run in its own venv.

Its own program runs on CartPole with its XS sizes; only the function that makes one update is timed, call by call. The
first calls are left out: they warm up.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from typing import Any

import torch
from sheeprl import cli
from sheeprl.algos.dreamer_v3 import dreamer_v3

WARM = 3


class EnoughError(Exception):
    """As many updates as were asked for."""


class Timer:
    """Stands in for `train`; ends the program after `count` timed calls."""

    def __init__(self, count: int):
        self.train, self.count, self.samples = dreamer_v3.train, count, list[tuple[float, float]]()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = self.train(*args, **kwargs)
        self.samples.append((time.perf_counter() - wall, time.process_time() - cpu))
        if len(self.samples) >= self.count + WARM:
            raise EnoughError
        return result


def words(batch: int, length: int, threads: int, folder: str) -> list[str]:
    return [
        "exp=dreamer_v3", "algo=dreamer_v3_XS", "env=gym", "env.id=CartPole-v1", "env.num_envs=1",
        "env.sync_env=True", "env.capture_video=False", "fabric.accelerator=cpu", "fabric.devices=1",
        "algo.cnn_keys.encoder=[]", "algo.mlp_keys.encoder=[vector]", "algo.cnn_keys.decoder=[]",
        "algo.mlp_keys.decoder=[vector]", f"algo.per_rank_batch_size={batch}",
        f"algo.per_rank_sequence_length={length}", "algo.learning_starts=1024", "buffer.size=10000",
        "buffer.memmap=False", "metric.log_level=0", "checkpoint.every=1000000000", "algo.run_test=False",
        f"num_threads={threads}", f"root_dir={folder}", f"hydra.run.dir={folder}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    timer = dreamer_v3.train = Timer(args.updates)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # otherwise it ends the program where `EnoughError` is raised
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(EnoughError), contextlib.chdir(folder):
        sys.argv = ["sheeprl", *words(args.batch, args.length, args.threads, folder)]
        cli.run()
    samples = timer.samples[WARM:]
    print(json.dumps({"seconds": [w for w, _ in samples], "processor_seconds": [c for _, c in samples]}))


if __name__ == "__main__":
    main()
