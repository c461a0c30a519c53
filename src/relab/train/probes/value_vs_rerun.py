"""Does the critic believe what the policy earns? V(s) against discounted returns re-rolled from the same s.

value: mean of V(s) - G(s), over states that the policy visits; above 0 the critic promises too much. noise: standard
error over worlds, whose agents are one sample. V is learned as if there were no time limit (it bootstraps where one
cuts), so reruns go on past it, unless the task itself ends there or the observation tells the time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.base.documents import Document
from relab.base.streams import generator, world_seeds
from relab.train import rollout
from relab.train.envs.base import FROM_SPEC, Worlds
from relab.train.probes.result import ProbeResult
from relab.train.probes.round import Round
from relab.train.rollout import Policy

LEFT = 1e-3  # share of what follows that a rerun may leave out


class States(NamedTuple):
    """What the looked-at worlds were in the middle of."""

    snapshots: dict[str, np.ndarray]  # a row per world
    obs_BD: np.ndarray  # rows: worlds x agents
    memory_BM: np.ndarray
    sim_steps: int


def value_vs_rerun(at: Round) -> list[ProbeResult]:
    cfg, agent = at.cfg.value_vs_rerun, at.state.agent
    states = visited(at, agent, cfg.starts, cfg.spread, "value_vs_rerun")
    value_B = np.asarray(agent.value(states.obs_BD, states.memory_BM), np.float64) * reward_scale(at)
    again, how = again_from(at, states)
    earned_B = again.return_BK.mean(1)
    gap_N, living = per_world(value_B - earned_B, at.env.spec.agents), np.isfinite(earned_B)
    noise = float(gap_N.std(ddof=1) / math.sqrt(len(gap_N))) if len(gap_N) > 1 else math.nan
    more = {
        "value_mean": mean(value_B[living]), "return_mean": mean(earned_B[living]),
        "correlation": correlation(value_B[living], earned_B[living]), "gap_sd": float(gap_N.std()),
        "rerun_sd": mean(again.return_BK[living].std(1)), "capped_share": mean(again.capped_BK[living]),
        "sim_steps": states.sim_steps + again.sim_steps,
    }  # fmt: skip
    return [ProbeResult("value_vs_rerun", "value_gap", mean(gap_N), noise, len(gap_N), "return", more | how)]


def again_from(at: Round, states: States) -> tuple[rollout.Reruns, Document]:
    """The reruns of these states, and how they were made."""
    cfg, agent, gamma = at.cfg.value_vs_rerun, at.state.agent, at.gamma
    assert gamma is not None, "only asked of algorithms with a discount"
    cap, mode = steps_of(gamma, cfg.cap), getattr(agent, "value_of", "sampled")  # optional in the contract
    rng = generator(at.seed, f"probe/value_vs_rerun/{at.iteration}")
    again = rollout.rerun(
        at.env, agent, states.snapshots, cfg.reruns, rng, gamma, cap, states.memory_BM, limit_of(at, gamma), mode
    )
    return again, {"reruns": cfg.reruns, "gamma": gamma, "cap": cap, "mode": mode}


def visited(at: Round, policy: Policy, worlds: int, spread: int, probe: str) -> States:
    """World i as the policy finds it after a number of its own steps that is drawn for it, 0 to spread - 1."""
    spec, where = at.env.spec, f"probe/{probe}/{at.iteration}"
    made, rows = Worlds(at.env, worlds), worlds * spec.agents
    made.reset(world_seeds(at.seed, f"{where}/env", worlds))
    when_N = generator(at.seed, f"{where}/when").integers(spread, size=worlds)
    cursor = rollout.start(made, policy, world_seeds(at.seed, f"{where}/action", rows))
    kept = States(made.snapshot(), made.obs.reshape(rows, -1).copy(), cursor.memory_BM.copy(), 0)
    for t in range(int(when_N.max())):
        advance(made, policy, cursor)
        keep(kept, made, cursor, when_N == t + 1)
    return kept._replace(sim_steps=made.sim_steps)


def advance(worlds: Worlds, policy: Policy, cursor: rollout.Cursor) -> None:
    """One step; whoever begins an episode remembers nothing."""
    rows = cursor.rng_B.size
    acted = policy.act(worlds.obs.reshape(rows, -1), cursor.memory_BM, cursor.rng_B)
    cursor.memory_BM, alive = acted.memory.copy(), worlds.alive.reshape(-1).copy()
    step = worlds.step(policy.to_env(acted.action).reshape(worlds.action_shape))
    over = (step.terminated | step.truncated).reshape(-1) | ~alive
    cursor.memory_BM[worlds.alive.reshape(-1) & over] = 0.0


def keep(kept: States, worlds: Worlds, cursor: rollout.Cursor, now_N: np.ndarray) -> None:
    """Put the marked worlds' rows into what is kept."""
    if not now_N.any():
        return
    for key, array in worlds.snapshot().items():
        if array.shape[1:] != kept.snapshots[key].shape[1:]:  # a bridged environment's trail grows with its episode
            kept.snapshots[key] = grown(kept.snapshots[key], array.shape[1:])
            array = grown(array, kept.snapshots[key].shape[1:])
        kept.snapshots[key][now_N] = array[now_N]
    now_B = np.repeat(now_N, worlds.spec.agents)
    kept.obs_BD[now_B] = worlds.obs.reshape(len(now_B), -1)[now_B]
    kept.memory_BM[now_B] = cursor.memory_BM[now_B]


def grown(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The array with room for at least that shape in each row, zeros where there was nothing."""
    larger = (len(array), *map(max, zip(array.shape[1:], shape)))
    room = np.zeros(larger, array.dtype)
    room[tuple(slice(0, n) for n in array.shape)] = array
    return room


def limit_of(at: Round, gamma: float) -> int | None:
    spec = at.env.spec
    return FROM_SPEC if gamma >= 1.0 or spec.timeout_is_terminal or spec.observes_time else None


def steps_of(gamma: float, cap: int) -> int:
    """Steps after which the discount leaves no more than LEFT, at most `cap`."""
    if gamma <= 0.0:
        return 1
    return min(cap, math.ceil(math.log(LEFT) / math.log(gamma))) if gamma < 1.0 else cap


def reward_scale(at: Round) -> float:
    """What the critic's numbers are multiplied by to be returns: rewards were divided by it, where they were scaled."""
    scale = at.state.to_tree().get("reward_scale")  # optional in the contract
    if not isinstance(scale, dict) or not float(np.asarray(scale["count"]).sum()):
        return 1.0
    return float(np.sqrt(np.asarray(scale["var"]).ravel()[0] + 1e-8))


def per_world(x_B: np.ndarray, agents: int) -> np.ndarray:
    """Means over each world's living agents; worlds without any are left out."""
    x_NA = x_B.reshape(-1, agents)
    living = np.isfinite(x_NA)
    some = living.any(1)
    return np.where(living, x_NA, 0.0).sum(1)[some] / living.sum(1)[some]


def mean(x: np.ndarray) -> float:
    return float(x.mean()) if x.size else math.nan


def correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    """Between states: does the critic know the good ones? None where one of the two does not vary."""
    if len(a) < 2 or not np.ptp(a) or not np.ptp(b):
        return None
    return float(np.corrcoef(a, b)[0, 1])
