"""Is a page laid out as a person reads it? Colours that stay, names that tell apart, only settings that differ."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import made_up
import relab
from relab.report import render as report
from relab.web import cards, names, render
from relab.web.colours import STYLES, Colours
from relab.web.pages import compare
from relab.web.pages.runs import columns_of
from relab.web.query import Choice
from relab.web.shelf import Shelf
from relab.web.watching import Health
from web.conftest import Served, two_configs


def places(served: Served) -> dict[str, int]:
    return {group.label: group.place for group in served.bench.shelf.every()}


def test_a_group_keeps_its_colour_when_others_come_and_go(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    two_configs(tmp_path)
    before = places(shelf_of())
    made_up.run(tmp_path / "runs" / "aaa-s0", 100.0, seed=0, algo__lr="0.7")  # first in the alphabet
    later = shelf_of()
    now = places(later)
    assert {label: now[label] for label in before} == before
    assert len(set(now.values())) == 3
    for seed in range(5):
        shutil.rmtree(tmp_path / "runs" / f"narrow-s{seed}")
    later.bench.shelf.refresh()
    assert places(later)["wide"] == before["wide"]


def test_groups_of_one_figure_have_different_colours(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    for i in range(STYLES):
        made_up.run(tmp_path / f"c{i:02d}-s0", 100.0, seed=0, algo__lr=str(0.001 * (i + 1)))
    served = shelf_of()
    assert sorted(places(served).values()) == list(range(STYLES))


def test_more_configs_than_colours_have_those_of_the_report_at_first(
    tmp_path: Path, shelf_of: Callable[..., Served]
) -> None:
    """Seven configs of two tasks: five of one figure had a dashed line among them, and not the report's colours."""
    from relab.report.first import colour_places
    from relab.runs import grouping

    for env, many in (("cartpole", 5), ("pendulum", 2)):
        for i in range(many):
            made_up.run(tmp_path / f"{env}-{i}" / "x", -100.0, env=env, algo__lr=str(0.001 * (i + 1) + many / 1e5))
    colours = colour_places(groups := grouping.load(tmp_path))
    report = {group.runs[0].name: colours[id(group)] for group in groups}
    served = shelf_of()
    assert {group.runs[0].name: group.place for group in served.bench.shelf.every()} == report
    assert max(report.values()) < 6
    made_up.run(tmp_path / "cartpole-5" / "x", -100.0, env="cartpole", algo__lr="0.5")
    served.bench.shelf.refresh()
    assert max(group.place for group in served.bench.shelf.every()) == 5, "a whole line is free there"


def test_colours_that_cannot_be_remembered_are_given_anew(tmp_path: Path, served: Served) -> None:
    from relab.web.remembered import file_of, folder_of

    served.bench.shelf.every()
    file = folder_of("colours") / file_of(served.root)
    file.write_text('{"schema": 1, "places": {"a": 99, "b": "red", "c": 3}}')
    assert Colours(served.root).places == {"c": 3}
    file.write_text("no JSON")
    assert Colours(served.root).places == {}


def test_runs_whose_seeds_say_nothing_are_called_by_their_names(served: Served) -> None:
    wide = served.bench.shelf.loaded(served.bench.shelf.group(served.key("wide")))
    assert names.called(wide.runs)["runs/wide-s3"] == "seed 3"
    twice = [*wide.runs, wide.runs[0]]
    assert names.called(twice)["runs/wide-s3"] == "runs/wide-s3"


def test_a_setting_that_a_log_does_not_say_is_no_difference(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    two_configs(tmp_path)
    groups = shelf_of().bench.shelf.every()
    for group in groups[:1]:
        group.settings.pop("algo.gamma")
    columns, more = columns_of(groups, Choice())
    assert "algo.lr" in columns
    assert "algo.gamma" not in columns
    assert "algo.gamma" in more


def test_what_is_compared_when_nobody_has_chosen(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    """The groups of the environment that has the most of them, not an empty page."""
    two_configs(tmp_path)
    made_up.run(tmp_path / "other-s0", 5.0, seed=0, env="pendulum-v1")
    served = shelf_of()
    from starlette.datastructures import QueryParams

    picked = compare.chosen_of(served.bench, QueryParams(""), served.bench.shelf.every())
    assert {group.label for group in picked} >= {"wide", "narrow"}
    assert "What went wrong, and since when" in served.get("/compare").text


def finding(run: str, step: int | None = None, severity: str = "warning") -> dict[str, object]:
    return {"slug": "made-up", "run": run, "where": run, "severity": severity, "onset": step and {"step": step}}


def test_a_card_says_in_how_many_runs_of_which_config(served: Served) -> None:
    groups = served.bench.shelf.every()
    some = [finding("runs/wide-s1", 2000), finding("runs/wide-s4", 1000)]
    (card,) = cards.of_all(some, groups)
    assert card["place"] == "wide: 2 of 5 runs"
    assert card["since"].step == 1000
    assert card["places"] == [places(served)["wide"]]
    (card,) = cards.of_groups(some, [served.bench.shelf.group(served.key("wide"))])
    assert card["place"] == "2 of 5 runs"
    (card,) = cards.of_all([*some, finding("runs/narrow-s0")], groups)
    assert card["place"] == "3 runs of 2 configs"
    assert cards.of_groups(some, [served.bench.shelf.group(served.key("narrow"))]) == []


def test_the_page_of_one_run_counts_no_other(served: Served) -> None:
    """On its own page "1 of 5 runs" would say that the other four are well, which nobody looked at there."""
    wide = served.bench.shelf.group(served.key("wide"))
    some = [finding("runs/wide-s1", 2000), finding("runs/wide-s4", 1000)]
    (card,) = cards.of_groups(some, [wide], {"runs/wide-s1"})
    assert card["place"] == ""
    assert card["since"].words == "since step 2,000"


def test_configs_in_which_a_rule_is_about_another_metric_have_a_card_each(served: Served) -> None:
    """A card shows the first finding in full: what it says must hold of every run that it names."""
    about = {"wide": "return/length", "narrow": "value/explained_variance"}
    some = [finding(f"runs/{name}-s{seed}") | {"evidence": [{"metric": about[name]}]}
            for name in about for seed in range(2)]  # fmt: skip
    assert [c["place"] for c in cards.of_all(some, served.bench.shelf.every())] == [
        "wide: 2 of 5 runs", "narrow: 2 of 5 runs"]  # fmt: skip
    odd = [some[0], some[1] | {"evidence": [{"metric": "policy/kl"}]}]
    assert len(cards.of_all(odd, served.bench.shelf.every())) == 1  # within a config the seeds stay together


def health_of(*findings: dict[str, object]) -> Health:
    plain = dict.fromkeys(("message", "meaning", "refuted_by", "confidence", "explained_by", "check", "spark"), "")
    full = plain | {"evidence": [], "reference": None, "tries": [], "new": False}
    return Health({"findings": [full | each for each in findings], "since": ""}, "done")


def test_every_page_counts_findings_as_the_cards_that_one_sees(served: Served) -> None:
    """Five seeds that diverge are one finding in five runs, not five findings."""
    some = [finding(f"runs/narrow-s{seed}") | {"slug": slug} for seed in range(5) for slug in ("one", "two")]
    served.bench.watcher.health = health_of(*some)
    assert "2 findings." in served.get("/today").text
    assert "2 warnings</a>" in served.get("/runs").text


def test_a_card_of_many_runs_folds_most_of_them(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    for seed in range(9):
        made_up.run(tmp_path / f"a-s{seed}", 10.0, seed=seed)
    served = shelf_of()
    served.bench.watcher.health = health_of(*(finding(f"a-s{seed}") for seed in range(9)))
    text = served.get("/today").text
    assert text.index("a-s5") < text.index("and 3 more runs") < text.index("a-s6</a>")


def test_a_folder_that_is_being_read_is_not_called_empty(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    served = shelf_of(tmp_path)
    for page in ("/today", "/runs", "/compare"):
        served.bench.shelf.progress = (14, 21, "a run")
        assert "Reading the folder" in served.get(page).text, page
        served.bench.shelf.progress = None
        assert "relab train ppo" in served.get(page).text, page


def test_a_folder_that_nobody_has_looked_into_yet_is_not_called_empty(tmp_path: Path) -> None:
    """In the second before the first look ended, a page said that there were no runs."""
    shelf = Shelf(tmp_path)
    assert shelf.progress is not None
    shelf.refresh()
    assert shelf.progress is None
    shelf.close()


def test_a_run_that_logs_little_has_all_its_charts_open(served: Served) -> None:
    from relab.web.pages.group import metrics

    (run, *_) = served.bench.shelf.loaded(served.bench.shelf.group(served.key("wide"))).runs
    column = next(iter(run.history.columns.values()))
    run.history.columns |= {f"foreign/{i}": column for i in range(8)}
    assert all(metric.lead for metric in metrics([run]))
    run.history.columns |= {f"foreign/{i}": column for i in range(30)}
    assert sum(metric.lead for metric in metrics([run])) == 8


def test_a_run_without_a_return_is_not_said_to_lack_a_finite_number(
    tmp_path: Path, shelf_of: Callable[..., Served]
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "log.csv").write_text("step,critic_loss\n" + "".join(f"{i},{i}.5\n" for i in range(9)))
    served = shelf_of()
    (group,) = served.bench.shelf.every()
    assert '<p id="outcome">no return was logged' in served.get(f"/run/{group.runs[0].name}").text


def test_a_note_of_all_seeds_stands_beside_their_config(served: Served) -> None:
    served.act("note", {"groups": [served.key("wide")], "text": "第三次更新后策略崩溃"})
    served.act("note", {"runs": ["runs/narrow-s0"], "text": "only this one"})
    served.bench.shelf.refresh()
    firsts = [row for row in served.get("/runs").text.split('<tr class="') if row.startswith("row")]
    assert sum("第三次更新后策略崩溃" in row for row in firsts) == 1
    assert not any("only this one" in row for row in firsts)


def test_a_finding_about_a_whole_folder_has_a_card(served: Served) -> None:
    """It names no run; the page of the day shows it all the same."""
    from relab.web.watching import Health

    plain = dict.fromkeys(("message", "meaning", "refuted_by", "confidence", "explained_by", "check", "spark"), "")
    card = plain | {"slug": "odd-cells", "severity": "info", "evidence": [], "reference": None, "tries": [],
                    "new": False, "where": "all", "onset": None}  # fmt: skip
    served.bench.watcher.health = Health({"findings": [card], "since": ""}, "done")
    answer = served.get("/today")
    assert answer.status_code == 200
    assert "odd-cells" in answer.text


def test_cards_are_sent_alone_to_a_page_that_is_open(served: Served) -> None:
    from relab.web.watching import Health

    plain = dict.fromkeys(("message", "meaning", "refuted_by", "confidence", "explained_by", "check", "spark"), "")
    some = [plain | finding("runs/wide-s1", 1000) | {"evidence": [], "reference": None, "tries": [], "new": True}]
    served.bench.watcher.health = Health({"findings": some, "since": ""}, "done")
    wide, narrow = served.key("wide"), served.key("narrow")
    for query in (f"g={wide}", f"g={wide}&g={narrow}", "r=runs/wide-s1"):
        answer = served.get(f"/findings?{query}")
        assert answer.status_code == 200
        assert "made-up" in answer.text
    assert "made-up" not in served.get("/findings?r=runs/wide-s0").text
    assert "made-up" not in served.get(f"/findings?g={narrow}").text


@pytest.mark.parametrize("name", ["grid", "body", "folded", "each_run", "finding_head", "outcome_line", "run_again"])
def test_report_and_dashboard_have_these_from_one_file(name: str) -> None:
    """One template for what both show: neither has a macro of its own for it."""
    report_text, macro = (report.TEMPLATES / "report.html").read_text(), f"{{% macro {name}("
    assert macro in (report.TEMPLATES / "parts.html").read_text()
    assert macro not in report_text
    assert name in report_text
    used = [f for f in ("group.html", "details.html", "findings.html") if name in _template(f)]
    assert used or name in ("grid", "body")  # which `folded` calls


def _template(name: str) -> str:
    return (Path(render.__file__).parent / "templates" / name).read_text()


def test_colours_of_pages_are_those_of_the_report(served: Served) -> None:
    shared = (report.TEMPLATES / "colours.css").read_text()
    assert shared in served.get(render.asset("palette.css")).text
    assert "--ink:" not in (render.STATIC / "style.css").read_text()
    assert '{% include "colours.css" %}' in (report.TEMPLATES / "report.html").read_text()


def test_a_film_that_is_too_large_is_not_served(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = served.root / "runs" / "wide-s0" / "media"
    folder.mkdir()
    (folder / "step-000000001000-det-seed-0.mp4").write_bytes(b"x" * 100)
    address = "/media?r=runs/wide-s0&file=step-000000001000-det-seed-0.mp4"
    assert served.get(address).status_code == 200
    monkeypatch.setattr("relab.web.films.LARGEST", 99)
    assert served.get(address).status_code == 404


def test_a_setting_younger_than_the_record_is_not_called_different(served: Served) -> None:
    """A record of an older relab lacks it; that says nothing about how the run was made."""
    from relab.web.pages.group import settings

    (run, *_) = served.bench.shelf.loaded(served.bench.shelf.group(served.key("wide"))).runs
    run.history.config["algo"].pop("gamma")
    rows = {row.key: row for row in settings(run)}
    assert "algo.gamma" not in rows
    assert rows["algo.lr"].differs


def test_runs_that_names_tell_apart_are_apart_on_the_dashboard_too(
    tmp_path: Path, shelf_of: Callable[..., Served]
) -> None:
    """Two logs that hold a few constants and no settings were one config there, and two in every command."""
    head = "time/total_timesteps,rollout/ep_rew_mean,train/learning_rate,train/clip_range,train/"
    for name, metric in (("fast", "approx_kl"), ("slow", "entropy_loss")):
        (tmp_path / name).mkdir()
        rows = "".join(f"{2048 * k},{20 + 9 * k},0.0003,0.2,{0.01 * k}\n" for k in range(1, 14))
        (tmp_path / name / "progress.csv").write_text(f"{head}{metric}\n{rows}")
    groups = {frozenset(run.name for run in group.runs) for group in shelf_of(tmp_path).bench.shelf.every()}
    assert groups == {frozenset(run.name for run in group.runs) for group in relab.load(tmp_path).groups}
    assert len(groups) == 2
