"""Do the schedule's tables and figures say of which stage and type a death, a start and a box are?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from relab.record.history import Column, History
from relab.report import course, drawings, samples, schedule
from relab.report.drawings import Columns, draw
from relab.report.schedule import stage_label
from relab.runs.grouping import Run
from relab.runs.verdict import verdict_of


def evaluation(iteration: int, kind: str, deaths: list[int]) -> dict[str, Any]:
    played = [{"seed": 10 * iteration + k, "agents": 20, "final": 0.5, "first_death": 1 if n else 9, "step_one": n,
               "heading": 50.0, "speed": 2.1} for k, n in enumerate(deaths)]  # fmt: skip
    values = {"avg_final": 0.5, "min_final": 0.4, "early_death_100": 0.1 * iteration, "death_p10": 40.0,
              "step_one_count": float(sum(deaths)), "agents": 20.0 * len(deaths)}  # fmt: skip
    return {"probe": "multi_eval", "step": iteration, "iteration": iteration, "n": len(deaths), "values": values,
            "episodes": played, "stage": f"{1 + (kind == 'main')}:seeds_ne", "type": kind}  # fmt: skip


def made() -> History:
    events = [
        {"kind": "stage", "step": k, "axis": "iteration", "schedule": "tail_stage_label", "stage": stage, "type": kind}
        for k, stage, kind in ((1, "stage1:seeds_ne", "ne"), (3, "stage2:seeds_ne", "main"))
    ]
    columns = {"return/length": Column(np.array([100, 200]), np.array([5.0, 6.0]))}
    return History(Path("school"), columns=columns, axes={"return/length": "env_steps"}, events=events,
                   probes=[evaluation(2, "ne", [3, 0]), evaluation(4, "main", [1, 4])])  # fmt: skip


def a_run(name: str, history: History) -> Run:
    return Run(history, name, 0, "finished", verdict_of(history))


def tables(history: History) -> dict[str, Any]:
    part = schedule.schedule(a_run("school", history))
    assert part is not None
    return {
        table.caption.partition(" (")[0].partition(",")[0].partition(" by heading")[0]: table for table in part.tables
    }


def test_clusters_and_worst_episodes_have_stage_and_type() -> None:
    by = tables(made())
    (cluster,) = by["Deaths in step one"].rows
    assert cluster[-2:] == ["2:seeds_ne 5, 1:seeds_ne 3", "main 5, ne 3"]
    worst = by["Worst episodes"]
    assert worst.head[:3] == ["iteration", "stage", "type"]
    theirs = tables(replace(made(), source="csv"))["Worst episodes"]
    assert (worst.head[-1], theirs.head[-1]) == ("play it again", "speed"), "nothing plays theirs again"
    assert {tuple(row[:3]) for row in worst.rows} == {("2", "1:seeds_ne", "ne"), ("4", "2:seeds_ne", "main")}


def test_bars_are_drawn_for_each_type() -> None:
    history = made()
    drawn = [each for each in schedule.figures(history, schedule.rows_of(history), {}) if isinstance(each, Columns)]
    assert [each.up.partition(",")[0] for each in drawn] == ["avg_final", "early_death_100", "died in step one"]
    assert drawn[2].values == {"ne (1)": 3 / 40, "main (1)": 5 / 40}
    assert draw(drawn[2]).count("<rect") == 2
    history.probes[:] = history.probes[:1]
    assert schedule.by_type(schedule.rows_of(history)) == [], "one type has nothing beside it"


def test_the_timeline_says_the_type_and_not_the_files_name() -> None:
    (plan,) = schedule.bands(made(), 5)
    assert [label for _, _, label in plan.stages] == ["ne: stage1:seeds_ne", "main: stage2:seeds_ne"]
    assert stage_label({"stage": "2:mined", "type": "mined"}) == "2:mined"


def test_stages_by_iteration_are_not_laid_over_metrics_by_steps() -> None:
    assert course.stages(a_run("school", made())) is None


def test_probes_stand_beside_the_samples_with_their_iteration() -> None:
    steps = np.array([10, 20])
    columns = {
        "value/td_loss": Column(steps, np.array([1.0, 2.0])),
        "data/iteration": Column(steps, np.array([1.0, 2.0])),
    }
    probes = [
        {"probe": "stability", "metric": "one_minus_radius", "step": 20, "value": 1e-9},
        evaluation(20, "ne", [1]),
    ]
    axes = dict.fromkeys(columns, "agent_steps")
    part = samples.samples(a_run("torus", History(Path("torus"), columns=columns, axes=axes, probes=probes)))
    assert part is not None
    assert part.tables[0].head == ["step", "iteration", "value/td_loss", "stability: one_minus_radius"]
    assert [row[1:] for row in part.tables[0].rows] == [["1", "1", "-"], ["2", "2", "1e-09"]]


def test_labels_that_would_lie_over_each_other_are_one():
    points = [(16.0, 0.8, "3"), (20.0, 0.8, "9"), (20.0, 0.801, "12")]
    labels = drawings.together([(x * 10, y * 100, label) for x, y, label in points])
    assert [label for _, _, label in labels] == ["3", "9, 12"]


def test_a_timeline_fits_a_telephone():
    decisions = {"penalty": [(1, word) for word in drawings.OUTCOMES]}
    plan = drawings.Plan("curriculum", [(0, 2, "15")])
    wide, narrow = (drawings.timeline(drawings.Timeline("survival", 2, [], [plan], decisions), w) for w in (760, 380))
    assert max(map(float, re.findall(r'<text x="([\d.]+)"', narrow))) <= 380
    assert wide.count("<text") == narrow.count("<text"), "nothing is left out"


def test_few_evaluations_have_no_trend() -> None:
    """Three of them gave an interval wider than all that a share can be."""
    history = made()
    history.probes[:] = [evaluation(k, "ne", [0, 0]) for k in (2, 4, 6)]
    part = schedule.schedule(a_run("school", history))
    assert part is not None
    assert "early_death_100: 0.200 at first, 0.600 at last (3 evaluations, too few for a trend)" in part.lines
