"""Is the table of healthy runs light, whole and right? And are its answers those of its rows?"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from importlib.resources import files

import orjson
import pytest

from relab.base.jsonl import RecordError
from relab.health import reference
from relab.health.features import FEATURES, Key
from relab.health.reference import HealthyRun
from relab.stats import conformal

KL = Key("policy/kl", "last")


def test_a_table_is_read_as_it_was_written():
    run = HealthyRun("ppo", "discrete", "sb3 CartPole-v1 a", {KL: 0.0123456, Key("policy/kl", "growth"): -1.0})
    (again,) = reference.parse(reference.dump([run], {"runs": 1}))
    assert again == HealthyRun("ppo", "discrete", run.cell, {KL: 0.01235, Key("policy/kl", "growth"): -1.0})


def test_another_schema_is_refused():
    with pytest.raises(RecordError, match="schema 99"):
        reference.parse(b'{"schema":99,"runs":[]}')


def test_the_shipped_table_is_small_and_says_what_it_was_made_from():
    data = files("relab.health").joinpath(reference.FILE).read_bytes()
    made = orjson.loads(data)["made"]
    assert len(data) < 500_000
    assert orjson.loads(data)["features"] == list(FEATURES)
    assert made["runs"] == len(reference.table())
    assert made["by_algo"] == dict(Counter(run.algo for run in reference.table()))
    assert set(made["by_algo"]) == set(reference.ALGOS)
    assert made["tasks"] >= 12


def test_nothing_of_the_held_out_tasks_is_in_it():
    pytest.importorskip("gymnasium")
    from benchmarks.peers import tasks

    assert not [run.cell for run in reference.table() if run.cell.split()[1] in tasks.HELD_OUT]


def test_answers_are_those_of_the_rows():
    rows = [run for run in reference.table() if run.algo == "ppo" and run.kind == "discrete" and KL in run.numbers]
    values, cells = [run.numbers[KL] for run in rows], [run.cell for run in rows]
    healthy = reference.interval("ppo", "discrete", KL)
    assert healthy is not None
    assert (healthy.least, healthy.most) == (min(values), max(values))
    assert healthy.least <= healthy.low < healthy.high <= healthy.most
    assert (healthy.runs, healthy.cells) == (len(values), len(set(cells)))
    assert reference.tail_probability("ppo", "discrete", KL, 0.5, "high") == 1 / (len(set(cells)) + 1)
    assert reference.tail_probability("ppo", "discrete", KL, values[0], "low") == pytest.approx(
        conformal.tail_below(values[0], values, cells)
    )


def test_far_outside_is_told_in_widths():
    healthy = reference.Healthy(low=2, high=4, least=1, most=5, runs=30, cells=20)
    assert healthy.beyond(3) == healthy.beyond(5) == 0
    assert healthy.beyond(13) == 2
    assert healthy.beyond(-1) == 0.5


def test_a_kind_that_is_not_known_is_held_against_both():
    both = reference.interval("ppo", None, KL)
    assert both is not None
    assert both.runs == sum(run.algo == "ppo" and KL in run.numbers for run in reference.table())
    assert {run.kind for run in reference.table() if run.algo == "ppo"} == set(reference.KINDS)


def test_no_opinion_where_there_are_too_few():
    assert reference.interval("ppo", "discrete", Key("optim/temperature", "last")) is None
    assert reference.tail_probability("qmix", None, KL, 1.0) is None


def test_the_table_is_not_read_before_somebody_asks():
    code = "import sys, relab.health.reference as r; print(r.table.cache_info().currsize, 'torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["0", "False"]
