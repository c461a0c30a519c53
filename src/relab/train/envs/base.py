"""What is an environment, and what does every one get for free? Physics stands in an env; clock, resets and books here.

An env is a class with `name`, `Params`, `spec` and the verbs of the protocol `Env` below. `Worlds(env, n)` runs n of
its worlds with time limit, auto-reset, final observations, who is alive, and per-episode sums. Dimensions: N worlds,
A agents (slots) per world, D observation floats, K action components, C info channels. docs/environments.md shows how
to write one.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from relab.base.errors import UserError
from relab.record.spec import Spec
from relab.train.envs.account import REDUCERS, account, account_wide, begin, clear_wide, rewind
from relab.train.kernels import rng
from relab.train.kernels.jit import wide

FROM_SPEC = -1


class ActionError(UserError, ValueError):
    """Actions that an environment does not have: whatever acts is to be mended."""

    exit_code = 64

    def __init__(self, message: str):
        super().__init__(f"{message}; mend `act` or `to_env` of what acts there")


class Outcomes(NamedTuple):
    """What env.step writes on. All zeros at entry: write what happened to living agents, leave the rest alone."""

    reward: np.ndarray  # float64[N,A]
    terminated: np.ndarray  # bool[N,A]: the task ended for this agent; nothing more to earn
    truncated: np.ndarray  # bool[N,A]: cut short by the env itself (the time limit is not its business)
    end: np.ndarray  # int64[N,A]: index into spec.ends, wherever one of the flags is set
    info: np.ndarray  # float64[C,N,A]: this step's channels, in the order of spec.channels
    world_over: np.ndarray  # bool[N]: the whole world ends now; agents without a flag of their own are truncated


class Env(Protocol):
    """Physics only; state is data. Nothing here looks at the clock or keeps numbers outside `state`."""

    name: ClassVar[str]
    Params: ClassVar[type]
    spec: Spec

    def allocate(
        self, n: int
    ) -> Any: ...  # NamedTuple of arrays, a leading row per world; one is `rng` uint64[N], `used` bool[N,A] may be one
    def reset(
        self, state: Any, worlds_N: np.ndarray
    ) -> None: ...  # new start for the marked worlds, all draws from state.rng
    def step(self, state: Any, alive_NA: np.ndarray, action: np.ndarray, out: Outcomes) -> None: ...  # in place
    def observe(self, state: Any, obs_NAD: np.ndarray) -> None: ...  # float32, in place, no random draws

    # and, where they apply:
    # def reset_agents(self, state, agents_NA)     with agent_reset "alone": new start for the marked agents
    # def observe_some(self, state, obs_NAD, worlds_N)   `observe` for the marked worlds alone: after a reset of few
    # work: int   a step costs as much as this many of cartpole's, where its kernels have parallel twins
    # def render(self, state, i) -> uint8[H,W,3]   with spec.renders
    # def caption(self, state, i) -> str   a few words for films of where world i stands
    # def save(self, state) -> dict of arrays, load(self, state, dict, rows)   when the state is more than its arrays
    # stage_keys: tuple[str, ...], def set_stage(self, values)   for schedules: what later resets draw, nothing else


class Episodes(NamedTuple):
    """The k episodes that ended in one step, as columns."""

    world: np.ndarray  # int64[k]
    agent: np.ndarray  # int64[k]
    ret: np.ndarray  # float64[k]: undiscounted return
    length: np.ndarray  # int64[k]: steps of this agent
    end: np.ndarray  # int64[k]: index into spec.ends
    success: np.ndarray | None  # bool[k]; None when the env does not say what success is
    info: np.ndarray  # float64[C,k]: each channel reduced over the episode


class Step(NamedTuple):
    """One step of all worlds. The arrays are written again by the next call: copy what you keep."""

    obs: np.ndarray  # float32[N,A,D]: what the policy acts on next (after auto-reset)
    final_obs: np.ndarray  # float32[N,A,D]: before the reset; valid where terminated | truncated
    reward: np.ndarray  # float64[N,A]
    terminated: np.ndarray  # bool[N,A]; never together with truncated
    truncated: np.ndarray  # bool[N,A]
    alive: np.ndarray  # bool[N,A]: who acts next (after auto-reset)
    end: np.ndarray  # int64[N,A]: end code where an episode ended, else 0
    episodes: Episodes | None  # None when none ended


class Book(NamedTuple):
    """What Worlds remembers about each world and its agents."""

    tick: np.ndarray  # int64[N]: world steps since its reset
    alive: np.ndarray  # bool[N,A]
    ret: np.ndarray  # float64[N,A]
    length: np.ndarray  # int64[N,A]
    info: np.ndarray  # float64[N,A,C]


class Done(NamedTuple):
    """Room for the episodes that end in one step; at most one per agent."""

    world: np.ndarray
    agent: np.ndarray
    ret: np.ndarray
    length: np.ndarray
    end: np.ndarray
    info: np.ndarray


def _outcome(n: int, agents: int, channels: int) -> Outcomes:
    shape = (n, agents)
    return Outcomes(
        reward=np.zeros(shape),
        terminated=np.zeros(shape, bool),
        truncated=np.zeros(shape, bool),
        end=np.zeros(shape, np.int64),
        info=np.zeros((channels, n, agents)),
        world_over=np.zeros(n, bool),
    )


def _book(n: int, agents: int, channels: int) -> Book:
    shape = (n, agents)
    return Book(
        np.zeros(n, np.int64),
        np.zeros(shape, bool),
        np.zeros(shape),
        np.zeros(shape, np.int64),
        np.zeros((n, agents, channels)),
    )


def _done(k: int, channels: int) -> Done:
    ints = [np.zeros(k, np.int64) for _ in range(4)]
    return Done(ints[0], ints[1], np.zeros(k), ints[2], ints[3], np.zeros((channels, k)))


class Worlds:
    """n worlds of one env, stepped together. `time_limit` replaces the spec's horizon (None: no limit)."""

    def __init__(self, env: Env, n: int, time_limit: int | None = FROM_SPEC) -> None:
        if n < 1:
            raise ValueError(f"Worlds needs at least one world, but got n = {n}")
        self.env, self.n, self.spec = env, n, env.spec
        spec = self.spec
        self.horizon = spec.horizon if time_limit == FROM_SPEC else time_limit
        self._limit, self._alone = self.horizon or 0, spec.agent_reset == "alone"
        self.state = env.allocate(n)
        self.sim_steps = 0  # world steps since this object was made
        self.begun = 0  # worlds that were begun since then, those of `reset` included
        self.obs = np.zeros((n, spec.agents, spec.obs_dim), np.float32)
        self.final_obs = np.zeros_like(self.obs)
        self.book = _book(n, spec.agents, len(spec.channels))
        self.alive = self.book.alive
        self._out = _outcome(n, spec.agents, len(spec.channels))
        self._done = _done(n * spec.agents, len(spec.channels))
        self._reset_N = np.zeros(n, bool)
        self._restart_NA = np.zeros((n, spec.agents), bool)
        self._used_NA = self.state.used if "used" in self.state._fields else np.ones((n, spec.agents), bool)
        self._reducer_C = np.array([REDUCERS.index(c.reducer) for c in spec.channels], np.int64)
        self._success_of = np.array([end in spec.success_ends for end in spec.ends]) if spec.knows_success else None
        self._success_row = [c.name for c in spec.channels].index(spec.success_channel) if spec.success_channel else -1
        self._work = getattr(env, "work", 1)
        self._observe_some = getattr(env, "observe_some", None)
        self._save, self._load = getattr(env, "save", None), getattr(env, "load", None)  # optional in the contract
        self._set_up_actions()

    def _set_up_actions(self) -> None:
        action, rows = self.spec.action, (self.n, self.spec.agents)
        self.action_shape = rows if action.kind == "discrete" else (*rows, action.dim)
        self._n_K = np.array(action.n, np.int64)
        self._no_ints = np.zeros((0, 0), np.int64)

    def reset(self, seeds_N: np.ndarray) -> np.ndarray:
        """Begin every world anew; world i's stream depends on seeds_N[i] alone. Returns obs [N,A,D]."""
        seeds_N = np.asarray(seeds_N)
        if seeds_N.shape != (self.n,):
            raise ValueError(f"reset needs one seed per world, shape ({self.n},), but got shape {seeds_N.shape}")
        self.state.rng[:] = rng.mix(seeds_N)
        self._reset_N[:] = True
        self._begin_worlds()
        self.env.observe(self.state, self.obs)
        return self.obs

    def _begin_worlds(self) -> None:
        self.env.reset(self.state, self._reset_N)
        self.begun += int(self._reset_N.sum())
        rewind(self.book, self._used_NA, self._reset_N)

    def step(self, action: np.ndarray) -> Step:
        """Advance every world by one step. action: [N,A] int64, [N,A,K] int64, or [N,A,K] float32 / float64."""
        out = self._out
        action = self._begin(action)
        self.env.step(self.state, self.alive, action, out)
        books = account_wide if self._wide() else account
        ended, restarts, resets = books(
            out,
            self.book,
            self._done,
            self._reducer_C,
            self._limit,
            self._alone,
            self._reset_N,
            self._restart_NA,
        )
        self.env.observe(self.state, self.obs)
        self.sim_steps += self.n
        episodes = self._finish(ended, restarts, resets) if ended or resets else None
        return Step(self.obs, self.final_obs, out.reward, out.terminated, out.truncated, self.alive, out.end, episodes)

    def _begin(self, action: np.ndarray) -> np.ndarray:
        if action.shape != self.action_shape:
            kind = self.spec.action.kind
            raise ActionError(
                f"{self.spec.env} needs {kind} actions of shape {self.action_shape}, but got {action.shape}"
            )
        if self._n_K.shape[0] == 0:
            if action.dtype != np.float32 or not action.flags.c_contiguous:
                action = np.ascontiguousarray(action, np.float64)
            if self._wide():
                clear_wide(self._out)
            else:
                begin(self._out, self._no_ints, self._n_K)
            return action
        if action.dtype.kind not in "iu":
            raise ActionError(f"{self.spec.env} needs integer actions, but got dtype {action.dtype}")
        action = np.ascontiguousarray(action, np.int64)
        bad = begin(self._out, action.reshape(-1, self._n_K.shape[0]), self._n_K)
        if bad >= 0:
            raise ActionError(self._bad_action(action, bad))
        return action

    def _wide(self) -> bool:
        """Do several threads share the physics? Then the books too: what one core wrote is slow to read on another."""
        return wide(self.alive.size * self._work)

    def _bad_action(self, action: np.ndarray, bad: int) -> str:
        row, k = divmod(bad, len(self._n_K))
        world, agent = divmod(row, self.spec.agents)
        return (
            f"{self.spec.env}: a discrete action must be in 0..{self._n_K[k] - 1}, but world {world}, agent {agent}, "
            f"component {k} got {action.flat[bad]}"
        )

    def _finish(self, ended: int, restarts: int, resets: int) -> Episodes | None:
        """Some episodes ended: keep the last observations, restart what must, observe again."""
        world, agent = self._done.world[:ended], self._done.agent[:ended]
        self.final_obs[world, agent] = self.obs[world, agent]
        if restarts:
            self.env.reset_agents(self.state, self._restart_NA)  # type: ignore[attr-defined]
        if resets:
            self._begin_worlds()
        if (restarts or resets) and self._observe_some:
            self._observe_some(self.state, self.obs, self._reset_N | self._restart_NA.any(axis=1))
        elif restarts or resets:
            self.env.observe(self.state, self.obs)
        return self.episodes_of(self._done, ended) if ended else None

    def parts(self) -> tuple[Any, ...]:
        """What a step writes on, for collecting.Scene, which steps these worlds without Python."""
        return (self.book, self._out, self._done, self._reducer_C, self._limit, self._alone, self._reset_N,
                self._restart_NA, self._used_NA, self.obs)  # fmt: skip

    def episodes_of(self, done: Done, ended: int) -> Episodes:
        """The first `ended` episodes that `done` holds, copied."""
        end, info = done.end[:ended].copy(), done.info[:, :ended].copy()
        success = None if self._success_of is None else self._success_of[end]
        if success is not None and self._success_row >= 0:
            success |= info[self._success_row] > 0
        return Episodes(
            done.world[:ended].copy(),
            done.agent[:ended].copy(),
            done.ret[:ended].copy(),
            done.length[:ended].copy(),
            end,
            success,
            info,
        )

    def render(self, i: int = 0) -> np.ndarray:
        """World i as an image, uint8[H,W,3]."""
        if not self.spec.renders:
            raise ValueError(f"{self.spec.env} does not render (spec.renders is false)")
        return self.env.render(self.state, i)  # type: ignore[attr-defined]

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything the worlds' future depends on, copied; each array has a leading row per world."""
        parts = self._save(self.state) if self._save else self.state._asdict()
        snap = {f"state.{key}": np.array(value) for key, value in parts.items()}
        return snap | {f"book.{key}": value.copy() for key, value in self.book._asdict().items()}

    def restore(
        self, snap: dict[str, np.ndarray], rows: np.ndarray | None = None, from_rows: np.ndarray | None = None
    ) -> None:
        """Put rows `from_rows` of a snapshot into slots `rows` (default: all); they go on exactly."""
        to = np.arange(self.n) if rows is None else np.asarray(rows)
        taken = {key: value if from_rows is None else value[np.asarray(from_rows)] for key, value in snap.items()}
        for key, value in taken.items():
            if len(value) != len(to):
                raise ValueError(f"restore: {len(to)} slots need {len(to)} saved rows, but `{key}` brings {len(value)}")
        for key, array in self.book._asdict().items():
            array[to] = taken[f"book.{key}"]
        parts = {key.removeprefix("state."): value for key, value in taken.items() if key.startswith("state.")}
        if self._load:
            self._load(self.state, parts, to)
        else:
            for key, array in self.state._asdict().items():
                array[to] = parts[key]
        self.env.observe(self.state, self.obs)
