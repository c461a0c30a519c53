"""Does `relab explain METRIC [RUN]` say where a value lies among healthy runs?"""

from __future__ import annotations

import pytest

from relab import cli
from relab.health.placed import healthy_lines
from where import histories


def explained(capsys, *words: str) -> str:
    assert cli.main(["explain", *words]) == 0
    return capsys.readouterr().out


def test_a_metric_is_told_with_what_healthy_runs_show(capsys):
    text = explained(capsys, "policy/kl")
    assert "Healthy runs:" in text
    assert "PPO: " in text


def test_a_metric_that_the_table_does_not_have_is_told_without(capsys):
    assert healthy_lines("data/obs_max") == []
    assert "Healthy runs" not in explained(capsys, "data/obs_max")


def test_a_run_lies_somewhere_among_healthy_ones(capsys):
    sick = explained(capsys, "kl", str(histories() / "faulty" / "diverged"))
    assert "among healthy PPO runs with discrete actions:" in sick
    assert "highest level (median of five rows in a row): " in sick
    assert "highest single value: " in sick, "one update that went too far is no level"
    assert "outside of" in sick


def test_a_word_that_a_run_does_not_log_is_refused(capsys):
    assert cli.main(["explain", "data/obs_max", str(histories() / "faulty" / "diverged")]) == 2
    assert "does not log 'data/obs_max'; the nearest that it has is data/reward_max" in capsys.readouterr().err


@pytest.mark.parametrize("metric", ["value/loss", "policy/actor_loss"])
def test_what_is_counted_in_returns_says_so(metric):
    assert "in the size of a run's returns" in healthy_lines(metric)[0]
