"""Does the film of a curve show it from left to right, and say so when there is nothing to show?"""

from __future__ import annotations

from pathlib import Path

import imageio.v2 as imageio
import numpy as np
import pytest

from relab.config.base import ConfigError
from relab.record.history import Column, History
from relab.report import growing


def two_curves() -> History:
    steps = np.arange(8, 57, 8) * 1000
    columns = {"multi/avg_final": Column(steps, np.linspace(0.2, 0.9, 7)),
               "return/mean_100": Column(steps, np.linspace(-50, 300, 7))}  # fmt: skip
    return History(Path("school"), columns=columns, events=[{"kind": "gate", "step": 16000}])


def test_the_curve_grows_from_left_to_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "FRAMES", 9)
    monkeypatch.setattr(growing, "HOLD", 3)
    film = growing.film(two_curves(), tmp_path / "curve.gif")
    assert film["metrics"] == ["multi/avg_final", "return/mean_100"]
    frames = [np.asarray(frame)[..., :3].astype(int) for frame in imageio.mimread(tmp_path / "curve.gif")]
    blue = [
        int((np.abs(frame - (66, 110, 180)).sum(2) < 60).sum())
        for frame in (frames[0], frames[len(frames) // 2], frames[-1])
    ]
    assert blue[0] < blue[1] < blue[2]
    assert film["frames"] == 9 + 3


def test_metrics_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no policy/kl"):
        growing.film(two_curves(), tmp_path / "x.gif", ["policy/kl"])
    with pytest.raises(ConfigError, match="no metric to draw"):
        growing.film(History(Path("empty")), tmp_path / "x.gif")


def test_the_penalty_is_drawn_below_what_the_run_is_judged_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "FRAMES", 2)
    run = two_curves()
    columns = run.columns | {"stage/density_coef": Column(np.arange(1, 8) * 8000, np.linspace(0, 0.3, 7))}
    plan = {"gates": {"penalty": {"sets": {"density_coef": [0, 0.1]}}}}
    staged = History(run.folder, columns=columns, config={"schedule": plan})
    assert growing.film(staged, tmp_path / "x.gif")["metrics"][-1] == "stage/density_coef"
    foreign = run.columns | {"foreign/schedule/density_penalty_coef": columns["stage/density_coef"]}
    assert growing.chosen(History(run.folder, columns=foreign))[-1] == "foreign/schedule/density_penalty_coef"


def test_early_deaths_are_drawn_whatever_step_they_are_counted_to() -> None:
    run = two_curves()
    names = ("multi/avg_final", "multi/early_death_50", "multi/early_death_150")
    columns = run.columns | dict.fromkeys(names, Column(np.array([8000, 16000]), np.array([0.3, 0.2])))
    assert growing.chosen(History(run.folder, columns=columns))[:2] == ["multi/avg_final", "multi/early_death_50"]
