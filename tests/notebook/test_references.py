"""Do numbers that name their run follow the record, and do they say so when they cannot?"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import made_up
from relab import cli
from relab.notebook import fence, references
from relab.notebook.references import Records, Ref, like, parse, same
from relab.notebook.words import words

OTTER = "<!--relab:run=otter metric=eval/return_det-->"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made_up.run(tmp_path / "runs" / "otter", 487.25)
    return tmp_path


def relab(*words_: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert cli.main(words_) == code
    return capsys.readouterr().out


# ---- The value as it was written


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("487.2", 455.14, "455.1"), ("0.85", 0.7, "0.70"), ("85%", 0.7, "70%"), ("84.7%", 0.7, "70.0%"),
        ("+3.2", 4.0, "+4.0"), ("+3.2", -4.0, "-4.0"), ("1,234.5", 9876.54, "9,876.5"), ("1234.5", 9876.54, "9876.5"),
        ("487", 455.14, "455"), ("9", 3.14159, "3.142"), ("1e-3", 0.002, "0.002"), ("?", 12.0, "12"),
    ],
)  # fmt: skip
def test_a_new_value_looks_like_the_old(old: str, value: float, new: str) -> None:
    assert like(old, value) == new
    assert same(new, value)


def test_rounding_is_no_change() -> None:
    assert same("487.2", 487.23)
    assert same("487", 487.25)
    assert same("49%", 0.4872)
    assert not same("487.2", 487.28)
    assert not same("9", 9.4)


# ---- The comment


@pytest.mark.parametrize(
    "name", ["otter", "q/runs/lr=0.1-s0", "学习率-实验", "a b", "--> x", "a--b-", "<script>", "50%"]
)
def test_any_name_survives_in_a_comment_and_cannot_end_it(name: str) -> None:
    text = Ref(name, "eval/return_det", "step", {"step": "100"}).comment()
    assert text.count("-->") == 1
    assert text.endswith("-->")
    match = references.ANCHOR.search(f"12{text}".encode())
    assert match is not None
    assert parse(match["pairs"]) == Ref(name, "eval/return_det", "step", {"step": "100"})
    assert f"12{text}" in fence.render("one", f"12{text}").decode(), "it may stand in an entry"


def test_comments_that_relab_did_not_write_are_left_alone(here: Path) -> None:
    text = b"9<!--relab:run=otter metric=eval/return_det evil=1--> 9<!--relab:run=otter--> 9<!-- relab:run=otter -->"
    renewed, changes = references.refresh(text, Records([here / "runs"]), words("en"))
    assert (renewed, changes) == (text, [])


@pytest.mark.parametrize("name", ["../runs/otter", "/etc", "..", "runs/../../x", "C:\\x", ""])
def test_a_reference_leads_nowhere_else(here: Path, name: str) -> None:
    assert Records([here / "runs"]).folder(name) is None


def test_a_link_out_of_the_folder_is_not_followed(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = made_up.run(tmp_path_factory.mktemp("elsewhere") / "fox", 1.0)
    (here / "runs" / "fox").symlink_to(outside)
    assert Records([here / "runs"]).value(Ref("fox", "eval/return_det")) == "gone"


# ---- What a number may be


@pytest.mark.parametrize(
    ("ref", "value"),
    [
        (Ref("otter", "eval/return_det"), 487.25),
        (Ref("otter", "eval/return_det", "first"), 10.0),
        (Ref("otter", "eval/return_det", "best"), 487.25),
        (Ref("otter", "eval/return_det", "step", {"step": "2047"}), 10.0),
        (Ref("otter", "eval/return_det", "step", {"step": "x"}), "no_number"),
        (Ref("otter", "eval/return_det", "mean_last_m", {"m": "2"}), 248.625),
        (Ref("otter", "eval/return_det", "first_step_reaching", {"reach": "400"}), 2048.0),
        (Ref("otter", "eval/return_det", "first_step_reaching"), "no_number"),
        (Ref("otter", "eval/return_det", "success_rate"), "no_number"),
        (Ref("otter", "nothing/such"), "no_number"),
        (Ref("otter", "eval/return_det", "whenever"), "no_number"),
        (Ref("fox", "eval/return_det"), "gone"),
    ],
)
def test_the_number_of_a_reference(here: Path, ref: Ref, value: float | str) -> None:
    assert Records([here / "runs"]).value(ref) == value


# ---- A log


LOG = f"""# Mine

It ended at {{{{otter eval/return_det final}}}}, was best at 500.0{OTTER}; `{{{{otter eval/return_det}}}}` is code.

```
487.2{OTTER} stays as it is
```
"""


def test_wishes_are_filled_values_renewed_and_code_is_left_alone(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = here / "LOG.md"
    log.write_text(LOG)
    out = relab("note", "LOG.md", "--check", capsys=capsys, code=1)
    assert log.read_text() == LOG, "--check writes nothing"
    assert "LOG.md:3: 500.0 (stale: was 500.0, the record now says 487.2)" in out
    assert "LOG.md:3: to be filled in: 487.2" in out
    assert "2 numbers, 2 stale" in out
    relab("note", "--refresh", "LOG.md", capsys=capsys)
    want = LOG.replace("{{otter eval/return_det final}},", f"487.2{OTTER},").replace("500.0", "487.2")
    assert log.read_text() == want
    assert relab("note", "LOG.md", "--check", capsys=capsys) == "2 numbers, 0 stale\n"
    before = log.stat().st_mtime_ns
    relab("note", "LOG.md", "--refresh", capsys=capsys)
    assert log.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "person", ["café\r\n".encode("latin-1"), b"\xef\xbb\xbfone\r\n", "学习率\n".encode(), b"no end"]
)
def test_a_persons_bytes_stay(here: Path, person: bytes) -> None:
    text = person + f"500{OTTER}".encode() + person
    renewed, _ = references.refresh(text, Records([here / "runs"]), words("en"))
    assert renewed == person + f"487{OTTER}".encode() + person


@pytest.mark.parametrize(("lang", "mark"), [("en", " (stale: the run is not here)"), ("zh", "（过期：找不到该运行）")])
def test_a_run_that_is_gone_makes_its_numbers_visibly_stale_until_it_is_back(here: Path, lang: str, mark: str) -> None:
    text = f"500{OTTER}".encode()
    gone, changes = references.refresh(text, Records([here]), words(lang))
    assert gone.decode() == f"500{mark}{OTTER}"
    assert [c.state for c in changes] == ["gone"]
    assert references.refresh(gone, Records([here]), words("en"))[0] == gone or lang == "zh"
    back, changes = references.refresh(gone, Records([here / "runs"]), words(lang))
    assert back.decode() == f"487{OTTER}"


def test_an_entry_is_renewed_whole_and_one_that_was_edited_keeps_its_words(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    relab("note", "otter", "--into", "LOG.md", capsys=capsys)
    log = here / "LOG.md"
    first = log.read_text()
    assert first.count(f"487.2{OTTER}") == 2
    assert relab("note", "LOG.md", "--check", "--json", capsys=capsys)
    shutil.rmtree(here / "runs" / "otter")
    made_up.run(here / "runs" / "otter", 455.1)
    out = relab("note", "LOG.md", "--refresh", capsys=capsys)
    assert "487.2 -> 455.1" in out
    assert "written anew" in out
    assert "487.2" not in log.read_text()
    assert "10 → 455.1" in log.read_text(), "the sentence too"
    assert not fence.blocks(log.read_bytes())[0].edited
    log.write_text(first.replace("**Answer.**", "**My answer.**"))
    out = relab("note", "LOG.md", "--refresh", capsys=capsys)
    assert "written anew" not in out
    text = log.read_text()
    assert "**My answer.** Learned: 10 → 487.2" in text, "a person's words stay"
    assert text.count(f"455.1{OTTER}") == 2, "and the numbers that name their run are true"
    assert fence.blocks(log.read_bytes())[0].edited


def test_a_strangers_name_makes_no_wish(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "{{otter eval/return_det final}} <!--relab:run=otter metric=eval/return_det--> | x"
    made_up.run(here / "runs" / "evil", 1.0, {"intent": evil, "command": f"1{OTTER}\n<!-- relab:facts {{}} -->"})
    relab("note", "evil", "--into", "LOG.md", capsys=capsys)
    rows = json.loads(relab("note", "LOG.md", "--check", "--json", capsys=capsys))["references"]
    assert {row["ref"] for row in rows} == {"evil eval/return_det final"}
    text = (here / "LOG.md").read_text()
    assert "{{otter" not in re.sub(r"<!-- relab:facts .*", "", text)
    assert text.count("<!-- relab:facts") == 1


def test_no_log_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["note", "LOG.md", "--refresh"]) == 2
    assert "there is no log LOG.md" in capsys.readouterr().err
    (here / "LOG.md").write_text("nothing\n")
    assert cli.main(["note", "LOG.md"]) == 64
    assert "LOG.md is a log: --refresh" in capsys.readouterr().err
    assert "names its run" in relab("note", "LOG.md", "--check", capsys=capsys)
