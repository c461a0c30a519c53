"""Which probes are there? Measurements that ask one question: value, noise, n, from a random stream of their own.

A probe is a function (Round) -> list of ProbeResult; what several of a round need is made once, by the round itself.
"""

from __future__ import annotations

from relab.base.near import hint
from relab.config.base import require

# name -> (module:function, algorithms that have it, the question it asks)
PROBES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "distribution": ("relab.train.probes.distribution:distribution", ("tracking_ac",),
                     "how far do the two policies, and the states they visit, lie apart?"),
    "fixed_point": ("relab.train.probes.fixed_point:fixed_point", ("tracking_ac",),
                    "where does the critic go, if the policies stay as they are?"),
    "stability": ("relab.train.probes.stability:stability", ("tracking_ac",),
                  "does one step of training shrink every error of the critic, and how fast?"),
    "q_kernel": ("relab.train.probes.q_kernel:q_kernel", ("tracking_ac",),
                 "how do temporal differences at two times go together?"),
}  # fmt: skip


def of(algo: str) -> list[str]:
    """The probes that an algorithm has."""
    return [name for name, (_, algos, _) in PROBES.items() if algo in algos]


def check(name: str, algo: str) -> str:
    """The name, if there is such a probe for this algorithm."""
    require(name in PROBES, f"there is no probe {name!r}{hint(name, PROBES)}")
    require(name in of(algo), f"the probe {name} is made for {', '.join(PROBES[name][1])}, but the run is of {algo}")
    return name
