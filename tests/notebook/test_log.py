"""Entries in two languages, in one log or in a folder: are they found, summed up and told apart?"""

from __future__ import annotations

import datetime
import json
import re
import shutil
import string
from pathlib import Path

import pytest

import made_up
from relab import cli
from relab.base.jsonl import read_json
from relab.comparison import answer
from relab.comparison.outcomes import Outcome
from relab.notebook import digest, families, fence, finish, folder, log, search, sentences
from relab.notebook.page import Entry, RecordSection, md
from relab.notebook.words import LANGUAGES, words
from relab.record.run_folder import append_event_to
from where import TESTS

GOLDEN = TESTS / "notebook" / "golden"
LAST = datetime.date(2026, 11, 16)


def relab(*words_: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert cli.main(words_) == code
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, a child from a proposal, a child of two changes, one with another net; an answered experiment."""
    root = tmp_path_factory.mktemp("made")
    runs = root / "runs"
    for seed in range(3):
        made_up.run(runs / f"base-s{seed}", 99.0 + seed, seed=seed, algo__lr=0.003)
    diff = {"algo.lr": {"from": 0.003, "to": 0.01}}
    facts = {"parent": "base-s0", "intent": "clip share was low [algo.lr 0.003 -> 0.01]"}
    made_up.run(runs / "child", 150.0, {**facts, "proposal": made_up.proposal(diff, 45.0, 30.0, 60.0)}, algo__lr=0.01)
    append_event_to(runs / "child", "gate", 1024, decision="hold", value=0.115)
    made_up.run(runs / "both", 80.0, {"parent": "base-s0"}, algo__lr=0.01, algo__clip=0.4)
    made_up.run(runs / "net", 90.0, {"parent": "base-s0"}, algo__lr=0.003, algo__hidden=[32])
    made_up.answered(root / "experiments", "lr", "{a: {lr: 0.001}, b: {lr: 0.003}}", [100, 20])
    return root


@pytest.fixture
def here(bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a copy of it."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(bench, tmp_path, dirs_exist_ok=True))


# ---- Languages


def holes(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def test_languages_have_the_same_keys_and_placeholders() -> None:
    english, *others = (words(code).sentences for code in LANGUAGES)
    for other in others:
        assert list(other) == list(english), "in the same order, so that they can be read side by side"
        assert {key: holes(text) for key, text in other.items()} == {key: holes(text) for key, text in english.items()}


def test_english_answers_are_the_ones_the_experiment_printed(tmp_path: Path) -> None:
    """In every way an answer can end, and for every outcome it can be about."""
    cases = []
    for at in ("final", "mean_last_m", "success_rate", "first_step_reaching"):
        for other in (
            [20, 21, 22, 23, 24],
            [100, 102, 103, 99, 101],
            [300, 301, 302, 303, 304],
            [100, 90, 160, 40, 210],
        ):
            arms = [[Outcome(v / 400 if at == "success_rate" else v, i, "r", True, 20) for i, v in enumerate(x)]
                    for x in ([100, 101, 102, 103, 104], other)]  # fmt: skip
            effect = 0.05 if at == "success_rate" else 5
            cases.append(answer.answer(*arms, effect, at=at, m=3, reach=60.0, comparisons=2))
            cases.append(answer.answer(*arms, 0.0, at=at, m=3, reach=60.0))
            cases.append(answer.answer(arms[0][:2], arms[1][:2], effect, at=at, m=3, reach=60.0))
    cases.append(answer.answer(*arms, 5, paired=True))
    better = [[Outcome(v + i, i, by_end=True) for i in range(8)] for v in (100.0, 120.0)]
    cases += [answer.answer(*better, effect, metric="score") for effect in (5, 19, 22)]
    assert [x.shows for x in cases[-3:]] == ["smallest effect", "above 0", "above 0"]
    assert cases[-1].verdict == "cannot tell yet"
    assert {x.verdict for x in cases} == {"yes", "no", "cannot tell yet"}
    assert [sentences.answer(words("en"), x.to_dict()) for x in cases] == [x.text for x in cases]
    assert all(sentences.answer(words("zh"), x.to_dict()) for x in cases)


def test_an_answer_that_cannot_be_is_worded_whatever_its_reason() -> None:
    """It ended in a KeyError: the entry of an experiment in which all runs came to one number could not be written."""

    def arm(*values: float, reached: bool = True) -> list[Outcome]:
        return [Outcome(value, seed, reached=reached, grid=500.0) for seed, value in enumerate(values)]

    same, full, noisy = arm(*[7.0] * 5), arm(500, 499, 500, 500, 498), arm(1, 2, 3, 4, 5)
    at = {"at": "first_step_reaching", "reach": 40.0}
    replies = [
        answer.answer(same, same, 1),
        answer.answer(full, full, 1, bounds=(0.0, 500.0)),
        answer.answer(arm(*[9e4] * 5, reached=False), arm(*[9e4] * 5, reached=False), 1, **at),
        answer.answer(arm(*[1000.0] * 5), arm(*[1000.0] * 4, 1500), 1, **at),
        answer.answer(noisy, noisy, 1, looked_at=[[6, 6]], looks=1),
    ]
    assert [x.reason for x in replies] == ["ties", "ceiling", "unreached", "grid", "spent"]
    assert [sentences.answer(words("en"), x.to_dict()) for x in replies] == [x.text for x in replies]
    assert all("nan" not in sentences.answer(words("zh"), x.to_dict()) for x in replies)


@pytest.mark.parametrize(("name", "lang"), [("child", "en"), ("child", "zh"), ("lr", "en"), ("lr", "zh")])
def test_golden_entries(here: Path, name: str, lang: str, capsys: pytest.CaptureFixture[str]) -> None:
    """To renew: `relab note` in the fixture's folder; read every line of the difference."""
    out = relab("note", name, "--lang", lang, capsys=capsys)
    golden = GOLDEN / f"entry-{name}-{lang}.md"
    assert plain(out) == plain(golden.read_text(encoding="utf-8"))


def plain(text: str) -> str:
    """Without the rules that had no data: their number grows with the rules there are."""
    return re.sub(r"(not checked: |未检查 ).*", r"\1...", text)


def test_an_entry_keeps_its_language_and_a_new_one_takes_the_logs(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_ = here / "LOG.md"
    relab("note", "child", "--into", "LOG.md", "--lang", "zh", capsys=capsys)
    assert "**结论。**" in log_.read_text(encoding="utf-8")
    again = relab("note", "child", "--into", "LOG.md", capsys=capsys)
    assert again.endswith("unchanged\n")
    relab("note", "both", "--into", "LOG.md", capsys=capsys)
    assert [one.lang for one in log.entries([log_])] == ["zh", "zh"]
    relab("note", "both", "--into", "LOG.md", "--lang", "en", capsys=capsys)
    relab("note", "child", "--into", "LOG.md", capsys=capsys)
    assert sorted(one.lang for one in log.entries([log_])) == ["en", "zh"]


# ---- A folder


def test_a_folder_has_a_dated_file_for_each_entry_and_an_index(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("child", "both", "lr"):
        relab("note", name, "--into", "notes/", capsys=capsys)
    names = sorted(path.name for path in (here / "notes").iterdir())
    assert names == ["2026-11-16-both.md", "2026-11-16-child.md", "2026-11-16-lr.md", "index.md"]
    index = (here / "notes" / "index.md").read_text()
    assert "| 2026-11-16 | [Does it help?](<2026-11-16-lr.md>) | no | cartpole-v1.ppo.f8b7 |" in index
    (here / "notes" / "2026-11-16-both.md").rename(here / "notes" / "mine.md")
    assert "notes/mine.md: entry" in relab("note", "both", "--into", "notes", capsys=capsys)
    assert "(<mine.md>)" in (here / "notes" / "index.md").read_text()
    assert len(log.entries([here / "notes"])) == 3
    (here / "notes" / "index.md").write_text(index.replace("| no |", "| NO! |"))
    relab("note", "child", "--into", "notes", capsys=capsys)
    assert "| NO! |" in (here / "notes" / "index.md").read_text(), "an index that somebody edited is theirs"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("brave-otter", "2026-11-16-brave-otter.md"), ("2026-11-16-able-adder", "2026-11-16-able-adder.md"),
        ("学习率", "2026-11-16-abc123.md"), ("../../x", "2026-11-16-x-abc123.md"),
        ("a/b c", "2026-11-16-a-b-c-abc123.md"),
        ("<!-- x", "2026-11-16-x-abc123.md"),
    ],
)  # fmt: skip
def test_file_names_are_plain(name: str, file: str) -> None:
    written = Entry("abc123", "en", "t", [], [], [], "", [], [], [], RecordSection(), [], [], "", name, "2026-11-16")
    assert folder.file_name(written) == file


# ---- Hostile text


EVIL = "x --> <!-- relab:end a --> <script>alert(1)</script> | **b** [c](d) ## e {{child eval/return_det}} 学"


def test_names_and_intents_of_strangers_stay_text(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"intent": EVIL, "parent": "base-s0", "command": EVIL, "tried": [{"text": EVIL, "where": EVIL}]}
    made_up.run(here / "runs" / "a--b <!-- c", 1.0, facts, algo__lr=0.01)
    for lang in ("en", "zh"):
        for _ in range(2):
            relab("note", "runs/a--b <!-- c", "--into", "LOG.md", "--lang", lang, capsys=capsys)
        text = (here / "LOG.md").read_text(encoding="utf-8")
        assert len(fence.blocks(text.encode())) == 1
        outside = "".join(text.split("```")[::2])  # code is shown as it is, and stays code
        assert "<script>" not in outside
        assert "{{child" not in outside.partition("<!-- relab:facts")[0]
        (one,) = log.entries([here / "LOG.md"])
        assert one.facts["kind"] == "run"
        assert json.loads(log.FACTS.search(text)[1]) == one.facts
    assert relab("note", "LOG.md", "--check", capsys=capsys).endswith(" 0 stale\n")


def test_facts_are_the_last_line_alone() -> None:
    line = log.facts_line({"a": "--> <b>\n\u2028"})
    assert line.count("-->") == 1
    assert "\n" not in line
    assert log.facts_of(f"text\n{line}\n") == {"a": "--> <b>\n\u2028"}
    assert log.facts_of(f"{line}\ntext\n") == {}
    assert log.facts_of("<!-- relab:facts {broken} -->") == {}


@pytest.mark.parametrize(
    "facts", ['{"answers": 3, "opens": "x", "findings": {}, "score": {"diff": 1}, "runs": "many"}']
)
def test_facts_that_somebody_edited_break_nothing(tmp_path: Path, facts: str) -> None:
    text = fence.render("one", f"## 2026-11-16 Title\n\n<!-- relab:facts {facts} -->")
    (tmp_path / "LOG.md").write_bytes(text)
    entries = log.entries([tmp_path / "LOG.md"])
    assert digest.markdown(digest.digest(entries, 7, LAST), words("en")).startswith("# Digest")
    assert families.tree(entries) == []
    assert log.of_log([tmp_path / "LOG.md"]) == []


def test_entries_without_facts_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    body = "## 2026-11-15 Is A better?\n\n**Answer.** No: b is worse than a, -80 \\[-82, -77\\].\n"
    (tmp_path / "LOG.md").write_bytes(fence.render("old", body))
    (one,) = log.entries([tmp_path / "LOG.md"])
    assert (one.date, one.verdict, one.title) == ("2026-11-15", "no", "2026-11-15 Is A better?")
    assert one.answers[0]["text"] == "No: b is worse than a, -80 [-82, -77]."


# ---- Search


OWN = "# 想法\n\n学习率太高，策略崩溃。\nＬＲ was too high.\n\n## Later\n\nnothing\n"


def test_search_finds_entries_and_own_text_in_any_script(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "LOG.md").write_text(OWN, encoding="utf-8")
    relab("note", "child", "--into", "LOG.md", "--lang", "zh", capsys=capsys)
    relab("note", "lr", "--into", "LOG.md", "--lang", "en", capsys=capsys)
    out = relab("note", "--search", "学习率", "策略", capsys=capsys)
    assert out.startswith("LOG.md:1  (own text)  想法\n")
    assert "  > 3: 学习率太高，策略崩溃。" in out
    assert "nothing" not in out
    assert "LOG.md:1" in relab("note", "--search", "lr was", capsys=capsys), "full-width letters are letters"
    hits = json.loads(relab("note", "--search", "命中", "--json", capsys=capsys))["hits"]
    assert [(hit["run"], hit["verdict"], hit["date"]) for hit in hits] == [("child", "learned", "2026-11-16")]
    rows = {row["line"]: row["text"] for row in hits[0]["lines"]}
    file = (here / "LOG.md").read_text(encoding="utf-8").split("\n")
    assert all(log.plain(file[number - 1]) == text for number, text in rows.items()), "line numbers are the file's"
    assert "[no]" in relab("note", "--search", "Does it HELP", capsys=capsys)
    assert "nothing in the log holds" in relab("note", "--search", "zzz", capsys=capsys)
    assert "schema" not in relab("note", "--search", "algo.lr", capsys=capsys), "facts are not searched"


def test_search_by_pattern(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relab("note", "lr", "--into", "LOG.md", capsys=capsys)
    assert "entry lr." in relab("note", "--search", r"worse than \w,", "--regex", capsys=capsys)
    assert cli.main(["note", "--search", "(", "--regex"]) == 64
    assert "is none" in capsys.readouterr().err
    assert cli.main(["note", "lr", "--search", "x"]) == 64
    assert cli.main(["note", "--digest", "7d", "--search", "x"]) == 64
    assert cli.main(["note", "--regex", "child"]) == 64
    assert cli.main(["note"]) == 64


def test_one_word_must_not_be_in_the_same_line(tmp_path: Path) -> None:
    (tmp_path / "LOG.md").write_text("# a\none\n\ntwo\n# b\none\n")
    assert [hit.entry.title for hit in search.search([tmp_path / "LOG.md"], ["one", "two"])] == ["a"]


# ---- Digest and families


def test_a_digest_counts_what_happened(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("child", "both", "net", "lr"):
        relab("note", name, "--into", "LOG.md", capsys=capsys)
    out = relab("note", "--digest", "7d", "--until", "2026-11-20", capsys=capsys)
    assert out.startswith("# Digest of 2026-11-14 to 2026-11-20 (entries: 4)\n\n- runs: 13, hours of computing: 0\n")
    assert "- questions: 1 (yes: 0, no: 1, cannot tell yet: 0)\n" in out
    assert "- **no** 2026-11-16 Does it help? (LOG.md:" in out
    assert "## Confounded\n\n- 2026-11-16 both (LOG.md:" in out
    assert "measured +50 [+45.03, +54.97] (3 and 1 seeds): hit" in out
    assert relab("note", "--digest", "3d", "--until", "2026-11-20", capsys=capsys).startswith(
        "No entry from 2026-11-18"
    )
    summary = json.loads(relab("note", "--digest", "2w", "--until", "2026-11-16", "--json", capsys=capsys))
    assert (summary["yes"], summary["no"], summary["runs"], len(summary["entries"])) == (0, 1, 13, 4)
    assert len(summary["families"]) == 2
    chinese = relab("note", "--digest", "7d", "--until", "2026-11-16", "--lang", "zh", capsys=capsys)
    assert "1 个问题：0 是，1 否，0 尚无法判断" in chinese
    assert "：命中" in chinese
    assert cli.main(["note", "--digest", "7x"]) == 64
    assert cli.main(["note", "--digest", "7d", "--until", "soon"]) == 64


def test_what_is_open_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.answered(here / "experiments", "few", "{a: {lr: 0.001}, b: {gamma: 0.9}}", [100, 20], 2, "Is it enough?")
    relab("note", "few", "--into", "LOG.md", capsys=capsys)
    out = relab("note", "--digest", "7d", "--until", "2026-11-16", capsys=capsys)
    assert "## Open\n\n- 2026-11-16 Is it enough? (LOG.md:1): No answer under 5 seeds a variant" in out
    assert "## Confounded" in out, "b differs from a in two settings"


def test_families_are_a_tree(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("base-s0", "child", "both", "net"):
        relab("note", name, "--into", "LOG.md", capsys=capsys)
    (root,) = families.tree(log.entries([here / "LOG.md"]))
    assert [one.facts["name"] for one in root.entries] == ["base-s0", "child", "both"]
    (net,) = root.children
    assert net.why == "algo.hidden [64, 64] -> [32]"
    assert [one.facts["name"] for one in net.entries] == ["net"]
    out = relab("note", "--families", capsys=capsys)
    assert f"  - **2. {net.name} (entries: 1, 2026-11-16 to 2026-11-16)** (from {root.name}, because algo.hidden" in out
    assert "both (LOG.md:" in out
    assert "(Confounded)" in out
    tree = json.loads(relab("note", "--families", "--json", capsys=capsys))["families"]
    assert tree[0]["children"][0]["entries"][0]["title"] == "2026-11-16 net"


def test_marks_of_entries(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = relab("note", "both", capsys=capsys)
    assert "Confounded: 2 factors changed (algo.lr, algo.clip), the difference cannot be assigned to one." in both
    net = relab("note", "net", capsys=capsys)
    assert "New family: cartpole-v1.ppo." in net
    assert "because algo.hidden changed \\[64, 64\\] → \\[32\\]" in net or "changed [64, 64] → [32]" in net
    assert "One factor changed: algo.hidden" in net
    page = json.loads(relab("report", "both", "--json", capsys=capsys))
    assert page["config"]["marks"][0].startswith("confounded: 2 factors changed (algo.lr, algo.clip)")
    assert relab("report", "child", capsys=capsys)
    text = (here / "runs" / "child" / "report.md").read_text()
    assert "**Prediction:** eval/return_det +45" in text
    assert ": hit." in text
    assert "predicted: eval/return_det" in (here / "runs" / "child" / "report.html").read_text()


def test_an_experiments_entry_goes_where_and_how_the_log_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`relab experiment` with all its runs there writes its entry in the language of the log."""
    relab("note", "child", "--into", "notes", "--lang", "zh", capsys=capsys)
    kept = here / "experiments" / "lr" / "experiment.yaml"
    again = here / "lr.yaml"
    again.write_text(kept.read_text())
    out = relab("experiment", "lr.yaml", "--yes", "--log", "notes", capsys=capsys)
    assert "entry:  notes/2026-11-16-lr.md" in out
    assert "**结论。** 否：b 不如 a" in (here / "notes" / "2026-11-16-lr.md").read_text(encoding="utf-8")
    assert read_json(here / "experiments" / "lr", "answer.json")["answers"][0]["verdict"] == "no"


REASONS = [  # of advise/, why no run is proposed
    "good ended as high as asked or possible (500); one seed says little about the config, another run of it more:"
    " `relab train seed=1 --parent good`",
    "3 of 4 runs ended as high as asked or possible (500)",
    "a ended above the level that is called solved (475): 483.2; more steps are not needed, more seeds are (2 of 5 are"
    " there): seed=2",
    "a ended as high as asked or possible (1); 5 seeds of the config are there, and nothing more is called for",
    "a ended as high as asked or possible (1); but reward-range must be looked at first: `relab examine`",
    "tune is still running: what it would end at is not known",
    "a is interrupted: `relab resume a` first",
    "a is stale: what it would end at is not known",
    "a ended at step 9,000 of 50,000 planned: what it would end at is not known, so run it to its end first",
    "the log holds no settings, so that none can be changed for what was found (diverged): `relab examine` says what"
    " to look at",
    "the experiment has no answer yet (3 of 10 runs are finished): relab experiment lr.yaml",
]


@pytest.mark.parametrize("text", REASONS)
def test_why_nothing_is_proposed_is_told_in_chinese(text):
    """English words are left only in names and commands; in English the sentence comes out as it went in."""
    assert finish.spoken(text, words("en")) == text.replace("stale", "stopped without a word")
    chinese = finish.spoken(text, words("zh"))
    names = re.sub(r"`[^`]*`|relab \S+ \S+|reward-range|diverged|seed=2|good|tune|\ba\b", "", chinese)
    assert not re.search(r"[A-Za-z]", names), chinese


def test_a_chinese_entry_speaks_chinese_in_all_that_relab_words_itself():
    """Headings, verdicts and fixed sentences are translated; a rule's own message is marked as a quotation."""
    zh, en = words("zh"), words("en")
    fixed = {
        "nothing was found, and no return still rises at the end": "没有发现问题，末尾也没有仍在上升的回报",
        "the answer is no, the control low stays": "结论为否，保留对照 low",
        "something else": "原文“something else”",
    }
    for text, chinese in fixed.items():
        assert finish.spoken(text, zh) == chinese
        assert finish.spoken(text, en) == text
    missing = "44 rules not checked for want of data (listed under Health)"  # where a report's reader finds them
    assert finish.spoken(missing, zh) == "未检查 44 条规则，缺少数据（`relab examine -v` 会列出）"
    assert finish.spoken(missing, en).startswith("not checked: 44 of the rules, for want of data (`relab examine -v`")
    for name in ("entry-child-zh.md", "entry-lr-zh.md"):
        headings = [line for line in (GOLDEN / name).read_text("utf-8").splitlines() if line.startswith("### ")]
        assert not [line for line in headings if re.search("[a-z]", line)]


def test_code_keeps_its_marks_and_nothing_else_does():
    assert md("set `algo.max_grad_norm`, see `relab examine`") == "set `algo.max_grad_norm`, see `relab examine`"
    assert md("`<b>` `[x](y)`") == r"\`&lt;b&gt;\` \`\[x\](y)\`"


def test_a_digest_without_runs_says_so():
    day = datetime.date(2026, 11, 16)
    entry = log.Logged("", Path("LOG.md"), 1, "2026-11-16 a thought", "a thought")
    text = digest.markdown(digest.digest([entry], 7, day), words("en"))
    assert "no run is in these entries" in text
    assert "runs: 0" not in text
