"""Are predictions scored as one would by hand?"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import made_up
from relab import cli
from relab.advise import calibration, score
from relab.notebook.words import words
from relab.record.history import load

DIFF = {"algo.lr": {"from": 0.003, "to": 0.01}}


def scored(
    tmp_path: Path, parents: list[float], children: list[float], said: tuple[float | None, float | None, float | None],
    **changes: object,
) -> score.Score:  # fmt: skip
    for seed, value in enumerate(parents):
        made_up.run(tmp_path / f"base-s{seed}", value, seed=seed, algo__lr=0.003)
    facts = {"parent": "base-s0", "proposal": made_up.proposal(DIFF, *said)}
    for seed, value in enumerate(children):
        made_up.run(tmp_path / f"child-s{seed}", value, facts, **{"seed": seed, "algo__lr": 0.01, **changes})
    judged = score.of_run(load(tmp_path / "child-s0"))
    assert judged is not None
    return judged


def test_a_hit_by_hand(tmp_path: Path) -> None:
    """Means 100 and 150, sd 1 and 1, n 3 and 3: se sqrt(2/3) = 0.816, t(0.975, 4) = 2.776 -> 2.27."""
    judged = scored(tmp_path, [99, 100, 101], [149, 150, 151], (45.0, 30.0, 60.0))
    assert (judged.verdict, judged.reason, judged.kind) == ("hit", "inside", "interval")
    assert judged.measured.delta == 50
    assert judged.measured.seeds == (3, 3)
    assert judged.measured.high - judged.measured.delta == pytest.approx(2.776 * math.sqrt(2 / 3), rel=1e-3)
    assert judged.error == 5
    assert judged.runs == ["child-s0", "child-s1", "child-s2"]


@pytest.mark.parametrize(
    ("parents", "children", "said", "verdict", "reason"),
    [
        ([99, 100, 101], [149, 150, 151], (5.0, 0.0, 10.0), "miss", "outside"),
        ([99, 100, 101], [80, 81, 82], (5.0, 0.0, 10.0), "miss", "outside"),
        ([90, 100, 110], [105, 112, 119], (5.0, 0.0, 10.0), "cannot tell", "within_noise"),
        ([90, 100, 110], [95, 105, 115], (5.0, 0.0, 10.0), "cannot tell", "less_sharp"),
        ([100], [150], (45.0, 30.0, 60.0), "cannot tell", "one_seed"),
        ([99, 100, 101], [150], (45.0, 30.0, 60.0), "hit", "inside"),  # 4.303 * 1 * sqrt(4/3) = 4.97 < 15
        ([99, 100, 101], [100, 101, 102], (45.0, None, None), "cannot tell", "no_interval"),
        ([99, 100, 101], [100, 101, 102], (None, None, None), "cannot tell", "no_interval"),
        ([99, 100, 101], [149, 150, 151], (None, 0.0, 400.0), "hit", "inside"),
        ([99, 100, 101], [49, 50, 51], (None, 0.0, 400.0), "miss", "outside"),
    ],
)  # fmt: skip
def test_verdicts(
    tmp_path: Path, parents: list[float], children: list[float], said: tuple[float, float, float], verdict: str,
    reason: str,
) -> None:  # fmt: skip
    judged = scored(tmp_path, parents, children, said)
    assert (judged.verdict, judged.reason) == (verdict, reason)


def test_one_seed_borrows_the_spread_of_the_others(tmp_path: Path) -> None:
    judged = scored(tmp_path, [99, 100, 101], [150], (45.0, 30.0, 60.0))
    assert judged.measured.high - judged.measured.delta == pytest.approx(4.303 * math.sqrt(4 / 3), rel=1e-3)


def test_what_cannot_be_measured_is_said(tmp_path: Path) -> None:
    more = scored(tmp_path / "a", [99, 100], [150, 151], (45.0, 30.0, 60.0), algo__gamma=0.9)
    assert (more.verdict, more.reason, more.what) == ("cannot tell", "changed_more", "algo.gamma")
    alone = scored(tmp_path / "b", [], [150], (45.0, 30.0, 60.0))
    assert alone.why == "its parent base-s0 is not here"
    made_up.run(tmp_path / "c" / "base-s0", 1.0, algo__lr=0.003)
    facts = {"parent": "base-s0", "proposal": made_up.proposal(DIFF, 1.0, 0.0, 2.0), "status": "interrupted"}
    made_up.run(tmp_path / "c" / "child", 1.0, facts, algo__lr=0.01)
    assert score.of_run(load(tmp_path / "c" / "child")).why == "its run is interrupted"


def test_runs_the_prediction_was_made_from_are_no_test_of_it(tmp_path: Path) -> None:
    """Twins with the proposed value that came from no proposal are not counted as children."""
    made_up.run(tmp_path / "twin", 500.0, seed=9, algo__lr=0.01)
    judged = scored(tmp_path, [99, 100, 101], [149, 150, 151], (45.0, 30.0, 60.0))
    assert judged.measured.delta == 50
    assert score.of_run(load(tmp_path / "twin")) is None


def test_a_parent_in_an_experiment_is_found_by_its_id(tmp_path: Path) -> None:
    home = tmp_path / "experiments" / "q" / "runs"
    for seed in range(3):
        made_up.run(home / f"base-s{seed}", 99.0 + seed, seed=seed, algo__lr=0.003)
    decoy = made_up.run(tmp_path / "runs" / "base-s0", 0.0, {"id": "ffffffffffff"}, algo__lr=0.003)
    id_ = load(home / "base-s0").meta["id"]
    facts = {"parent": "base-s0", "parent_id": id_, "proposal": made_up.proposal(DIFF, 45.0, 30.0, 60.0)}
    made_up.run(tmp_path / "runs" / "child", 150.0, facts, algo__lr=0.01)
    judged = score.of_run(load(tmp_path / "runs" / "child"), [tmp_path / "experiments"])
    assert judged.measured.delta == 50
    assert load(decoy).meta["id"] != id_


def test_lower_is_better_turns_the_sign(tmp_path: Path) -> None:
    said = made_up.proposal(DIFF, 45.0, 30.0, 60.0)
    said["predicted"] |= {"direction": "lower", "at": "final"}
    for seed in range(3):
        made_up.run(tmp_path / f"base-s{seed}", [100, 110, 150][seed], seed=seed, algo__lr=0.003)
        made_up.run(
            tmp_path / f"c-s{seed}", 60.0 + seed, {"parent": "base-s0", "proposal": said}, seed=seed, algo__lr=0.01
        )
    judged = score.of_run(load(tmp_path / "c-s0"))
    assert judged.measured.delta == pytest.approx(59)
    assert judged.measured.low < 59 < judged.measured.high


@pytest.mark.parametrize(
    "kept", [None, 3, {}, {"diff": 1, "predicted": {}}, {"diff": {"a": 1}, "predicted": {}}, {"predicted": {}}]
)
def test_a_damaged_proposal_is_none(tmp_path: Path, kept: object) -> None:
    made_up.run(tmp_path / "x", 1.0, {"parent": "y", "proposal": kept})
    assert score.of_run(load(tmp_path / "x")) is None


# ---- The history


def history_of(tmp_path: Path) -> list[score.Score]:
    """Three predictions: inside, outside, and bounds that promise nothing."""
    for i, (value, said) in enumerate(
        [(150.0, (45.0, 30.0, 60.0)), (400.0, (45.0, 30.0, 60.0)), (200.0, (None, 0.0, 400.0))]
    ):
        home = tmp_path / f"{i}"
        for seed in range(3):
            made_up.run(home / f"base-s{seed}", 99.0 + seed, seed=seed, algo__lr=0.003)
            facts = {"parent": "base-s0", "proposal": made_up.proposal(DIFF, *said)}
            made_up.run(home / f"child-s{seed}", value - 1 + seed, facts, seed=seed, algo__lr=0.01)
    return score.collect(load(folder) for folder in sorted(tmp_path.glob("*/*")))


def test_calibration_by_hand(tmp_path: Path) -> None:
    """1 of 2 inside; Wilson at n = 2, p = 0.5: (0.5 + 1.92/2 +- ...) / (1 + 1.92) = 0.0945 to 0.9055."""
    record = calibration.calibration(history_of(tmp_path))
    assert (record.n, record.inside) == (2, 1)
    assert record.share == pytest.approx((0.5, 0.0945, 0.9055), abs=1e-3)
    assert record.mean_error == pytest.approx((5 + 255) / 2)
    assert record.mean_absolute_error == pytest.approx(130)
    assert record.verdicts == {"hit": 2, "miss": 1, "cannot tell": 0}
    assert "too few to tell" in record.line


def test_too_narrow_is_said() -> None:
    """By hand: P(at most 1 of 2 | 0.95) = 1 - 0.95**2 = 0.0975, no sign of anything."""
    assert calibration._at_most(1, 2) == pytest.approx(0.0975)
    assert calibration._line(3, 10, calibration.stats.wilson(3, 10)).endswith("the intervals are too narrow")
    assert "no sign" in calibration._line(10, 10, calibration.stats.wilson(10, 10))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    history_of(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["next", "--history"]) == 0
    out = capsys.readouterr().out
    assert "algo.lr 0.003 -> 0.01" in out
    assert "+45 [+30, +60]" in out
    assert "3 predictions: 2 hit, 1 miss, 0 cannot tell" in out
    assert "1 of 2 measured differences lay in their 95% interval (50%, 9% to 91%)" in out
    assert cli.main(["next", "runs", "--history", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in body["scores"]].count("hit") == 2
    assert body["calibration"]["n"] == 2
    assert cli.main(["next", "--history", "--write"]) == 64


def test_every_reason_is_said_in_every_language() -> None:
    assert {k.removeprefix("why."): v for k, v in words("en").sentences.items() if k.startswith("why.")} == score.WHY
    assert all(f"why.{key}" in words("zh").sentences for key in score.WHY)
