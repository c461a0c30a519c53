"""Is a file that holds something else than relab wrote told in one line, with its name and what to do?"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from relab.base import jsonl
from relab.base.jsonl import RecordError
from relab.cli import main
from relab.runs import glance, labels
from relab.train import checkpoint
from small_runs import Interrupt, run

STATE = "checkpoints/{last}/state.json"
GONE = "the key is taken away"
WRONG: list[Any] = [None, "x", -1, [1], {"a": 1}, GONE]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "run"
    assert run(folder, Interrupt(at=6)).status == "interrupted"
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "run"))


def put(folder: Path, file: str, keys: str, value: Any) -> Path:
    """Set one value, by its dotted path, in a JSON file of the run."""
    path = folder / file.format(last=json.loads((folder / "checkpoints" / "latest.json").read_text())["folder"])
    body = json.loads(path.read_text())
    *above, last = keys.split(".", 2)
    at = body
    for key in above:
        at = at[key]
    if value == GONE:
        at.pop(last, None)
    else:
        at[last] = value
    path.write_text(json.dumps(body))
    return path


@pytest.mark.parametrize("value", ["x", [1], None, {}, 1.5])
def test_resume_names_a_schema_that_is_none(value: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(folder, "meta.json", "schema", value)
    assert main(["resume", str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"relab: {path} must hold `schema` as a whole number, but it is {value!r}; put it right")


@pytest.mark.parametrize("key", ["status", "id", "config_hash", "spec"])
def test_resume_names_a_fact_that_is_wrong(key: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(folder, "meta.json", key, [1])
    assert main(["resume", str(folder)]) == 2
    assert f"relab: {path} must hold `{key}` as " in capsys.readouterr().err


@pytest.mark.parametrize("value", [{}, None, [1], "x", GONE])
@pytest.mark.parametrize("key", ["plain", "progress"])
def test_a_checkpoint_without_its_parts_says_so(
    key: str, value: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(folder, STATE, key, value)
    words = [["resume", str(folder)]]
    words += [["eval", str(folder), "--episodes", "2", "--checkpoint", "latest"]] if key == "plain" else []
    for command in words:
        assert main(command) == 2, command
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"relab: {path.parent} ")
        assert line.endswith("`relab resume` goes on from step 640; other commands take --checkpoint 640"), line


INSIDE = ["plain.counts", "plain.counts.agent_steps", "plain.counts.env_steps", "plain.shuffle", "plain.shuffle.state",
          "plain.shuffle.has_uint32", "plain.recent", "plain.lr", "plain.adam", "progress.last_eval", "progress.best",
          "progress.best.step", "progress.lengths", "progress.lengths.metrics.jsonl"]  # fmt: skip


@pytest.mark.parametrize("keys", INSIDE)
def test_resume_names_what_does_not_fit(keys: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "metrics.jsonl").read_bytes()
    state = put(folder, STATE, "schema", 1)
    kept = state.read_bytes()
    for value in ("x", {"a": 1}, GONE, *([] if keys == "progress.best" else [None])):  # there may be no best yet
        state.write_bytes(kept)
        put(folder, STATE, keys, value)
        assert main(["resume", str(folder), "--quiet"]) == 2, value
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"relab: {state.parent} "), line
    assert (folder / "metrics.jsonl").read_bytes() == before, "nothing was cut"


def test_a_damaged_checkpoint_can_be_taken_away(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The remedy that the message gives."""
    path = put(folder, STATE, "plain", {})
    assert main(["resume", str(folder), "--quiet"]) == 2
    shutil.rmtree(path.parent)
    assert main(["resume", str(folder), "--quiet"]) == 0


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("key", ["metric", "value", "n"])
def test_eval_does_without_the_evidence_for_best(
    key: str, value: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder, "checkpoints/best.json", key, value)
    assert main(["eval", str(folder), "--episodes", "2"]) == 0
    out = capsys.readouterr().out
    assert "best.json does not say" in out or f"(n = {value})" in out or " = -1 (n" in out


@pytest.mark.parametrize("whole", ["[]", "7", "null", '"x"', "", "{", "{}", '{"folder": 7}', '{"folder": ["a"]}'])
@pytest.mark.parametrize("name", ["best", "latest"])
def test_a_pointer_to_nowhere(name: str, whole: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "checkpoints" / f"{name}.json").write_text(whole)
    assert main(["eval", str(folder), "--episodes", "2", "--checkpoint", name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(folder / "checkpoints") in line


READING = [["examine", "RUN"], ["runs", "ALL"], ["report", "RUN", "--out", "ALL/page.html"], ["next", "RUN"],
           ["diff", "RUN", "RUN"], ["compare", "RUN", "RUN"], ["note", "RUN"],
           ["runs", "disk", "--runs", "ALL"]]  # fmt: skip
SLOW = ("report", "note")  # they stand on what examine reads
FACTS = ["schema", "status", "id", "name", "seed", "spec", "spec.action", "spec.action.kind", "spec.action.n", "parent",
         "spec.horizon", "spec.random", "spec.random.return_mean", "spec.reward_high", "spec.env", "heartbeat",
         "created", "config_hash", "command", "commit", "packages", "machine", "load", "why"]  # fmt: skip


@pytest.mark.parametrize("words", READING, ids=" ".join)
@pytest.mark.some(3)
def test_reading_commands_take_any_meta(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = (folder / "meta.json").read_bytes()
    odd = (None, "x", -1, {"a": [1]}, 10**30)
    for i, keys in enumerate(FACTS):
        for value in ([1], odd[i % len(odd)])[: 1 if words[0] in SLOW else 2]:
            (folder / "meta.json").write_bytes(kept)
            put(folder, "meta.json", keys, value)
            code = main([w.replace("RUN", str(folder)).replace("ALL", str(folder.parent)) for w in words])
            err = capsys.readouterr().err
            assert code in (0, 1, 2), (keys, value, err)
            assert code != 2 or len(err.splitlines()) == 1, (keys, value, err)


@pytest.mark.parametrize(("keys", "value"), [("spec.action.n", -1), ("spec.action.kind", [1]), ("spec.env", {"a": 1})])
def test_compare_counts_any_fact(keys: str, value: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, "meta.json", keys, value)
    assert main(["compare", str(folder), str(folder), "--why"]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


# ---- What is there and is not what its name says


@pytest.mark.parametrize(
    "text", ['{"note": "mine", "tags": ["a"],', "[]", "x" * 5_000_000], ids=["cut", "a list", "huge"]
)
def test_labels_that_cannot_be_read_are_not_written_over(tmp_path, text):
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(RecordError, match="would lose what it holds"):
        labels.write(tmp_path / "labels.json", labels.Labels(tags=("t",)))
    assert (tmp_path / "labels.json").read_text() == text


def test_a_pipe_among_the_files_of_a_run_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "evals.jsonl")
    assert list(glance._last_rows(os.fsencode(tmp_path / "evals.jsonl"), 2)) == []
    with pytest.raises(OSError, match=r"evals\.jsonl"):
        jsonl.open_append(tmp_path, "evals.jsonl")


def test_a_pointer_of_a_gigabyte_is_not_read(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    with open(tmp_path / "checkpoints" / "best.json", "wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(checkpoint.CheckpointError, match=r"1,073,741,824 bytes, and no more than"):
        checkpoint.read_pointer(tmp_path / "checkpoints", "best")


# ---- An attempt to resume that fails


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("status", ["interrupted", "running"])
@pytest.mark.parametrize("file", ["weights.safetensors", "state.safetensors", "state.json"])
def test_a_resume_that_fails_leaves_every_file_and_names_the_damaged_one(
    file: str, status: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder, "meta.json", "status", status)
    with open(folder / "metrics.jsonl", "ab") as metrics:
        metrics.write(b'{"step": 9')  # what a kill leaves; only a resume that goes on may mend it
    *_, older, last = checkpoint.steps(folder / "checkpoints")
    (folder / "checkpoints" / last / file).write_bytes(b"\0" * 40)
    before = bytes_of(folder)
    assert main(["resume", str(folder), "--quiet"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{last} cannot be read (its {file}: " in line
    assert f"`relab resume` goes on from step {checkpoint.step_of(older)};" in line
    assert bytes_of(folder) == before
    shutil.rmtree(folder / "checkpoints" / last)  # as it says
    assert main(["resume", str(folder), "--quiet"]) == 0
    assert json.loads((folder / "meta.json").read_text())["status"] == "finished"


def test_a_run_without_another_checkpoint_says_that_it_begins_anew(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = folder / "checkpoints"
    for name in checkpoint.steps(root):
        (root / name / "weights.safetensors").write_bytes(b"")
    assert main(["resume", str(folder), "--quiet"]) == 2
    assert "no checkpoint before it can be read" in capsys.readouterr().err
    shutil.rmtree(root)
    assert main(["resume", str(folder), "--quiet"]) == 0


def test_a_record_that_lost_rows_is_left_as_it_was(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "metrics.jsonl").write_bytes(b"")
    before = bytes_of(folder)
    assert main(["resume", str(folder), "--quiet"]) == 2
    assert "rows were lost" in capsys.readouterr().err
    assert bytes_of(folder) == before
