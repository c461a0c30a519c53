"""Are event files read as they were written, and what becomes of broken ones?"""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import protobuf as pb
from relab.formats.read import tfevents, tfrecords

FIXTURES = Path(__file__).parent / "fixtures" / "tensorboard"


def write(folder: Path, points: int = 50, tags: tuple[str, ...] = ("a/return", "loss")) -> Path:
    with tfevents.Writer(folder, wall=1.7e9) as writer:
        for step in range(points):
            for tag in tags:
                writer.scalar(tag, 0.5 * step, 1000 * step, wall=1.7e9 + step)
    return writer.path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    events = tfevents.read(write(tmp_path))
    assert events.version == "brain.Event:2"
    assert list(events.scalars) == ["a/return", "loss"]
    assert list(events.scalars["loss"].steps) == [1000 * k for k in range(50)]
    assert list(events.scalars["loss"].values) == [0.5 * k for k in range(50)]
    assert events.scalars["loss"].walls[3] == 1.7e9 + 3
    assert events.notes == []
    assert events.end == events.path.stat().st_size


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 1e-40])
def test_strange_numbers_survive(tmp_path: Path, value: float) -> None:
    with tfevents.Writer(tmp_path) as writer:
        writer.scalar("x", value, 1)
    assert np.array_equal(tfevents.read(writer.path).scalars["x"].values, [np.float32(value)], equal_nan=True)


@pytest.mark.parametrize("step", [0, 1, 127, 128, 2**31, 2**53, 2**62, -5])
@pytest.mark.parametrize("tag", ["t", "τ/größe", "x" * 100, "y" * 300, ""])
def test_any_step_and_tag(tmp_path: Path, step: int, tag: str) -> None:
    """Short and long lengths take different ways through the reader; both must give the same."""
    with tfevents.Writer(tmp_path) as writer:
        writer.scalar(tag, 1.25, step)
    events = tfevents.read(writer.path)
    assert events.notes == []
    assert {name: (list(s.steps), list(s.values)) for name, s in events.scalars.items()} == {tag: ([step], [1.25])}


def test_points_keep_their_order_whichever_way_they_are_read(tmp_path: Path) -> None:
    """Steps of one, two and three bytes, tags of all lengths and events of two values, in one block."""
    tags = ["a", "bb", "loss/value", "x" * 110]
    with tfevents.Writer(tmp_path, wall=0.0) as writer:
        for step in range(0, 40_000, 400):
            for n, tag in enumerate(tags):
                writer.scalar(tag, step + n, step, wall=step)
            pair = b"".join(pb.put_bytes(1, b"\x0a\x01a\x15" + tfevents.TAIL.pack(step + k)) for k in (5, 6))
            writer._event(pair, step + 1, wall=step)
    events = tfevents.read(writer.path)
    assert list(events.scalars) == tags
    assert list(events.scalars["loss/value"].values) == [step + 2 for step in range(0, 40_000, 400)]
    assert list(events.scalars["a"].values)[:6] == [0, 5, 6, 400, 405, 406]
    assert list(events.scalars["a"].steps)[:6] == [0, 1, 1, 400, 401, 401]
    assert list(events.scalars["x" * 110].walls) == list(range(0, 40_000, 400))


def test_nearly_all_points_are_read_by_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, eight million points took minutes."""
    single, path = [], write(tmp_path, 2000)
    monkeypatch.setattr(tfevents, "_event", lambda data, events: single.append(data))
    assert len(tfevents.read(path).scalars["loss"].steps) > 1990
    assert len(single) < 20


def test_text_is_kept_with_its_tag(tmp_path: Path) -> None:
    with tfevents.Writer(tmp_path) as writer:
        writer.text("note", "Grüße\n<b>", 3)
    assert tfevents.read(writer.path).others == [tfevents.Other("note", 3, "text", "Grüße\n<b>".encode())]


def test_reading_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = write(tmp_path, 10)
    first = tfevents.read(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: first.end - 10])  # as a live file looks in the middle of a write
    torn = tfevents.read(path)
    assert torn.end < first.end
    assert "truncated at byte" in torn.notes[0]
    path.write_bytes(whole)
    assert sum(len(s.steps) for s in tfevents.read(path, torn.end).scalars.values()) == 1


def test_crcs_of_many_rows_are_those_of_one() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (7, 33), dtype=np.uint8)
    assert tfrecords.masked_crcs(rows).tolist() == [tfrecords.masked_crc(row.tobytes()) for row in rows]


def test_a_changed_value_is_left_out_and_said(tmp_path: Path) -> None:
    path = write(tmp_path)
    data = bytearray(path.read_bytes())
    data[-6] ^= 1  # the last float
    path.write_bytes(data)
    events = tfevents.read(path)
    assert len(events.scalars["loss"].steps) == 49
    assert len(events.notes) == 1
    assert "wrong checksum" in events.notes[0]


def test_behind_a_broken_length_the_rest_is_found(tmp_path: Path) -> None:
    path = write(tmp_path)
    data = bytearray(path.read_bytes())
    middle = data.index(b"loss", len(data) // 2)
    start = data.rindex(b"\0\0\0\0", 0, middle) - 4
    data[start] ^= 0x40
    path.write_bytes(data)
    events = tfevents.read(path)
    assert sum(len(s.steps) for s in events.scalars.values()) == 99
    assert events.notes == [f"no record at byte {start}: {_record_size(data, start)} bytes were skipped"]


def test_zeros_between_records_are_skipped(tmp_path: Path) -> None:
    """As a disk leaves them after a crash; looking at each of them would take minutes."""
    path = write(tmp_path)
    data, middle = path.read_bytes(), tfevents.read(path).end
    path.write_bytes(data[:middle] + bytes(12_000_000) + data)
    events = tfevents.read(path)
    assert len(events.scalars["loss"].steps) == 100
    assert len(events.notes) <= 6
    assert "bytes were skipped" in events.notes[0]


def _record_size(data: bytes, start: int) -> int:
    return (data[start] ^ 0x40) + 16


def test_records_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, 200)
    expected = tfevents.read(path)
    for block in (1, 13, 64, 1000):
        monkeypatch.setattr(tfrecords, "BLOCK", block)
        events = tfevents.read(path)
        assert events.scalars["loss"].values == expected.scalars["loss"].values
        assert events.notes == []


def test_ends_are_those_of_the_whole_file(tmp_path: Path) -> None:
    assert tfevents.ends(write(tmp_path, 500)) == tfevents.Ends(
        0, 499_000, 1000, frozenset({"a/return", "loss"}), 1.7e9, 1.7e9 + 499
    )
    with tfevents.Writer(tmp_path / "empty") as writer:
        pass
    assert tfevents.ends(writer.path) is None


@pytest.mark.parametrize("name", ["tensors", "with_hparams", "cleanrl"])
def test_torn_or_flipped_files_never_raise(tmp_path: Path, name: str) -> None:
    """Truncations and flipped bytes at seeded places: something is always read, and what is not is said."""
    chance = random.Random(name)
    sample = max((FIXTURES / name).rglob("*tfevents*"), key=lambda p: p.stat().st_size)
    whole, path = sample.read_bytes(), tmp_path / "events.out.tfevents.1.h"
    good = tfevents.read(sample)
    for case in range(120):
        data = bytearray(whole[: chance.randrange(len(whole))] if case % 2 else whole)
        for _ in range(chance.randrange(4)) if data else ():
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        events = tfevents.read(path)
        if bytes(data) != whole and len(data) > 0:
            fewer = _count(events) <= _count(good)
            assert fewer
            assert events.notes or events.end == len(data)


def _count(events: tfevents.Events) -> int:
    return sum(len(s.steps) for s in events.scalars.values()) + len(events.others)


def test_noise_is_no_event_file(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.h"
    path.write_bytes(random.Random(1).randbytes(20_000))
    events = tfevents.read(path)
    assert not events.scalars
    assert 0 < len(events.notes) <= tfrecords.MAX_NOTES + 1


def test_malformed_messages_are_named() -> None:
    for data in (b"\x0a\x05ab", b"\x08", b"\x08" + b"\xff" * 11, b"\x0b", b"\x0d\x01"):
        with pytest.raises(pb.MalformedError):
            list(pb.fields(data))
