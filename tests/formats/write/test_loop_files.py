"""Is a run written as a loop's folder read back as what it was: parent, what was asked for, what changed, results?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relab.formats.read import find
from relab.formats.write.convert import convert
from relab.formats.write.loop_files import nested
from relab.record.history import History
from small_runs import run as train
from where import fixtures

CORPUS = Path("/work/shared/corpus/drones")


def loaded(path: Path) -> dict[str, History]:
    return {one.name.rpartition("/")[2]: one.history for one in find.load_all(path).runs}


def alike(before: History, after: History) -> None:
    for key in ("parent", "intent", "changed", "notes", "seed", "override"):
        assert (after.meta.get(key) or None) == (before.meta.get(key) or None), key
    assert after.config == before.config
    for file, key in (("trainer_summary.json", "metrics"), ("summary.json", "")):
        if not (before.folder / file).is_file():
            continue
        bodies = [json.loads((run.folder / file).read_text()) for run in (before, after)]
        first, second = (body[key] if key else body for body in bodies)
        numbers = {name: value for name, value in first.items() if isinstance(value, float)}
        assert numbers == {name: second.get(name) for name in numbers}, file


def test_a_loops_folder_comes_back_as_it_was(tmp_path: Path):
    source = fixtures() / "loop"
    convert(source, "loop", tmp_path / "out", "original")
    before, after = loaded(source), loaded(tmp_path / "out")
    assert set(after) == set(before)
    for name in before:
        alike(before[name], after[name])


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the records of the original loop are not here")
def test_the_original_records_come_back(tmp_path: Path):
    names = ("2025-09-20T152244Z", "2025-09-20T153515Z")
    for name in names:
        convert(CORPUS / name, "loop", tmp_path / name, "original")
        before, after = loaded(CORPUS / name)[name], loaded(tmp_path / name)[name]
        alike(before, after)
    assert after.meta["changed"]["train.ent_coef"] == {"from": 0.01, "to": 0.12}
    assert "train.ent_coef" not in after.meta["override"], "it was changed, and nobody had asked for it"


def test_a_run_of_relab_from_a_proposal_has_its_files(tmp_path: Path):
    train(tmp_path / "runs" / "p001-s1000", total_steps="512")
    meta = tmp_path / "runs" / "p001-s1000" / "meta.json"
    body = json.loads(meta.read_text())
    change = {"algo.lr": {"from": 0.01, "to": 0.003}}
    body |= {"parent": "base-s0", "intent": "smaller steps", "proposal": {"diff": change, "predicted": {}}}
    meta.write_text(json.dumps(body))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "p001.txt").write_text("Summary\n- it went well\n")
    convert(tmp_path / "runs", "loop", tmp_path / "out")
    folder = tmp_path / "out" / "p001-s1000"
    assert json.loads((folder / "override.json").read_text()) == {"algo": {"lr": 0.003}}
    assert json.loads((folder / "config_diff.json").read_text()) == {"algo": {"lr": {"old": 0.01, "new": 0.003}}}
    assert (folder / "notes.txt").read_text() == "Summary\n- it went well\n"
    summary = json.loads((folder / "summary.json").read_text())
    before, after = loaded(tmp_path / "runs")["p001-s1000"], loaded(tmp_path / "out")["p001-s1000"]
    assert summary["mean_reward"] == before.columns["eval/return_det"].values[-1]
    assert after.meta["parent"] == "base-s0"
    assert after.meta["changed"] == change
    assert after.columns["eval/return_det"].values[-1] == before.columns["eval/return_det"].values[-1]
    assert after.config["algo"]["lr"] == before.config["algo"]["lr"]


def test_a_program_that_a_loop_called_has_the_change_that_was_proposed(tmp_path: Path):
    (tmp_path / "runs" / "p001-s1000").mkdir(parents=True)
    (tmp_path / "runs" / "p001-s1000" / "progress.csv").write_text("step,return\n1,2.0\n2,3.0\n3,4.0\n")
    (tmp_path / "proposals").mkdir()
    (tmp_path / "proposals" / "p001.yaml").write_text("parent: base-s0\ndiff:\n  lr: {from: 0.01, to: 0.003}\n")
    convert(tmp_path / "runs", "loop", tmp_path / "out")
    folder = next((tmp_path / "out").rglob("override.json")).parent
    assert json.loads((folder / "override.json").read_text()) == {"lr": 0.003}
    assert json.loads((folder / "config_diff.json").read_text()) == {"lr": {"old": 0.01, "new": 0.003}}
    assert json.loads((folder / "run.json").read_text())["metadata"]["parent_run"] == "base-s0"


def test_dotted_keys_become_a_tree():
    assert nested({"a.b": 1, "a.c.d": 2, "a.b.e": 3, "x": None}) == {
        "a": {"b": 1, "c": {"d": 2}},
        "a.b.e": 3,
        "x": None,
    }
