"""How do checkpoints get into the package? Weights alone, with the command that made them and a hash beside them.

    python -m relab.lab.studies.pickcube.ship runs/gantry src/relab/train/shipped/pickcube-gantry 49152 65536 301056

Optimiser, worlds and replay stay behind: what is left is what `start_from=shipped:pickcube-gantry@65536` takes, and
what acts. Success is measured again on seeds that the run never saw, deterministic and sampled.
"""

from __future__ import annotations

import sys
from pathlib import Path

from relab.base.documents import Document
from relab.base.jsonl import decode, encode, write_atomic
from relab.base.streams import world_seeds
from relab.record import provenance
from relab.record.run_folder import read_meta
from relab.stats.rates import wilson
from relab.train import checkpoint, rollout
from relab.train.fresh import load_agent

EPISODES = 200
KEPT = ("id", "schema", "status", "command", "commit", "seed", "axis", "config_hash", "spec", "packages")
SPARSE = ("env.reward=sparse", "env.success=ends")


def ship(run: Path, target: Path, steps: list[str]) -> Document:
    """Write the folder; what it says of itself."""
    levels = {}
    for name in steps:
        tree, _ = checkpoint.load(run / "checkpoints", name)
        kept = {key: tree[key] for key in ("params", "obs_scale", "counts")}
        folder = checkpoint.save(target / "checkpoints", int(name), kept, {})
        checkpoint.point(target / "checkpoints", "latest", folder, int(name))
        levels[name] = level(run, name) | {"weights": checkpoint.fingerprint(tree["params"])}
    meta = {key: value for key, value in read_meta(run).items() if key in KEPT} | {"levels": levels}
    env = str(meta["spec"]["env"]).rpartition("-v")[0]
    meta["command"] = f"relab train ppo env={env} seed={meta['seed']} save.keep=200"
    meta["commit"] = provenance.start(Path(__file__).parent).collect()["commit"]
    write_atomic(target / "config.yaml", (run / "config.yaml").read_bytes())
    write_atomic(target / "meta.json", encode(meta, indent=True))
    return decode((target / "meta.json").read_bytes())


def level(run: Path, name: str) -> Document:
    """Success of a checkpoint on fresh episodes, by mode: share, ends of Wilson's interval, episodes."""
    cfg, env, agent, step = load_agent(run, name, SPARSE)
    played = rollout.evaluate(env, agent, world_seeds(cfg.seed, f"shipped/{step}", EPISODES))
    wins = {mode: sum(bool(e["success"]) for e in episodes) for mode, episodes in played.episodes.items()}
    return {mode: [round(x, 4) for x in wilson(k, EPISODES)[:3]] + [EPISODES] for mode, k in wins.items()}


if __name__ == "__main__":
    index = ship(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
    print("\n".join(f"{step} {levels}" for step, levels in index["levels"].items()))
