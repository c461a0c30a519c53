"""Are folders that somebody named told apart, where nothing but their names does?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import relab
from relab import cli
from report.made import write_run

HEAD = "time/total_timesteps,rollout/ep_rew_mean,train/learning_rate,train/clip_fraction"


def progress(folder: Path, end: float, seed: int, lr: Sequence[float] | float = 3e-4) -> None:
    """A log of Stable-Baselines3, without its settings."""
    folder.mkdir(parents=True)
    rates = np.broadcast_to(lr, 30)
    noise = np.random.default_rng(seed).normal(size=30)
    rows = [f"{256 * (i + 1)},{20 + end * i / 30 + noise[i]:.4f},{rates[i]:.6g},0.1" for i in range(30)]
    (folder / "progress.csv").write_text("\n".join([HEAD, *rows, ""]))


@pytest.fixture
def arms(tmp_path: Path) -> tuple[Path, Path]:
    for seed in range(3):
        progress(tmp_path / "plain" / f"seed{seed}", 50, seed)
        progress(tmp_path / "wrapped" / f"seed{seed}", 90, seed)
    return tmp_path / "plain", tmp_path / "wrapped"


def variants(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, int]:
    assert cli.main(["compare", *map(str, words), "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    return {row["label"]: row["mean"]["n"] for row in task["variants"]}


def test_named_folders_whose_runs_are_called_by_seeds_are_variants(arms, capsys):
    assert variants(capsys, *arms) == {"plain": 3, "wrapped": 3}
    runs = [path / f"seed{seed}" for path in arms for seed in range(3)]
    assert variants(capsys, *runs) == {"plain": 3, "wrapped": 3}, "as a shell spells out plain/* wrapped/*"
    assert [group.label for group in relab.load(*arms).groups] == ["plain", "wrapped"]


def test_runs_of_one_folder_that_are_called_by_seeds_are_one_config(arms):
    assert len(relab.load(arms[0]).groups) == 1
    assert "pools" not in repr(relab.compare(*arms))


def test_folders_of_one_name_are_told_apart(tmp_path, capsys):
    for above, end in (("old", 50), ("new", 90)):
        progress(tmp_path / above / "ppo" / "seed0", end, 0)
    assert variants(capsys, tmp_path / "old/ppo", tmp_path / "new/ppo") == {"new/ppo": 1, "old/ppo": 1}


def test_folders_with_the_same_settings_are_variants_where_there_is_nothing_else(tmp_path, capsys):
    for folder, seeds in (("before", (0, 1)), ("after", (2, 3))):
        for seed in seeds:
            write_run(tmp_path / folder / f"s{seed}", [20.0, 50, 90 + seed], seed)
    named = [tmp_path / "before", tmp_path / "after"]
    assert list(variants(capsys, *named).values()) == [2, 2]
    assert cli.main(["compare", *map(str, named)]) == 0
    assert "note: no setting tells the paths apart, so each path is a variant" in capsys.readouterr().out
    assert cli.main(["compare", *map(str, named), "--by", "settings"]) == 0
    assert capsys.readouterr().out.startswith("Nothing to compare: 4 runs")


def test_runs_that_are_named_one_by_one_stay_seeds_of_one_config(tmp_path, capsys):
    runs = [write_run(tmp_path / f"a_s{seed}", [20.0, 50, 90 + seed], seed) for seed in range(3)]
    assert cli.main(["compare", *map(str, runs)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Nothing to compare: 3 runs")
    assert "more than one path" not in text


def test_two_paths_are_compared_by_what_both_have(tmp_path):
    """One was evaluated, the other has returns of training alone."""
    rows = [{"step": 1000 * i, "episode_return": 10.0 + i} for i in range(1, 21)]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/train_log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluated = [row | {"eval_return": 20.0} for row in rows]
    (tmp_path / "b/train_log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in evaluated))
    text = repr(relab.compare(tmp_path / "a", tmp_path / "b"))
    assert "has no number" not in text, text
