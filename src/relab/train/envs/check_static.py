"""Is what an environment says about itself in order, and does its state have the right shape? (Before any step.)"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from relab.base.errors import UserError
from relab.record.spec import Spec
from relab.train.envs.account import REDUCERS
from relab.train.envs.base import Env


class EnvError(UserError, AssertionError):
    """An environment breaks the contract: what must hold, what was found, and the probable cause."""


def fail(must: str, instead: str, cause: str) -> NoReturn:
    raise EnvError(f"{must}, but {instead}. Probable cause: {cause}.")


def describe(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def has(env: Any, verb: str) -> bool:
    return callable(getattr(env, verb, None))


def check_spec(env: Env) -> None:
    spec = env.spec
    if not isinstance(spec, Spec):
        fail("`spec` must be a relab.record.spec.Spec", f"it is {describe(spec)}", "a dict or a class of one's own")
    if not isinstance(getattr(env, "name", None), str) or not isinstance(getattr(env, "Params", None), type):
        fail("the class must have `name` and `Params`", "one of them is missing", "no dataclass for its parameters")
    sizes = (spec.obs_dim, spec.agents, spec.horizon or 1)
    if min(sizes) < 1:
        fail("obs_dim, agents and horizon must be at least 1", f"got {sizes}", "a 0 where None means no time limit")
    shape = spec.obs_shape
    if shape and (len(shape) != 3 or min(shape) < 1 or math.prod(shape) != spec.obs_dim):
        fail("obs_shape must be (height, width, channels) with obs_dim as its product, or empty",
             f"obs_shape is {shape} and obs_dim {spec.obs_dim}", "a channel axis that was left out")  # fmt: skip
    low, high = spec.reward_low, spec.reward_high
    if low is not None and high is not None and low > high:
        fail("reward_low <= reward_high must hold", f"got {low}, {high}", "swapped bounds")


def check_words(env: Env) -> None:
    """End codes and channels."""
    spec = env.spec
    if spec.ends[:2] != ("running", "time_limit"):
        fail("spec.ends must begin with running, time_limit", f"they are {spec.ends}", "the env's own codes start at 2")
    unknown = sorted(set(spec.success_ends) - set(spec.ends))
    if unknown:
        fail("success_ends must be among ends", f"{unknown} are not", "a misspelt name")
    if spec.outcome == "success" and not spec.knows_success:
        fail("outcome success needs success_ends", "there are none", "an end that was not declared as success")
    names, reducers = [c.name for c in spec.channels], {c.reducer for c in spec.channels}
    if spec.success_channel and spec.success_channel not in names:
        fail("success_channel must be one of the channels", f"{spec.success_channel!r} is not", "a misspelt name")
    if len(set(names)) < len(names):
        fail("channel names must differ", f"they are {names}", "a copied line")
    if not reducers <= set(REDUCERS):
        fail(f"a channel's reducer must be one of {REDUCERS}", f"got {sorted(reducers)}", "a misspelt name")


def check_action_spec(env: Env) -> None:
    action = env.spec.action
    if action.kind == "discrete" and action.dim != 1:
        fail("discrete actions have dim = 1", f"dim is {action.dim}", "multi_discrete is meant")
    if action.kind != "continuous":
        if len(action.n) != action.dim or min(action.n) < 1:
            fail(f"`n` needs {action.dim} counts of at least 1", f"got {action.n}", "one number for several components")
        return
    if (len(action.low), len(action.high)) != (action.dim, action.dim):
        fail(f"low and high need dim = {action.dim} entries", f"got {action.low}, {action.high}", "a scalar")
    if any(a >= b for a, b in zip(action.low, action.high)):
        fail("low < high must hold for each component", f"got {action.low}, {action.high}", "swapped bounds")


def check_verbs(env: Env) -> None:
    for verb in ("allocate", "reset", "step", "observe"):
        if not has(env, verb):
            fail(f"an env must have `{verb}`", "there is none", "a misspelt name: see Env in relab/train/envs/base.py")
    if env.spec.agent_reset == "alone" and not has(env, "reset_agents"):
        fail("agent_reset `alone` needs `reset_agents`", "there is none", "agents that restart with_world")
    if env.spec.renders and not has(env, "render"):
        fail("spec.renders needs `render`", "there is none", "a flag copied from another env")
    if has(env, "save") != has(env, "load"):
        fail("`save` and `load` go together", "only one exists", "half of a pair")


def check_state(env: Env, n: int) -> None:
    state = env.allocate(n)
    fields = getattr(state, "_fields", ())
    if "rng" not in fields:
        fail("allocate must return a NamedTuple with a field `rng`", f"got {describe(state)} with {fields}",
             "random numbers kept elsewhere")  # fmt: skip
    check_array("rng", state.rng, (n,), np.uint64)
    if "used" in fields:
        check_array("used", state.used, (n, env.spec.agents), bool)
    if has(env, "save"):
        return
    for name, array in state._asdict().items():
        if not isinstance(array, np.ndarray) or array.shape[:1] != (n,) or array.dtype == object:
            fail(f"state.{name} must be an array with a row for each of the {n} worlds", f"it is {describe(array)}",
                 "a number shared by all worlds (a param), or Python objects (write save and load)")  # fmt: skip


def check_array(name: str, array: Any, shape: tuple[int, ...], dtype: type) -> None:
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        fail(f"state.{name} must be {np.dtype(dtype)}{list(shape)}", f"it is {describe(array)}",
             "np.zeros without the dtype, or without a row per world")  # fmt: skip
