"""Settings that Stable-Baselines3 keeps as objects tell configs apart too, and nothing is unpickled to read them."""

import json
import zipfile

import pytest

from relab import logger
from relab.formats.read import sb3_files
from relab.record.history import History

KIND = "<class 'stable_baselines3.common.type_aliases.TrainFreq'>"
# as stable_baselines3 2.9.2 stores train_freq=64 and train_freq=(2, "episode")
STEPS = ("gAWVYQAAAAAAAACMJXN0YWJsZV9iYXNlbGluZXMzLmNvbW1vbi50eXBlX2FsaWFzZXOUjAlUcmFpbkZyZXGUk5RLQGgAjBJUcmFpbkZy"
         "ZXF1ZW5jeVVuaXSUk5SMBHN0ZXCUhZRSlIaUgZQu")  # fmt: skip
EPISODES = ("gAWVZAAAAAAAAACMJXN0YWJsZV9iYXNlbGluZXMzLmNvbW1vbi50eXBlX2FsaWFzZXOUjAlUcmFpbkZyZXGUk5RLAmgAjBJUcmFpbkZy"
            "ZXF1ZW5jeVVuaXSUk5SMB2VwaXNvZGWUhZRSlIaUgZQu")  # fmt: skip


def facts(tmp_path, **data):
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("data", json.dumps({"exploration_fraction": 0.1, **data}))
    return sb3_files.model(History(tmp_path), tmp_path)


@pytest.mark.parametrize(("stored", "value"), [(STEPS, 64), (EPISODES, "2 episode")])
def test_how_often_is_read_without_unpickling(tmp_path, stored, value):
    assert facts(tmp_path, train_freq={":type:": KIND, ":serialized:": stored})["train_freq"] == value


@pytest.mark.parametrize("stored", ["", "no base64", "gAWV", 7, "A" * 5000])
def test_what_is_no_such_pickle_says_nothing(tmp_path, stored):
    assert "train_freq" not in facts(tmp_path, train_freq={":type:": KIND, ":serialized:": stored})


def test_layers_are_a_setting(tmp_path):
    assert facts(tmp_path, policy_kwargs={"net_arch": [8]})["net_arch"] == "[8]"
    assert "net_arch" not in facts(tmp_path, policy_kwargs={})


def test_a_model_in_training_tells_the_same():
    class Unit:
        value = "step"

    class Often:
        frequency, unit = 64, Unit

    class Model:
        train_freq, policy_kwargs = Often, {"net_arch": [8]}

    assert logger.sb3_structure(Model) == {"train_freq": 64, "net_arch": "[8]"}
