"""Which probes are there? Measurements that ask one question: value, noise, n, from a random stream of their own.

A probe is a function (Round) -> list of ProbeResult; what several of a round need is made once, by the round itself.
"""

from __future__ import annotations

from typing import Any

from relab.base.near import hint
from relab.config import registry
from relab.config.base import require

VALUES = "every algorithm that has a discount, and whose agent says what a state is worth"
# name -> (module:function, algorithms that have it (empty: VALUES), the question it asks)
PROBES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "distribution": ("relab.train.probes.distribution:distribution", ("tracking_ac",),
                     "how far do the two policies, and the states they visit, lie apart?"),
    "fixed_point": ("relab.train.probes.fixed_point:fixed_point", ("tracking_ac",),
                    "where does the critic go, if the policies stay as they are?"),
    "stability": ("relab.train.probes.stability:stability", ("tracking_ac",),
                  "does one step of training shrink every error of the critic, and how fast?"),
    "q_kernel": ("relab.train.probes.q_kernel:q_kernel", ("tracking_ac",),
                 "how do temporal differences at two times go together?"),
    "value_vs_rerun": ("relab.train.probes.value_vs_rerun:value_vs_rerun", (),
                       "does the critic believe what the policy earns?"),
    "action_ranking": ("relab.train.probes.action_ranking:action_ranking", ("finetune", "critic"),
                       "does the critic know which of several actions is better?"),
    "noise_scales": ("relab.train.probes.noise_scales:noise_scales", ("finetune", "critic"),
                     "how much of what is missing is noise in the actions?"),
    "dream_vs_world": ("relab.train.probes.dream_vs_world:dream_vs_world", ("dreamer",),
                       "do dreams earn what the world pays, from the same states?"),
    "open_loop": ("relab.train.probes.open_loop:open_loop", ("dreamer",),
                  "how well does the world model foresee, in episodes that it never learned from?"),
}  # fmt: skip
ROUNDS = {"tracking_ac": "relab.train.probes.tracking_round:TrackingRound"}  # what its probes share, besides a Round


def of(algo: str) -> list[str]:
    """The probes that an algorithm has, as far as its name tells: whether it has values, its agent knows."""
    return [name for name, (_, algos, _) in PROBES.items() if algo in algos or not (algos or algo in ROUNDS)]


def for_agent(names: list[str], settings: Any, agent: Any) -> list[str]:
    """Those of them that an agent can answer: without values it is not asked for them."""
    values = hasattr(agent, "value") and hasattr(settings, "gamma")
    return [name for name in names if PROBES[name][1] or values]


def check(name: str, algo: str) -> str:
    """The name, if there is such a probe for this algorithm."""
    require(name in PROBES, f"there is no probe {name!r}{hint(name, PROBES)}")
    made_for = ", ".join(PROBES[name][1]) or VALUES
    require(name in of(algo), f"the probe {name} is made for {made_for}, but the run is of {algo}")
    return name


def round_class(algo: str) -> Any:
    """The class of a round of this algorithm's probes."""
    return registry.load(ROUNDS.get(algo, "relab.train.probes.round:Round"))
