"""Does a link in a run folder lead any command out of it? A canary outside is neither read nor changed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import outside
from relab import cli
from relab.base import enclosed
from relab.base.jsonl import RecordError, encode
from relab.formats.read import find
from relab.runs import moves
from relab.train import checkpoint
from shelves import set_meta
from small_runs import Interrupt, run
from where import fixtures

STEP = "step-000000000384"
STEPS = f"checkpoints/{STEP}"
GROUPS = (  # names that are links at the same time: one of them would hide another only across groups
    ("config.yaml",), ("meta.json",), ("metrics.jsonl",), ("evals.jsonl", "probes.jsonl"),
    ("events.jsonl", "timing.jsonl", "provenance.json"),
    ("checkpoints",), ("checkpoints/latest.json",), ("checkpoints/best.json",), (STEPS,), (f"{STEPS}/state.json",),
    (f"{STEPS}/state.safetensors", f"{STEPS}/weights.safetensors"),
    ("labels.json", "next_config.yaml", "relab.toml", "report.md", "report.html", "findings.json", "media"),
    ("media/curve.gif", f"media/{STEP}-det-worst.mp4", "checkpoints/.writing-1", "checkpoints/.latest.json.tmp",
     "checkpoints/.git", ".labels.json.tmp", ".report.md.tmp", ".next_config.yaml.tmp"),
    (".meta.json.tmp",),
)  # fmt: skip
READ = (
    "examine runs", "examine runs/sent -v --json", "compare runs", "diff runs/sent runs/other", "report runs/sent",
    "report runs --out page.html", "note runs/sent --into LOG.md", "next runs/sent", "runs", "runs disk",
    "gate lint runs/sent", "doctor", "convert runs --to csv --out converted",
)  # fmt: skip
CHANGE = (
    "next runs/sent --write", "runs tag good sent", "runs note sent remark", "runs prune --keep best --yes",
    "runs rename sent called", "runs archive called", "runs unarchive called", "runs delete called",
    "runs undo", "runs delete called", "runs purge --yes",
)  # fmt: skip
PLAY = (
    "train --parent runs/sent --print-config", "train runs/sent/config.yaml --print-config", "probe runs/sent",
    "eval runs/sent --checkpoint latest --episodes 2", "video runs/sent --checkpoint latest", "video runs/sent --curve",
    "resume runs/sent --quiet",
)  # fmt: skip


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was interrupted, as somebody might send it."""
    folder = tmp_path_factory.mktemp("made") / "sent"
    run(folder, Interrupt(3), total_steps="640", algo__envs="8", eval__every="256", eval__episodes="2")
    assert (folder / "checkpoints" / STEP).is_dir()
    return folder


@pytest.fixture
def place(sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the run below runs/; beside it a canary."""
    work = tmp_path / "work"
    for name in ("sent", "other"):
        shutil.copytree(sent, work / "runs" / name)
    set_meta(work / "runs" / "other", id="0123456789ab")
    (tmp_path / "canary").mkdir()
    monkeypatch.chdir(work)
    return tmp_path


def plant(place: Path, *names: str) -> None:
    """What has these names lies in the canary now, and links to it in the run."""
    for name in names:
        plant_one(place, name)


def plant_one(place: Path, name: str) -> None:
    path, target = place / "work" / "runs" / "sent" / name, place / "canary" / Path(name).name
    if path.exists():
        shutil.move(path, target)
    elif name in ("media", "checkpoints/.writing-1", "checkpoints/.git"):
        target.mkdir()
    else:
        target.write_text("{}")
    for extra in [place / "canary", *([target] if target.is_dir() else [])]:
        (extra / ".secret").write_text("swordfish")
        (extra / STEP.replace("384", "896")).mkdir(exist_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)


def check_all(place: Path, lines: tuple[str, ...], out: Callable[[], str]) -> None:
    """Each command may work or refuse; none reaches outside, and none tells what is there."""
    before, canary = outside.state(place / "canary"), place / "canary"
    for line in lines:
        with outside.watched(canary) as reached:
            cli.main(line.split())
        assert not reached, f"relab {line} reaches outside: {reached}"
        assert outside.state(canary) == before, f"relab {line} changes what is outside"
        said = out()
        assert "swordfish" not in said
        assert ".secret" not in said


def said_by(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: "".join(capsys.readouterr())


# `make test` takes one group of each kind: a file, a folder, a file below a folder; `make test-all` takes every one.
USUAL = ("meta.json", "checkpoints", "labels.json")
LINKED = pytest.mark.parametrize(
    "names",
    [pytest.param(names, marks=() if names[0] in USUAL else pytest.mark.slow) for names in GROUPS],
    ids=lambda names: names[0],
)
Said = pytest.CaptureFixture[str]


@LINKED
@pytest.mark.some(6)
def test_reading_commands_stay_inside(names: tuple[str, ...], place: Path, capsys: Said) -> None:
    plant(place, *names)
    check_all(place, READ, said_by(capsys))


@LINKED
def test_commands_that_move_and_label_stay_inside(names: tuple[str, ...], place: Path, capsys: Said) -> None:
    plant(place, *names)
    check_all(place, CHANGE, said_by(capsys))


@LINKED
@pytest.mark.some(4)
def test_commands_that_play_stay_inside(names: tuple[str, ...], place: Path, capsys: Said) -> None:
    plant(place, *names)
    check_all(place, PLAY, said_by(capsys))


@pytest.mark.parametrize("target", ["canary/new", "itself"])
@LINKED
def test_links_to_nothing_and_to_themselves(target: str, names: tuple[str, ...], place: Path, capsys: Said) -> None:
    """A dangling link would make a file where it points to; one that leads to itself never ends."""
    for name in names:
        path = place / "work" / "runs" / "sent" / name
        path.parent.mkdir(exist_ok=True)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.symlink_to(path if target == "itself" else place / target / path.name)
    check_all(place, ("runs", "report runs/sent", *CHANGE[:4], "resume runs/sent --quiet"), said_by(capsys))


def test_hard_links_are_files_like_any_other(place: Path) -> None:
    os.link(place / "work/runs/sent/meta.json", place / "twin.json")
    assert cli.main(["resume", "runs/sent", "--quiet"]) == 0


# ---- Other folders of relab's


def test_a_trash_that_is_a_link_is_not_mended_or_purged(place: Path, capsys: Said) -> None:
    for name in ("documents", "20261116120000000-noid", ".going-20261116120000000-noid"):
        (place / "canary" / name).mkdir()
    (place / "work/runs/.trash").symlink_to(place / "canary")
    check_all(place, ("runs", "runs delete sent", "runs undo", "runs purge --yes"), said_by(capsys))


def test_what_is_no_entry_of_the_trash_is_never_removed(place: Path) -> None:
    trash = place / "work/runs/.trash"
    (trash / "documents").mkdir(parents=True)
    (trash / ".going-home").mkdir()
    assert not moves.leftovers(trash)


def test_an_archive_that_is_a_link_takes_no_run(place: Path, capsys: Said) -> None:
    (place / "work/runs/.archive").symlink_to(place / "canary")
    check_all(place, ("runs archive sent", "runs unarchive sent"), said_by(capsys))
    assert (place / "work/runs/sent").is_dir()


@pytest.mark.parametrize("name", ["runs", "variants", "state", "stopped", "logs", "runs/a-s0", "experiment.yaml"])
def test_an_experiment_stays_inside(name: str, place: Path, capsys: Said) -> None:
    (place / "work/q.yaml").write_text(
        f"question: same?\ncommand: {sys.executable} -c pass {{seed}} {{x}} {{run}}\nseeds: 1\n"
        "variants: {a: {x: 1}, b: {x: 2}}\n"
    )
    path = place / "work/experiments/q" / name
    path.parent.mkdir(parents=True)
    for each in ("a-s0", "b-s0"):
        (place / "canary" / each).mkdir()
    (place / "canary" / "a.yaml").write_text("{}")
    path.symlink_to(place / "canary" / ("a.yaml" if name.endswith("yaml") else "a-s0" if "/" in name else ""))
    check_all(
        place, ("experiment q.yaml --yes --no-log", "report experiments/q", "examine experiments"), said_by(capsys)
    )


def test_own_names_the_link_and_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "media").symlink_to(tmp_path)
    with pytest.raises(RecordError, match=f"media is a link to {tmp_path}"):
        enclosed.own(tmp_path / "run", "media/film.gif")
    for name in ("../x", "/etc/passwd", "media/../../x"):
        with pytest.raises(RecordError):
            enclosed.own(tmp_path / "run", name)


@pytest.mark.parametrize("folder", ["../../canary", "/etc", f"../{STEP}", ".", "", 5, None, ["a"]])
def test_a_pointer_names_a_checkpoint_and_nothing_else(folder: object, place: Path) -> None:
    root = place / "work/runs/sent/checkpoints"
    (root / "best.json").write_bytes(encode({"folder": folder, "step": 384}))
    with outside.watched(place / "canary") as reached, pytest.raises(checkpoint.CheckpointError):
        checkpoint.load(root, "best")
    assert not reached


@pytest.mark.slow
def test_without_links_every_command_works(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else the tests above would watch commands that never begin."""
    codes = {line: cli.main(line.split()) for line in (*READ, *PLAY, *CHANGE)}
    wrong = {line: code for line, code in codes.items() if code not in (0, 1) and not line.startswith("gate")}
    assert not wrong, "".join(capsys.readouterr().err)


# ---- Folders of other tools

FOREIGN = fixtures()


def linked(folder: Path, canary: Path) -> Iterator[str]:
    """Each name of a file or folder below, one at a time, as a link to itself in the canary."""
    for path in {path.name: path for path in sorted(folder.rglob("*"))}.values():
        target = canary / "taken"
        shutil.move(path, target)
        path.symlink_to(target)
        yield str(path.relative_to(folder))
        path.unlink()
        shutil.move(target, path)


@pytest.mark.parametrize("tool", sorted(path.name for path in FOREIGN.iterdir() if path.is_dir()))
@pytest.mark.some(4)
def test_links_in_folders_of_other_tools_are_not_followed(tool: str, tmp_path: Path) -> None:
    folder, canary = tmp_path / tool, tmp_path / "canary"
    shutil.copytree(FOREIGN / tool, folder)
    canary.mkdir()
    for name in linked(folder, canary):
        with outside.watched(canary) as reached, contextlib.suppress(RecordError):  # nothing else is there to be read
            find.load_all(folder)
        assert not reached, f"{name} of {tool}: {reached}"
