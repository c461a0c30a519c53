"""Does an environment behave while it moves? Outcomes, masks, streams, snapshots, clock, under random actions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np

from relab.record.spec import Spec
from relab.train.envs.base import Env, Outcomes, Worlds
from relab.train.envs.check_static import EnvError, describe, fail
from relab.train.kernels import jit, rng

Trace = dict[str, np.ndarray]  # field of Step -> array with a leading row per step

CLOCK_STEPS = 2_000  # check_clock follows horizons up to this many steps


def seeds(n: int, seed: int) -> np.ndarray:
    return rng.mix(np.arange(n) + 1000 * seed)


def begin(env: Any, n: int, seed: int) -> Worlds:
    worlds = Worlds(env, n)
    worlds.reset(seeds(n, seed))
    return worlds


def random_actions(spec: Spec, n: int, steps: int, seed: int) -> np.ndarray:
    """[T,N,A] or [T,N,A,K] for every kind of action; unbounded components get N(0, 1)."""
    draw, action = np.random.default_rng(seed), spec.action
    shape = (steps, n, spec.agents, action.dim)
    if action.kind != "continuous":
        ints_TNAK = draw.integers(0, action.n, shape)
        return ints_TNAK[..., 0] if action.kind == "discrete" else ints_TNAK
    low, high = np.array(action.low), np.array(action.high)
    bounded = np.isfinite(low) & np.isfinite(high)
    inside = draw.uniform(np.where(bounded, low, 0.0), np.where(bounded, high, 1.0), shape)
    return np.where(bounded, inside, np.clip(draw.normal(size=shape), low, high))


def plain(env: Any, state: Any) -> dict[str, np.ndarray]:
    """The state as copied arrays."""
    save = getattr(env, "save", None)
    return {key: np.array(value) for key, value in (save(state) if save else state._asdict()).items()}


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


# ---- resets, observations, pictures


def check_resets(env: Env, n: int, seed: int) -> None:
    """A reset of a world, or of one agent in it, touches no other world."""
    masks = {"reset": np.arange(n) == 0}
    if env.spec.agent_reset == "alone":
        masks["reset_agents"] = np.arange(n * env.spec.agents).reshape(n, -1) == 0
    for verb, mask in masks.items():
        worlds = begin(env, n, seed)
        before = plain(env, worlds.state)
        getattr(env, verb)(worlds.state, mask)
        for key, value in plain(env, worlds.state).items():
            if not same(value[1:], before[key][1:]):
                fail(f"{verb} must leave worlds that are not marked alone",
                     f"state.{key} of others changed with world 0",
                     "the mask is ignored, or a draw from another world's stream")  # fmt: skip


def check_observe(env: Env, n: int, seed: int) -> None:
    """observe writes every float, the same each time, and changes nothing."""
    worlds = begin(env, n, seed)
    before, first, second = plain(env, worlds.state), np.full_like(worlds.obs, np.nan), np.full_like(worlds.obs, np.nan)
    env.observe(worlds.state, first)
    env.observe(worlds.state, second)
    missing = sorted({int(d) for d in np.nonzero(~np.isfinite(first))[2]})
    if missing:
        fail("observe must write a finite float everywhere", f"columns {missing} of {env.spec.obs_dim} have none",
             "obs_dim larger than what is written, or a division by zero")  # fmt: skip
    some = getattr(env, "observe_some", None)
    if some is not None:
        part, marked = np.zeros_like(first), np.arange(n) % 2 == 0
        some(worlds.state, part, marked)
        if not same(part, np.where(marked[:, None, None], first, 0)):
            fail("observe_some must write what observe writes, for the marked worlds alone", "it does not",
                 "the mask is ignored, or another formula")  # fmt: skip
    unchanged = all(same(value, before[key]) for key, value in plain(env, worlds.state).items())
    if not same(first, second) or not unchanged:
        fail("observe must be a pure look at the state", "a second call differs or the state changed",
             "noise drawn in observe: draw it in step and keep it in the state")  # fmt: skip


def check_render(env: Env, seed: int) -> None:
    worlds = begin(env, 2, seed)
    before, image = plain(env, worlds.state), worlds.render(1)
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        fail("render must return uint8[H,W,3]", f"got {describe(image)}", "floats in 0..1, or an alpha channel")
    if not all(same(value, before[key]) for key, value in plain(env, worlds.state).items()):
        fail("render must not change the state", "it did", "drawing moves the world on")


# ---- what a step may write


class Watched:
    """The env, with the raw outcome of every step checked before Worlds sees it."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def step(self, state: Any, alive_NA: np.ndarray, action: np.ndarray, out: Outcomes) -> None:
        alive_before, action_before = alive_NA.copy(), action.copy()
        self.env.step(state, alive_NA, action, out)
        if not same(action, action_before):
            fail("step must not change the action array", "it did", "an in-place clip of the action")
        if not same(alive_NA, alive_before):
            fail("step must not change `alive`", "it did", "Worlds keeps it up to date: write out.terminated")
        check_flags(self.env.spec, alive_NA, out)
        check_codes(self.env.spec, alive_NA, out)
        check_numbers(self.env.spec, alive_NA, out)


def where(mask_NA: np.ndarray) -> str:
    world, agent = np.argwhere(mask_NA)[0]
    return f"agent {agent} of world {world}"


def check_flags(spec: Spec, alive: np.ndarray, out: Outcomes) -> None:
    both = out.terminated & out.truncated
    if both.any():
        fail("terminated and truncated exclude each other", f"{where(both)} has both",
             "a cut reported as an end of the task too")  # fmt: skip
    ghosts = ~alive & (out.terminated | out.truncated | (out.reward != 0) | (out.end != 0))
    if ghosts.any():
        fail("a dead agent gets no reward and does not end again", f"{where(ghosts)} is dead and has an outcome",
             "a loop over agents that does not skip those whose `alive` is false")  # fmt: skip


def check_codes(spec: Spec, alive: np.ndarray, out: Outcomes) -> None:
    codes = sorted({int(code) for code in out.end.flat})
    if codes[0] < 0 or codes[-1] >= len(spec.ends):
        fail(f"end codes must be declared (spec.ends has 0..{len(spec.ends) - 1})", f"step wrote {codes}",
             "a name missing in spec.ends")  # fmt: skip
    ending = out.terminated | out.truncated | (alive & out.world_over[:, None])
    nameless, baseless = ending & (out.end < 2), (out.end > 0) & ~ending
    if nameless.any():
        fail("an agent that ends needs one of the env's own end codes, 2 and up",
             f"{where(nameless)} ended with {out.end[nameless][0]}",
             "out.end not written, or 1, the time limit, which is Worlds' business")  # fmt: skip
    if baseless.any():
        fail("an end code needs terminated, truncated or world_over", f"{where(baseless)} has a code alone",
             "a flag that was forgotten")  # fmt: skip


def check_numbers(spec: Spec, alive: np.ndarray, out: Outcomes) -> None:
    if not np.isfinite(out.reward).all():
        fail("rewards must be finite", "one is not", "a division by zero or an overflow in the physics")
    if not np.isfinite(out.info).all():
        fail("info channels must be finite", "one is not", "a ratio whose denominator was 0")
    low = -math.inf if spec.reward_low is None else spec.reward_low
    high = math.inf if spec.reward_high is None else spec.reward_high
    outside = alive & ((out.reward < low - 1e-9) | (out.reward > high + 1e-9))
    if outside.any():
        fail(f"rewards must be within the declared [{low:g}, {high:g}]",
             f"{where(outside)} got {out.reward[outside][0]:g}", "bounds that forget a bonus or a penalty")  # fmt: skip


def check_outcomes(env: Env, actions_T: np.ndarray, seed: int) -> None:
    worlds = begin(Watched(env), actions_T.shape[1], seed)
    for t, action in enumerate(actions_T):
        if not np.isfinite(worlds.step(action).obs).all():
            fail("observations must be finite", f"one is not after {t + 1} steps", "a state without bounds")


def check_dead_agents(env: Env, actions_T: np.ndarray, seed: int) -> None:
    """Agent 0 of each world is declared dead: it must stay out of every outcome."""
    if env.spec.agents == 1 or env.spec.agent_reset == "alone":
        return
    worlds = begin(Watched(env), actions_T.shape[1], seed)
    for action in actions_T[:20]:
        worlds.alive[:, 0] = False
        if not np.isfinite(worlds.step(action).obs).all():
            fail("observations must be finite when an agent is dead", "one is not", "a mean over the living")


# ---- same seed, same bytes


def follow(worlds: Worlds, actions_T: np.ndarray) -> Trace:
    """Go on with these actions and keep all that Step says."""
    kept: dict[str, list[np.ndarray]] = {}
    for action in actions_T:
        step = worlds.step(action)
        ended_NA1 = (step.terminated | step.truncated)[..., None]
        for key, array in step._replace(final_obs=np.where(ended_NA1, step.final_obs, 0.0))._asdict().items():
            if key != "episodes":
                kept.setdefault(key, []).append(array.copy())
    return {key: np.stack(arrays) for key, arrays in kept.items()}


def trace(env: Env, actions_T: np.ndarray, seed: int) -> Trace:
    return follow(begin(env, actions_T.shape[1], seed), actions_T)


def compare(a: Trace, b: Trace, must: str, cause: str) -> None:
    """Fail where two traces first differ, by a single bit."""
    for key in a:
        differs = np.argwhere(a[key] != b[key])
        if len(differs):
            step, world = differs[0][:2]
            fail(must, f"`{key}` of world {world} differs at step {step}", cause)


def check_action_range(env: Env, actions_T: np.ndarray, seed: int) -> None:
    """The bounds are legal actions; what lies beyond is clipped."""
    bounds = np.array([env.spec.action.low, env.spec.action.high])
    if bounds.size == 0 or not np.isfinite(bounds).all():
        return
    span, shape = bounds[1] - bounds[0], actions_T[:3].shape
    for edge, beyond in ((bounds[0], bounds[0] - span), (bounds[1], bounds[1] + span)):
        compare(trace(env, np.broadcast_to(edge, shape), seed), trace(env, np.broadcast_to(beyond, shape), seed),
                "an action outside [low, high] must act as the nearest one inside",
                "the env does not clip its actions")  # fmt: skip


def check_determinism(env: Env, actions_T: np.ndarray, seed: int) -> None:
    """The same seed three times, the last with other worlds of the same env object stepped in between."""
    first = trace(env, actions_T, seed)
    compare(first, trace(env, actions_T, seed), "the same seed must give the same bytes",
            "numbers drawn from np.random or the clock: draw from state.rng")  # fmt: skip
    other = begin(env, actions_T.shape[1], seed + 1)
    worlds, parts = begin(env, actions_T.shape[1], seed), []
    for t, action in enumerate(actions_T):
        parts.append(follow(worlds, actions_T[t : t + 1]))
        other.step(action)
    between = {key: np.concatenate([part[key] for part in parts]) for key in first}
    compare(first, between, "two batches of one env must not disturb each other",
            "numbers kept on the env object or in the module: put them in State")  # fmt: skip


def check_independence(env: Env, actions_T: np.ndarray, seed: int) -> None:
    """Each world, run alone, must do what it does in the batch."""
    n = actions_T.shape[1]
    together = trace(env, actions_T, seed)
    for row in range(n):
        alone = Worlds(env, 1)
        alone.reset(seeds(n, seed)[row : row + 1])
        compare({key: array[:, row : row + 1] for key, array in together.items()},
                follow(alone, actions_T[:, row : row + 1]),
                f"a world must not depend on its batch (world {row} of {n} was run alone)",
                "a draw from another world's stream, or a number reduced over worlds")  # fmt: skip


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Numba with `count` threads; from two on, relab's own parallel kernels are used for any batch."""
    before, wide = numba.get_num_threads(), jit.WIDE
    numba.set_num_threads(count)
    jit.set_threads(count)
    jit.WIDE = 1
    try:
        yield
    finally:
        jit.WIDE = wide
        jit.set_threads(1)
        numba.set_num_threads(before)


def check_threads(env: Env, actions_T: np.ndarray, seed: int) -> None:
    most, actions_T = jit.max_threads(), actions_T[:100]
    with threads(1):
        one = trace(env, actions_T, seed)
    with threads(most):
        compare(one, trace(env, actions_T, seed), f"1 and {most} Numba threads must give the same bytes",
                "a prange loop whose rows write to shared places or sum into one number")  # fmt: skip


def check_snapshot(env: Env, actions_T: np.ndarray, seed: int) -> None:
    """Half way, the worlds move into other slots of a larger batch; they must go on as if nothing had happened."""
    n, half = actions_T.shape[1], len(actions_T) // 2
    worlds = begin(env, n, seed)
    follow(worlds, actions_T[:half])
    snap = worlds.snapshot()
    for key, value in snap.items():
        if len(value) != n or value.dtype == object:
            fail("saved arrays need a row per world and no Python objects", f"`{key}` is {describe(value)}",
                 "a number shared by all worlds, or objects: save arrays from which they can be made")  # fmt: skip
    moved, slots = begin(env, n + 2, seed + 1), np.roll(np.arange(n), 1) + 2
    try:
        moved.restore(snap, rows=slots)
    except KeyError as error:
        raise EnvError(
            f"a restored world needs every field, but {error} was not saved. Probable cause: `save`."
        ) from error
    actions = np.concatenate([actions_T[half:, :2], actions_T[half:]], axis=1)[:, : n + 2]
    actions[:, slots] = actions_T[half:]
    resumed = follow(moved, actions)
    compare(follow(worlds, actions_T[half:]), {key: array[:, slots] for key, array in resumed.items()},
            "a restored world must go on exactly",
            "something the future depends on is not in State, or not in save / load")  # fmt: skip


def check_clock(env: Env, n: int, seed: int) -> None:
    """Without time limit, the episodes that get as far as the horizon must not all end right there."""
    horizon = env.spec.horizon
    if horizon is None or horizon > CLOCK_STEPS or env.spec.timeout_is_terminal:
        return
    worlds = Worlds(env, n, time_limit=None)
    worlds.reset(seeds(n, seed))
    lengths: list[int] = []
    for action in random_actions(env.spec, n, horizon + 1, seed):
        episodes = worlds.step(action).episodes
        lengths += [] if episodes is None else episodes.length.tolist()
    went_on = (worlds.book.length > horizon).any()
    if lengths.count(horizon) >= 3 and not went_on:
        fail("the time limit belongs to Worlds: an env must not look at the clock",
             f"without it, all {lengths.count(horizon)} episodes that reached the horizon {horizon} still ended there",
             "the env counts steps and reports its limit as an end of the task")  # fmt: skip
