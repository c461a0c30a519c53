"""Does --dry-run say what would be done, in every command that does something, and leave everything as it was?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from relab.cli import COMMANDS, main

TINY = "total_steps=256 algo.envs=8 algo.steps=16 algo.epochs=1 algo.minibatches=2 eval.every=128 eval.episodes=3"
ONLY_READ = {"examine", "compare", "diff", "explain", "doctor", "gate", "completion", "coverage", "runs", "mcp",
             "serve", "watch"}  # fmt: skip
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz012345"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dry")
    words = ["train", "ppo", "env=cartpole", *TINY.split(), "--runs", str(root / "runs"), "--name", "one", "--quiet"]
    assert main(words) == 0
    return root


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("line", "says"),
    [("resume one", "would do nothing: one is complete"),
     ("eval one --episodes 7", "would play 7 fresh episodes a mode with checkpoint best of one (step "),
     ("video one", "film the worst det episode into runs/one/media"),
     ("video one --curve --out c.gif", "would draw the curves of one as a film into c.gif"),
     ("probe one value_vs_rerun", "would measure value_vs_rerun of checkpoint latest of one (step 256)"),
     ("faults --only gradient-clip-1e-6 --seeds 0 --envs cartpole", "would examine 3 runs"),
     ("queue add train ppo env=cartpole", "would add `train ppo env=cartpole"),
     (f"queue add -- python x.py --token={TOKEN}", "would add `python x.py"),
     ("queue work --stay", "would run nothing"), ("note one --into LOG.md", "would add the entry "),
     ("note one --into notes", "would add the entry "), ("next one --write", "would write runs/one/next_config.yaml"),
     ("report one --figure pdf", "would write runs/one/report.html"),
     ("convert runs/one --to csv --out tables", "1 run would be written to tables")],
)  # fmt: skip
def test_it_says_what_would_be_done_and_leaves_everything_as_it_was(line, says, here, capsys):
    before, words = files(here), line.split()
    at = words.index("add") + 1 if "add" in words else len(words)
    assert main([*words[:at], "--dry-run", *words[at:]]) == 0
    out = capsys.readouterr().out
    assert says in out
    assert TOKEN not in out
    assert files(here) == before


def test_the_runs_that_would_be_converted_stand_in_a_line_each(here, capsys):
    shutil.copytree(here / "runs" / "one", here / "runs" / "two")
    assert main(["convert", "runs", "--to", "csv", "--out", "tables", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["one (relab)", "two (relab)"]


def test_a_run_that_was_cut_short_says_from_where_it_would_go_on(here, capsys):
    meta = here / "runs" / "one" / "meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"status": "interrupted"}))
    before = files(here)
    assert main(["resume", "one", "--dry-run"]) == 0
    assert "would go on with one from step 256 (step-000000000256), up to 256 steps" in capsys.readouterr().out
    assert files(here) == before


def test_a_queue_says_what_each_verb_would_do(here, capsys):
    assert main(["queue", "add", "--", "true"]) == 0
    id_, before = capsys.readouterr().out.split()[0], files(here)
    for line, says in ((f"pause {id_}", f"would pause {id_}, which is waiting"), ("work", f"would run {id_}"),
                       ("pause", "would pause queue"), (f"cancel {id_}", f"would cancel {id_}"),
                       ("clear", "would forget nothing"), ("orphans --end", "would end ")):  # fmt: skip
        assert main(["queue", *line.split(), "--dry-run"]) == 0
        assert says in capsys.readouterr().out
        assert files(here) == before, line


def test_what_cannot_be_done_is_refused_in_a_dry_run_too(here, capsys):
    assert main(["eval", "one", "--checkpoint", "77", "--dry-run"]) != 0
    assert main(["note", "one", "--into", "no/such/LOG.md", "--dry-run"]) != 0
    assert main(["probe", "one", "fixed_point", "--dry-run"]) != 0


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("dqn env=pendulum", "dqn needs one discrete choice per step"),
        ("dqn env=cartpole total_steps=900", "`learning_starts` = 1,000 must lie before the end of the run"),
        ("dreamer env=cartpole total_steps=900 learning_starts=900", "must lie before the end of the run"),
        ("ppo env=gym:NoSuch-v1", "NoSuch"),
        ("ppo env=cartpole --name one", "`--name` must be new"),
        ("ppo env=cartpole start_from=nobody", "nobody"),
        ("ppo env=cartpole probes.every=3 schedule.total=2", "`schedule` sets nothing"),
    ],
)
def test_what_train_refuses_its_dry_run_refuses(line, why, here, capsys):
    before = files(here)
    assert main(["train", *line.split(), "--dry-run"]) in (2, 64)
    assert why in capsys.readouterr().err
    assert files(here) == before


@pytest.mark.parametrize(
    ("variant", "why"),
    [("{algo.unimix: 1}", "unimix"), ("{total_steps: 900}", "variant b: the step size must not have fallen before")],
)
def test_what_train_refuses_of_any_variant_the_dry_run_of_an_experiment_refuses(variant, why, here, capsys):
    question = (f"question: q?\nbase: {{algo: dreamer, env: cartpole}}\nvariants: {{a: {{}}, b: {variant}}}\n"
                "seeds: [1, 2]\nmetric: eval/return_det\ndirection: higher\n")  # fmt: skip
    (here / "q.yaml").write_text(question)
    before = files(here)
    assert main(["experiment", "q.yaml", "--dry-run"]) == 64
    assert why in capsys.readouterr().err
    assert files(here) == before
    (here / "q.yaml").write_text(question.replace(variant, "{algo.gamma: 0.99}"))
    assert main(["experiment", "q.yaml", "--dry-run"]) == 0


def test_as_json(here, capsys):
    assert main(["eval", "one", "--dry-run", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["dry_run"] is True
    assert len(row["would"]) == 2


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - ONLY_READ - {"queue"}))
def test_every_command_that_does_something_has_it(name, capsys):
    assert main([name, "--help"]) == 0
    assert "--dry-run" in capsys.readouterr().out
