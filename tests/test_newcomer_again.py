"""What a newcomer with logs of her own tripped over: a case each, as she had it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import relab
from relab.cli import main
from relab.health.examine import examine
from relab.health.view import View
from relab.logger import Logger
from relab.record.bounds import with_error
from relab.record.history import Column, History
from relab.runs.course import course_on


def table(path: Path, rows: dict[str, list[object]]) -> Path:
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    path.write_text("\n".join([*lines, ""]))
    os.utime(path, (1e9, 1e9))  # nobody writes it any more
    return path


def test_seeds_of_one_file_that_rise_get_a_proposal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Views were compared by their arrays, which raises."""
    steps = [1000 * i for i in range(1, 21)] * 5
    seeds = [seed for seed in range(5) for _ in range(20)]
    path = table(tmp_path / "seeds.csv", {"step": steps, "seed": seeds,
                                          "reward": [s / 100 + seed for s, seed in zip(steps, seeds)]})  # fmt: skip
    assert main(["next", str(path)]) == 0
    assert "still rises at the end" in capsys.readouterr().out
    assert main(["examine", "--json", str(path)]) == 0


def test_rows_of_few_episodes_have_the_noise_between_them() -> None:
    """Rows of 1 to 3 episodes: 317.3 was told as ± 14, from what is within a row."""
    rng, errors = np.random.default_rng(0), []
    for _ in range(60):
        counts = rng.integers(1, 4, 30)
        rows = [rng.normal(250.0, 120.0, n) for n in counts]
        named = {
            "return/mean": [r.mean() for r in rows],
            "return/std": [r.std() for r in rows],
            "return/episodes": counts,
        }
        columns = {k: Column(np.arange(30) * 512 + 512, np.asarray(v, np.float64)) for k, v in named.items()}
        run = History(Path("run"), columns=columns, axes=dict.fromkeys(columns, "env_steps"))
        last = course_on(run, "return/mean").points[-1]
        assert last.df < 60
        errors.append(last.se / (120 * np.sqrt((1 / counts[-last.n :]).sum()) / last.n))
    assert np.median(errors) == pytest.approx(1.0, abs=0.25)


def test_what_hardly_moves_is_not_called_too_noisy(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with Logger(tmp_path / "run") as log:
        for i, level in enumerate(np.linspace(9.4, 9.8, 10), 1):
            log.evaluation(1000 * i, list(level + 0.5 * rng.standard_normal(10)))
            log.log(1000 * i, {"value/loss": 1.0 + i})
    (run,) = relab.load(tmp_path)
    assert run.verdict.kind == "flat"


def test_steps_of_a_captured_program_may_repeat(tmp_path: Path) -> None:
    with Logger(tmp_path / "run", config={"env_id": "CartPole-v1"}) as log:
        for i in range(60):
            log.log(100 * (i // 2), {"return/mean": 20.0 + i})
    assert not any(f.slug == "steps-not-monotone" for f in examine(tmp_path / "run").findings)


@pytest.mark.parametrize(("name", "family", "guessed"), [
    ("mini_lr01", "ppo", True), ("run_ppo_lr01", "ppo", False), ("PPO", "ppo", False), ("trpo-like", "ppo", True),
    ("tracking_ac", "trackingac", False),
])  # fmt: skip
def test_the_name_of_a_script_is_no_algorithm(name: str, family: str, guessed: bool) -> None:
    columns = {"policy/clip_share": Column(np.arange(5), np.zeros(5))}
    view = View(History(Path("run"), columns=columns, config={"algo": {"name": name}}, source="csv"), "run")
    assert (view.algo, view.algo_is_guessed) == (family, guessed)


def test_what_explains_one_run_is_not_said_of_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for lr in (0.1, 3e-4):
        settings = {"env_id": "CartPole-v1", "algo": "ppo", "learning_rate": lr, "seed": 0, "total_timesteps": 100_000}
        rows = {"global_step": [1000 * i for i in range(1, 101)], "reward": [9.3 + 0.1 * (i % 3) for i in range(100)],
                "approx_kl": [0.01] * 100}  # fmt: skip
        (tmp_path / f"lr{lr}").mkdir()
        table(tmp_path / f"lr{lr}" / "log.csv", rows)
        (tmp_path / f"lr{lr}" / "config.json").write_text(json.dumps(settings))
    assert main(["examine", str(tmp_path)]) == 0
    assert "explained by steps-too-large in 1 of 2" in capsys.readouterr().out


def test_a_level_of_a_comparison_is_within_the_steps_that_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """90 % of the way to 200 was asked of runs that are compared where all of them stand at 20."""
    for name, rows in (("short", 20), ("long", 200)):
        for seed in range(5):
            with Logger(tmp_path / f"{name}_s{seed}", config={"env_id": "Mine-v0", "kind": name, "seed": seed}) as log:
                for i in range(1, rows + 1):
                    log.log(100 * i, {"return/mean": float(i) + 0.1 * seed})
    assert main(["compare", str(tmp_path)]) == 0
    level = re.search(r"median steps to (\S+) \(90 % of the way", capsys.readouterr().out)
    assert level is not None
    assert float(level[1]) < 21


def test_an_error_outside_of_the_bounds_is_whole() -> None:
    assert with_error(-10.28, 0.13, (1.0, 500.0), str) == " ± 0.13"
