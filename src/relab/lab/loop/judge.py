"""What is a finished run worth on the hidden seeds? Its last checkpoint plays their episodes, in a process of its own.

    python -m relab.lab.loop.judge TASKS.json

TASKS.json names the seed, the number of episodes and, for each run, its folder, its checkpoint and the file to write.
The episodes are the same for every run (common random numbers: what they have of luck, all have). Nothing is written
into a run's folder, where a proposal could read it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from relab.base.documents import Document
from relab.base.errors import UserError
from relab.base.jsonl import encode, read_json, write_atomic
from relab.base.streams import world_seeds


def judge(folder: Path, name: str, seed: int, episodes: int, trust: bool) -> Document:
    """Mean, interval and success of a checkpoint, deterministic and sampled."""
    from relab.train import fresh, rollout

    _, env, agent, step = fresh.load_agent(folder, name, trust=trust)
    batch = rollout.evaluate(env, agent, world_seeds(seed, "hidden", episodes))
    modes = {mode: fresh.describe(batch, mode) for mode in batch.episodes}
    return {"schema": 1, "run": folder.name, "checkpoint": name, "step": step, "episodes": episodes, "modes": modes}


def main(words: list[str]) -> int:
    path = Path(words[0])
    tasks = read_json(path.parent, path.name)
    for task in tasks["runs"]:
        try:
            body = judge(Path(task["folder"]), task["checkpoint"], tasks["seed"], tasks["episodes"], tasks["trust"])
        except (UserError, OSError, ArithmeticError, ValueError) as error:
            body = {"schema": 1, "run": Path(task["folder"]).name, "problem": str(error)[:500]}
        write_atomic(Path(task["out"]), encode(body, indent=True))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
