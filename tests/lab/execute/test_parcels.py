"""Does a run that travels come back as it is there, whatever is cut off in between? No engine: folders and bytes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bounds import bounded
from relab.base import limits
from relab.lab.execute import parcels, ray_border, ray_post, release
from relab.lab.execute.desk import Desk, End, Order
from relab.lab.execute.engine_error import EngineError
from relab.lab.execute.node import carry_out
from relab.lab.execute.parcels import Change, Changes, Mirror

IDS = ["a-s0.1"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "q"
    for name, text in {
        "experiment.yaml": "question: x",
        "variants/a.yaml": "lr: 1",
        "runs/a-s0/metrics.jsonl": '{"step": 1}\n',
        "runs/a-s0/events.jsonl": '{"event": "begin"}\n',
        "runs/a-s1/metrics.jsonl": "another run",
        "engine/work/a-s0.1.json": "{}",
        "hidden/a-s0.json": "what no run may see",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def there(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "there" / "q"
    parcels.unpack(parcels.pack(home, IDS), folder)
    return folder


def mirror(home: Path, there: Path) -> Mirror:
    return Mirror.of(there, IDS, parcels.pack(home, IDS))


def checkpoint(folder: Path, step: int, pointer: bool = True) -> None:
    place = folder / "runs/a-s0/checkpoints" / f"step-{step:012d}"
    place.mkdir(parents=True)
    for name in ("weights.safetensors", "state.json"):
        (place / name).write_text(f"{name} {step}")
    if pointer:
        (place.parent / "latest.json").write_text(json.dumps({"folder": place.name, "step": step}))


def files(folder: Path) -> dict[str, bytes]:
    run = folder / "runs/a-s0"
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


def test_a_parcel_holds_one_run_and_the_plan_and_nothing_hidden(home: Path) -> None:
    assert sorted(parcels.pack(home, IDS)) == [
        "engine/work/a-s0.1.json",
        "experiment.yaml",
        "runs/a-s0/events.jsonl",
        "runs/a-s0/metrics.jsonl",
        "variants/a.yaml",
    ]


def test_more_than_a_machine_is_sent_is_an_error_before_anything_is_read(
    home: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = mirror(home, there)
    for folder in (home, there):
        with open(folder / "runs/a-s0/replay.bin", "wb") as file:
            file.truncate(limits.TRAVELS + 1)
    monkeypatch.chdir(home)
    said = r"runs/a-s0/replay.bin has 2,147,483,649.* no more than 2,147,483,648 bytes do: put the experiment on a file"
    with bounded(memory=200_000_000):
        for read in (lambda: parcels.pack(home, IDS), known.look, lambda: ray_border.carried(["runs"])):
            with pytest.raises(EngineError, match=said):
                read()


def test_rows_are_sent_as_they_grow_and_only_once(home: Path, there: Path) -> None:
    look = mirror(home, there)
    assert look.look().files == []
    with open(there / "runs/a-s0/metrics.jsonl", "a") as file:
        file.write('{"step": 2}\n')
    (change,) = look.look().files
    assert change == Change("runs/a-s0/metrics.jsonl", b'{"step": 2}\n', 12)
    parcels.apply(home, Changes([change]), IDS)
    assert files(home) == files(there)
    assert look.look().files == []


def test_a_file_that_was_cut_and_has_grown_again_is_the_same_at_home(home: Path, there: Path) -> None:
    """Resume cuts rows behind the checkpoint; the file may be longer than before at the next look."""
    look = mirror(home, there)
    (there / "runs/a-s0/metrics.jsonl").write_text('{"step": 7}\n{"step": 8}\n')
    parcels.apply(home, look.look(), IDS)
    (there / "runs/a-s0/metrics.jsonl").write_text('{"step": 7}\n')
    parcels.apply(home, look.look(last=True), IDS)
    assert files(home) == files(there)


def test_home_never_points_to_a_checkpoint_that_it_has_not_got(
    home: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look is cut after a few bytes, and the worker dies after any of them."""
    monkeypatch.setattr(parcels, "PIECE", 30)
    look = mirror(home, there)
    checkpoint(there, 10)
    with open(there / "runs/a-s0/metrics.jsonl", "a") as file:
        file.write('{"step": 10}\n')
    more = True
    while more:
        changes = look.look()
        more = changes.more
        parcels.apply(home, changes, IDS)
        pointer = home / "runs/a-s0/checkpoints/latest.json"
        if pointer.exists():
            assert (pointer.parent / "step-000000000010/state.json").is_file()
            assert b'"step": 10}' in files(home)["metrics.jsonl"], "rows before the checkpoint that counts them"
    assert files(home) == files(there)


def test_a_checkpoint_that_was_deleted_before_it_was_sent_is_not_pointed_to(home: Path) -> None:
    pointer = Change("runs/a-s0/checkpoints/latest.json", b'{"folder": "step-000000000010"}')
    parcels.apply(home, Changes([pointer]), IDS)
    assert not (home / pointer.path).exists()


def test_checkpoints_that_are_gone_there_go_here(home: Path, there: Path) -> None:
    look = mirror(home, there)
    for step in (10, 20):
        checkpoint(there, step)
    parcels.apply(home, look.look(), IDS)
    parcels.apply(home, Changes(kept={"a-s0": ["step-000000000020"]}), IDS)
    assert [path.name for path in (home / "runs/a-s0/checkpoints").glob("step-*")] == ["step-000000000020"]


def test_half_a_checkpoint_does_not_travel(home: Path) -> None:
    checkpoint(home, 10, pointer=False)
    (home / "runs/a-s0/checkpoints/step-000000000010/state.json").unlink()
    assert not any("step-" in name for name in parcels.pack(home, IDS))


def test_what_home_has_written_about_a_run_stays(home: Path, there: Path) -> None:
    """A watcher notes at home why it stops a run, while the run goes on to write rows."""
    look = mirror(home, there)
    for folder, row in ((there, '{"event": "eval"}\n'), (home, '{"event": "stop"}\n')):
        with open(folder / "runs/a-s0/events.jsonl", "a") as file:
            file.write(row)
    parcels.apply(home, look.look(), IDS)
    with open(there / "runs/a-s0/events.jsonl", "a") as file:
        file.write('{"event": "end"}\n')
    parcels.apply(home, look.look(), IDS)
    words = [json.loads(row)["event"] for row in (home / "runs/a-s0/events.jsonl").read_text().splitlines()]
    assert words == ["begin", "eval", "end", "stop"]


@pytest.mark.parametrize(
    "path",
    ["../x", "runs/a-s1/metrics.jsonl", "experiment.yaml", "runs/a-s0/../../x", "engine/work/a-s0.1.json", "hidden/x"],
)
def test_a_machine_can_write_nothing_but_its_run(home: Path, path: str) -> None:
    with pytest.raises(ValueError, match="which is no file of a-s0"):
        parcels.apply(home, Changes([Change(path, b"x")]), IDS)


def test_an_order_is_carried_out_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """Everything but the actor: parcel, orders that say the new places, what is sent, what is asked for."""
    home, box = tmp_path / "home" / "q", []
    desk = Desk(home).make()
    code = "import sys, os, pathlib; r = pathlib.Path(sys.argv[1]); r.mkdir(parents=True);"
    code += " (r / 'metrics.jsonl').write_text(pathlib.Path('extra.txt').read_text() + os.getcwd())"
    words = [sys.executable, "-c", code, str(home / "runs/a-s0")]
    log = str(home / "logs/a-s0.log")
    desk.put(Order("a-s0.1", words, False, log, str(tmp_path), source=release.release()))
    parcel = parcels.pack(home, IDS)
    folder = ray_post.settle(tmp_path / "scratch", parcel, {"extra.txt": b"carried "}, home, IDS)
    with ray_post.Sender(Mirror.of(folder, IDS, parcel), Desk(folder), lambda changes: box.append(changes) or set()):
        carry_out(str(Desk(folder).folder), IDS, "job")
    for changes in box:
        parcels.apply(home, changes, IDS)
    assert (desk.end("a-s0.1") or End(1, 0)).code == 0
    assert (home / "runs/a-s0/metrics.jsonl").read_text() == f"carried {tmp_path / 'scratch' / 'cwd'}"


def test_what_the_submitter_asks_for_reaches_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "q"
    desk = Desk(folder).make()
    sender = ray_post.Sender(Mirror(folder, IDS), desk, lambda changes: {"a-s0.1", "b-s9.1"})
    sender.once()
    assert desk.is_to_end("a-s0.1")
    assert not desk.is_to_end("b-s9.1")


def test_a_submitter_that_is_gone_ends_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "q"
    desk = Desk(folder).make()

    def send(changes: Changes) -> set[str]:
        raise ConnectionError("the office is closed")

    sender = ray_post.Sender(Mirror(folder, IDS), desk, send, every_s=0.001)
    sender.work()
    assert desk.is_to_end("a-s0.1")


def test_the_office_keeps_what_was_sent_until_it_is_fetched() -> None:
    office = ray_post.Office()
    assert office.put("job", Changes(more=True)) == set()
    assert office.fetch(["a-s0.1"]) == {"job": [Changes(more=True)]}
    assert office.fetch([]) == {}
    assert office.put("job", Changes()) == {"a-s0.1"}
