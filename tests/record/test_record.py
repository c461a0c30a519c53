"""Is a run folder readable after anything, and does it hold exactly what was appended?"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys

import numpy as np
import orjson
import pytest

from bounds import bounded
from relab.base import jsonl, limits
from relab.base.jsonl import RecordError, inside, last_line, read_jsonl, write_atomic
from relab.record import glossary
from relab.record.run_folder import (
    DETERMINISTIC,
    FILES,
    SCHEMA,
    Record,
    is_locked,
    read_config,
    read_meta,
    read_provenance,
)

CONFIG = {"algo": {"name": "ppo", "lr": 3e-4, "clip": math.inf}, "env": {"name": "cartpole-v1"}, "seed": 0}
EPISODE = {"seed": 2**63 + 5, "return": 12.0, "length": 12, "success": None, "end": "fell"}


@pytest.fixture
def record(tmp_path):
    with Record.create(tmp_path / "run", CONFIG, {"seed": "defaults"}, {"seed": 0, "intent": "test"}) as opened:
        yield opened


def rows_of(record, name="metrics.jsonl"):
    rows, problems = read_jsonl(record.folder / name)
    assert problems == []
    return rows


# ---- A new folder


def test_a_new_run_has_every_file(record):
    assert sorted(p.name for p in record.folder.iterdir()) == sorted(
        [*FILES, "config.yaml", "meta.json", "provenance.json"]
    )
    meta = read_meta(record.folder)
    assert meta["schema"] == SCHEMA
    assert (meta["name"], meta["status"], meta["seed"], meta["intent"]) == ("run", "running", 0, "test")
    assert len(meta["id"]) == 12
    assert len(meta["config_hash"]) == 12
    assert meta["created"].endswith("Z")
    assert read_config(record.folder) == CONFIG
    assert read_provenance(record.folder) == {"seed": "defaults"}


def test_a_used_folder_is_not_overwritten(record):
    with pytest.raises(RecordError, match=r"empty folder, but .* holds config\.yaml"):
        Record.create(record.folder, CONFIG, {}, {})


def test_only_one_process_writes(record):
    with pytest.raises(RecordError, match="being written by another process"):
        Record.open(record.folder)
    record.close()
    Record.open(record.folder).close()


def test_a_newer_schema_is_not_touched(record):
    record.update_meta(schema=SCHEMA + 1)
    record.close()
    with pytest.raises(RecordError, match=f"schema {SCHEMA + 1}.*newer relab"):
        Record.open(record.folder)


def test_a_folder_that_is_no_run_says_so(tmp_path):
    with pytest.raises(RecordError, match=r"meta\.json is missing"):
        Record.open(tmp_path)
    (tmp_path / "meta.json").write_text("[1]")
    with pytest.raises(RecordError, match="JSON object"):
        read_meta(tmp_path)
    (tmp_path / "meta.json").write_text("{")
    with pytest.raises(RecordError, match=r"meta\.json must hold JSON"):
        read_meta(tmp_path)


# ---- Rows


def test_rows_come_back_as_they_went_in(record):
    record.append_metrics(64, {"return/mean": 1.5, "data/episodes": np.int64(3), "env/fed": np.float32(0.1)})
    record.append_metrics(np.int64(128), {"return/mean": None, "return/success": np.bool_(True)}, axis="env_steps")
    assert rows_of(record) == [
        {"step": 64, "axis": "agent_steps", "return/mean": 1.5, "data/episodes": 3, "env/fed": float(np.float32(0.1))},
        {"step": 128, "axis": "env_steps", "return/mean": None, "return/success": True},
    ]


def test_nan_and_infinities_survive(record):
    record.append_metrics(
        1, {"return/mean": math.nan, "return/max": math.inf, "return/min": -math.inf, "return/std": 5e-324}
    )
    record.append_metrics(2, {"return/mean": np.float32("nan"), "return/max": np.float64("inf")})
    record.append_eval({"step": 1, "mode": "det", "noise": 0.0, "episodes": [{**EPISODE, "return": math.inf}]})
    raw = (record.folder / "metrics.jsonl").read_text()
    assert '"return/mean":"NaN","return/max":"Infinity","return/min":"-Infinity"' in raw
    first, second = rows_of(record)
    assert math.isnan(first["return/mean"])
    assert (first["return/max"], first["return/min"], first["return/std"]) == (math.inf, -math.inf, 5e-324)
    assert math.isnan(second["return/mean"])
    assert rows_of(record, "evals.jsonl")[0]["episodes"][0]["return"] == math.inf


def test_the_other_files(record):
    record.append_eval({"step": 5, "mode": "sampled", "noise": 1.0, "episodes": [EPISODE]})
    record.append_probe({"step": 5, "probe": "value_vs_rerun", "value": 1.0, "noise": 0.1, "n": 32, "unit": "return"})
    record.append_timing(5, {"time/sps": 1e5})
    record.append_event("start", 0, reason="test", shape=(1, 2))
    assert rows_of(record, "evals.jsonl") == [
        {"step": 5, "axis": "agent_steps", "mode": "sampled", "noise": 1.0, "episodes": [EPISODE]}
    ]
    assert rows_of(record, "probes.jsonl")[0]["n"] == 32
    assert rows_of(record, "timing.jsonl") == [{"step": 5, "axis": "agent_steps", "time/sps": 1e5}]
    (event,) = rows_of(record, "events.jsonl")
    assert (event["kind"], event["step"], event["reason"], event["shape"]) == ("start", 0, "test", [1, 2])


def test_each_row_is_one_write(record, monkeypatch):
    calls = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: calls.append(data) or write(fd, data))
    record.append_metrics(1, {"return/mean": 1.0})
    assert calls == [b'{"step":1,"axis":"agent_steps","return/mean":1.0}\n']
    assert (record.folder / "metrics.jsonl").read_bytes() == calls[0], "on disk for every reader, without a flush"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.append_metrics(1, {"return/maen": 1.0}), "`return/maen` is not in the glossary.*`return/mean`"),
        (lambda r: r.append_metrics(1, {"env/": 1.0}), "not in the glossary"),
        (lambda r: r.append_metrics(1, {"time/sps": 1.0}), "belongs to append_timing"),
        (lambda r: r.append_timing(1, {"return/mean": 1.0}), "belongs to append_metrics"),
        (lambda r: r.append_metrics(1.5, {}), r"step >= 0 .*1\.5"),
        (lambda r: r.append_metrics(-1, {}), "step >= 0"),
        (lambda r: r.append_metrics(True, {}), "step >= 0"),
        (lambda r: r.append_metrics(1, {}, axis="days"), "'days'"),
        (lambda r: r.append_metrics(1, {"return/mean": object()}), "object"),
        (lambda r: r.append_metrics(1, {"return/mean": 2**70}), "fit into JSON"),
        (lambda r: r.append_eval({"step": 1, "mode": "greedy", "episodes": []}), "mode det or sampled"),
        (lambda r: r.append_eval({"step": 1, "mode": "det", "episodes": [{"seed": 1}]}), r"needs \['end'"),
        (lambda r: r.append_probe({"step": 1, "value": 1.0}), "a probe needs"),
        (lambda r: r.append_event("explosion", 1), r"`explosion` is not in glossary\.EVENTS"),
        (lambda r: r.update_meta(status="done"), "running, finished, interrupted, failed, but got 'done'"),
    ],
)  # fmt: skip
def test_what_does_not_belong_is_refused_and_leaves_no_trace(record, call, message):
    before = {p.name: p.read_bytes() for p in record.folder.iterdir()}
    with pytest.raises(RecordError, match=message):
        call(record)
    assert {p.name: p.read_bytes() for p in record.folder.iterdir()} == before


def test_strange_text_never_fails_a_row(record):
    record.append_event("warning", 0, message="half a pair: \udc80, é, \x00", text={"a": "\ud83d"})
    assert rows_of(record, "events.jsonl")[0]["message"] == "half a pair: ?, é, \x00"


def test_a_full_disk_leaves_whole_rows(record, monkeypatch):
    record.append_metrics(1, {"return/mean": 1.0})
    write, room = os.write, [7]
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: room.pop() if room else 0]))
    with pytest.raises(RecordError, match=r"metrics.jsonl could not be written: the disk is full"):
        record.append_metrics(2, {"return/mean": 2.0})
    monkeypatch.undo()
    record.append_metrics(3, {"return/mean": 3.0})
    assert [row["step"] for row in rows_of(record)] == [1, 3]


def test_a_row_in_two_parts_is_one_row(record, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    record.append_metrics(2, {"return/mean": 2.0})
    assert [row["step"] for row in rows_of(record)] == [2]


# ---- Broken files


def three_rows(folder):
    with Record.create(folder, CONFIG, {}, {}) as record:
        for step in (1, 2, 3):
            record.append_metrics(step, {"return/mean": step / 3, "env/x": math.nan})
    return (folder / "metrics.jsonl").read_bytes()


def test_a_tail_cut_at_every_byte(tmp_path):
    """Whatever part of the last row is lost: the others are read, the loss is said, appending goes on cleanly."""
    whole = three_rows(tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    last = whole[:-1].rfind(b"\n") + 1
    for size in range(last, len(whole)):
        path.write_bytes(whole[:size])
        (tmp_path / "run" / "events.jsonl").write_bytes(b"")
        complete = size == len(whole) - 1  # only the line break is gone
        rows, problems = read_jsonl(path)
        assert [row["step"] for row in rows] == ([1, 2, 3] if complete else [1, 2])
        assert len(problems) == (0 if size == last or complete else 1)
        assert path.read_bytes() == whole[:size], "reading never writes"
        with Record.open(tmp_path / "run") as record:
            record.append_metrics(4, {"return/mean": 4.0})
            assert [row["step"] for row in rows_of(record)] == ([1, 2, 3, 4] if complete else [1, 2, 4])
            events = rows_of(record, "events.jsonl")
        expected = [] if size == last else ["tail_completed" if complete else "tail_dropped"]
        assert [event["kind"] for event in events] == expected
        if expected == ["tail_dropped"]:
            assert (events[0]["file"], events[0]["bytes"]) == ("metrics.jsonl", size - last)
            assert events[0]["text"] == whole[last:size].decode()


def test_broken_events_are_repaired_before_they_are_written_to(tmp_path):
    three_rows(tmp_path / "run")
    for name in FILES:
        with open(tmp_path / "run" / name, "ab") as file:
            file.write(b'{"step": 9, "ki')
    with Record.open(tmp_path / "run") as record:
        events = rows_of(record, "events.jsonl")
    assert [event["file"] for event in events] == list(reversed(FILES))


@pytest.mark.parametrize(
    "garbage",
    [b"\x00" * 5000, bytes(range(256)) * 40, b"}{", b"null", b"[1]", b'{"step": 1', b"\xff\xfe", b'{"a":' + b"[" * 999],
)
def test_garbage_in_the_middle_hides_nothing(tmp_path, garbage):
    whole = three_rows(tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    path.write_bytes(whole + garbage + b"\n" + whole)
    rows, problems = read_jsonl(path)
    assert [row["step"] for row in rows] == [1, 2, 3, 1, 2, 3]
    assert len(problems) >= 1
    assert (problems[0].file, problems[0].line) == ("metrics.jsonl", 4)
    with Record.open(tmp_path / "run") as record:
        assert rows_of(record, "events.jsonl") == [], "a broken line in the middle stays where it is"


def test_a_file_of_noise_is_reported_in_short(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"noise\n" * 5000 + b'{"step":1}\n')
    rows, problems = read_jsonl(tmp_path / "a.jsonl")
    assert rows == [{"step": 1}]
    assert len(problems) == jsonl.MAX_PROBLEMS + 1
    assert problems[-1].message == f"{5000 - jsonl.MAX_PROBLEMS} more lines cannot be read"


def test_a_long_tail_of_zeros_is_dropped(tmp_path):
    whole = three_rows(tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    path.write_bytes(whole + b"\x00" * 300_000)
    Record.open(tmp_path / "run").close()
    assert path.read_bytes() == whole


def test_empty_and_missing_files(tmp_path):
    assert read_jsonl(tmp_path / "none.jsonl")[1][0].message == "the file is missing"
    (tmp_path / "a.jsonl").write_bytes(b"")
    assert read_jsonl(tmp_path / "a.jsonl") == ([], [])
    assert last_line(tmp_path / "a.jsonl") == (0, b"")
    (tmp_path / "a.jsonl").write_bytes(b"abc")
    assert last_line(tmp_path / "a.jsonl") == (0, b"abc")
    (tmp_path / "a.jsonl").write_bytes(b"x\n" + b"y" * 10_000)
    assert last_line(tmp_path / "a.jsonl") == (2, b"y" * 10_000)


KILLED = """
import sys
from relab.record.run_folder import Record
record = Record.create(sys.argv[1], {"seed": 0}, {}, {})
print("ready", flush=True)
step = 0
while True:
    record.append_metrics(step, {"return/mean": step / 3, "return/std": 1.0})
    record.update_meta(status="running", threads=step)
    step += 1
"""


def test_kill_9_leaves_a_readable_folder(tmp_path):
    for i in range(5):
        folder = tmp_path / f"run{i}"
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        while (folder / "metrics.jsonl").stat().st_size < 500 * (i + 1):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        rows, problems = read_jsonl(folder / "metrics.jsonl")
        assert problems == []
        assert [row["step"] for row in rows] == list(range(len(rows)))
        assert 0 <= read_meta(folder)["threads"] - len(rows) + 2 <= 1
        Record.open(folder).close()  # its lock died with it


# ---- Resume


def test_resume_cuts_what_came_after_the_checkpoint(record):
    record.append_metrics(1, {"return/mean": 1.0})
    record.append_eval({"step": 1, "mode": "det", "noise": 0.0, "episodes": []})
    lengths = record.lengths()
    assert set(lengths) == set(DETERMINISTIC)
    before = {name: (record.folder / name).read_bytes() for name in DETERMINISTIC}
    record.append_event("checkpoint", 1)
    for step in (2, 3):
        record.append_metrics(step, {"return/mean": 1.0})
        record.append_probe({"step": step, "probe": "p", "value": 0, "noise": 0, "n": 1})
        record.append_timing(step, {"time/sps": 1.0})
    record.close()
    with Record.open(record.folder) as again:
        dropped = again.truncate(orjson.loads(orjson.dumps(lengths)))
        assert dropped["metrics.jsonl"] > 0
        assert dropped["evals.jsonl"] == 0
        assert {name: (record.folder / name).read_bytes() for name in DETERMINISTIC} == before
        assert len(rows_of(again, "timing.jsonl")) == 2, "timing is never cut"
        assert len(rows_of(again, "events.jsonl")) == 1
        again.append_metrics(2, {"return/mean": 2.0})
        assert [row["step"] for row in rows_of(again)] == [1, 2]


def test_a_cut_that_cannot_be_right_is_refused_and_cuts_nothing(record):
    record.append_metrics(1, {"return/mean": 1.0})
    lengths = record.lengths()
    for wrong, message in [
        ({**lengths, "metrics.jsonl": lengths["metrics.jsonl"] + 1}, "rows were lost"),
        ({**lengths, "metrics.jsonl": lengths["metrics.jsonl"] - 1}, "not the end of a row"),
        ({**lengths, "metrics.jsonl": -1}, "rows were lost"),
        ({**lengths, "events.jsonl": 0}, "are needed"),
        ({"../x": 0}, "are needed"),
        ({}, "are needed"),
    ]:
        with pytest.raises(RecordError, match=message):
            record.truncate(wrong)
    assert record.lengths() == lengths


# ---- meta.json, and the folder's walls


def test_meta_is_replaced_as_a_whole(record, monkeypatch):
    record.update_meta(status="interrupted", parent="x", value=math.inf)
    assert read_meta(record.folder)["value"] == math.inf
    before = (record.folder / "meta.json").read_bytes()

    def fail(*_):
        raise OSError("killed here")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="killed here"):
        record.update_meta(status="finished")
    assert (record.folder / "meta.json").read_bytes() == before


def test_the_heartbeat_is_rare(record):
    before = (record.folder / "meta.json").read_bytes()
    record.heartbeat()
    assert (record.folder / "meta.json").read_bytes() == before
    record.heartbeat(every_s=0)
    beat = orjson.loads((record.folder / "meta.json").read_bytes())
    assert beat["heartbeat"] >= orjson.loads(before)["heartbeat"]
    assert {**beat, "heartbeat": ""} == {**orjson.loads(before), "heartbeat": ""}


def test_links_out_of_the_folder_are_not_followed(record, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text('{"secret": 1}')
    record.close()
    for name in ("meta.json", "metrics.jsonl"):
        (record.folder / name).unlink()
        (record.folder / name).symlink_to(secret)
    with pytest.raises(RecordError, match="must lie inside"):
        read_meta(record.folder)
    with pytest.raises(RecordError, match="must lie inside"):
        Record.open(record.folder)
    with pytest.raises(RecordError, match="is a link"):  # even with its meta.json in place
        Record(record.folder, {})
    assert secret.read_text() == '{"secret": 1}'
    for name in ("../secret.json", str(secret)):
        with pytest.raises(RecordError, match="must lie inside"):
            inside(record.folder, name)


def test_a_link_within_the_folder_is_fine(record):
    (record.folder / "again.json").symlink_to("meta.json")
    assert jsonl.read_json(record.folder, "again.json") == read_meta(record.folder)


def test_write_atomic_replaces_a_link_not_its_target(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_text() == "old"
    assert (tmp_path / "link").read_bytes() == b"new"


def test_every_event_the_record_writes_is_in_the_glossary():
    assert {"tail_dropped", "tail_completed"} <= set(glossary.EVENTS)


def test_whoever_writes_a_run_can_be_seen(tmp_path):
    assert not is_locked(tmp_path / "none")
    record = Record.create(tmp_path / "run", {"seed": 0}, {}, {})
    assert is_locked(tmp_path / "run")
    record.close()
    assert not is_locked(tmp_path / "run")


@pytest.mark.parametrize(("text", "value"), [("1e400", math.inf), ("-1e400", -math.inf), ("9" * 400, math.inf)])
def test_a_number_beyond_every_double_costs_no_row(tmp_path, text, value):
    """1e400 is JSON: the row stays, with that value infinite."""
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"step": 1, "x": {text}, "y": 2.0}}\n{{"step": 2, "x": 1.0}}\n')
    rows, problems = jsonl.read_jsonl(path)
    assert (rows[0], len(rows), problems) == ({"step": 1, "x": value, "y": 2.0}, 2, [])


@pytest.mark.parametrize("line", [b'{"x": 1e400, "y": NaN}', b'{"x": 1e400,}', b'{"x": 1e400, "y": "\xff"}'])
def test_what_is_no_json_stays_no_row_beside_such_a_number(line):
    assert not jsonl.is_row(line)


def test_the_end_of_a_file_without_a_line_break_is_looked_for_within_bounds(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    with open(path, "wb") as file:
        file.write(b'{"step": 1}\n')
        file.truncate(300_000_000)  # zeros that take no room on the disk
    with bounded(memory=100_000_000):
        start, tail = last_line(path)
    assert (start, len(tail)) == (12, limits.LINE)
    path.write_bytes(b'{"a": 1}\n{"b"')
    assert last_line(path) == (9, b'{"b"')
    assert last_line(path, block=1) == (9, b'{"b"')
