"""Is it said what another length does to a step size that falls along the run, and what keeps it?"""

from __future__ import annotations

import pytest

from relab.config import layers, stretch
from relab.config.layers import Layer


def line(*words: str) -> str:
    resolved = layers.resolve([Layer("command line", layers.parse_overrides(words))])
    return stretch.against_shipped(layers.flatten(resolved.config), resolved.provenance)


def pace(step: float, total: float, final: float, until: float) -> float:
    """What is left of the step size, as learning.pace_of computes it along a line."""
    return 1 - (1 - final) * min(1.0, step / total / until)


def test_a_shorter_run_of_the_shipped_recipe_is_told():
    said = line("algo=dreamer", "env=cartpole", "total_steps=3000")
    assert said == ("the step size falls to 5% until step 1,125 (lr_until 0.375 of 3,000), where it does so until"
                    " 12,288 in the shipped 32,768 steps; algo.lr_until=1 algo.lr_final=0.7681 would keep its step"
                    " sizes")  # fmt: skip


@pytest.mark.parametrize("total", [3_000, 20_000, 200_000])
def test_the_settings_that_it_names_keep_the_step_sizes(total):
    said = (
        line("algo=dreamer", "env=cartpole", f"total_steps={total}")
        .partition("; ")[2]
        .removesuffix(" would keep its step sizes")
    )
    values = dict(word.split("=") for word in said.split())
    until, final = float(values["algo.lr_until"]), float(values.get("algo.lr_final", 0.05))
    for step in (1_000, 2_999, 12_288, 15_000, 60_000):
        if step <= total:
            assert pace(step, total, final, until) == pytest.approx(pace(step, 32_768, 0.05, 0.375), abs=1e-3)


@pytest.mark.parametrize(
    "words",
    [("total_steps=32768",), ("total_steps=3000", "lr_until=1"), ("total_steps=3000", "lr_final=0.5"), ()],
)
def test_nothing_is_said_where_it_is_the_shipped_length_or_somebody_has_chosen(words):
    assert line("algo=dreamer", "env=cartpole", *words) == ""


def test_nothing_is_said_where_nothing_falls():
    assert line("algo=dreamer", "env=pendulum", "total_steps=2048", "lr_final=1") == ""
    assert line("algo=ppo", "env=cartpole", "total_steps=2048") == ""


def test_a_longer_run_stretches_every_fall_and_names_no_setting_that_is_not_there():
    ppo = {"algo.lr_schedule": "linear", "algo.lr_final": 0.0}
    assert stretch.sentence(ppo, 100, 200, "this run") == (
        "the step size falls to 0% until step 200, where it does so until 100 in this run")  # fmt: skip
    assert stretch.sentence(ppo | {"algo.lr_schedule": "constant"}, 100, 200, "this run") == ""
    assert "keep" not in stretch.sentence(
        {"algo.lr_final": 0.1, "algo.lr_until": 1.0, "algo.lr_shape": "cosine"}, 200, 100, "this run")  # fmt: skip
