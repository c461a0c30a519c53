"""Does examine find runs, group them, keep within its lines, and survive broken folders? And its two commands?"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relab import cli
from relab.base.jsonl import RecordError
from relab.base.places import STALE_S
from relab.config.base import ConfigError
from relab.formats.read.find import find
from relab.health.examine import examine, load_view
from relab.health.render import numbers, text
from relab.health.rule import all_rules
from relab.record.state import state_of
from where import histories

HEALTHY, FAULTY = histories() / "healthy", histories() / "faulty"
KEYS = {"slug", "severity", "status", "run", "message", "onset", "evidence", "reference", "meaning",
        "healthy", "refuted_by", "try", "confidence", "explained_by"}  # fmt: skip


def relab(*words: str) -> int:
    return cli.main(list(words))


def copy(source: Path, target: Path, **meta) -> Path:
    shutil.copytree(source, target)
    full = json.loads((target / "meta.json").read_text()) | meta
    (target / "meta.json").write_text(json.dumps(full))
    return target


# ---- Finding and grouping


def test_runs_are_found_below_a_folder_but_never_outside(tmp_path):
    copy(HEALTHY / "cartpole", tmp_path / "here" / "a" / "b")
    copy(HEALTHY / "cartpole", tmp_path / "elsewhere")
    (tmp_path / "here" / "link").symlink_to(tmp_path / "elsewhere")
    copy(HEALTHY / "cartpole", tmp_path / "here" / "1" / "2" / "3" / "4" / "5" / "6" / "too-deep")
    assert [source.name for source in find(tmp_path / "here")] == ["a/b"]


def test_runs_that_differ_in_the_seed_alone_are_one_group(tmp_path):
    copy(HEALTHY / "cartpole", tmp_path / "a")
    copy(HEALTHY / "cartpole-2", tmp_path / "b")
    copy(HEALTHY / "pendulum", tmp_path / "c")
    report = examine(tmp_path)
    assert sorted(len(group.views) for group in report.groups) == [1, 2]
    assert "seed 0: 500 ± 0, seed 2: 500 ± 0" in text(report)


def test_broken_folders_are_reported_and_the_others_examined(tmp_path):
    copy(FAULTY / "diverged", tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "meta.json").write_bytes(b"\xff\x00[[[[")
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "metrics.jsonl").write_text('{"step": 1, "policy/kl": [1]}\n{"step": "x"}\nnoise\n')
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "meta.json").write_text('{"spec": 3, "status": 7, "parent": ["x"], "heartbeat": null}')
    (tmp_path / "evals" / "evals.jsonl").write_text('{"step": 0, "mode": "det", "episodes": [1, {"return": "x"}]}\n')
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "meta.json").write_text('{"id": [1], "parent": {}, "spec": {"env": [], "action": 1}}')
    (tmp_path / "odd" / "evals.jsonl").write_text('{"step": 0, "mode": "det", "episodes": 5}\n{"mode": ["det"]}\n')
    (tmp_path / "odd" / "config.yaml").write_text("seed: [1, 2]\nalgo: 3\ntotal_steps: many\n")
    report = examine(tmp_path)
    assert json.dumps(report.to_json(), default=str)
    assert report.main[0].slug == "steps-too-large"
    assert {"bad", "rows"} <= {remark.run for remark in report.remarks}
    assert {gone.slug for gone in report.not_checked} <= set(all_rules())
    assert not [gone for gone in report.not_checked if "the rule failed" in gone.missing]
    assert any("`policy/kl` is no number in 1 row" in remark.text for remark in report.remarks)
    assert "read with a remark" in text(report)


def test_control_characters_of_names_do_not_reach_the_terminal(tmp_path):
    copy(FAULTY / "diverged", tmp_path / "evil\x1b[31m")
    assert "\x1b" not in text(examine(tmp_path))


def test_a_folder_without_runs_is_an_error(tmp_path):
    with pytest.raises(RecordError, match="no runs at or below"):
        examine(tmp_path)


# ---- States and references


def test_a_running_run_is_stale_once_its_heart_stopped(tmp_path):
    run = copy(HEALTHY / "cartpole", tmp_path / "a", status="running", heartbeat="2026-01-01T00:00:00.000Z")
    view = load_view(run, "a")
    beat = 1767225600.0  # that instant
    assert state_of(view.history, beat + 1) == "running"
    assert state_of(view.history, beat + STALE_S + 1) == "stale"


def test_without_a_heartbeat_the_newest_file_counts(tmp_path):
    run = copy(HEALTHY / "cartpole", tmp_path / "a", status="running", heartbeat=None)
    assert load_view(run, "a").state == "running"
    assert state_of(load_view(run, "a").history, 4e9) == "stale"


def test_a_running_run_is_not_called_incomplete(tmp_path):
    run = copy(FAULTY / "run-incomplete", tmp_path / "a", heartbeat=None)
    assert "run-incomplete" not in {f.slug for f in examine(run).findings}


def test_what_the_reference_shows_too_is_demoted(tmp_path):
    fault = FAULTY / "policy-not-moving"
    twin = copy(fault, tmp_path / "twin")
    report = examine(fault, against=twin)
    assert {f.status for f in report.findings if not f.footer} == {"also-in-reference"}
    assert report.main == []
    assert "not the cause: " in " ".join(text(report).split())


def test_a_healthy_reference_gives_its_value():
    main = examine(FAULTY / "entropy-runaway", against=HEALTHY / "pendulum").main
    (found,) = [finding for finding in main if finding.slug == "entropy-runaway"]
    assert found.reference.value < found.value


def test_the_parent_is_the_reference_even_when_only_the_child_is_given():
    (found,) = [
        f for f in examine(FAULTY / "unmentioned-config-change" / "child").main if f.slug == "unmentioned-config-change"
    ]
    assert found.suggest == [{"key": "algo.ent_coef", "from": 0.12, "to": 0.0}]


def test_a_change_that_the_intent_mentions_is_no_finding(tmp_path):
    for name in ("parent", "child"):
        copy(FAULTY / "unmentioned-config-change" / name, tmp_path / name)
    copy(tmp_path / "child", tmp_path / "said", intent="try a higher ent_coef")
    fired = {f.run for f in examine(tmp_path).main if f.slug == "unmentioned-config-change"}
    assert fired == {"child"}


def test_without_an_intent_what_the_command_line_names_is_mentioned(tmp_path):
    command = "relab train ppo env=pendulum ent_coef=0.12 start_from=parent"
    for name, said in (("typed", {"intent": None}), ("untyped", {"intent": None, "command": "relab train x.yaml"}),
                       ("other", {"intent": "more steps"})):  # fmt: skip
        copy(FAULTY / "unmentioned-config-change" / "parent", tmp_path / name / "parent")
        copy(FAULTY / "unmentioned-config-change" / "child", tmp_path / name / "child", **{"command": command} | said)
    fired = [{f.run for f in examine(tmp_path / name).main if f.slug == "unmentioned-config-change"}
             for name in ("typed", "untyped", "other")]  # fmt: skip
    assert fired == [set(), {"child"}, {"child"}], "an intent that leaves a change out is what the rule is about"


def test_a_setting_out_of_range_is_a_runs_own_whatever_its_reference_has(tmp_path):
    """A group of two counted it once: the best run was the other's reference."""
    for name in ("a", "b"):
        folder = copy(HEALTHY / "cartpole", tmp_path / name)
        settings = (folder / "config.yaml").read_text()
        (folder / "config.yaml").write_text(re.sub(r"(?m)^  lam: .*", "  learning_starts: 90000", settings))
    findings = examine(tmp_path / "b", against=tmp_path / "a").main
    assert [f.suggest for f in findings if f.slug == "setting-out-of-range"] == [
        ["lower algo.learning_starts, or train longer"]]  # fmt: skip


def test_what_lacks_is_not_pointed_to_where_it_stands():
    report = examine(HEALTHY / "cartpole")
    assert "-v says what lacks" in " ".join(text(report).split())
    assert "-v says what lacks" not in " ".join(text(report, verbose=True).split())


# ---- What is printed


def test_a_healthy_folder_prints_at_most_ten_lines(capsys):
    assert relab("examine", str(HEALTHY), "--fail-on", "info") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 10
    assert "nothing found" in lines[0]


@pytest.mark.parametrize("name", sorted(path.name for path in FAULTY.iterdir()))
def test_a_sick_run_prints_at_most_three_findings_of_four_lines(name):
    shown = text(examine(FAULTY / name)).splitlines()
    heads = [line for line in shown if line.startswith(("info:", "warning:", "error:"))]
    assert len(heads) <= 3
    assert len(shown) <= 1 + 2 + 12 + 1 + 1


def test_json_is_the_finding_contract(capsys):
    assert relab("examine", str(FAULTY / "diverged"), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"schema", "path", "runs", "findings", "not_checked", "unreadable", "not_read", "remarks",
                          "proposal"}  # fmt: skip
    assert set(found["runs"][0]) == {"run", "group", "parent", "source"}
    ours = [f for f in found["findings"] if "run" in f]
    assert all(set(f) == KEYS for f in ours)
    assert set(ours[0]["onset"]) == {"axis", "step"}
    assert set(ours[0]["evidence"][0]) == {"metric", "steps", "values", "formula"}


def test_fail_on_counts_findings_of_that_level(capsys):
    assert relab("examine", str(FAULTY / "non-finite"), "--fail-on", "error") == 1
    assert relab("examine", str(FAULTY / "diverged"), "--fail-on", "error") == 0
    assert relab("examine", str(FAULTY / "diverged"), "--fail-on", "info") == 1


def test_rules_are_left_out_for_a_reason_only(capsys):
    fault = str(FAULTY / "non-finite")
    assert relab("examine", fault, "--ignore", "non-finite") == cli.USAGE
    assert "needs a reason" in capsys.readouterr().err
    assert relab("examine", fault, "--ignore", "nonfinite", "--because", "x") == cli.USAGE
    assert "the nearest is 'non-finite'" in capsys.readouterr().err
    assert relab("examine", fault, "--ignore", "non-finite", "--because", "known", "-v", "--fail-on", "error") == 0
    assert "ignored: non-finite, because known" in capsys.readouterr().out


def reseed(folder, seed):
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"seed": seed}))


def test_relab_toml_leaves_rules_out_per_folder_or_environment(tmp_path):
    for seed, name in enumerate(("non-finite", "negative-kl")):
        copy(FAULTY / name, tmp_path / name)
        reseed(tmp_path / name, seed)  # both come from one run, and one seed must not give two results
    toml = tmp_path / "relab.toml"
    toml.write_text('[ignore]\nnon-finite = "known"\n[env.pendulum-v1.ignore]\nnegative-kl = "elsewhere"\n')
    assert [f.slug for f in examine(tmp_path).main] == ["negative-kl"]
    toml.write_text('[env.cartpole-v1.ignore]\nnegative-kl = "k1"\n')
    report = examine(tmp_path)
    assert [f.slug for f in report.main] == ["non-finite"]
    assert "ignored: negative-kl on cartpole-v1, because k1" in text(report, verbose=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[ignore]\nnonfinite = "x"', "no such rule; the nearest is .non-finite."),
        ('[ignore]\nnon-finite = ""', "no reason"),
        ("ignore = 3", "must be a table"),
        ("[[[", "must be TOML"),
    ],
)
def test_a_relab_toml_that_says_nothing_useful_is_an_error(content, said, tmp_path):
    copy(FAULTY / "non-finite", tmp_path / "a")
    (tmp_path / "relab.toml").write_text(content)
    with pytest.raises(ConfigError, match=said):
        examine(tmp_path)


def test_unreadable_paths_exit_2(tmp_path, capsys):
    assert relab("examine", str(tmp_path)) == cli.UNREADABLE
    assert relab("examine", str(tmp_path / "none"), "--runs", str(tmp_path)) == cli.UNREADABLE


def test_examine_writes_nothing(tmp_path):
    run = copy(FAULTY / "diverged", tmp_path / "a")
    before = {p: p.stat().st_mtime_ns for p in run.rglob("*")}
    examine(tmp_path)
    assert {p: p.stat().st_mtime_ns for p in run.rglob("*")} == before


def test_examine_loads_neither_torch_nor_numba():
    code = (f"import sys; from relab import cli; cli.main(['examine', {str(FAULTY / 'diverged')!r}]);"
            " bad = {'torch', 'numba', 'gymnasium', 'matplotlib', 'scipy'} & set(sys.modules); sys.exit(str(bad) if bad"
            " else 0)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- explain


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("update-too-large", "Refuted by:"),
        ("UPDATE-too-large", "update-too-large (rule, warning)"),
        ("policy/kl", "k3 estimator"),
        ("cartpole", "Balance a pole"),
        ("ent_coef", "algo.ent_coef (setting of PPO"),
        ("eval.every", "agent steps between evaluations"),
        ("ppo", "Clipped policy gradient"),
        ("sim_steps", "steps of all worlds"),
    ],
)
def test_explain_knows_rules_metrics_envs_and_keys(word, told, capsys):
    assert relab("explain", word) == 0
    assert told in capsys.readouterr().out


def test_explain_gives_the_nearest_word(capsys):
    assert relab("explain", "entropy-colapse") == cli.UNREADABLE
    assert "'entropy-collapse'" in capsys.readouterr().err


# ---- The best comparable run, what is new, watching


def test_a_run_without_a_parent_is_held_against_the_best_comparable_one(tmp_path):
    copy(HEALTHY / "pendulum", tmp_path / "good")
    copy(FAULTY / "worse-than-random", tmp_path / "bad")
    copy(HEALTHY / "cartpole", tmp_path / "other-task")
    views = {run.view.name: run.view for run in examine(tmp_path).runs}
    assert views["bad"].reference is views["good"]
    assert not views["bad"].is_parent
    assert views["good"].reference is None
    assert views["other-task"].reference is None


def test_a_run_that_failed_or_never_learned_is_nobodys_model(tmp_path):
    """The good one, as it would be had it failed; one that is as random; the bad one is worse than both."""
    copy(HEALTHY / "pendulum", tmp_path / "broken-off", status="failed")
    copy(FAULTY / "worse-than-random", tmp_path / "bad")
    random = copy(FAULTY / "worse-than-random", tmp_path / "as-random")
    config = random / "config.yaml"
    config.write_text(config.read_text().replace("lr: 0.1", "lr: 0.2"))
    rows = [json.loads(line) for line in (random / "evals.jsonl").read_text().splitlines()]
    level = json.loads((random / "meta.json").read_text())["spec"]["random"]["return_mean"]
    for row in rows:
        for k, episode in enumerate(row["episodes"]):
            episode["return"] = level + 50 * (-1) ** k
    (random / "evals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = examine(tmp_path)
    assert all(run.view.reference is None for run in report.runs)
    values = str([item for f in report.findings for item in f.suggest if isinstance(item, dict)])
    assert "broken-off" not in values
    assert "as-random" not in values


def test_seeds_of_one_config_do_not_excuse_each_other(tmp_path):
    copy(HEALTHY / "cartpole", tmp_path / "a")
    copy(HEALTHY / "cartpole-2", tmp_path / "b")
    assert all(run.view.reference is None for run in examine(tmp_path).runs)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_new_tells_what_changed_since_the_last_look(tmp_path, cache, capsys):
    runs = tmp_path / "runs"
    copy(HEALTHY / "cartpole", runs / "a")
    copy(FAULTY / "diverged", runs / "b")
    assert relab("examine", str(runs), "--new") == 0
    assert "the first look" in capsys.readouterr().out
    relab("examine", str(runs), "--new")
    assert "nothing new since" in capsys.readouterr().out
    copy(FAULTY / "critic-not-learning", runs / "c")
    shutil.rmtree(runs / "b")
    relab("examine", str(runs), "--new", "--json")
    new = json.loads(capsys.readouterr().out)["new"]
    assert new["runs"] == ["c"]
    assert {"run": "b", "slug": "diverged"} in new["gone"]
    assert "critic-not-learning" in {f["slug"] for f in new["findings"]}
    assert sorted(p.name for p in runs.iterdir()) == ["a", "c"]  # nothing was written beside the runs


def test_a_broken_memory_is_a_first_look(tmp_path, cache, capsys):
    copy(HEALTHY / "cartpole", tmp_path / "runs" / "a")
    relab("examine", str(tmp_path / "runs"))
    for file in (cache / "relab" / "examined").iterdir():
        file.write_bytes(b'{"schema": 1, "findings": [], "runs"')
    capsys.readouterr()
    assert relab("examine", str(tmp_path / "runs"), "--new") == 0
    assert "the first look" in capsys.readouterr().out


def test_watch_tells_when_a_run_ends_and_stops(tmp_path, cache, capsys, monkeypatch):
    from relab.commands import examine as command
    from relab.record.run_folder import now

    run = copy(HEALTHY / "cartpole", tmp_path / "runs" / "a", status="running", heartbeat=now())
    looks = iter([lambda: None, lambda: rewrite(run, status="finished")])
    monkeypatch.setattr(command.time, "sleep", lambda _: next(looks)())
    assert relab("examine", str(tmp_path / "runs"), "--watch") == 0
    assert "a: running -> finished, 500 ± 0" in capsys.readouterr().out


def rewrite(run: Path, **meta) -> None:
    full = json.loads((run / "meta.json").read_text()) | meta
    (run / "meta.json").write_text(json.dumps(full))


def test_the_references_number_is_labelled(tmp_path):
    main = examine(FAULTY / "entropy-runaway", against=HEALTHY / "pendulum").main
    held = [f for f in main if f.reference is not None and f.reference.value is not None]
    assert held
    for finding in held:
        assert finding.reference.what
        assert f"({finding.reference.what})" in numbers(finding)
