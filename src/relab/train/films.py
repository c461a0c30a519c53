"""What has a policy learned between two checkpoints? Films of each on one seed, to be watched side by side.

The seed is that of the film and not of a run: films of several runs with one number begin in the same world.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relab.base.documents import Document
from relab.base.media import Film
from relab.base.streams import world_seeds
from relab.config.base import require
from relab.train import checkpoint, rollout
from relab.train.captions import Filming
from relab.train.fresh import film_place, load_agent, require_render

ALL = "all"  # in place of a checkpoint's name


def chosen(folder: Path, name: str) -> list[str]:
    """The steps of the checkpoints that are kept, or the one that is named."""
    return checkpoint.steps(folder / "checkpoints") if name == ALL else [name]


def film(
    folder: Path, name: str, seed: int, mode: str, out: Path | None, fps: int, changes: Sequence[str] = (),
    trust: bool = False,
) -> Document:  # fmt: skip
    """One checkpoint's episode in the world of this seed."""
    require(mode in ("det", "sampled"), f"`--mode` must be det or sampled, but got {mode!r}")
    _, env, agent, step = load_agent(folder, name, changes, trust)
    require_render(env.spec)
    seeds = world_seeds(0, f"film/{seed}", 1)
    path = out or film_place(folder, f"step-{step:012d}-{mode}-seed-{seed}.mp4")
    with Film(path, fps) as reel:
        world = 0 if mode == "det" else 1  # worlds of one evaluation: deterministic ones first, then sampled ones
        filming = Filming(reel, world, f"step {step:,}, seed {seed}")
        played = rollout.evaluate(env, agent, seeds, frames=filming)
        filming.rest(played.episodes[mode])
    return played.episodes[mode][0] | {"path": str(path), "step": step, "frames": reel.frames}
