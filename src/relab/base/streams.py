"""Where does each random number come from? From a named stream: (seed, name, index), and nothing else.

One arm of a comparison that draws one number more must not change what any other stream gives (initial weights,
worlds, actions, minibatches, evaluations, probes), so no two purposes share a generator.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from relab.base.documents import Document

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # splitmix64's increment (Steele et al. 2014)
WORDS = 2**64


def seed_for(seed: int, name: str, *index: int) -> int:
    """A 64-bit seed for one stream: blake2b of "relab:1:seed:name:index..."; the 1 is the scheme's version.

    >>> seed_for(0, "init") == seed_for(0, "init"), seed_for(0, "init") == seed_for(0, "eval")
    (True, False)
    """
    if not name or ":" in name:
        raise ValueError(f"a stream's name must be non-empty and without ':', but got {name!r}")
    text = ":".join(["relab", "1", str(int(seed)), name, *(str(int(i)) for i in index)])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def world_seeds(seed: int, name: str, n: int, start: int = 0) -> np.ndarray:
    """uint64[n]: seeds of worlds start .. start+n-1. Row i depends on (seed, name, start + i) alone; all differ."""
    index = np.arange(start, start + n, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return splitmix64(np.uint64(seed_for(seed, name)) + (index + np.uint64(1)) * GOLDEN)


def splitmix64(z: np.ndarray) -> np.ndarray:
    """splitmix64's output function, a bijection of 64-bit words: distinct inputs give distinct outputs."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def world_of(world_seed: int, seed: int, name: str) -> int:
    """The world whose seed that is: world_seeds turned round, so that no number of worlds need be gone through.

    >>> world_of(int(world_seeds(0, "env", 5)[3]), 0, "env")
    3
    """
    z = world_seed ^ (world_seed >> 31) ^ (world_seed >> 62)
    z = z * pow(0x94D049BB133111EB, -1, WORDS) % WORDS
    z = z ^ (z >> 27) ^ (z >> 54)
    z = z * pow(0xBF58476D1CE4E5B9, -1, WORDS) % WORDS
    z = z ^ (z >> 30) ^ (z >> 60)
    return ((z - seed_for(seed, name)) * pow(int(GOLDEN), -1, WORDS) - 1) % WORDS


def generator(seed: int, name: str, *index: int) -> np.random.Generator:
    """A numpy generator of its own for this stream."""
    return np.random.Generator(np.random.PCG64(seed_for(seed, name, *index)))


def get_state(rng: np.random.Generator) -> Document:
    """The generator's state as plain JSON; 128-bit numbers as hex text, because JSON readers stop at 64 bits."""
    state: Any = _pcg64(rng).state
    inner = {key: hex(value) for key, value in state["state"].items()}
    return {"kind": "PCG64", **inner, "has_uint32": state["has_uint32"], "uinteger": state["uinteger"]}


def set_state(rng: np.random.Generator, state: Document) -> np.random.Generator:
    """Put a generator into a state that `get_state` returned; the next draws are the same bits."""
    if state.get("kind") != "PCG64":
        raise ValueError(f"a stream's state must be of kind 'PCG64', but got {state.get('kind')!r}")
    _pcg64(rng).state = {
        "bit_generator": "PCG64",
        "state": {"state": int(state["state"], 16), "inc": int(state["inc"], 16)},
        "has_uint32": state["has_uint32"],
        "uinteger": state["uinteger"],
    }
    return rng


def from_state(state: Document) -> np.random.Generator:
    """A new generator in that state."""
    return set_state(np.random.Generator(np.random.PCG64(0)), state)


def _pcg64(rng: np.random.Generator) -> np.random.PCG64:
    bits = rng.bit_generator
    if not isinstance(bits, np.random.PCG64):
        raise TypeError(
            f"streams use PCG64 generators, but got {type(bits).__name__}; make them with streams.generator"
        )
    return bits
