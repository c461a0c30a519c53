"""What does somebody meet who reads a log for the first time? Errors that name their cause, lines that are whole."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import relab
from relab.cli import main
from relab.logger import Logger


@pytest.fixture
def logs(tmp_path, monkeypatch) -> Path:
    """Two plain logs in the working folder: no settings, no evaluations."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        rows = [{"step": 100 * i, "episode_return": float(i % 7 + i), "loss": 1 / (i + 1)} for i in range(100)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize(
    ("metric", "said"),
    [("episode_retrun", "the nearest: episode_return"), ("nokey", "they have return/mean, ")],
)
def test_a_metric_that_no_run_has_is_an_error(logs, capsys, metric, said):
    assert main(["compare", "--metric", metric, "a.jsonl", "b.jsonl"]) == 2
    streams = capsys.readouterr()
    assert (streams.out, said in streams.err, "none of the 2 runs has this metric" in streams.err) == ("", True, True)


def test_a_metric_that_one_run_has_is_none(logs, capsys):
    assert main(["compare", "--metric", "loss", "a.jsonl", "b.jsonl"]) == 0


@pytest.mark.parametrize("into", ["nosuchdir/x.md", "nosuchdir/notes"])
def test_a_note_makes_no_folders_on_the_way(logs, capsys, into):
    assert main(["note", "a.jsonl", "--into", into]) == 2
    printed = capsys.readouterr().err
    assert "the folder nosuchdir does not exist; make it first (mkdir -p nosuchdir)" in printed
    assert not Path("nosuchdir").exists()


@pytest.mark.parametrize("into", ["x.md", "notes"])
def test_a_note_begins_a_log_or_a_folder_where_there_is_one(logs, into):
    assert main(["note", "a.jsonl", "--into", into]) == 0
    assert Path(into).exists()


@pytest.mark.parametrize("columns", [50, 118, 300])
def test_limits_are_wrapped_and_not_cut(logs, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    with open("a.jsonl", "a") as file:
        file.write('{"step": 5, broken by a kill in the middle of a row that is long\n')
    main(["examine", "a.jsonl"])
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("limits: "))
    whole = " ".join(line.strip() for line in lines[at:])
    assert "in the middle of a row that is long" in whole
    assert "rules apply" in whole
    assert "..." not in whole
    assert max(map(len, lines[at:])) <= min(columns, 118)


@pytest.fixture
def opens(monkeypatch) -> list[str]:
    """The files that are opened to be read as a whole, one entry each time."""
    from relab.base import limits

    names: list[str] = []
    blocks = limits.blocks
    monkeypatch.setattr(limits, "blocks", lambda path, *rest: names.append(Path(path).name) or blocks(path, *rest))
    return names


@pytest.mark.parametrize("column", ["loss", "seed"])
def test_a_log_that_has_not_changed_is_not_read_again_to_be_listed(tmp_path, opens, column, capsys):
    from relab.formats.read import tabular

    log = tmp_path / "logs" / "progress.csv"
    log.parent.mkdir()
    log.write_text(f"step,return,{column}\n" + "".join(f"{i},{i},{i % 2}\n" for i in range(100)))
    listed = []
    for _ in range(3):
        tabular._load.cache_clear()  # as in another process
        assert main(["runs", str(tmp_path), "--json"]) == 0
        listed.append(json.loads(capsys.readouterr().out)["runs"])
    assert opens == ["progress.csv"]
    assert listed[0] == listed[1] == listed[2]
    seeds = [f"logs/progress.csv/seed={seed}" for seed in (0, 1)]
    assert sorted(run["name"] for run in listed[2]) == (seeds if column == "seed" else ["logs"])
    with open(log, "a") as file:
        file.write("200,200,2\n")
    assert main(["runs", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == (3 if column == "seed" else 1)
    assert opens == ["progress.csv"] * 2


def test_what_a_log_held_is_forgotten_with_the_log(tmp_path):
    from relab.runs.index import Index

    (tmp_path / "a.csv").write_text("step,return\n1,2\n")
    (tmp_path / "b.csv").write_text("step,return\n1,2\n")
    index = Index(tmp_path)
    index.refresh()
    (tmp_path / "b.csv").unlink()
    index.refresh()
    assert [Path(path.decode()).name for (path,) in index.db.execute("SELECT path FROM splits")] == ["a.csv"]
    index.close()


def curve(name: str, last: dict[int, str]) -> None:
    """A log of 200 rows that rises, with some of its returns replaced."""
    rows = [f'{{"step": {100 * i}, "episode_return": {last.get(i, float(i % 7 + i))}}}\n' for i in range(200)]
    Path(name).write_text("".join(rows))


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ({199: "1e400"}, "1 of its last 20 values not finite"),
        (dict.fromkeys(range(100, 200), "1e400"), "20 of its last 20 values not finite"),
        (dict.fromkeys(range(150, 200), "NaN"), "20 of its last 20 values not finite"),
        ({195: "-1e400"}, "1 of its last 20 values not finite"),
        ({100: "1e400"}, ""),  # the end is finite: it is judged by that
    ],
)
def test_examine_compare_and_note_agree_on_who_diverged(tmp_path, monkeypatch, capsys, last, said):
    monkeypatch.chdir(tmp_path)
    curve("good.jsonl", {})
    curve("bad.jsonl", last)
    main(["examine", "bad.jsonl"])
    examined = capsys.readouterr().out
    main(["compare", "good.jsonl", "bad.jsonl", "--by", "path", "--json"])
    rows = {row["label"]: row for row in json.loads(capsys.readouterr().out)["tasks"][0]["variants"]}
    main(["compare", "good.jsonl", "bad.jsonl", "--by", "path"])
    compared = capsys.readouterr().out
    main(["note", "bad.jsonl"])
    noted = capsys.readouterr().out
    assert (f"diverged in training ({said})" in examined) is bool(said)
    assert (rows["bad.jsonl"]["diverged"], rows["bad.jsonl"]["mean"]["n"]) == ((1, 0) if said else (0, 1))
    assert rows["good.jsonl"]["diverged"] == 0
    assert (f"1 of 1 runs diverged (bad.jsonl: {said})" in compared) is bool(said)
    assert ("broke" in noted.lower()) is bool(said)


def test_many_runs_are_listed_with_those_that_diverged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    for seed in range(4):
        curve(f"runs/ppo_s{seed}.jsonl", {199: "1e400"} if seed == 2 else {})
    main(["examine", "runs", "--group", "ppo_s{seed}.jsonl"])
    line = next(line for line in capsys.readouterr().out.splitlines() if "4 seeds:" in line)
    assert "diverged," in line
    assert "1 diverged)" in line or "1 diverged, " in line


def test_infinity_reaches_no_level(tmp_path, monkeypatch, capsys):
    from relab.comparison import outcomes
    from relab.record.history import Column, History

    steps, values = np.arange(4), np.array([0.0, np.inf, 1.0, 3.0])
    history = History(tmp_path, columns={"return/mean": Column(steps, values)})
    assert outcomes.outcome(history, "first_step_reaching", "return/mean", reach=2.0).value == 3


def test_a_note_on_a_log_without_evaluations_and_settings_does_not_speak_of_them(logs, capsys):
    assert main(["note", "a.jsonl"]) == 0
    noted = capsys.readouterr().out
    assert "last training returns" in noted
    assert "last evaluation" not in noted
    assert "No settings are recorded" in noted
    assert "No setting differs" not in noted


def test_a_note_names_the_mend_that_examine_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    curve("bad.jsonl", {199: "1e400"})
    os.utime("bad.jsonl", (0, 0))  # it has ended
    main(["examine", "bad.jsonl"])
    mend = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("  try: "))
    main(["note", "bad.jsonl"])
    noted = capsys.readouterr().out.replace("\\", "")
    assert "nothing worth proposing" not in noted
    assert mend.removeprefix("  try: ").rstrip(".") in noted
    main(["next", "bad.jsonl"])
    assert capsys.readouterr().out.startswith("no run can be proposed: ")


def test_a_note_of_a_healthy_run_still_proposes_nothing(logs, capsys):
    for name in ("a.jsonl", "b.jsonl"):
        os.utime(name, (0, 0))
    main(["note", "a.jsonl"])
    assert "nothing worth proposing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("head", "hint"),
    [
        ("Steps,AvgRet", "the column AvgRet is not understood; say what it means: --mapping AvgRet=return/mean"),
        ("t,R", "the columns t, R are not understood; say what they mean: --mapping t=step,R=return/mean"),
        ("timestep,score", ""),
    ],
)
def test_an_odd_table_is_told_how_to_be_read(tmp_path, capsys, head, hint):
    """A column that counts steps is no candidate for the steps once more, and a score is a return."""
    rows = "\n".join(f"{i},{2 * i}" for i in range(1, 13))
    (tmp_path / "odd.csv").write_text(f"{head}\n{rows}\n")
    assert main(["examine", str(tmp_path / "odd.csv")]) == (2 if hint else 0)
    printed = capsys.readouterr().err.strip()
    assert printed == (f"relab: odd.csv: {hint}" if hint else "")


@pytest.mark.parametrize(
    ("word", "said"),
    [("buffer_size", "transitions that are kept to learn from"),
     ("train/entropy_loss", "policy/entropy (metric"), ("n_epochs", "algo.epochs"),
     ("plateau", "algo.value_coef higher; algo.lr, algo.ent_coef, algo.gamma, which way is not known")],
)  # fmt: skip
def test_explain_knows_settings_as_other_tools_call_them_and_says_both_directions(capsys, word, said):
    assert main(["explain", word]) == 0
    assert said in capsys.readouterr().out


def test_a_note_says_how_many_settings_it_leaves_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with Logger("run", {f"setting_{i}": i for i in range(20)}, seed=0, env="CartPole-v1", algo="ppo") as log:
        for i in range(1, 30):
            log.log(100 * i, **{"return/mean": float(i)})
    assert main(["note", "run"]) == 0
    plan = capsys.readouterr().out.partition("### Record")[0]
    assert "| foreign.setting_11 | 11 |\n| ... | +8 |" in plan


def test_a_logger_takes_a_mapping_and_keeps_what_its_program_failed_of(tmp_path, capsys):
    def program():
        with Logger(tmp_path / "a", config={"env_id": "CartPole-v1"}) as log:
            log.log(1000, {"return/mean": 20.0}, loss=0.5)
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        program()
    (run,) = relab.load(tmp_path)
    assert {name: column.values.tolist() for name, column in run.history.columns.items()} == {
        "return/mean": [20.0], "foreign/loss": [0.5]}  # fmt: skip
    assert main(["examine", str(tmp_path)]) == 0
    assert "the run failed at step 1,000: ZeroDivisionError: division by zero" in capsys.readouterr().out


def test_python_says_each_thing_once_and_seeds_in_their_order(tmp_path):
    for lr in (0.1, 0.2):
        for seed in (1, 2, 10, 11, 12):
            with Logger(tmp_path / f"lr{lr}_s{seed}", config={"env_id": "CartPole-v1", "lr": lr, "seed": seed}) as log:
                for i in range(40):
                    log.log(1000 * i, {"return/mean": 100 * lr + i + seed / 100})
    runs = relab.load(tmp_path)
    assert re.findall(r"(\d+): ", repr(runs).splitlines()[1]) == ["1", "2", "10", "11", "12"]
    lines = [line.strip() for line in repr(relab.compare(tmp_path)).splitlines()]
    assert len(lines) == len(set(lines)) > 1


def test_next_does_not_deny_a_setting_that_the_log_holds(tmp_path, capsys):
    """A plateau below the known level may be mended by `lr` either way: no change follows, but `lr` is in the log."""
    rng = np.random.default_rng(0)
    rows = [f"{2048 * i},{min(20 + 6 * i, 150) + rng.normal(0, 8):.2f}" for i in range(1, 98)]
    (tmp_path / "log.csv").write_text("\n".join(["global_step,reward", *rows, ""]))
    settings = {"env": "CartPole-v1", "algo": "ppo", "seed": 0, "learning_rate": 3e-4, "total_timesteps": 200_000}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert main(["next", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "below-known-level" in text
    assert "does not hold a setting" not in text
