"""Is what an algorithm hands over what the contract asks for? Told at once, by name, with what is wrong and the remedy.

The loop and evaluations ask here when they first get something from a plug-in. A slip that got past this would end in
an error deep inside of relab, as if it were relab's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from relab.base.jsonl import RecordError, encode
from relab.record import glossary
from relab.train import checkpoint
from relab.train.acting import ContractError, described, refuse
from relab.train.contract import Counts, unlike

NUMBERS = (int, float, np.number, np.bool_)
ACTS = {"act": ("obs_BD", "memory_BM", "rng_B", "n_mode"), "to_env": ("action",)}
PAGE = "docs/algorithms/your-own.md shows a whole algorithm"


def check_policy(agent: Any, name: str) -> Any:
    """What acts: memory_dim, act and to_env -> the same."""
    lacking = [verb for verb in ("act", "to_env") if not callable(getattr(agent, verb, None))]
    lacking += [] if isinstance(getattr(agent, "memory_dim", None), (int, np.integer)) else ["memory_dim"]
    if lacking:
        refuse(name, "an agent must have `memory_dim` (a number, 0 without a memory), `act` and `to_env`",
               f"made {described(agent)} without {', '.join(lacking)}", PAGE)  # fmt: skip
    for verb, words in ACTS.items():
        if why := unlike(getattr(agent, verb), words):
            refuse(name, f"`{verb}` of an agent must take ({', '.join(words)})", f"has one that does not: {why}", PAGE)
    return agent


def check_state(state: Any, name: str, clock: str) -> Any:
    """What `init` made, before anything is trained or loaded -> the same."""
    lacking = [part for part in ("agent", "counts", "to_tree", "load") if not hasattr(state, part)]
    if lacking:
        refuse(name, "`init` must return a State with `agent`, `counts`, `to_tree` and `load`",
               f"returned {described(state)} without {', '.join(lacking)}", PAGE)  # fmt: skip
    uncounted = [each.name for each in fields(Counts) if not hasattr(state.counts, each.name)]
    if uncounted:
        refuse(name, "`counts` of its State must be a relab.train.contract.Counts",
               f"has {described(state.counts)} without {', '.join(uncounted)}", "use Counts()")  # fmt: skip
    check_policy(state.agent, name)
    check_tree(state.to_tree(), name, clock)
    return state


def check_tree(tree: Any, name: str, clock: str) -> None:
    """What a checkpoint is made of: weights by name, counters, and nothing that no file could hold."""
    check_writable(tree if isinstance(tree, dict) else {}, name)
    params = tree.get("params") if isinstance(tree, dict) else None
    if not isinstance(params, dict) or not checkpoint.split({"params": params})[0]:
        keys = f"has {', '.join(map(str, tree)) or 'nothing'}" if isinstance(tree, dict) else f"is {described(tree)}"
        empty = "empty" if params == {} else described(params)
        got = f"and `params` is {empty}" if params is not None else "and no `params`"
        refuse(name, "`to_tree` must hold the weights by name below `params`, e.g. {'params': {'w': array}}",
               f"gave a tree that {keys} {got}", "put there whatever acting needs, as arrays")  # fmt: skip
    counts = tree.get("counts")
    if not isinstance(counts, Mapping) or clock not in counts:
        refuse(name, f"`to_tree` must hold the counters below `counts`, with its clock `{clock}`",
               f"gave {described(counts)}", "add 'counts': vars(self.counts)")  # fmt: skip


def check_writable(tree: dict[str, Any], name: str) -> None:
    """Arrays of numbers at most two levels deep, and plain values, below names."""
    try:
        arrays, plain = checkpoint.split(tree)
        encode(plain)
        odd = [key for key, array in arrays.items() if array.dtype.kind not in "biuf"]
        if odd:
            raise TypeError(f"{odd[0]} is an array of {arrays[odd[0]].dtype}, not of numbers")
    except (TypeError, ValueError, RuntimeError, RecordError) as error:
        refuse(name, "`to_tree` must hold arrays of numbers, one or two levels deep, and plain values, below names",
               f"gave a tree that cannot be written ({error})", "the page on an algorithm of your own shows how an"
               " optimiser of torch is put there")  # fmt: skip


def check_row(row: Any, name: str) -> None:
    """What `iterate` returned: numbers, each with a name that can be looked up."""
    if not isinstance(row, Mapping):
        refuse(name, "`iterate` must return its row of metrics, e.g. {'policy/loss': 0.5}", f"returned {row!r:.80}",
               "return a dict; an empty one will do")  # fmt: skip
    for key, value in row.items():
        if not isinstance(key, str):
            refuse(name, "a metric must have a name of the glossary", f"gave one called {key!r:.80}", "use text")
        if not isinstance(value, NUMBERS):
            raise ContractError(f"a metric of `iterate` must be one number, but {name} gave `{key}`"
                                f" as {value!r:.80}; use float(...)")  # fmt: skip
        if not glossary.known(key):
            raise ContractError(f"{name} logs what nobody could look up: {glossary.unknown(key)}")
