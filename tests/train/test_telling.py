"""Is something said while an iteration takes long: how far it is, how long the run takes, that a stop was heard?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from relab.train import session, telling
from relab.train.loop import Trainer
from relab.train.screen import Silent
from small_runs import DREAMS, run


class Listener(Silent):
    def __init__(self) -> None:
        self.parts: list[Mapping[str, Any]] = []
        self.notes: list[str] = []

    def part(self, row: Mapping[str, Any]) -> None:
        self.parts.append(row)

    def note(self, text: str) -> None:
        self.notes.append(text)


class Clock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now


def trainer(**more: Any) -> Any:
    facts = {"step": 1_000, "clock": "agent_steps", "cfg": SimpleNamespace(total_steps=100_000), "took": 0.1,
             "state": SimpleNamespace(counts=SimpleNamespace(updates=0)), "screen": Listener(), "stopping": str,
             "forecast_said": False, "warned": set(), "within": None}  # fmt: skip
    made = SimpleNamespace(**facts | more)
    made.say_wait = lambda: Trainer.say_wait(made)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(telling, "time", made)
    return made


def test_the_speed_inside_of_the_first_long_iteration_tells_how_long_the_run_takes(clock: Clock) -> None:
    told = trainer()
    within = telling.Within(told)
    for second in range(1, 31):
        clock.now, told.step, told.state.counts.updates = float(second), 1_000 + 2 * second, second
        within("this iteration's steps", second, 64)
    assert told.screen.notes == ["  about 13h44m at this speed (2 steps/s) until total_steps = 100,000"]
    assert told.screen.parts[0]["done"] == 2  # a second is no wait
    assert told.screen.parts[-1]["eta_s"] == pytest.approx(34.0)


def test_nothing_is_forecast_before_anything_was_learned(clock: Clock) -> None:
    told = trainer()
    within = telling.Within(told)
    for second in range(1, 31):
        clock.now, told.step = float(second), 1_000 + 2 * second
        within("this iteration's steps", second, 64)
    assert told.screen.notes == []


def test_a_stop_is_answered_in_the_first_iteration_that_takes_long_after_quick_ones(clock: Clock) -> None:
    told = trainer()
    told.within = telling.Within(told)
    told.say_wait()  # the signal comes a moment after the iteration began
    assert told.screen.notes == []
    told.stopping = lambda: "SIGINT"
    for second in (1.0, 2.5, 3.0, 4.0):
        clock.now = second
        told.within("this iteration's steps", int(second), 64)
    assert len(told.screen.notes) == 1
    assert "stopping once this iteration is over (the last took 0 s)" in told.screen.notes[0]


def test_a_method_with_a_replay_says_how_far_its_iteration_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "QUICK_S", 0.0)
    monkeypatch.setattr(telling, "PART_EVERY_S", 1e-9)
    shown = Listener()
    run(tmp_path / "a", shown, **{key.replace(".", "__"): value for key, value in DREAMS.items()})
    assert {(row["what"], row["of"]) for row in shown.parts} == {("this iteration's steps", 16)}
    assert [row["done"] for row in shown.parts[:16]] == list(range(1, 17))


def test_pictures_are_kept_before_the_checkpoint_that_a_killed_run_goes_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: dict[int, bool] = {}

    def album(trainer: Trainer, before: int) -> None:
        saved[trainer.step] = (trainer.folder / "checkpoints" / f"step-{trainer.step:012d}").exists()

    monkeypatch.setattr(session, "mirror", lambda trainer: setattr(trainer, "album", album))
    run(tmp_path / "a")
    assert saved[512] is False  # where an evaluation, and with it a checkpoint, is due
    assert (tmp_path / "a" / "checkpoints" / "step-000000002048").exists()
