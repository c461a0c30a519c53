"""Are the checkpoints that relab brings with it whole, small, and what they say they are?"""

from __future__ import annotations

from pathlib import Path

import pytest

from relab.config import layers
from relab.config.base import ConfigError
from relab.config.layers import Layer
from relab.record.run_folder import read_meta
from relab.train import checkpoint, weights

FOLDERS = sorted(path.parent for path in weights.SHELF.glob("*/meta.json"))


def test_they_are_under_five_megabytes_in_all() -> None:
    assert sum(path.stat().st_size for path in weights.SHELF.rglob("*") if path.is_file()) < 5_000_000


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_command_and_hash_stand_beside_the_weights(folder: Path) -> None:
    meta = read_meta(folder)
    assert meta["command"] == f"relab train ppo env={folder.name} seed=100 save.keep=200"
    assert [checkpoint.step_of(name) for name in checkpoint.steps(folder / "checkpoints")] == sorted(
        int(step) for step in meta["levels"]
    )
    for step, level in meta["levels"].items():
        tree, _ = checkpoint.load(folder / "checkpoints", step)
        assert checkpoint.fingerprint(tree["params"]) == level["weights"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_settings_are_those_of_the_command(folder: Path) -> None:
    """Of the shipped preset; threads change no result."""
    typed = {"env": folder.name, "seed": "100", "save.keep": "200"}
    now = layers.flatten(layers.resolve([Layer("command line", typed)]).config)
    then = layers.flatten(layers.from_record(folder))
    assert {key: (then[key], now[key]) for key in now if then.get(key) != now[key] and key != "threads"} == {}


def test_a_name_that_is_not_shipped_is_told_with_those_that_are(tmp_path: Path) -> None:
    assert weights.find("shipped:pickcube-gantry@65536", tmp_path).step == 65536
    with pytest.raises(ConfigError, match="relab ships checkpoints of pickcube, pickcube-gantry, but none of 'maze'"):
        weights.find("shipped:maze@1", tmp_path)
    with pytest.raises(ConfigError, match="has no checkpoint"):
        weights.find("shipped:pickcube-gantry@7", tmp_path)
