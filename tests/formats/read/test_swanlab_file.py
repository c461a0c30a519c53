"""Are .swanlab files read without swanlab, and what becomes of torn ones?"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from mutations import framed

from relab.formats.read import find, wandb_file
from relab.record.history import History
from relab.record.state import group_key

FIXTURES = Path(__file__).parent / "fixtures" / "swanlab"


def runs(folder: Path = FIXTURES) -> dict[str, History]:
    loaded = find.load_all(folder)
    assert loaded.broken == []
    return {run.history.meta.get("name", run.name): run.history for run in loaded.runs}


@pytest.fixture
def folder(tmp_path) -> Path:
    return shutil.copytree(FIXTURES, tmp_path / "swanlog")


def log(folder: Path) -> Path:
    return max(folder.rglob("*.swanlab"), key=lambda path: path.stat().st_size)


def test_rows_over_several_blocks_with_zeros_and_what_is_not_finite():
    run = runs()["ppo-0"]
    assert log(FIXTURES).stat().st_size > wandb_file.BLOCK
    steps, values = run.column("return/mean")
    assert steps.tolist() == [128 * i for i in range(300)]
    assert values.tolist() == [math.inf if i == 4 else float(i) for i in range(300)]
    assert np.isnan(run.column("policy/kl").values).nonzero()[0].tolist() == [3]
    assert run.problems == []


def test_settings_states_and_groups():
    by_name = runs()
    run = by_name["ppo-0"]
    assert run.config["algo"] == {"lr": 3e-4, "clip": 0.2}
    assert run.config["foreign"] == {"net.hidden": [64, 64]}
    assert (run.meta["seed"], run.meta["status"], run.meta["swanlab"]["project"]) == (0, "finished", "relab")
    assert by_name["ppo-1"].meta["status"] == "failed"
    assert len({group_key(each, name) for name, each in by_name.items()}) == 1


def test_a_torn_log_keeps_what_is_whole(folder):
    path = log(folder)
    path.write_bytes(path.read_bytes()[:40_000])
    run = runs(folder)["ppo-0"]
    assert 100 < len(run.column("return/mean").steps) < 300
    assert any("truncated at byte" in p.message for p in run.problems)


def test_a_changed_byte_costs_its_block_and_is_named(folder):
    path = log(folder)
    data = bytearray(path.read_bytes())
    data[40_000] ^= 1
    path.write_bytes(data)
    run = runs(folder)["ppo-0"]
    assert any("wrong checksum" in p.message for p in run.problems)
    assert run.column("return/mean").steps[-1] == 128 * 299


def test_a_log_that_is_none_is_named(folder):
    log(folder).write_bytes(b"<html>")
    passed = []
    assert len(list(find.find(folder, passed))) == 1
    assert "byte 0 on is b'<htm'" in passed[0].why


def test_settings_that_lead_out_are_not_read(folder, tmp_path):
    secret = tmp_path / "secret.yaml"
    secret.write_text("lr:\n  value: 1\n")
    for path in folder.rglob("config.yaml"):
        path.unlink()
        path.symlink_to(secret)
    run = runs(folder)["ppo-0"]
    assert "algo" not in run.config
    assert any("must lie inside" in p.message for p in run.problems)


# ---- Files of version 1: SwanLab 0.6 and 0.7


def old_record(kind: str, **data) -> bytes:
    return json.dumps({"model_type": kind, "data": data}).encode()


def old_log(folder: Path, *more: bytes) -> Path:
    """As the backup of a run was written: a header, what it belongs to, scalars, a footer."""
    folder.mkdir(parents=True)
    records = [old_record("Header", create_time="2025-07-01T00:00:00", backup_type="DEFAULT", version="0.6.5"),
               old_record("Project", name="relab", workspace="me", public=False),
               old_record("Experiment", name="ppo-7", description="old", tags=[])]  # fmt: skip
    for i in range(40):
        metric = {"index": str(i), "data": "NaN" if i == 3 else i / 2, "create_time": "2025-07-01T00:00:01"}
        records.append(old_record("Scalar", metric=metric, key="train/ep_rew_mean", step=128 * i, epoch=i + 1))
    path = folder / "backup.swanlab"
    path.write_bytes(framed(wandb_file.HEADER.pack(b":SWL", 0xE1D6, 1), [*records, *more]))
    return path


def test_the_json_records_of_older_files(tmp_path):
    old_log(tmp_path / "run-20250701_000000-abc", old_record("Footer", create_time="2025-07-01", success=True))
    (tmp_path / "run-20250701_000000-abc" / "files").mkdir()
    settings = "lr:\n  desc: ''\n  sort: 0\n  value: 0.001\n"
    (tmp_path / "run-20250701_000000-abc" / "files" / "config.yaml").write_text(settings)
    run = runs(tmp_path)["ppo-7"]
    steps, values = run.column("return/mean_100")
    assert steps.tolist() == [128 * i for i in range(40)]
    assert np.isnan(values).nonzero()[0].tolist() == [3]
    assert (run.meta["status"], run.meta["swanlab"]["project"]) == ("finished", "relab")
    assert run.config["algo"] == {"lr": 0.001}
    assert run.problems == []


def test_an_older_file_without_its_end_or_with_odd_records(tmp_path):
    scalar = {"key": "x", "step": 1}
    odd = [b'{"model_type": "Scalar"}', b"{", old_record("Scalar", metric={"data": 10**400}, **scalar)]
    odd += [old_record("Scalar", metric=3, **scalar), old_record("Scalar", metric={"data": "x"}, **scalar)]
    old_log(tmp_path / "run-1", *odd)
    run = runs(tmp_path)["ppo-7"]
    assert len(run.column("return/mean_100").steps) == 40
    assert run.meta["status"] == "running"
    assert len(run.problems) == 3, "10**400 is infinite, and costs no row"
