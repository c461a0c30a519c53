"""Does a log made to do harm get more than a message? No hang, no traceback, no gigabytes, nothing written or followed.

Every test lays the hostile run beside a healthy one, and the healthy one must still be examined.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from test_conformance import FIXTURES, OWN, state

from bounds import bounded
from relab import cli
from relab.base.jsonl import RecordError, encode
from relab.formats.read import find, table, tfrecords, wandb_file
from relab.formats.read import protobuf as pb
from relab.formats.read.tfevents import Writer
from relab.record import state as folders
from relab.record.history import History

GOOD = "global_step,return,loss\n" + "".join(f"{i * 10},{i},{1 / (i + 1)}\n" for i in range(50))
HANG_S = 120  # a guard, not a measure: what hangs does so for ever
MB = 1 << 20


@pytest.fixture(autouse=True)
def _no_hang():
    def stop(*_):
        raise AssertionError(f"still busy after {HANG_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def root(tmp_path) -> Path:
    write(tmp_path / "root" / "good" / "progress.csv", GOOD)
    return tmp_path / "root"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def fixture(name: str, root: Path) -> Path:
    return shutil.copytree(OWN if name == "relab" else FIXTURES / name, root / name)


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def loaded(root: Path) -> dict[str, History]:
    """All runs by name; the healthy one is among them, and what is unreadable says so in words of its own."""
    everything = find.load_all(root)
    assert all(why.startswith("RecordError: ") for _, why in everything.broken), everything.broken
    runs = {run.name: run.history for run in everything.runs}
    assert len(runs["good"].columns["return/mean"].steps) == 50
    return runs


def said(history: History) -> str:
    return "\n".join(f"{p.file}:{p.line}: {p.message}" for p in history.problems)


def examined(root: Path, capsys, *more: str) -> str:
    assert cli.main(["examine", str(root), *more]) == 0
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out


# ---- Files that are none


def test_pipes_are_not_waited_for(root, capsys):
    own = fixture("relab", root)
    for name in ("timing.jsonl", "evals.jsonl", "events.jsonl", "provenance.json", "config.yaml", "meta.json"):
        pipe(own / name)
    pipe(fixture("sb3", root) / "zoo_ppo" / "CartPole-v1_1" / "CartPole-v1" / "config.yml")
    loop = fixture("loop", root)
    pipe(loop / "best.json")
    pipe(loop / "2025-01-01T010000Z" / "notes.txt")
    for name in ("relab.toml", "a.csv", "b.jsonl", "events.out.tfevents.1.host", "c.db", "d.wandb", "meta.yaml"):
        pipe(root / name)
    assert "meta.json must be a file" in said(loaded(root)["relab"])
    assert "good" in examined(root, capsys)


def test_sockets_and_devices_are_no_logs(root, monkeypatch):
    monkeypatch.chdir(root)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("metrics.jsonl")
        assert list(loaded(root)) == ["good"]


def test_links_that_lead_to_themselves_or_out(root, tmp_path):
    secret = write(tmp_path / "outside" / "config.yaml", "secret: 42\n")
    own = fixture("relab", root)
    for name, target in (("timing.jsonl", "timing.jsonl"), ("config.yaml", secret), ("meta.json", "meta.json")):
        (own / name).unlink()
        (own / name).symlink_to(target)
    write(root / "c" / "progress.csv", GOOD)
    (root / "c" / "config.json").symlink_to("config.json")
    (root / "round").symlink_to(root, target_is_directory=True)
    runs = loaded(root)
    assert "leads to itself" in said(runs["relab"])
    assert "leads to itself" in said(runs["c"])
    assert runs["relab"].config == {}
    assert set(runs) == {"good", "relab", "c"}


@pytest.mark.parametrize("content", ["a = " + "[" * 5000 + "]" * 5000, "mapping = 3", "\0", None])
def test_a_hostile_relab_toml_is_one_line(root, capsys, content):
    if content is None:
        (root / "relab.toml").symlink_to("relab.toml")
    else:
        write(root / "relab.toml", content)
    assert cli.main(["examine", str(root)]) in (cli.USAGE, cli.UNREADABLE)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "relab.toml" in err


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read every file")
def test_files_that_may_not_be_read(root):
    own = fixture("relab", root)
    (own / "evals.jsonl").chmod(0)
    assert "evals.jsonl" in said(loaded(root)["relab"])


# ---- Sizes


def peak(act) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


WIDE = ["step", *(f"k{i}" for i in range(3000))]


@pytest.mark.slow
def test_short_rows_below_a_wide_one_do_not_fill_the_memory(root, monkeypatch):
    """3,000 columns and 60,000 rows of one number are some 400 kB on disk, and 180 million cells."""
    monkeypatch.setattr(table, "MAX_CELLS", 1_000_000)
    write(root / "a" / "progress.csv", ",".join(WIDE) + "\n" + "".join(f"{i}\n" for i in range(60_000)))
    first = json.dumps(dict.fromkeys(WIDE, 1))
    write(root / "b" / "train.jsonl", first + "\n" + "".join(f'{{"step":{i}}}\n' for i in range(60_000)))
    runs = {}
    assert peak(lambda: runs.update(loaded(root))) < 150 * MB
    for name in ("a", "b"):
        assert "are more than 1000000 cells" in said(runs[name])


def framed(*payloads: bytes) -> bytes:
    from mutations import _frame

    out = bytearray(wandb_file.HEADER.pack(b":W&B", 0xBEE1, 0))
    for payload in payloads:
        _frame(out, payload)
    return bytes(out)


@pytest.mark.slow
def test_new_names_in_every_row_of_wandb_do_not_fill_the_memory(root, monkeypatch):
    monkeypatch.setattr(table, "MAX_CELLS", 1_000_000)
    items = [b"".join(pb.put_bytes(1, pb.put_bytes(1, b"k%d_%d" % (i, j)) + pb.put_bytes(16, b"1")) for j in range(4))
             for i in range(3000)]  # fmt: skip
    write(root / "w" / "run-x.wandb", framed(*(pb.put_bytes(2, item) for item in items)))
    runs = {}
    assert peak(lambda: runs.update(loaded(root))) < 100 * MB
    assert "are more than 1000000 cells" in said(runs["w"])


def test_a_record_of_wandb_in_many_chunks(root):
    chunk = struct.pack("<IHB", zlib.crc32(b"\x03"), 0, 3)
    out = bytearray(wandb_file.HEADER.pack(b":W&B", 0xBEE1, 0) + struct.pack("<IHB", zlib.crc32(b"\x02"), 0, 2))
    while len(out) < 2 * MB:
        left = wandb_file.BLOCK - len(out) % wandb_file.BLOCK
        out += b"\0" * left if left < len(chunk) else chunk
    write(root / "w" / "run-x.wandb", bytes(out))
    assert "the last record has no end" in said(loaded(root)["w"])


def test_steps_that_go_to_and_fro(root):
    with Writer(root / "tb", wall=1.7e9) as writer:
        for i in range(30_000):
            writer.scalar("loss", 1.0, i // 2 + i % 2 * 3, wall=1.7e9 + i)
    steps = loaded(root)["tb"].columns["foreign/loss"].steps
    assert len(steps) == 30_000
    assert (steps[1:] >= steps[:-1]).all()


@pytest.mark.slow
def test_ten_thousand_metrics(root):
    names = [f"m{i}" for i in range(10_000)]
    write(root / "a" / "progress.csv", ",".join(["step", *names]) + "\n" + ("1," * 10_000 + "1\n") * 3)
    row = json.dumps({"step": 1, **dict.fromkeys(names, 2)})
    write(root / "b" / "train.jsonl", f"{row}\n{row}\n")
    with Writer(root / "tb", wall=1.7e9) as writer:
        for name in names:
            writer.scalar(name, 1.0, 1)
    runs = loaded(root)
    assert all(len(runs[name].columns) >= 10_000 for name in ("a", "b", "tb"))


def test_huge_lines_and_lines_of_noise(root):
    write(root / "a" / "progress.csv", GOOD + "9" * 3_000_000 + "\n" + "x" * 140_000 + "\n")
    write(root / "b" / "train.jsonl", '{"step":1,"return":2}\n' + '{"step":2,"x":"' + "a" * 3_000_000 + '"}\n')
    write(root / "c" / "metrics.jsonl", b"noise\n" * 200_000)
    runs = loaded(root)
    assert "progress.csv:52: cannot be read as CSV" in said(runs["a"])
    assert len(runs["c"].problems) < 200


def bomb(path: Path, names: list[str], content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in names:
            archive.writestr(name, content)


def test_zip_bombs_are_not_unpacked(root):
    sb3 = fixture("sb3", root)
    bomb(sb3 / "ppo_cartpole_seed0" / "final_model.zip", ["data"], b" " * (100 * MB))
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (20000000,), }".ljust(117) + b"\n"
    names = ["timesteps.npy", "results.npy", "ep_lengths.npy"]
    bomb(sb3 / "ppo_cartpole_seed1" / "evaluations.npz", names, b"\x93NUMPY\x01\0v\0" + head + b"\0" * (100 * MB))
    runs = {}
    assert peak(lambda: runs.update(loaded(root))) < 60 * MB
    assert "final_model.zip" in said(runs["sb3/ppo_cartpole_seed0"])
    assert "evaluations.npz" in said(runs["sb3/ppo_cartpole_seed1"])


def test_names_in_zips_lead_nowhere(root, tmp_path):
    sb3 = fixture("sb3", root)
    bomb(
        sb3 / "ppo_cartpole_seed0" / "final_model.zip", ["../../data", "/data", str(tmp_path / "data")], b'{"seed": 9}'
    )
    before = state(tmp_path)
    assert "final_model.zip" in said(loaded(root)["sb3/ppo_cartpole_seed0"])
    assert state(tmp_path) == before


def test_a_length_that_lies(root):
    header = struct.pack("<Q", tfrecords.MAX_RECORD)
    record = header + struct.pack("<I", tfrecords.masked_crc(header)) + b"x" * 100
    write(root / "tb" / "events.out.tfevents.1700000000.host", record * 20_000)
    assert "the record at byte 0 is cut" in said(loaded(root)["tb"])


@pytest.mark.slow
def test_twenty_thousand_folders(root):
    for i in range(20_001):
        (root / f"run_{i}").mkdir()
    assert list(loaded(root)) == ["good"]


@pytest.mark.slow
def test_a_journal_of_many_trials(root):
    study, trial = '{"op_code":0,"study_name":"s"}\n', '{"op_code":4,"study_id":0}\n'
    write(root / "j" / "journal.log", study + trial * 5000)
    assert len(loaded(root)) == 5001


# ---- Structure

DEEP = '{"n":"NaN","a":' + '{"a":' * 900 + "1" + "}" * 901


def test_deep_json(root):
    for name, text in {
        "a": DEEP,
        "b": '{"a":' + "[" * 100_000,
        "c": '{"n":"NaN","a":' + "[" * 900 + "]" * 900 + "}",
    }.items():
        write(root / name / "progress.csv", GOOD)
        write(root / name / "config.json", text)
    loop, own = fixture("loop", root), fixture("relab", root)
    for name in ("run.json", "config.json", "summary.json", "config_diff.json"):
        write(loop / "2025-01-01T010000Z" / name, DEEP)
    write(own / "meta.json", '{"schema":1,"n":"NaN","a":' + "[" * 900 + "1" + "]" * 900 + "}")
    runs = loaded(root)
    for name in ("b", "c", "relab"):
        assert "JSON" in said(runs[name]), name


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_other_encodings_of_csv(root, encoding):
    write(root / "a" / "progress.csv", GOOD.replace("loss", "perte_é").encode(encoding))
    assert len(loaded(root)["a"].columns["return/mean"].steps) == 50


def test_a_mark_before_json_lines(root):
    write(root / "a" / "train.jsonl", "".join(f'{{"step":{i},"return":1}}\n' for i in range(9)).encode("utf-8-sig"))
    assert len(loaded(root)["a"].columns["return/mean"].steps) == 9


def test_steps_beyond_every_count(root):
    odd = (1, 2, 2**63, 2**64 - 1, 2**70, "1e300", -5, "NaN", 9)
    write(root / "a" / "train.jsonl", "".join(f'{{"step":{step},"return":1}}\n' for step in odd))
    own = fixture("relab", root)
    whole = len(find.load_all(own).runs[0].history.columns["return/mean"].steps)
    for step in (2**64 - 1, 2**63 - 1, -(2**63)):
        with open(own / "metrics.jsonl", "a") as file:
            file.write(f'{{"step":{step},"axis":"agent_steps","return/mean":1.0}}\n')
    swarm = fixture("swarm", root) / "escape_v1" / "eval_multi_history.jsonl"
    row = json.loads(swarm.read_text().splitlines()[0]) | {"iteration": 2**63}
    swarm.write_text(swarm.read_text() + json.dumps(row) + "\n")
    with Writer(root / "tb", wall=1.7e9) as writer:
        for i, step in enumerate((1, 2**63 - 1, -(2**63), 2, 3)):
            writer.scalar("loss", 1.0, step, wall=1.7e9 + i)
    runs = loaded(root)
    assert len(runs["relab"].columns["return/mean"].steps) == whole
    assert "needs an integer step" in said(runs["relab"])
    assert any("beyond every count" in said(run) for name, run in runs.items() if name.startswith("swarm"))
    assert runs["tb"].columns["foreign/loss"].steps.tolist() == [1, 2, 3]


def test_a_tag_without_a_name(root):
    with Writer(root / "tb", wall=1.7e9) as writer:
        writer.scalar("", 1.0, 50)
        writer.scalar("loss", 1.0, 1)
    assert "foreign/loss" in loaded(root)["tb"].columns


def test_times_out_of_the_calendar(root):
    run = History(root, meta={"status": "running", "heartbeat": "0001-01-01T00:00:00+14:00"})
    assert folders.state_of(run) in ("running", "stale")
    assert folders.state_of(History(root / "gone", source="csv")) == "ended"
    assert folders.seed_of(History(root, source="csv"), "s" + "9" * 5000) is None


# ---- SQLite


def computed(path: Path, name: str) -> None:
    """The column `value` of a table as one that is computed when it is read: 900 MB for each row."""
    with sqlite3.connect(path) as base:
        columns = [row[1] for row in base.execute(f"PRAGMA table_info({name})")]
        base.execute(f"ALTER TABLE {name} RENAME TO before")
        rest = ", ".join(column for column in columns if column != "value")
        base.execute(f"CREATE TABLE {name} ({rest}, value GENERATED ALWAYS AS (zeroblob(900000000)))")
        base.execute(f"INSERT INTO {name} ({rest}) SELECT {rest} FROM before")
    base.close()


def test_computed_columns_are_not_asked_for(root):
    computed(fixture("mlflow", root) / "mlflow.db", "metrics")
    computed(fixture("optuna", root) / "study.db", "trial_values")
    everything = find.load_all(root)
    messages = [why for _, why in everything.broken] + [said(run.history) for run in everything.runs]
    assert sum("computed, not stored" in text for text in messages) == 2
    assert any("mlflow.db" in text and "metrics" in text for text in messages)
    assert any("study.db" in text and "trial_values" in text for text in messages)


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS step, x AS value, * FROM c"


def test_views_triggers_and_strange_names(root):
    mlflow, optuna = fixture("mlflow", root) / "mlflow.db", fixture("optuna", root) / "study.db"
    for path, name in ((mlflow, "metrics"), (optuna, "trial_values")):
        with sqlite3.connect(path) as base:
            base.execute('CREATE TABLE "x; DROP TABLE runs; --" (a)')
            base.execute(f"CREATE TRIGGER t AFTER INSERT ON {name} BEGIN DELETE FROM {name}; END")
            base.execute(f"ALTER TABLE {name} RENAME TO before")
            base.execute(f"CREATE VIEW {name} AS {ENDLESS}")
        base.close()
    before = state(root)
    loaded(root)
    assert state(root) == before


def test_a_run_name_without_end(root):
    path = fixture("mlflow", root) / "mlflow.db"
    with sqlite3.connect(path) as base:
        base.execute("UPDATE runs SET name = ?", ("-" * 200_000 + "x/s" + "9" * 5000,))
    base.close()
    assert max(len(name) for name in loaded(root)) < 300


# ---- Names and values that are markup, escapes, paths

EVIL = "<img src=x onerror=alert(1)>\x1b[31m\n\u202e|`*#{{7*7}}"


@pytest.fixture
def evil(root) -> Path:
    names = f"global_step,return,<script>alert(2)</script>\x1b[2J\n{GOOD.partition(chr(10))[2]}"
    write(root / f"{EVIL}_s1" / "progress.csv", names)
    write(root / f"{EVIL}_s1" / "config.json", json.dumps({EVIL: EVIL, "env": EVIL, "algo": EVIL, "run_name": EVIL}))
    return root


def test_strange_names_reach_no_terminal(evil, capsys):
    for more in ((), ("-v",), ("--show-mapping",), ("--new",)):
        shown = examined(evil, capsys, *more)
        assert all(c.isprintable() or c == "\n" for c in shown), more
    document = json.loads(examined(evil, capsys, "--json"))
    assert f"{EVIL}_s1" in {run["run"] for run in document["runs"]}


def test_strange_names_are_text_in_pages(evil, tmp_path, capsys):
    assert cli.main(["report", str(evil), "--out", str(tmp_path / "page.html")]) == 0
    shown = capsys.readouterr().out
    page, text = (tmp_path / "page.html").read_text(), (tmp_path / "page.md").read_text()
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert "<img src=x" not in page
    assert "<script>alert" not in page
    assert "{{7*7}}" in page or "7*7" in page  # as it stands, not as 49
    fences = text.split("```")
    assert all("<img src=x" not in part and "<script>" not in part for part in fences[::2])
    for part in (page, text):
        assert "\x1b" not in part
        assert "\u202e" not in part


def test_strange_names_in_the_entry_of_a_log(root, capsys):
    own = fixture("relab", root)
    meta = json.loads((own / "meta.json").read_bytes())
    write(own / "meta.json", encode(meta | {"intent": EVIL, "name": EVIL, "command": EVIL}))
    assert cli.main(["note", str(own)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "<img src=x" not in "".join(shown.split("```")[::2])


def test_reading_a_hostile_folder_writes_nothing(evil, capsys):
    before = state(evil)
    examined(evil, capsys)
    assert state(evil) == before


def test_nothing_to_read_is_one_line(tmp_path, capsys):
    write(tmp_path / "x" / "progress.csv", b"\0" * 1000)
    write(tmp_path / "x" / "run.wandb", b"")
    assert cli.main(["examine", str(tmp_path / "x")]) == cli.UNREADABLE
    assert capsys.readouterr().err.startswith("relab: no runs at or below")
    with pytest.raises(RecordError, match="no runs at or below"):
        find.load_all(tmp_path / "x" / "run.wandb")


def test_values_that_no_double_holds(root):
    write(
        root / "a" / "1.json",
        '{"env_name":"e","args":{},"metrics":{"agent_steps":[1,1e300],"SPS":[NaN,%s]}}' % ("9" * 400),
    )
    history = loaded(root)["a/1.json"]
    assert all(np.isfinite(column.steps).all() for column in history.columns.values())


def test_a_probe_at_a_step_beyond_every_count(root):
    """Found by damaging logs: an integer of more than 64 bits as the step of a probe."""
    path = fixture("probes", root) / "tmos0_s0" / "probes" / "fixed_point_probe.csv"
    head, first, *rest = path.read_text().splitlines()
    write(path, "\n".join([head, "1" + "0" * 30 + first[first.index(",") :], *rest]) + "\n")
    assert "1 rows have no whole step" in said(loaded(root)["probes/tmos0_s0"])


def test_steps_of_pufferlib_that_go_back(root):
    """Found by a search for bytes that break an importer: a last count of 0.1 behind one of 1000."""
    metrics = '{"agent_steps": [0, 1000, 0.1], "SPS": [9000, 9100, 9200], "env/episode_return": [1, 2, 3]}'
    write(root / "a" / "1.json", f'{{"env_name": "e", "train": {{}}, "metrics": {metrics}}}')
    history = loaded(root)["a/1.json"]
    assert history.columns["return/mean"].steps.tolist() == [0]
    assert said(history).count("the steps go back once") == 1


# ---- Gigabytes


def sparse(path: Path, head: bytes = b"", size: int = 1 << 30) -> Path:
    """A file that begins so and goes on with zero bytes, which take no room on the disk."""
    write(path, head)
    os.truncate(path, size)
    return path


LIES = struct.pack("<Q", tfrecords.MAX_RECORD - 100)
HUGE_FILES = {
    "events.out.tfevents.1700000000.host": b"",
    "events.out.tfevents.1700000001.host": LIES + struct.pack("<I", tfrecords.masked_crc(LIES)),
    "run-x.wandb": wandb_file.HEADER.pack(b":W&B", 0xBEE1, 0),
    "train.jsonl": b'{"step":1,"return":2}\n{"step":2,"return":3}\n',
    "first.jsonl": b'{"step":1,"return":2',
    "progress.csv": b"step,return\n1,2\n2,3\n3,",
    "0.monitor.csv": b'#{"t_start": 1.0, "env_id": "C"}\nr,l,t\n1,2,3\n2,3,4\n',
    "journal.log": b'{"op_code":0,"study_name":"s"}\n',
}


@pytest.mark.parametrize("name", HUGE_FILES)
@pytest.mark.some(2)
def test_a_gigabyte_without_a_line_break(root, name):
    sparse(root / "huge" / name, HUGE_FILES[name])
    with bounded(seconds=8):
        loaded(root)


BUSY = [(b"", b"9", 100 * MB), (b"", b",", 100 * MB), (b'"', b"9,\n", 4 * MB), (b"", b"1,x\n", MB)]


@pytest.mark.parametrize("share", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("begin", "part", "times"), BUSY)
@pytest.mark.some(2)
def test_csv_that_keeps_a_reader_busy(root, begin, part, times, share):
    """What takes the square of its length takes minutes at an eighth of it too."""
    write(root / "a" / "progress.csv", b"step,return\n1,2\n2,3\n3," + begin + part * (times // share))
    with bounded(seconds=10):
        assert "progress.csv" in said(loaded(root)["a"])


def test_an_array_that_claims_a_trillion_numbers(root):
    sb3 = fixture("sb3", root)
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(117) + b"\n"
    names = ["timesteps.npy", "results.npy", "ep_lengths.npy"]
    bomb(sb3 / "ppo_cartpole_seed1" / "evaluations.npz", names, b"\x93NUMPY\x01\0v\0" + head + b"\0" * 100)
    with bounded():
        assert "evaluations.npz" in said(loaded(root)["sb3/ppo_cartpole_seed1"])


@pytest.mark.slow
def test_blobs_in_sqlite_are_not_read(root):
    mlflow, optuna = fixture("mlflow", root) / "mlflow.db", fixture("optuna", root) / "study.db"
    for path, place in ((mlflow, "params SET value"), (mlflow, "runs SET name"), (optuna, "studies SET study_name")):
        with sqlite3.connect(path) as base:
            base.execute(f"UPDATE {place} = CAST(zeroblob(200000000) AS TEXT) WHERE rowid = 1")
        base.close()
    with bounded():
        loaded(root)


def test_a_message_of_a_million_fields():
    with bounded(memory=100 * MB), pytest.raises(pb.MalformedError, match="more than 1000000 fields"):
        for _ in pb.fields(b"\x08\x01" * 2_000_000):
            pass
    with pytest.raises(pb.MalformedError, match="a field without a number at byte 2"):
        list(pb.fields(b"\x08\x01\0\0"))


def test_deep_json_in_rows(root):
    rows = b'{"step":1,"return":1}\n' * 20 + b'{"step":2,"a":' + b"[" * 3_000_000 + b"\n" + b'{"a":' * 1_000_000
    write(root / "a" / "train.jsonl", rows)
    with bounded():
        assert "not a JSON object" in said(loaded(root)["a"])
