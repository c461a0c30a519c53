"""What is it to act? Observations in, actions out, for every row by itself; and is what an agent gives of that kind?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np

from relab.base.errors import UserError


class ContractError(UserError):
    """An algorithm that does not do what contract.py asks of it."""

    exit_code = 64


def refuse(name: str, must: str, instead: str, remedy: str) -> NoReturn:
    raise ContractError(f"{must}, but the algorithm {name} {instead}; {remedy}")


def described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return "None" if value is None else f"a {type(value).__name__}" + ("" if shape is None else f" of shape {shape}")


class Policy(Protocol):
    """Observations in, actions out. Row b draws from rng_B[b] alone; the first n_mode rows take the mode."""

    memory_dim: int

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted: ...

    def to_env(self, action: np.ndarray) -> np.ndarray: ...


@dataclass
class Acted:
    """What acting gave: raw actions with their log-probabilities, and the memory after (arrays may be reused: copy)."""

    action: np.ndarray  # [B, dim]
    logp: np.ndarray  # [B]
    memory: np.ndarray  # [B, M]
    value: np.ndarray | None = None  # [B], where acting computes it anyway (recurrent nets)


def check_acted(policy: Any, acted: Any, shape: tuple[int, ...], rows: int) -> None:
    """ContractError where what `act` gave for so many rows is none that `to_env` makes actions of that shape of.

    Asked of the first step of each evaluation: one comes before all else in a run.
    """
    name = f"{type(policy).__module__}.{type(policy).__qualname__}"
    if not isinstance(acted, Acted):
        refuse(name, "`act` must return a relab.train.rollout.Acted", f"returned {described(acted)}",
               "return Acted(action, logp, memory)")  # fmt: skip
    memory, wanted = np.shape(acted.memory), (rows, int(policy.memory_dim))
    if acted.memory is None or memory != wanted:
        refuse(name, f"`act` must return the memory after the step as an array [rows, memory_dim] = {list(wanted)}",
               f"returned {described(acted.memory)}", "return it (without one, memory_BM as it came), or declare"
               " memory_dim = 0")  # fmt: skip
    if np.shape(acted.action)[:1] != (rows,):
        refuse(name, f"`act` must return an action for each of the {rows} rows", f"returned {described(acted.action)}",
               "act on all rows of obs_BD")  # fmt: skip
    action = policy.to_env(acted.action)
    if np.size(action) != math.prod(shape):
        refuse(name, f"`to_env` must give actions for the environment, {list(shape)} of them", f"gave"
               f" {described(action)}", "give each row as many components as `spec.action` says")  # fmt: skip
