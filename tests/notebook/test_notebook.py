"""Does an entry say what the files say, and does a person's text survive beside it to the byte?"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from made_up import dated
from relab import cli
from relab.base.jsonl import RecordError
from relab.lab import experiment
from relab.notebook import fence, of_experiment, of_run
from relab.notebook.words import words
from relab.record.history import Column, History
from relab.record.run_folder import Record
from small_runs import run as train_small

BODY = "## 2026-11-16 Question\n\n**Answer.** Yes.\n"
PERSON = "# My log\n\nA thought.\n"


def put(text: bytes, body: str = BODY, id_: str = "one", **more: bool) -> bytes:
    return fence.place(text, id_, body, **more)


# ---- Bytes outside of the marks


@pytest.mark.parametrize(
    "person",
    [
        b"",
        b"no line break at the end",
        b"one\n",
        b"one\n\n",
        b"one\r\ntwo\r\n",
        b"one\r\ntwo",
        b"\xef\xbb\xbfwith a byte order mark\n",
        b"\xef\xbb\xbf",
        "観測は壊れていない。\n学習率を下げる\n".encode(),
        "caf\xe9 in an old encoding\n".encode("latin-1"),
        b"trailing blanks   \n\n\n\n",
        b"```\nnot closed\n",
        b"a lone \r in the middle\n",
    ],
)
def test_a_persons_bytes_stay_and_the_entry_is_renewed_in_place(person: bytes) -> None:
    first = put(person)
    assert first.startswith(person)
    assert put(first) == first, "the same entry changes nothing"
    tail = b"\r\n\tand a word below, \xff\n" if b"\r\n" in person else b"\n\tand a word below, \xff"
    renewed = put(first + tail, BODY.replace("Yes", "No, after all"))
    assert renewed.startswith(person)
    assert renewed.endswith(tail)
    assert b"No, after all" in renewed
    assert b"Yes" not in renewed
    assert put(renewed) == first + tail, "and back again"


def test_line_ends_are_the_files() -> None:
    log = put(b"one\r\ntwo\r\n")
    assert log.count(b"\n") == log.count(b"\r\n")
    assert b"\r" not in put(b"one\ntwo\n")
    unixed = log.replace(b"\r\n", b"\n")  # git did that, no person
    assert not fence.blocks(unixed)[0].edited
    assert b"Maybe" in put(unixed, BODY.replace("Yes", "Maybe"))


def test_several_entries_live_side_by_side() -> None:
    text = put(put(PERSON.encode()) + b"\nbetween\n", id_="two") + b"after\n"
    assert [block.id for block in fence.blocks(text)] == ["one", "two"]
    changed = put(text, BODY.replace("Yes", "Perhaps"))
    assert changed.index(b"Perhaps") < changed.index(b"between") < changed.index(b"begin two") < changed.index(b"after")
    assert put(changed) == text


def test_an_entry_that_somebody_edited_is_theirs() -> None:
    text = put(PERSON.encode())
    edited = text.replace(b"Yes.", b"Yes, and I know why.")
    with pytest.raises(RecordError, match=r"line 5: the entry one was edited by hand .* --force"):
        put(edited, BODY.replace("Yes", "No"))
    with pytest.raises(RecordError, match="edited by hand"):
        put(edited)
    assert put(edited, force=True) == text
    unsigned = re.sub(rb" sha256=\w+", b"", text)
    with pytest.raises(RecordError, match="edited by hand"):
        put(unsigned, BODY.replace("Yes", "No"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ((b"<!-- relab:end one -->", b""), "line 5: the entry that begins here does not end"),
        ((b"<!-- relab:end one -->", b"<!-- relab:end two -->"), "line 9: an entry two ends that did not begin"),
        ((b"**Answer", b"<!-- relab:begin three -->\n**Answer"), "line 8: the entry three begins inside of another"),
        ((b" -->\n##", b" ->\n##"), "line 5: a mark of relab is damaged"),
        ((b"<!-- relab:end one -->", b"  <!-- relab:end one -->"), "line 9: a mark of relab is damaged"),
        ((b"<!-- relab:end one -->", b"<!-- relab:end one --> x"), "line 9: a mark of relab is damaged"),
    ],
)
def test_damaged_marks_are_an_error_with_the_line_and_nothing_is_written(
    change: tuple[bytes, bytes], says: str, tmp_path: Path
) -> None:
    log = tmp_path / "LOG.md"
    log.write_bytes(put(PERSON.encode()).replace(*change))
    before = log.read_bytes()
    for id_, force in (("one", False), ("other", True)):
        with pytest.raises(RecordError, match=f"LOG.md {says}.*nothing was written"):
            fence.write(log, id_, BODY, force)
    assert log.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["LOG.md"]


def test_the_same_entry_twice_is_an_error() -> None:
    with pytest.raises(RecordError, match="more than once, on lines 1 and 7"):
        put(2 * (put(b"") + b"\n"))


@pytest.mark.parametrize("text", ["thought".encode("utf-16"), b"a\0b"])
def test_a_file_that_is_no_text_is_left_alone(text: bytes) -> None:
    with pytest.raises(RecordError, match="keeps ASCII"):
        put(text)


EVIL = "--> <!-- relab:end one -->\n<!-- relab:end one -->\n<script>alert(1)</script>"


def test_nothing_in_an_entry_can_close_it() -> None:
    text = put(PERSON.encode(), f"a\n{EVIL}\n<!-- relab:begin two -->\nb\n")
    (block,) = fence.blocks(text)
    assert text[block.stop :] == b"\n"
    assert put(text) == put(PERSON.encode())


def test_ids_are_plain_and_differ_where_names_do() -> None:
    names = ["brave-otter", "-->", "a b", "a-b", "a--b", "ключ", "", "x" * 90, "x" * 91]
    ids = [fence.safe_id(name) for name in names]
    assert ids[0] == "brave-otter"
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[\w.=+-]+", id_, re.ASCII) and "--" not in id_ for id_ in ids)


# ---- The file


def test_a_log_is_made_kept_in_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "LOG.md"
    assert fence.write(log, "one", BODY) == "added"
    log.chmod(0o600)
    link = tmp_path / "link.md"
    link.symlink_to(log)
    assert fence.write(link, "two", BODY) == "added"
    assert link.is_symlink()
    assert log.stat().st_mode & 0o777 == 0o600
    written = log.stat().st_mtime_ns
    assert fence.write(log, "two", BODY) == "unchanged"
    assert log.stat().st_mtime_ns == written
    assert fence.write(log, "two", BODY + "more\n") == "renewed"
    assert sorted(path.name for path in log.parent.iterdir()) == ["LOG.md"]


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    log = tmp_path / "LOG.md"
    log.write_text(PERSON)
    code = (
        "import sys; from pathlib import Path; from relab.notebook import fence\n"
        "for i in range(15): fence.write(Path(sys.argv[1]), f'{sys.argv[2]}.{i}', f'## {i}')"
    )
    words = [sys.executable, "-c", code, str(log)]
    writers = [subprocess.Popen([*words, name]) for name in ("a", "b", "c")]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    ids = [block.id for block in fence.blocks(log.read_bytes())]
    assert sorted(ids) == sorted(f"{name}.{i}" for name in "abc" for i in range(15))
    assert log.read_text().startswith(PERSON)


def test_an_editor_that_saves_in_between_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look before the write sees the change, and the entry is placed anew."""
    log = tmp_path / "LOG.md"
    log.write_text(PERSON)
    true_place, calls = fence.place, []

    def place(*words: object) -> bytes:
        placed = true_place(*words)  # type: ignore[arg-type]
        calls.append(1)
        if len(calls) == 2:  # the first under the lock
            log.write_text(PERSON + "Saved meanwhile.\n")
        return placed

    monkeypatch.setattr(fence, "place", place)
    fence.write(log, "one", BODY)
    assert log.read_text().startswith(PERSON + "Saved meanwhile.\n")
    assert len(fence.blocks(log.read_bytes())) == 1


# ---- What it says


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "brave-otter"
    train_small(folder, algo__lr="0.01")
    return folder


def relab(*words: str, code: int = 0, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    assert cli.main(words) == code
    return capsys.readouterr()


def test_the_entry_of_a_run(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = relab("note", str(small), capsys=capsys)
    assert re.search(r"^## \d{4}-\d\d-\d\d brave-otter$", out, re.M)
    assert re.search(r"^\*\*Answer\.\*\* .*→.*", out, re.M)
    assert re.search(r"^\| brave-otter \| 1 \| 4 \| eval/return_det .* no interval over seeds", out, re.M)
    assert re.search(r"^\| algo.lr \| 0.001 \| 0.01 \|$|^\| algo.lr \| .* \| 0.01 \|$", out, re.M)
    assert "Findings:\n\n- " in out
    assert len(re.findall(r"^- \S+ \((?:info|warning|error), ", out, re.M)) <= 3
    log = tmp_path / "LOG.md"
    log.write_text("# Mine\n")
    printed, _ = relab("note", str(small), "--into", str(log), capsys=capsys)
    assert re.fullmatch(rf"{re.escape(str(log))}: entry [0-9a-f]{{12}} added\n", printed)
    assert out.strip() in re.sub(r"<!--relab:run=.*?-->", "", log.read_text())
    again, _ = relab("note", str(small), "--into", str(log), "--json", capsys=capsys)
    assert json.loads(again)["did"] == "unchanged"
    log.write_text(log.read_text().replace("**Answer.**", "**My answer.**"))
    assert "--force writes it anew" in relab("note", str(small), "--into", str(log), code=2, capsys=capsys)[1]
    assert relab("note", str(small), "--into", str(log), "--force", capsys=capsys)[0].endswith("renewed\n")


ASKED = """
question: Does `*lr*` | matter? {evil}
at: {at}
last: 1
level: 60
smallest_effect: 5
base: {{env: cartpole, total_steps: 512}}
vary: {{lr: [1e-3, 1e-6]}}
seeds: {seeds}
"""


def an_experiment(tmp_path: Path, seeds: int = 5, at: str = "final", evil: str = "") -> Path:
    """An experiment whose runs are made up: no training is needed for an entry."""
    path = tmp_path / "question.yaml"
    path.write_text(ASKED.format(seeds=seeds, at=at, evil=evil))
    question = experiment.load(path)
    cells = experiment.prepare(question, tmp_path / "x")
    for cell in cells:
        if not cell.folder.exists():
            pretend(cell, (100 if cell.variant == "lr=0.001" else 20) + cell.seed)
    experiment.conclude(question, tmp_path / "x", cells)
    return tmp_path / "x"


def pretend(cell: experiment.Cell, value: float, steps: tuple[int, ...] = (0, 100)) -> None:
    config = {"env": {"name": "none"}, "seed": cell.seed, "algo": {"lr": cell.variant}}
    record = Record.create(cell.folder, config, {}, {"seed": cell.seed})
    row = {"seed": 1, "return": value, "length": 1, "success": None, "end": "done"}
    for step in steps:
        record.append_eval({"step": step, "mode": "det", "noise": 0.0, "episodes": [row, row, row]})
    record.update_meta(status="finished")
    record.close()
    dated(cell.folder)


# by hand: standard error 1, t(0.9875, 8 df) = 2.75; of one mean 0.707 t(0.975, 4 df) = 1.96; upper end: Newcombe's of 0
# of 5 against 5 of 5, -80 + 80 sqrt(2) z² / (5 + z²) with z² = 5.02
ENTRY = """## 2026-11-16 Does \\`\\*lr\\*\\` \\| matter?

**Answer.** No: lr=1e-06 is worse than lr=0.001, -80 [-82.75, -77.25] (final eval/return_det, + is better; \
97.5 % interval, 5 and 5 seeds).

- all 5 seeds of lr=0.001 agree; up to 45% of its runs could end elsewhere unseen
- the runs of lr=0.001 and lr=1e-06 form a group each: the interval says how far these are apart, and does not allow \
for runs that end in the other's group; 5 seeds can miss up to 45% of such runs
- Family: cartpole-v1.ppo.f8b7.

### Plan

- Primary metric: final eval/return_det; higher is better; differences under 5 do not matter.

| setting | lr=0.001 (control) | lr=1e-06 |
| --- | --- | --- |
| algo.lr | 0.001 | 1e-06 |

### Record

Command:

```
relab experiment x/experiment.yaml --name x
```

| variant | seeds | episodes | final eval/return_det, mean [95 %] | every seed |
| --- | --- | --- | --- | --- |
| lr=0.001 | 5 | 3 | 102 [100.0, 104.0] | 100 101 102 103 104 |
| lr=1e-06 | 5 | 3 | 22 [20.04, 23.96] | 20 21 22 23 24 |

### Learnings and next steps

Findings:
"""


def test_the_entry_of_an_experiment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    an_experiment(tmp_path)
    monkeypatch.chdir(tmp_path)
    out, _ = relab("note", "x", capsys=capsys)
    assert out.startswith(ENTRY)
    relab("note", "x", "--into", "LOG.md", capsys=capsys)
    before = Path("LOG.md").read_bytes()
    an_experiment(tmp_path, seeds=6)
    relab("note", "x", "--into", "LOG.md", capsys=capsys)
    after = Path("LOG.md").read_bytes()
    assert (before.count(b"relab:begin"), after.count(b"relab:begin")) == (1, 1), "more seeds: the same entry, renewed"
    assert b"100 101 102 103 104 105" in re.sub(rb"<!--relab:run=.*?-->", b"", after)


def test_an_experiments_entry_has_what_was_expected_and_means_by_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "question.yaml"
    path.write_text(ASKED.format(seeds=5, at="final", evil="") + "hypothesis: lr 1e-6, expect nothing learned\n")
    question = experiment.load(path)
    cells = experiment.prepare(question, tmp_path / "x")
    for cell in cells:
        pretend(cell, (100 if cell.variant == "lr=0.001" else 20) + cell.seed, steps=(0, 50, 100))
    experiment.conclude(question, tmp_path / "x", cells)
    text, _ = relab("note", str(tmp_path / "x"), capsys=capsys)
    assert "matter?\n\n**Hypothesis.** lr 1e-6, expect nothing learned\n\n**Answer.** No: " in text
    assert "Evaluations:\n\n| step | lr=0.001, mean over seeds | lr=1e-06, mean over seeds |\n" in text
    assert "\n| 50 | 102 | 22 |\n" in text


def test_few_seeds_have_no_interval_and_a_level_has_its_laggards(tmp_path: Path) -> None:
    answers = json.loads((an_experiment(tmp_path, seeds=2) / "answer.json").read_text())["answers"]
    few = of_experiment.evidence(answers, words("en"))
    assert few[1] == ["lr=0.001", "2", "3", "100.5 (no interval under 5 seeds)", "100 101"]
    (tmp_path / "level").mkdir()
    level = an_experiment(tmp_path / "level", at="first_step_reaching")
    rows = of_experiment.evidence(json.loads((level / "answer.json").read_text())["answers"], words("en"))
    assert rows[0][3] == "first step with eval/return_det at 60, mean [95 %]"
    assert rows[2][3:] == ["0 of 5 got there", ">100 >100 >100 >100 >100"]


def test_an_interval_ends_where_the_environment_does_on_both_sides(tmp_path: Path) -> None:
    folder = an_experiment(tmp_path)
    for meta in folder.glob("runs/*/meta.json"):
        facts = json.loads(meta.read_text()) | {"spec": {"horizon": 500, "reward_low": 1.0, "reward_high": 1.0}}
        meta.write_text(json.dumps(facts))
    (answer,) = json.loads((folder / "answer.json").read_text())["answers"]
    for x, low, high in zip(answer["b"], (2.0, 3.0, 4.0, 5.0, 296.0), (499.0, 500.0, 500.0, 500.0, 300.0)):
        x["value"] = low
        answer["a"][answer["b"].index(x)]["value"] = high
    rows = of_experiment.evidence([answer], words("en"), folder)
    assert rows[1][3].endswith(", 500]")
    assert rows[2][3].startswith("62 [1, ")


def test_a_question_cannot_break_out_of_its_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = an_experiment(tmp_path, evil="--> <!-- relab:end x --> <script>")
    log = tmp_path / "LOG.md"
    log.write_text(PERSON)
    for _ in range(2):
        relab("note", str(folder), "--into", str(log), capsys=capsys)
    text = log.read_text()
    assert len(fence.blocks(text.encode())) == 1
    assert "<script>" not in text
    assert text.startswith(PERSON)


def test_an_experiment_without_an_answer_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = an_experiment(tmp_path)
    (folder / "answer.json").unlink()
    assert "has no answer.json: the experiment has not ended" in relab("note", str(folder), code=2, capsys=capsys)[1]


def test_a_gates_conditions_are_told_with_their_values():
    met = {"condition": "early <= 0.1", "value": 0.0629, "distance": 0.0371, "met": True}
    row = {"kind": "gate", "step": 1000, "gate": "g", "decision": "advance", "success": [met, met | {"met": False}]}
    line = of_run._event(row)
    assert line == "1,000: gate gate g, decision advance, success: ✓ early <= 0.1 (0.0629); ✗ early <= 0.1 (0.0629)"


def test_a_schedules_own_evaluations_become_a_table(tmp_path):
    run = History(tmp_path)
    values = {"multi/avg_final": [0.5, 0.9], "multi/death_p90": [1.0, 2.0], "eval/return_det": [1.0, 2.0]}
    run.columns = {name: Column(np.array([5, 10]), np.array(x)) for name, x in values.items()}
    assert of_run.multi_evaluations(run, words("en")) == [["step", "avg_final"], ["5", "0.5"], ["10", "0.9"]]


def test_a_log_that_never_rests_is_left_alone_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "LOG.md"
    log.write_text(PERSON)
    monkeypatch.setattr(fence, "PATIENCE_S", 0.0)
    with pytest.raises(RecordError, match="kept changing for 0 s"):
        fence.write(log, "a.1", "## 1")
    assert log.read_text() == PERSON


def test_rows_that_the_table_of_evaluations_leaves_out_are_told() -> None:
    for n, head, rows in ((10, "step", 10), (40, "step (12 / 40)", 12)):
        run = History(Path("run"))
        run.columns["eval/return_det"] = Column(np.arange(n), np.arange(n, dtype=np.float64))
        table = of_run.evaluations(run, words("en"))
        assert (table[0][0], len(table) - 1) == (head, rows)


def test_an_entry_shows_what_its_environment_is_judged_by_and_what_advantages_were(tmp_path):
    column = Column(np.array([0, 1]), np.array([0.5, 0.9]))
    names = ("eval/success_det", "eval/success_sampled", "eval/return_det", "data/advantage_rank")
    run = History(tmp_path, dict.fromkeys(names, column), config={"algo": {"name": "finetune"}},
                  meta={"spec": {"outcome": "success"}})  # fmt: skip
    assert of_run.telemetry(run) == ["data/advantage_rank 0.5 → 0.9"]
    assert [len(row) for row in of_run.evaluations(run, words("en"))] == [3, 3, 3]
