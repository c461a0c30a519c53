"""Can a proposal be written, read back and run? The command, the file, `relab train` on it, and files by strangers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from relab.advise import proposal
from relab.cli import main
from relab.commands.train import layers, origin_of
from relab.config import layers as config
from relab.health.examine import examine
from report.made import write_run
from small_runs import run

FILE = proposal.FILE


@pytest.fixture(scope="module")
def lr100(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("made")
    run(root / "runs" / "lr100", algo__lr="0.3")
    return root


@pytest.fixture
def here(lr100, tmp_path, monkeypatch) -> Path:
    """A folder of its own with runs/lr100, as the current one."""
    shutil.copytree(lr100 / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edited(here: Path, **changes: object) -> str:
    """The proposal for lr100 with some of its keys replaced (None: left out)."""
    assert main(["next", "lr100", "--write"]) == 0
    path = here / "runs" / "lr100" / FILE
    values = config.read_yaml(path) | changes
    config.write_yaml(path, {key: value for key, value in values.items() if value != "left out"})
    return str(path)


# ---- The command


def test_it_says_what_why_and_how_in_a_few_lines(here, capsys):
    before = sorted(here.rglob("*"))
    assert main(["next", "lr100"]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) <= 10
    assert printed.startswith("lr100: algo.lr 0.3 -> 0.003\n")
    assert "steps-too-large" in printed
    assert "relab next lr100 --write && relab train runs/lr100/next_config.yaml seed=3" in printed
    assert sorted(here.rglob("*")) == before, "without --write nothing is written"


def test_another_seed_is_one_that_no_run_of_the_config_has(tmp_path, capsys):
    for seed in range(3):
        write_run(tmp_path / f"swings-s{seed}", [20.0, 490, 110 + seed, 480, 112, 490, 183, 481], seed)
    write_run(tmp_path / "unlike-s3", [20.0, 490, 110, 480, 112, 490, 183, 481], 3, config={"total_steps": 9000})
    assert main(["next", str(tmp_path)]) == 0
    assert "run another seed (seed=3)" in capsys.readouterr().out


def test_the_command_for_a_plug_in_says_that_its_code_is_trusted(here, capsys):
    path = here / "runs" / "lr100" / "config.yaml"
    values = config.read_yaml(path)
    config.write_yaml(path, values | {"env": values["env"] | {"name": "elsewhere:CartPole"}})
    assert main(["next", "lr100"]) == 0
    assert "relab train runs/lr100/next_config.yaml seed=3 --trust\n" in capsys.readouterr().out


def test_json_is_the_same_proposal(here, capsys):
    assert main(["next", "lr100", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["proposal"]["diff"] == {"algo.lr": {"from": 0.3, "to": 0.003}}
    assert body["proposal"]["seeds"][0] == 3
    assert body["written"] is None


def test_write_makes_a_file_with_the_keys_of_a_proposal(here, capsys):
    assert main(["next", "lr100", "--write"]) == 0
    assert "run it      relab train runs/lr100/next_config.yaml seed=3" in capsys.readouterr().out
    written = config.read_yaml(here / "runs" / "lr100" / FILE)
    assert set(written) == proposal.KEYS
    assert (written["parent"], written["diff"]) == ("lr100", {"algo.lr": {"from": 0.3, "to": 0.003}})
    assert set(written["predicted"]) == {"metric", "delta", "low", "high", "how", "at", "direction"}
    assert len(examine(here / "runs").runs) == 1, "the file is no run, and hides none"


def test_a_link_in_its_place_is_replaced_not_followed(here):
    outside = here / "precious"
    outside.write_text("mine")
    (here / "runs" / "lr100" / FILE).symlink_to(outside)
    assert main(["next", "lr100", "--write"]) == 0
    assert outside.read_text() == "mine"


def test_nothing_is_an_answer_too(here, capsys):
    meta = json.loads((here / "runs" / "lr100" / "meta.json").read_text()) | {"status": "interrupted"}
    (here / "runs" / "lr100" / "meta.json").write_text(json.dumps(meta))
    assert main(["next", "lr100", "--write"]) == 0
    assert capsys.readouterr().out.startswith("no run can be proposed: lr100 is interrupted")
    assert not (here / "runs" / "lr100" / FILE).exists()


def test_no_such_run_is_unreadable_input(here):
    assert main(["next", "nowhere"]) == 2


# ---- Running it


def test_the_proposal_runs_and_its_run_remembers_it(here, capsys):
    path = edited(here)
    assert main(["train", path, "seed=7", "--name", "child", "--quiet"]) == 0
    meta = json.loads((here / "runs" / "child" / "meta.json").read_text())
    sources = json.loads((here / "runs" / "child" / "provenance.json").read_text())
    cfg = config.flatten(config.read_yaml(here / "runs" / "child" / "config.yaml"))
    assert (cfg["algo.lr"], cfg["seed"], cfg["algo.envs"]) == (0.003, 7, 8)
    assert (sources["algo.lr"], sources["seed"], sources["algo.envs"]) == ("proposal", "command line", "parent")
    assert meta["parent"] == "lr100"
    assert meta["proposal"]["diff"] == {"algo.lr": {"from": 0.3, "to": 0.003}}
    assert meta["proposal"]["predicted"]["how"].startswith("no data")
    assert "steps-too-large" in meta["intent"]
    report = examine(here / "runs" / "child")
    assert report.runs[0].view.is_parent
    assert report.runs[0].view.reference.name == "lr100"
    assert "unmentioned-config-change" not in {f.slug for f in report.findings}


def test_the_users_intent_stays_and_the_change_is_still_mentioned(here):
    origin = origin_of([edited(here)], None, here / "runs")
    assert origin.facts("my reason")["intent"] == "my reason [algo.lr 0.3 -> 0.003]"


def test_a_parent_that_is_not_as_the_proposal_says_stops_it(here, capsys):
    path = edited(here)
    cfg = config.read_yaml(here / "runs" / "lr100" / "config.yaml")
    cfg["algo"]["lr"] = 0.1
    config.write_yaml(here / "runs" / "lr100" / "config.yaml", cfg)
    assert main(["train", path]) == 64
    printed = capsys.readouterr().err
    assert "`algo.lr` must be 0.3 in the parent, but lr100 has 0.1" in printed
    assert "relab next" in printed


def test_the_file_may_be_moved_and_its_parent_is_found_by_name(here):
    Path(edited(here)).rename(here / "mine.yaml")
    assert origin_of(["mine.yaml"], None, Path("runs")).parent.name == "lr100"
    with pytest.raises(config.ConfigError, match="no run `lr100` below elsewhere"):
        origin_of(["mine.yaml"], None, Path("elsewhere"))


def test_files_and_settings_stand_above_the_proposal(here):
    path = edited(here)
    (here / "more.yaml").write_text("gamma: 0.9\nclip: 0.1\n")
    words = [path, "more.yaml", "clip=0.3"]
    resolved = config.resolve(layers(words, origin_of(words, None, here / "runs")))
    assert (resolved.config.algo.lr, resolved.config.algo.gamma, resolved.config.algo.clip) == (0.003, 0.9, 0.3)


# ---- --parent


def test_a_parents_settings_are_a_layer_below_the_users(here):
    assert main(["train", "lr=0.01", "seed=9", "--parent", "lr100", "--name", "kid", "--quiet"]) == 0
    meta = json.loads((here / "runs" / "kid" / "meta.json").read_text())
    sources = json.loads((here / "runs" / "kid" / "provenance.json").read_text())
    assert (meta["parent"], sources["algo.lr"], sources["algo.steps"]) == ("lr100", "command line", "parent")
    slugs = [f.slug for f in examine(here / "runs" / "kid").findings]
    assert "unmentioned-config-change" not in slugs, "the command line names what was changed"


def test_another_environment_drops_the_parents_parameters(here):
    words = ["env=ladder-value"]
    resolved = config.resolve(layers(words, origin_of(words, "lr100", here / "runs")))
    assert (resolved.config.env.name, resolved.config.algo.lr) == ("ladder-value-v1", 0.3)


def test_a_parent_twice_is_one_too_many(here, capsys):
    assert main(["train", edited(here), "--parent", "lr100"]) == 64
    assert "names its parent itself" in capsys.readouterr().err
    assert main(["train", "seed=1", "--parent", "nowhere"]) == 2


# ---- Files by strangers: each is refused with exit 64, before anything is made


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parent": "../../etc"}, "must be a name"),
        ({"parent": "/etc"}, "must be a name"),
        ({"parent": "a/../../b"}, "must be a name"),
        ({"parent": "..\\x"}, "must be a name"),
        ({"parent": 3}, "must be a run's name"),
        ({"parent": ""}, "must be a run's name"),
        ({"parent": "runs/gone"}, "is not there"),
        ({"parent": "gone"}, "give --runs"),
        ({"diff": []}, "`diff` must hold"),
        ({"diff": {}}, "`diff` must hold"),
        ({"diff": {"algo.lr": 0.003}}, "`diff` must hold"),
        ({"diff": {"algo.lr": {"to": 0.003}}}, "`diff` must hold"),
        ({"diff": {"algo.lr": {"from": 0.3, "to": 0.003, "or": 1}}}, "`diff` must hold"),
        ({"diff": {"algo.lr": {"from": 0.3, "to": 0.3}}}, "nothing would change"),
        ({"diff": {"algo.lr": {"from": "0.4", "to": 0.003}}}, "must be '0.4' in the parent"),
        ({"diff": {"algo.lr": {"from": 0.3, "to": "fast"}}}, "algo.lr"),
        ({"diff": {"algo.lr": {"from": 0.3, "to": -1.0}}}, "lr"),
        ({"diff": {"algo.nothing": {"from": 1, "to": 2}}}, "no setting of the parent"),
        ({"diff": {"lr": {"from": 0.3, "to": 0.003}}}, "no setting of the parent"),
        ({"diff": {"seeds": {"from": [0], "to": [0, 1]}}}, "relab experiment"),
        ({"rationale": ["x"]}, "`rationale`"),
        ({"predicted": "good"}, "`predicted`"),
        ({"resume_from": "../../weights"}, "`resume_from`"),
        ({"run": "rm -rf"}, "unknown key `run`"),
    ],
)
def test_a_strange_file_is_refused(here, capsys, changes, message):
    path = edited(here, **changes)
    before = sorted(here.rglob("*"))
    assert main(["train", path]) == 64
    assert message in capsys.readouterr().err
    assert sorted(here.rglob("*")) == before


def test_a_parent_behind_a_link_out_of_the_folder_is_not_taken(here, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret"
    shutil.copytree(here / "runs" / "lr100", outside)
    path = edited(here, parent="inner")
    (here / "runs" / "lr100" / "inner").symlink_to(outside)
    with pytest.raises(config.ConfigError, match="not beside it"):
        proposal.load(path, here / "runs")


def test_a_config_is_no_proposal_and_two_are_too_many(here, capsys):
    assert not proposal.is_proposal(here / "runs" / "lr100" / "config.yaml")
    path = edited(here)
    shutil.copy(path, here / "second.yaml")
    assert main(["train", path, "second.yaml"]) == 64
    assert "one proposal" in capsys.readouterr().err


# ---- From weights


def collapsed(folder: Path) -> None:
    """lr100 as if it had risen and fallen: its evaluations are rewritten, and its best lies in the middle."""
    rows = [json.loads(line) for line in (folder / "evals.jsonl").read_text().splitlines()]
    steps = sorted({row["step"] for row in rows})
    means = dict(zip(steps, [20.0, 300.0, 310.0, 20.0, 20.0]))
    for row in rows:
        for k, episode in enumerate(row["episodes"]):
            episode["return"] = means[row["step"]] + k
    (folder / "evals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    best = f"step-{steps[2]:012d}"
    (folder / "checkpoints" / best).mkdir(exist_ok=True)
    if not (folder / "checkpoints" / best / "state.json").exists():
        shutil.copytree(sorted((folder / "checkpoints").glob("step-*"))[-1], folder / "checkpoints" / best,
                        dirs_exist_ok=True)  # fmt: skip
    pointer = {"folder": best, "step": steps[2], "metric": "eval/return_det", "value": 311.5, "n": 4}
    (folder / "checkpoints" / "best.json").write_text(json.dumps(pointer))


def test_a_run_that_lost_what_it_knew_is_tried_again_from_its_best(here, capsys):
    collapsed(here / "runs" / "lr100")
    assert main(["next", "lr100", "--write"]) == 0
    told = capsys.readouterr().out
    assert "start from lr100@best" in " ".join(told.split())
    found = config.read_yaml(here / "runs" / "lr100" / FILE)
    assert found["resume_from"] == "lr100@best"
    assert found["predicted"]["how"].startswith("no data: bounds only")
    assert main(["train", f"runs/lr100/{FILE}", "--name", "child", "--quiet"]) == 0
    child = config.read_yaml(here / "runs" / "child" / "config.yaml")
    assert child["start_from"] == "lr100@best"
    meta = json.loads((here / "runs" / "child" / "meta.json").read_text())
    assert (meta["started_from"]["run"], meta["started_from"]["step"]) == ("lr100", 1024)
    assert meta["proposal"]["resume_from"] == "lr100@best"


def test_a_run_without_its_best_checkpoint_is_tried_from_fresh_weights(here):
    collapsed(here / "runs" / "lr100")
    (here / "runs" / "lr100" / "checkpoints" / "best.json").unlink()
    assert main(["next", "lr100", "--write"]) == 0
    assert config.read_yaml(here / "runs" / "lr100" / FILE)["resume_from"] is None


@pytest.mark.parametrize("word", ["lr100", "lr100@", "@best", "lr100@worst", "lr100@../x", 3, ["lr100@best"],
                                  "../a@best", "/runs/a@best", "gone@best"])  # fmt: skip
def test_weights_lie_where_a_parent_does(here, capsys, word):
    path = edited(here, resume_from=word)
    assert main(["train", path]) == 64
    assert "`resume_from`" in capsys.readouterr().err


def test_a_score_takes_the_start_for_proposed(here):
    from relab.advise.score import unproposed
    from relab.record.history import load

    path = edited(here, resume_from="lr100@latest")
    assert main(["train", path, "--name", "child", "--quiet"]) == 0
    assert unproposed(load(here / "runs" / "lr100"), load(here / "runs" / "child")) == []


def test_a_run_that_lost_its_start_is_tried_again_from_there(here, capsys):
    """Good weights, a step 100 times too large: the change goes back, and so do the weights, in the same parts."""
    run(here / "runs" / "good", algo__lr="3e-3", total_steps="8192", eval__every="2048", eval__episodes="10")
    run(here / "runs" / "bad", start_from="runs/good", start_parts="actor", algo__lr="0.3", eval__episodes="10")
    assert main(["next", "bad", "--write"]) == 0
    found = config.read_yaml(here / "runs" / "bad" / FILE)
    assert found["resume_from"] == "good@8192"
    assert main(["train", f"runs/bad/{FILE}", "--name", "child", "--quiet"]) == 0
    child = config.read_yaml(here / "runs" / "child" / "config.yaml")
    assert (child["start_from"], child["start_parts"], child["algo"]["lr"]) == ("good@8192", ["actor"], 0.003)
    shutil.rmtree(here / "runs" / "good")
    assert main(["next", "bad", "--write"]) == 0
    assert config.read_yaml(here / "runs" / "bad" / FILE)["resume_from"] is None, "what is gone is not proposed"
