"""gym:ID: how does any Gymnasium environment train here? N instances in this process, under the contract of every env.

- The time limit is added by Worlds (the registered one unless `horizon` says otherwise), so instances are made without.
- Each episode begins with reset(seed=s), s drawn from the world's own stream: worlds do not depend on the batch.
- A snapshot holds the episode's seed and the actions since; restoring replays them. Exact for deterministic envs, and a
  warning for others. Of worlds on MuJoCo it holds their numbers, where a trial shows these to be enough (gym_rows.py).
- Observations are flattened. Images become numbers from 0 to 1 here, in `pixels`, and nowhere else.
- With `pixels=64` the environment's own pictures are what is seen, made small at once (resize.py).
"""

from __future__ import annotations

import math
import os
import warnings
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from relab.base import blame
from relab.config import envs as configs
from relab.config import registry
from relab.config.base import ConfigError
from relab.record.spec import Action, Spec
from relab.train.envs import gym_rows, resize
from relab.train.envs.check_static import EnvError
from relab.train.kernels.rng import next_u64

TERMINATED, TRUNCATED = 2, 3  # end codes
CHOICES = 1024  # of a component that counts; beyond, each of them would have to be tried
SEED_BITS = np.uint64(33)  # 31 bits are left: what every seeding scheme takes


class Trail:
    """The actions of each world's running episode; grows as needed."""

    def __init__(self, n: int, dim: int, dtype: type) -> None:
        self.actions: np.ndarray = np.zeros((n, 64, dim), dtype)

    def append(self, i: int, at: int, action: np.ndarray) -> None:
        if at == self.actions.shape[1]:
            self.actions = np.concatenate([self.actions, np.zeros_like(self.actions)], axis=1)
        self.actions[i, at] = action


class State(NamedTuple):
    envs: list[gymnasium.Env]  # one per world
    trail: Trail
    acted: np.ndarray  # int64[N]: actions since the episode began
    seed: np.ndarray  # int64[N]: the episode's
    obs: np.ndarray  # float32[N,D]
    rng: np.ndarray  # uint64[N]


def action_spec(space: spaces.Space, env_id: str) -> Action:
    """The action space in our words; Discrete, MultiDiscrete, MultiBinary and Box are understood."""
    if math.prod(space.shape or (1,)) == 0:
        raise ConfigError(f"gym:{env_id} must have an action, but its action space {space} has no component; give it"
                          " one, e.g. Discrete(1)")  # fmt: skip
    if isinstance(space, spaces.Discrete):
        return Action("discrete", dim=1, n=(int(space.n),))
    if isinstance(space, spaces.MultiDiscrete):
        return Action("multi_discrete", dim=space.nvec.size, n=tuple(int(n) for n in space.nvec.flat))
    if isinstance(space, spaces.MultiBinary):
        size = math.prod(space.shape)
        return Action("multi_discrete", dim=size, n=(2,) * size)
    if isinstance(space, spaces.Box) and space.dtype.kind == "f":
        low, high = (tuple(float(x) for x in bound.flat) for bound in (space.low, space.high))
        return Action("continuous", dim=len(low), low=low, high=high)
    if isinstance(space, spaces.Box) and space.is_bounded():
        n = tuple(int(high) - int(low) + 1 for low, high in zip(space.low.flat, space.high.flat))
        if max(n) <= CHOICES:
            return Action("multi_discrete", dim=len(n), n=n)
    raise ConfigError(
        f"gym:{env_id} has the action space {space}, but only Discrete, MultiDiscrete, MultiBinary, a Box of floats and"
        f" a Box of at most {CHOICES:,} integers a component can be used; put a gymnasium.ActionWrapper around it and"
        " register the result"
    )


def to_gym(space: spaces.Space, action: np.ndarray) -> Any:
    """Our action components (1-D) as an element of the space."""
    if isinstance(space, spaces.Discrete):
        return int(action[0]) + int(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        return (action.reshape(space.shape) + space.start).astype(space.dtype)
    if isinstance(space, spaces.MultiBinary):
        return action.reshape(space.shape).astype(space.dtype)
    if isinstance(space, spaces.Box) and space.dtype.kind != "f":
        return (action.reshape(space.shape) + space.low.astype(np.int64)).astype(space.dtype)
    inside = np.clip(action.reshape(space.shape).astype(space.dtype), space.low, space.high)  # type: ignore[attr-defined]
    return np.asarray(inside, space.dtype)  # of a box without an axis, clip makes a number


def obs_dim(space: spaces.Space, env_id: str) -> int:
    if not space.is_np_flattenable:
        raise ConfigError(
            f"gym:{env_id} has the observation space {space}, which has no fixed number of floats; put a"
            " gymnasium.ObservationWrapper around it that makes a Box and register the result"
        )
    dim = spaces.utils.flatdim(space)
    if dim == 0:
        raise ConfigError(f"gym:{env_id} must show something, but its observation space {space} has no component; give"
                          " it one, e.g. a constant")  # fmt: skip
    return dim


def image_shape(space: spaces.Space) -> tuple[int, ...]:
    """(height, width, channels) of observations that are images, which are Boxes of uint8 or bool; empty for others."""
    if not isinstance(space, spaces.Box) or space.dtype not in (np.uint8, bool) or len(space.shape) not in (2, 3):
        return ()
    shape = (*space.shape, 1)[:3]
    return (*shape[1:], shape[0]) if channels_first(space) else shape


def channels_first(space: spaces.Space) -> bool:
    """Is an axis in front shorter than both others? It is that of the channels then: stacked frames come so."""
    shape = space.shape or ()
    return len(shape) == 3 and shape[0] < min(shape[1:])


def pixels(space: spaces.Box, image: Any) -> np.ndarray:
    """A flat image of (height, width, channels), from 0 to 1: over the highest number that its space allows (255)."""
    image = np.moveaxis(image, 0, -1) if channels_first(space) else image
    return np.ravel(image) / np.float32(max(1, space.high.max()))


def layers_of(env: gymnasium.Env) -> tuple[type, ...]:
    """The classes of an environment and of the wrappers around it: whose code it is."""
    inside = layers_of(env.env) if isinstance(env, gymnasium.Wrapper) else ()
    return type(env), *inside


class Gym:
    name = "gym"
    Params = configs.Gym

    def __init__(self, params: configs.Gym | None = None) -> None:
        self.params = params = params or configs.Gym()
        self.id = params.name.removeprefix("gym:")
        if "render_mode" in params.kwargs:
            raise ConfigError("`env.kwargs` must not hold render_mode; rgb_array is used where the environment has it")
        code = registry.named_code("env", params.name)
        blame.note(params.name, code)
        registry.look_here(code)
        probe = self._make(render=False)
        blame.note(params.name, type(probe.unwrapped).__module__)
        self.made_of = layers_of(probe)
        self.renders = "rgb_array" in probe.metadata.get("render_modes", [])
        self.space, self.obs_space = probe.action_space, probe.observation_space
        registered = gymnasium.spec(probe.unwrapped.spec.id).max_episode_steps  # type: ignore[union-attr]
        shape = self.picture_shape(params.pixels) if params.pixels else image_shape(self.obs_space)
        self.spec = Spec(
            env=params.name,
            obs_dim=math.prod(shape) if params.pixels else obs_dim(self.obs_space, self.id),
            action=action_spec(self.space, self.id),
            horizon=registered if params.horizon == -1 else params.horizon or None,
            ends=("running", "time_limit", "terminated", "truncated"),
            renders=self.renders,
            obs_shape=shape,
        )
        probe.close()
        self.rows = None if params.pixels else gym_rows.rows_of(lambda: self._make(render=False), lambda action: action)

    @property
    def grows(self) -> bool:
        """Whether a snapshot is longer the longer an episode has been."""
        return self.rows is None

    def picture_shape(self, side: int) -> tuple[int, ...]:
        """What is seen where the environment's own pictures are."""
        if not self.renders:
            raise ConfigError(f"`pixels` = {side} asks for pictures of {side} x {side}, but gym:{self.id} cannot draw"
                              " any: it has no render mode rgb_array; give it one, or leave `pixels` out")  # fmt: skip
        env = self._make(render=True)
        env.reset(seed=0)
        picture = self.drawn(env)
        env.close()
        if picture.ndim != 3:
            raise ConfigError(f"`pixels` = {side} needs pictures of (height, width, channels), but gym:{self.id} draws"
                              f" one of {picture.shape}")  # fmt: skip
        return side, side, picture.shape[2]

    def drawn(self, env: gymnasium.Env) -> np.ndarray:
        try:
            return np.asarray(env.render(), np.uint8)
        except gymnasium.error.DependencyNotInstalled as error:
            raise ConfigError(f"gym:{self.id} cannot be drawn: {error}") from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("mujoco", "OpenGL", "glfw"):
                raise
            raise ConfigError(f"gym:{self.id} cannot be drawn: {error}; MuJoCo draws through OpenGL, without a screen"
                              " with MUJOCO_GL=egl or, once libosmesa6 is there, osmesa") from error  # fmt: skip

    def _make(self, render: bool) -> gymnasium.Env:
        mode = {"render_mode": "rgb_array"} if render else {}
        try:
            return gymnasium.make(self.id, max_episode_steps=-1, disable_env_checker=True, **self.params.kwargs, **mode)
        except TypeError as error:
            if not self.params.kwargs:
                raise
            raise ConfigError(f"`env.kwargs` must be what the environment takes, but {error}") from error
        except ModuleNotFoundError as error:
            where = f"the current folder ({os.getcwd()}) and among installed packages"
            said = str(error).partition(". ")[0]
            raise ConfigError(f"`env=gym:{self.id}` must be an id that Gymnasium can make, but {said}; it is looked for"
                              f" in {where}") from error  # fmt: skip
        except (gymnasium.error.Error, ImportError) as error:
            raise ConfigError(f"`env=gym:{self.id}` must be an id that Gymnasium can make, but {error}") from error

    def allocate(self, n: int) -> State:
        dtype = np.float64 if self.spec.action.kind == "continuous" else np.int64
        return State(
            envs=[self._make(self.renders) for _ in range(n)],
            trail=Trail(n, self.spec.action.dim, dtype),
            acted=np.zeros(n, np.int64),
            seed=np.zeros(n, np.int64),
            obs=np.zeros((n, self.spec.obs_dim), np.float32),
            rng=np.zeros(n, np.uint64),
        )

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        for i in np.flatnonzero(worlds_N):
            state.seed[i] = next_u64(state.rng, i) >> SEED_BITS
            self._begin(state, int(i))

    def _begin(self, state: State, i: int) -> None:
        reply = state.envs[i].reset(seed=int(state.seed[i]))
        try:
            obs, _ = reply
            self._look(state, i, obs)
        except (TypeError, ValueError) as error:
            raise EnvError(f"reset() of {self.spec.env} must give an observation of {self.obs_space} and a dict, but"
                           f" gave {reply!r:.200} ({error})") from error  # fmt: skip
        state.acted[i] = 0

    def step(self, state: State, alive_NA: np.ndarray, action: np.ndarray, out) -> None:
        action_NK = action.reshape(len(alive_NA), self.spec.action.dim)
        for i in range(len(alive_NA)):
            reward, terminated, truncated = self._advance(state, i, action_NK[i])
            out.reward[i, 0] = reward
            out.terminated[i, 0] = terminated
            out.truncated[i, 0] = truncated and not terminated
            out.end[i, 0] = TERMINATED if terminated else TRUNCATED if truncated else 0

    def _advance(self, state: State, i: int, action_K: np.ndarray) -> tuple[float, bool, bool]:
        if self.rows is None:
            state.trail.append(i, int(state.acted[i]), action_K)
        state.acted[i] += 1
        reply = state.envs[i].step(to_gym(self.space, action_K))
        try:
            obs, reward, terminated, truncated, _ = reply
            self._look(state, i, obs)
            return float(reward), bool(terminated), bool(truncated)
        except (TypeError, ValueError) as error:
            raise EnvError(f"step() of {self.spec.env} must give an observation of {self.obs_space}, a reward that is a"
                           f" number, two flags and a dict, but gave {reply!r:.200} ({error})") from error  # fmt: skip

    def _look(self, state: State, i: int, obs: Any) -> None:
        if self.params.pixels:
            state.obs[i] = np.ravel(resize.square(self.render(state, i), self.params.pixels)) / np.float32(255)
        elif isinstance(self.obs_space, spaces.Box):  # flatten does the same for a Box that is no image, slower
            state.obs[i] = pixels(self.obs_space, obs) if self.spec.obs_shape else np.ravel(obs)
        else:
            state.obs[i] = spaces.utils.flatten(self.obs_space, obs)

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        obs_NAD[:, 0, :] = state.obs

    def render(self, state: State, i: int) -> np.ndarray:
        return self.drawn(state.envs[i])

    def save(self, state: State) -> dict[str, np.ndarray]:
        if self.rows is not None:
            row = np.stack([self.rows.read(env) for env in state.envs])
            return {"row": row, "acted": state.acted, "seed": state.seed, "obs": state.obs, "rng": state.rng}
        longest = int(state.acted.max())
        arrays = {"acted": state.acted, "seed": state.seed, "obs": state.obs, "rng": state.rng}
        actions = state.trail.actions[:, :longest].copy()
        actions[np.arange(longest) >= state.acted[:, None]] = 0  # an earlier episode's: a resumed run has none
        return arrays | {"actions": actions}

    def load(self, state: State, parts: dict[str, np.ndarray], rows: np.ndarray) -> None:
        if self.rows is not None:
            self._put_back(state, parts, rows)
            return
        for row, i in enumerate(rows):
            state.rng[i], state.seed[i] = parts["rng"][row], parts["seed"][row]
            self._begin(state, i)
            for action_K in parts["actions"][row, : parts["acted"][row]]:
                self._advance(state, i, action_K)
            if not np.array_equal(state.obs[i], parts["obs"][row], equal_nan=True):
                warnings.warn(
                    f"{self.spec.env} did not come back to its saved state when its {state.acted[i]} actions were"
                    f" replayed from seed {state.seed[i]}: it is not deterministic and cannot be resumed exactly",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def _put_back(self, state: State, parts: dict[str, np.ndarray], rows: np.ndarray) -> None:
        """Worlds as their numbers say; one that never began is begun, because wrappers insist on it."""
        assert self.rows is not None
        for row, i in enumerate(rows):
            state.rng[i], state.seed[i], state.acted[i] = (parts[name][row] for name in ("rng", "seed", "acted"))
            state.envs[i].reset(seed=int(state.seed[i]))
            self.rows.write(state.envs[i], parts["row"][row])
            state.obs[i] = parts["obs"][row]
