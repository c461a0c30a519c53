"""Which algorithm does a log look like that names none? A metric that only one family logs, and what goes with it.

One name is not enough where others use it too: `eps` is Adam's as well as the share of random actions, `alpha` a rate.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from relab.config import registry
from relab.record.history import Column

# Names that tools give to variants of one algorithm; the rules are about the family.
FAMILIES = {
    "ppo": "ppo ppo2 maskableppo recurrentppo appo ippo mappo puffer pufferlib",
    "a2c": "a2c a3c",
    "dqn": "dqn qrdqn c51 ddqn rainbow doubledqn",
    "sac": "sac crossq tqc droq redq",
    "td3": "td3 ddpg",
    "awr": "awr awac crr marwil",
    "iql": "iql implicitqlearning",
    "dreamer": "dreamer dreamerv1 dreamerv2 dreamerv3 p2edv3 sleepydreamer",
}
FAMILY = {name: family for family, names in FAMILIES.items() for name in names.split()}
SCRIPTS = ("ppo", "dqn", "sac")  # what a script of another name may hold; what tells the others may be of others too
BUFFERED = ("sac", "td3", "dqn")  # fill a replay buffer before they learn
LOSSES = ("value/critic_loss", "value/loss", "policy/actor_loss", "policy/loss")  # of an update
# A metric that only one family logs -> the family, and metrics of which one must be there as well (none: it is enough)
TELLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "policy/clip_share": ("ppo", ()),
    "optim/temperature": ("sac", ("policy/actor_loss", "value/critic_loss", "value/q_mean", "optim/temperature_loss")),
    "policy/exploration": ("dqn", ("value/critic_loss", "value/q_mean", "value/td_error", "data/updates")),
    "model/kl": ("dreamer", ()),
    "policy/weight_mean": ("awr", ()),
    "policy/weight_ess": ("awr", ()),
}
ACTOR = ("policy/actor_loss", "policy/loss", "policy/kl", "policy/entropy")  # a family without a policy logs none


class Algorithm(NamedTuple):
    """A family, and whether what is logged tells it: there is no name, or that of a script."""

    family: str | None
    guessed: bool = False


def algorithm(name: Any, metrics: Collection[str]) -> Algorithm:
    """The family of a name, or of a part of it (ppo_continuous_action); else what is logged; else the name itself.

    >>> algorithm("mini_lr01", ["policy/clip_share"]), algorithm("trpo", ["policy/kl"])
    (Algorithm(family='ppo', guessed=True), Algorithm(family='trpo', guessed=False))
    """
    if not isinstance(name, str) or not name:
        return Algorithm(family(metrics), True)
    parts = re.split(r"[^a-z0-9]+", name.lower())
    known = next((FAMILY[part] for part in ("".join(parts), *parts) if part in FAMILY), None)
    if known or name in registry.ALGOS:
        return Algorithm(known or "".join(parts))
    logged = family(metrics)
    return Algorithm(logged, True) if logged in SCRIPTS else Algorithm("".join(parts))


def family(metrics: Collection[str]) -> str | None:
    """The family that these metrics tell; None where they do not.

    >>> family(["policy/exploration", "value/q_mean"]), family(["policy/exploration", "policy/actor_loss"])
    ('dqn', None)
    """
    return next((name for metric, (name, besides) in TELLS.items() if metric in metrics and
                 (not besides or any(other in metrics for other in besides)) and
                 not (name == "dqn" and acts(metrics))), None)  # fmt: skip


def acts(metrics: Collection[str]) -> bool:
    """Whether there is a policy of its own, besides what the values tell."""
    return any(name in metrics for name in ACTOR)


def first_update(columns: Mapping[str, Column]) -> int:
    """The first step at which a log shows an update, by its counter or its losses; 0 where it shows none."""
    count = columns.get("data/updates")
    if count is not None and bool((count.values > 0).any()):
        return int(count.steps[count.values > 0][0])
    losses = [columns[name] for name in LOSSES if name in columns]
    return min((int(c.steps[np.isfinite(c.values)][0]) for c in losses if np.isfinite(c.values).any()), default=0)
