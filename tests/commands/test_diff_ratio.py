"""Is a ratio shown only where it says something?"""

from __future__ import annotations

from pathlib import Path

import pytest

import made_up
from relab import cli
from relab.runs.settings import Difference, RunSettings, ratio


def test_only_of_numbers_above_zero() -> None:
    assert [ratio(a, b) for a, b in ((0.1, 0.2), (500, -1), (True, 1), (0, 3))] == ["  (x2)", "", "", ""]


def test_a_seed_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(made_up.run(tmp_path / f"s{seed}", 10.0, seed=seed)) for seed in (3, 1)]
    assert cli.main(["diff", *folders]) in (0, 1)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("seed")]
    assert "(x" not in line


def test_no_difference_says_how_much_was_compared() -> None:
    """A log of another tool may hold three settings of thirty: that they agree says nothing of the rest."""
    thin = RunSettings({"algo": {"name": "dqn", "lr": 0.001}, "env": {"name": "CartPole-v1"}})
    assert Difference([thin, thin]).alike == (
        "no difference in what is recorded (3 settings compared: algo.lr, algo.name, env.name); these records hold no"
        " other settings"
    )
    whole = RunSettings({"algo": {f"k{i}": i for i in range(20)}})
    assert Difference([whole, whole]).alike == "no difference (20 settings compared)"


def test_a_seed_that_only_the_names_tell_is_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (0, 1):
        folder = tmp_path / f"a_seed{seed}"
        folder.mkdir()
        (folder / "log.csv").write_text("step,return\n" + "".join(f"{i},{i + seed}\n" for i in range(5)))
    assert cli.main(["diff", str(tmp_path / "a_seed0"), str(tmp_path / "a_seed1")]) == 0
    assert capsys.readouterr().out == "seed  0 -> 1\n"


def test_a_seed_that_only_cleanrls_name_tells_is_a_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / f"CartPole-v1__ppo__{seed}__169000000{seed}" for seed in (1, 2)]
    for folder in folders:
        folder.mkdir()
        (folder / "log.csv").write_text("global_step,episodic_return\n" + "".join(f"{i},{i}\n" for i in range(5)))
    assert cli.main(["diff", *map(str, folders)]) == 0
    assert capsys.readouterr().out == "seed  1 -> 2\n"
    assert cli.main(["compare", str(tmp_path)]) == 0
    assert "there is no other config" in capsys.readouterr().out, "they are seeds of one"
