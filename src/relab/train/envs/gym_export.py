"""What does one of our environments look like to a Gymnasium user? A gymnasium.Env over a single world.

The time limit is left to Gymnasium's own wrapper (see gym_register). Continuous actions are in [-1, 1] and scaled to
the env's range, as Gymnasium's checker asks for.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from relab.config import registry
from relab.record.spec import Action
from relab.train.envs.base import Worlds

LARGEST = float(np.finfo(np.float32).max)


def action_space(action: Action) -> spaces.Space:
    if action.kind == "discrete":
        return spaces.Discrete(action.n[0])
    if action.kind == "multi_discrete":
        return spaces.MultiDiscrete(list(action.n))
    return spaces.Box(-1.0, 1.0, (action.dim,), np.float32)


class GymEnv(gymnasium.Env):
    """`env` is a registered name or package.module:Env; further keywords are its parameters."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(self, env: str = "cartpole-v1", render_mode: str | None = None, **params: Any) -> None:
        made = registry.env_class(env)(registry.env_params_class(env)(**params))
        spec = made.spec
        if spec.agents != 1:
            raise ValueError(f"Gymnasium environments have one agent, but {spec.env} has {spec.agents}")
        if render_mode is not None and not (spec.renders and render_mode == "rgb_array"):
            modes = "rgb_array" if spec.renders else "nothing"
            raise ValueError(f"{spec.env} renders {modes}, but got render_mode = {render_mode!r}")
        if not spec.renders:
            self.metadata = {"render_modes": [], "render_fps": 50}
        self.worlds = Worlds(made, 1, time_limit=None)
        self.render_mode = render_mode
        self.action_space = action_space(spec.action)
        self.observation_space = spaces.Box(-LARGEST, LARGEST, (spec.obs_dim,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        world_seed = self.np_random.integers(2**63, size=1, dtype=np.int64)
        return self.worlds.reset(world_seed)[0, 0].copy(), {}

    def step(self, action):
        step = self.worlds.step(self._ours(action))
        terminated, truncated = bool(step.terminated[0, 0]), bool(step.truncated[0, 0])
        obs = step.final_obs if terminated or truncated else step.obs
        info = {} if step.episodes is None else {"end": self.worlds.spec.ends[step.episodes.end[0]]}
        return obs[0, 0].copy(), float(step.reward[0, 0]), terminated, truncated, info

    def _ours(self, action) -> np.ndarray:
        ours = self.worlds.spec.action
        array = np.asarray(action).reshape(self.worlds.action_shape)
        if ours.kind != "continuous":
            return array
        low, high = np.array(ours.low), np.array(ours.high)
        return low + (array.astype(np.float64) + 1.0) / 2.0 * (high - low)

    def render(self):
        return self.worlds.render(0) if self.render_mode == "rgb_array" else None
