"""Which environment, algorithm and seed do the names of a run's folders tell? Asked where its files do not say.

CleanRL calls a folder `CartPole-v1__ppo__1__1690000000`, Stable-Baselines3 and RL-Zoo write `logs/ppo/CartPole-v1_1`.
Only whole words count: an id that ends in `-vN`, and the usual names of algorithms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from relab.base.documents import Settings
from relab.formats.read import cleanrl
from relab.formats.read.source import Source
from relab.record.history import History

ORIGIN = "from the folder's name"
KINDS = {  # actions that an algorithm is for, where a name alone says that it is this one
    **dict.fromkeys(("awac", "crossq", "ddpg", "redq", "sac", "td3", "tqc"), "continuous"),
    **dict.fromkeys(("c51", "ddqn", "dqn", "qrdqn", "rainbow"), "discrete"),
}
DEEP = 4  # names that are looked at, the nearest first
ENV = re.compile(r"(?<![A-Za-z0-9])(?P<env>[A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*?-v\d+)")
ALGOS = {
    "a2c", "a3c", "acer", "appo", "ars", "awac", "awr", "c51", "cql", "crossq", "ddpg", "ddqn", "dqn", "dreamer",
    "dreamerv2", "dreamerv3", "impala", "iql", "maddpg", "mappo", "muzero", "ppg", "ppo", "qmix", "qrdqn",
    "rainbow", "redq", "reinforce", "sac", "td3", "tdmpc", "tqc", "trpo", "vpg",
}  # fmt: skip


def add(history: History, source: Source) -> None:
    """Fill what the run does not say; each value says where it is from."""
    if source.format == "relab" or "converted" in history.meta:  # what a record does not say, its name need not
        return
    said = _said(history)
    names = names_in(source.path.resolve().parts)
    for key in ("env.name", "algo.name"):
        value = names.get(key)
        if value and not said.get(key):
            group = history.config.setdefault(key.split(".")[0], {})
            if isinstance(group, dict):
                group["name"] = value
                history.provenance[key] = ORIGIN
    if history.provenance.get("env.name") == ORIGIN:
        spec = history.meta.get("spec")
        history.meta["spec"] = {**(spec if isinstance(spec, dict) else {}), "env": names["env.name"]}


def doubt(history: History) -> None:
    """An algorithm that a name alone tells is not taken where it is not for the actions of the task."""
    spec = history.meta.get("spec")
    action = spec.get("action") if isinstance(spec, dict) else None
    kind = action.get("kind") if isinstance(action, dict) else None
    group = history.config.get("algo")
    if not kind or not says(history, "algo.name") or not isinstance(group, dict):
        return
    if KINDS.get(str(group.get("name")), kind) != kind:
        del group["name"], history.provenance["algo.name"]


def says(history: History, key: str) -> bool:
    """Whether nothing but the name of a folder tells a setting."""
    return history.provenance.get(key) == ORIGIN


def _said(history: History) -> Settings:
    names: Settings = {}
    for key in ("env", "algo"):
        group = history.config.get(key)
        names[f"{key}.name"] = group.get("name") if isinstance(group, dict) else group
    spec = history.meta.get("spec")
    if isinstance(spec, dict) and spec.get("env"):
        names["env.name"] = spec["env"]
    return names


def names_in(parts: Sequence[str]) -> dict[str, str]:
    """What the last few parts of a path tell, the nearest first.

    >>> names_in(("logs", "ppo", "CartPole-v1_1"))
    {'env.name': 'CartPole-v1', 'algo.name': 'ppo'}
    >>> names_in(("runs", "Hopper-v4__sac__1__1690000000", "tb")), names_in(("a2c-course", "HalfCheetah"))
    ({'env.name': 'Hopper-v4', 'algo.name': 'sac'}, {'algo.name': 'a2c'})
    """
    names: dict[str, str] = {}
    for part in reversed(parts[-DEEP:]):
        for key, value in _of(part).items():
            names.setdefault(key, value)
    return names


def _of(part: str) -> dict[str, str]:
    cleanrls, pairs = cleanrl.name_parts(part), (("env_id", "env.name"), ("algo", "algo.name"))
    names = {ours: str(cleanrls[key]) for key, ours in pairs if key in cleanrls}
    if match := ENV.search(part):
        names.setdefault("env.name", match["env"])
    words = re.split(r"[^a-z0-9]+", ENV.sub(" ", part).lower())
    if algo := next((word for word in words if word in ALGOS), ""):
        names.setdefault("algo.name", algo)
    return names
