"""Does a replay give back what was put in, at ends too, and is it the same from its files?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relab.config.base import ConfigError
from relab.train import replay as stored
from relab.train.algos.gathering import transition_fields
from relab.train.replay import Data, DataError, Replay, Rows

FIELDS: Any = {"obs": ((2,), np.float32), "reward": ((), np.float32), "terminated": ((), bool),
               "truncated": ((), bool), "alive": ((), bool), "next_obs": ((2,), np.float32)}  # fmt: skip


def filled(replay: Replay, slots: int, ends: dict[tuple[int, int], str] | None = None) -> Replay:
    """Slot t, column b observes (t, b) and is rewarded t; `ends` terminate or truncate."""
    for t in range(slots):
        b = np.arange(replay.columns)
        obs = np.stack([np.full(replay.columns, t), b], 1).astype(np.float32)
        flags = {kind: np.array([(ends or {}).get((t, c)) == kind for c in b]) for kind in ("terminated", "truncated")}
        replay.add(obs=obs, reward=np.full(replay.columns, float(t)), alive=np.ones(replay.columns, bool),
                   next_obs=obs + np.array([1, 0]), **flags)  # fmt: skip
    return replay


def test_the_ring_keeps_the_last_slots() -> None:
    replay = filled(Replay(FIELDS, 10, 2), 8)
    assert (replay.slots, len(replay), replay.oldest) == (5, 10, 3)
    rows = replay.uniform(np.random.default_rng(0), 1000)
    assert set(rows.slot) == {3, 4, 5, 6, 7}
    assert (replay.gather(rows, "obs")[:, 0] == rows.slot).all()
    assert (replay.gather(rows, "obs")[:, 1] == rows.column).all()


def test_draws_are_even_and_leave_the_dead_out() -> None:
    replay = filled(Replay(FIELDS, 8, 2), 4)
    replay.ring["alive"][1, 0] = False
    rows = replay.uniform(np.random.default_rng(1), 70_000)
    counts = np.zeros((4, 2))
    np.add.at(counts, (rows.slot, rows.column), 1)
    assert counts[1, 0] == 0
    assert np.abs(counts[counts > 0] / 10_000 - 1).max() < 0.05


def test_n_step_by_hand() -> None:
    """Rewards 0, 1, 2 ...: three steps from slot 1 are 1 + .5 * 2 + .25 * 3; ends cut them short."""
    replay = filled(Replay(FIELDS, 100, 3), 10, {(2, 1): "terminated", (2, 2): "truncated"})
    rows = Rows(np.array([1, 1, 1]), np.array([0, 1, 2]))
    total, discount, last = replay.n_step(rows, 3, 0.5)
    assert total.tolist() == [1 + 1 + 0.75, 2.0, 2.0]
    assert discount.tolist() == [0.125, 0.0, 0.25]  # behind a termination nothing counts, behind a cut the successor
    assert last.slot.tolist() == [3, 2, 2]
    assert replay.gather(last, "next_obs")[:, 0].tolist() == [4, 3, 3]


def test_sequences_are_neighbours() -> None:
    replay = filled(Replay(FIELDS, 12, 2), 20)
    rows = replay.sequences(np.random.default_rng(0), 200, 4)
    assert rows.slot.shape == (200, 4)
    assert (np.diff(rows.slot, axis=1) == 1).all()
    assert (rows.slot.min(), rows.slot.max()) == (14, 19)
    assert (replay.gather(rows, "obs")[..., 0] == rows.slot).all()


def test_bad_sizes_are_said_with_their_numbers() -> None:
    with pytest.raises(ConfigError, match="capacity is 3 rows"):
        Replay(FIELDS, 3, 4)
    with pytest.raises(ConfigError, match="5 slots are needed to draw from, but the replay holds 2"):
        filled(Replay(FIELDS, 20, 2), 2).uniform(np.random.default_rng(0), 1, ahead=4)


def store(tmp_path: Path, capacity: int = 12) -> tuple[Data, Replay]:
    data = Data(tmp_path)
    return data, data.replay("replay", FIELDS, capacity, 2)


@pytest.mark.parametrize("more", [0, 1, 5, 6, 7, 30])
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_files_give_back_the_ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, more: int) -> None:
    """Slots in files of one, of some, or all in one; between two saves more than the ring holds."""
    monkeypatch.setattr(stored, "SEGMENT_BYTES", size)
    data, replay = store(tmp_path)
    filled(replay, 4)
    data.lengths()
    filled(replay, more)
    lengths = data.lengths()
    again, copy = store(tmp_path)
    again.restore(lengths)
    assert copy.count == replay.count == 4 + more
    assert copy.ring.tobytes() == replay.ring.tobytes()


def test_a_killed_run_is_cut_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SEGMENT_BYTES", 100)
    data, replay = store(tmp_path)
    filled(replay, 5)
    lengths = data.lengths()
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.rows"))}
    filled(replay, 9)
    data.lengths()
    again, _ = store(tmp_path)
    again.restore(lengths)
    again.cut()
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.rows"))} == before


def test_old_files_are_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SEGMENT_BYTES", 1)
    data, replay = store(tmp_path)
    kept = []
    for _ in range(10):
        filled(replay, 5)
        kept.append(data.lengths())
        data.forget(kept[-2:])
    names = sorted(int(path.stem) for path in tmp_path.rglob("*.rows"))
    assert names == list(range(45 - 6, 50)), "what the older of two checkpoints needs, and no more"


def test_others_can_read_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SEGMENT_BYTES", 100)
    data, replay = store(tmp_path, 100)
    filled(replay, 7)
    data.lengths()
    found = stored.read(tmp_path / "data" / "replay")
    assert found["obs"].shape == (7, 2, 2)
    assert found["reward"][:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_lost_rows_are_told(tmp_path: Path) -> None:
    data, replay = store(tmp_path)
    filled(replay, 5)
    lengths = data.lengths()
    (path,) = tmp_path.rglob("*.rows")
    path.write_bytes(path.read_bytes()[:50])
    again, _ = store(tmp_path)
    with pytest.raises(DataError, match=r"data/replay/00000000.rows has 50 of \d+ bytes"):
        again.restore(lengths)
    with pytest.raises(ValueError, match=r"its data are \['other'\], but this algorithm keeps \['replay'\]"):
        again.restore({"other": 3})


@pytest.mark.parametrize("slots", [3, 5, 12, 23])
def test_one_changed_bit_is_told_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    monkeypatch.setattr(stored, "SEGMENT_BYTES", 200)
    data, replay = store(tmp_path)
    for _ in range(slots):  # each checkpoint adds to the sums of the last segment
        filled(replay, 1)
        lengths, sums = data.lengths(), data.sums()
    store(tmp_path)[0].restore(lengths, sums)
    path = max(tmp_path.rglob("*.rows"))
    content = bytearray(path.read_bytes())
    content[3] ^= 64
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"data/replay/{path.name} was changed after the run wrote it"):
        store(tmp_path)[0].restore(lengths, sums)


def test_sums_go_on_after_a_resume(tmp_path: Path) -> None:
    data, replay = store(tmp_path)
    filled(replay, 4)
    lengths, sums = data.lengths(), data.sums()
    again, other = store(tmp_path)
    again.restore(lengths, sums)
    filled(other, 3)
    filled(replay, 3)
    assert (again.lengths(), again.sums()) == (data.lengths(), data.sums())


@pytest.mark.parametrize("what", ["missing", "a folder"])
def test_a_file_that_is_none_is_told_with_its_name(tmp_path: Path, what: str) -> None:
    data, replay = store(tmp_path)
    filled(replay, 5)
    lengths = data.lengths()
    (path,) = tmp_path.rglob("*.rows")
    path.unlink()
    if what == "a folder":
        path.mkdir()
    with pytest.raises(DataError, match=r"data/replay/00000000.rows cannot be read: (No such file|Is a directory)"):
        store(tmp_path)[0].restore(lengths)


@pytest.mark.parametrize("content", [b"{}", b"no JSON", b"[1, 2"])
def test_a_description_of_other_rows_is_told(tmp_path: Path, content: bytes) -> None:
    data, replay = store(tmp_path)
    filled(replay, 5)
    lengths = data.lengths()
    (tmp_path / "data" / "replay" / "fields.json").write_bytes(content)
    with pytest.raises(DataError, match=r"data/replay/fields.json (does not describe the rows|cannot be read)"):
        store(tmp_path)[0].restore(lengths)


def test_segments_of_another_size_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows would be looked for at the wrong places."""
    data, replay = store(tmp_path)
    filled(replay, 5)
    lengths = data.lengths()
    monkeypatch.setattr(stored, "SEGMENT_BYTES", 200)
    with pytest.raises(DataError, match="does not describe the rows of this run"):
        store(tmp_path)[0].restore(lengths)


def test_a_lost_description_is_written_again(tmp_path: Path) -> None:
    data, replay = store(tmp_path)
    filled(replay, 5)
    lengths, path = data.lengths(), tmp_path / "data" / "replay" / "fields.json"
    before = path.read_bytes()
    path.unlink()
    store(tmp_path)[0].restore(lengths)
    assert path.read_bytes() == before


def test_a_replay_beyond_memory_is_refused_with_its_size() -> None:
    with pytest.raises(
        ConfigError, match=r"1,125,899,906,842,624 transitions takes 2[0-9,.]+ GB .* set `replay` lower"
    ):
        Replay(FIELDS, 1 << 50, 2)


@pytest.mark.parametrize(("obs", "action", "megabytes"),
                         [(4, np.zeros((1,), np.int64), 47), (17, np.zeros((1, 6), np.float32), 167)])  # fmt: skip
def test_memory_of_a_million_transitions(obs: int, action: np.ndarray, megabytes: int) -> None:
    """As the pages of DQN and SAC say: two observations, the action, a reward, three flags."""
    ring = Replay(transition_fields(obs, action), 1_000_000, 1).ring
    assert ring.nbytes == megabytes * 1_000_000
    assert ring.nbytes == 1_000_000 * (2 * 4 * obs + action[0].nbytes + 4 + 3)
