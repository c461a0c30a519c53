"""Is a log with wrong steps told as such, and judged by the right ones only?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import find, step_axis, tfevents
from relab.health.examine import examine
from relab.record.history import History

ROWS = 60
STEPS = 500 * np.arange(1, ROWS + 1)
LENGTHS = np.linspace(20, 190, ROWS)


def write_csv(folder: Path, steps: np.ndarray) -> None:
    rows = [f"{step:.15g},{length:.2f},{length:.2f}" for step, length in zip(steps, LENGTHS)]
    (folder / "log.csv").write_text("\n".join(["global_step,episodic_return,episode_length", *rows]) + "\n")


def write_board(folder: Path, steps: np.ndarray) -> None:
    with tfevents.Writer(folder, wall=1.7e9) as writer:
        for i, step in enumerate(steps):
            for tag in ("charts/episodic_return", "charts/episodic_length"):
                writer.scalar(tag, float(LENGTHS[i]), int(step), 1.7e9 + i)


def read(folder: Path) -> History:
    (run,) = find.load_all(folder).runs
    return run.history


def with_one(at: int, step: float) -> np.ndarray:
    steps = STEPS.copy()
    steps[at] = int(step)
    return steps


@pytest.mark.parametrize("write", [write_csv, write_board])
@pytest.mark.parametrize("at", [0, 30, ROWS - 1])
@pytest.mark.parametrize("step", [1e12, -7])
def test_one_wrong_step_is_left_out_and_told_first(tmp_path, write, at, step):
    write(tmp_path, with_one(at, step))
    column = read(tmp_path).column("return/mean")
    assert column.steps.tolist() == [s for i, s in enumerate(STEPS) if i != at]
    assert column.values == pytest.approx([x for i, x in enumerate(LENGTHS) if i != at], abs=0.01)
    first = examine(tmp_path).main[0]
    assert (first.slug, first.severity) == ("steps-out-of-place", "warning")
    assert f"{int(step):,}" in first.message


@pytest.mark.parametrize("at", [40, ROWS - 1])
def test_a_row_that_falls_far_back_does_not_supersede_all_others(tmp_path, at):
    write_csv(tmp_path, with_one(at, 5))
    assert len(read(tmp_path).column("return/mean").steps) == ROWS - 1


@pytest.mark.parametrize("write", [write_csv, write_board])
def test_steps_in_thousands_are_doubted_and_not_counted(tmp_path, write):
    write(tmp_path, STEPS // 1000)
    history = read(tmp_path)
    assert set(history.axes.values()) == {"iteration"}
    assert [f.slug for f in examine(tmp_path).main][:1] == ["step-unit-doubtful"]
    write(tmp_path, STEPS) if write is write_csv else None
    assert write is write_board or step_axis.DOUBT not in read(tmp_path).meta


@pytest.mark.parametrize("write", [write_csv, write_board])
@pytest.mark.parametrize("steps", [-STEPS, STEPS - 15_000])
def test_where_many_steps_are_below_zero_rows_are_counted_in_the_order_of_the_log(tmp_path, write, steps):
    write(tmp_path, steps)
    column = read(tmp_path).column("return/mean")
    assert column.steps.tolist() == list(range(ROWS))
    assert column.values == pytest.approx(LENGTHS, abs=0.01)
    assert "below 0" in next(f.message for f in examine(tmp_path).main if f.slug == "step-unit-doubtful")


def test_fractions_of_thousands_are_no_steps_and_no_row_is_lost(tmp_path):
    write_csv(tmp_path, STEPS / 1000)
    assert len(read(tmp_path).column("return/mean").steps) == ROWS


@pytest.mark.parametrize(
    "steps",
    [
        [10, 20, 30, 40, 50, 60, 30, 40, 50, 60, 70],  # a restart
        [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
        [0, 0, 0, 10, 10, 20, 18, 30, 31, 29, 40],  # worlds side by side
    ],
)
def test_what_happens_in_sound_logs_is_not_out_of_place(steps):
    assert not step_axis.strays(np.array(steps)).any()


def history_of(last: int, **columns: float) -> History:
    history = History(Path("/nowhere"), source="csv")
    for name, value in columns.items():
        name = name.replace("__", "/")
        history.columns[name] = step_axis.Column(np.linspace(1, last, 20).astype(np.int64), np.linspace(1, value, 20))
        history.axes[name] = "env_steps"
    return history


@pytest.mark.parametrize(
    ("last", "columns"),
    [(50, {"data__updates": 90_000.0}), (50, {"time__sps": 900.0, "time__elapsed_s": 400.0})],
)
def test_updates_and_speed_contradict_a_count(last, columns):
    history = history_of(last, **columns)
    step_axis.doubt(history)
    assert step_axis.DOUBT in history.meta
    assert "iteration" in history.axes.values()
    sound = history_of(last * 1000, **columns)
    step_axis.doubt(sound)
    assert step_axis.DOUBT not in sound.meta
