"""How large is a swarm's batch, in PufferLib's words? env.num_envs x env.num_drones x vec.num_envs x bptt, checked.

A run of a swarm may be set in those words (`vec.num_envs=56 vec.num_workers=28 env.num_envs=4 env.num_drones=8
train.bptt_horizon=16 train.batch_size=28672`). They become relab's: worlds (`envs`), drones of a world (`env.agents`),
steps between updates (`steps`, `bptt`), parts of a batch (`minibatches`), rows of one pass (`chunk`). The batch is
sized in one of three ways: by `bptt_horizon` (batch_size auto), by `batch_size` (bptt_horizon auto), or by both, which
must agree. Workers have no counterpart, since one process steps all worlds; that they share the copies evenly is held.

>>> words = {"vec.num_envs": "56", "env.num_envs": "4", "env.num_drones": "8", "train.bptt_horizon": "16"}
>>> settings(words)["algo.envs"], settings(words)["env.agents"]
(224, 8)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relab.config.base import require

AUTO = "auto"
COUNTS = ("env.num_envs", "env.num_drones", "vec.num_envs")  # worlds of a copy, drones of a world, copies
SIZES = ("train.bptt_horizon", "train.batch_size", "train.minibatch_size", "train.max_minibatch_size")
NAMES = (*COUNTS, "vec.num_workers", *SIZES)
TURN = "vec.num_envs"  # the word that says that all of them are meant


def spoken(values: Mapping[str, Any]) -> bool:
    """Is a batch sized in PufferLib's words here?"""
    return TURN in values or "num_envs" in _section(values, "vec")


def translated(values: Mapping[str, Any]) -> dict[str, Any]:
    """A layer's values with those words taken out and relab's put in; whatever else it sets stays."""
    words: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in values.items():
        section = dict(value) if key in ("env", "vec", "train") and isinstance(value, Mapping) else {}
        words |= {f"{key}.{name}": section.pop(name) for name in list(section) if f"{key}.{name}" in NAMES}
        if key in NAMES:
            words[key] = value
        elif section or not isinstance(value, Mapping) or key not in ("env", "vec", "train"):
            rest[key] = section or value
    return rest | settings(words)


def settings(words: Mapping[str, Any]) -> dict[str, Any]:
    """relab's settings for these words; ConfigError where they do not fit together."""
    counts = [_whole(words, name, 1) for name in COUNTS]
    agents, workers = counts[0] * counts[1] * counts[2], _whole(words, "vec.num_workers", 1)
    require(counts[2] % workers == 0, "`vec.num_envs` must divide by `vec.num_workers`, but got"
            f" {counts[2]} and {workers}")  # fmt: skip
    bptt, batch = _sized(words, agents, counts)
    minibatch = _whole(words, "train.minibatch_size", batch)
    most = _whole(words, "train.max_minibatch_size", minibatch)
    require(
        batch % minibatch == 0,
        f"`train.batch_size` must divide by `train.minibatch_size`, but got {batch} and {minibatch}",
    )
    require(minibatch % most == 0 or most > minibatch, "`train.minibatch_size` must divide by"
            f" `train.max_minibatch_size`, the rows of one pass, but got {minibatch} and {most}")  # fmt: skip
    made = {"algo.envs": counts[0] * counts[2], "env.agents": counts[1], "algo.steps": bptt, "algo.bptt": bptt,
            "algo.minibatches": batch // minibatch}  # fmt: skip
    return made | ({"algo.chunk": min(most, minibatch)} if "train.max_minibatch_size" in words else {})


def _sized(words: Mapping[str, Any], agents: int, counts: list[int]) -> tuple[int, int]:
    """(steps, batch): one follows from the other, or both are held against each other."""
    bptt, batch = (_whole(words, name, 0) for name in SIZES[:2])
    product = f"{counts[0]} x {counts[1]} x {counts[2]}"
    require(
        bool(bptt or batch), "one of `train.bptt_horizon` and `train.batch_size` must be a number, but both are auto"
    )
    if not bptt:
        require(batch % agents == 0, f"`train.batch_size` must divide by the agents, but got {batch} and {product} ="
                f" {agents}; try {batch // agents * agents or agents}")  # fmt: skip
        bptt = batch // agents
    made = agents * bptt
    require(batch in (0, made), "`train.batch_size` must be env.num_envs x env.num_drones x vec.num_envs x"
            f" train.bptt_horizon, but got {batch} and {product} x {bptt} = {made}")  # fmt: skip
    return bptt, made


def _whole(words: Mapping[str, Any], name: str, otherwise: int) -> int:
    """A count of at least 1; `otherwise` where it is auto or absent."""
    text = str(words.get(name, AUTO)).replace("_", "")
    if text == AUTO:
        return otherwise
    require(
        text.isdigit() and int(text) >= 1, f"`{name}` must be a whole number of at least 1, or auto, but got {text}"
    )
    return int(text)


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = values.get(name)
    return section if isinstance(section, Mapping) else {}
