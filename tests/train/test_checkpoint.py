"""Does a checkpoint bring back exactly what was saved, and is a damaged or half-written one told from a whole one?"""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import numpy as np
import orjson
import pytest
import torch

from relab.train import checkpoint
from relab.train.checkpoint import CheckpointError


def tree() -> dict:
    """All that an algorithm's state is made of: parameters, arrays of every kind, nested plain values."""
    rng = np.random.default_rng(0)
    return {
        "params": {"actor/0/weight": torch.linspace(-1, 1, 6).view(3, 2), "log_std": np.zeros(2, np.float32)},
        "adam": {"m": rng.normal(size=5).astype(np.float32), "updates": 7},
        "worlds": {"state.rng": np.array([2**64 - 1, 0, 1], np.uint64), "book.alive": np.array([[True], [False]])},
        "cursor": {"memory": np.zeros((4, 0), np.float32), "tick": np.arange(3)},
        "sums": np.array([math.pi, math.nan, -math.inf, 5e-324]),
        "shuffle": {"kind": "PCG64", "state": hex(2**127 + 1), "has_uint32": 0},
        "counts": {"agent_steps": 2**62, "deep": {"er": {"still": [1, 2.5, None, True, "x"]}}},
        "recent": [0.1, 1 / 3, -1e300, 5e-324],
        "empty": {},
        "lr": 3e-4,
    }


PROGRESS = {"next_eval": 100, "best": {"value": 1.5, "n": 20}, "lengths": {"metrics.jsonl": 1234}}


def same(a, b) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and sorted(a) == sorted(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, torch.Tensor):
        return same(a.numpy(), b)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with checkpoints at steps 10, 20, ... 50; latest is 50, best is 20."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for step in range(10, 60, 10):
        name = checkpoint.save(
            folder, step, {"params": {"w": np.full(3, step, np.float32)}, "step": step}, {"at": step}
        )
    checkpoint.point(folder, "latest", name, 50)
    checkpoint.point(folder, "best", "step-000000000020", 20, metric="eval/return_det", value=7.5)
    return folder


# ---- Round trips


def test_a_tree_comes_back_exactly(tmp_path):
    saved = tree()
    name = checkpoint.save(tmp_path, 65536, saved, PROGRESS)
    assert name == "step-000000065536"
    loaded, progress = checkpoint.load(tmp_path, name)
    assert same(saved, loaded)
    assert progress == PROGRESS
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == [
        "state.json",
        "state.safetensors",
        "weights.safetensors",
    ]


def test_split_and_join_are_inverse_and_change_nothing():
    saved = tree()
    arrays, plain = checkpoint.split(saved)
    assert {"params.log_std", "worlds.state.rng", "sums"} < set(arrays)
    assert all(isinstance(a, np.ndarray) for a in arrays.values())
    assert plain["adam"] == {"updates": 7}
    assert "worlds" not in plain
    assert same(saved, checkpoint.join(arrays, plain))
    assert same(saved["adam"]["m"], tree()["adam"]["m"])


def test_numbers_that_json_has_no_word_for_come_back(tmp_path):
    """orjson writes null for them; a run that saw an infinite return must still resume to the same bytes."""
    saved = {"recent": [1.0, math.nan, math.inf, -math.inf], "inner": {"lr": math.nan}}
    loaded, progress = checkpoint.load(tmp_path, checkpoint.save(tmp_path, 1, saved, {"noise": math.nan}))
    assert same(loaded, saved)
    assert math.isnan(progress["noise"])
    checkpoint.point(tmp_path, "best", "step-000000000001", 1, noise=math.nan)
    assert math.isnan(checkpoint.read_pointer(tmp_path, "best")["noise"])


def test_arrays_without_dimensions_and_slices_keep_their_shape(tmp_path):
    whole = np.arange(12.0).reshape(3, 4)
    saved = {"scalar": np.array(3.5), "columns": whole[:, ::2], "turned": whole.T}
    loaded, _ = checkpoint.load(tmp_path, checkpoint.save(tmp_path, 1, saved, {}))
    assert loaded["scalar"].shape == ()
    for key, value in saved.items():
        assert np.array_equal(loaded[key], value), key


@pytest.mark.parametrize("bad", [{"a": {"b": {"c": np.zeros(2)}}}, {"a.b": np.zeros(2)}])
def test_a_tree_that_could_not_come_back_is_refused(tmp_path, bad):
    with pytest.raises(ValueError, match=r"two levels deep.*a\.b"):
        checkpoint.save(tmp_path, 1, bad, {})
    assert checkpoint.steps(tmp_path) == []


def test_what_was_loaded_can_be_written_to(tmp_path):
    checkpoint.save(tmp_path, 1, {"a": np.zeros(3)}, {})
    loaded, _ = checkpoint.load(tmp_path, "1")
    loaded["a"][0] = 1.0
    assert checkpoint.load(tmp_path, "1")[0]["a"][0] == 0.0


def test_weights_are_a_file_of_their_own_that_others_can_read(tmp_path):
    from safetensors.numpy import load_file

    name = checkpoint.save(tmp_path, 1, tree(), {})
    assert set(load_file(tmp_path / name / "weights.safetensors")) == {"actor/0/weight", "log_std"}


def test_the_same_tree_gives_the_same_bytes(tmp_path):
    saved, files = tree(), []
    for part in ("a", "b"):
        name = checkpoint.save(tmp_path / part, 5, saved, PROGRESS)
        files.append({path.name: path.read_bytes() for path in (tmp_path / part / name).iterdir()})
    assert files[0] == files[1]


def test_a_step_is_saved_once(root):
    before = (root / "step-000000000050" / "state.json").read_bytes()
    assert checkpoint.save(root, 50, {"other": 1}, {}) == "step-000000000050"
    assert (root / "step-000000000050" / "state.json").read_bytes() == before


# ---- Names and pointers


@pytest.mark.parametrize(
    ("name", "step"), [("latest", 50), ("best", 20), ("30", 30), ("step-000000000040", 40), ("000010", 10)]
)
def test_names_of_a_checkpoint(root, name, step):
    loaded, progress = checkpoint.load(root, name)
    assert (loaded["step"], loaded["params"]["w"][0], progress["at"]) == (step, step, step)


def test_pointers_keep_their_evidence(root):
    assert checkpoint.read_pointer(root, "best") == {
        "folder": "step-000000000020", "step": 20, "metric": "eval/return_det", "value": 7.5,
    }  # fmt: skip
    assert checkpoint.read_pointer(root, "worst") is None
    checkpoint.point(root, "best", "step-000000000030", 30)
    assert checkpoint.read_pointer(root, "best") == {"folder": "step-000000000030", "step": 30}
    assert not list(root.glob(".*"))


@pytest.mark.parametrize("name", ["70", "step-000000000070", "lastest", "step-10", ""])
def test_a_name_that_is_not_there_lists_those_that_are(root, name):
    with pytest.raises(CheckpointError, match=r"has no checkpoint.*step-000000000010, step-000000000020"):
        checkpoint.load(root, name)


@pytest.mark.parametrize(
    "name",
    ["..", ".", "../outside", "../checkpoints/step-000000000010", "/etc", "step-000000000010/../../outside", "a\0b"],
)
def test_no_name_leads_outside(root, name):
    checkpoint.save(root.parent / "outside-root", 1, {"a": 1}, {})
    os.rename(root.parent / "outside-root" / "step-000000000001", root.parent / "outside")
    for file in (
        "state.json",
        "state.safetensors",
        "weights.safetensors",
    ):  # so that `..` could be read if it were tried
        (root.parent / file).write_bytes((root.parent / "outside" / file).read_bytes())
    with pytest.raises(CheckpointError, match="has no checkpoint"):
        checkpoint.load(root, name)


def test_a_pointer_cannot_lead_outside_either(root):
    checkpoint.point(root, "latest", "..", 0)
    with pytest.raises(CheckpointError, match="has no checkpoint"):
        checkpoint.load(root, "latest")


def test_without_a_pointer_the_error_says_so(tmp_path):
    with pytest.raises(CheckpointError, match=r"no `best` checkpoint \(folders there: none\)"):
        checkpoint.load(tmp_path, "best")


# ---- Damage


@pytest.mark.parametrize("file", ["state.json", "state.safetensors", "weights.safetensors"])
@pytest.mark.parametrize("damage", ["truncated", "empty", "garbage", "missing"])
def test_a_damaged_file_is_an_error_with_its_folder(root, file, damage):
    path = root / "step-000000000050" / file
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"truncated": whole[: len(whole) * 2 // 3], "empty": b"", "garbage": os.urandom(300)}[damage])
    with pytest.raises(CheckpointError, match=r"step-000000000050.*cannot be read"):
        checkpoint.load(root, "latest")
    assert checkpoint.load(root, "40")[0]["step"] == 40


@pytest.mark.parametrize("file", ["state.safetensors", "weights.safetensors"])
def test_one_changed_bit_is_an_error_with_its_file(root, file):
    path = root / "step-000000000050" / file
    content = bytearray(path.read_bytes())
    content[-2] ^= 64  # of a number, which stays one
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"step-000000000050 cannot be read \(its {file}: .*was changed"):
        checkpoint.load(root, "latest")


@pytest.mark.parametrize("body", [b"[]", b"3", b"null", b'{"schema": 1}', b'{"schema": 1, "plain": 3, "progress": {}}'])
def test_json_of_another_kind_is_an_error_with_its_folder(root, body):
    (root / "step-000000000050" / "state.json").write_bytes(body)
    with pytest.raises(CheckpointError, match="step-000000000050"):
        checkpoint.load(root, "50")


def test_another_schema_is_named(root):
    path = root / "step-000000000050" / "state.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"schema": 99}))
    with pytest.raises(CheckpointError, match=r"step-000000000050 has schema 99, this relab reads 1"):
        checkpoint.load(root, "50")


@pytest.mark.parametrize("body", [b"", b'{"folder": "step-0', b"[]", b'{"step": 3}'])
def test_a_damaged_pointer_is_an_error_with_its_path(root, body):
    (root / "latest.json").write_bytes(body)
    with pytest.raises(CheckpointError, match=r"latest\.json"):
        checkpoint.load(root, "latest")


# ---- Retention


def kept(root: Path) -> list[int]:
    return [int(name.removeprefix("step-")) for name in checkpoint.steps(root)]


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        (0, [20, 50]),
        (1, [20, 50]),
        (2, [20, 40, 50]),
        (4, [20, 30, 40, 50]),
        (5, [10, 20, 30, 40, 50]),
        (9, [10, 20, 30, 40, 50]),
    ],
)
def test_prune_keeps_the_newest_and_those_pointed_to(root, keep, left):
    checkpoint.prune(root, keep)
    assert kept(root) == left
    assert checkpoint.load(root, "best")[0]["step"] == 20


def test_prune_keeps_latest_even_when_it_is_old(root):
    checkpoint.point(root, "latest", "step-000000000010", 10)
    checkpoint.prune(root, 1)
    assert kept(root) == [10, 20, 50]


def test_prune_touches_nothing_else(root):
    (root / "step-by-step").mkdir()
    (root / "notes.txt").write_text("mine")
    checkpoint.prune(root, 0)
    assert kept_names(root) == [
        "best.json",
        "latest.json",
        "notes.txt",
        "step-000000000020",
        "step-000000000050",
        "step-by-step",
    ]


def kept_names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


# ---- A writer that was killed


def interrupted(root: Path) -> None:
    """What kill -9 leaves: a half-written folder, a pointer not yet moved, a whole folder not yet pointed to."""
    half = root / ".writing-12345"
    half.mkdir()
    whole = root / "step-000000000050"
    (half / "weights.safetensors").write_bytes((whole / "weights.safetensors").read_bytes()[:50])
    (root / ".latest.json.tmp").write_bytes(b'{"fol')
    checkpoint.save(root, 60, {"params": {}, "step": 60}, {})


def test_leftovers_are_never_loaded(root):
    interrupted(root)
    assert checkpoint.load(root, "latest")[0]["step"] == 50
    assert ".writing-12345" not in checkpoint.steps(root)
    with pytest.raises(CheckpointError, match="has no checkpoint"):
        checkpoint.load(root, ".writing-12345")


def test_clean_removes_what_was_left_and_what_lies_ahead(root):
    interrupted(root)
    checkpoint.clean(root, 50)
    assert kept_names(root) == ["best.json", "latest.json", *(f"step-{k:012d}" for k in range(10, 60, 10))]
    checkpoint.clean(root, 30)
    assert kept(root) == [10, 20, 30]
    checkpoint.clean(root, -1)
    assert kept(root) == []


def test_clean_at_step_0_keeps_the_checkpoint_of_step_0(tmp_path):
    name = checkpoint.save(tmp_path, 0, {"params": {}, "step": 0}, {})
    checkpoint.point(tmp_path, "latest", name, 0)
    checkpoint.clean(tmp_path, 0)
    assert kept(tmp_path) == [0]
    checkpoint.clean(tmp_path, -1)
    assert kept_names(tmp_path) == []


def test_clean_leaves_no_pointer_to_what_is_gone(root):
    shutil.rmtree(root / "step-000000000020")
    checkpoint.clean(root, 50)
    assert checkpoint.read_pointer(root, "best") is None
    assert checkpoint.read_pointer(root, "latest")["step"] == 50
    checkpoint.clean(root, 30)
    assert checkpoint.read_pointer(root, "latest") is None


def test_the_last_checkpoint_is_that_of_latest_or_the_newest_before_it(root):
    checkpoint.save(root, 60, {"params": {}}, {})  # not yet pointed to
    assert checkpoint.last(root) == "step-000000000050"
    shutil.rmtree(root / "step-000000000050")
    assert checkpoint.last(root) == "step-000000000040"
    for name in checkpoint.steps(root)[:-1]:
        shutil.rmtree(root / name)
    assert checkpoint.last(root) is None
    (root / "latest.json").unlink()
    assert checkpoint.last(root) is None


@pytest.mark.parametrize("verb", [lambda root: checkpoint.prune(root, 1), lambda root: checkpoint.clean(root, 0)])
def test_a_half_deleted_folder_is_no_checkpoint(root, monkeypatch, verb):
    def killed(path, *_):
        (path / "state.json").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        verb(root)
    monkeypatch.undo()
    for name in checkpoint.steps(root):
        checkpoint.load(root, name)
    checkpoint.clean(root, 50)
    assert not list(root.glob(".*"))


def test_clean_leaves_files_of_others_alone(root):
    others = ["step-by-step", ".git", ".env", ".bashrc.tmp", ".going-home", ".writing-a-book"]
    for name in others:
        (root / name).mkdir()
    checkpoint.clean(root, 50)
    assert all((root / name).is_dir() for name in others)


def test_a_leftover_does_not_stop_the_next_save(root):
    """The same process id may come again after a reboot."""
    half = root / f".writing-{os.getpid()}"
    half.mkdir()
    (half / "state.json").write_text("old")
    (half / "more").write_text("old")
    checkpoint.save(root, 70, {"params": {}, "step": 70}, {})
    assert checkpoint.load(root, "70")[0]["step"] == 70
    assert not half.exists()
    assert not (root / "step-000000000070" / "more").exists()


def test_a_save_that_fails_leaves_no_folder(root, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(OSError, match="no space"):
        checkpoint.save(root, 60, {"step": 60}, {})
    assert kept(root) == [10, 20, 30, 40, 50]
    assert checkpoint.load(root, "latest")[0]["step"] == 50
