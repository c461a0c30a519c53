"""Are the numbers on the screen short and right, and does each kind of screen print what it is for?"""

from __future__ import annotations

import math

import orjson
import pytest

from relab.train import screen


@pytest.mark.parametrize(("share", "full"), [(0, 0), (0.5, 10), (1, 20), (0.99, 20), (0.02, 0)])
def test_bar(share, full):
    assert screen.bar(share) == "█" * full + "░" * (20 - full)


STATUS = {"step": 12_345, "total_steps": 100_000, "sps": 51_234.0, "return": 123.456, "eta_s": 75.0,
          "earned": "return/mean_100", "axis": "agent_steps", "episodes": 321}  # fmt: skip
EVALUATION = {
    "step": 20_000,
    "n": 20,
    "modes": {"det": {"mean": 500.0, "noise": 0.0}, "sampled": {"mean": 481.25, "noise": 3.125}},
    "best": True,
}
FACTS = {
    "name": "2026-11-16-calm-otter", "algo": "ppo", "env": "cartpole-v1", "seed": 0, "config_hash": "abc123",
    "derived": {"batch": 2048, "horizon": math.inf}, "random": {"return_mean": 22.31, "return_std": 11.0, "n": 100},
}  # fmt: skip
END = {
    "status": "finished", "why": "total_steps reached", "step": 100_000, "elapsed_s": 2.5, "sps": 40_000.0,
    "folder": "runs/x", "next": ["relab eval runs/x"],
}  # fmt: skip


PART = {"step": 2, "total_steps": 10, "axis": "iteration", "what": "re-rollouts", "done": 1_000, "of": 4_000,
        "eta_s": 75.0}  # fmt: skip


def test_a_long_part_of_an_iteration_says_how_far_it_is(capsys, monkeypatch):
    line = "iteration 3 of 10: re-rollouts 1,000 of 4,000 (25%)  ETA 1m15s"
    assert screen.part_line(PART) == line
    assert screen.part_line(PART | {"axis": "updates"}) == "2/10 updates: re-rollouts 1,000 of 4,000 (25%)  ETA 1m15s"
    screen.Live().part(PART)
    assert capsys.readouterr().out == f"\r{screen.bar(0.25)} {line}"
    screen.JsonLines().part(PART)
    assert orjson.loads(capsys.readouterr().out) == {"kind": "part", **PART}
    plain = screen.Plain()
    plain.part(PART)
    plain.part(PART)
    assert capsys.readouterr().out == f"  {line}\n", "a line every ten seconds"


def test_lines():
    assert screen.status_line(STATUS) == "12.3k/100k steps  51.2k/s  return 123.5 (last 100 episodes)  ETA 1m15s"
    of_row = STATUS | {"earned": "return/mean"}
    assert "return 123.5 (episodes of the last row)  " in screen.status_line(of_row)
    assert screen.status_line(STATUS | {"return": None, "eta_s": None}) == "12.3k/100k steps  51.2k/s"
    for episodes, told in ((0, "recent episodes"), (1, "the only episode"), (99, "last 99 episodes")):
        assert f"({told})" in screen.status_line(STATUS | {"episodes": episodes})
    assert "12.3k/100k updates  " in screen.status_line(STATUS | {"axis": "updates"})
    assert screen.footer(END | {"axis": "iteration"})[0].endswith("; 100k iterations in 2.5s (40k/s)")
    assert screen.evaluation_line(EVALUATION) == (
        "  eval at 20k: return det 500 ± 0, sampled 481.2 ± 3.125 (mean ± SE, 20 episodes each)  best so far"
    )
    assert "best" not in screen.evaluation_line(EVALUATION | {"best": False})
    assert screen.header(FACTS) == [
        "2026-11-16-calm-otter  ppo on cartpole-v1, seed 0, config abc123",
        "  batch 2,048, horizon 1/(1-gamma) inf",
        "  random policy: return 22.31 (sd 11, 100 episodes)",
    ]
    agents = {"agents": 3, "iterations": 98, "batch": 6144}
    assert screen.header(FACTS | {"derived": agents})[1] == "  agents 3, iterations at least 98, batch 6,144"
    assert len(screen.header(FACTS | {"random": None})) == 2
    assert len(screen.header(FACTS | {"random": {"return_mean": None, "return_std": None, "n": 100}})) == 2
    cut = {"return_mean": None, "return_std": None, "n": 100, "cut": 40, "cap": 5000}
    told = "  random policy: no return; 40 of 100 episodes were not over after 5k steps"
    assert screen.header(FACTS | {"random": cut})[-1] == told
    assert screen.footer(END) == [
        "finished: total_steps reached; 100k steps in 2.5s (40k/s)",
        "  record: runs/x",
        "  next: relab eval runs/x",
    ]


def play(shown: screen.Screen) -> None:
    shown.start(FACTS)
    for _ in range(3):
        shown.iteration(STATUS)
    shown.evaluation(EVALUATION)
    shown.note("a note")
    shown.end(END)


def test_json_lines_are_json_with_their_kind_first(capsys):
    play(screen.JsonLines())
    lines = capsys.readouterr().out.splitlines()
    assert [orjson.loads(line)["kind"] for line in lines] == [
        "start", "iteration", "iteration", "iteration", "evaluation", "note", "end",
    ]  # fmt: skip
    assert all(line.startswith('{"kind":') for line in lines)
    assert orjson.loads(lines[1])["step"] == 12_345
    assert orjson.loads(lines[0])["derived"]["horizon"] == "Infinity"  # as in the record; null would mean missing


def test_plain_lines_do_not_flood_a_log(capsys):
    play(screen.Plain())
    lines = capsys.readouterr().out.splitlines()
    assert sum("steps  " in line for line in lines) == 1  # three iterations within a moment
    assert lines[-1] == "  next: relab eval runs/x"
    assert not any("\r" in line for line in lines)


def test_a_terminal_keeps_one_line_alive(capsys):
    play(screen.Live())
    out = capsys.readouterr().out
    drawn = f"{screen.bar(0.12345)} {screen.status_line(STATUS)}"
    assert "\r" + drawn in out
    # before anything scrolls up, the live line is wiped over its whole width
    assert "\r" + " " * len(drawn) + "\r" + screen.evaluation_line(EVALUATION) + "\n" in out
    assert out.endswith("\n")


def test_silence(capsys):
    play(screen.Silent())
    assert capsys.readouterr().out == ""


def test_the_choice_of_a_screen(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert isinstance(screen.choose(as_json=True), screen.JsonLines)
    assert isinstance(screen.choose(as_json=False, quiet=True), screen.Silent)
    assert isinstance(screen.choose(as_json=False), screen.Live)
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    assert isinstance(screen.choose(as_json=False), screen.Plain)


def test_an_error_of_adding_floats_is_none():
    assert screen.earned(-6.0, 4.075e-16) == "-6 ± 0"
    assert screen.earned(-6.0, 4.075e-6) == "-6 ± 4.075e-06"


def test_speed_is_steps_over_seconds_not_a_mean_of_speeds():
    """Rows before learning took a millisecond, rows with learning a second: each counts by its seconds."""
    pace = screen.Pace()
    pace.add(64, 40.0, learning=False)  # compiled
    assert pace.sps is None
    for _ in range(15):
        pace.add(64, 0.001, learning=False)
    assert pace.sps == pytest.approx(64_000)
    pace.add(64, 40.0, learning=True)  # compiled
    assert pace.sps is None, "what was before learning says nothing about it"
    for seconds in (1.0, 0.5, 2.5, 0.0):
        pace.add(64, seconds, learning=True)
    assert pace.sps == pytest.approx(4 * 64 / 4.0)


def test_speed_forgets_the_first_half():
    pace = screen.Pace()
    for seconds in [1.0] * 101 + [4.0] * 60:
        pace.add(100, seconds, learning=True)
    assert pace.sps == pytest.approx(25.0, rel=0.1)  # 100 s at 100/s, then 240 s at 25/s
