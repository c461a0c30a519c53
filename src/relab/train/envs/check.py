"""Does an environment keep the contract? `check_env(env)` raises EnvError with what must hold, what was found and the
probable cause. Silence means that training, evaluation, resume and probes can rely on it.

    from relab.train.envs.check import check_env
    check_env(MyEnv())
"""

from __future__ import annotations

from relab.train.envs import check_moving as moving
from relab.train.envs import check_static as static
from relab.train.envs.base import Env
from relab.train.envs.check_static import EnvError

__all__ = ["EnvError", "check_env"]


def check_env(env: Env, worlds: int = 5, steps: int = 300, seed: int = 0, render: bool = True) -> None:
    """Every check, in an order in which the first to fail is nearest to the cause; random actions from `seed`."""
    static.check_spec(env)
    static.check_words(env)
    static.check_action_spec(env)
    static.check_verbs(env)
    static.check_state(env, worlds)
    moving.check_resets(env, worlds, seed)
    moving.check_observe(env, worlds, seed)
    actions_T = moving.random_actions(env.spec, worlds, steps, seed)
    moving.check_outcomes(env, actions_T, seed)
    moving.check_dead_agents(env, actions_T, seed)
    moving.check_determinism(env, actions_T, seed)
    moving.check_action_range(env, actions_T, seed)
    moving.check_independence(env, actions_T, seed)
    moving.check_threads(env, actions_T, seed)
    moving.check_snapshot(env, actions_T, seed)
    moving.check_clock(env, worlds, seed)
    if render and env.spec.renders:
        moving.check_render(env, seed)
