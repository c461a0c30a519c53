"""Do the commands that read runs end well, whatever numbers the settings and facts of a run hold?"""

from __future__ import annotations

import json
import math
import shutil
from typing import Any

import pytest
from test_bounds import ABSURD, changed

from relab import cli
from relab.config.yaml_io import format_yaml
from relab.record.history import load
from where import histories

HEALTHY = histories() / "healthy"
RUNS = ("a2c-acrobot", "cartpole")
WORDS = (["examine", "{0}"], ["examine", "{0}", "--json"], ["compare", "{0}"], ["report", "{0}", "--out", "{1}/x.html"],
         ["note", "{0}/cartpole"], ["runs", "{0}"], ["diff", "{0}/cartpole", "{0}/a2c-acrobot"], ["next", "{0}"],
         ["convert", "{0}/cartpole", "--to", "csv", "--out", "{1}/csv"])  # fmt: skip


def plain(value: Any) -> Any:
    """As a record writes it: JSON has no words for NaN and the infinities."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


@pytest.mark.parametrize("value", [*ABSURD, 10**30], ids=lambda v: f"{v!r:.12}")
@pytest.mark.some(3)
def test_every_reading_command_ends_well(value, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in RUNS:
        run = shutil.copytree(HEALTHY / name, tmp_path / "runs" / name)
        history = changed(load(run), value)
        (run / "meta.json").write_text(json.dumps(plain(history.meta)))
        (run / "config.yaml").write_text(format_yaml(history.config))
    for words in WORDS:
        code = cli.main([word.format(tmp_path / "runs", tmp_path) for word in words])
        out, err = capsys.readouterr()
        assert code in (0, 1), f"{words}: {err}"
        assert "the rule failed" not in out
