"""Does the critic know which of several actions is better? Its order of five, against that of worlds run again.

From each looked-at state the policy draws five actions. What they are worth is told by many re-rollouts, which follow
the policy; the critic's word is r + gamma V(s') after one step. value: Spearman's rank correlation of the two, mean
over states in which the actions differ at all. Beside it, what 1, 4 and 16 other re-rollouts know of the same truth.
"""

from __future__ import annotations

import math

import numpy as np

from relab.base.streams import generator, world_seeds
from relab.train.algos.finetune import rerollout
from relab.train.algos.finetune.equations import spearman
from relab.train.envs.base import Worlds
from relab.train.kernels.rng import mix
from relab.train.probes.result import ProbeResult
from relab.train.probes.round import Round
from relab.train.probes.value_vs_rerun import visited

SAMPLES = (1, 4, 16)  # re-rollouts whose order is shown beside the critic's


def action_ranking(at: Round) -> list[ProbeResult]:
    cfg, agent, gamma = at.cfg.action_ranking, at.state.agent, at.gamma
    assert gamma is not None, "only asked of algorithms with a discount"
    states = visited(at, agent, cfg.starts, cfg.spread, "action_ranking")
    rows = np.repeat(np.arange(cfg.starts), cfg.actions)
    streams = mix(world_seeds(at.seed, f"probe/action_ranking/{at.iteration}/five", len(rows)))
    drawn = agent.act(states.obs_BD[rows], np.zeros((len(rows), 0), np.float32), streams).action
    action, snaps = agent.to_env(drawn), {name: x[rows] for name, x in states.snapshots.items()}
    critic_R, steps = lookahead(at, snaps, action, gamma)
    draw = generator(at.seed, f"probe/action_ranking/{at.iteration}/again")
    worlds = rerollout.make_worlds(at.env, len(rows), max(SAMPLES) + cfg.truth, 256)
    again = rerollout.reruns(
        worlds, agent, snaps, action, max(SAMPLES) + cfg.truth, gamma, cfg.cut, rerollout.Ways(), draw
    )
    truth_R = again.q_SN[:, max(SAMPLES) :].mean(1)
    orders = {"critic": critic_R} | {f"mc{n}": again.q_SN[:, :n].mean(1) for n in SAMPLES}
    ranks = {name: agreement(x, truth_R, cfg.actions) for name, x in orders.items()}
    rho_S = ranks.pop("critic")
    noise = float(rho_S.std(ddof=1) / math.sqrt(len(rho_S))) if len(rho_S) > 1 else math.nan
    more = {name: float(x.mean()) if len(x) else math.nan for name, x in ranks.items()}
    more |= {"states": len(rho_S), "truth": cfg.truth, "sim_steps": states.sim_steps + steps + again.sim_steps}
    level = float(rho_S.mean()) if len(rho_S) else math.nan
    return [ProbeResult("action_ranking", "rank_correlation", level, noise, len(rho_S), "share", more)]


def lookahead(at: Round, snaps: dict[str, np.ndarray], action: np.ndarray, gamma: float) -> tuple[np.ndarray, int]:
    """r + gamma V(s') of each action, and the steps of worlds that it took."""
    worlds = Worlds(at.env, len(action))
    worlds.restore(snaps)
    step = worlds.step(np.asarray(action).reshape(worlds.action_shape))
    ended = (step.terminated | step.truncated)[:, 0]
    after = np.where(ended[:, None], step.final_obs[:, 0], step.obs[:, 0])
    v = at.state.agent.value(np.ascontiguousarray(after), np.zeros((len(after), 0), np.float32))
    return step.reward[:, 0] + gamma * np.where(step.terminated[:, 0], 0.0, v), worlds.sim_steps


def agreement(guess_R: np.ndarray, truth_R: np.ndarray, actions: int) -> np.ndarray:
    """Rank correlation by state, of those in which the truth tells actions apart; no order at all counts as 0."""
    pairs = zip(guess_R.reshape(-1, actions), truth_R.reshape(-1, actions))
    rho = [spearman(a, b) if np.ptp(a) > 0 else 0.0 for a, b in pairs if np.ptp(b) > 1e-9]
    return np.array(rho)
