"""Which points does a sweep ask for, what may a constraint hold, and what are trials called?"""

from __future__ import annotations

import pytest

from relab.config.base import ConfigError
from relab.lab.sweep import axis, expression, names, points
from relab.stats.axes import cells_of, effects


def axes_of(**entries):
    return [axis.load(key, value) for key, value in entries.items()]


def limits(*texts, known=()):
    return [(text, expression.parse(text, dict.fromkeys(known))) for text in texts]


def test_a_grid_is_every_combination_that_is_allowed():
    axes = axes_of(lr=[0.001, 0.01], epochs=[1, 5, 20])
    assert len(points.grid(axes, [], {})) == 6
    allowed = points.grid(axes, limits("lr * epochs <= 0.01", known=("lr", "epochs")), {})
    assert allowed == [{"lr": 0.001, "epochs": 1}, {"lr": 0.001, "epochs": 5}, {"lr": 0.01, "epochs": 1}]
    with pytest.raises(ConfigError, match="no point of the grid satisfies lr > 1"):
        points.grid(axes, limits("lr > 1", known=("lr",)), {})


def test_settings_of_the_base_count_in_constraints():
    grid = points.grid(axes_of(lr=[0.001, 0.01]), limits("lr * epochs <= 0.01", known=("lr", "epochs")), {"epochs": 10})
    assert grid == [{"lr": 0.001}]


def test_a_conditional_axis_is_there_only_when_it_means_something():
    axes = axes_of(rnn=["none", "gru", "lstm"], size={"values": [64, 128], "when": {"rnn": ["gru", "lstm"]}})
    grid = points.grid(axes, limits("size < 100 or rnn == 'gru'", known=("rnn", "size")), {})
    assert grid == [{"rnn": "none"}, {"rnn": "gru", "size": 64}, {"rnn": "gru", "size": 128},
                    {"rnn": "lstm", "size": 64}]  # fmt: skip


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_more_trials_add_points_and_move_none(method):
    axes = axes_of(lr={"low": 1e-5, "high": 1e-1, "log": True}, n={"low": 1, "high": 4, "int": True}, b=[True, False])
    few, many = (points.drawn(method, n, axes, [], {}, seed=3) for n in (10, 40))
    assert many[:10] == few
    assert len({repr(p) for p in many}) == 40
    assert {p["n"] for p in many} == {1, 2, 3, 4}
    assert all(1e-5 <= p["lr"] <= 1e-1 for p in many)
    decades = [sum(10.0**-k <= p["lr"] < 10.0 ** (1 - k) for p in many) for k in (2, 3, 4, 5)]
    assert min(decades) >= 3, "log: every decade has its share"
    assert points.drawn(method, 10, axes, [], {}, seed=4) != few


def test_draws_respect_constraints_and_say_when_they_cannot():
    axes = axes_of(x={"low": 0, "high": 1}, y={"low": 0, "high": 1})
    draws = points.drawn("random", 20, axes, limits("x + y <= 0.5", known=("x", "y")), {}, 0)
    assert all(p["x"] + p["y"] <= 0.5 for p in draws)
    with pytest.raises(ConfigError, match=r"`trials` is 5, but only 4 different points"):
        points.drawn("random", 5, axes_of(a=[0, 1], b=[0, 1]), [], {}, 0)


def test_a_range_has_steps_in_a_grid():
    (lr,) = axes_of(lr={"low": 1e-4, "high": 1e-1, "log": True, "steps": 4})
    assert lr.levels() == pytest.approx((1e-4, 1e-3, 1e-2, 1e-1))
    with pytest.raises(ConfigError, match="a grid needs its values, or `steps: N`"):
        axes_of(lr={"low": 0, "high": 1})[0].levels()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ([], "at least one value"),
        ([1, 1], "more than once"),
        ([[1]], "numbers, text, true and false"),
        (3, "list of values or a range"),
        ({"low": 1}, "needs `values`, or `low` and `high`"),
        ({"low": 2, "high": 1}, "finite `low` < `high`"),
        ({"low": 0, "high": 1, "log": True}, "`low` above 0"),
        ({"low": 0.5, "high": 3, "int": True}, "whole ends"),
        ({"low": 0, "hihg": 3}, "the nearest is `high`"),
        ({"values": [1], "low": 0}, "leave one of them out"),
    ],
)
def test_an_axis_that_cannot_be(entry, says):
    with pytest.raises(ConfigError, match=says):
        axes_of(x=entry)


@pytest.mark.parametrize(
    ("text", "values", "holds"),
    [
        ("a * b <= 6", {"a": 2, "b": 3}, True),
        ("algo.lr < 1e-3 and not off", {"algo.lr": 1e-4, "off": False}, True),
        ("a in [1, 2] or b == 'x'", {"a": 3, "b": "y"}, False),
        ("0 < a ** 2 % 5 // 1 <= max(b, 1) - -1", {"a": 2, "b": 3}, True),
        ("abs(a) != b", {"a": -1, "b": 1}, False),
        ("a > 1", {"b": 0}, True),
        ("a == true", {"a": True}, True),
    ],
)
def test_expressions(text, values, holds):
    known = {**values, "a": values.get("a")}
    assert expression.holds(expression.parse(text, known), text, values) == holds


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "a.__class__()", "(lambda: 1)()", "[x for x in (1, 2)]", "a if b else c",
        "open('x')", "f'{a}'", "a[0] > 1", "max(a, key=b) > 1", "a := 3", "1 +", "().__class__ == 1", "a" * 600,
        "None", "b'x' == a", "{'a': 1}", "min", "1j > 0",
    ],
)  # fmt: skip
def test_nothing_else_is_an_expression(text):
    with pytest.raises(ConfigError, match="constraint"):
        expression.parse(text, {"a": 1, "b": 2, "c": 3})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a ** 9999999 > 1", "exponent of at most 64"),
        ("a * 'x' == b", "arithmetic needs numbers"),
        ("a / b > 1", "division by zero"),
        ("a + 1", "must be true or false, but gives 4"),
        ("(0 - a) ** 0.5 > 1", "no real number"),
        ("a < 'x'", "cannot be computed with a = 3"),
    ],
)
def test_what_cannot_be_computed_is_said(text, says):
    with pytest.raises(ConfigError, match=says):
        expression.holds(expression.parse(text, {"a": 3, "b": 0}), text, {"a": 3, "b": 0})


def test_an_unknown_name_has_a_nearest_one():
    with pytest.raises(ConfigError, match=r"names 'epoch'.*nearest known one is 'epochs'"):
        expression.parse("epoch > 1", {"epochs": 1, "lr": 1})


def test_runs_are_called_by_their_values():
    point = {"beta": 0.005, "alpha_w": 0.02, "theta_mu_offset_scale": 0.277777777778}
    short = names.shorts(list(point), {})
    assert names.run(point, short, 0).startswith("b0p005_aw0p02_tmos0p2778_s0_")
    assert names.run(point, short, 0)[-8:] == names.trial(point, short)[-8:]
    assert names.value_text(-1e-5) == "m1em05"
    assert names.value_text(True) == "true"
    assert names.value_text("a/b c") == "abc"
    near = {**point, "theta_mu_offset_scale": 0.277777777779}
    assert names.run(near, short, 0) != names.run(point, short, 0), "values that print alike are two runs"


def test_abbreviations_do_not_collide():
    assert names.shorts(["gamma", "grad"], {}) == {"gamma": "gamma", "grad": "grad"}
    assert names.shorts(["a.size", "b.size"], {}) == {"a.size": "asize", "b.size": "bsize"}
    assert names.shorts(["size"], {}) == {"size": "size"}, "s would be read as a seed"
    assert names.shorts(["gamma", "grad"], {"grad": "gr"}) == {"gamma": "g", "grad": "gr"}
    with pytest.raises(ConfigError, match="different short names"):
        names.shorts(["gamma", "grad"], {"grad": "x", "gamma": "x"})


def test_one_at_a_time_shares_its_first_point() -> None:
    axes = [axis.load("beta", [1.0, 0.1, 0.5]), axis.load("mc_samples", [4, 1, 16])]
    rows = points.one_at_a_time(axes, [], {})
    assert [(row["beta"], row["mc_samples"]) for row in rows] == [(1.0, 4), (0.1, 4), (0.5, 4), (1.0, 1), (1.0, 16)]


def test_one_at_a_time_needs_its_first_point() -> None:
    axes = [axis.load("beta", [1.0, 0.1]), axis.load("mc_samples", [4, 1])]
    constraint = [("beta < 1", expression.parse("beta < 1", {"beta": None}))]
    with pytest.raises(ConfigError, match="put other values first"):
        points.one_at_a_time(axes, constraint, {})


def test_effects_of_one_at_a_time_are_those_of_its_changes() -> None:
    """beta 0.1 costs 10, 16 samples bring 5; nothing else differs."""
    axes = [axis.load("beta", [1.0, 0.1]), axis.load("mc_samples", [4, 16])]
    rows = points.one_at_a_time(axes, [], {})
    worth = [50 - 10 * (row["beta"] == 0.1) + 5 * (row["mc_samples"] == 16) for row in rows]
    values = [[w - 1.0, w - 0.5, w, w + 0.5, w + 1.0] for w in worth]
    told = {each.axis: each for each in effects(cells_of(rows, values, bins=False), 1.0, of_seeds=True)}
    assert {name: abs(each.widest.mid) for name, each in told.items()} == pytest.approx({"beta": 10, "mc_samples": 5})
