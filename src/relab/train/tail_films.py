"""What did the worst worlds of an evaluation look like? Films that a run writes by itself, media/multi-0040-rank1.mp4.

The evaluation is played once more with the same policy and seeds, so that a film shows what was counted. A film that
cannot be written is a warning in the record: training goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.base.enclosed import own, subfolder
from relab.base.jsonl import RecordError
from relab.base.media import Film

Trainer = Any  # of relab.train.loop, which stands above
Judge = Any  # of relab.train.steering
FPS = 30


def film_worst(trainer: Trainer, judge: Judge, iteration: int, episodes: Sequence[Document]) -> None:
    """Films of the `films` worst worlds of the evaluation at this iteration, rank 1 the worst."""
    if not judge.env.spec.renders:
        warn(trainer, f"`multi_eval.films` = {judge.multi.films}, but {judge.env.spec.env} does not render")
        return
    worlds = worst_worlds(episodes)[: judge.multi.films]
    try:
        folder = subfolder(trainer.folder, "media")
        paths = [own(folder, f"multi-{iteration:04d}-rank{k + 1}.mp4") for k in range(len(worlds))]
        trainer.progress.eval_steps += write(judge, trainer.state.agent, iteration, dict(zip(worlds, paths)))
    except (RecordError, ImportError) as error:
        warn(trainer, f"the films of iteration {iteration} were not written: {error}")


def warn(trainer: Trainer, message: str) -> None:
    """Once for each reason in a session."""
    if message not in trainer.warned:
        trainer.warned.add(message)
        trainer.record.append_event("warning", trainer.step, message=message)


def worst_worlds(episodes: Sequence[Document]) -> list[int]:
    """Places of the worlds, fewest survivors first; of equals the one with the earlier first death."""
    return sorted(range(len(episodes)), key=lambda i: (episodes[i]["final"], episodes[i]["first_death"] or np.inf))


def write(judge: Judge, agent: Any, iteration: int, paths: dict[int, Path]) -> int:
    """One film for each world -> world steps that the second playing took."""
    with contextlib.ExitStack() as stack:
        reels = {world: stack.enter_context(Film(path, FPS)) for world, path in paths.items()}

        def keep(worlds: Any, waiting: np.ndarray) -> None:
            for world, reel in reels.items():
                if waiting[world].any():
                    reel.add(worlds.render(world))

        _, sim_steps = judge.play(agent, iteration, keep)
    return int(sim_steps)
