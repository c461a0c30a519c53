"""Does PPO learn from images through its encoder, and what do the algorithms without one say?"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relab.config import registry
from relab.config.base import ConfigError
from relab.config.ppo import PPO
from relab.record.run_folder import read_meta
from relab.record.spec import Action, Spec
from relab.train import fresh
from relab.train.algos.ppo_agent import encoded_image
from relab.train.algos.ppo_learner import FastLearner, SequenceLearner, TorchLearner
from relab.train.check_algo import check_algo
from small_runs import run
from train.algos.learning import judge, learn, make
from train.envs import dots

dots.register()
NAME = f"gym:{dots.ID}"
GAMMA = 0.9
FAST: dict[str, Any] = {"envs": 32, "steps": 8, "epochs": 6, "minibatches": 2, "lr": 1e-3, "gamma": GAMMA,
                        "hidden": (16,)}  # fmt: skip
GRU = {"rnn": "gru", "bptt": 4, "rnn_size": 16}


@pytest.mark.parametrize("kind", ["conv", "gru"])
@pytest.mark.some(1)
def test_known_values_and_actions_of_every_image(kind: str) -> None:
    state = make(NAME, **FAST | (GRU if kind == "gru" else {}))
    assert isinstance(state.learner, SequenceLearner if kind == "gru" else TorchLearner)
    assert judge(state) < 1.6  # of 2, where guessing earns 1
    learn(state, 30)
    answers = dots.known(GAMMA)[: 64 if kind == "gru" else None]  # no episode begins with a dim dot
    obs, action, value = (np.array(column) for column in zip(*answers))
    memory = np.zeros((len(obs), state.agent.memory_dim), np.float32)
    acted = state.agent.act(obs, memory, np.zeros(len(obs), np.uint64), n_mode=len(obs))
    assert acted.action[:, 0].tolist() == action.tolist()
    assert np.abs(state.agent.value(obs, memory) - value).mean() < 0.15
    assert judge(state) == 2.0


def test_it_keeps_the_contract() -> None:
    check_algo({"algo": "ppo", "env": NAME, "total_steps": 512, "algo.envs": 4, "algo.steps": 16, "algo.epochs": 1,
                "eval.every": 150, "eval.episodes": 2})  # fmt: skip


def test_a_checkpoint_acts_and_the_record_knows_the_shape(tmp_path: Path) -> None:
    run(tmp_path / "run", env=NAME, total_steps="256")
    assert read_meta(tmp_path / "run")["spec"]["obs_shape"] == [8, 8, 1]
    agent = fresh.load_agent(tmp_path / "run", "latest")[2]
    assert agent.net.image == (8, 8, 1)
    assert fresh.fresh(tmp_path / "run", "latest", 3, 0)["modes"]["det"]["n"] == 3
    with pytest.raises(ConfigError, match=r"sees images of 8 x 8 x 1 .* there are images of 8 x 10 x 1"):
        fresh.load_agent(tmp_path / "run", "latest", ['env.kwargs={"width": 10}'])


def spec_of(*shape: int) -> Spec:
    return Spec("painted-v1", int(np.prod(shape)), Action("discrete", 1, (2,)), obs_shape=shape if shape[1:] else ())


@pytest.mark.parametrize(
    ("encoder", "shape", "image"),
    [("auto", (8, 8, 1), (8, 8, 1)), ("conv", (8, 8, 1), (8, 8, 1)), ("none", (8, 8, 1), ()), ("auto", (64,), ()),
     ("none", (64,), ()), ("auto", (2, 50, 1), ())],
)  # fmt: skip
def test_what_goes_through_the_encoder(encoder: Any, shape: tuple[int, ...], image: tuple[int, ...]) -> None:
    assert encoded_image(PPO(encoder=encoder), spec_of(*shape)) == image


@pytest.mark.parametrize(("shape", "seen"), [((64,), "64 numbers"), ((2, 50, 1), "images of 2 x 50 x 1")])
def test_an_encoder_without_images_is_refused(shape: tuple[int, ...], seen: str) -> None:
    with pytest.raises(ConfigError, match=f"`encoder=conv` needs images of 3 x 3 .*, but painted-v1 observes {seen}"):
        encoded_image(PPO(encoder="conv"), spec_of(*shape))


def test_pixels_as_numbers_are_learned_by_hand() -> None:
    state = make(NAME, **FAST, encoder="none")
    assert state.agent.fast == isinstance(state.learner, FastLearner)
    assert "actor/0/weight" in state.agent.params.named
    assert state.agent.params["actor/0/weight"].shape == (16, 64)


def test_values_do_not_depend_on_the_pieces_they_are_computed_in() -> None:
    agent = make(NAME, **FAST).agent
    obs, memory = np.array([answer[0] for answer in dots.known(GAMMA)]), np.zeros((128, 0), np.float32)
    whole = agent.value(obs, memory)
    agent.cfg = dataclasses.replace(agent.cfg, chunk=50)
    np.testing.assert_allclose(agent.value(obs, memory), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("algo", "continuous"), [("dqn", False), ("sac", True)])
def test_replay_methods_refuse_images_and_name_who_takes_them(algo: str, continuous: bool) -> None:
    env = registry.env_class(NAME)(registry.env_params_class(NAME)(name=NAME, kwargs={"continuous": continuous}))
    with pytest.raises(ConfigError, match=f"{algo} learns from vectors, but gym:Dots-v0 observes images of 8 x 8 x 1;"
                       " try algo=ppo.*FlattenObservation"):  # fmt: skip
        registry.algo_module(algo).make_agent(registry.algo_config_class(algo)(), env.spec, 0)
