"""How is a run made by a script that logs as CleanRL's? The script may be edited before it runs.

A fault of implementation is a change of the script's text, as it would be in the wild.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.peers import plan
from benchmarks.peers.tasks import ALL
from benchmarks.peers.worlds import Rows, Worlds

SCRIPTS = Path(__file__).parent / "cleanrl_like"
Policy = Callable[[Rows], Rows]
Make = Callable[[int, int], Worlds]
Edits = tuple[tuple[str, str], ...]


def script_of(algo: str, task: str) -> str:
    if algo == "ppo" and not ALL[task].choices:
        return "ppo_continuous_action"
    return algo if algo in ("ppo", "dqn") else f"{algo}_continuous_action"


def edited(script: str, edits: Edits = ()) -> str:
    """The script's text after each edit, which must fit in exactly one place."""
    text = (SCRIPTS / f"{script}.py").read_text()
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{script}.py: an edit must fit once, but fits {text.count(old)} times: {old!r}")
        text = text.replace(old, new)
    return text


def by_script(algo: str, task: str, seed: int, settings: plan.Settings, folder: Path, logged: int = 1,
              edits: Edits = (), make: Callable[[str], Make] = ALL.__getitem__) -> Policy:  # fmt: skip
    script = script_of(algo, task)
    known = {"env_id": task, "seed": seed, "total_timesteps": plan.steps(algo, task)}
    words = known | {"num_envs": plan.worlds(algo, task)} | settings
    argv = [f"--{key.replace('_', '-')}={value}" for key, value in words.items()]
    space: dict[str, Any] = {"__name__": script}
    exec(compile(edited(script, edits), f"{script}.py", "exec"), space)
    writers, create = [], space["SummaryWriter"]
    space["SummaryWriter"] = lambda path: writers.append(create(path)) or writers[-1]
    try:
        policy: Policy = space["main"]([*argv, f"--runs={folder}", f"--settings-logged={logged}"], make)
    finally:
        for writer in writers:  # a script that dies leaves what it wrote
            writer.close()
    return policy
