"""Small real runs for the tests: make one, interrupt one, fingerprint one."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relab.config import layers
from relab.config.layers import Layer
from relab.train import session
from relab.train.loop import Ending
from relab.train.screen import Silent

SMALL = {
    "env": "cartpole", "seed": "3", "total_steps": "2048", "algo.envs": "8", "algo.steps": "16", "algo.epochs": "2",
    "algo.minibatches": "2", "eval.every": "512", "eval.episodes": "4", "save.every": "300", "eval.stop_at": "null",
}  # fmt: skip

DREAMS = {  # of Dreamer, in a second
    "algo": "dreamer", "env": "cartpole", "seed": "3", "total_steps": "640", "algo.envs": "4", "algo.steps": "16",
    "algo.learning_starts": "128", "algo.sequences": "4", "algo.length": "16", "algo.deter": "16", "algo.hidden": "8",
    "algo.stoch": "4", "algo.units": "8", "algo.imagine": "3", "algo.updates_per_step": "0.25", "algo.bins": "11",
    "algo.lr": "1e-3", "algo.lr_warmup": "0", "eval.episodes": "2", "eval.every": "0",
    "algo.latents": "none", "algo.acting_rate": "1.0", "algo.norm_obs": "false", "algo.lr_until": "1.0",
    "algo.lam": "0.95", "algo.slow_scale": "1.0", "algo.free_bits": "clamp", "algo.obs_scale": "1.0",
    "algo.ends": "0.0",
}  # fmt: skip


class Interrupt(Silent):
    """Raises a signal while the k-th iteration is shown, as a user's Ctrl-C would."""

    def __init__(self, at: int, number: int = signal.SIGINT):
        self.left, self.number = at, number

    def iteration(self, row: Mapping[str, Any]) -> None:
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(self.number)


def resolve(**settings: str) -> layers.Resolved:
    typed = {key.replace("__", "."): value for key, value in settings.items()}
    small = {k: v for k, v in SMALL.items() if not k.startswith("algo.") or "algo" not in typed}  # PPO's
    return layers.resolve([Layer("command line", small | typed)])


def run(folder: Path, screen: Any = None, **settings: str) -> Ending:
    """Train a small run; keys are written env__length for env.length."""
    resolved = resolve(**settings)
    return session.start(resolved.config, folder, resolved.provenance, {"command": "test"}, screen)


def fingerprint(folder: Path) -> dict[str, str]:
    """Hashes of everything that must not depend on when and how often a run was interrupted."""
    last = sorted((folder / "checkpoints").glob("step-*"))[-1]
    files = [folder / name for name in ("config.yaml", "metrics.jsonl", "evals.jsonl", "probes.jsonl")]
    files += [last / "weights.safetensors", last / "state.safetensors"]
    files += [*(folder / "checkpoints").glob("best.json")]  # a critic alone has none
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    return hashes | {"last": last.name}
