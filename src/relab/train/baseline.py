"""What does a policy earn that knows nothing? Uniform random actions, measured once per environment and kept.

Kept in the user's cache folder under a hash of the environment's parameters; delete the file to measure again. Code of
somebody's own changes under the same name: there the hash is of its sources too, and the first episodes are played
again to see that they still end the same.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import sysconfig
from pathlib import Path

import numpy as np
import orjson

from relab.base import limits
from relab.base.documents import Document, Settings
from relab.base.jsonl import write_atomic
from relab.base.places import cache_folder
from relab.base.streams import world_seeds
from relab.config.views import config_hash
from relab.train import rollout
from relab.train.envs.base import Env
from relab.train.envs.check_static import EnvError

EPISODES = 100
AGAIN = 3  # worlds that are played again where the code may have changed
CAP = 5_000  # steps in an env without a time limit; a policy that never ends has no return (null)
LONG = 20_000  # a time limit beyond is not waited for
SCHEMA = 3
VERSIONED = ("relab", "gymnasium")  # packages whose ids are raised whenever results could change
INSTALLED = ("site-packages", "dist-packages")


def random_baseline(env: Env, params: Settings) -> Document:
    """{"return_mean", "return_std", "length_mean", "n"} of the random policy's first episodes.

    And `success`, the share that succeeded, where the environment is judged by it.

    `cut` says how many of them were not over after `cap` steps; their returns, and so the mean, are not known.
    """
    path, code = cache_folder() / "baselines.json", sources(env)
    key = f"{env.spec.env}:{config_hash({'env': params, 'schema': SCHEMA, 'episodes': EPISODES, 'code': code})}"
    kept = read(path).get(key)
    try:
        if isinstance(kept, dict) and (not code or kept["first"] == play(env, AGAIN)):
            return kept["baseline"]
        measured = measure(env)
    except EnvError:  # the run comes to it as well, and tells it in its record; mended, it is measured
        return {"return_mean": None, "return_std": None, "length_mean": None, "n": 0}
    keep(path, key, measured)
    return measured["baseline"]


def measure(env: Env) -> Document:
    """The baseline, and what it needs to be recognised by."""
    episodes = play(env, -(-EPISODES // env.spec.agents))
    succeeded = env.spec.success_ends if env.spec.outcome == "success" else ()
    return {"baseline": summary(episodes, cap_of(env), succeeded), "first": episodes[: AGAIN * env.spec.agents]}


def keep(path: Path, key: str, entry: Document) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, orjson.dumps(read(path) | {key: entry}, option=orjson.OPT_INDENT_2), sync=False)
    except OSError:  # a home that cannot be written costs a second per run, not the run
        pass


def play(env: Env, worlds: int) -> list[Document]:
    """The random policy's first episodes in the first `worlds` worlds, as plain values."""
    policy = rollout.RandomPolicy(env.spec.action)
    seeds = world_seeds(0, "random-policy", worlds)
    batch = rollout.evaluate(env, policy, seeds, modes=("sampled",), cap=cap_of(env))
    short = [{key: episode[key] for key in ("return", "length", "end")} for episode in batch.episodes["sampled"]]
    return list(orjson.loads(orjson.dumps(short, option=orjson.OPT_SERIALIZE_NUMPY)))


def cap_of(env: Env) -> int:
    limit = env.spec.horizon or 0
    return limit if 0 < limit <= LONG else CAP


def summary(episodes: list[Document], cap: int, succeeded: tuple[str, ...] = ()) -> Document:
    played = [e for e in episodes if e["end"] != "unused"]
    ret, length = (np.array([e[key] for e in played], float) for key in ("return", "length"))
    numbers = {"return_mean": ret.mean(), "return_std": ret.std(), "length_mean": length.mean()}
    facts = {name: float(x) if np.isfinite(x) else None for name, x in numbers.items()} | {"n": len(ret)}
    if succeeded:
        facts["success"] = sum(e["end"] in succeeded for e in played) / len(played)
    cut = sum(e["end"] == "cap" for e in played)
    return facts | ({"cut": cut, "cap": cap} if cut else {})


def read(path: Path) -> Document:
    try:
        document = orjson.loads(limits.read_bytes(path, limits.JSON))
    except (OSError, ValueError):  # missing, or cut off while another process wrote: measured again
        return {}
    return document if isinstance(document, dict) else {}


# ---- Whose code


def sources(env: Env) -> str:
    """A hash of the code of an environment of somebody's own; empty where its id says which version it is."""
    classes = [base for cls in getattr(env, "made_of", (type(env),)) for base in cls.__mro__ if base is not object]
    modules = {cls.__module__ for cls in classes}
    if all(name.partition(".")[0] in (*VERSIONED, "typing", "abc") for name in modules):
        return ""
    code = hashlib.sha256()
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and (name in modules or is_own(Path(file))):
            code.update(name.encode() + content(Path(file)))
    return code.hexdigest()


def is_own(file: Path) -> bool:
    """Whether a module is one that its user may be writing on: neither installed, nor Python's, nor relab's."""
    return not set(INSTALLED) & set(file.parts) and not str(file).startswith(from_elsewhere())


@functools.cache
def from_elsewhere() -> tuple[str, str]:
    """Where Python's own modules lie, and relab's; looked up once, for there are thousands of modules."""
    return f"{sysconfig.get_path('stdlib')}/", f"{Path(__file__).parents[1]}/"


def content(file: Path) -> bytes:
    try:
        return limits.read_bytes(file, limits.TEXT)
    except (OSError, limits.TooLargeError):
        return b""
