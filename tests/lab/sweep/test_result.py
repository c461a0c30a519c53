"""Does the result of a sweep keep the keys that sweep.json has always had?"""

from __future__ import annotations

from relab.lab.sweep.result import Analysis, AxisEffect, Differences, LevelMean, RunValue, TrialResult, Widest


def test_keys_are_those_of_sweep_json() -> None:
    trial = TrialResult("a1", {"a": 1}, 1, 2, 3.0, 2.0, 4.0, [RunValue(0, 3.0, "a1-s0", True, "failed: x")], None)
    effect = AxisEffect(
        "a", [LevelMean(1, 3.0, 2.0, 4.0)], Widest(1, 2, 0.5, 0.1, 0.9), 0.9, 0.2, "seeds", 0.2, "moves"
    )
    body = Analysis(
        "which?", "score", "final", "higher", 0.0, "grid", {"a": [1, 2]}, [0, 1], [trial], [effect], [], [], [], {},
        Differences(0.95, 1, 1, [], None), None, [], "nothing",
    ).to_json()  # fmt: skip
    assert list(body) == [
        "schema", "question", "metric", "at", "direction", "smallest_effect", "method", "axes", "seeds", "trials",
        "effects", "interactions", "binned", "incomplete", "failed", "differ", "winner", "notes", "text",
    ]  # fmt: skip
    assert body["effects"][0]["widest"] == {"from": 1, "to": 2, "delta": 0.5, "low": 0.1, "high": 0.9}
    assert body["trials"][0]["values"] == [
        {"seed": 0, "value": 3.0, "run": "a1-s0", "reached": True, "note": "failed: x"}
    ]
    assert trial.failed == 1
