"""Are healthy runs of other libraries left in peace? Runs like these were warned about when rules first met them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relab.health.examine import examine
from relab.health.rules.curve import run_incomplete
from relab.health.view import View
from relab.record.history import Column, History

ROWS = 40


def sb3(folder: Path, returns: np.ndarray, evaluated: np.ndarray, variance: np.ndarray) -> Path:
    """progress.csv and evaluations.npz as Stable-Baselines3 writes them."""
    folder.mkdir(parents=True)
    rows = [f"{2048 * (i + 1)},{r:.6g},50,{v:.4g}" for i, (r, v) in enumerate(zip(returns, variance))]
    head = "time/total_timesteps,rollout/ep_rew_mean,rollout/ep_len_mean,train/explained_variance"
    (folder / "progress.csv").write_text("\n".join([head, *rows]) + "\n")
    np.savez(folder / "evaluations.npz", timesteps=np.arange(1, len(evaluated) + 1) * 8192, results=evaluated,
             ep_lengths=np.full(evaluated.shape, 50))  # fmt: skip
    return folder


def warned(folder: Path) -> list[str]:
    return [f.slug for f in examine(folder).main if f.severity != "info"]


def learned(top: float) -> np.ndarray:
    """Training that rises before the first evaluation is made, and stays."""
    return np.concatenate([[0.9, 0.18, 0.22, 0.6, 0.95], np.full(ROWS - 5, 1.0)]) * top


def test_what_was_learned_before_the_first_evaluation_was_learned(tmp_path):
    evaluated = np.full((10, 8), 1.2) + 0.001 * np.random.default_rng(0).normal(size=(10, 8))
    assert warned(sb3(tmp_path / "solved", learned(1.2), evaluated, np.full(ROWS, 0.9))) == []
    flat = 1.2 + 0.2 * np.random.default_rng(0).normal(size=ROWS)
    noisy = 1.2 + 0.2 * np.random.default_rng(1).normal(size=(10, 8))
    assert "has-not-learned" in warned(sb3(tmp_path / "flat", flat, noisy, np.full(ROWS, 0.9)))


def test_a_critic_is_not_blamed_where_all_episodes_end_alike(tmp_path):
    variance = np.full(ROWS, -2.5)
    assert warned(sb3(tmp_path / "ppo_alike", learned(8.0), np.full((10, 8), 8.0), variance)) == []
    apart = 8.0 + np.random.default_rng(0).normal(size=(10, 8))
    assert "critic-not-learning" in warned(sb3(tmp_path / "ppo_apart", learned(8.0), apart, variance))


def incomplete(rows: int, source: str) -> bool:
    """1,000 steps a row; 20,000 were planned, and the run said that it ended."""
    steps = np.arange(1, rows + 1) * 1000
    history = History(Path("run"), columns={"return/mean": Column(steps, np.linspace(0, 1, rows))}, source=source,
                      config={"total_steps": 20_000}, meta={"status": "finished"})  # fmt: skip
    return run_incomplete(View(history, "run", state="finished")) is not None


def test_the_last_row_of_a_foreign_log_may_come_before_its_end():
    assert not incomplete(19, "sb3"), "95 %, one row before the end"
    assert incomplete(12, "sb3")
    assert incomplete(19, "relab"), "a run of relab writes a row at its end"


@pytest.mark.parametrize("evaluations", [False, True])
def test_evaluations_hide_no_finding(tmp_path, evaluations):
    """Where nobody knows what random earns, a run that stands still is as sick with evaluations as without."""
    draw = np.random.default_rng(0)
    returns, kl = 9.4 + 0.2 * draw.normal(size=ROWS), np.full(ROWS, 0.01)
    kl[5] = 3.0  # one update that tore the policy apart
    entropy = -np.concatenate([np.linspace(0.69, 0.01, 8), np.full(ROWS - 8, 0.001)])
    rows = [f"{2048 * (i + 1)},{r:.6g},{r:.6g},{e:.4g},{k:.3g},0.1,0.5"
            for i, (r, e, k) in enumerate(zip(returns, entropy, kl))]  # fmt: skip
    head = ("time/total_timesteps,rollout/ep_rew_mean,rollout/ep_len_mean,train/entropy_loss,train/approx_kl,"
            "train/clip_fraction,train/explained_variance")  # fmt: skip
    (tmp_path / "progress.csv").write_text("\n".join([head, *rows]) + "\n")
    if evaluations:
        np.savez(tmp_path / "evaluations.npz", timesteps=np.arange(1, 11) * 4096,
                 results=9.4 + 0.2 * draw.normal(size=(10, 5)), ep_lengths=np.full((10, 5), 9))  # fmt: skip
    slugs = [f.slug for f in examine(tmp_path).findings if f.severity == "warning"]
    assert {"diverged", "entropy-collapse"} <= set(slugs)


@pytest.mark.parametrize("evaluations", [False, True])
def test_a_start_of_few_episodes_is_no_rise_in_training(tmp_path, evaluations):
    """SB3's mean of 100 episodes is of two in its first row: by luck the lowest of all. Evaluations no better than
    random hid that the critic explains nothing, because training was taken to have risen before them."""
    rolling = np.concatenate([[-1348], -1255 + 8 * np.random.default_rng(0).normal(size=ROWS - 1)])
    rows = [f"{512 * (i + 1)},{r:.6g},200,{-1.4:.4g},0.005,0.02,0.001" for i, r in enumerate(rolling)]
    head = ("time/total_timesteps,rollout/ep_rew_mean,rollout/ep_len_mean,train/entropy_loss,train/approx_kl,"
            "train/clip_fraction,train/explained_variance")  # fmt: skip
    (tmp_path / "progress.csv").write_text("\n".join([head, *rows]) + "\n")
    (tmp_path / "monitor.csv").write_text('#{"t_start": 1763500000.0, "env_id": "Pendulum-v1"}\nr,l,t\n')
    if evaluations:
        returns = -1260 + 300 * np.random.default_rng(1).normal(size=(8, 10))
        np.savez(tmp_path / "evaluations.npz", timesteps=np.arange(1, 9) * 2048, results=returns,
                 ep_lengths=np.full((8, 10), 200))  # fmt: skip
    slugs = {f.slug for f in examine(tmp_path).findings if f.severity == "warning"}
    assert {"has-not-learned", "critic-not-learning"} <= slugs
