"""Which changes are factors, when is a difference confounded, and when does a new family begin?"""

from __future__ import annotations

import pytest

from made_up import settings
from relab.config import lineage
from relab.config.views import flatten


@pytest.mark.parametrize(
    ("changes", "factors"),
    [
        ({}, []),
        ({"seed": 7, "total_steps": 9000, "threads": 2, "eval__every": 100, "save__keep": 1}, []),
        ({"algo__lr": 0.1}, ["algo.lr"]),
        ({"algo__lr": 0.1, "seed": 3, "total_steps": 9000}, ["algo.lr"]),
        ({"algo__lr": 0.1, "algo__clip": 0.4}, ["algo.clip", "algo.lr"]),
        ({"algo__rnn": "gru", "algo__rnn_size": 32, "algo__bptt": 8}, ["algo.rnn"]),
        ({"algo__rnn_size": 32}, ["algo.rnn_size"]),
        ({"algo__lr_schedule": "adaptive_kl", "algo__target_kl": 0.01}, ["algo.lr_schedule"]),
        ({"env": "pendulum", "algo__lr": 0.0031}, ["algo.lr", "env.name"]),
    ],
)
def test_factors_are_what_a_difference_can_be_assigned_to(changes: dict[str, object], factors: list[str]) -> None:
    base = settings() if "env" not in changes else settings() | {"algo": settings(env="pendulum")["algo"]}
    differences = lineage.factors(base, settings(**changes))
    assert sorted(factor.key for factor in differences) == factors
    assert sorted(lineage.changes(base, settings(**changes))) == factors


def test_a_change_keeps_its_direction() -> None:
    there = lineage.changes(settings(algo__lr=0.001), settings(algo__lr=0.003))
    assert there == {"algo.lr": {"from": 0.001, "to": 0.003}}
    assert lineage.changes(settings(algo__lr=0.003), settings(algo__lr=0.001)) != there


@pytest.mark.parametrize(
    ("changes", "opens"),
    [
        ({"algo__lr": 0.1, "algo__gamma": 0.9, "seed": 3, "total_steps": 1, "algo__norm_obs": True}, []),
        ({"algo__hidden": [32]}, ["algo.hidden"]),
        ({"algo__activation": "relu"}, ["algo.activation"]),
        ({"algo__rnn": "lstm"}, ["algo.rnn"]),
        ({"algo__encoder": "none"}, ["algo.encoder"]),
        ({"env": "pendulum"}, ["env.name"]),
    ],
)
def test_architecture_and_environment_open_a_family(changes: dict[str, object], opens: list[str]) -> None:
    opening = lineage.opened(settings(), settings(**changes))
    assert [factor.key for factor in opening] == opens
    assert (lineage.family(settings()).name == lineage.family(settings(**changes)).name) == (not opens)


def test_a_family_is_named_by_what_it_is() -> None:
    """The name follows from the config alone, so that it is the same in every log."""
    first = lineage.family(settings(algo__lr=0.1))
    assert first.name == lineage.family(settings(seed=9)).name
    assert first.name.startswith("cartpole-v1.ppo.")
    assert set(first.keys) == {k for k in flatten(settings()) if k.startswith("env.")} | {
        "algo.name", "algo.hidden", "algo.activation", "algo.rnn", "algo.rnn_size",
    }  # fmt: skip
    assert lineage.family({"lr": 0.1}) is None, "a foreign config may name no environment"
    assert lineage.family({"env_id": "A v1 <b>"}).name.startswith("A-v1-b.")
