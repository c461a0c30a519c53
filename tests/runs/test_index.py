"""Does the index know which runs are there, notice every change, and never stand in the way?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

import relab

from relab.base import processes
from relab.base import processes
from relab.config import layers
from relab.config.layers import Layer
from relab.config.base import ConfigError
from relab.config.views import flatten
from relab.config.yaml_io import YamlError, format_yaml, parse_yaml
from relab.logger import Logger
from relab.runs.index import Index
from relab.runs.listing import Filter, Query, find, groups, parse_filter, select, state
from relab.runs import glance, seeds
from shelves import LONG_AGO, make, set_meta, tree

NOW = LONG_AGO + 1000.0
SB3 = Path(__file__).parents[1] / "formats" / "read" / "fixtures" / "sb3"


def names(index: Index, **query: object) -> list[str]:
    return [row.name for row in select(index, Query(sort="name", **query)).rows]  # type: ignore[arg-type]


@pytest.fixture
def three(tmp_path: Path) -> Path:
    make(tmp_path / "slow", (10.0, 20.0), algo__lr="1e-4")
    make(tmp_path / "fast", (100.0, 200.0), algo__lr="1e-3", seed="1")
    make(tmp_path / "deep" / "er" / "swing", (-500.0,), env="pendulum", algo__lr="1e-3")
    return tmp_path


def refreshed(root: Path) -> Index:
    index = Index(root)
    index.refresh()
    return index


# ---- One run at a glance


def test_a_config_is_read_as_the_parser_reads_it():
    settings = layers.to_dict(layers.resolve([Layer("command line", {"env": "pendulum", "seed": "7"})]).config)
    text = format_yaml(settings)
    assert glance.flat_yaml(text) == flatten(parse_yaml(text))
    seed, rest = glance.seedless(text)
    assert (seed, rest) == (7, {key: value for key, value in flatten(settings).items() if key != "seed"})


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb:\n  c: x\n  d:\n    e: [1, 2.5, no]\nf: true\n",
        "a: 1 # why\n",
        "a:\n  - 1\n  - 2\n",
        "a:\nb: 1\n",
        "a: {b: 1}\n",
        "a: 'it''s'\n",
        'a: "\\u0041"\n',
        "a: |\n  text\n  more\n",
        "a: &x 1\nb: *x\n",
        "a: []\n",
        "a: {}\n",
        "a: 15:9\nb: on\nc: 0x1F\nd: 1_000\ne: .inf\nf: ~\n",
        "seed: 3\na: 1\n",
        "a:\n  seed: 4\nseed: 5\n",
        "? a\n: 1\n",
        "a:\n    b: 1\n",
        "a: -\n",
        "a: 2026-11-16\n",
        "a: ''\n",
        'a: ""\n',
        "a: x: y\n",
        "",
        "a: [x, [1, 2]]\n",
        "---\na: 1\n",
        "a: 1\n...\n",
        "a: - 1\n",
        "a: b\n  c\n",
        "a: %x\n",
        "a: [1,2]\n",
        "a: [ 1, 2 ]\n",
        "a: 1 \n",
        "a: 1\r\nb: 2\r\n",
        "a: !!str 1\n",
        "a: -1\nb: +2\nc: .5\nd: 5.\n",
        "a: .\n",
        "a: ...\n",
        "a: ---\n",
        "a: --- b\n",
        "a: nan\n",
        "a: .NaN\n",
    ],
)
def test_any_yaml_is_read_as_the_parser_reads_it_or_refused_as_it_does(text):
    try:
        expected = flatten(parse_yaml(text))
    except YamlError:
        with pytest.raises(ConfigError):
            glance.flat_yaml(text)
        return
    assert repr(glance.flat_yaml(text)) == repr(expected)
    assert repr(glance.seedless(text)) == repr((expected.pop("seed", None), expected))


def test_the_last_deterministic_evaluation_counts(tmp_path):
    summary = glance.own(os.fsencode(make(tmp_path / "run", (10.0, 20.0))))
    assert (summary.metric, summary.outcome, summary.error, summary.episodes, summary.steps) == (
        "eval/return_det",
        15,
        5,
        2,
        2048,
    )
    assert (summary.env, summary.algo, summary.seed, summary.status, summary.problem) == ("cartpole-v1", "ppo", 0, "finished", "")


def test_steps_are_those_of_training_and_not_of_the_last_evaluation(tmp_path):
    folder = make(tmp_path / "run", (10.0, 20.0))
    (folder / "metrics.jsonl").write_text('{"step": 3840, "axis": "agent_steps", "return/mean": 1.0}\n')
    summary = glance.own(os.fsencode(folder))
    assert (summary.outcome, summary.steps) == (15, 3840)


def test_a_run_whose_process_is_gone_does_not_run(tmp_path):
    folder = make(tmp_path / "run", (10.0, 20.0))
    with subprocess.Popen([sys.executable, "-c", "from relab.base import processes; print(processes.myself())"],
                          stdout=subprocess.PIPE, text=True) as child:  # fmt: skip
        owner = child.communicate()[0].strip()
    meta = json.loads((folder / "meta.json").read_text())
    for owned, status in ((owner, "stale"), (processes.myself(), "running")):
        (folder / "meta.json").write_text(json.dumps(meta | {"status": "running", "owner": owned}))
        assert glance.own(os.fsencode(folder)).status == status


def test_a_cut_row_and_a_long_one_hide_nothing(tmp_path):
    folder = make(tmp_path / "run", tuple(float(i % 2) for i in range(3000)))  # rows of a few hundred kB
    with open(folder / "evals.jsonl", "ab") as file:
        file.write(b'{"step": 4096, "mode": "det", "epis')
    summary = glance.own(os.fsencode(folder))
    assert (summary.outcome, summary.steps, summary.episodes) == (0.5, 2048, 3000)


@pytest.mark.parametrize("name", ["meta.json", "config.yaml", "evals.jsonl"])
@pytest.mark.parametrize("body", [b"", b"[1, 2]", b"\xff\xfe\x00", b'{"schema": 1, "status": 3, "seed": {}}', b"null"])
def test_a_broken_head_is_told_and_the_rest_is_read(tmp_path, name, body):
    folder = make(tmp_path / "run")
    (folder / name).write_bytes(body)
    summary = glance.own(os.fsencode(folder))
    assert summary.size > 0
    assert summary.status == ("finished" if name != "meta.json" else "")
    if name == "config.yaml" and body in (b"[1, 2]", b"\xff\xfe\x00"):
        assert "config.yaml cannot be read" in summary.problem


def test_a_link_or_a_pipe_in_the_place_of_a_head_is_not_followed(tmp_path):
    folder = make(tmp_path / "run")
    (tmp_path / "secret.json").write_text('{"schema": 1, "status": "finished", "id": "stolen"}')
    (folder / "meta.json").unlink()
    (folder / "meta.json").symlink_to(tmp_path / "secret.json")
    (folder / "config.yaml").unlink()
    os.mkfifo(folder / "config.yaml")
    assert glance.own(os.fsencode(folder)).id == ""


# ---- The index


def test_runs_are_found_at_any_depth(three):
    assert names(refreshed(three)) == ["deep/er/swing", "fast", "slow"]


def test_only_what_changed_is_read_again(three):
    index = refreshed(three)
    assert index.refresh() == 0, "nothing has changed"
    make(three / "new")
    set_meta(three / "fast", status="failed")
    os.utime(three / "fast", (LONG_AGO + 5, LONG_AGO + 5))
    assert index.refresh() == 2
    assert names(index, state="failed") == ["fast"]
    assert Index(three).refresh() == 0, "another process reads the same index"


def test_what_is_gone_is_forgotten(three):
    index = refreshed(three)
    (three / "slow" / "meta.json").rename(three / "elsewhere.json")
    os.utime(three / "slow", (LONG_AGO + 9, LONG_AGO + 9))
    (three / "deep").rename(three.parent / f"{three.name}-away")
    index.refresh()
    assert "deep/er/swing" not in names(index)


def test_a_running_run_is_always_read_again(three):
    set_meta(three / "slow", status="running", heartbeat="2023-11-14T22:13:20.000Z")
    index = refreshed(three)
    assert names(index, state="stale") == ["slow"]
    with open(three / "slow" / "evals.jsonl", "ab") as file:  # an append does not change the folder's time
        file.write(b'{"step": 4096, "mode": "det", "episodes": [{"return": 77.0, "end": "fell"}]}\n')
    index.refresh()
    assert [row.outcome for row in find(index, "slow")] == [77.0]


def test_a_run_that_was_copied_is_one_run(three):
    make(three / "pc" / "twin", (1.0,))
    os.makedirs(three / "server")
    subprocess.run(["cp", "-r", three / "pc" / "twin", three / "server" / "twin"], check=True)
    with open(three / "server" / "twin" / "evals.jsonl", "ab") as file:  # it was continued there
        file.write(b'{"step": 9000, "mode": "det", "episodes": [{"return": 5.0, "end": "fell"}]}\n')
    (row,) = [row for row in select(refreshed(three), Query()).rows if "twin" in row.name]
    assert (row.name, row.steps, row.copies) == ("server/twin", 9000, ["pc/twin"])


def test_runs_of_other_tools_stand_beside_and_their_folders_stay_as_they_are(three):
    logs = three / "sb3"
    logs.mkdir()
    (logs / "progress.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n100,1.5\n200,2.5\n")
    before = tree(three)
    index = refreshed(three)
    (row,) = find(index, "sb3")
    assert (row.format, row.outcome, row.metric, row.steps) == ("sb3", 2.5, "return/mean_100", 200)
    assert tree(three) == before
    assert index.refresh() == 0
    with open(logs / "progress.csv", "a") as file:
        file.write("300,9.5\n")
    assert index.refresh() == 1
    assert find(index, "sb3")[0].outcome == 9.5


def test_files_that_come_after_the_last_row_of_another_tools_log_are_read(tmp_path):
    logs, fixture = tmp_path / "logs" / "sb3", SB3 / "ppo_cartpole_seed1"
    logs.mkdir(parents=True)
    for name in ("progress.csv", "0.monitor.csv"):
        shutil.copy(fixture / name, logs / name)
    index = refreshed(tmp_path / "logs")
    (before,) = find(index, "sb3")
    shutil.copy(fixture / "final_model.zip", logs / "model.zip")
    assert (before.seed, index.refresh()) == (None, 1)
    (after,) = find(index, "sb3")
    assert after.seed == 1 and after.size > before.size
    (logs / "CartPole-v1").mkdir()
    (logs / "CartPole-v1" / "args.yml").write_text("seed: 1\n")
    assert (index.refresh(), index.refresh()) == (1, 0)


def test_settings_that_come_after_a_log_among_others_renew_its_run_alone(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("step,reward\n100,1.5\n200,2.5\n")
    index = refreshed(tmp_path)
    (tmp_path / "a.yaml").write_text("seed: 7\n")
    assert (index.refresh(), index.refresh()) == (1, 0)
    assert [row.seed for row in select(index, Query(sort="name")).rows] == [7, None]


def test_rows_of_an_mlflow_folder_renew_its_run_before_it_ends(tmp_path):
    run = tmp_path / "mlruns" / "0" / "abc"
    for name in ("metrics", "params"):
        (run / name).mkdir(parents=True)
    (run / "meta.yaml").write_text("run_id: abc\nrun_name: one\nstatus: 1\n")
    (run / "metrics" / "return").write_text("1700000000000 1.5 100\n")
    index = refreshed(tmp_path)
    with open(run / "metrics" / "return", "a") as file:
        file.write("1700000001000 2.5 200\n")
    assert (index.refresh(), index.refresh()) == (1, 0)


def test_a_folder_that_is_itself_a_run_is_one_run(tmp_path):
    make(tmp_path / "only")
    assert names(refreshed(tmp_path / "only")) == ["."]


def test_links_are_not_followed(three, tmp_path_factory):
    outside = make(tmp_path_factory.mktemp("outside") / "hidden")
    (three / "link").symlink_to(outside)
    (three / "loop").symlink_to(three)
    assert names(refreshed(three)) == ["deep/er/swing", "fast", "slow"]


def test_names_that_are_no_text_are_kept_apart(tmp_path):
    for name in (b"bad-\xff", b"bad-\xfe", b"line\nbreak", b"esc\x1b[31m"):
        (folder := make(tmp_path / "plain")).rename(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        assert not folder.exists()
    index = refreshed(tmp_path)
    rows = select(index, Query()).rows
    assert len(rows) == 4
    assert sorted(os.fsencode(row.folder.name) for row in rows)[0] == b"bad-\xfe"
    assert index.refresh() in (0, 4), "they changed a moment ago"
    assert index.db.execute("SELECT COUNT(*) FROM runs").fetchone() == (4,)


@pytest.mark.parametrize("body", [b"this is no database", b"SQLite format 3\x00" + b"\x07" * 5000, b""])
def test_a_broken_index_is_made_anew(three, body):
    index = refreshed(three)
    index.close()
    index.file.write_bytes(body)
    assert names(refreshed(three)) == ["deep/er/swing", "fast", "slow"]
    assert names(refreshed(three)) == ["deep/er/swing", "fast", "slow"]


def test_an_index_of_another_version_is_made_anew(three):
    index = refreshed(three)
    index.db.execute("PRAGMA user_version = 999")
    index.db.execute("DROP TABLE runs")
    index.db.commit()
    index.close()
    assert len(names(refreshed(three))) == 3


def test_without_a_cache_folder_it_is_kept_in_memory(three, tmp_path_factory, monkeypatch):
    blocked = tmp_path_factory.mktemp("cache") / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert len(names(refreshed(three))) == 3


def test_an_index_that_is_damaged_while_it_is_open_is_left_aside(three):
    index = refreshed(three)
    index.db.execute("DROP TABLE configs")
    make(three / "new")
    assert index.refresh() == 4
    assert names(index) == ["deep/er/swing", "fast", "new", "slow"]
    index.close()


def test_several_processes_use_one_index_at_once(tmp_path):
    for i in range(60):
        make(tmp_path / f"run-{i}")
    code = (
        "import sys; from relab.runs.index import Index; from relab.runs.listing import Query, select\n"
        f"for _ in range(5):\n    i = Index({str(tmp_path)!r}); i.refresh()\n"
        "    assert select(i, Query()).total == 60\n    i.close()"
    )
    running = [subprocess.Popen([sys.executable, "-W", "error", "-c", code], stderr=subprocess.PIPE) for _ in range(3)]
    errors = [process.communicate(timeout=120)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], "\n".join(errors)


# ---- Questions


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["algo.lr=1e-3"], ["deep/er/swing", "fast"]),
        (["lr=0.001", "env=cartpole"], ["fast"]),
        (["lr<1e-3"], ["slow"]),
        (["outcome>=15"], ["fast", "slow"]),
        (["outcome<0"], ["deep/er/swing"]),
        (["seed=1"], ["fast"]),
        (["seed!=1"], ["deep/er/swing", "slow"]),
        (["size>1GB"], []),
        (["size<1GB", "age<1min"], ["deep/er/swing", "fast", "slow"]),
        (["format=relab", "lr>5e-4"], ["deep/er/swing", "fast"]),
        (["device=cpu", "lr!=1e-3"], ["slow"]),
    ],
)
def test_comparisons(three, words, expected):
    assert names(refreshed(three), filters=[parse_filter(word) for word in words]) == expected


@pytest.mark.parametrize(
    ("word", "value", "holds"),
    [
        ("k=[64, 64]", [64, 64], True),
        ("k=[64,32]", [64, 64], False),
        ("k=true", True, True),
        ("k=1", True, False),
        ("k=null", None, True),
        ("k!=3", None, True),
        ("k=3", None, False),
        ("k>3", None, False),
        ("k>3", "text", False),
        ("k=3", "3", True),
        ("k=1e-3", 0.001, True),
        ("k=cartpole", "cartpole-v1", True),
        ("k=cart", "cartpole-v1", False),
        ("k<=3", 3, True),
        ("k<3", 3, False),
        ("k>-1", 0.0, True),
        ("k=x", 3, False),
        ("k>1", float("nan"), False),
    ],
)
def test_a_comparison_holds_or_not(word, value, holds):
    assert parse_filter(word).holds(value) is holds  # type: ignore[union-attr]


def test_a_comparison_that_makes_no_sense_is_an_error_with_the_remedy(three):
    index = refreshed(three)
    with pytest.raises(ConfigError, match=r"no run here has a setting `algo.lrr`; the nearest is `algo.lr`"):
        names(index, filters=[Filter("algo.lrr", "=", "1")])
    with pytest.raises(ConfigError, match=r"`lr>big`: > needs a number"):
        names(index, filters=[Filter("lr", ">", "big")])
    with pytest.raises(ConfigError, match=r"must be a regular expression"):
        names(index, match="(")
    with pytest.raises(ConfigError, match=r"`every` means 2 settings: eval.every, save.every"):
        names(index, filters=[Filter("every", "=", "1")])


def test_groups_by_a_setting(three):
    groups_of_lr = groups(refreshed(three), Query(), ["lr"])
    shown = [(g.values, g.runs, g.n, g.mean, g.low, g.high, g.best) for g in groups_of_lr]
    alone = [(g.values["algo.lr"], g.values["env"], g.n, g.mean) for g in groups_of_lr]
    assert alone == [(1e-3, "cartpole-v1", 1, 150.0), (1e-4, "cartpole-v1", 1, 15.0), (1e-3, "pendulum-v1", 1, -500.0)]
    assert [row[1:3] for row in shown] == [(1, 1)] * 3, "no mean over two environments"


def test_sorting_by_a_column_or_a_setting(three):
    index = refreshed(three)
    for sort, expected in {"outcome": ["fast", "slow", "swing"], "-outcome": ["swing", "slow", "fast"],
                           "algo.lr": ["slow", "swing", "fast"], "-lr": ["swing", "fast", "slow"]}.items():  # fmt: skip
        rows = select(index, Query(sort=sort)).rows
        assert [Path(row.name).name for row in rows] == expected, sort
    assert len(select(index, Query(limit=2)).rows) == 2
    assert select(index, Query(limit=2)).total == 3


def test_a_run_by_its_name_its_id_or_a_pattern(three):
    index = refreshed(three)
    id_ = find(index, "fast")[0].id
    for word in ("fas", id_, id_[:5], "f*", "f?st"):
        assert [row.name for row in find(index, word)] == ["fast"], word
    with pytest.raises(LookupError, match=r"`s` means 3 runs below .*: deep/er/swing, fast, slow; write more"):
        find(index, "s")
    with pytest.raises(LookupError, match=r"no run `fsat` below .* \(3 runs there\); the nearest is fast"):
        find(index, "fsat")
    with pytest.raises(LookupError, match=r"no run below .* is named like x\*"):
        find(index, "x*")


@pytest.mark.parametrize(
    ("status", "format", "quiet", "expected"),
    [
        ("finished", "relab", 0, "finished"),
        ("running", "relab", 10, "running"),
        ("running", "relab", 121, "stale"),
        ("", "relab", 0, "unknown"),
        ("", "sb3", 10, "running"),
        ("", "sb3", 500, "ended"),
        ("failed", "wandb", 0, "failed"),
    ],
)
def test_states_are_those_of_the_other_commands(tmp_path, status, format, quiet, expected):
    import datetime

    from relab.record.state import state_of
    from relab.record.history import History

    beat = datetime.datetime.fromtimestamp(NOW - quiet, datetime.UTC).isoformat()
    history = History(tmp_path, meta={"heartbeat": beat} | ({"status": status} if status else {}), source=format)
    assert state(status, NOW - quiet, format, NOW) == expected == state_of(history, NOW)


def test_returns_in_rows_of_their_own_are_an_outcome(tmp_path: Path) -> None:
    """A script like CleanRL's logs an episode a row and losses in others; the last row may be either."""
    log = Logger(tmp_path / "run", config={"algo": "ppo", "env_id": "CartPole-v1", "seed": 1})
    for step in range(0, 2000, 10):
        log.log(step, **{"return/mean": 100.0 + step % 7})
    log.log(2000, **{"policy/loss": 0.1})
    log.close()
    summary = glance.own(os.fsencode(tmp_path / "run"))
    assert summary.steps == 2000
    assert summary.outcome == pytest.approx(103, abs=2)


def test_runs_of_two_names_and_lengths_without_a_seed_are_not_pooled(tmp_path):
    """As two logs of Stable-Baselines3 without their models: the command line tells them apart, and so does the list."""
    for name, rows, high in (("ppo_killed", 26, 188.0), ("ppo_tiny", 4, 41.0)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "progress.csv").write_text(
            "time/total_timesteps,rollout/ep_rew_mean,train/learning_rate,train/clip_fraction\n"
            + "".join(f"{256 * (i + 1)},{20 + (high - 20) * (i + 1) / rows:.4f},0.0003,0.1\n" for i in range(rows))
        )
        (folder / "0.monitor.csv").write_text('#{"t_start": 1.0, "env_id": "CartPole-v1"}\nr,l,t\n20,20,1\n')
    assert len(seeds.whole(refreshed(tmp_path))) == len(relab.load(tmp_path).groups) == 2
