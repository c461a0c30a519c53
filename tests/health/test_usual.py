"""Is a value called a library's default only where it is one?"""

from types import SimpleNamespace

from relab.health.usual import usual_values


def dqn(steps):
    config = {"foreign.target_update_interval": 1_000_000, "foreign.learning_rate": 0.1, "foreign.tau": 1.0}
    history = SimpleNamespace(trained_by_relab=False)
    return SimpleNamespace(config=config, algo="dqn", history=history, last_step=steps, planned=steps, unfinished=False)


def test_a_default_that_fits_keeps_its_name():
    assert usual_values(dqn(1_000_000)) == [
        ("Stable-Baselines3's default for DQN", {"foreign.target_update_interval": 10_000, "foreign.tau": 1.0})
    ]


def test_a_default_that_was_cut_to_a_short_run_is_not_called_one():
    (default, whole), (why, cut) = usual_values(dqn(5_000))
    assert (default, whole) == ("Stable-Baselines3's default for DQN", {"foreign.tau": 1.0})
    assert cut == {"foreign.target_update_interval": 100}
    assert why == "2% of the run's steps; Stable-Baselines3's default for DQN, 10,000, is too long for it"
