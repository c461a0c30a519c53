"""Which class does a name mean? Names map to "module:attr", imported when used, so that help and diff stay light.

Plug-ins: `env=package.module:Env` names a class directly; an installed package offers names by the entry points
"relab.envs" (-> an environment class, with its parameters as `Params`) and "relab.algos" (-> a module as
docs/algorithms/your-own.md describes it, with its config class as `Config`).
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from typing import Any

from relab.base import blame
from relab.base.near import nearest
from relab.config.base import ConfigError

# name -> config class in relab/config/NAME.py; the module relab/train/algos/NAME keeps train/contract.py
ALGOS = {
    "critic": "Critic",
    "dqn": "DQN",
    "dreamer": "Dreamer",
    "finetune": "FineTune",
    "ppo": "PPO",
    "sac": "SAC",
    "tracking_ac": "TrackingAC",
}
GROUPS = {"env": "relab.envs", "algo": "relab.algos"}
GYM = "gym:"  # env=gym:Acrobot-v1 is Gymnasium's environment of that id


class UntrustedError(ConfigError):
    """A record names code that its reader has neither installed nor named himself; nothing of it was imported."""


def builtin_envs() -> dict[str, tuple[str, str]]:
    """Name -> (parameters class, environment class), both as "module:attr"."""
    from relab.config.envs import ENVS

    return ENVS


def env_names() -> list[str]:
    return list(builtin_envs())


def algo_names() -> list[str]:
    return sorted(ALGOS)


def resolve_env_name(name: str) -> str:
    """The full name: `cartpole` -> `cartpole-v1` (the newest version); `gym:ID` and `package.module:Env` stay."""
    if name.startswith(GYM) and len(name) > len(GYM):
        return name
    return _resolve("env", name, env_names())


def resolve_algo_name(name: str) -> str:
    return _resolve("algo", name, algo_names())


def is_ours(env: object, algo: object) -> bool:
    """Whether both names are relab's own (or Gymnasium's): only then may a reader of a stranger's record look them up.

    `package.module:Env` would be imported, and so executed, by whoever only wants to read about the run.
    """
    envs = isinstance(env, str) and (env.startswith(GYM) or env in env_names()) and not named_code("env", env)
    return envs and isinstance(algo, str) and algo in ALGOS


def trust_word(env: object, algo: object) -> str:
    """What a command that runs a record's code needs besides: " --trust", or nothing where the names are registered.

    >>> trust_word("cartpole-v1", "climber:Config"), trust_word("gym:Acrobot-v1", "ppo")
    (' --trust', '')
    """
    names = {"env": env, "algo": algo}
    code = [named_code(kind, name) for kind, name in names.items() if isinstance(name, str)]
    return " --trust" if any(code) else ""


def named_code(kind: str, name: str) -> str:
    """The module that a name by itself has imported; empty for names that relab or an installed package registers.

    >>> named_code("env", "maze.envs:Maze"), named_code("env", "gym:maze:Maze-v0"), named_code("env", "gym:Acrobot-v1")
    ('maze.envs', 'maze', '')
    """
    rest = name[len(GYM) :] if kind == "env" and name.startswith(GYM) else name
    return rest.partition(":")[0] if ":" in rest else ""


def env_params_class(name: str) -> type:
    """The dataclass of an environment's parameters."""
    name = resolve_env_name(name)
    pair = _builtin_env(name)
    return load(pair[0]) if pair else _config_class(_plugin("env", name), "Params", name)


def env_class(name: str) -> type:
    """The environment class itself; imports numba or gymnasium."""
    name = resolve_env_name(name)
    pair = _builtin_env(name)
    return load(pair[1]) if pair else _plugin("env", name)


def _builtin_env(name: str) -> tuple[str, str] | None:
    from relab.config import envs

    return envs.GYM if name.startswith(GYM) else builtin_envs().get(name)


def algo_config_class(name: str) -> type:
    """The dataclass of an algorithm's settings."""
    name = resolve_algo_name(name)
    if name in ALGOS:
        return _builtin_config(name)
    plugin = _plugin("algo", name)
    named = isinstance(plugin, type)  # the class itself, or the module that has it
    return _settings(plugin, plugin.__name__, name) if named else _config_class(plugin, "Config", name)


def _builtin_config(name: str) -> Any:
    return load(f"relab.config.{name}:{ALGOS[name]}")


def algos_with(key: str) -> list[str]:
    """The algorithms of relab's own that have a setting of that name."""
    return [name for name in sorted(ALGOS) if key in getattr(_builtin_config(name), "__dataclass_fields__", {})]


def envs_with(key: str) -> list[str]:
    """The environments of relab's own, and gym: for those of Gymnasium, that have a parameter of that name."""
    from relab.config import envs

    kinds = {name.rpartition("-")[0]: kind for name, kind in builtin_envs().items()} | {GYM: envs.GYM}
    return [name for name, (params, _) in kinds.items() if key in load(params).__dataclass_fields__]


def followed_by(key: str) -> str:
    """How a number that nobody sets follows from settings, as its own note says; empty where none is called so."""
    notes = [getattr(getattr(_builtin_config(name), key, None), "__doc__", None) or "" for name in sorted(ALGOS)]
    return next((note.rpartition(": ")[2].rstrip(".") for note in notes if ": " in note), "")


def algo_module(name: str) -> Any:
    """The module of an algorithm (train/contract.py); imports torch."""
    name = resolve_algo_name(name)
    if name in ALGOS:
        return importlib.import_module(f"relab.train.algos.{name}")
    plugin = _plugin("algo", name)
    return importlib.import_module(plugin.__module__) if isinstance(plugin, type) else plugin


def load(target: str) -> Any:
    """Import "module:attr"."""
    module, _, attr = target.partition(":")
    return getattr(importlib.import_module(module), attr)


def _resolve(kind: str, name: str, builtin: list[str]) -> str:
    if re.fullmatch(r"[\w.]+:\w+", name):
        return name
    newest = _newest(name, builtin) or _newest(name, sorted(_entry_points(kind)))
    if newest is None:
        names = [*builtin, *_entry_points(kind)]
        close = nearest(name, names)
        near = f"; the nearest is {close[0]!r}" if close else ""
        form = "; or give gym:ID, or package.module:Env" if kind == "env" else "; or give package.module:Config"
        raise ConfigError(f"`{kind}` must be one of {', '.join(names)}, but got {name!r}"
                          f"{near}{form}")  # fmt: skip
    return newest


def _newest(name: str, names: list[str]) -> str | None:
    if name in names:
        return name
    versions = [(int(m[1]), k) for k in names if (m := re.fullmatch(re.escape(name) + r"-v(\d+)", k))]
    return max(versions)[1] if versions else None


@functools.cache
def _entry_points(kind: str) -> dict[str, Any]:
    """Name -> entry point. Looked up only for names that are not built in: the scan reads every installed package."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUPS[kind])}


@functools.cache
def _plugin(kind: str, name: str) -> Any:
    points = _entry_points(kind) if ":" not in name else {}
    target = points[name].value if name in points else name
    try:
        blame.note(name, target)
        return _import_user(target)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ConfigError(
            f"`{kind}={name}` must be importable as {target}, but {type(error).__name__}: {error}"
        ) from error


def look_here(module: str) -> None:
    """The user named a module that may lie next to him; installed ones still come first."""
    top, here = module.partition(".")[0], os.getcwd()
    if top and here not in sys.path and (os.path.isdir(top) or os.path.isfile(f"{top}.py")):
        sys.path.append(here)


def _import_user(target: str) -> Any:
    module, _, attr = target.partition(":")
    look_here(module)
    imported = importlib.import_module(module)
    return getattr(imported, attr) if attr else imported


def _config_class(owner: Any, attr: str, name: str) -> type:
    cls = getattr(owner, attr, None)
    if cls is None and any(base.__module__.startswith("gymnasium.") for base in getattr(owner, "__mro__", ())):
        module = name.partition(":")[0]
        raise ConfigError(f"`env={name}` is an environment of Gymnasium, which is named by its id: register it in"
                          f" {module} (gymnasium.register), and give env=gym:{module}:ID")  # fmt: skip
    return _settings(cls, attr, name)


def _settings(cls: Any, attr: str, name: str) -> type:
    """A plug-in's class of settings, if it is one."""
    import dataclasses

    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise ConfigError(f"the plug-in {name} must have a dataclass `{attr}` (its settings), but has {cls!r}; put"
                          " @dataclass(frozen=True) before it")  # fmt: skip
    if "name" not in (f.name for f in dataclasses.fields(cls)):
        raise ConfigError(f"`{attr}` of the plug-in {name} must have the field `name: str`, but has none; add"
                          f' `name: str = "{name}"` as its first')  # fmt: skip
    return cls
