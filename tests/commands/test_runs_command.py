"""Does `relab runs` keep runs in order, lose nothing when it is killed, and leave alone what is not its own?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from relab.base.jsonl import RecordError, read_json
from relab.cli import main
from relab.commands.runs import VERBS
from relab.commands.runs_verbs import VERBS as TABLE
from relab.record.run_folder import Record, now
from relab.runs import labels, moves
from shelves import checkpoints, make, set_meta, tree

NAMES = ["brave-otter", "calm-lynx", "sweep-1", "sweep-2"]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for i, name in enumerate(NAMES):
        make(tmp_path / "runs" / name, (float(i), float(i)), seed=str(i))
    return tmp_path / "runs"


@pytest.fixture
def relab(runs, capsys):
    """Call `relab runs ...` in this folder; what it printed."""

    def call(*words: str, code: int = 0) -> str:
        verb = bool(words) and words[0] in VERBS
        where = ["--runs", str(runs)] if verb else [str(runs)]
        assert main(["runs", *words, *where] if verb else ["runs", *where, *words]) == code
        streams = capsys.readouterr()
        return streams.out + streams.err

    return call


def listed(relab, *words: str) -> list[dict]:
    return json.loads(relab(*words, "--sort", "name", "--json"))["runs"]


def names(relab, *words: str) -> list[str]:
    return [row["name"] for row in listed(relab, *words)]


# ---- Listing


def test_the_list_shows_what_a_run_is(relab):
    out = relab("--sort", "name")
    assert out.splitlines()[0].split() == "name env algo seed state outcome steps age size".split()
    assert out.splitlines()[3].split()[:8] == ["sweep-1", "cartpole-v1", "ppo", "2", "finished", "2", "±0", "2,048"]
    assert out.splitlines()[-1] == "4 runs"


def test_it_is_filtered_sorted_and_cut(relab):
    assert names(relab, "--match", "^sweep") == ["sweep-1", "sweep-2"]
    assert names(relab, "outcome>=2", "seed!=3") == ["sweep-1"]
    assert names(relab, "--top", "2") == NAMES[:2]
    assert "the first 2 of 4 runs; --top 0 shows all" in relab("--top", "2")
    assert "no such run: 4 runs below" in relab("--match", "nothing")
    assert "no run here has a setting `lrr`; the nearest is" in relab("lrr=1", code=64)
    assert "one folder at a time" in relab(".", code=64)


def test_groups(relab):
    out = relab("--by", "env,seed")
    assert out.splitlines()[0].split() == "env seed runs finished n mean low high best".split()
    assert out.splitlines()[1].split() == "cartpole-v1 3 1 1 1 3 3 3 sweep-2".split()


def test_a_folder_without_runs_and_one_that_is_not_there(relab, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["runs", str(tmp_path / "empty")]) == 0
    assert "no runs below" in capsys.readouterr().out
    assert main(["runs", str(tmp_path / "nowhere")]) == 2
    assert "nowhere is neither a folder nor a verb" in capsys.readouterr().err
    assert main(["runs", "delte", "sweep-1"]) == 2
    assert "(the nearest is delete)" in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("x")
    assert main(["runs", str(tmp_path / "a.csv")]) == 2
    assert "is a file; give its folder" in capsys.readouterr().err


def test_control_characters_do_not_reach_the_terminal(relab, runs):
    (runs / "calm-lynx").rename(runs / "calm\x1b[31m\nlynx")
    out = relab()
    assert "calm?[31m?lynx" in out
    assert "\x1b" not in out


# ---- Labels


def test_labels_are_kept_in_a_file_of_their_own(relab, runs):
    before = tree(runs)
    relab("tag", "baseline,best", "brave-otter", "sweep-*")
    relab("untag", "best", "sweep-1")
    relab("star", "calm-lynx")
    relab("note", "calm-lynx", "a new 'reward' \u4f60")
    assert names(relab, "--tag", "baseline") == ["brave-otter", "sweep-1", "sweep-2"]
    assert names(relab, "--tag", "baseline,best") == ["brave-otter", "sweep-2"]
    assert names(relab, "--tag", "base") == [], "a part of a tag is no tag"
    (row,) = listed(relab, "--starred")
    assert (row["name"], row["note"], row["star"]) == ("calm-lynx", "a new 'reward' \u4f60", True)
    after = tree(runs)
    assert set(after) - set(before) == {f"{name}/labels.json" for name in NAMES}
    assert {key: after[key] for key in before} == before
    relab("unstar", "calm-lynx")
    relab("note", "calm-lynx", "")
    assert not (runs / "calm-lynx" / "labels.json").exists()


@pytest.mark.parametrize("tag", ["", "two words", "-x", "x" * 41, "a/b", "%", "\x1b[0m", "'; DROP TABLE runs"])
def test_a_tag_is_one_plain_word(relab, tag):
    assert main(["runs", "tag", "--runs", "runs", "--", tag, "brave-otter"]) == 64


def test_broken_labels_are_no_labels(relab, runs):
    (runs / "sweep-1" / "labels.json").write_text('{"tags": "x", "star": 1, "note": [], "renaming": {}}')
    (runs / "sweep-2" / "labels.json").write_text("{")
    assert [(row["tags"], row["star"], row["note"]) for row in listed(relab, "--match", "sweep")] == [
        ([], False, "")
    ] * 2


def test_two_processes_that_tag_at_once_lose_nothing(runs):
    code = (
        "import sys; from pathlib import Path; from relab.runs import labels, moves\n"
        "for i in range(25):\n"
        f"    moves.relabel(Path({str(runs / 'sweep-1')!r}), labels.tagged([sys.argv[1] + str(i)], True))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, word]) for word in "ab"]
    assert [process.wait(120) for process in running] == [0, 0]
    assert len(labels.read(runs / "sweep-1" / "labels.json").tags) == 50


# ---- Moves


def test_rename_keeps_the_id_and_the_rest(relab, runs):
    before, old = tree(runs / "calm-lynx"), read_json(runs / "calm-lynx", "meta.json")
    assert relab("rename", "lynx", "first-try") == "calm-lynx: is now first-try\n"
    after, new = tree(runs / "first-try"), read_json(runs / "first-try", "meta.json")
    assert new == {**old, "name": "first-try"}
    assert {key for key in after if after[key] != before.get(key)} == {"meta.json", "labels.json"}
    assert labels.read(runs / "first-try" / "labels.json").formerly == ("calm-lynx",)
    assert names(relab) == ["brave-otter", "first-try", "sweep-1", "sweep-2"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        "../up",
        "a/b",
        "/etc",
        ".hidden",
        "-rf",
        "~",
        "a\nb",
        "a\x1b[0m",
        "x" * 121,
        "\u4f60" * 41,
        "a\\b",
        "con:1",
        "end.",
        "end ",
        "what?",
        "*",
        "a\x00b",
        "\u202egnp",
    ],
)
def test_hostile_names_are_refused_before_anything_happens(runs, name):
    before = tree(runs)
    with pytest.raises(Exception, match="a run's name must be one plain folder name"):
        moves.run(moves.rename(runs / "calm-lynx", name))
    assert tree(runs) == before


def test_a_name_that_is_taken_is_not_overwritten(relab, runs):
    before = tree(runs)
    assert "is there already, and is not overwritten" in relab("rename", "sweep-1", "sweep-2", code=2)
    (runs / "empty").mkdir()
    assert "is there already" in relab("rename", "sweep-1", "empty", code=2), "rename(2) would replace an empty folder"
    assert tree(runs) == before


def test_a_parent_is_renamed_only_by_force(relab, runs):
    set_meta(runs / "sweep-1", parent="calm-lynx")
    assert "calm-lynx is the parent of 1 run (sweep-1)" in relab("rename", "calm-lynx", "new", code=2)
    relab("rename", "calm-lynx", "new", "--force")
    assert (runs / "new").is_dir()


def test_a_cell_of_an_experiment_keeps_its_place(relab, runs):
    (runs.parent / "experiment.yaml").write_text("question: why\n")
    assert "belongs to the experiment" in relab("rename", "sweep-1", "new", code=2)
    assert "belongs to the experiment" in relab("archive", "sweep-1", code=2)
    assert "runs it anew when it is called again" in relab("delete", "sweep-1")


def test_archive_and_back(relab, runs):
    before = tree(runs)
    relab("archive", "sweep-*")
    assert names(relab) == ["brave-otter", "calm-lynx"]
    assert names(relab, "--archived") == ["sweep-1", "sweep-2"]
    assert "2 runs archived (--archived)" in relab()
    assert "in the archive already" in relab("archive", "sweep-1", code=2)
    relab("tag", "old", "sweep-1")
    relab("untag", "old", "sweep-1")
    relab("unarchive", "sweep-*")
    assert tree(runs) == before
    assert not (runs / ".archive").exists()


def test_delete_undo_purge(relab, runs, monkeypatch):
    before = tree(runs)
    out = relab("delete", "sweep-1", "calm-lynx")
    assert "relab runs undo sweep-1" in out
    assert names(relab) == ["brave-otter", "sweep-2"]
    assert "2 in the trash (relab runs undo, relab runs purge)" in relab()
    assert "calm-lynx: back at" in relab("undo"), "the last one first"
    assert "sweep-1: back at" in relab("undo", "sweep-1")
    assert tree(runs) == before
    assert not (runs / ".trash").exists()
    assert "nothing was deleted" in relab("undo")
    relab("delete", "sweep-1")
    assert "nothing was removed: add --yes" in relab("purge"), "nobody is there to answer"
    assert "sweep-1: removed" in relab("purge", "--yes")
    assert not (runs / ".trash").exists()
    assert "no deleted run `sweep-1`" in relab("undo", "sweep-1", code=2)


def test_runs_deleted_within_one_millisecond_keep_their_order(runs):
    for name in reversed(NAMES):  # entries are named by time, then id: one stamp for two would sort them by id
        set_meta(runs / name, id=f"{NAMES.index(name):012x}")
        list(moves.delete(runs / name))
    gone = moves.in_trash([runs / moves.TRASH], [], runs)
    assert [run.name for run in gone] == list(reversed(NAMES))
    assert len({run.at for run in gone}) == len(NAMES)


def test_undo_does_not_overwrite_a_run_that_took_the_place(relab, runs):
    relab("delete", "sweep-1")
    make(runs / "sweep-1", (99.0,))
    assert "is there already, and is not overwritten" in relab("undo", code=2)
    assert [row["outcome"] for row in listed(relab, "--match", "sweep-1")] == [99.0]
    relab("rename", "sweep-1", "other")
    relab("undo")
    assert names(relab, "--match", "other|sweep-1") == ["other", "sweep-1"]


def test_an_archived_run_is_deleted_and_comes_back_to_the_archive(relab, runs):
    relab("archive", "sweep-1")
    relab("delete", "sweep-1")
    assert names(relab, "--archived") == []
    relab("undo")
    assert names(relab, "--archived") == ["sweep-1"]


def test_a_manifest_cannot_lead_elsewhere(relab, runs, tmp_path):
    relab("delete", "sweep-1")
    (manifest,) = (runs / ".trash").glob("*/manifest.json")
    for origin in ("../escaped", "/tmp/escaped", "brave-otter/inside", "..", ".archive/../../x"):
        manifest.write_text(json.dumps({"name": "sweep-1", "origin": origin, "at": "2026", "id": "x"}))
        assert "must name a place beside the trash" in relab("undo", code=2), origin
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


DAMAGED = {
    "no origin": '{"schema": 1, "name": "sweep-1", "origin": "", "at": "2026-11-16T10:00:00.000Z", "id": "x"}',
    "no name": '{"schema": 1, "name": "", "origin": ""}',
    "cut": '{"schema": 1, "na',
    "none": "",
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_run_whose_entry_does_not_say_where_it_lay_is_listed_and_put_where_one_says(damage, relab, runs):
    before = tree(runs / "sweep-1")
    relab("delete", "sweep-1")
    (manifest,) = (runs / ".trash").glob("*/manifest.json")
    manifest.unlink() if damage == "none" else manifest.write_text(DAMAGED[damage])
    assert "in the trash: sweep-1" in relab("undo", "nobody", code=2)
    assert "sweep-1  " in relab("purge")
    out = relab("undo", code=2)
    assert f"{manifest} must name a place beside the trash, but has 'none'" in out
    assert f"`relab runs undo {manifest.parent.name} --to FOLDER` puts the run where you say" in out
    assert "is no folder" in relab("undo", "--to", str(runs / "missing" / "x"), code=2)
    assert "is there already" in relab("undo", "--to", str(runs / "sweep-2"), code=2)
    assert f"back at {runs / 'found'}" in relab("undo", manifest.parent.name, "--to", str(runs / "found"))
    assert tree(runs / "found") == before
    assert not (runs / ".trash").exists()


def test_to_takes_one_run(relab, runs):
    relab("delete", "sweep-1", "sweep-2")
    assert "--to takes one run at a time, but got 2" in relab("undo", "sweep-1", "sweep-2", "--to", "x", code=64)


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
@pytest.mark.parametrize("verb", [("tag", "mine"), ("untag", "mine"), ("star",), ("note",)], ids=lambda words: words[0])
def test_labels_that_are_a_link_are_refused_and_its_target_stays(verb, there, relab, runs, tmp_path):
    target = tmp_path / "precious.json"
    if there:
        target.write_text('{"tags": ["mine"]}')
    link = runs / "sweep-1" / "labels.json"
    link.symlink_to(target)
    words = ("note", "sweep-1", "text") if verb == ("note",) else (*verb, "sweep-1")
    out = relab(*words, code=2)
    assert f"sweep-1 was not labelled: {link} is a link to {target}" in out
    assert link.is_symlink()
    assert (target.read_text() if there else target.exists()) == ('{"tags": ["mine"]}' if there else False)


# ---- What is not touched


@pytest.mark.parametrize("words", [("rename", "sweep-1", "new"), ("archive", "sweep-1"), ("delete", "sweep-1")])
def test_a_running_run_is_left_where_it_is(relab, runs, words):
    set_meta(runs / "sweep-1", status="running", heartbeat=now())
    before = tree(runs)
    assert "sweep-1 is running: its last heartbeat was" in relab(*words, code=2)
    assert tree(runs) == before
    relab("tag", "live", "sweep-1")


@pytest.mark.parametrize("words", [("rename", "sweep-1", "new"), ("archive", "sweep-1"), ("delete", "sweep-1")])
def test_a_run_that_a_process_writes_is_left_where_it_is_whatever_its_heartbeat(relab, runs, words):
    with Record.open(runs / "sweep-1"):
        assert "is being written by another process" in relab(*words, code=2)
    assert relab(*words)


def test_a_run_cannot_be_resumed_while_it_is_moved(runs):
    steps = moves.delete(runs / "sweep-1")
    next(steps)
    with pytest.raises(RecordError, match="being written by another process"):
        Record.open(runs / "sweep-1")
    steps.close()
    Record.open(runs / "sweep-1").close()


@pytest.mark.parametrize("words", [("rename", "sb3", "new"), ("archive", "sb3"), ("delete", "sb3")])
def test_runs_of_other_tools_are_labelled_in_the_cache_and_never_moved(relab, runs, words):
    (runs / "sb3").mkdir()
    (runs / "sb3" / "progress.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n100,1.5\n")
    before = tree(runs)
    assert "was written by another tool (sb3)" in relab(*words, code=2)
    assert "(in your cache folder)" in relab("tag", "theirs", str(runs / "sb3"))
    assert names(relab, "--tag", "theirs") == ["sb3"]
    relab("untag", "theirs", "sb3")
    assert names(relab, "--tag", "theirs") == []
    assert tree(runs) == before


def test_a_folder_of_several_runs_is_not_one_run(relab, runs):
    assert "must be one run, but holds 4" in relab("star", str(runs), code=64)


def test_one_that_refuses_does_not_stop_the_others(relab, runs):
    set_meta(runs / "sweep-1", status="running", heartbeat=now())
    out = relab("archive", "sweep-*", code=2)
    assert "sweep-2: archived" in out
    assert "sweep-1 was not archived" in out


def test_a_link_is_no_run_folder(runs, tmp_path):
    (runs / "link").symlink_to(runs / "sweep-1")
    with pytest.raises(RecordError, match="is a link"):
        moves.run(moves.delete(runs / "link"))
    assert (runs / "sweep-1").is_dir()


# ---- Killed between two steps

KILL = """
import os, signal, sys
from pathlib import Path
from relab.runs import moves
what, folder, left = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
gone = moves.deleted(folder.parent / ".trash")
steps = {"rename": lambda: moves.rename(folder, "new"), "archive": lambda: moves.archive(folder),
         "unarchive": lambda: moves.unarchive(folder), "delete": lambda: moves.delete(folder),
         "undo": lambda: moves.undo(gone[0]), "purge": lambda: moves.purge(gone[0])}[what]()
for number, _ in enumerate(steps, 1):
    if number == left:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(what: str, folder: Path, after: int) -> bool:
    """Whether the process was killed after that many steps; False when the operation had fewer."""
    done = subprocess.run([sys.executable, "-c", KILL, what, str(folder), str(after)], capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_a_rename_that_was_killed_is_explained_and_then_ended_or_forgotten(relab, runs, after):
    assert killed("rename", runs / "sweep-1", after)
    (name,) = [name for name in names(relab) if name in ("sweep-1", "new")]
    assert name == ("sweep-1" if after == 1 else "new")
    if after < 4:
        assert f"{name}: a rename to new was cut short; the next rename, tag or move ends it" in relab()
        assert "cut short" in relab("star", "brave-otter")
    assert "cut short" not in relab()
    assert read_json(runs / name, "meta.json")["name"] == name
    assert labels.read(runs / name / "labels.json").renaming == ""
    assert labels.read(runs / name / "labels.json").formerly == (("sweep-1",) if name == "new" else ())


@pytest.mark.parametrize("what", ["archive", "delete"])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_move_that_was_killed_has_happened_or_not(relab, runs, what, after):
    before = tree(runs / "sweep-1")
    killed(what, runs / "sweep-1", after)
    there = "sweep-1" in names(relab)
    if not there and what == "archive":
        relab("unarchive", "sweep-1")
    elif not there:
        relab("undo", "sweep-1")
    assert tree(runs / "sweep-1") == before
    relab("star", "brave-otter")  # any operation mends
    assert not (runs / ".trash").exists(), "an entry without its run is cleared away"
    relab("delete", "sweep-1")
    assert "sweep-1" not in names(relab)


@pytest.mark.parametrize("after", [1, 2])
def test_an_undo_that_was_killed_leaves_the_run_in_its_place(relab, runs, after):
    before = tree(runs / "sweep-1")
    relab("delete", "sweep-1")
    assert killed("undo", runs / "sweep-1", after)
    assert tree(runs / "sweep-1") == before
    relab("star", "brave-otter")
    assert not (runs / ".trash").exists()
    assert "sweep-1" in names(relab)


@pytest.mark.parametrize("after", [1, 2])
def test_a_purge_that_was_killed_is_ended_by_the_next_operation(relab, runs, after):
    relab("delete", "sweep-1")
    assert killed("purge", runs / "sweep-1", after)
    assert "no deleted run" in relab("undo", "sweep-1", code=2)
    assert not (runs / ".trash").exists()


def test_two_processes_that_delete_one_run_leave_one_entry(runs):
    code = (
        "import sys; from pathlib import Path; from relab.base.jsonl import RecordError; from relab.runs import moves\n"
        f"try:\n    moves.run(moves.delete(Path({str(runs / 'sweep-1')!r})))\nexcept RecordError:\n    sys.exit(3)"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert sorted(process.wait(120) for process in running) == [0, 3, 3]
    assert [gone.name for gone in moves.deleted(runs / ".trash")] == ["sweep-1"]
    assert len(os.listdir(runs / ".trash")) == 1


# ---- Disk


def test_prune_removes_what_is_neither_best_nor_last(relab, runs):
    checkpoints(runs / "sweep-1", (100, 200, 300, 400), best=200, last=400)
    checkpoints(runs / "sweep-2", (100,), best=100, last=100)
    before = tree(runs)
    out = relab("disk")
    assert out.splitlines()[1].split()[0] == "sweep-1"
    assert "relab runs prune frees 2 kB" in out
    assert "nothing was removed: add --yes" in relab("prune")
    assert tree(runs) == before
    relab("prune", "--yes")
    gone = {f"sweep-1/checkpoints/step-{step:012d}/weights.safetensors" for step in (100, 300)}
    assert tree(runs) == {key: value for key, value in before.items() if key not in gone}
    assert relab("prune", "--yes") == "nothing to remove\n"


def test_the_last_checkpoint_of_a_run_that_could_be_resumed_stays(relab, runs):
    checkpoints(runs / "sweep-1", (100, 200), best=100, last=200)
    set_meta(runs / "sweep-1", status="interrupted")
    assert relab("prune", "sweep-1", "--keep", "best", "--yes") == "nothing to remove\n"
    set_meta(runs / "sweep-1", status="finished")
    relab("prune", "sweep-1", "--keep", "best", "--yes")
    left = sorted(path.name for path in (runs / "sweep-1" / "checkpoints").iterdir())
    assert left == ["best.json", "step-000000000100"], "no pointer to what is gone"


def test_prune_leaves_alone_what_it_does_not_understand(relab, runs):
    checkpoints(runs / "sweep-1", (100, 200), best=100, last=200)
    (runs / "sweep-1" / "checkpoints" / "best.json").write_text("{")
    checkpoints(runs / "sweep-2", (100, 200), best=100, last=200)
    set_meta(runs / "sweep-2", status="running", heartbeat=now())
    before = tree(runs)
    out = relab("prune", "--yes")
    assert "sweep-1 is left alone: best.json cannot be read" in out
    assert "sweep-2 is left alone: sweep-2 is running" in out
    assert tree(runs) == before
    assert "`--keep` must be best, last or both" in relab("prune", "--keep", "first", code=64)


def test_every_verb_has_help_with_an_example(capsys):
    assert tuple(TABLE) == VERBS
    for verb in VERBS:
        assert main(["runs", verb, "--help"]) == 0
        out = capsys.readouterr().out
        assert f"usage: relab runs {verb}" in out
        assert f"  relab runs {verb}" in out.partition("Examples")[2]
