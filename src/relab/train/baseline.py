"""What does a policy earn that knows nothing? Uniform random actions, measured once per environment and kept.

Kept in the user's cache folder under a hash of the environment's parameters; delete the file to measure again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson

from relab.base import limits
from relab.base.jsonl import write_atomic
from relab.base.places import cache_folder
from relab.base.streams import world_seeds
from relab.config.views import config_hash
from relab.train import rollout
from relab.train.envs.base import Env
from relab.train.envs.check_static import EnvError

EPISODES = 100
CAP = 5_000  # steps in an env without a time limit; a policy that never ends has no return (null)
LONG = 20_000  # a time limit beyond is not waited for
SCHEMA = 1


def random_baseline(env: Env, params: dict[str, Any]) -> dict[str, Any]:
    """{"return_mean", "return_std", "length_mean", "n"} of the random policy's first episodes.

    `cut` says how many of them were not over after `cap` steps; their returns, and so the mean, are not known.
    """
    path = cache_folder() / "baselines.json"
    kept, key = read(path), f"{env.spec.env}:{config_hash({'env': params, 'schema': SCHEMA, 'episodes': EPISODES})}"
    if key not in kept:
        try:
            baseline = measure(env)
        except EnvError:  # the run comes to it as well, and tells it in its record; mended, it is measured
            return {"return_mean": None, "return_std": None, "length_mean": None, "n": 0}
        kept = read(path) | {key: baseline}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, orjson.dumps(kept, option=orjson.OPT_INDENT_2), sync=False)
        except OSError:  # a home that cannot be written costs a second per run, not the run
            pass
    return kept[key]


def measure(env: Env) -> dict[str, Any]:
    policy = rollout.RandomPolicy(env.spec.action)
    worlds = -(-EPISODES // env.spec.agents)
    limit = env.spec.horizon or 0
    cap = limit if 0 < limit <= LONG else CAP
    batch = rollout.evaluate(env, policy, world_seeds(0, "random-policy", worlds), modes=("sampled",), cap=cap)
    ret, length = (np.array([e[key] for e in batch.played("sampled")]) for key in ("return", "length"))
    summary = {"return_mean": ret.mean(), "return_std": ret.std(), "length_mean": length.mean()}
    numbers = {name: float(x) if np.isfinite(x) else None for name, x in summary.items()} | {"n": len(ret)}
    cut = sum(e["end"] == "cap" for e in batch.played("sampled"))
    return numbers | ({"cut": cut, "cap": cap} if cut else {})


def read(path: Path) -> dict[str, Any]:
    try:
        document = orjson.loads(limits.read_bytes(path, limits.JSON))
    except (OSError, ValueError):  # missing, or cut off while another process wrote: measured again
        return {}
    return document if isinstance(document, dict) else {}
