"""Does what the user knows reach the runs, and is a slip told?"""

from __future__ import annotations

import doctest
import json
import shlex
import shutil
from pathlib import Path

import pytest

from relab import api, cli
from relab.commands.progress import Progress
from relab.config.base import ConfigError
from relab.formats.read import find, hints, strange_names
from relab.formats.read.hints import Hints
from relab.formats.read.pattern import Pattern
from relab.formats.read.spec import merged, read_spec
from relab.health.examine import examine
from relab.record.state import group_key
from where import fixtures

FIXTURES = fixtures()
CSV = "step,reward,entropy,odd\n" + "".join(f"{i * 100},{i},{0.6 - i / 100},{-i}\n" for i in range(1, 12))


@pytest.fixture
def folder(tmp_path):
    """Two settings, two seeds, told by the names alone."""
    for name in ("lo.run0", "lo.run1", "hi.run0", "hi.run1"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "log.csv").write_text(CSV)
    return tmp_path / "logs"


def loaded(folder: Path, **fields) -> dict[str, find.Loaded]:
    return {run.name: run for run in find.load_all(folder, Hints(**fields)).runs}


# ---- --group


def test_a_pattern_groups_runs_and_tells_seed_and_settings(folder):
    runs = loaded(folder, group=Pattern.parse("{size}.run{seed}"))
    keys = {name: group_key(run.history, name) for name, run in runs.items()}
    assert keys["lo.run0"] == keys["lo.run1"] != keys["hi.run0"] == keys["hi.run1"]
    assert runs["hi.run1"].history.meta["seed"] == runs["hi.run1"].history.config["seed"] == 1
    assert runs["hi.run1"].history.config["foreign"]["size"] == "hi"


def test_what_does_not_matter_is_left_out(folder):
    runs = loaded(folder, group=Pattern.parse("{_}.run{seed}"))
    assert len({group_key(run.history, name) for name, run in runs.items()}) == 1


def test_a_pattern_fits_whole_parts_of_a_path():
    pattern = Pattern.parse("a_s{seed}")
    assert all(pattern.fits(name) for name in ("a_s1", "x/a_s1/tb"))
    assert not any(pattern.fits(name) for name in ("ba_s1", "a_s1b", "a_sx"))


@pytest.mark.parametrize(
    ("text", "said"),
    [("plain", "needs one {seed}"), ("{seed}{seed}", "needs one {seed}"), ("{a}{a}{seed}", "different plain words"),
     ("{a b}{seed}", "different plain words"), ("{_x}{seed}", "different plain words"), ("{seed}{", "not closed")],
)  # fmt: skip
def test_a_wrong_pattern_is_told(text, said):
    with pytest.raises(ConfigError, match=said.replace("{", r"\{")):
        Pattern.parse(text)


def test_the_guess_is_printed_and_a_pattern_is_remembered(folder, capsys):
    assert cli.main(["examine", str(folder)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("grouped by name: hi.run0 (1 run), hi.run1 (1 run)")
    assert "--group 'name_s{seed}'" in first
    assert cli.main(["examine", str(folder), "--group", "{size}.run{seed}"]) == 0
    capsys.readouterr()
    assert cli.main(["examine", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("grouped by '{size}.run{seed}': hi.run{seed} (2 runs), lo.run{seed} (2")
    assert len(examine(folder).groups) == 2  # other commands know it as well
    assert cli.main(["examine", str(folder), "--group", ""]) == 0
    assert len(examine(folder).groups) == 4


def test_a_pattern_that_fits_no_run_is_an_error_and_not_remembered(folder, capsys):
    assert cli.main(["examine", str(folder), "--group", "x{seed}"]) == 64
    assert "fits none of the 4 runs, which are called 'hi.run0'" in capsys.readouterr().err
    assert hints.recall_group(folder) is None


# ---- --spec and --command


def test_a_spec_counts_more_than_the_table_and_leaves_the_rest(tmp_path):
    option = read_spec("horizon=123,action.low=-1,random=3.5")
    run = find.load_all(FIXTURES / "sb3" / "sac_pendulum_seed0", Hints(spec=option)).runs[0].history
    plain = find.load_all(FIXTURES / "sb3" / "sac_pendulum_seed0").runs[0].history
    spec, table = run.meta["spec"], plain.meta["spec"]
    assert (spec["horizon"], spec["action"]["low"], spec["random"]["return_mean"]) == (123, [-1], 3.5)
    assert (spec["action"]["high"], spec["reward_low"]) == (table["action"]["high"], table["reward_low"])
    assert table["horizon"] == 200


def test_an_environment_that_is_told_brings_its_facts(folder):
    history = loaded(folder, spec=read_spec("env=CartPole-v1"))["lo.run0"].history
    assert (history.meta["spec"]["horizon"], history.meta["spec"]["action"]["kind"]) == (500, "discrete")


def test_one_bound_stands_for_all_components():
    assert merged({}, read_spec("action.low=-2,action.high=2,action.dim=3"))["action"] == {
        "low": [-2, -2, -2], "high": [2, 2, 2], "dim": 3, "kind": "continuous"}  # fmt: skip


def test_a_spec_may_be_a_file(tmp_path):
    (tmp_path / "spec.yaml").write_text("horizon: 50\naction: {low: [-1, -2], high: [1, 2]}\n")
    assert read_spec(str(tmp_path / "spec.yaml")) == {"horizon": 50, "action": {"low": [-1, -2], "high": [1, 2]}}


@pytest.mark.parametrize(
    ("text", "said"),
    [("horizn=3", "nearest is `horizon`"), ("horizon=0", "whole number above 0"), ("horizon=1.5", "whole number"),
     ("reward_low=x", "a number"), ("action.kind=box", "one of discrete"), ("horizon=1,horizon=2", "twice"),
     ("reward_low=2,reward_high=1", "2 > 1"), ("random=.nan", "a number"), ("horizon=1,oops", "key=value")],
)  # fmt: skip
def test_a_wrong_spec_is_told(text, said):
    with pytest.raises(ConfigError, match=said):
        read_spec(text)


def test_a_command_is_kept_where_the_log_has_none(folder, tmp_path):
    assert hints.command_text(" train.py --lr 1 ") == "train.py --lr 1"
    (tmp_path / "run.sh").write_text("python train.py \\\n  --stages 3\n")
    text = hints.command_text(str(tmp_path / "run.sh"))
    assert loaded(folder, command=text)["lo.run0"].history.meta["command"] == "python train.py \\\n  --stages 3"
    history = loaded(folder)["lo.run0"].history
    history.meta["command"] = "its own"
    Hints(command="x").after(history)
    assert history.meta["command"] == "its own"


# ---- --mapping and --show-mapping


def test_names_of_the_user_beat_relabs(folder, tmp_path):
    (tmp_path / "names.yaml").write_text("mapping:\n  odd: {name: return/mean, factor: -1}\n  entropy: foreign/h\n")
    history = loaded(folder, mapping=hints.mapping_file(tmp_path / "names.yaml"))["lo.run0"].history
    assert history.columns["return/mean"].values[0] == 1.0
    assert history.columns["foreign/reward"].values[0] == 1.0  # what had the name before
    assert "policy/entropy" not in history.columns
    assert history.mapping == {"reward": "foreign/reward", "odd": "return/mean", "entropy": "foreign/h"}
    assert set(history.axes) == set(history.columns)


def test_a_changed_factor_starts_from_the_tools_number():
    source = FIXTURES / "sb3" / "ppo_cartpole_seed0"
    before = find.load_all(source).runs[0].history.columns["value/loss"].values
    changed = Hints(mapping={"train/value_loss": ("value/loss", 1.0)})
    after = find.load_all(source, changed).runs[0].history.columns["value/loss"].values
    assert (after == 2 * before).all()


def test_relab_toml_of_the_folder_maps_too(folder):
    (folder / "relab.toml").write_text('[mapping]\nodd = "value/mean"\n')
    assert all("value/mean" in run.history.columns for run in find.load_all(folder).runs)
    assert len(examine(folder).runs) == 4
    (folder / "relab.toml").write_text('[mapping]\nodd = "value/meen"\n')
    with pytest.raises(ConfigError, match=r"relab.toml: `odd` is mapped to 'value/meen'.*nearest is 'value/mean'"):
        find.load_all(folder)


@pytest.mark.parametrize(
    ("entry", "said"),
    [("policy/entropi", "nearest is 'policy/entropy'"), ({"name": "return/mean", "factor": 0}, "not 0"),
     ({"name": "return/mean", "scale": 2}, "has scale"), ({"factor": 2}, "no such metric"), (3, "no such metric")],
)  # fmt: skip
def test_a_wrong_name_is_told(entry, said):
    with pytest.raises(ConfigError, match=said):
        hints.read_mapping({"x": entry}, "here")


def test_a_mapping_of_names_that_no_run_has_is_an_error(folder, tmp_path, capsys):
    (tmp_path / "names.yaml").write_text("rewrd: return/mean\n")
    assert cli.main(["examine", str(folder), "--mapping", str(tmp_path / "names.yaml")]) == 64
    assert "theirs are reward, entropy, odd" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["examine", "report", "compare", "runs"])
def test_a_step_column_that_no_run_has_is_no_less_an_error(command, folder, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli.main([command, str(folder), "--mapping", "bogus=step"]) == 64
    assert "none of the runs has a column that bogus=step names" in capsys.readouterr().err


def test_a_mapping_may_be_given_name_by_name(tmp_path, capsys):
    (tmp_path / "odd.csv").write_text(ODD)
    names = ["--mapping", "frames_seen=step", "--mapping", "payoff_avg=return/mean"]
    assert cli.main(["examine", str(tmp_path), *names, "--show-mapping"]) == 0
    shown = capsys.readouterr().out
    assert "frames_seen" in shown
    assert "return/mean" in shown


def test_what_a_mapping_explains_beside_the_columns_is_said(tmp_path, capsys):
    (tmp_path / "odd.csv").write_text(ODD)
    line = "frames_seen=step,payoff_avg=return/mean,bogus=value/mean"
    assert cli.main(["examine", str(tmp_path), "--mapping", line]) == 0
    said = capsys.readouterr().err
    assert "`--mapping` explains bogus, which no run has" in said
    assert cli.main(["examine", str(tmp_path), "--mapping", line.rpartition(",")[0]]) == 0
    assert "no run has" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["examine", "report", "compare"])
def test_two_paths_may_have_columns_of_their_own(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(ODD)
    (tmp_path / "b.csv").write_text(ODD.replace("payoff_avg", "gain"))
    line = "frames_seen=step,payoff_avg=return/mean,gain=return/mean"
    assert cli.main([command, "a.csv", "b.csv", "--mapping", line]) == 0
    assert "no run has" not in capsys.readouterr().err


def test_runs_are_listed_by_what_their_columns_mean(tmp_path, capsys):
    (tmp_path / "odd.csv").write_text(ODD)
    assert cli.main(["runs", str(tmp_path)]) == 0
    assert "return/mean" not in capsys.readouterr().out
    assert cli.main(["runs", str(tmp_path), "--mapping", "frames_seen=step,payoff_avg=return/mean", "--json"]) == 0
    run = json.loads(capsys.readouterr().out)["runs"][0]
    assert (run["metric"], run["steps"]) == ("return/mean", 300)


def test_the_mapping_is_shown(capsys):
    assert cli.main(["examine", str(FIXTURES / "sb3"), "--show-mapping"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["sb3:", "7", "runs"]
    assert ["train/entropy_loss", "->", "policy/entropy", "(times", "-1)"] in lines
    assert ["train/loss", "->", "value/critic_loss", "or", "foreign/train/loss"] in lines
    assert ["learning_rate", "->", "algo.lr"] in lines
    assert ["batch_size", "->", "foreign.batch_size"] in lines


# ---- Everywhere


def test_notebooks_and_reports_take_them_too(folder, tmp_path, capsys):
    runs = api.load(folder, group="{size}.run{seed}", spec={"horizon": 9}, mapping={"odd": "value/mean"})
    assert len(runs.groups) == 2
    assert "value/mean" in runs.metrics()
    assert runs[0].history.meta["spec"]["horizon"] == 9
    assert cli.main(["report", str(folder), "--json", "--group", "{size}.run{seed}"]) == 0
    assert len(json.loads(capsys.readouterr().out)["outcome"]) == 2


def test_hints_change_no_file(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    cli.main(["examine", str(folder), "--group", "{size}.run{seed}", "--spec", "horizon=9"])
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_loading_tells_how_far_it_is(folder):
    calls: list[tuple[int, int, str]] = []
    find.load_all(folder, tell=lambda *now: calls.append(now))
    assert calls == [(0, 4, "hi.run0"), (1, 4, "hi.run1"), (2, 4, "lo.run0"), (3, 4, "lo.run1")]


def test_progress_is_one_line_on_a_terminal_after_two_seconds(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 2.5, 2.6, 3.0])
    monkeypatch.setattr("relab.commands.progress.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress("reading run") as tell:
        for number in range(4):
            tell(number, 4, f"a\x1b{number}")
    assert capsys.readouterr().err == "\r\x1b[Kreading run 1 of 4: a?1\r\x1b[Kreading run 3 of 4: a?3\r\x1b[K"
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    monkeypatch.setattr("relab.commands.progress.time.monotonic", iter([0.0, 4.0, 9.0, 9.0]).__next__)
    with Progress("reading run") as tell:
        tell(0, 2, "a")
        tell(1, 2, "b")
    assert capsys.readouterr().err == "reading run 1 of 2: b (9 s)\n", "a pipe hears of it less often"


def test_a_copy_elsewhere_has_no_memory_of_the_pattern(folder, tmp_path):
    hints.remember_group(folder, "{size}.run{seed}")
    shutil.copytree(folder, tmp_path / "copy")
    assert hints.recall_group(folder).text == "{size}.run{seed}"
    assert hints.recall_group(tmp_path / "copy") is None


# ---- Columns that nobody knows

ODD = "frames_seen,payoff_avg,qq\n100,1.5,3\n200,2.5,1\n300,3.0,5\n"


@pytest.mark.parametrize("files", [("odd.csv",), ("odd.csv", "more.csv")])
def test_odd_columns_are_named_with_the_mapping_that_explains_them(tmp_path, capsys, files):
    for name in files:
        (tmp_path / name).write_text(ODD)
    place = tmp_path / files[0] if len(files) == 1 else tmp_path
    cli.main(["examine", str(place)])
    told = capsys.readouterr().err
    assert "the columns frames_seen, payoff_avg, qq are not understood" in told
    line = told.split("--mapping ")[1].split(")")[0].split()[0]
    assert cli.main(["examine", str(place), "--mapping", line, "--show-mapping"]) == 0
    assert "payoff_avg  -> return/mean" in capsys.readouterr().out
    history = find.load_all(place, Hints(mapping=hints.mapping_of(line))).runs[0].history
    assert history.column("return/mean").steps.tolist() == [100, 200, 300]
    assert history.axes["return/mean"] == "env_steps"


COST = "step,episode_cost,loss\n" + "".join(f"{1000 * i},{100 / (i + 1):.3f},{1 / (i + 1):.3f}\n" for i in range(60))


def test_a_cost_is_a_return_with_its_sign_turned(tmp_path, capsys):
    """A healthy run whose cost falls is none that has not learned."""
    (tmp_path / "log.csv").write_text(COST)
    cli.main(["examine", str(tmp_path)])
    line = capsys.readouterr().err.split("--mapping ")[1].split()[0]
    assert line == "episode_cost=-return/mean"
    history = find.load_all(tmp_path, Hints(mapping=hints.mapping_of(line))).runs[0].history
    assert history.column("return/mean").values[[0, -1]].tolist() == pytest.approx([-100.0, -1.667])
    assert cli.main(["examine", str(tmp_path), "--mapping", line]) == 0
    assert "has-not-learned" not in capsys.readouterr().out


def test_a_table_of_which_nothing_is_understood_is_shown(tmp_path, capsys):
    (tmp_path / "log.csv").write_text(COST)
    assert cli.main(["examine", str(tmp_path), "--show-mapping"]) == 0
    assert "episode_cost  -> foreign/episode_cost" in capsys.readouterr().out


@pytest.mark.parametrize(("n", "said"), [(2, "(1 more run is like it)"), (3, "(2 more runs are like it)")])
def test_a_report_names_the_columns_of_a_run_without_a_return(tmp_path, capsys, n, said):
    for name in ["a", "b", "c"][:n]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.csv").write_text(COST.replace("1000,", f"100{ord(name)},"))
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "log.csv").write_text("step,episode_return\n0,1\n1000,2\n2000,3\n")
    assert cli.main(["report", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "no column is known to be a return; the columns episode_cost, loss are not understood" in out
    assert "--mapping episode_cost=-return/mean" in out
    assert "no finite number" not in out
    assert said in err


def test_a_column_that_has_a_meaning_needs_no_advice(folder, capsys):
    cli.main(["examine", str(folder)])
    assert "not understood" not in capsys.readouterr().err


def test_names_with_commas_are_advised_in_braces(tmp_path):
    columns = {"a,b": [1.0, 2.0], "the = reward": [0.5, 0.7]}
    line = shlex.split(strange_names.advice(columns))[-1]
    assert hints.mapping_of(line) == {"a,b": ("step", 1.0), "the = reward": ("return/mean", 1.0)}


def test_a_mapping_may_say_what_steps_count(tmp_path):
    (tmp_path / "odd.csv").write_text(ODD)
    mapping = hints.mapping_of("frames_seen=updates, payoff_avg=return/mean")
    history = find.load_all(tmp_path, Hints(mapping=mapping)).runs[0].history
    assert history.axes["return/mean"] == "updates"
    with pytest.raises(ConfigError, match="the nearest is 'step'"):
        hints.mapping_of("frames_seen=stepp")
    with pytest.raises(ConfigError, match="there is no file nowhere"):
        hints.mapping_of("nowhere")


def test_examples_in_the_docs():
    assert doctest.testmod(strange_names).failed == 0


def test_steps_in_thousands_are_counted_one_by_one(tmp_path):
    (tmp_path / "odd.csv").write_text("Frames (k),Score\n10,1\n20,2\n30,3\n")
    mapping = {"Frames (k)": ("step", 1000.0), "Score": ("return/mean", 1.0)}
    (run,) = find.load_all(tmp_path, Hints(mapping=mapping)).runs
    assert run.history.columns["return/mean"].steps.tolist() == [10_000, 20_000, 30_000]
    absurd = mapping | {"Frames (k)": ("step", 1e300)}
    (run,) = find.load_all(tmp_path, Hints(mapping=absurd)).runs
    assert run.history.columns["return/mean"].steps.tolist() == [0, 1, 2]  # no such steps: the rows are counted


def test_thousands_with_fractions_count_once_their_factor_is_told(tmp_path):
    rows = "".join(f"{i},{4.5 * i},{10 * i}\n" for i in range(1, 21))
    (tmp_path / "log.csv").write_text("Episode,Frames (k),Score\n" + rows)
    mapping = {"Frames (k)": ("step", 1000.0), "Score": ("return/mean", 1.0)}
    (run,) = find.load_all(tmp_path, Hints(mapping=mapping)).runs
    assert run.history.columns["return/mean"].steps.tolist() == [4500 * i for i in range(1, 21)]
    assert run.history.axes["return/mean"] == "env_steps"


def test_a_factor_of_a_column_that_is_not_used_stretches_no_other_steps(tmp_path):
    rows = "".join(f"{i},{i % 3},{10 * i}\n" for i in range(1, 21))
    (tmp_path / "log.csv").write_text("episode,Frames (k),Score\n" + rows)
    (run,) = find.load_all(tmp_path, Hints(mapping={"Frames (k)": ("step", 1000.0)})).runs
    assert run.history.columns["foreign/Score"].steps.tolist() == list(range(1, 21))


# ---- A table of names beside the file


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """Two logs whose columns mean nothing to relab, and the relab.toml that explains them."""
    rows = "".join(f"{500 * i},{20 + 10 * i},{1 / i:.3f}\n" for i in range(1, 41))
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("aa,bb,cc\n" + rows)
    (tmp_path / "relab.toml").write_text('[mapping]\naa = "step"\nbb = "return/mean"\n')
    return tmp_path


def test_the_table_holds_for_a_single_file_too(strange: Path):
    run = find.load_all(strange / "one.csv").runs[0].history
    assert run.columns["return/mean"].steps[-1] == 20_000


def test_runs_lists_what_the_table_explains(strange: Path, capsys):
    assert cli.main(["runs", str(strange)]) == 0
    assert "20,000" in capsys.readouterr().out


def test_the_mapping_shows_the_column_of_the_steps(strange: Path, capsys):
    assert cli.main(["examine", str(strange / "one.csv"), "--show-mapping"]) == 0
    assert "aa  -> env_steps" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["examine", "report", "next", "compare"])
def test_a_table_of_which_nothing_is_understood_is_refused(strange: Path, command: str, capsys):
    (strange / "relab.toml").unlink()
    (strange / "two.csv").unlink()
    assert cli.main([command, str(strange)]) == 2
    out, err = capsys.readouterr()
    assert "the columns aa, bb, cc are not understood" in err
    assert "--mapping aa=step,bb=return/mean" in err
    assert "nothing" not in out


def test_next_takes_a_mapping(strange: Path, capsys):
    assert cli.main(["next", str(strange / "two.csv"), "--mapping", "bb=return/mean"]) == 0
    assert "return/mean" in capsys.readouterr().out
