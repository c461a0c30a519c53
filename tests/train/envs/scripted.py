"""An environment without physics, for tests: what happens to each agent is said by its action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from relab.record.spec import Action, Channel, Reducer, Spec

GO, DIE, CUT, END_WORLD = range(4)  # actions
DIED, WAS_CUT, WORLD_ENDED = 2, 3, 4  # end codes
REDUCERS: tuple[Reducer, ...] = ("sum", "mean", "last", "max", "min")


class State(NamedTuple):
    count: np.ndarray  # int64[N,A]: steps since the agent started; also its observation and its reward
    starts: np.ndarray  # int64[N,A]: how often it started
    used: np.ndarray  # bool[N,A]
    rng: np.ndarray  # uint64[N]


@dataclass(frozen=True)
class Params:
    name: str = "scripted-v1"  # id with version
    agents: int = 2  # slots
    agent_reset: str = "with_world"  # alone | with_world
    horizon: int | None = 3  # time limit
    unused: int = 0  # slots at the end that nobody uses
    success: bool = True  # whether the env says what success is


class Scripted:
    name = "scripted-v1"
    Params = Params

    def __init__(self, params: Params | None = None) -> None:
        self.params = params = params or Params()
        self.spec = Spec(
            env=self.name,
            obs_dim=1,
            action=Action("discrete", dim=1, n=(4,)),
            agents=params.agents,
            horizon=params.horizon,
            agent_reset=params.agent_reset,  # type: ignore[arg-type]
            channels=tuple(Channel(reducer, "", reducer) for reducer in REDUCERS),
            ends=("running", "time_limit", "died", "cut", "world_ended"),
            success_ends=("died",) if params.success else (),
        )

    def allocate(self, n: int) -> State:
        rows = (n, self.params.agents)
        return State(np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, bool), np.zeros(n, np.uint64))

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        state.used[worlds_N] = np.arange(self.params.agents) < self.params.agents - self.params.unused
        self.reset_agents(state, np.repeat(worlds_N[:, None], self.params.agents, axis=1))

    def reset_agents(self, state: State, agents_NA: np.ndarray) -> None:
        state.count[agents_NA] = 0
        state.starts[agents_NA] += 1

    def step(self, state: State, alive_NA: np.ndarray, action_NA: np.ndarray, out) -> None:
        state.count[alive_NA] += 1
        out.reward[alive_NA] = state.count[alive_NA]
        out.info[:, alive_NA] = ((-1) ** state.count * state.count)[alive_NA]  # -1, 2, -3, 4 ...
        out.terminated[:] = alive_NA & (action_NA == DIE)
        out.truncated[:] = alive_NA & (action_NA == CUT)
        out.world_over[:] = (alive_NA & (action_NA == END_WORLD)).any(1)
        out.end[out.terminated], out.end[out.truncated] = DIED, WAS_CUT
        out.end[out.world_over[:, None] & alive_NA & (out.end == 0)] = WORLD_ENDED

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        obs_NAD[..., 0] = state.count
