"""Does a run begin with the weights of the run that `start_from` names, with them alone, and go on without it?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relab import cli
from relab.config import layers
from relab.config.base import ConfigError
from relab.config.yaml_io import read_yaml, write_yaml
from relab.health.examine import examine
from relab.record.run_folder import read_meta
from relab.train import checkpoint, session
from relab.train.algos import dqn
from relab.train.check_algo import AlgoError, check_algo
from relab.train.screen import Silent
from small_runs import Interrupt, fingerprint, run

Said = pytest.CaptureFixture[str]
DQN = {"algo": "dqn", "total_steps": "700", "algo__steps": "16", "algo__learning_starts": "100",
       "algo__minibatch": "16", "algo__target_every": "1000000", "algo__tau": "1.0"}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    run(root / "runs" / "a", save__keep="99")
    return root


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with runs/a, as the current one."""
    work = tmp_path / "work"
    shutil.copytree(made, work)
    monkeypatch.chdir(work)
    return work


def tree_of(folder: Path, name: str) -> dict[str, Any]:
    return checkpoint.load(folder / "checkpoints", name)[0]


class Listener(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


# ---- What is taken


def test_all_weights_and_the_scale_and_nothing_else(here: Path) -> None:
    shown = Listener()
    run(Path("runs/b"), shown, start_from="runs/a@512", seed="9", save__keep="99")
    theirs, ours = tree_of(Path("runs/a"), "512"), tree_of(Path("runs/b"), "0")
    for part in ("params", "obs_scale"):
        assert all(np.array_equal(theirs[part][key], ours[part][key]) for key in theirs[part])
    assert ours["counts"] == dict.fromkeys(ours["counts"], 0)
    assert not np.any(ours["adam"]["m"]) if "m" in ours["adam"] else ours["adam"], "the optimiser begins anew"
    meta, parent = read_meta(Path("runs/b")), read_meta(Path("runs/a"))
    facts = meta["started_from"]
    assert (facts["run"], facts["id"], facts["step"]) == ("a", parent["id"], 512)
    assert (facts["config_hash"], facts["checkpoint"], facts["fresh"]) == (parent["config_hash"], "512", [])
    assert (meta["parent"], meta["parent_id"]) == ("a", parent["id"])
    assert meta["init"] == checkpoint.fingerprint(theirs["params"])
    assert shown.said == ["  starts from a@512 (step 512): 12 of 12 weights and its scale of observations"]


def test_named_parts_alone(here: Path) -> None:
    shown = Listener()
    run(Path("runs/b"), shown, start_from="runs/a", start_parts="actor", save__keep="99")
    assert shown.said[0].endswith("6 of 12 weights and its scale of observations; fresh: critic")
    run(Path("runs/c"), save__keep="99")
    theirs, ours, born = (tree_of(Path(f"runs/{name}"), step)["params"] for name, step in
                          (("a", "latest"), ("b", "0"), ("c", "0")))  # fmt: skip
    for key in ours:
        assert np.array_equal(ours[key], (theirs if key.startswith("actor/") else born)[key]), key
    facts = read_meta(Path("runs/b"))["started_from"]
    assert facts["left"] == facts["fresh"]
    assert {name.split("/")[0] for name in facts["fresh"]} == {"critic"}


def test_what_has_another_shape_is_told_with_both(here: Path) -> None:
    shown = Listener()
    run(Path("runs/b"), shown, start_from="a@best", algo__hidden="32,64")
    shapes = read_meta(Path("runs/b"))["started_from"]["other_shape"]
    assert shapes["actor/0/weight"] == {"there": [64, 4], "here": [32, 4]}
    assert "actor/0/weight (64x4 there, 32x4 here)" in shown.said[0]


def test_a_slow_copy_begins_with_the_same_weights(here: Path) -> None:
    run(Path("runs/q"), **DQN)
    run(Path("runs/b"), start_from="runs/q", save__keep="99", **DQN)
    ours = tree_of(Path("runs/b"), "0")
    assert {*ours["target"]["flat"]} == {x for array in ours["params"].values() for x in array.ravel()}
    assert not np.array_equal(ours["target"]["flat"], tree_of(Path("runs/q"), "latest")["target"]["flat"])


def test_an_algorithm_whose_slow_copy_stays_behind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dqn, "follow_weights")
    settings = {key.replace("__", "."): value for key, value in DQN.items()}
    with pytest.raises(AlgoError, match=r"target\.flat.*follow_weights"):
        check_algo({**settings, "env": "cartpole", "eval.every": 200, "eval.episodes": 2, "eval.stop_at": "null"})


# ---- What cannot be taken leaves nothing behind


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["start_from=gone"], "no run `gone` below runs"),
        (["start_from=runs/a@77"], "it has: step-000000000000"),
        (["start_from=runs/a@../../x"], "has no checkpoint"),
        (["start_from=runs/a", "start_parts=actr"], "it has actor, critic"),
        (["start_from=runs/a", "algo=dqn"], "nothing of a@latest fits this run"),
        (["start_from=runs/a", "hidden=8,8", "start_parts=actor/0"], "64x4 there and 8x4 here"),
        (["start_parts=actor"], "`start_parts` = actor are parts of another run's weights: set `start_from` as well"),
        (
            ["start_from=runs/a", "start_parts=actor/0/weight", "env=pendulum"],
            "fits this run (it was trained on cartpole-v1, and this run is on pendulum-v1): ",
        ),
        (["start_from=@best"], "does not: "),
        (["start_from=" + "x" * 5000], "no folder can be called"),
    ],
)
def test_an_error_with_the_values_and_no_folder(here: Path, words: list[str], told: str, capsys: Said) -> None:
    here_too = [] if any(word.startswith("env=") for word in words) else ["env=cartpole"]
    assert cli.main(["train", *here_too, *words, "--name", "b"]) == 64
    assert told in capsys.readouterr().err
    assert not (here / "runs" / "b").exists()


def test_weights_that_are_no_numbers_are_refused(here: Path) -> None:
    from safetensors.numpy import load_file, save_file

    file = next(iter(sorted(Path("runs/a/checkpoints").glob("step-*"), reverse=True))) / "weights.safetensors"
    arrays = load_file(file)
    save_file(arrays | {"actor/0/bias": np.full_like(arrays["actor/0/bias"], np.nan)}, file)
    state = json.loads((file.parent / "state.json").read_text())
    (file.parent / "state.json").write_text(json.dumps(state | {"sums": {}}))  # as relab once wrote it
    with pytest.raises(ConfigError, match=r"not finite \(actor/0/bias\).*earlier checkpoint, e\.g\. a@best"):
        run(Path("runs/b"), start_from="runs/a")


# ---- Going on


def test_it_goes_on_to_the_same_bytes_without_the_other_run(here: Path) -> None:
    run(Path("runs/b"), start_from="runs/a@best")
    run(Path("runs/c"), Interrupt(3), start_from="runs/a@best")
    shutil.rmtree("runs/a")
    assert session.resume(Path("runs/c")).status == "finished"
    assert fingerprint(Path("runs/c")) == fingerprint(Path("runs/b"))


def test_killed_before_the_first_evaluation_it_needs_it_no_more(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(Path("runs/b"), start_from="runs/a@best")
    with monkeypatch.context() as patch:
        patch.setattr("relab.train.loop.Trainer.evaluate", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(Path("runs/c"), start_from="runs/a@best")
    Path("runs/a").rename("elsewhere")
    assert session.resume(Path("runs/c")).status == "finished"
    assert fingerprint(Path("runs/c")) == fingerprint(Path("runs/b"))


def test_a_run_without_a_checkpoint_takes_them_again(here: Path) -> None:
    run(Path("runs/b"), start_from="runs/a@best")
    run(Path("runs/c"), Interrupt(1), start_from="runs/a@best")
    shutil.rmtree("runs/c/checkpoints")
    session.resume(Path("runs/c"))
    assert fingerprint(Path("runs/c")) == fingerprint(Path("runs/b"))


def test_it_takes_those_that_its_record_names_though_the_other_run_went_on(here: Path) -> None:
    first = "step-000000000512"
    latest = Path("runs/a/checkpoints/latest.json")
    now = latest.read_text()
    checkpoint.point(latest.parent, "latest", first, 512)
    run(Path("runs/b"), start_from="runs/a")
    run(Path("runs/c"), Interrupt(1), start_from="runs/a")
    shutil.rmtree("runs/c/checkpoints")
    latest.write_text(now)  # the other run has gone on
    session.resume(Path("runs/c"))
    assert fingerprint(Path("runs/c")) == fingerprint(Path("runs/b"))
    shutil.rmtree("runs/c/checkpoints")
    shutil.rmtree(f"runs/a/checkpoints/{first}")
    meta = json.loads(Path("runs/c/meta.json").read_text())
    Path("runs/c/meta.json").write_text(json.dumps(meta | {"status": "interrupted"}))
    with pytest.raises(ConfigError, match="no checkpoint 'step-000000000512'"):
        session.resume(Path("runs/c"))


# ---- Records that somebody sent


def test_a_record_opens_no_run_outside(here: Path, capsys: Said) -> None:
    shutil.copytree("runs/a", here.parent / "secret")
    run(Path("runs/sent"), Interrupt(1), start_from="runs/a")
    shutil.rmtree("runs/sent/checkpoints")
    outside = f"{here.parent / 'secret'}@best"
    for word in (outside, "../secret"):
        write_yaml("runs/sent/config.yaml", read_yaml("runs/sent/config.yaml") | {"start_from": word})
        for line in ("resume runs/sent", "train --parent runs/sent seed=7 --name x", "train runs/sent/config.yaml"):
            assert cli.main([*line.split(), "--quiet"]) == 64
            assert "--trust" in capsys.readouterr().err
    assert cli.main(["train", "--parent", "runs/sent", f"start_from={outside}", "--quiet", "--name", "typed"]) == 0
    assert cli.main(["resume", "runs/sent", "--trust", "--quiet"]) == 0


def test_a_link_in_the_other_run_is_not_followed(here: Path, capsys: Said) -> None:
    shutil.move("runs/a/checkpoints", here.parent / "elsewhere")
    Path("runs/a/checkpoints").symlink_to(here.parent / "elsewhere")
    assert cli.main(["train", "ppo", "env=cartpole", "start_from=runs/a", "--name", "b"]) == 64
    assert "through a link" in capsys.readouterr().err


# ---- Afterwards


def test_the_start_is_no_unmentioned_change(here: Path) -> None:
    run(Path("runs/b"), start_from="runs/a", total_steps="512")
    assert "unmentioned-config-change" not in {f.slug for f in examine(Path("runs/b")).findings}
    run(Path("runs/c"), start_from="runs/a", algo__ent_coef="0.3")
    (found,) = [f for f in examine(Path("runs/c")).findings if f.slug == "unmentioned-config-change"]
    assert "algo.ent_coef" in found.message
    assert "start_from" not in found.message


def test_a_start_that_the_record_tells_of_is_mentioned_whoever_the_parent_is(here: Path) -> None:
    run(Path("runs/b"))
    assert cli.main("train --parent a start_from=b start_parts=actor seed=3 --name c --quiet".split()) == 0
    assert "unmentioned-config-change" not in {f.slug for f in examine(Path("runs/c")).findings}


def test_older_runs_keep_their_hash(here: Path) -> None:
    config = layers.to_dict(layers.from_record("runs/a"))
    assert (config["start_from"], config["start_parts"]) == (None, None)
    older = {key: value for key, value in config.items() if not key.startswith("start_")}
    assert layers.config_hash(older) == layers.config_hash(config) == read_meta(Path("runs/a"))["config_hash"]
