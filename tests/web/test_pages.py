"""Do the pages show the numbers of the commands, escape what came from a log, and stay below their folder?"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import made_up
from relab.formats.read import find
from relab.report import sections
from relab.runs import grouping
from relab.stats import mean_over_seeds
from relab.web import examining
from relab.web.claims import Claims
from web.conftest import VALUES, Served

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}"


def means(text: str) -> dict[str, tuple[float, float, float, int]]:
    """Label -> mean, low, high, n as the table holds them."""
    numbers = "".join(f' data-{name}="([^"]*)"' for name in ("mean", "low", "high", "n"))
    rows = re.findall(f'aria-label="choose ([^"]*)".*?{numbers}', text, re.S)
    return {unescape(label): (float(m), float(low), float(high), int(n)) for label, m, low, high, n in rows}


# ---- Numbers


def test_the_table_has_the_means_and_intervals_of_the_report(served: Served) -> None:
    shown = means(served.get("/runs").text)
    groups = {group.label: group for group in grouping.load(served.root)}
    assert set(shown) == set(groups) == set(VALUES)
    for label, values in VALUES.items():
        outcome = sections.outcome(groups[label])
        assert shown[label][:3] == tuple(outcome.ends)
        assert shown[label][0] == np.mean(values)
        assert shown[label][3] == 5


def test_filters_choose_runs_and_the_mean_is_that_of_the_chosen(served: Served) -> None:
    shown = means(served.get("/runs/table?q=outcome>50 seed<4").text)
    assert shown["wide"][0] == np.mean(VALUES["wide"][:4])
    assert shown["narrow"][0] == np.mean([90.0, 60.0])
    assert np.isnan(shown["narrow"][1])  # no interval under five seeds


@pytest.mark.parametrize(
    ("words", "labels"),
    [("lr=0.1", {"narrow"}), ("algo.lr<0.01", {"wide"}), ("WIDE", {"wide"}), ("state:running", set()),
     ("ppo", set(VALUES)), ("state:finished wide", {"wide"}), ("seed=3", set(VALUES)), ("nobody", set()),
     ('"wide-s0"', {"wide"})],
)  # fmt: skip
def test_the_filter_speaks_the_language_of_relab_runs(served: Served, words: str, labels: set[str]) -> None:
    assert set(means(served.client.get("/runs/table", params={"q": words}).text)) == labels


@pytest.mark.parametrize("words", ["lrr=1", "state:happy", "is:odd", "outcome>many"])
def test_what_is_wrong_with_a_filter_is_said_in_its_place(served: Served, words: str) -> None:
    text = served.client.get("/runs/table", params={"q": words}).text
    assert 'role="alert"' in text or "cannot be shown" in text


def test_only_settings_that_vary_are_columns(served: Served) -> None:
    text = served.get("/runs").text
    assert 'data-sort="algo.lr"' in text
    assert 'data-sort="algo.gamma"' not in text
    assert 'data-sort="algo.gamma"' in served.get("/runs?cols=gamma").text


def test_last_best_and_at_a_step(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    for seed in range(5):
        folder = made_up.run(tmp_path / f"fall-s{seed}", 100.0, seed=seed)
        add_evaluation(folder, 4096, 30.0 + seed)
    served = shelf_of()
    label = next(iter(means(served.get("/runs").text)))
    assert means(served.get("/runs").text)[label][0] == 32.0
    assert means(served.get("/runs?value=best").text)[label][0] == 100.0
    assert means(served.get("/runs?value=at&step=3000").text)[label][0] == 100.0
    assert means(served.get("/runs?value=at&step=0").text)[label][0] == 10.0


def add_evaluation(folder: Path, step: int, value: float) -> None:
    from relab.base.jsonl import encode

    episodes = [{"seed": i, "return": value, "length": 1, "success": None, "end": "done"} for i in range(3)]
    with open(folder / "evals.jsonl", "ab") as file:
        file.write(encode({"step": step, "axis": "agent_steps", "mode": "det", "noise": 0.0, "episodes": episodes}))


@pytest.mark.parametrize(
    "sort", ["outcome", "-outcome", "name", "-name", "age", "steps", "n", "env", "state", "algo.lr"]
)
def test_every_order_shows_every_group(served: Served, sort: str) -> None:
    order = [*means(served.get(f"/runs?sort={sort}").text)]
    assert set(order) == set(VALUES)
    if sort in ("outcome", "-outcome"):
        assert order == (["wide", "narrow"] if sort == "outcome" else ["narrow", "wide"])


def test_the_page_of_a_group_says_what_the_report_says(served: Served) -> None:
    text = unescape(served.get(f"/group/{served.key('wide')}").text)
    group = next(g for g in grouping.load(served.root) if g.label == "wide")
    outcome = sections.outcome(group)
    assert outcome.value in text
    assert outcome.sure in text
    assert "algo.lr" in text


def test_the_best_of_a_run_that_broke_stands_at_a_row_with_a_number(
    tmp_path: Path, shelf_of: Callable[..., Served]
) -> None:
    rows = [f"{1000 * k},{'nan' if k > 81 else k + k % 2 / 10}" for k in range(1, 101)]
    (tmp_path / "broke.csv").write_text("step,return\n" + "\n".join(rows) + "\n")
    served = shelf_of()
    (group,) = served.bench.shelf.every()
    text = " ".join(re.sub("<[^>]*>", "", unescape(served.get(f"/group/{group.key}").text)).split())
    assert " at 81,000" in text
    assert "from step 82,000 on" in text
    assert not re.search("nan ±|noise ±", text)


def test_the_page_of_a_run_is_found_by_its_name(served: Served) -> None:
    assert "narrow-s3" in served.get("/run/runs/narrow-s3").text
    assert served.get("/run/narrow-s3").status_code == 404


def test_an_empty_folder_says_what_to_do(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    text = shelf_of().get("/runs").text
    assert "No runs here yet" in text
    assert "relab train" in text


def test_details_hold_the_reports_sections(served: Served) -> None:
    assert "Run info" in served.get("/details?r=runs/wide-s0").text


# ---- Everything that came from a log is text


@pytest.fixture
def hostile(tmp_path: Path, shelf_of: Callable[..., Served]) -> Served:
    """A run whose every word is an attack."""
    from relab.runs import labels, moves

    said = dict.fromkeys(("command", "intent", "parent"), HOSTILE)
    folder = made_up.run(tmp_path / "<svg onload=alert(2)>", 100.0, said, seed=0)
    moves.relabel(folder, labels.noted(HOSTILE))
    (folder / "metrics.jsonl").write_text(
        '{"step": 1, "axis": "<b>axis</b>", "foreign/<script>alert(3)</script>": 1.0}\n'
        '{"step": 2, "axis": "<b>axis</b>", "foreign/<script>alert(3)</script>": 2.0}\n'
    )
    (folder / "events.jsonl").write_text('{"step": 1, "kind": "stage", "name": "</script><script>alert(4)</script>"}\n')
    (folder / "media").mkdir()
    (folder / "media" / "<img src=x onerror=alert(5)>.png").write_bytes(b"\x89PNG\r\n")
    log = tmp_path / "theirs"
    log.mkdir()
    (log / "progress.csv").write_text("step,<script>alert(6)</script>,return\n1,2,3\n2,3,4\n")
    served = shelf_of()
    from relab.web.examining import examined
    from relab.web.watching import Health, sources

    runs = [run for group in served.bench.shelf.every() for run in group.runs]
    texts = dict.fromkeys(("message", "meaning", "refuted_by", "confidence", "explained_by", "check"), HOSTILE)
    place = {"run": runs[0].name, "where": runs[0].name, "onset": {"axis": "x", "step": 1}}
    reference = {"run": HOSTILE, "value": 1.0, "what": HOSTILE}
    finding = {"slug": "made-up", "severity": "warning", "evidence": [], "reference": reference, "tries": [HOSTILE],
               "spark": "", "new": True, **texts, **place}  # fmt: skip
    document = examined(str(served.root), sources(served.bench.shelf, runs))
    served.bench.watcher.health = Health({**document, "findings": [finding, *document["findings"]]}, "done")
    return served


def test_the_card_and_the_mark_of_a_finding_have_one_beginning(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    """The earliest of the seeds that have it, whichever of them is listed first."""
    from relab.web.examining import examined
    from relab.web.watching import Health, sources

    for seed in range(5):
        made_up.run(tmp_path / f"a-s{seed}", 100.0, seed=seed)
    served = shelf_of()
    (group,) = served.bench.shelf.every()
    document = examined(str(served.root), sources(served.bench.shelf, group.runs))
    card = dict.fromkeys(("message", "meaning", "refuted_by", "confidence", "explained_by", "check", "spark"), "")
    card |= {"slug": "made-up", "severity": "warning", "evidence": [], "reference": None, "tries": [], "new": False}
    steps = {"a-s0": 3000, "a-s1": 1000, "a-s4": None}
    findings = [card | {"run": run, "where": run, "onset": step and {"axis": "x", "step": step}}
                for run, step in steps.items()]  # fmt: skip
    served.bench.watcher.health = Health({**document, "findings": findings}, "done")
    text = served.get(f"/group/{group.key}").text
    assert "since step 1,000" in text
    assert "step 1,000 (earliest of 2 of 5 seeds)" in text
    assert "3 of 5 runs" in text
    (mark,) = served.get(f"/api/curve?g={group.key}&metric=eval/return_det").json()["findings"]
    assert mark["x"] == 1000


def test_a_config_has_one_colour_on_every_page_and_in_the_report(
    tmp_path: Path, shelf_of: Callable[..., Served]
) -> None:
    from relab.report.first import colour_places
    from relab.runs import grouping

    for env in ("cartpole", "pendulum"):
        for lr in ("0.001", "0.01"):
            made_up.run(tmp_path / f"{env}-{lr}" / "x", 100.0 if env == "cartpole" else -100.0, env=env, algo__lr=lr)
    groups = grouping.load(tmp_path)
    colours = colour_places(groups)
    report = {group.runs[0].name: colours[id(group)] for group in groups}
    assert {group.runs[0].name: group.place for group in shelf_of().bench.shelf.every()} == report


def test_report_figure_and_dashboard_have_one_colour_for_a_config(served: Served) -> None:
    """The figure took the reference first: two configs were coloured the other way round than in the report."""
    from relab.comparison import build
    from relab.comparison.task import Options
    from relab.report import comparison_page

    runs = grouping.load(served.root)
    result = build.compare([run for group in runs for run in group.runs], Options())
    (section, *_) = comparison_page.sections(result, runs)
    page = {row.label: row.place for drawn in section.figures for row in drawn.rows}
    figure = {row.label: row.place for drawn in comparison_page.figures(result) for row in drawn.rows}
    assert result.tasks[0].arms[0].label != min(figure), "the reference is not the first by name"
    assert figure == page == {group.label: group.place for group in served.bench.shelf.every()}


def test_no_control_character_of_a_name_reaches_a_page_or_an_export(
    tmp_path: Path, shelf_of: Callable[..., Served]
) -> None:
    """ESC and BEL in names: in titles, attributes, CSV and SVG they would steer the terminal that shows a file."""
    for seed in range(2):
        folder = made_up.run(tmp_path / f"a\x1b]0;owned\x07-s{seed}", 100.0, seed=seed)
        rows = [f'{{"step": {i}, "axis": "agent_steps", "foreign/x\\u001b[31m\\u0007": {i}.0}}\n' for i in (1, 2)]
        (folder / "metrics.jsonl").write_text("".join(rows))
    made_up.run(tmp_path / "other-s0", 50.0, seed=0, algo__lr="0.1")
    served = shelf_of()
    (key,) = [group.key for group in served.bench.shelf.every() if "owned" in group.label]
    name = next(run.name for group in served.bench.shelf.every() for run in group.runs if "owned" in run.name)
    from urllib.parse import quote

    metric = quote("foreign/x\x1b[31m\x07")
    pages = ["/runs", "/today", "/compare", "/compare/result", f"/group/{key}", f"/run/{quote(name)}",
             f"/api/curve.csv?g={key}&metric={metric}", f"/api/curve.svg?g={key}&metric={metric}"]  # fmt: skip
    for page in pages:
        text = served.get(page).text
        assert "\x1b" not in text, page
        assert "\x07" not in text, page
    assert "&#27;" in served.get(f"/group/{key}").text, "what a chart asks for is the metric's own name"


def test_a_group_can_be_shared_by_the_command_that_its_page_shows(served: Served) -> None:
    """With the folders of its runs: `relab report` alone would look elsewhere."""
    from html import unescape

    for group in served.bench.shelf.every():
        text = unescape(served.get(f"/group/{group.key}").text)
        command = text.partition("The same as a file to share</h2><pre>")[2].partition("</pre>")[0]
        assert command.startswith("relab report ")
        assert all(run.folder.name in command for run in group.runs)
        assert f"relab note {group.runs[0].folder} --into {served.root / 'LOG.md'}" in text, "a log that is read here"


ATTACKS = ("<svg onload", "<img src=x", "<script>alert", "<b>axis", "{{7*7}}49", 'onerror=alert(1)>"')


def test_no_word_of_a_log_becomes_markup(hostile: Served) -> None:
    runs = [run for group in hostile.bench.shelf.every() for run in group.runs]
    pages = ["/runs", "/runs?q=%3Cscript%3Ealert(7)%3C/script%3E", "/run/%3Cscript%3Ealert(8)%3C/script%3E"]
    pages += [f"/group/{group.key}" for group in hostile.bench.shelf.every()]
    for run in runs:
        from urllib.parse import quote

        pages += [f"/run/{quote(run.name)}", f"/details?r={quote(run.name)}", f"/findings?r={quote(run.name)}"]
    for page in pages:
        text = hostile.get(page).text
        for attack in ATTACKS:
            assert attack not in text, f"{attack} on {page}"


def test_what_is_served_as_data_is_never_taken_for_a_page(hostile: Served) -> None:
    name = hostile.bench.shelf.every()[0].runs[0].name
    for address, kind in (
        ("/api/curve", "application/json"),
        ("/api/curve.csv", "text/csv"),
        ("/api/curve.svg", "image/svg"),
    ):
        answer = hostile.client.get(address, params={"r": name})
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script>alert" not in hostile.client.get("/api/curve.svg", params={"r": name}).text


def test_a_cell_of_a_table_is_no_formula(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    made_up.run(tmp_path / "=cmd|' /C calc'!A0", 100.0, seed=0)
    text = shelf_of().client.get("/api/curve.csv", params={"r": "=cmd|' /C calc'!A0"}).text
    assert all(not cell.startswith("=") for line in text.splitlines() for cell in line.split(","))


# ---- Nothing above the folder, and no way out of it

ESCAPES = ("../../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd",
           "....//....//etc/passwd", "runs/wide-s0/../../../secret", "runs\\..\\..\\secret", "runs/wide-s0%00.png",
           "runs/wide-s0/meta.json")  # fmt: skip


@pytest.mark.parametrize("path", ESCAPES)
def test_no_path_of_an_address_reaches_the_disk(served: Served, path: str) -> None:
    (served.root.parent / "secret").write_text("hidden")
    for address in (f"/run/{path}", f"/static/{path}", f"/group/{path}", f"/media?r={path}&file={path}",
                    f"/media?r=runs/wide-s0&file={path}", f"/details?r={path}", f"/api/curve?r={path}"):  # fmt: skip
        answer = served.get(address)
        assert answer.status_code in (400, 404), address
        assert "root:" not in answer.text
        assert "hidden" not in answer.text


def test_links_that_lead_out_are_not_followed(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    made_up.run(outside / "theirs-s0", 100.0, seed=0)
    folder = made_up.run(inside / "mine-s0", 100.0, seed=0)
    os.symlink(outside / "theirs-s0", inside / "linked")
    (folder / "media").mkdir()
    (outside / "film.png").write_bytes(b"secret")
    os.symlink(outside / "film.png", folder / "media" / "film.png")
    served = shelf_of(inside)
    assert [run.name for group in served.bench.shelf.every() for run in group.runs] == ["mine-s0"]
    assert served.get("/run/linked").status_code == 404
    assert served.get("/media?r=mine-s0&file=film.png").status_code == 404
    os.remove(folder / "metrics.jsonl") if (folder / "metrics.jsonl").exists() else None
    os.symlink(outside / "theirs-s0" / "evals.jsonl", folder / "metrics.jsonl")
    assert "secret" not in served.get("/run/mine-s0").text


def test_a_folder_of_media_that_is_a_link_is_none(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.png").write_bytes(b"secret")
    folder = made_up.run(tmp_path / "in" / "mine-s0", 100.0, seed=0)
    os.symlink(tmp_path / "elsewhere", folder / "media")
    assert shelf_of(tmp_path / "in").get("/media?r=mine-s0&file=a.png").status_code == 404


def test_a_film_is_served_with_its_kind(served: Served) -> None:
    media = served.root / "runs" / "wide-s0" / "media"
    media.mkdir()
    (media / "step-000000002048-worst.png").write_bytes(b"\x89PNG")
    (media / "page.html").write_text("<script>alert(1)</script>")
    (media / "drawing.svg").write_text("<svg onload='alert(1)'/>")
    assert served.get("/media?r=runs/wide-s0&file=step-000000002048-worst.png").headers["content-type"] == "image/png"
    for file in ("page.html", "drawing.svg"):
        assert served.get(f"/media?r=runs/wide-s0&file={file}").status_code == 404
    assert "step 2,048" in served.get("/run/runs/wide-s0").text


def test_reading_writes_nothing_below_the_folder(served: Served) -> None:
    from shelves import tree

    before = tree(served.root)
    for page in (
        "/runs",
        f"/group/{served.key('wide')}",
        "/run/runs/wide-s0",
        "/details?r=runs/wide-s0",
        "/api/curve?r=runs/wide-s0",
    ):
        assert served.get(page).status_code == 200
    assert tree(served.root) == before


def test_runs_of_other_tools_have_the_same_pages(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    for seed in range(5):
        folder = tmp_path / f"sb3_s{seed}"
        folder.mkdir()
        rows = "\n".join(f"{100 * i},{10.0 * i + seed},{0.1 * i}" for i in range(1, 20))
        (folder / "progress.csv").write_text(f"time/total_timesteps,rollout/ep_rew_mean,train/loss\n{rows}\n")
    served = shelf_of()
    (label,) = means(served.get("/runs").text)
    (group,) = grouping.load(tmp_path)
    assert means(served.get("/runs").text)[label][:3] == tuple(sections.outcome(group).ends)
    assert served.get(f"/group/{served.bench.shelf.every()[0].key}").status_code == 200


def test_the_mean_is_that_of_numpy(served: Served) -> None:
    every: dict[str, Any] = {each.name: each for each in find.load_all(served.root).runs}
    assert len(every) == 10
    wide = mean_over_seeds(VALUES["wide"], (1.0, 500.0))
    assert means(served.get("/runs").text)["wide"][:3] == (wide.mid, wide.low, wide.high)


def test_a_question_is_no_change_of_the_folder(served: Served) -> None:
    """Groups of a hundred thousand runs take seconds to make: they are made when a run changes, not at each filter."""
    first = served.bench.shelf.every()
    for query in ("lr=0.1", "lr<1 outcome>60", "seed<3"):
        served.get(f"/runs/table?q={query}")
    assert served.bench.shelf.every() is first
    shelf = served.bench.shelf
    shelf._groups = (shelf._groups[0], shelf._groups[1] - 3600, shelf._groups[2])  # type: ignore[index]
    assert shelf.every() is first, "no run trains, so that none has become stale in an hour"


def test_too_many_runs_are_not_gathered_for_questions_about_all(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examining, "MOST", 3)
    monkeypatch.setattr(Claims, "sources", lambda *_: pytest.fail("no run is looked for on the disk"))
    assert served.get("/today/more").text == ""
    assert "10 runs are too many to be examined here" in served.get("/notebook/more").text
    assert served.act("seen", {}).status_code == 200
