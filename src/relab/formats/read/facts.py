"""What does a log not say of the environment it names? Facts of common environments from the table of levels."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from relab.record import levels
from relab.record.history import History

DEPTH = 3  # folders of a path that may name the environment


@cache
def _ids() -> re.Pattern[str]:
    """The environments of the table, each as a word of its own."""
    names = sorted(levels.measured(), key=len, reverse=True)
    return re.compile(rf"(?<![A-Za-z0-9])({'|'.join(map(re.escape, names))})(?![A-Za-z0-9])")


def env_in_path(folder: Path) -> str:
    """The environment that a folder or one of the two above it is named after; "" where none is, or more than one.

    >>> env_in_path(Path("logs/ppo_CartPole-v1_3/tb")), env_in_path(Path("logs/cartpole"))
    ('CartPole-v1', '')
    """
    names = {env for part in folder.parts[-DEPTH:] for env in _ids().findall(part)}
    return names.pop() if len(names) == 1 else ""


def add_facts(history: History) -> History:
    """Fill meta.spec from what is known of the environment; what the log says itself stays."""
    spec = history.meta.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    complete = history.trained_by_relab  # its record says all of it
    if not complete and not spec.get("env") and (env := env_in_path(history.folder)):
        spec = spec | {"env": env, "env_from": "the path"}
    facts = {} if complete else levels.facts(str(spec.get("env")))
    if facts:
        said = {key: value for key, value in spec.items() if value is not None}
        history.meta["spec"] = facts | said | {"facts": "relab's table of levels"}
    return history
