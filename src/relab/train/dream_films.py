"""What does a world model see, and what does it foresee? Films of the real world beside what the model draws.

Three pictures side by side, a row for each world: the real one; the model's, which looks at every step; the model's,
which looks at the first few and then only knows what is done. Its frame is green while it looks and red after that.
An episode that has ended is black. A .png holds every few steps of the same below each other, a row for each picture.
`relab video RUN --imagine` makes one of a checkpoint, `record.pictures=N` one in every N steps of training (Album).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from relab.base.jsonl import writing
from relab.base.media import write_film
from relab.base.streams import generator
from relab.config.base import require, require_range
from relab.config.run import RunConfig
from relab.train import fresh
from relab.train.envs.base import Env
from relab.train.loop import Trainer
from relab.train.probes.open_loop import Walk, predictions, reconstructed, walk_of

Colour = tuple[int, int, int]
LOOKS, FORESEES = (90, 170, 90), (200, 70, 60)
EDGE, GAP = 2, 4  # pixels of a frame, and between pictures, after enlarging
LARGEST = 3  # pixels a side that one pixel becomes, for images of 64 x 64
ACROSS = 12  # steps that a strip shows


@dataclass(frozen=True)
class DreamFilm:
    path: Path
    frames: int
    step: int  # of the checkpoint
    looks: int  # steps that the foreseeing model sees
    error: float  # mean squared error of a pixel after that, foreseen
    seen: float  # and where the model looks
    learned: bool  # the model has had an update by then


def film(folder: Path, name: str, out: Path | None, fps: int, worlds: int, looks: int, ahead: int,
         trust: bool = False) -> DreamFilm:  # fmt: skip
    """Write it; ConfigError for a run that has no world model of images."""
    for what, number, least in (("--worlds", worlds, 1), ("--looks", looks, 1), ("--ahead", ahead, 1)):
        require_range(what, number, least, 1000)
    cfg, env, agent, step = fresh.load_agent(folder, name, trust=trust)
    require_drawing(agent, cfg, env, f"`--imagine` films a world model's pictures, but {folder.name}")
    walk = walk_of(env, agent, cfg.seed, f"film/imagine/{step}", worlds, looks + ahead)
    pictures = drawn(agent, walk, looks, generator(cfg.seed, f"film/imagine/{step}"))
    path = out or fresh.film_place(folder, f"step-{step:012d}-imagine.mp4")
    if path.suffix == ".png":
        write_strip(path, pictures, env.spec.obs_shape, looks)
    else:
        write_film(
            path, (page(pictures[:, t], env.spec.obs_shape, frames_of(t < looks)) for t in range(looks + ahead)), fps
        )
    foreseen, seen = (error(pictures[k], pictures[0], walk.counts, looks) for k in (2, 1))
    return DreamFilm(path, looks + ahead, step, looks, foreseen, seen, step > cfg.algo.learning_starts)


def require_drawing(agent: object, cfg: RunConfig, env: Env, what: str) -> None:
    model = getattr(agent, "model", None)
    require(getattr(model, "image", None) is not None, f"{what} ({cfg.algo.name} on {env.spec.seen}) draws none; train"
            " dreamer with env.pixels=64")  # fmt: skip


class Album:
    """A strip in every few steps of training; draws from streams of its own, so that the run stays what it is."""

    worlds, looks, ahead = 2, 8, 40

    @staticmethod
    def check(cfg: RunConfig, env: Env, agent: object) -> None:
        """ConfigError for a run that has no world model of images, or ends before a strip is due."""
        assert cfg.record is not None
        every, starts = cfg.record.pictures, getattr(cfg.algo, "learning_starts", 0)
        require_drawing(agent, cfg, env, f"`record.pictures` = {every:,} keeps a world model's pictures, but this one")
        last = math.ceil(cfg.total_steps / (cfg.batch or 1)) * (cfg.batch or 1) // every * every
        require(last > starts, f"`record.pictures` = {every:,} must come due after learning starts (step {starts:,})"
                f" and before the run ends (step {cfg.total_steps:,}), but never does; set it to"
                f" {max(1, (cfg.total_steps - starts) // 4):,} for four strips")  # fmt: skip

    def __init__(self, trainer: Trainer) -> None:
        self.check(trainer.cfg, trainer.env, trainer.state.agent)
        assert trainer.cfg.record is not None
        self.every = trainer.cfg.record.pictures

    def __call__(self, trainer: Trainer, before: int) -> None:
        """`before`: the step at which the iteration began."""
        step, agent, seed = trainer.step, trainer.state.agent, trainer.cfg.seed
        if step // self.every == before // self.every or not trainer.state.counts.updates:
            return
        walk = walk_of(trainer.env, agent, seed, f"film/album/{step}", self.worlds, self.looks + self.ahead)  # type: ignore[arg-type]
        pictures = drawn(agent, walk, self.looks, generator(seed, f"film/album/{step}"))
        try:
            path = fresh.film_place(trainer.folder, f"step-{step:012d}-imagine.png")
            write_strip(path, pictures, trainer.env.spec.obs_shape, self.looks)
        except OSError as error:
            trainer.warn("pictures", f"pictures are not written ({error}); training goes on")


@torch.no_grad()
def drawn(agent: object, walk: Walk, looks: int, rng: np.random.Generator) -> Tensor:
    """[3, T, worlds, pixels]: real, reconstructed, and foreseen after the first `looks`; black after an end."""
    foreseen, seen, _ = predictions(agent, walk, looks, rng)  # type: ignore[arg-type]
    looking = reconstructed(agent, walk, rng)  # type: ignore[arg-type]
    pictures = torch.stack((walk.obs, looking, torch.cat((seen, foreseen))))
    return pictures.clamp(0, 1) * walk.counts.unsqueeze(-1)


def error(said: Tensor, real: Tensor, counts: Tensor, looks: int) -> float:
    after = (said - real).square().mean(-1)[looks:]
    return float((after * counts[looks:]).sum() / counts[looks:].sum().clamp(min=1))


def enlarged(flat: Tensor, shape: tuple[int, ...]) -> np.ndarray:
    """One image, uint8[H,W,3]."""
    image = np.rint(flat.numpy().reshape(shape) * 255).astype(np.uint8)
    image = np.repeat(image, 3, -1) if shape[2] < 3 else image[..., :3]
    times = max(1, LARGEST * 64 // shape[0])
    return image.repeat(times, 0).repeat(times, 1)


def framed(image: np.ndarray, colour: Colour | None) -> np.ndarray:
    out = np.full((image.shape[0] + 2 * EDGE, image.shape[1] + 2 * EDGE, 3), 255, np.uint8)
    out[:] = colour or (255, 255, 255)
    out[EDGE:-EDGE, EDGE:-EDGE] = image
    return np.pad(out, ((0, GAP), (0, GAP), (0, 0)), constant_values=255)


def frames_of(looks: bool) -> tuple[Colour | None, ...]:
    """Of the real, the reconstructed and the foreseen picture of one step."""
    return None, LOOKS, LOOKS if looks else FORESEES


def page(pictures: Tensor, shape: tuple[int, ...], colours: Sequence[Colour | None]) -> np.ndarray:
    """One step: [3, worlds, pixels] -> a row for each world."""
    rows = [np.concatenate([framed(enlarged(each[i], shape), colour) for each, colour in zip(pictures, colours)], 1)
            for i in range(pictures.shape[1])]  # fmt: skip
    return np.concatenate(rows)


def write_strip(path: Path, pictures: Tensor, shape: tuple[int, ...], looks: int) -> None:
    """Every few steps of each world: real, reconstructed, foreseen below each other."""
    from PIL import Image

    steps = pictures.shape[1]
    some = np.linspace(0, steps - 1, min(ACROSS, steps)).astype(int)
    lines = [np.concatenate([framed(enlarged(each[t, i], shape), frames_of(t < looks)[k]) for t in some], 1)
             for i in range(pictures.shape[2]) for k, each in enumerate(pictures)]  # fmt: skip
    with writing(path):
        Image.fromarray(np.concatenate(lines)).save(path)
