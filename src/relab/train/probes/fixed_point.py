"""Where does the critic go, if the policies stay as they are? The fixed point w_sharp, solved, and the way to it.

value: |w - w_sharp|; noise: its standard error, from the spread of the sample that w_sharp was solved on (delta method,
trajectories counted). With `capped` a second row holds the iteration that the studied program took for the fixed point.
"""

from __future__ import annotations

import math

import numpy as np

from relab.train.probes.linear import Linear, Solution, iterate_small, times
from relab.train.probes.result import ProbeResult
from relab.train.probes.tracking_round import TrackingRound


def fixed_point(at: TrackingRound) -> list[ProbeResult]:
    system, cfg = at.linear, at.cfg.fixed_point
    solution = system.solve(cfg.tol)
    gap = at.state.agent.w - solution.w
    size = float(np.linalg.norm(gap))
    last = at.memory.get("w_sharp")
    more = {
        "residual": solution.residual, "converged": solution.residual <= cfg.tol, "refinements": solution.refinements,
        "w_sharp_norm": float(np.linalg.norm(solution.w)), "w_norm": float(np.linalg.norm(at.state.agent.w)),
        "w_sharp_drift": None if last is None else float(np.linalg.norm(solution.w - last)),
        "teacher_distance": float(np.linalg.norm(solution.w - at.state.agent.teacher_N)),
        "td_loss": float(np.square(system.delta(at.state.agent.w)).mean()),
        "td_loss_sharp": float(np.square(system.delta(solution.w)).mean()),
        "rho2_mean": float(np.square(system.rho).mean()), "rows_per_feature": system.n / system.size,
    }  # fmt: skip
    at.memory["w_sharp"] = solution.w
    rows = [ProbeResult("fixed_point", "w_gap", size, error_of_gap(system, solution, gap), system.n, "", more)]
    return rows + ([capped(at, solution)] if cfg.capped else [])


def error_of_gap(system: Linear, solution: Solution, gap: np.ndarray) -> float:
    """w_sharp errs by A^-1 mean(rho delta phi): along the gap that is the mean of one number per transition."""
    size = float(np.linalg.norm(gap))
    if system.n <= system.size:
        return math.nan  # as many unknowns as rows: every temporal difference can be made 0, which tells nothing
    if size == 0.0:
        return 0.0
    lever = system.backwards(gap / size, turned=True)
    along: np.ndarray = np.empty(system.n)
    times(system.phi, lever, along)
    return system.spread(along * system.rho * system.delta(solution.w) * math.sqrt(system.size))


def capped(at: TrackingRound, solution: Solution) -> ProbeResult:
    """w <- w + alpha_w mean(rho delta phi), at most max_iters times: what it stops at is no fixed point."""
    system, cfg, agent = at.linear, at.cfg.fixed_point, at.state.agent
    stop = iterate_small(system.steered, system.b, agent.w, at.state.cfg.alpha_w / math.sqrt(system.size),
                         cfg.max_iters, cfg.capped_tol)  # fmt: skip
    more = {"converged": stop.converged, "num_iters": stop.steps, "max_iters": cfg.max_iters, "tol": cfg.capped_tol,
            "last_step": stop.last_step, "to_w_sharp": float(np.linalg.norm(stop.w - solution.w))}  # fmt: skip
    return ProbeResult("capped", "w_gap", float(np.linalg.norm(agent.w - stop.w)), math.nan, system.n, "", more)
