"""Is an entry that no longer holds marked as such, and does every later reading say so?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import made_up
from relab import cli
from relab.advise import tried
from relab.notebook import fence, log, superseding

REASON = "its start was solved [already]"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    made_up.run(root / "runs" / "base", 99.0, algo__lr=0.003)
    made_up.run(root / "runs" / "child", 150.0, {"parent": "base"}, algo__lr=0.01)
    made_up.answered(root / "experiments", "lr", "{a: {lr: 0.001}, b: {lr: 0.003}}", [100, 20])
    return root


@pytest.fixture
def here(bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Stand in a copy of it, with a log of three entries between a person's words."""
    monkeypatch.chdir(shutil.copytree(bench, tmp_path, dirs_exist_ok=True))
    Path("LOG.md").write_text("# Mine\n\nWhat I think.\n", encoding="utf-8")
    for name in ("base", "child", "experiments/lr"):
        relab("note", name, "--into", "LOG.md", capsys=capsys)
    return tmp_path


def relab(*words: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert cli.main(words) == code
    streams = capsys.readouterr()
    return streams.out if code == 0 else streams.err


def entry(name: str) -> log.Logged:
    return next(one for one in log.entries([Path("LOG.md")]) if one.facts.get("name") == name)


def test_it_is_marked_kept_when_renewed_and_taken_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("LOG.md").read_bytes()
    assert "superseded" in relab("note", "child", "--superseded", REASON, "--by", "base", capsys=capsys)
    marked = Path("LOG.md").read_bytes()
    assert b"What I think." in marked
    assert "> **Superseded** (" in marked.decode()
    assert f"; see {entry('base').id}" in log.plain(entry("child").text)
    assert entry("child").superseded == REASON
    assert not entry("child").edited
    assert "unchanged" in relab("note", "child", "--into", "LOG.md", capsys=capsys), "written anew it keeps its mark"
    assert "unchanged" in relab("note", "child", "--superseded", REASON, "--by", "base", capsys=capsys)
    assert "Superseded" in relab("note", "child", capsys=capsys), "printed it says so too"
    assert "valid again" in relab("note", "child", "--superseded", "", capsys=capsys)
    assert Path("LOG.md").read_bytes() == before


def test_every_later_reading_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("child", "lr"):
        relab("note", name, "--superseded", REASON, capsys=capsys)
    said = "superseded: its start was solved"
    assert said in relab("note", "--search", "lr", capsys=capsys)
    hits = json.loads(relab("note", "--search", "lr", "--json", capsys=capsys))["hits"]
    assert REASON in {hit["superseded"] for hit in hits}
    digest = relab("note", "--digest", "900w", capsys=capsys)
    assert digest.count(said) == 2, "the experiment's answer and the run"
    assert said in relab("note", "--families", capsys=capsys)
    earlier = [one for one in log.earlier(Path("experiments"), [Path("LOG.md")]) if one.superseded]
    assert len(earlier) == 2
    assert f"  superseded: {REASON}" in tried.lines(earlier[0].diff, earlier)
    relab("note", "child", "--into", "notes", capsys=capsys)
    relab("note", "child", "--superseded", REASON, "--into", "notes", capsys=capsys)
    relab("note", "base", "--into", "notes", capsys=capsys)
    assert said in Path("notes/index.md").read_text(encoding="utf-8")


def test_a_superseded_answer_comes_after_one_that_holds() -> None:
    diff = {"algo.lr": {"from": 1, "to": 2}}
    old = tried.Tried(diff, tried.NO, "No.", (5, 5), "a", "2026-01-02", {}, superseded=REASON)
    new = tried.Tried(diff, tried.OPEN, "Cannot tell.", (5, 5), "b", "2026-01-01", {})
    assert tried.matching(diff, {}, [old, new]) == [new, old]


def test_an_entry_that_somebody_edited_stays_theirs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("LOG.md").read_text(encoding="utf-8").replace("### Record", "My own view.\n\n### Record", 1)
    Path("LOG.md").write_text(text, encoding="utf-8")
    relab("note", "base", "--superseded", REASON, capsys=capsys)
    assert entry("base").edited
    assert entry("base").superseded == REASON
    assert "My own view." in Path("LOG.md").read_text(encoding="utf-8")


def test_line_ends_and_chinese(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relab("note", "base", "--into", "zh.md", "--lang", "zh", capsys=capsys)
    Path("zh.md").write_bytes(Path("zh.md").read_bytes().replace(b"\n", b"\r\n"))
    relab("note", "base", "--superseded", "起点已解决", "--into", "zh.md", capsys=capsys)
    text = Path("zh.md").read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n")
    assert "> **已被取代**" in text.decode()
    assert not next(iter(fence.blocks(text))).edited


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("nobody", "--superseded", "x"), 2, "is none of its 3 entries"),
        (("child", "--superseded", "x", "--by", "child"), 64, "an entry cannot take its own place"),
        (("child", "--by", "base"), 64, "--by goes with --superseded"),
        (("--superseded", "x", "--families"), 64, "--superseded marks one entry"),
    ],
)
def test_what_cannot_be_marked(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, told: str
) -> None:
    before = Path("LOG.md").read_bytes()
    assert told in relab("note", *words, capsys=capsys, code=code)
    assert Path("LOG.md").read_bytes() == before


def test_a_reason_is_text_and_no_markup(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reason = "<b>x</b> --> <!-- relab:end child -->\nnext line"
    relab("note", "child", "--superseded", reason, capsys=capsys)
    assert entry("child").superseded == " ".join(reason.split())
    assert "<b>" not in Path("LOG.md").read_text(encoding="utf-8")
    assert superseding.pick(log.entries([Path("LOG.md")]), "child").id == entry("child").id
