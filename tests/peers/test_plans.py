"""Do the plans of runs hold what they promise? The split, the order, and what counts for each kind of fault."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

pytest.importorskip("gymnasium")

from benchmarks.peers import (
    fault_kind,
    fault_kinds,
    fault_kinds_held_out,
    fault_kinds_later,
    mended_kinds,
    mended_table,
    plan,
    scripts,
    tasks,
)
from relab.record import glossary

KINDS = [*fault_kinds.KINDS, *fault_kinds_held_out.KINDS, *fault_kinds_later.KINDS]


def test_held_out_runs_share_neither_task_nor_seed_nor_setting_with_the_table():
    table, held_out = plan.cases("table"), plan.cases("held-out")
    for part in ("task", "seed", "variant"):
        assert not {getattr(case, part) for case in table} & {getattr(case, part) for case in held_out}
    assert len(held_out) >= 100
    assert len({case.name for case in table + held_out}) == len(table + held_out)


def test_the_second_held_out_part_shares_neither_seed_nor_setting_with_anything():
    others, second = plan.cases("table") + plan.cases("held-out"), plan.cases("held-out-2")
    for part in ("seed", "variant"):
        assert not {getattr(case, part) for case in others} & {getattr(case, part) for case in second}
    assert not {case.task for case in plan.cases("table")} & {case.task for case in second}
    assert len(second) >= 150
    assert len(fault_kinds_later.KINDS) >= 12
    assert sum(not kind.told for kind in fault_kinds_later.KINDS) >= len(fault_kinds_later.KINDS) / 2


def test_a_first_part_of_the_plan_holds_everything():
    first = plan.cases("table")[:80]
    assert {case.algo for case in first} == {"ppo", "a2c", "dqn", "sac", "td3"}
    assert {case.tool for case in first} == {"sb3", "cleanrl", "relab"}
    assert set(tasks.TABLE) <= {case.task for case in first}


def test_the_suite_is_as_large_as_it_says():
    assert len(fault_kinds.KINDS) >= 40
    assert len(fault_kinds_held_out.KINDS) >= 10
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert sum(not kind.told for kind in KINDS) >= len(KINDS) / 2
    assert {kind.group for kind in KINDS} == {"implementation", "setting", "environment", "evaluation", "bookkeeping"}
    assert set(Counter(kind.tool for kind in KINDS)) == {"cleanrl", "sb3"}


def test_held_out_kinds_say_so():
    assert all(kind.held_out for kind in [*fault_kinds_held_out.KINDS, *fault_kinds_later.KINDS])
    assert not any(kind.held_out for kind in fault_kinds.KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_counts_is_known(kind):
    assert kind.topics
    assert set(kind.topics) <= set(fault_kind.TOPICS)
    for metric, side in kind.signs:
        assert glossary.known(metric)
        assert side in ("high", "low")
    assert kind.task in tasks.ALL


@pytest.mark.parametrize("kind", [k for k in KINDS if k.tool == "cleanrl"], ids=lambda kind: kind.name)
def test_an_edit_fits_in_one_place_and_leaves_python(kind):
    ast.parse(scripts.edited(scripts.script_of(kind.algo, kind.task), kind.edits))


def test_an_edit_that_fits_nowhere_is_refused():
    with pytest.raises(ValueError, match="fits 0 times"):
        scripts.edited("dqn", (("no such line", ""),))


def test_settings_of_a_kind_are_arguments_of_its_script():
    for kind in KINDS:
        if kind.tool == "cleanrl":
            text = scripts.edited(scripts.script_of(kind.algo, kind.task))
            for key in kind.settings:
                assert f'"--{key.replace("_", "-")}"' in text, (kind.name, key)


def test_sick_runs_kept_apart_share_neither_seed_nor_kind_with_those_looked_at():
    looked_at, apart = mended_kinds.KINDS, mended_kinds.KEPT_APART
    assert min(len(looked_at), len(apart)) >= 10
    assert not {*mended_kinds.SEEDS} & {*mended_kinds.SEEDS_APART}
    assert not {(bad.algo, bad.task, *bad.settings) for bad in looked_at} & {
        (bad.algo, bad.task, *bad.settings) for bad in apart
    }
    assert {bad.task for bad in [*looked_at, *apart]} <= {*tasks.TABLE}


def test_a_sick_run_that_a_second_change_mended_is_not_counted_for_the_first():
    row = {"kind": "gamma 0.2", "tool": "sb3", "algo": "ppo", "task": "CartPole-v1", "sick": True,
           "levels": [9.0, 20.0, 500.0], "changes": [{"gamma": 0.5}, {"gamma": 0.99}], "mended": [False, True],
           "half": [False, True]}  # fmt: skip
    told = mended_table.table([row, row | {"sick": False, "levels": [400.0], "changes": [], "mended": [], "half": []}])
    assert "| gamma=0.5 | 20 | 0 of 1 | 1 of 1 |" in told
    assert "mended by one change: 0 of 1 (0%, 0% to 79%)" in told
    assert "by up to three in a row: 1 of 1" in told
