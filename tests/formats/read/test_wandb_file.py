"""Are .wandb files read without wandb, and what becomes of torn ones?"""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest

from bounds import bounded
from relab.formats.read import find, table, wandb_file
from relab.formats.read import protobuf as pb
from relab.record.history import History

FIXTURES = Path(__file__).parent / "fixtures" / "wandb"


def runs(folder: Path = FIXTURES) -> list[History]:
    loaded = find.load_all(folder)
    assert loaded.broken == []
    return [run.history for run in loaded.runs]


def sample(number: int) -> Path:
    return next(FIXTURES.rglob(f"run-fixture{number}.wandb"))


def test_rows_over_several_blocks() -> None:
    """300 rows take more than one block of 32 KiB, so that records are cut in two."""
    run = runs()[0]
    assert sample(0).stat().st_size > wandb_file.BLOCK
    steps, values = run.column("return/mean")
    assert steps.tolist() == [128 * i for i in range(300)]
    expected = 10.0 + np.arange(300)
    expected[4] = math.inf
    assert values.tolist() == expected.tolist()
    assert run.problems == []


def test_every_cut_is_told(tmp_path) -> None:
    """Also one inside of a chunk's header, which leaves too few bytes to be taken for anything."""
    data = sample(1).read_bytes()
    edges = [at for at, _, _ in wandb_file._chunks(data, [])]
    for cut in range(len(data) - 40, len(data)):
        (tmp_path / "run-x.wandb").write_bytes(data[:cut])
        is_noted = any("truncated at byte" in note for note in wandb_file.read_file(tmp_path / "run-x.wandb").notes)
        assert is_noted != (cut in edges), cut


def test_nested_keys_and_nan() -> None:
    run = runs()[1]
    assert run.mapping["losses/approx_kl"] == "policy/kl"
    assert np.isnan(run.column("policy/kl").values).tolist() == [False, False, False, True, False]
    assert run.column("policy/entropy").values.tolist() == [0.69] * 5


def test_config_facts_and_summary() -> None:
    run = runs()[1]
    assert run.config["algo"] == {"lr": 3e-4, "clip": 0.2}
    assert run.config["foreign"] == {"net.hidden": [64, 64], "added_later": 7}
    assert (run.meta["seed"], run.meta["name"], run.meta["status"]) == (1, "ppo-1", "finished")
    assert run.meta["wandb"]["project"] == "relab"
    assert run.meta["summary"]["best/return"] == 309.0


def test_seeds_are_one_group() -> None:
    from relab.record.state import group_key

    assert len({group_key(run, "") for run in runs()}) == 1


def test_a_torn_file_keeps_its_rows(tmp_path: Path) -> None:
    (tmp_path / "run-x.wandb").write_bytes(sample(0).read_bytes()[:50_000])
    (run,) = runs(tmp_path)
    assert 100 < len(run.column("return/mean").steps) < 300
    assert any("truncated at byte" in p.message or "no end" in p.message for p in run.problems)
    assert "status" not in run.meta


def test_a_wrong_checksum_costs_one_block(tmp_path: Path) -> None:
    data = bytearray(sample(0).read_bytes())
    data[40_000] ^= 1
    (tmp_path / "run-x.wandb").write_bytes(data)
    (run,) = runs(tmp_path)
    assert any("wrong checksum" in p.message for p in run.problems)
    assert run.column("return/mean").values[-1] == 309.0 or len(data) < 2 * wandb_file.BLOCK


@pytest.mark.parametrize("seed", range(2))
def test_torn_or_flipped_files_never_raise(tmp_path: Path, seed: int) -> None:
    chance, whole = random.Random(seed), sample(1).read_bytes()
    path = tmp_path / "run-x.wandb"
    for case in range(150):
        data = bytearray(whole[: chance.randrange(7, len(whole))] if case % 2 else whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        log = wandb_file.read_file(path)
        assert len(log.rows) <= 5
        assert log.notes or log.rows


def test_what_only_looks_like_one(tmp_path: Path) -> None:
    (tmp_path / "run-x.wandb").write_bytes(b":W&B" + random.Random(1).randbytes(300))
    (run,) = runs(tmp_path)
    assert "does not begin" in run.problems[0].message


@pytest.mark.slow
def test_the_rows_of_a_long_run_are_looked_at_once(tmp_path, monkeypatch):
    """A column that is set aside again for every cell makes the time grow with the square of the rows."""
    from mutations import _frame

    monkeypatch.setattr(table, "PACK", 1000)
    out = bytearray(wandb_file.HEADER.pack(b":W&B", 0xBEE1, 0))
    for i in range(30_000):
        items = ((b"_step", b"%d" % i), (b"loss", b"0.5"), (b"late" if i > 9_000 else b"early", b"1"))
        _frame(
            out, pb.put_bytes(2, b"".join(pb.put_bytes(1, pb.put_bytes(1, k) + pb.put_bytes(16, v)) for k, v in items))
        )
    (tmp_path / "run-x.wandb").write_bytes(bytes(out))
    with bounded(seconds=8, memory=200_000_000):
        (run,) = find.load_all(tmp_path).runs
    assert {n: len(c.steps) for n, c in run.history.columns.items()} == {
        "foreign/loss": 30_000, "foreign/early": 9_001, "foreign/late": 20_999}  # fmt: skip
    assert run.history.columns["foreign/late"].steps[0] == 9_001
