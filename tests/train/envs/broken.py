"""A healthy numpy environment, and one broken copy of it for each promise of the contract."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from relab.record.spec import Action, Channel, Spec
from relab.train.kernels.rng import fill_uniform

LOST = 2  # end code


class State(NamedTuple):
    x: np.ndarray  # float64[N,A]
    v: np.ndarray  # float64[N,A]
    rng: np.ndarray  # uint64[N]


@dataclass(frozen=True)
class Params:
    name: str = "walker-v1"  # id with version


class Walker:
    """Two agents push themselves along a line with some noise; beyond 2 they are lost."""

    name = "walker-v1"
    Params = Params
    edge = 2.0

    def __init__(self) -> None:
        self.spec = Spec(
            env=self.name,
            obs_dim=2,
            action=Action("continuous", dim=1, low=(-1.0,), high=(1.0,)),
            agents=2,
            horizon=20,
            channels=(Channel("x", "m", "last"),),
            ends=("running", "time_limit", "lost"),
            reward_low=-1.0,
            reward_high=1.0,
            renders=True,
        )

    def allocate(self, n: int) -> Any:
        return State(np.zeros((n, 2)), np.zeros((n, 2)), np.zeros(n, np.uint64))

    def noise(self, state: State) -> np.ndarray:
        u = np.empty_like(state.x)
        fill_uniform(state.rng, u)
        return u - 0.5

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        streams, u = state.rng[worlds_N], np.empty((int(worlds_N.sum()), 2))
        fill_uniform(streams, u)
        state.rng[worlds_N] = streams
        state.x[worlds_N], state.v[worlds_N] = u - 0.5, 0.0

    def force(self, action: np.ndarray) -> np.ndarray:
        return np.clip(action[..., 0], -1.0, 1.0)

    def step(self, state: State, alive_NA: np.ndarray, action: np.ndarray, out) -> None:
        push = 0.1 * self.force(action) + 0.1 * self.noise(state)
        state.v[alive_NA] = (0.9 * state.v + push)[alive_NA]
        state.x[alive_NA] += state.v[alive_NA]
        lost = alive_NA & (np.abs(state.x) > self.edge)
        out.reward[alive_NA] = np.clip(state.x, -1, 1)[alive_NA]
        out.info[0][alive_NA] = state.x[alive_NA]
        out.terminated[lost], out.end[lost] = True, LOST

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        obs_NAD[..., 0], obs_NAD[..., 1] = state.x, state.v

    def render(self, state: State, i: int) -> np.ndarray:
        return np.zeros((4, 4, 3), np.uint8)


def with_spec(**changes) -> type[Walker]:
    class Respecified(Walker):
        def __init__(self) -> None:
            super().__init__()
            self.spec = dataclasses.replace(self.spec, **changes)

    return Respecified


def after_step(change) -> type[Walker]:
    """A Walker whose outcome is tampered with: change(state, alive, action, out)."""

    class Tampered(Walker):
        def step(self, state, alive_NA, action, out) -> None:
            super().step(state, alive_NA, action, out)
            change(state, alive_NA, action, out)

    return Tampered


class NumpyNoise(Walker):
    def noise(self, state):
        return np.random.random(state.x.shape) - 0.5


class SharedStream(Walker):
    def noise(self, state):
        u = np.empty((1, state.x.size))
        fill_uniform(state.rng[:1], u)
        return u.reshape(state.x.shape) - 0.5


class ResetsAll(Walker):
    def reset(self, state, worlds_N):
        super().reset(state, np.ones_like(worlds_N))


class ResetsAllAgents(with_spec(agent_reset="alone")):  # type: ignore[misc]
    def reset_agents(self, state, agents_NA):
        self.reset(state, np.ones(len(agents_NA), bool))


class Clocked(Walker):
    """Reports its own time limit as the end of the task."""

    class Ticking(NamedTuple):
        x: np.ndarray
        v: np.ndarray
        tick: np.ndarray
        rng: np.ndarray

    def allocate(self, n):
        return self.Ticking(np.zeros((n, 2)), np.zeros((n, 2)), np.zeros(n, np.int64), np.zeros(n, np.uint64))

    def reset(self, state, worlds_N):
        super().reset(state, worlds_N)
        state.tick[worlds_N] = 0

    def step(self, state, alive_NA, action, out):
        super().step(state, alive_NA, action, out)
        state.tick[:] += 1
        over = alive_NA & (state.tick >= self.spec.horizon)[:, None]
        out.terminated[over], out.end[over] = True, LOST


class ForgetsSpeed(Walker):
    def save(self, state):
        return {"x": state.x, "rng": state.rng}

    def load(self, state, parts, rows):
        state.x[rows], state.rng[rows] = parts["x"], parts["rng"]


class SavesOnly(Walker):
    def save(self, state):
        return state._asdict()


class Remembers(Walker):
    """Keeps the last push on the object."""

    last = 0.0

    def force(self, action):
        force = super().force(action) + 0.1 * self.last
        self.last = float(force.flat[0])
        return force

    def reset(self, state, worlds_N):
        super().reset(state, worlds_N)
        if worlds_N.all():
            self.last = 0.0


class NeverClips(Walker):
    def force(self, action):
        return action[..., 0]


class ClipsInPlace(Walker):
    def force(self, action):
        action *= 0.5
        return action[..., 0]


class CountsThreads(Walker):
    def force(self, action):
        return super().force(action) * numba.get_num_threads()


class OneColumnShort(Walker):
    def observe(self, state, obs_NAD):
        obs_NAD[..., 0] = state.x


class NoisyEyes(Walker):
    def observe(self, state, obs_NAD):
        super().observe(state, obs_NAD)
        obs_NAD[..., 0] += self.noise(state)


class Blows(Walker):
    def observe(self, state, obs_NAD):
        super().observe(state, obs_NAD)
        obs_NAD[..., 1] = np.where(np.abs(state.x) > 1, np.inf, obs_NAD[..., 1])


class SignedStream(Walker):
    def allocate(self, n):
        return State(np.zeros((n, 2)), np.zeros((n, 2)), np.zeros(n, np.int64))


class SharedField(Walker):
    def allocate(self, n):
        return State(np.zeros((n, 2)), np.zeros(2), np.zeros(n, np.uint64))


class NoStream(Walker):
    def allocate(self, n):
        return (np.zeros((n, 2)),)


class FloatPicture(Walker):
    def render(self, state, i):
        return np.zeros((4, 4, 3))


class MovingPicture(Walker):
    def render(self, state, i):
        state.x[i] += 1
        return np.zeros((4, 4, 3), np.uint8)


class NoParams(Walker):
    Params = None  # type: ignore[assignment]


def _pay_the_dead(state, alive, action, out):
    out.reward[~alive] = 1.0


class PaysTheDead(after_step(_pay_the_dead)):  # type: ignore[misc]
    edge = np.inf  # nobody dies by itself: only an agent that is declared dead tells


def _end_the_dead(state, alive, action, out):
    out.terminated[~alive], out.end[~alive] = True, LOST


def _both_flags(state, alive, action, out):
    out.truncated[:] = out.terminated


def _undeclared(state, alive, action, out):
    out.end[out.terminated] = 7


def _nameless(state, alive, action, out):
    out.end[:] = 0


def _nameless_world(state, alive, action, out):
    out.world_over[:] = True


def _code_alone(state, alive, action, out):
    out.end[alive] = LOST


def _nan_reward(state, alive, action, out):
    out.reward[0, 0] = np.nan


def _bonus(state, alive, action, out):
    out.reward[alive] += 1.5


def _bad_info(state, alive, action, out):
    out.info[0, 0, 0] = np.inf


def _kills(state, alive, action, out):
    alive[0, 0] = False


# what is broken: (the class, what check_env must say)
BROKEN: dict[str, tuple[type[Walker], str]] = {
    "np.random": (NumpyNoise, "the same seed must give the same bytes.*draw from state.rng"),
    "one stream for all": (SharedStream, "must not depend on its batch.*another world's stream"),
    "state on the object": (Remembers, "two batches of one env must not disturb each other.*put them in State"),
    "threads matter": (CountsThreads, "Numba threads must give the same bytes"),
    "mask ignored": (ResetsAll, "reset must leave worlds that are not marked alone"),
    "agents' mask ignored": (ResetsAllAgents, "reset_agents must leave worlds that are not marked alone"),
    "looks at the clock": (Clocked, "an env must not look at the clock.*reached the horizon 20 still ended there"),
    "forgets a field": (ForgetsSpeed, "a restored world must go on exactly.*save / load"),
    "half a pair": (SavesOnly, "`save` and `load` go together"),
    "reward after death": (after_step(_pay_the_dead), "a dead agent gets no reward"),
    "reward after a death that never comes": (PaysTheDead, "a dead agent gets no reward"),
    "dies twice": (after_step(_end_the_dead), "does not end again"),
    "both flags": (after_step(_both_flags), "terminated and truncated exclude each other"),
    "undeclared code": (after_step(_undeclared), r"end codes must be declared \(spec.ends has 0..2\), but step wrote"),
    "no code": (after_step(_nameless), "needs one of the env's own end codes"),
    "no code at world over": (after_step(_nameless_world), "needs one of the env's own end codes"),
    "code without flag": (after_step(_code_alone), "an end code needs terminated, truncated or world_over"),
    "NaN reward": (after_step(_nan_reward), "rewards must be finite"),
    "bonus not declared": (after_step(_bonus), r"within the declared \[-1, 1\], but agent . of world . got"),
    "infinite info": (after_step(_bad_info), "info channels must be finite"),
    "writes alive": (after_step(_kills), "step must not change `alive`"),
    "writes the action": (ClipsInPlace, "step must not change the action array"),
    "does not clip": (NeverClips, "an action outside .* must act as the nearest one inside"),
    "column not written": (OneColumnShort, r"finite float everywhere, but columns \[1\] of 2"),
    "noise in observe": (NoisyEyes, "observe must be a pure look at the state"),
    "infinite observation": (Blows, "observations must be finite"),
    "stream dtype": (SignedStream, r"state.rng must be uint64\[5\], but it is int64\[5\]"),
    "field without rows": (SharedField, r"state.v must be an array with a row for each of the 5 worlds"),
    "no stream": (NoStream, "NamedTuple with a field `rng`"),
    "float picture": (FloatPicture, r"uint8\[H,W,3\], but got float64"),
    "picture moves the world": (MovingPicture, "render must not change the state"),
    "no params": (NoParams, "must have `name` and `Params`"),
    "no spec": (
        type("NoSpec", (Walker,), {"__init__": lambda self: setattr(self, "spec", {})}),
        "must be a relab.record.spec.Spec",
    ),
    "ends without time limit": (with_spec(ends=("running", "lost")), "must begin with running, time_limit"),
    "unknown success": (with_spec(success_ends=("won",)), r"success_ends must be among ends, but \['won'\]"),
    "same channel twice": (with_spec(channels=(Channel("x"), Channel("x"))), "channel names must differ"),
    "unknown reducer": (with_spec(channels=(Channel("x", "", "median"),)), "reducer must be one of"),  # type: ignore[arg-type]
    "horizon 0 below": (with_spec(horizon=-3), "must be at least 1"),
    "swapped reward bounds": (with_spec(reward_low=1.0, reward_high=-1.0), "reward_low <= reward_high"),
    "swapped action bounds": (
        with_spec(action=Action("continuous", 1, low=(1.0,), high=(-1.0,))),
        "low < high must hold",
    ),
    "scalar bounds": (with_spec(action=Action("continuous", 2, low=(-1.0,), high=(1.0,))), "need dim = 2 entries"),
    "one count for two": (with_spec(action=Action("multi_discrete", 2, n=(3,))), "`n` needs 2 counts"),
    "discrete of two": (with_spec(action=Action("discrete", 2, n=(3, 3))), "discrete actions have dim = 1"),
    "alone without verb": (with_spec(agent_reset="alone"), "agent_reset `alone` needs `reset_agents`"),
    "no step": (type("NoStep", (Walker,), {"step": None}), "an env must have `step`"),
    "no render": (type("NoRender", (Walker,), {"render": None}), "spec.renders needs `render`"),
}
