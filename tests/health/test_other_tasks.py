"""Runs of other tasks are no arms of one setting, and a run that failed vouches for no value."""

from types import SimpleNamespace

from relab.health.remedy import known_values
from relab.health.rules.arms import slices


def run(env, steps, hidden, state="finished"):
    config = {"env.name": env, "total_steps": steps, "algo.hidden": hidden, "algo.lr": 1e-3}
    history = SimpleNamespace(source="relab", trained_by_relab=True)
    return SimpleNamespace(config=config, meta={}, state=state, name=env, algo="dqn", history=history, reference=None)


def keys(*runs):
    return [key for key, _ in slices([SimpleNamespace(views=[one]) for one in runs])]


def test_arms_share_task_and_layers():
    assert keys(run("cartpole-v1", 1500, [16]), run("cartpole-v1", 5000, [16])) == ["total_steps"]
    assert keys(run("cartpole-v1", 1500, [16]), run("gym:FrozenLake-v1", 5000, [16])) == []
    assert keys(run("cartpole-v1", 1500, [16]), run("cartpole-v1", 5000, [64])) == []


def test_a_parent_that_failed_is_no_reference():
    child, parent = run("cartpole-v1", 1500, [16]), run("cartpole-v1", 1500, [16], state="failed")
    child.reference, child.is_parent, parent.config = parent, True, {**parent.config, "algo.lr": 1e30}
    assert not any("parent" in why for why, _ in known_values(child, parent))
