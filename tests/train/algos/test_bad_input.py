"""What is said, and when, to settings, environments and algorithms that cannot work; and what odd ones do that can."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from relab.config.base import ConfigError
from relab.record.history import load
from relab.train.algos import dqn
from relab.train.contract import ContractError
from small_runs import run

SMALL = {"total_steps": "400", "algo__steps": "16", "algo__learning_starts": "100", "algo__minibatch": "16",
         "algo__hidden": "[8]", "eval__every": "0", "eval__episodes": "2", "save__every": "0"}  # fmt: skip
ENVS = {"dqn": "cartpole", "sac": "pendulum"}
ALGOS = pytest.mark.parametrize("algo", ENVS)


def trained(folder: Path, algo: str, **settings: str):
    ended = run(folder, **({"algo": algo, "env": ENVS[algo]} | SMALL | settings))
    assert ended.status == "finished"
    return load(folder)


# ---- What is refused, with its numbers


@ALGOS
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algo__learning_starts": "400"}, "`learning_starts` = 400 must lie before the end of the run, but total_st"),
        ({"algo__learning_starts": "9"}, "`minibatch` = 16 must not exceed what was gathered .* that 12 rows"),
        ({"algo__learning_starts": "16", "algo__n_step": "5"}, "`n_step` = 5 must not exceed .* that 4 of 4 rows"),
        ({"algo__learning_starts": "0"}, "`minibatch` = 16 must not exceed .* `learning_starts` = 0 makes that 4 rows"),
        ({"total_steps": "1", "algo__learning_starts": "1"}, "`learning_starts` = 1 must lie before the end"),
        ({"algo__replay": "8"}, "`replay` must hold a minibatch, but got replay = 8 and minibatch = 16"),
        ({"algo__replay": "100", "algo__envs": "64"}, r"`replay` must hold n_step \+ 1 = 2 steps of every world"),
    ],
)
def test_numbers_that_cannot_work_together(algo: str, settings: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        trained(tmp_path / "run", algo, **({"algo__envs": "4", "algo__n_step": "1"} | settings))


def test_agents_count_as_worlds_do(tmp_path: Path) -> None:
    """Three sheep in each of 8 worlds: one step is 24 rows."""
    settings = {"env": "herd", "algo__envs": "8", "algo__replay": "40", "algo__learning_starts": "30"}
    with pytest.raises(ConfigError, match=r"n_step \+ 1 = 2 steps of all 24 rows .* but 40 transitions are 1"):
        trained(tmp_path / "run", "sac", **settings)


# ---- Algorithms that do not end


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ({"CLOCK": None}, "must declare CLOCK as one of agent_steps, updates, iteration, but dqn has None"),
        ({"CLOCK": "days"}, "but dqn has 'days'"),
        ({"iterate": lambda s, watch: {}}, r"must move the clock of dqn \(agent_steps\) on, but it stands at 0"),
        ({"iterate": None}, "but dqn lacks iterate"),
    ],
)
def test_an_algorithm_without_an_end_is_stopped(
    lacking: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = SimpleNamespace(**(vars(dqn) | lacking))
    monkeypatch.setattr("relab.config.registry.algo_module", lambda name: broken)
    with pytest.raises(ContractError, match=message):
        trained(tmp_path / "run", "dqn")
    began = (tmp_path / "run").exists()  # what is known before the first step leaves no run behind
    assert began == ("stands at 0" in message)
    assert not began or load(tmp_path / "run").meta["status"] == "failed"


# ---- Odd, and allowed


@ALGOS
def test_more_rewards_are_summed_than_an_episode_has(algo: str, tmp_path: Path) -> None:
    """CartPole's first episodes are over before 90 steps, Pendulum's here after 20."""
    cut = {"env__horizon": "20"} if algo == "sac" else {}
    history = trained(tmp_path / "run", algo, algo__n_step="90", algo__envs="1", **cut)
    assert history.columns["value/after_end"].values.max() == 0
    assert np.isfinite(history.columns["value/target_mean"].values).all()


@ALGOS
@pytest.mark.parametrize(("envs", "starts", "ratio"), [(3, 100, 3.7), (7, 101, 0.13), (4, 100, 1.0)])
def test_updates_are_what_the_settings_say(algo: str, envs: int, starts: int, ratio: float, tmp_path: Path) -> None:
    settings = {"algo__envs": envs, "algo__learning_starts": starts, "algo__updates_per_step": ratio}
    history = trained(tmp_path / "run", algo, **{key: str(value) for key, value in settings.items()})
    steps, updates = (history.columns[name] for name in ("data/env_steps", "data/updates"))
    assert updates.values.tolist() == [max(0, int((step - starts) * ratio)) for step in steps.values]


@ALGOS
def test_a_run_of_one_iteration(algo: str, tmp_path: Path) -> None:
    history = trained(tmp_path / "run", algo, total_steps="17", algo__learning_starts="16", algo__envs="1",
                      algo__steps="1", algo__n_step="1")  # fmt: skip
    assert history.columns["data/updates"].values[-1] >= 0
    assert len(history.evals) == 4, "before and after, in both modes"
