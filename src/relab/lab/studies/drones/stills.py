"""What does a trained swarm look like? Pictures of a race and of pick-and-place, one world each, as one image.

    python -m relab.lab.studies.drones.stills docs/images/drones.png HOVER_RACE_RUN PICK_PLACE_RUN

plays the newest weights of both runs (deterministic). Whole episodes: `relab video RUN --episode worst` or median.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

TICKS = {"race": (1, 80, 200), "pick_place": (1, 120, 360)}


def main(target: Path, race: Path, pick: Path) -> None:
    from matplotlib import image

    image.imsave(target, np.concatenate([row(race, "race"), row(pick, "pick_place")])[::2, ::2])


def row(run: Path, task: str) -> np.ndarray:
    """Pictures of the first world at these ticks, side by side."""
    from relab.base.streams import world_seeds
    from relab.train import fresh, rollout

    config, env, agent, _ = fresh.load_agent(run, "latest", [f"env.task={task}"])
    shots: list[np.ndarray] = []

    def look(worlds: Any, waiting: np.ndarray) -> None:
        if worlds.book.tick[0] in TICKS[task] and len(shots) < len(TICKS[task]):
            shots.append(worlds.render(0))

    rollout.evaluate(env, agent, world_seeds(config.seed, "stills", 1), ("det",), look)
    return np.concatenate(shots, axis=1)


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:4]))
