"""Do curves, cards and terminal say the same beginning of a finding, and does thinned evidence keep the peak?"""

from __future__ import annotations

from pathlib import Path

from relab import cli
from relab.health import onsets
from relab.health.estimates import shown
from relab.health.rule import Finding
from relab.record.evaluations import Estimate
from relab.report import curves, sections
from relab.report.parts import PlacedFinding
from relab.runs import grouping
from report.made import write_run


def test_the_earliest_counts_and_says_of_how_many():
    since = onsets.earliest([("s0", 4096), ("s1", 1024), ("s2", None)], 5)
    assert since is not None
    assert (since.step, since.run, since.words) == (1024, "s1", "since step 1,024 (earliest of 2 of 5 seeds)")
    assert onsets.earliest([("s0", None)], 5) is None
    start = onsets.earliest([("s0", 0), ("s1", 7)], 2)
    assert start is not None
    assert not start.marked, "so from the first step on: nothing began"


def test_the_curve_and_the_card_of_a_report_agree(tmp_path: Path):
    for seed in range(5):
        write_run(tmp_path / f"s{seed}", [20.0, 30.0, 40.0, 50.0], seed)
    groups = grouping.load(tmp_path)
    starts = {"s0": 3000, "s1": 1000, "s3": 2000}
    findings = [Finding("m", slug="lead", severity="warning", run=run, onset=at) for run, at in starts.items()]
    (card,) = sections.top([PlacedFinding(f, str(f.run)) for f in findings], groups)
    mark = curves.curve(groups, findings=findings).onset
    assert mark is not None
    assert mark.step == 1000
    assert card.since == "since step 1,000 (earliest of 3 of 5 seeds)"


def test_the_terminal_says_it_too(tmp_path: Path, capsys):
    assert cli.main(["examine", str(demo(tmp_path))]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "peak-then-collapse in" in line)
    assert "(and 1 more run), since step 4,000 (earliest of 2 seeds)" in line


def test_where_every_finding_is_listed_each_has_its_own_beginning(tmp_path: Path, capsys):
    """Two of two seeds have it: that one of two has it would be another number."""
    assert cli.main(["examine", str(demo(tmp_path)), "-v"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "peak-then-collapse in" in line]
    assert ["in 1 of 2" in line for line in lines] == [False, False]
    assert sorted(line.rpartition("since ")[2] for line in lines) == ["step 4,000", "step 6,000"]


def demo(folder: Path) -> Path:
    """Two seeds that rise and fall, the second one sooner."""
    for seed, top in ((0, 6), (1, 4)):
        curve = [20.0 + 80 * i for i in range(top)] + [20.0] * (14 - top)
        write_run(folder / f"a-s{seed}", curve, seed)
    return folder


def test_evidence_of_many_evaluations_keeps_the_peak():
    values = [10.0] * 40
    values[13] = 500.0
    values[27] = -3.0
    course = [Estimate(i * 100, value, 1.0, 20) for i, value in enumerate(values)]
    evidence = shown(course, "eval/return_det")
    assert max(evidence.values) == 500.0
    assert min(evidence.values) == -3.0
    assert len(evidence.values) <= 8
    assert (evidence.steps[0], evidence.steps[-1]) == (0, 3900)
