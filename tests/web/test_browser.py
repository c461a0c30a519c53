"""Does a person get an answer by looking and clicking? The main paths in chromium, without a window.

Skipped where there is no chromium. The random walk is slow: a thousand times something is hidden, zoomed, filtered or
smoothed, and every number in every table stays what numpy makes of the same rows.
"""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import made_up
from browser import CHROMIUM, Browser, Page
from relab.base.jsonl import encode
from relab.stats import mean_over_seeds
from relab.web import guard, serving
from web.conftest import VALUES, Inline, two_configs
from where import histories

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium (apt install chromium), which is not here")
KL = "relab.charts.find(c => c.figure.dataset.metric === 'policy/kl')"


class Site:
    """A dashboard at a socket of this machine, in a thread."""

    def __init__(self, root: Path, inline: bool = False):
        import uvicorn

        from relab.web.app import made

        self.root, self.token = root, guard.new_token()
        socket = serving.listening("127.0.0.1", 0, exactly=True)
        self.app = made(root, self.token, "127.0.0.1", socket.getsockname()[1])
        config = uvicorn.Config(self.app, log_level="error", lifespan="on", ws="none", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.bench = self.app.app.state.bench  # type: ignore[attr-defined]
        if inline:  # no process of its own examines, which takes seconds to start
            self.bench.desk = self.bench.watcher.desk = Inline()
        self.bench.shelf.refresh()
        self.address = serving.address("127.0.0.1", socket, self.token).rstrip("/")
        self.thread = threading.Thread(target=self.server.run, args=([socket],))
        self.thread.start()

    def close(self) -> None:
        self.server.should_exit = True
        self.bench.live.end()
        self.thread.join()

    def key(self, label: str) -> str:
        return next(group.key for group in self.bench.shelf.every() if group.label == label)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Its pages are closed after each test: an open one holds one of the six connections that a site may have."""
    yield chromium
    while chromium.pages:
        chromium.pages.pop().close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("served")
    two_configs(root)
    for name in VALUES:
        for seed in range(5):
            add_rows(root / "runs" / f"{name}-s{seed}", seed, 400)
    made = Site(root)
    yield made
    made.close()


def add_rows(folder: Path, seed: int, rows: int) -> None:
    values = np.random.default_rng(seed).normal(size=rows).cumsum()
    with open(folder / "metrics.jsonl", "ab") as file:
        for i, value in enumerate(values):
            file.write(
                encode({"step": 5 * (i + 1), "axis": "agent_steps", "policy/kl": float(value), "data/updates": i + 1})
            )


def table(page: Page) -> dict[str, tuple[float, float, float]]:
    """Label -> mean and interval, as the page holds them."""
    script = """Object.fromEntries([...document.querySelectorAll("tbody.group")].map(body => {
      const cell = body.querySelector(".mean").dataset;
      return [body.querySelector(".name a").textContent, [cell.mean, cell.low, cell.high]]; }))"""
    return {label: tuple(float(x) for x in row) for label, row in page.run(script).items()}  # type: ignore[misc]


def expected() -> dict[str, tuple[float, float, float]]:
    ends = {label: mean_over_seeds(values, (1.0, 500.0)) for label, values in VALUES.items()}
    return {label: (float(np.mean(VALUES[label])), end.low, end.high) for label, end in ends.items()}


def test_filter_sort_open_and_back(site: Site, browser: Browser) -> None:
    page = browser.page()
    page.open(f"{site.address}/runs", "document.querySelectorAll('tbody.group').length === 2")
    assert table(page) == expected()
    page.press("/")
    for letter in "lr=0.1":
        page.press(letter)
    page.wait("document.querySelectorAll('tbody.group').length === 1")
    assert page.run("location.search") == "?q=lr%3D0.1"
    assert table(page) == {"narrow": expected()["narrow"]}
    page.run("document.querySelector('tbody.group .name a').click()")
    page.wait("location.pathname.startsWith('/group/') && window.relab && relab.charts && relab.charts[0].plot")
    assert page.run("document.querySelector('#outcome').textContent").startswith("62")
    assert page.errors == []


def test_escape_leaves_the_filter_and_keeps_its_words(site: Site, browser: Browser) -> None:
    """So that keys move in what was filtered; by itself a browser empties the field."""
    page = browser.page()
    page.open(f"{site.address}/runs", "document.querySelectorAll('tbody.group').length === 2")
    page.press("/")
    for letter in "wide":
        page.press(letter)
    page.wait("document.querySelectorAll('tbody.group').length === 1")
    page.press("Escape")
    page.press("j")
    page.wait("document.querySelector('tr.at')")
    assert page.run("document.querySelector('#q, [name=q]').value") == "wide"
    assert page.run("document.querySelectorAll('tbody.group').length") == 1


def test_a_constant_is_drawn_as_a_line_in_the_middle(site: Site, browser: Browser) -> None:
    """Rounding of a mean must not become the height of the axis, which a band then fills."""
    page = browser.page()
    page.open(f"{site.address}/group/{site.key('wide')}", "relab.charts[0].plot")
    low, high = page.run("relab.charts[0].reach(0.00063, 0.00063 * (1 + 1e-15))")
    assert low < 0.00063 * 0.95
    assert high > 0.00063 * 1.05
    assert page.run("relab.charts[0].reach(0, 0)") == [-1, 1]
    assert page.run("relab.charts[0].reach(0, 100)") == [-6, 106]


def test_rows_that_come_faster_than_answers_are_drawn(site: Site, browser: Browser) -> None:
    """A run that logs every moment on a busy machine: each answer is drawn, though a newer one is owed."""
    page = browser.page()
    page.open(f"{site.address}/group/{site.key('wide')}", "relab.charts[0].plot")
    page.run("""(() => { const ask = window.fetch, chart = relab.charts[0], draw = chart.draw.bind(chart);
      window.drawn = 0;
      chart.draw = () => { window.drawn++; draw(); };
      window.fetch = async (...words) => { await new Promise((done) => setTimeout(done, 300)); return ask(...words); };
      window.rows = setInterval(relab.again, 50); })()""")
    page.wait("drawn > 2", 30)
    page.run("clearInterval(rows)")
    assert page.errors == []


@pytest.mark.slow
def test_a_view_is_in_its_address(site: Site, browser: Browser) -> None:
    page = browser.page()
    page.open(f"{site.address}/group/{site.key('wide')}?find=kl", "relab.charts[0].plot")
    page.wait("relab.charts.find(c => c.figure.dataset.metric === 'policy/kl')?.plot")
    page.drag(".chart[data-metric='policy/kl'] .u-over", 0.25, 0.75)
    page.wait(f"relab.view.from !== null && {KL}.data.lines[0].rows < 300")
    page.run("document.querySelector('#smooth').value = 4; document.querySelector('#smooth').oninput()")
    page.run("relab.hide('r:runs/wide-s0')")
    address, view = page.run("location.href"), json.loads(page.run("JSON.stringify(relab.view)"))
    other = browser.page()
    other.open(address, "relab.charts.find(c => c.figure.dataset.metric === 'policy/kl')?.data?.lines.length")
    assert json.loads(other.run("JSON.stringify(relab.view)")) == view
    assert other.run("[...relab.charts[0].hidden]") == ["r:runs/wide-s0"]
    assert other.run("relab.charts.find(c => c.figure.dataset.metric === 'policy/kl').data.lines[0].smooth.length") > 0
    assert page.errors == other.errors == []


def test_star_tag_and_undo_by_keys(site: Site, browser: Browser) -> None:
    page = browser.page()
    page.open(f"{site.address}/runs?sort=name", "document.querySelectorAll('tbody.group').length === 2")
    for key in ("j", "s"):
        page.press(key)
    page.wait("document.querySelector('tbody.group .star').dataset.on === 'true'")
    page.press("z")
    page.wait("document.querySelector('tbody.group .star').dataset.on === 'false'")
    assert page.errors == []


@pytest.mark.slow
def test_a_comparison_says_since_when_and_why_on_its_page(site: Site, browser: Browser) -> None:
    """The curves stand below the answer, and a click on an onset opens its card."""
    page = browser.page()
    page.open(f"{site.address}/compare", "document.querySelector('.answer-line') && relab.charts[0].plot")
    parts = "[...document.querySelectorAll('.answer-line, .chart.lead, #findings')]"
    assert page.run(f"{parts}.map(e => e.id || e.tagName)") == ["H1", "FIGURE", "findings"]
    card = "<details class='finding' id='f0'><summary><b>a</b></summary></details>"
    folded = f"<details class='rest'><summary>1 more</summary>{card}</details>"
    page.run(f"document.querySelector('#cards').innerHTML = {json.dumps(folded)}")
    page.run("relab.finding({ number: 0 })")
    assert page.run("['#f0', '.rest'].map(each => document.querySelector(each).open)") == [True, True]
    assert page.errors == []


def test_a_proposal_is_refused_beside_its_field_approved_and_taken_back(tmp_path: Path, browser: Browser) -> None:
    shutil.copytree(histories() / "faulty" / "diverged", tmp_path / "runs" / "diverged")
    site, page = Site(tmp_path, inline=True), browser.page()
    try:
        page.open(f"{site.address}/notebook", "document.querySelector('.proposal')")
        page.run("document.querySelector('.proposal input').value = '-1'")
        page.run("document.querySelector('[data-do=approve]').click()")
        page.wait("document.querySelector('.proposal .problem')?.textContent.includes('0 < `lr` must hold')")
        assert page.run("document.activeElement.value") == "-1", "what is wrong stays, to be mended"
        page.run("document.querySelector('.proposal input').value = '0.002'")
        page.run("document.querySelector('[data-do=approve]').click()")
        page.wait("document.querySelector('.decided')?.textContent.includes('→ 0.002')")
        assert [*tmp_path.rglob("next_config.yaml")]
        page.run("document.querySelector('#toast button').click()")
        page.wait("document.querySelector('.proposal')")
        assert not [*tmp_path.rglob("next_config.yaml")]
        assert not [each for each in page.errors if "400" not in each]
    finally:
        site.close()


def test_a_group_is_starred_tagged_and_noted_on_its_page(site: Site, browser: Browser) -> None:
    page = browser.page(390, 800)
    page.open(f"{site.address}/group/{site.key('wide')}", "relab.charts[0].plot")
    page.run("document.querySelector('#labels .star').click()")
    page.wait("document.querySelector('#labels').dataset.on === 'true'")
    page.run("document.querySelector('#labels [data-do=tag]').click()")
    page.run("document.querySelector('#ask input').value = '基线'; document.querySelector('#ask [value=yes]').click()")
    page.wait("document.querySelector('#labels .tag')?.textContent.includes('基线')")
    page.run("document.querySelector('#labels [data-do=untag]').click()")
    page.wait("!document.querySelector('#labels .tag')")
    for _ in range(3):
        page.press("z")
        page.run("new Promise(done => setTimeout(done, 150))")
    page.wait("document.querySelector('#labels').dataset.on === 'false' && !document.querySelector('#labels .tag')")
    assert page.errors == []


def test_a_log_axis_shows_every_row_above_zero_and_is_in_the_address(site: Site, browser: Browser) -> None:
    page = browser.page()
    page.open(f"{site.address}/group/{site.key('wide')}?find=kl", f"{KL}?.plot")
    page.run("document.querySelector('#logx').click()")
    page.wait(f"{KL}.plot.scales.x.distr === 3")
    assert page.run(f"{KL}.plot.scales.x.min") == 5, "the first row; 0 has no place"
    x = page.run(f"[5, 100, 2000].map(v => {KL}.plot.valToPos(v, 'x'))")
    share = float(np.log(100 / 5) / np.log(2000 / 5))
    assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx(share, abs=0.01)
    other = browser.page()
    other.open(page.run("location.href"), f"{KL}?.plot")
    assert other.run("document.querySelector('#logx').checked")
    other.run("relab.zoom(null, null)")
    assert page.errors == other.errors == []


def test_drawings_of_a_comparison_can_be_saved(site: Site, browser: Browser) -> None:
    page = browser.page()
    page.open(f"{site.address}/compare", "document.querySelectorAll('.task p.get button').length > 2")
    saved = page.run("""new Promise(done => { const files = [];
      HTMLAnchorElement.prototype.click = function () {
        files.push([this.download, this.href]);
        if (files.length === 2) done(files); };
      document.querySelectorAll('.task p.get')[0].querySelectorAll('button').forEach(b => b.click()); })""")
    kinds = {name.rpartition(".")[2]: address for name, address in saved}
    assert kinds["svg"].startswith("data:image/svg+xml")
    assert len(kinds["png"]) > 2000, "a picture, and not an empty one"
    assert page.errors == []


@pytest.mark.slow
def test_rows_of_a_run_that_trains_appear_by_themselves(site: Site, browser: Browser) -> None:
    page = browser.page()
    page.open(f"{site.address}/run/runs/wide-s1", "relab.charts[0].plot && document.querySelector('.live.on')")
    page.run("document.querySelector('#find').value = 'kl'; document.querySelector('#find').oninput()")
    page.wait("relab.charts.find(c => c.figure.dataset.metric === 'policy/kl')?.data?.lines[0].rows === 400")
    time.sleep(2.2)  # the watcher must have looked once before the change
    with open(site.root / "runs" / "wide-s1" / "metrics.jsonl", "ab") as file:
        file.write(encode({"step": 3000, "axis": "agent_steps", "policy/kl": 77.0}))
    page.wait("relab.charts.find(c => c.figure.dataset.metric === 'policy/kl').data.lines[0].y.includes(77)", 30)
    assert page.errors == []


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("width", "dark"),
    [pytest.param(1440, False, marks=SLOW), pytest.param(1024, True, marks=SLOW),
     pytest.param(390, False, marks=SLOW), (390, True)],
)  # fmt: skip
def test_no_page_is_wider_than_its_screen(site: Site, browser: Browser, width: int, dark: bool) -> None:
    page = browser.page(width, 800, dark)
    for path in ("/runs", "/today", "/notebook", f"/group/{site.key('wide')}", "/compare"):
        page.open(site.address + path)
        assert page.run("document.documentElement.scrollWidth") <= width, path
    dark_paper = page.run("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark_paper is dark


def test_nothing_is_cut_on_a_phone(tmp_path: Path, browser: Browser) -> None:
    """Long names wrap within their card, and every number of a seed can be read without moving the table."""
    for seed in range(5):
        made_up.run(tmp_path / f"{'a_very_long_name' * 4}-s{seed}", 100.0 + seed, seed=seed)
    site = Site(tmp_path)
    try:
        page = browser.page(390, 800)
        page.open(f"{site.address}/runs", "document.querySelector('tbody.group')")
        ends = "[...document.querySelectorAll('tbody.group .name a')].map(e => e.getBoundingClientRect().right)"
        assert max(page.run(ends)) < 390
        page.open(f"{site.address}/group/{site.bench.shelf.every()[0].key}", "relab.charts[0].plot")
        assert page.run("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('#seeds').parentElement)")
        assert page.errors == []
    finally:
        site.close()


@pytest.mark.slow
def test_pages_of_an_empty_folder_fill_by_themselves(tmp_path: Path, browser: Browser) -> None:
    site = Site(tmp_path)
    try:
        pages = {path: browser.page() for path in ("/today", "/runs", "/compare")}
        for path, page in pages.items():
            page.open(site.address + path, "document.querySelector('.empty') && document.querySelector('.live.on')")
        for name, value in (("a", 1.0), ("b", 2.0)):
            made_up.run(tmp_path / f"{name}-s0", value, seed=0, algo__lr=value / 1000)
        for page in pages.values():
            page.wait("!document.querySelector('.empty')", 30)
            assert page.errors == []
    finally:
        site.close()


def test_what_a_log_says_runs_nowhere(tmp_path: Path, browser: Browser) -> None:
    """Every word of a run is an attack that would call alert; none does, and no policy has to stop one."""
    attack = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    folder = made_up.run(tmp_path / "<svg onload=alert(3)>-s0", 100.0, {"command": attack, "parent": attack}, seed=0)
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(encode({"step": 1, "axis": "agent_steps", f"foreign/{attack}": 1.0}))
    with open(folder / "events.jsonl", "ab") as file:
        file.write(encode({"step": 1, "kind": "stage", "name": attack, "time": "2026-11-16T03:00:00.000Z"}))
    site = Site(tmp_path)
    try:
        page = browser.page()
        page.send("Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.attacked = true; };")
        name = site.bench.shelf.every()[0].runs[0].name
        from urllib.parse import quote

        for path in ("/runs", f"/run/{quote(name)}", "/today", "/notebook"):
            page.open(site.address + path)
            page.run("new Promise(done => setTimeout(done, 200))")
            assert not page.run("window.attacked"), path
        assert page.errors == []
    finally:
        site.close()


@pytest.mark.slow
def test_a_thousand_clicks_change_no_number(site: Site, browser: Browser) -> None:
    """Hiding, zooming, smoothing, axes and filters in any order: aggregates are numpy's on the same rows."""
    rng = random.Random(0)
    runs, group = browser.page(), browser.page()
    runs.open(f"{site.address}/runs", "document.querySelectorAll('tbody.group').length === 2")
    group.open(f"{site.address}/group/{site.key('wide')}?find=kl", "relab.charts[0].plot")
    outcome = group.run("document.querySelector('#outcome').textContent + document.querySelector('#seeds').textContent")
    filters: list[tuple[str, Any]] = [
        ("", lambda seed, value: True),
        ("seed<3", lambda seed, value: seed < 3),
        ("outcome>60", lambda seed, value: value > 60),
        ("wide", lambda seed, value: value > 100),
        ("seed!=2", lambda seed, value: seed != 2),
    ]
    acts = [
        lambda: group.run(f"relab.hide('r:runs/wide-s{rng.randrange(5)}')"),
        lambda: group.run("relab.hide('g:wide')"),
        lambda: group.run(f"relab.zoom({rng.randrange(900)}, {1000 + rng.randrange(900)})"),
        lambda: group.run("relab.zoom(null, null)"),
        lambda: group.run(f"relab.view.smooth = {rng.choice([0, 5, 50])}; relab.again()"),
        lambda: group.run(f"relab.view.x = '{rng.choice(['steps', 'updates'])}'; relab.again()"),
        lambda: group.run("document.querySelector('#log').click()"),
    ]
    for turn in range(1000):
        if turn % 5:
            rng.choice(acts)()
            continue
        words, fits = rng.choice(filters)
        runs.run(f"document.querySelector('#q').value = {words!r}; document.querySelector('#filter').requestSubmit()")
        wanted = {label: [v for seed, v in enumerate(values) if fits(seed, v)] for label, values in VALUES.items()}
        wanted = {label: some for label, some in wanted.items() if some}
        counts = json.dumps({label: len(some) for label, some in wanted.items()})
        runs.wait(f"""(want => {{ const all = [...document.querySelectorAll("tbody.group")];
          return all.length === Object.keys(want).length && all.every(b => +b.querySelector(".mean").dataset.n ===
          want[b.querySelector(".name a").textContent]); }})({counts})""")  # fmt: skip
        for label, (mean, low, high) in table(runs).items():
            ends = mean_over_seeds(wanted[label], (1.0, 500.0))
            assert mean == float(np.mean(wanted[label]))
            assert (low, high) == (ends.low, ends.high) or (np.isnan(low) and np.isnan(ends.low))
        now = group.run("document.querySelector('#outcome').textContent + document.querySelector('#seeds').textContent")
        assert now == outcome
    assert group.errors == runs.errors == []
