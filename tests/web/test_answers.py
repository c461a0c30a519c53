"""Do Compare, Today and Notebook say what the commands say, and do decisions write what they should, no more?"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

import made_up
from relab.advise import proposal
from relab.comparison import build, render, tables
from relab.comparison.task import Options
from relab.config import layers
from relab.record.run_folder import now
from relab.runs import grouping
from relab.web import desk, examining, prose, remembered
from relab.web.following import follow
from shelves import set_meta, tree
from web.conftest import VALUES, Served
from where import histories

# ---- Compare


def test_the_numbers_are_those_of_relab_compare(served: Served) -> None:
    text = unescape(served.get("/compare/result").text)
    runs = [run for group in grouping.load(served.root) for run in group.runs]
    result = build.compare(runs, Options())
    for task in result.tasks:
        for row in tables.cells(task)[1]:
            for cell in row:
                assert cell in text
        for line in render.details(task):
            assert line.partition("eval/")[0][:40] in text
    assert tables.markdown(result) in text
    assert tables.latex(result) in text


def test_what_cannot_be_compared_is_said_with_its_reason(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    for seed in range(2):
        made_up.run(tmp_path / f"cart-s{seed}", 100.0, seed=seed)
        made_up.run(tmp_path / f"pend-s{seed}", -100.0, seed=seed, env="pendulum")
    served = shelf_of()
    keys = "&".join(f"g={group.key}" for group in served.bench.shelf.every())
    text = served.get(f"/compare/result?{keys}").text
    assert "Not compared, and why" in text


def test_the_headline_says_which_configs_have_few_seeds(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    for name, seeds, lr in (("good", 5, "0.1"), ("second", 5, "0.2"), ("brief", 2, "0.3")):
        for seed in range(seeds):
            made_up.run(tmp_path / f"{name}-s{seed}", {"good": 300.0, "second": 200.0, "brief": 100.0}[name] + seed,
                        seed=seed, algo__lr=lr)  # fmt: skip
    text = shelf_of().get("/compare/result").text
    assert "good is better than second by 100 [97.69, 102.3]; brief: under 5 seeds, too few to tell." in text


@pytest.mark.parametrize("bad", ["at=nonsense", "metric=nothing", "g=nobody"])
def test_a_question_without_an_answer_is_an_error_in_words(served: Served, bad: str) -> None:
    assert served.get(f"/compare/result?{bad}").status_code in (400, 404)


def test_many_configs_are_drawn_as_parallel_coordinates(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    for number in range(5):
        made_up.run(
            tmp_path / f"c{number}-s0",
            100.0 * number,
            seed=0,
            algo__lr=str(1e-4 * 10**number),
            algo__envs=str(8 * (1 + number % 2)),
        )
    text = shelf_of().get("/compare/result").text
    assert text.count('class="way"') == 5
    assert "All configs at once" in text


def test_the_table_and_the_parallel_coordinates_have_one_number_a_config(
    tmp_path: Path, shelf_of: Callable[..., Served]
) -> None:
    """Runs of unequal length are compared at a common step: so is every number of the page."""
    from report.made import write_run

    for number in range(5):
        curve = [20.0, 100.0 + number, 200.0 + number, 400.0 + number][: 4 if number else 3]
        write_run(tmp_path / f"c{number}-s0", curve, 0, config={"algo": {"name": "ppo", "lr": 10.0 ** (number - 5)}})
    served = shelf_of()
    text = served.get("/compare/result").text
    assert {f": {200 + number}</title>" in text for number in range(5)} == {True}
    assert "40" + "4</title>" not in text
    assert text.count("at step 2,000") >= 1
    assert ", 404" not in served.get("/compare").text, "the list to choose from has no number of another step"


def test_the_trials_of_a_sweep_come_with_what_each_axis_does(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    from relab.base.jsonl import encode
    from report.test_sweep_page import body

    for number in range(4):
        folder = tmp_path / "swept" / "runs" / f"c{number}-s0"
        made_up.run(folder, 100.0 * number, seed=0, algo__lr=str(1e-4 * 10**number))
    (tmp_path / "swept" / "sweep.json").write_bytes(encode(body(), indent=True))
    text = shelf_of().get("/compare/result").text
    assert "The sweep" in text
    assert "Best of 4." in text
    assert "inert" in text or "does nothing" in text
    assert "&lt;svg" not in text, "a drawing is a drawing, not its text"
    assert "<b>" not in text.replace("<b>shipped", "").partition("The sweep")[2].partition("All configs")[0]


def test_the_page_lists_groups_and_an_empty_folder_says_what_to_do(
    served: Served, tmp_path: Path, shelf_of: Callable[..., Served]
) -> None:
    assert all(label in served.get("/compare").text for label in VALUES)
    (tmp_path / "nothing").mkdir()
    empty = shelf_of(tmp_path / "nothing")
    for page, words in (
        ("/compare", "Nothing to compare yet"),
        ("/today", "No runs here yet"),
        ("/notebook", "No log yet"),
    ):
        assert words in empty.get(page).text


# ---- Today


def test_today_shows_what_ended_and_seen_makes_it_old(served: Served) -> None:
    set_meta(served.root / "runs" / "wide-s0", heartbeat=now())
    served.bench.shelf.refresh()
    text = served.get("/today").text
    assert "The last day" in text
    assert f'href="/group/{served.key("wide")}"' in text
    assert "1 of 5 finished" in text
    assert "wide" in served.get("/today/more").text
    assert served.act("seen", {}).status_code == 200
    text = served.get("/today").text
    assert "Since your last look" in text
    assert f'href="/group/{served.key("wide")}"' not in text
    assert "Nothing ended" in text
    assert remembered.read(served.root).apart


def test_a_look_in_a_terminal_is_not_one_at_the_page(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    """After a plain `relab examine` of a folder, Today said that there was no new finding, and showed none."""
    from relab import cli
    from relab.web.watching import Health, examinable

    shutil.copytree(histories() / "faulty" / "diverged", tmp_path / "runs" / "diverged")
    assert cli.main(["examine", str(tmp_path)]) == 0
    served = shelf_of()
    every = examinable(served.bench.shelf)

    def findings() -> str:
        document = examining.examined(str(served.root), every)
        served.bench.watcher.health = Health(document, "done", "", 1)
        return served.get("/today").text

    assert 'id="f0"' in findings()
    assert "New findings" not in findings()
    assert served.act("seen", {}).status_code == 200
    assert 'id="f0"' not in served.get("/today").text, "at once"
    assert "No new finding" in findings()
    assert cli.main(["examine", str(tmp_path)]) == 0
    assert "No new finding" in findings()


def test_a_question_that_waits_is_shown_with_its_cost(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    from relab.base.jsonl import encode, write_atomic

    home = tmp_path / "clip"
    for seed in range(2):
        made_up.run(home / "runs" / f"a-s{seed}", 10.0, seed=seed)
        set_meta(home / "runs" / f"a-s{seed}", created="2026-11-16T02:00:00.000Z", heartbeat="2026-11-16T02:30:00.000Z")
    (home / "experiment.yaml").write_text("question: Is it?\n")
    answer = {
        "verdict": "cannot tell yet",
        "text": "Cannot tell yet.",
        "n": [2, 2],
        "seeds_needed": [5, 9],
        "names": ["a", "b"],
    }
    write_atomic(home / "answer.json", encode({"question": "Is it better?", "answers": [answer]}))
    text = shelf_of().get("/today").text
    assert "5 to 9 seeds a variant" in text
    assert "at least 6 more runs" in text


# ---- Notebook


@pytest.fixture
def log(served: Served) -> Served:
    anchor = "<!--relab:run=runs/wide-s0 metric=eval/return_det-->"
    (served.root / "LOG.md").write_text(
        "# 我的笔记 <script>alert(1)</script>\n\n学习率 0.1 is too large, said https://evil.example\n\n"
        f"It came to 123{anchor} and 400{anchor}.\n"
    )
    return served


def test_the_log_is_searched_in_any_language_and_stale_numbers_are_marked(log: Served) -> None:
    text = log.client.get("/notebook", params={"q": "学习率"}).text
    assert "学习率 0.1 is too large" in text
    assert "<script>alert" not in text
    more = unescape(log.get("/notebook/more").text)
    assert "123" in more
    assert ">400<" in more


def test_a_person_s_own_log_is_shown_newest_first(served: Served) -> None:
    (served.root / "LOG.md").write_text(
        "# 実験ノート\n\n## 2026-11-16 学習率を下げた\n\n収束が速い。\n\n### 次\n\n種を増やす。\n\n"
        "## 2026-11-17 探索系数\n\n第三次更新后崩溃。\n", encoding="utf-8"
    )  # fmt: skip
    text = served.get("/notebook").text
    assert "No log yet" not in text
    assert text.count("<article") == 2  # the title of the file is no entry, and a smaller heading belongs to its own
    assert text.index("探索系数") < text.index("学習率を下げた") < text.index("種を増やす")


def test_without_a_log_no_number_is_called_right(served: Served) -> None:
    assert "there is no log" in served.get("/notebook/more").text
    assert "what the record says" not in served.get("/notebook/more").text


def test_a_log_that_leads_out_of_the_folder_is_none(served: Served, tmp_path: Path) -> None:
    (tmp_path.parent / "outside.md").write_text("# secret words\n")
    (served.root / "LOG.md").symlink_to(tmp_path.parent / "outside.md")
    assert "secret words" not in served.client.get("/notebook", params={"q": "secret"}).text.replace(
        'value="secret', ""
    )


def test_an_entry_becomes_blocks_of_text() -> None:
    kinds = [
        block.kind
        for block in prose.blocks(
            "## T\n\n**Answer.** a\nb\n\n- one\n- two\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```\nx\n```"
        )
    ]
    assert kinds == ["heading", "text", "list", "table", "code"]


@pytest.fixture
def sick(tmp_path: Path, shelf_of: Callable[..., Served]) -> Served:
    """A run for which relab proposes a change."""
    shutil.copytree(histories() / "faulty" / "diverged", tmp_path / "runs" / "diverged")
    return shelf_of()


def proposed(served: Served) -> str:
    import re

    match = re.search(r'data-id="([0-9a-f]+)"', served.get("/notebook/more").text)
    assert match is not None
    return match[1]


def test_a_proposal_is_approved_into_its_file(sick: Served) -> None:
    before, wanted = tree(sick.root), proposed(sick)
    assert tree(sick.root) == before
    assert sick.act("approve", {"id": wanted}).status_code == 200
    (path,) = sick.root.rglob(proposal.FILE)
    loaded = proposal.load(path, sick.root / "runs")
    assert loaded.diff
    assert set(tree(sick.root)) - set(before) == {path.relative_to(sick.root).as_posix()}


def test_a_proposal_is_edited_checked_and_queued(sick: Served) -> None:
    wanted = proposed(sick)
    (key,) = [key for key in ("algo.lr",) if key in sick.get("/notebook/more").text]
    assert sick.act("approve", {"id": wanted, "edits": {key: "much"}}).status_code == 400
    assert sick.act("approve", {"id": wanted, "edits": {"env.name": "pendulum"}}).status_code == 400
    assert not [*sick.root.rglob(proposal.FILE)]
    answer = sick.act("approve", {"id": wanted, "edits": {key: "0.002"}, "queue": True})
    assert "queued" in answer.json()["said"]
    (path,) = sick.root.rglob(proposal.FILE)
    assert proposal.load(path, sick.root / "runs").diff[key]["to"] == 0.002
    assert len([*(sick.root / "queue" / "waiting").iterdir()]) == 1
    assert "1 waiting" in sick.get("/today").text


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [("algo.lr", "much", "must be a number"), ("algo.lr", "-1", "0 < `lr` must hold"), ("algo.lr", " ", "needs"),
     ("algo.lr", "1e999", "must be a finite number"), ("algo.lr", "0.1", "would change nothing"),
     ("env.name", "pendulum", "does not change"), ("seed", "7", "does not change")],
)  # fmt: skip
def test_an_edit_that_may_not_be_run_is_refused_in_words(sick: Served, key: str, value: str, why: str) -> None:
    before = tree(sick.root)
    made_up_parent = sick.root / "runs" / "diverged" / "config.yaml"
    had = next(line for line in made_up_parent.read_text().splitlines() if line.strip().startswith("lr:")).split()[1]
    answer = sick.act(
        "approve", {"id": proposed(sick), "edits": {key: had if value == "0.1" else value}, "queue": True}
    )
    assert answer.status_code == 400
    assert why in answer.json()["error"]
    assert tree(sick.root) == before, "nothing is written, nothing is queued"


def test_the_checks_of_an_edit_are_its_own(sick: Served) -> None:
    """Another run has the value that somebody writes; the file must not say that none has, and its seed is new."""
    wanted = proposed(sick)
    twin = sick.root / "runs" / "twin"
    shutil.copytree(sick.root / "runs" / "diverged", twin)
    config = (twin / "config.yaml").read_text()
    had = next(line for line in config.splitlines() if line.strip().startswith("lr:"))
    (twin / "config.yaml").write_text(config.replace(had, had.partition("lr:")[0] + "lr: 0.0002"))
    sick.bench.shelf.refresh()
    answer = sick.act("approve", {"id": wanted, "edits": {"algo.lr": "0.0002"}, "queue": True})
    (path,) = sick.root.rglob(proposal.FILE)
    checks = layers.read_yaml(path)["checks"]
    assert checks["repeat"].startswith("that config has run as ")
    assert "times what it was" in checks["step"]
    assert checks["step"] in answer.json()["said"]
    (entry,) = (sick.root / "queue" / "waiting").iterdir()
    seed = next(word for word in json.loads(entry.read_text())["words"] if word.startswith("seed="))
    assert f"seed {seed.partition('=')[2]} is new" in checks["repeat"]


def test_an_approval_can_be_taken_back(sick: Served) -> None:
    before, wanted = tree(sick.root), proposed(sick)
    sick.act("approve", {"id": wanted, "queue": True})
    assert sick.act("undo", {}).json()["said"].startswith("taken back: approved diverged: algo.lr")
    assert {name for name in tree(sick.root) if not name.startswith("queue")} == set(before)
    assert not [*(sick.root / "queue" / "waiting").iterdir()]
    assert f'data-id="{wanted}"' in sick.get("/notebook/more").text, "it waits again"


def test_a_file_that_was_changed_since_its_approval_is_not_taken_back(sick: Served) -> None:
    sick.act("approve", {"id": proposed(sick)})
    (path,) = sick.root.rglob(proposal.FILE)
    path.write_text(path.read_text() + "# mine\n")
    answer = sick.act("undo", {})
    assert "was changed since" in answer.json()["error"]
    assert path.read_text().endswith("# mine\n")


def test_a_rejected_change_stays_rejected_when_another_seed_stands_for_it(sick: Served) -> None:
    sick.act("refuse", {"id": proposed(sick)})
    (sick.root / "runs" / "diverged").rename(sick.root / "runs" / "again")
    sick.bench.shelf.refresh()
    text = sick.get("/notebook/more").text
    assert "data-id" not in text
    assert "<b>rejected</b> diverged: algo.lr" in text


def test_a_refused_proposal_no_longer_waits_until_undone(sick: Served) -> None:
    wanted = proposed(sick)
    assert sick.act("refuse", {"id": wanted}).status_code == 200
    text = sick.get("/notebook/more").text
    assert wanted not in text
    assert "<b>rejected</b> diverged: algo.lr" in text
    sick.act("undo", {})
    text = sick.get("/notebook/more").text
    assert wanted in text
    assert "rejected" not in text


def test_what_was_decided_is_still_there_after_a_reload(sick: Served, shelf_of: Callable[..., Served]) -> None:
    wanted = proposed(sick)
    assert sick.act("approve", {"id": wanted}).status_code == 200
    (path,) = sick.root.rglob(proposal.FILE)
    for served in (sick, shelf_of()):
        text = unescape(served.get("/notebook/more").text)
        assert f'data-id="{wanted}"' not in text, "it no longer waits"
        assert "<b>approved</b> diverged: algo.lr" in text
        assert f"written to {path.relative_to(sick.root)}; relab train" in text
        assert "Proposals that wait" not in served.get("/today/more").text


def test_a_proposal_that_nobody_made_is_not_decided(sick: Served) -> None:
    assert sick.act("refuse", {"id": "0" * 12}).status_code == 404
    assert sick.act("approve", {"id": "0" * 12}).status_code == 404


# ---- The desk and the terminal


def test_the_desk_answers_from_a_process_of_its_own_and_outlives_a_death() -> None:
    from concurrent.futures.process import BrokenProcessPool

    made = desk.Desk()
    try:
        assert made.ask(os.getpid).result() != os.getpid()
        with pytest.raises(BrokenProcessPool):
            made.ask(os._exit, 3).result()
        assert made.ask(abs, -5).result() == 5
    finally:
        made.close()


def test_the_desk_makes_way_for_others_once_the_first_answers_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the page waits for them; with three processes on each core it took three times as long."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.closing(desk.Desk()) as made:
        made.warm()
        assert made.ask(os.getpriority, os.PRIO_PROCESS, 0).result() == own
    monkeypatch.setattr(desk, "FIRST_S", 0.0)
    with contextlib.closing(desk.Desk()) as later:
        later.warm()
        asked = (later.ask(os.getpriority, os.PRIO_PROCESS, 0).result() for _ in range(2000))
        assert any(each == own + 5 for each in asked)


def test_watch_tells_rows_evaluations_events_and_findings_until_the_run_ends(tmp_path: Path) -> None:
    shutil.copytree(histories() / "faulty" / "diverged", tmp_path / "diverged")
    news = list(follow(tmp_path / "diverged", pause=lambda seconds: None))
    assert {each.kind for each in news} >= {"rows", "evaluation", "finding", "state"}
    assert news[-1].kind == "state"
    from relab.health.examine import examine

    slugs = {finding.slug for finding in examine(tmp_path / "diverged").main}
    assert {each.text.partition(":")[0] for each in news if each.kind == "finding"} == slugs


def test_watch_tells_both_modes_in_a_line_and_of_a_long_past_the_last(tmp_path: Path) -> None:
    """Whoever came to a run of a hundred evaluations got two hundred lines."""
    from relab.record.run_folder import Record

    record = Record.create(tmp_path / "long", made_up.settings(), {}, {"seed": 0})
    for step in range(0, 4096 * 20, 4096):
        for mode, value in (("det", 5.0), ("sampled", 4.0)):
            episodes = [{"seed": i, "return": value + i, "length": 1, "success": None, "end": "x"} for i in range(3)]
            record.append_eval({"step": step, "mode": mode, "noise": None, "episodes": episodes})
    record.update_meta(status="finished")
    record.close()
    told = [each.text for each in follow(tmp_path / "long", pause=lambda _: None) if each.kind == "evaluation"]
    assert told[0] == "20 evaluations so far; the last 5:"
    assert len(told) == 6
    assert "return 6" in told[-1]
    assert "sampled 5" in told[-1]


def test_watch_waits_while_a_run_trains(tmp_path: Path) -> None:
    folder = made_up.run(tmp_path / "busy", 100.0, seed=0)
    set_meta(folder, status="running", heartbeat=now(), owner=None)
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            set_meta(folder, status="finished")

    news = list(follow(folder, pause=pause))
    assert len(waits) == 2
    assert news[-1].text == "finished"
    assert sum(each.kind == "evaluation" for each in news) == 2
