"""Does a page of a folder with several tools, algorithms and environments say of each run only what is its own?"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from relab.cli import main
from relab.report import sections, svg

GOOD = np.interp(np.linspace(0, 1, 50), [0, 0.4, 1], [30, 470, 480])
LOST = np.interp(np.linspace(0, 1, 50), [0, 0.4, 0.6, 1], [36, 468, 9.4, 9.4])


CLIPPED = "train/clip_fraction"


def progress(folder: Path, returns: np.ndarray, lr: float = 3e-4, extra: str = CLIPPED, **config: object) -> None:
    """Stable-Baselines3's progress.csv, and a config beside it."""
    folder.mkdir(parents=True)
    names = ["time/total_timesteps", "time/time_elapsed", "rollout/ep_rew_mean", "rollout/ep_len_mean",
             "train/learning_rate", extra]  # fmt: skip
    rng = np.random.default_rng(zlib.crc32(folder.name.encode()))
    values = returns * (1 + 0.001 * rng.normal(size=len(returns)))
    rows = [[1024 * (i + 1), 3 * (i + 1), value, abs(value), lr, 0.1] for i, value in enumerate(values)]
    (folder / "progress.csv").write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n")
    if config:
        (folder / "config.json").write_text(json.dumps({"learning_rate": lr, **config}))


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    root, cartpole = tmp_path_factory.mktemp("mixed"), {"algo": "PPO", "env": "CartPole-v1"}
    progress(root / "pair" / "fast", GOOD + 5, 1e-3, seed=0, **cartpole)
    progress(root / "pair" / "slow", LOST, 3e-4, seed=0, n_epochs=20, **cartpole)
    for seed in range(5):
        progress(root / "healthy" / f"s{seed}", GOOD, 3e-4, seed=seed, **cartpole)
    progress(root / "dqn", np.linspace(20, 300, 50), extra="rollout/exploration_rate", algo="DQN", buffer_size=1000)
    progress(root / "sac", np.linspace(-1200, -200, 50), extra="train/ent_coef", algo="SAC", buffer_size=1000)
    assert main(["report", str(root), "--out", str(root / "page.html")]) == 0
    return (root / "page.md").read_text()


def test_an_algorithm_is_not_given_the_environment_of_another_log(page):
    title = page.splitlines()[0]
    assert title.startswith("# PPO on CartPole-v1; DQN and SAC (environment not known): ")


def test_a_setting_that_healthy_runs_have_as_well_is_no_cause(page):
    assert "peak-then-collapse" in page
    assert "likely lr" not in page
    assert "lr x0.3" not in page
    assert "0.0003 → 0.001" not in page


def test_steps_and_time_of_a_group_are_both_of_each_run(page):
    assert "- healthy: 5 ended; 51.2k steps in 2m30s each" in page


def test_a_log_that_times_no_part_has_no_table_of_parts(page):
    assert "end to end" in page
    assert "other (start, compiling)" not in page


def test_a_panel_has_what_most_runs_log_and_leaves_nobody_out(tmp_path):
    """One run logs each episode, seven the mean of 100: all are returns of training."""
    (tmp_path / "a_own__CartPole-v1").mkdir()
    rows = [f"{1000 * i},{4 * i}" for i in range(1, 51)]
    (tmp_path / "a_own__CartPole-v1" / "log.csv").write_text("\n".join(["global_step,episode_reward", *rows, ""]))
    for k in range(7):
        progress(tmp_path / f"ppo{k}", GOOD + k, 1e-3 * (k + 1), seed=0, algo="PPO", env="CartPole-v1")
    progress(tmp_path / "pendulum", np.linspace(-1200, -200, 50), algo="SAC", env="Pendulum-v1")
    data = sections.build(tmp_path)
    panel = next(each.curve for each in data.panels if each.env == "CartPole-v1")
    assert panel.metric == "return/mean_100"
    assert [len(group.lines) for group in panel.groups] == [1] * 8
    assert [group.metric for group in panel.groups].count("return/mean") == 1
    texts = [key["text"] for key in svg.legend(panel)]
    assert not any("not logged" in text for text in texts)
    assert sum("training" in text or "return/mean" in text for text in texts) == 1


def test_what_some_logs_lack_is_not_said_of_all(tmp_path):
    progress(tmp_path / "with", GOOD, algo="PPO", env="CartPole-v1")
    for k in range(2):
        (tmp_path / f"bare{k}").mkdir()
        rows = [f"{1000 * i},{4 * i + k}" for i in range(1, 51)]
        (tmp_path / f"bare{k}" / "log.csv").write_text("\n".join(["global_step,episode_reward", *rows, ""]))
    said = sections.build(tmp_path).not_known
    assert "no settings were found with 2 of 3 logs" in said
    assert "no settings were found with the logs" not in said
