"""Is a mean and its error made once, by hand numbers, whatever a stranger's row holds?"""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy import stats as oracle

from relab.record.evaluations import Evaluation, evaluation, evaluations, outcome_of, share_error, summary


def row(*episodes: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {"step": 5, "mode": "det", "episodes": list(episodes)} | other


def test_mean_error_and_the_rest_by_hand() -> None:
    played = [{"return": 1.0, "length": 4, "success": True}, {"return": 3.0, "length": 6, "success": False}]
    level = evaluation(row(*played))
    assert level == Evaluation(5, 2.0, 1.0, 2, "det", spread=1.0, length=5.0, success=0.5)
    assert level.metric == "eval/return_det"


def test_agents_that_share_a_world_are_one_sample() -> None:
    world = {1: [0.0, 2.0], 2: [10.0, 12.0], 3: [20.0, 22.0]}
    shared = [{"seed": s, "agent": j, "return": v} for s, vs in world.items() for j, v in enumerate(vs)]
    level = evaluation(row(*shared))
    assert level is not None
    assert (level.mean, level.se, level.n) == pytest.approx((11.0, oracle.sem([1.0, 11.0, 21.0]), 3))
    alone = [{"seed": 7, "return": v} for v in (1.0, 11.0, 21.0, 31.0)]  # one agent: a seed may come again
    level = evaluation(row(*alone))
    assert level is not None
    assert (level.se, level.n) == pytest.approx((oracle.sem([1.0, 11.0, 21.0, 31.0]), 4))


def test_a_world_counts_once_however_many_of_its_agents_played() -> None:
    """Three agents at 0 in one world and one at 6 in another, beside two slots that nobody used."""
    first = [{"seed": 1, "agent": j, "return": 0.0, "end": "caught"} for j in range(3)]
    second = [{"seed": 2, "agent": 0, "return": 6.0, "end": "fed"}]
    unused = [{"seed": 2, "agent": j, "return": 99.0, "end": "unused"} for j in (1, 2)]
    level = evaluation(row(*first, *second, *unused))
    assert level is not None
    assert (level.mean, level.n) == (3.0, 2)


def test_one_sample_has_no_error_and_nobody_no_evaluation() -> None:
    level = evaluation(row({"return": 4}))
    assert level is not None
    assert (level.mean, level.n) == (4.0, 1)
    assert math.isnan(level.se)
    assert evaluation(row()) is None
    assert evaluation(row({"return": 1.0, "end": "unused"})) is None


@pytest.mark.parametrize(("value", "mean"), [(None, math.nan), (math.inf, math.inf), (10**400, math.inf)])
def test_returns_beyond_numbers(value: Any, mean: float) -> None:
    level = evaluation(row({"return": 1.0}, {"return": value}))
    assert level is not None
    assert level.mean == pytest.approx(mean, nan_ok=True)
    assert math.isnan(level.se)


@pytest.mark.parametrize(
    "bad",
    [
        {"step": "5"}, {"step": True}, {"step": 1.5}, {"mode": "fast"}, {"mode": ["det"]}, {"episodes": None},
        {"episodes": 3}, {"episodes": "abc"}, {"episodes": [1]}, {"episodes": [{}]}, {"episodes": [{"return": "x"}]},
        {"episodes": [{"return": 1, "length": "x"}]}, {"episodes": [{"return": 1, "success": []}]},
    ],
)  # fmt: skip
def test_what_is_no_evaluation_says_so_and_is_left_out(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        evaluation(row({"return": 1.0}) | bad)
    assert evaluations([row({"return": 1.0}) | bad], "det") == []


def test_evaluations_are_those_of_a_mode_in_order() -> None:
    rows = [row({"return": float(k)}, step=k, mode=mode) for k in range(3) for mode in ("det", "sampled")]
    assert [(e.step, e.mean) for e in evaluations(rows, "sampled")] == [(0, 0.0), (1, 1.0), (2, 2.0)]


def test_summary_is_students() -> None:
    x = [0.5, 2.5, 9.0, -4.0, 7.25]
    assert summary(x) == pytest.approx((sum(x) / 5, oracle.sem(x), 5))


# ---- An environment that is judged by success


def test_success_is_what_is_judged_where_an_environment_says_so() -> None:
    """A shaped reward that pays for putting success off: the return falls while success rises."""
    played = [{"return": 19.0, "length": 50, "success": False}] * 3 + [{"return": 6.0, "length": 9, "success": True}]
    level = evaluation(row(*played), "success")
    assert level is not None
    assert (level.metric, level.mean, level.n) == ("eval/success_det", 0.25, 4)
    assert level.se == pytest.approx(max(oracle.sem([0, 0, 0, 1]), share_error(0.25, 4)))


def test_none_of_fifty_is_not_known_without_error() -> None:
    level = evaluation(row(*[{"return": 0.0, "success": False}] * 50), "success")
    assert level is not None
    low, high = oracle.binomtest(0, 50).proportion_ci(0.6826894921, method="wilson")  # z = 1
    assert level.se == pytest.approx((high - low) / 2)


@pytest.mark.parametrize(("spec", "outcome"), [({"outcome": "success"}, "success"), ({}, "return"), (None, "return"),
                                               ({"outcome": "glory"}, "return")])  # fmt: skip
def test_the_record_says_what_is_judged(spec: Any, outcome: str) -> None:
    assert outcome_of({"spec": spec}) == outcome
