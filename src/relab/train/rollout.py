"""What happens when a policy meets an environment? collect() to learn, evaluate() to judge, rerun() to ask what if.

Rows: B = worlds x agents. Everything a policy needs to act on rows is a `Policy`; all three go through its `act`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.config import registry
from relab.record.evaluations import samples
from relab.record.spec import Action, Spec
from relab.train.acting import Acted as Acted
from relab.train.acting import Policy as Policy
from relab.train.acting import check_acted
from relab.train.envs.base import FROM_SPEC, Env, Episodes, Worlds
from relab.train.envs.check_static import EnvError
from relab.train.kernels.rng import fill_uniform, mix

Frames = Callable[[Worlds, np.ndarray], None]  # called before each step: the worlds, who still waits for an end [N,A]
BLOCK = 1024  # rows of one forward pass: their activations stay in cache
STEP_CAP = 100_000  # an evaluation without a time limit, or with a longer one, ends here, and says so (end "cap")


@dataclass
class Trajectory:
    """T steps of B rows. Index t holds what was seen and done at t, `final` the observations a time cut left behind."""

    obs_TBD: np.ndarray
    action_TBK: np.ndarray
    logp_TB: np.ndarray
    value_TB: np.ndarray  # filled by acting (recurrent nets) or by the learner
    reward_TB: np.ndarray
    terminated_TB: np.ndarray
    truncated_TB: np.ndarray
    alive_TB: np.ndarray  # acted at t; False rows are masked from everything
    fresh_TB: np.ndarray  # first step of an episode
    memory_TBM: np.ndarray  # memory before acting at t
    final: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)  # t, rows, obs, memory
    episodes: list[Episodes] = field(default_factory=list)
    whole: Any = None  # what fills it in one call, where that is possible (collecting.Whole)
    env_s: float = 0.0  # seconds that the environment took, and the policy; 0 where one call did both
    act_s: float = 0.0

    @classmethod
    def allocate(cls, steps: int, spec: Spec, worlds: int, action_row: np.ndarray, memory_dim: int) -> Trajectory:
        def zeros(dtype: Any, *more: int) -> np.ndarray:
            return np.zeros((steps, worlds * spec.agents, *more), dtype)

        logp, value, reward = zeros(np.float32), zeros(np.float32), zeros(np.float32)
        terminated, truncated, alive, fresh = zeros(bool), zeros(bool), zeros(bool), zeros(bool)
        obs, action = zeros(np.float32, spec.obs_dim), zeros(action_row.dtype, *action_row.shape[1:])
        memory = zeros(np.float32, memory_dim)
        return cls(obs, action, logp, value, reward, terminated, truncated, alive, fresh, memory)

    @property
    def ended_TB(self) -> np.ndarray:
        return self.terminated_TB | self.truncated_TB


@dataclass
class Cursor:
    """Where collection stands between two batches: memories, who starts an episode, each row's action stream."""

    memory_BM: np.ndarray
    fresh_B: np.ndarray
    rng_B: np.ndarray


def start(worlds: Worlds, policy: Policy, action_seeds: np.ndarray) -> Cursor:
    rows = action_seeds.size
    return Cursor(np.zeros((rows, policy.memory_dim), np.float32), np.ones(rows, bool), mix(action_seeds))


def collect(
    worlds: Worlds,
    policy: Policy,
    traj: Trajectory,
    cursor: Cursor,
    before: int = 0,
    frames: Callable[[Worlds], None] | None = None,
) -> None:
    """Act for T steps in all worlds, filling `traj`; worlds and cursor end where the next call goes on.

    `before`: steps that each world has taken already, for whoever is told of one. `frames` is called before each step.
    """
    traj.final.clear()
    traj.episodes.clear()
    traj.env_s = traj.act_s = 0.0
    parts = compiled_parts(worlds, policy, cursor) if frames is None else None
    if parts is None:
        collect_steps(worlds, policy, traj, cursor, frames)
    else:
        collect_whole(worlds, parts, traj, cursor)
    check_finite(worlds.env.spec, "observation", traj.obs_TBD, traj.alive_TB, before)
    check_finite(worlds.env.spec, "reward", traj.reward_TB[..., None], traj.alive_TB, before + 1)


def compiled_parts(worlds: Worlds, policy: Any, cursor: Cursor) -> Any:
    """The policy as data, where env and policy can be compiled together and one block of rows holds them all."""
    possible = cursor.rng_B.size <= BLOCK and hasattr(policy, "compiled") and offers_collect(worlds.env)
    return policy.compiled() if possible else None


def offers_collect(env: Any) -> bool:
    """Does the env's `collect` stand for its verbs? Not for those that a subclass or somebody else has replaced."""
    owner = next((cls for cls in type(env).__mro__ if "collect" in vars(cls)), None)
    verbs = ("step", "reset", "observe")
    return owner is not None and all(
        getattr(type(env), verb) is vars(owner).get(verb) and verb not in vars(env) for verb in verbs
    )


def collect_whole(worlds: Worlds, parts: Any, traj: Trajectory, cursor: Cursor) -> None:
    """The same as collect_steps, in one call."""
    if traj.whole is None or traj.whole.worlds is not worlds:
        from relab.train.collecting import Whole  # brings torch's BLAS, which not every environment needs

        traj.whole = Whole(worlds, registry.load(worlds.env.collect), traj)  # type: ignore[attr-defined]
    for episodes, cuts in traj.whole.collect(*parts, cursor.fresh_B, cursor.rng_B):
        if episodes is not None:
            traj.episodes.append(episodes)
        traj.final += [(t, rows, obs, cursor.memory_BM[rows]) for t, rows, obs in cuts]


def collect_steps(
    worlds: Worlds,
    policy: Policy,
    traj: Trajectory,
    cursor: Cursor,
    frames: Callable[[Worlds], None] | None = None,
) -> None:
    """Step by step, for any environment and any policy."""
    T, B = traj.reward_TB.shape
    shape = action_shape(worlds.env.spec.action, worlds.n, worlds.env.spec.agents)
    traj.terminated_TB[:], traj.truncated_TB[:] = False, False
    for t in range(T):
        if frames is not None:
            frames(worlds)
        cursor.memory_BM[cursor.fresh_B] = 0.0
        traj.obs_TBD[t] = worlds.obs.reshape(B, -1)
        traj.alive_TB[t], traj.fresh_TB[t] = worlds.alive.reshape(B), cursor.fresh_B
        if policy.memory_dim:
            traj.memory_TBM[t] = cursor.memory_BM
        t0 = time.perf_counter()
        acted = policy.act(traj.obs_TBD[t], cursor.memory_BM, cursor.rng_B)
        t1 = time.perf_counter()
        traj.action_TBK[t], traj.logp_TB[t], cursor.memory_BM = acted.action, acted.logp, acted.memory
        if acted.value is not None:
            traj.value_TB[t] = acted.value
        t2 = time.perf_counter()
        step = worlds.step(policy.to_env(acted.action).reshape(shape))
        traj.act_s, traj.env_s = traj.act_s + t1 - t0, traj.env_s + time.perf_counter() - t2
        traj.reward_TB[t] = step.reward.reshape(B)
        if step.episodes is None:
            cursor.fresh_B[:] = False
            continue
        note_ends(traj, t, step, cursor)


def check_finite(spec: Spec, what: str, x_TBD: np.ndarray, alive_TB: np.ndarray, first: int) -> None:
    """Nothing can be learned from what is no number, and one of them spoils every weight: told before it does.

    `first`: the steps that each world had taken when it gave the first row.
    """
    if np.isfinite(x_TBD).all():
        return
    bad_TB = ~np.isfinite(x_TBD).all(-1) & alive_TB  # what a dead agent sees is nobody's business
    for t, row in np.argwhere(bad_TB)[:1]:
        world, agent = divmod(int(row), spec.agents)
        value = x_TBD[t, row][~np.isfinite(x_TBD[t, row])][0]
        raise EnvError(not_finite(spec, what, value, f"in world {world}, agent {agent}, after {first + t:,} steps of"
                                  " each world"))  # fmt: skip


def not_finite(spec: Spec, what: str, value: float, where: str) -> str:
    return (f"every {what} must be a finite number (of 32 bits), but {spec.env} gave {value} {where}; mend the"
            " environment (relab.train.envs.check.check_env looks for the cause), or bound it there")  # fmt: skip


def note_ends(traj: Trajectory, t: int, step: Any, cursor: Cursor) -> None:
    """Book the episodes that ended at t: flags, what a time cut left behind, and which rows start anew."""
    B = traj.reward_TB.shape[1]
    traj.terminated_TB[t], traj.truncated_TB[t] = step.terminated.reshape(B), step.truncated.reshape(B)
    traj.episodes.append(step.episodes)
    cut = np.flatnonzero(traj.truncated_TB[t])
    if cut.size:
        traj.final.append((t, cut, step.final_obs.reshape(B, -1)[cut], cursor.memory_BM[cut]))
    was_over = traj.terminated_TB[t] | traj.truncated_TB[t] | ~traj.alive_TB[t]
    cursor.fresh_B = step.alive.reshape(B) & was_over


def action_shape(action: Action, worlds: int, agents: int) -> tuple[int, ...]:
    """The shape the environment contract asks for: [N,A] for one discrete choice, else [N,A,K]."""
    return (worlds, agents) if action.kind == "discrete" else (worlds, agents, action.dim)


@dataclass
class PlayedEpisodes:
    """Episodes per mode, in the order of the seeds, and the world steps they took."""

    # rows of {"seed", "return", "length", "success", "end"}, with "agent" where there are several
    episodes: dict[str, list[Document]]
    sim_steps: int

    def returns(self, mode: str) -> np.ndarray:
        """One per row of `episodes`; NaN where an episode never ended, and for slots that are not used."""
        return np.array([episode["return"] for episode in self.episodes[mode]])

    def world_means(self, mode: str) -> np.ndarray:
        """Mean return of each world's agents, which share an episode and are one sample; NaN where one never ended."""
        return np.array(samples(self.played(mode)))

    def played(self, mode: str) -> list[Document]:
        return [episode for episode in self.episodes[mode] if episode["end"] != "unused"]


def evaluate(
    env: Env,
    policy: Policy,
    seeds: np.ndarray,
    modes: Sequence[str] = ("det", "sampled"),
    frames: Frames | None = None,
    worlds: Worlds | None = None,
    cap: int = STEP_CAP,
) -> PlayedEpisodes:
    """The first episode of every agent in len(seeds) worlds, with the policy's mode ("det") and with sampled actions.

    Both run side by side from the same seeds, so their gap is paired. `worlds` saves making new ones each time.
    """
    if not set(modes) <= {"det", "sampled"}:
        raise ValueError(f"the modes of an evaluation are det and sampled, but got {', '.join(modes)}")
    modes = sorted(modes)  # the rows that take the mode come first
    n, A = len(seeds), env.spec.agents
    all_seeds = np.concatenate([seeds for _ in modes])
    worlds = worlds or Worlds(env, len(all_seeds))
    before = worlds.sim_steps
    worlds.reset(all_seeds)
    noise = mix(np.repeat(mix(all_seeds), A) + np.tile(np.arange(A, dtype=np.uint64), len(all_seeds)))
    first = first_episodes(worlds, policy, noise, n * A * ("det" in modes), frames, cap)
    for i, j in np.argwhere(~np.isfinite(first["ret"]))[:1]:
        where = f"as the sum of an episode of {first['length'][i, j]} steps, with seed {all_seeds[i]}"
        raise EnvError(not_finite(env.spec, "reward", first["ret"][i, j], where))
    rows = [describe(env.spec, first, i, j, all_seeds[i]) for i in range(len(all_seeds)) for j in range(A)]
    parts = {mode: rows[k * n * A : (k + 1) * n * A] for k, mode in enumerate(modes)}
    return PlayedEpisodes(parts, worlds.sim_steps - before)


def first_episodes(
    worlds: Worlds, policy: Policy, rng_B: np.ndarray, n_mode: int, frames: Frames | None, cap: int
) -> dict[str, np.ndarray]:
    """Run until each agent's first episode is over; later episodes in the same slot are not counted."""
    N, A = worlds.n, worlds.env.spec.agents
    shape = action_shape(worlds.env.spec.action, N, A)
    first = {"ret": np.zeros((N, A)), "length": np.zeros((N, A), np.int64), "end": np.zeros((N, A), np.int64)}
    first |= {"success": np.zeros((N, A), bool), "info": np.zeros((len(worlds.env.spec.channels), N, A))}
    waiting = worlds.alive.copy()  # slots that are not used never have an episode
    first["used"] = waiting.copy()
    memory, fresh = np.zeros((N * A, policy.memory_dim), np.float32), np.ones(N * A, bool)
    for t in range(min(worlds.env.spec.horizon or cap, cap)):
        if frames is not None:
            frames(worlds, waiting)
        memory[fresh] = 0.0
        acted = policy.act(worlds.obs.reshape(N * A, -1), memory, rng_B, n_mode)
        if t == 0:
            check_acted(policy, acted, shape, N * A)
        memory, alive = acted.memory, worlds.alive.reshape(-1).copy()
        step = worlds.step(policy.to_env(acted.action).reshape(shape))
        fresh[:] = False
        if step.episodes is not None:
            take(first, waiting, step.episodes)
            over = (step.terminated | step.truncated).reshape(-1) | ~alive
            fresh = step.alive.reshape(-1) & over
        if not waiting.any():
            break
    first["waiting"] = waiting
    first["length"][waiting] = worlds.book.length[waiting]
    return first


def take(first: dict[str, np.ndarray], waiting: np.ndarray, ended: Episodes) -> None:
    new = waiting[ended.world, ended.agent]
    at = ended.world[new], ended.agent[new]
    for key in ("ret", "length", "end"):
        first[key][at] = getattr(ended, key)[new]
    if ended.success is not None:
        first["success"][at] = ended.success[new]
    first["info"][:, at[0], at[1]] = ended.info[:, new]
    waiting[at] = False


def describe(spec: Spec, first: dict[str, np.ndarray], i: int, j: int, seed: np.uint64) -> Document:
    """One episode as the record keeps it; where none ended ("cap") or none began ("unused") there is no return."""
    used, open_end = bool(first["used"][i, j]), bool(first["waiting"][i, j])
    row: Document = {"seed": int(seed)}
    if spec.agents > 1:
        row["agent"] = j
    row["return"] = float(first["ret"][i, j]) if used and not open_end else float("nan")
    row["length"] = int(first["length"][i, j])
    row["success"] = bool(first["success"][i, j]) if used and spec.knows_success else None
    row["end"] = "unused" if not used else "cap" if open_end else spec.ends[int(first["end"][i, j])]
    if spec.channels:
        row["info"] = {c.name: float(first["info"][k, i, j]) for k, c in enumerate(spec.channels)}
    return row


@dataclass
class Reruns:
    """What k continuations of each of B rows (worlds x agents) earned."""

    return_BK: np.ndarray  # float64: sum of gamma^t r_t from the snapshot on; NaN for agents that were not alive there
    capped_BK: np.ndarray  # bool: not over when the cap was reached, so that the return lacks what came after
    sim_steps: int  # world steps that it took


def rerun(
    env: Env,
    policy: Policy,
    snapshots: dict[str, np.ndarray],
    k: int,
    rng: np.random.Generator,
    gamma: float = 1.0,
    cap: int = STEP_CAP,
    memory_BM: np.ndarray | None = None,
    time_limit: int | None = FROM_SPEC,
    mode: str = "sampled",
) -> Reruns:
    """From every saved world (rows of Worlds.snapshot) k independent continuations to the end of the episode.

    Actions are sampled (or the policy's mode: "det"), and worlds draw from streams of their own, all from `rng`; a
    bridged Gymnasium environment goes on with its own stream, the same k times. `memory_BM`: what a recurrent policy
    remembered in the snapshots; `time_limit` as in Worlds. The worlds are new ones: those that the snapshots were taken
    from do not notice.
    """
    N, A = len(snapshots["book.tick"]), env.spec.agents
    worlds = Worlds(env, N * k, time_limit)
    worlds.restore(snapshots, from_rows=np.repeat(np.arange(N), k))
    worlds.state.rng[:] = mix(rng.integers(2**63, size=N * k))
    noise = mix(rng.integers(2**63, size=N * k * A))
    memory = np.zeros((N * A, policy.memory_dim), np.float32) if memory_BM is None else memory_BM
    memory = np.repeat(memory.reshape(N, 1, A, -1), k, 1).reshape(N * k * A, -1)
    return_R, capped_R = continued(worlds, policy, memory, noise, gamma, cap, N * k * A * (mode == "det"))
    by_row = (N, k, A)
    return_BK, capped_BK = (x.reshape(by_row).swapaxes(1, 2).reshape(N * A, k) for x in (return_R, capped_R))
    return Reruns(return_BK, capped_BK, worlds.sim_steps)


def continued(
    worlds: Worlds, policy: Policy, memory: np.ndarray, rng_R: np.ndarray, gamma: float, cap: int, n_mode: int
) -> tuple[np.ndarray, np.ndarray]:
    """(discounted return, still going on at the cap) of every agent's episode from where it stands."""
    waiting = worlds.alive.reshape(-1).copy()
    return_R, weight = np.where(waiting, 0.0, np.nan), 1.0
    for _ in range(cap):
        if not waiting.any():
            break
        acted = policy.act(worlds.obs.reshape(waiting.size, -1), memory, rng_R, n_mode)
        memory = acted.memory
        step = worlds.step(policy.to_env(acted.action).reshape(worlds.action_shape))
        return_R[waiting] += weight * step.reward.reshape(-1)[waiting]
        weight *= gamma
        if step.episodes is not None:
            waiting &= ~(step.terminated | step.truncated).reshape(-1)
    return return_R, waiting


class RandomPolicy:
    """Uniform over the action space: the baseline every result is held against."""

    memory_dim = 0

    def __init__(self, action: Action):
        self.action = action

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        u = np.empty((len(obs_BD), self.action.dim))
        fill_uniform(rng_B, u)
        if self.action.kind == "continuous":
            low, high = self.ends()
            return Acted((low + u * (high - low)).astype(np.float32), np.zeros(len(u)), memory_BM)
        return Acted((u * np.array(self.action.n)).astype(np.int64), np.zeros(len(u)), memory_BM)

    def to_env(self, action: np.ndarray) -> np.ndarray:
        return action

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The box to draw from; where a bound is missing, 10, or 10 past the other bound, takes its place."""
        low, high = np.array(self.action.low), np.array(self.action.high)
        return (
            np.where(np.isfinite(low), low, np.minimum(-10, high - 10)),
            np.where(np.isfinite(high), high, np.maximum(10, low + 10)),
        )
