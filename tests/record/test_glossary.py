"""Is every metric explained, with a unit and a range that make sense?"""

from __future__ import annotations

import math
import re

import pytest

from relab.record import glossary
from relab.record.glossary import AXES, EVENTS, FAMILIES, METRICS, Metric

GROUPS = {"return", "policy", "value", "model", "data", "optim", "time", "eval", "multi"}


@pytest.fixture
def empty(monkeypatch):
    monkeypatch.setattr(glossary, "METRICS", dict(METRICS))


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda m: m.name)
def test_entries_are_complete(metric):
    assert re.fullmatch(r"[a-z]+/[a-z0-9_]+", metric.name)
    assert metric.name.split("/")[0] in GROUPS
    assert metric.low < metric.high
    assert metric.direction in (-1, 0, 1)
    assert metric.unit
    assert len(metric.meaning) > 10
    assert metric.unit != "share" or metric.high in (1, math.inf)


def test_names_are_given_once():
    names = [line.split("|")[0].strip() for line in glossary.TABLE.strip().splitlines()]
    assert len(set(names)) == len(names) == len(METRICS)


def test_what_the_design_names_is_there():
    for name in (
        "eval/return_det",
        "eval/return_sampled",
        "data/env_steps",
        "data/sim_steps",
        "data/updates",
        "time/sps",
    ):
        assert glossary.metric(name).name == name
    assert set(AXES) == {"env_steps", "agent_steps", "sim_steps", "updates", "iteration", "episodes"}


def test_families_take_any_name_below_them():
    assert glossary.known("env/fed")
    assert glossary.metric("env/fed").meaning == FAMILIES["env/"]
    assert not glossary.known("env/")
    assert not glossary.known("environment/fed")


def test_an_unknown_metric_names_the_nearest():
    assert not glossary.known("eval/return")
    with pytest.raises(KeyError, match="`eval/return` is not in the glossary; the nearest is `eval/return_det`"):
        glossary.metric("eval/return")


def test_plugins_declare_their_own(empty):
    mine = Metric("policy/mine", "nats", 0, math.inf, 0, "what my algorithm measures")
    glossary.declare(mine)
    glossary.declare(mine)
    assert glossary.metric("policy/mine") is mine
    with pytest.raises(ValueError, match="already declared"):
        glossary.declare(Metric("policy/mine", "nats", 0, 1, 0, "something else"))


def test_events_are_explained():
    assert all(re.fullmatch("[a-z_]+", kind) and len(meaning) > 10 for kind, meaning in EVENTS.items())
