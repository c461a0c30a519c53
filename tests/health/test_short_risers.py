"""Logs that end on their way: is a rise taken for a halt, and that of one seed for that of its config?"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from relab.advise.proposal import Nothing, Proposal
from relab.advise.propose import propose
from relab.health import words
from relab.health.examine import Report, examine
from relab.health.rule import all_rules

RULE = "below-known-level"


def trained(folder: Path, end: float, seed: int, steps: int = 25_000, halt: float = 1.0) -> Path:
    """What Stable-Baselines3 logs of CartPole where returns rise from 22 to `end` until `halt` of the steps."""
    rng, played, rows, t, due = np.random.default_rng(seed), [], [], 0, 1024
    while t < steps:
        level = 22 + (end - 22) * min(t / (halt * steps), 1.0)
        played.append(min(8 + int(rng.exponential(level - 8)), 500))
        t += played[-1]
        if t >= due:
            mean = float(np.mean(played[-100:]))
            rows.append({"time/total_timesteps": due, "rollout/ep_rew_mean": mean, "rollout/ep_len_mean": mean,
                         "train/learning_rate": 3e-4, "train/approx_kl": 0.01, "train/entropy_loss": -0.6,
                         "train/clip_fraction": 0.1, "train/explained_variance": 0.5})  # fmt: skip
            due += 1024
    folder.mkdir(parents=True)
    with (folder / "progress.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    settings = {"algo": "PPO", "env_id": "CartPole-v1", "learning_rate": 3e-4, "seed": seed, "total_timesteps": steps}
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def slugs(report: Report) -> set[str]:
    return {f.slug for f in report.findings if f.severity != "info"}


@pytest.mark.parametrize("end", [60, 80, 120, 200])
def test_a_short_run_that_rises_is_not_said_to_have_halted(tmp_path: Path, end: float) -> None:
    """With half of the steps of the quickest published run: noise hid the rise of 42 of 80, which were warned."""
    warned = [seed for seed in range(10) if RULE in slugs(examine(trained(tmp_path / f"s{seed}", end, seed)))]
    assert len(warned) <= 1


def test_a_run_that_stands_far_below_is_still_told(tmp_path: Path) -> None:
    assert RULE in slugs(examine(trained(tmp_path / "early", 90, 0, steps=45_000, halt=0.2)))
    assert RULE in slugs(examine(trained(tmp_path / "whole", 90, 0, steps=100_000, halt=0.2)))


# ---- One seed of five


def folder_of(root: Path, rising: int) -> Report:
    for seed in range(5):
        trained(root / f"seed{seed}", 140, seed, steps=45_000, halt=1.0 if seed >= 5 - rising else 0.3)
    return examine(root)


def test_more_steps_are_not_proposed_for_the_one_seed_that_still_rises(tmp_path: Path) -> None:
    advice = propose(folder_of(tmp_path / "runs", rising=1))
    assert isinstance(advice, Nothing)
    told = advice.why + " ".join(advice.passed_over)
    assert "in 1 of the 5 seeds of seed4's config the return still rises" in told


def test_of_seeds_that_rise_the_middle_one_is_gone_on_from(tmp_path: Path) -> None:
    report = folder_of(tmp_path / "runs", rising=5)
    advice = propose(report)
    assert isinstance(advice, Proposal)
    assert advice.source == "still-improving"
    finals = {each.view.name: each.view.verdict.final for each in report.runs}
    best, worst = max(finals, key=finals.__getitem__), min(finals, key=finals.__getitem__)
    assert advice.parent not in (best, worst)


# ---- What mends it


def test_what_explain_names_next_does_not_deny(tmp_path: Path) -> None:
    advice = propose(examine(trained(tmp_path / "run", 90, 0, steps=100_000, halt=0.2)))
    assert isinstance(advice, Nothing)
    assert f"learning_rate may mend {RULE}, but no run here and no preset says to which value" in advice.why
    assert "algo.lr, algo.ent_coef, algo.gamma, which way is not known" in words.about_rule(all_rules()[RULE])
