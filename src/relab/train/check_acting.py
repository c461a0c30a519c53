"""Does an agent act as evaluation, probes and films need it to? Each row by itself, from its own stream, twice alike.

Part of `check_algo`: an agent that is made and loaded is asked a few times about the same made-up observations.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from relab.record.spec import Spec
from relab.train.acting import Acted
from relab.train.kernels.rng import mix

ROWS = 64  # observations on which agents are held against each other
CLOSE = 1e-3  # products of other sizes are rounded otherwise
FEW = 0.05  # of the rows: where two choices are worth the same, rounding may turn one into the other


class AlgoError(Exception):
    """An algorithm that does not keep its contract."""


def fail(must: str, instead: str, cause: str) -> NoReturn:
    raise AlgoError(f"{must}, but {instead}; probable cause: {cause}")


def observations(spec: Spec) -> np.ndarray:
    """Rows that rise, so that a part of them has another mean than all."""
    rises = np.linspace(-3.0, 3.0, ROWS)[:, None]
    return (np.random.default_rng(0).normal(size=(ROWS, spec.obs_dim)) + rises).astype(np.float32)


def streams(first: int = 0) -> np.ndarray:
    return mix(np.arange(first, first + ROWS, dtype=np.uint64))


def acted(agent: Any, obs: np.ndarray, rng: np.ndarray, n_mode: int = 0) -> Acted:
    """Copies of what `act` gives, from arrays of its own: agents may use theirs again."""
    memory = np.zeros((len(obs), agent.memory_dim), np.float32)
    gave = agent.act(obs.copy(), memory, rng, n_mode)
    return Acted(np.array(gave.action), np.array(gave.logp), np.array(gave.memory))


def alike(a: Acted, b: Acted, exact: bool = False) -> bool:
    """Whether actions and memories are the same, up to rounding."""
    pairs = [(a.action, b.action), (a.memory, b.memory)]
    if exact:
        return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in pairs)
    return all(x.shape == y.shape and off(x, y) <= FEW for x, y in pairs)


def off(x: np.ndarray, y: np.ndarray) -> float:
    """The share of rows that differ by more than rounding."""
    near = np.isclose(x.astype(np.float64), y.astype(np.float64), rtol=CLOSE, atol=CLOSE, equal_nan=True)
    return float(1 - near.all(tuple(range(1, x.ndim))).mean()) if x.size else 0.0


def rows_of(gave: Acted, part: slice) -> Acted:
    return Acted(gave.action[part], gave.logp[part], gave.memory[part])


def check_acting(agent: Any, spec: Spec, name: str) -> None:
    """Every check of one agent; what it was asked before must not matter."""
    obs = observations(spec)
    mode, drawn = acted(agent, obs, streams(), ROWS), acted(agent, obs, streams())
    check_twice(agent, obs, mode, drawn, name)
    check_rows(agent, obs, mode, drawn, name)
    check_mode(agent, obs, mode, drawn, name)
    check_streams(agent, obs, drawn, name)
    check_box(agent, spec, (mode, drawn), name)
    check_value(agent, obs, name)


def check_twice(agent: Any, obs: np.ndarray, mode: Acted, drawn: Acted, name: str) -> None:
    again = acted(agent, obs, streams()), acted(agent, obs, streams(), ROWS)  # in another order than before
    if not (alike(again[0], drawn, exact=True) and alike(again[1], mode, exact=True)):
        fail("`act` must give the same for the same observations, memory and streams", f"that of {name} does not",
             "it keeps something between calls (counts, a hidden state that belongs into the memory, a stream of its"
             " own)")  # fmt: skip
    kept = obs.copy()
    agent.act(kept, np.zeros((ROWS, agent.memory_dim), np.float32), streams())
    if not np.array_equal(kept, obs):
        fail("`act` must leave the observations as they are", f"that of {name} changes them",
             "an operation in place, such as `obs -= mean`")  # fmt: skip


def check_rows(agent: Any, obs: np.ndarray, mode: Acted, drawn: Acted, name: str) -> None:
    """Fewer rows, and one alone: each row's result is its own."""
    for part in (slice(ROWS // 2, ROWS), slice(5, 6), slice(60, 61)):
        n = len(obs[part])
        both = acted(agent, obs[part], streams()[part], n), acted(agent, obs[part], streams()[part])
        if not (alike(both[0], rows_of(mode, part)) and alike(both[1], rows_of(drawn, part))):
            fail("what `act` does with a row must not depend on the other rows", f"{name} acts otherwise on"
                 f" {n} of {ROWS} rows than on all", "a mean over the rows (batch norm, advantages), or one"
                 " stream for all of them instead of rng_B[b] for row b")  # fmt: skip


def check_mode(agent: Any, obs: np.ndarray, mode: Acted, drawn: Acted, name: str) -> None:
    """The first n_mode rows take the mode, which no stream changes; the others draw."""
    if not alike(acted(agent, obs, streams(ROWS), ROWS), mode):
        fail("the mode must not depend on the random streams", f"with others {name} acts otherwise in rows below"
             " n_mode", "`act` does not look at n_mode, and draws in every row")  # fmt: skip
    half = ROWS // 2
    mixed = acted(agent, obs, streams(), half)
    first, second = slice(0, half), slice(half, ROWS)
    if not (
        alike(rows_of(mixed, first), rows_of(mode, first)) and alike(rows_of(mixed, second), rows_of(drawn, second))
    ):
        fail("the first n_mode rows must take the mode and all others draw", f"{name} does otherwise at n_mode ="
             f" {half} of {ROWS} rows", "n_mode is taken for a flag, or for the other end of the rows")  # fmt: skip


def check_streams(agent: Any, obs: np.ndarray, drawn: Acted, name: str) -> None:
    """Whatever draws moves its streams on, or every step would draw the same."""
    rng = streams()
    before = rng.copy()
    acted(agent, obs, rng)
    draws = not alike(acted(agent, obs, streams(ROWS)), drawn)
    if draws and np.array_equal(rng, before):
        fail("`act` must advance the streams that it draws from, in place", f"{name} draws and leaves rng_B as it was:"
             " each step would draw the same", "it copies rng_B, or seeds a generator with it"
             " (relab.train.kernels.rng has what draws)")  # fmt: skip


def check_box(agent: Any, spec: Spec, results: tuple[Acted, ...], name: str) -> None:
    """What `to_env` gives is an action of the environment."""
    for gave in results:
        action = np.asarray(agent.to_env(gave.action))
        low, high = (np.zeros(len(spec.action.n)), np.array(spec.action.n) - 1) if spec.action.n else (
            np.array(spec.action.low), np.array(spec.action.high))  # fmt: skip
        rows = action.reshape(ROWS, -1).astype(np.float64)
        if not (np.isfinite(rows).all() and (rows >= low - CLOSE).all() and (rows <= high + CLOSE).all()):
            fail(f"`to_env` must give actions between {low.tolist()} and {high.tolist()}",
                 f"{name} gave {rows.min():g} to {rows.max():g}", "raw actions that are not cut or squashed into"
                 " [spec.action.low, spec.action.high]")  # fmt: skip


def check_value(agent: Any, obs: np.ndarray, name: str) -> None:
    """Where there is one: a number for each row."""
    if not hasattr(agent, "value"):
        return
    value = agent.value(obs.copy(), np.zeros((ROWS, agent.memory_dim), np.float32))
    if np.shape(value) != (ROWS,):
        fail("`value` must give one number for each row", f"{name} gave shape {np.shape(value)} for {ROWS} rows",
             "a last axis of size 1 that is to be taken away: value[:, 0]")  # fmt: skip
