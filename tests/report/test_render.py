"""Do the pages open offline, say what the data says, and keep text from logs as text?"""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from relab.base.jsonl import encode
from relab.commands import report
from relab.health.rule import Evidence, Finding
from relab.report import render, sections
from relab.report.page import Facts
from relab.report.parts import ConfigChanges
from report.made import write_run

UP = (10.0, 60.0, 150.0, 300.0, 400.0)
BAD = (
    "x</script><script>alert(1)</script><img src=http://evil.example/p.png> | a | "
    "[click](javascript:1) `b` *c* ${d} {{ e }}"
)


class Page(HTMLParser):
    """Tags and whether each one that must be closed is; ids, and what labels point to."""

    VOID = {"meta", "br", "hr", "img", "link", "input"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.attrs = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs += [(tag, *pair) for pair in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs += [(tag, *pair) for pair in attrs]

    def of(self, tag, name):
        return [value for each, key, value in self.attrs if (each, key) == (tag, name)]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def page_of(folder, findings=None, **options):
    data = sections.build(folder, Facts(findings), **options)
    return data, Page(render.html(data)), render.html(data), render.markdown(data)


def test_first_screen_has_all_parts(tmp_path):
    finding = Finding("kl is high", slug="high-kl", severity="warning", run="run",
                      evidence=[Evidence("policy/kl", [0, 1000], [0.1, 0.4], "max")],
                      suggest=[{"key": "lr", "from": 0.1, "to": 0.01}])  # fmt: skip
    _, page, html, md = page_of(write_run(tmp_path / "run", UP), [finding])
    assert page.open == []
    first = html.split("<details>")[0]
    for text in ("PPO on made-v1", "Learned: 10 → 400 (random 20).", "high-kl", "kl is high",
                 "policy/kl = 0.4 at step 1,000 (max)", "lr: 0.1 → 0.01",
                 "Config keys that were set", "finished; 4k of 10k steps in 8.0s", "no commit recorded",
                 "relab train ppo seed=0", 'class="spark"'):  # fmt: skip
        assert text in first
    for text in (
        "**Learned: 10 → 400 (random 20).**\n",
        "**high-kl** (warning): kl is high.",
        "```\nrelab train ppo seed=0\n```",
    ):
        assert text in md


def test_nothing_is_loaded_from_elsewhere(tmp_path):
    _, page, html, _ = page_of(write_run(tmp_path / "run", UP, meta={"name": BAD, "why": BAD}))
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not [a for a in page.attrs if a[1] in ("src", "href", "srcset") or str(a[1]).startswith("on")]
    assert "url(" not in html
    assert "default-src 'none'" in html


def test_axes_are_chosen_without_a_script(tmp_path):
    evals = (0.5, 3.0, 60.0, 400.0, *UP, *UP)
    _, page, html, _ = page_of(write_run(tmp_path / "run", evals, meta={"spec": {}}))
    assert page.of("label", "for") == page.of("input", "id") == ["x0", "x1", "x2", "logy"]
    assert re.findall(r"<label[^>]*>([^<]*)<", html) == ["steps", "wall time", "steps, log", "log y"]
    shown = [c for c in page.of("div", "class") if re.match(r"x\d ", c)]
    assert sorted(shown) == sorted(
        f"x{i} {y} {w}" for i in range(3) for y in ("lin", "log") for w in ("wide", "narrow")
    )
    for place in ("x0", "x1", "x2"):
        assert f"#{place}:checked ~ .picked .{place}.wide" in html, "each choice shows its figure"


def test_one_axis_is_no_choice(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "metrics.jsonl").write_bytes(b"".join(encode({"step": i, "return/mean": 5.0 + i}) for i in (4, 5, 6)))
    _, page, html, _ = page_of(folder)
    assert "input" not in page.tags
    assert html.count('class="curve"') == 2, "wide and narrow"


def test_every_seed_is_a_dot_on_one_scale(tmp_path):
    for name, last in (("low", 100.0), ("high", 300.0)):
        for seed in range(3):
            algo = {"name": "ppo", "lr": last}
            write_run(tmp_path / f"{name}-s{seed}", (*UP, last + seed), seed=seed, config={"algo": algo})
    _, _, html, _ = page_of(tmp_path)
    strips = re.findall(r'<svg class="dots".*?</svg>', html)
    assert [strip.count("seed-dot") for strip in strips] == [3, 3]
    places = [[float(x) for x in re.findall(r'cx="([\d.]+)"', strip)] for strip in strips]
    assert min(places[0]) > max(places[1]), "high stands right of low"


def hostile(folder):
    """A run whose every text is an attack, as a foreign tool could have written it."""
    write_run(folder, UP, meta={"why": BAD, "intent": BAD, "command": BAD, "spec": {"env": BAD}}, config={BAD: BAD})
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(encode({"step": 9000, "axis": BAD, BAD: 1.0, "return/mean": BAD}))
    with open(folder / "events.jsonl", "ab") as file:
        file.write(encode({"step": BAD, "kind": BAD, "time": BAD, BAD: {BAD: [BAD]}}))
    return folder


def test_hostile_text_stays_text_in_html(tmp_path):
    folder = hostile(tmp_path / "<script>alert(2)<" / "run <b>|x")
    finding = Finding(BAD, slug=BAD, severity=BAD, run=BAD, onset=1000, suggest=[BAD, {"key": BAD}],
                      evidence=[Evidence(BAD, [BAD], [1, BAD, 2], BAD)])  # fmt: skip
    for full in (False, True):
        _, page, html, _ = page_of(folder, [finding], full=full)
        assert page.open == []
        assert not {"script", "img", "b "} & set(page.tags)
        assert "&lt;script&gt;" in html


def test_hostile_text_stays_text_in_markdown(tmp_path):
    folder = hostile(tmp_path / "run|x")
    finding = Finding(BAD + "\n# Title\n- item", slug=BAD, severity="error", run=BAD)
    _, _, _, md = page_of(folder, [finding], full=True)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(md)
    inner = [child for token in tokens for child in token.children or []]
    assert not [t for t in [*tokens, *inner] if t.type in ("html_block", "html_inline", "link_open", "image")]
    headings = [t.content for t, o in zip(tokens[1:], tokens) if o.type == "heading_open"]
    assert "Title" not in headings
    rows = [len(cells) for cells in table_rows(tokens)]
    assert set(rows) <= {2, 3, 4, 5, 6, 8, 7}, "pipes make no cells"
    assert md.count("alert(1)") > 5, "the text is there, as text"


def table_rows(tokens):
    row = []
    for token in tokens:
        if token.type == "tr_open":
            row = []
        elif token.type in ("td_open", "th_open"):
            row.append(token)
        elif token.type == "tr_close":
            yield row


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", "a\\|b"), ("<b>", "&lt;b&gt;"), ("return_det", "return_det"), ("_x_", "\\_x\\_"), ("# t", "\\# t"),
        ("- t", "\\- t"), ("-143.1", "-143.1"), ("a\n\nb", "a b"), ("1. x", "\\1. x"), (render.Raw("<b>"), "<b>"),
    ],
)  # fmt: skip
def test_markdown_escapes(text, expected):
    assert render.md(text) == expected


def test_a_fence_cannot_be_closed_from_inside():
    assert render.fence("a\n```\nb") == "````\na\n```\nb\n````"


@pytest.mark.parametrize("evals", [(), (math.nan, math.nan), (1.0, math.nan, 3.0), (5.0,)])
def test_odd_runs_render(tmp_path, evals):
    _, page, _, md = page_of(write_run(tmp_path / "run", evals, status="running"))
    assert page.open == []
    assert md.startswith("# PPO on made-v1: run\n")


def test_several_groups_render(tmp_path):
    for name, lr in (("low", 0.001), ("high", 0.1)):
        for seed in range(5):
            write_run(tmp_path / f"{name}-s{seed}", UP, seed=seed, config={"algo": {"name": "ppo", "lr": lr}})
    _, page, html, md = page_of(tmp_path)
    assert page.open == []
    first, folded = html.split("<details>", 1)
    axes = 2  # steps, wall time
    assert first.count('class="band"') == 2 * 2 * axes + 2 * 2, "two groups, wide and narrow, and two small curves"
    assert folded.count('class="band"') == 2 * 2, "return/mean and policy/entropy"
    assert re.findall(r">(\w+-s\d)</summary>", html) == [f"{n}-s{s}" for n in ("high", "low") for s in range(5)]
    assert "Each run (10)</summary>" in html, "ten lines of names would bury what follows"
    assert "| high | 400 | all 5 seeds equal: no interval | 5 seeds × 10 episodes |" in md


# ---- Words and tables


def test_code_in_a_text_is_code_and_smuggles_nothing_in():
    assert str(render.coded("raise `lr` or <b>")) == "raise <code>lr</code> or &lt;b&gt;"
    assert str(render.coded("`<script>`")) == "`&lt;script&gt;`"
    assert render.md("see `relab examine -v`, not `a|b`") == "see `relab examine -v`, not \\`a\\|b\\`"
    assert render.md("`**x**`") == "\\`\\*\\*x\\*\\*\\`"


def test_no_backtick_is_left_on_a_page(tmp_path):
    finding = Finding("raise `lr`", slug="s", severity="warning", run="run", suggest=["lower `gamma`"])
    _, _, html, md = page_of(write_run(tmp_path / "run", UP), [finding])
    assert "`" not in html
    assert "\\`" not in md


def test_only_a_table_that_fits_stays_a_table_on_a_telephone():
    assert render.slim(["key", "preset", "this run"], [["algo.lr", "0.003", "0.1"]])
    assert not render.slim(["variant", "seeds", "each seed"], [["shipped", "5", "500 · 500 · 500 · 500 · 469.6"]])
    assert not render.slim(["配置", "值"], [["第" * 20, "1"]]), "a wide sign takes two places"


def test_the_same_advice_is_given_once(tmp_path):
    one = Finding("a", slug="a", severity="warning", run="run", suggest=["lower the rate"])
    two = Finding("b", slug="b", severity="warning", run="run", suggest=["lower the rate"])
    _, _, html, _ = page_of(write_run(tmp_path / "run", UP), [one, two])
    assert html.split("<details>")[0].count("lower the rate") == 1


# ---- The command


def test_the_command_writes_both_pages(tmp_path, capsys):
    folder = write_run(tmp_path / "run", UP, config={"total_steps": 4000})
    assert report.main([str(folder)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == ["Learned: 10 → 400 (random 20).", f"  {folder}/report.md", f"  {folder}/report.html"]
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    first = [(folder / name).read_bytes() for name in render.NAMES]
    report.main([str(folder)])
    assert [(folder / name).read_bytes() for name in render.NAMES] == first, "the same run, the same bytes"


def test_the_command_elsewhere_and_as_json(tmp_path, capsys):
    folder = write_run(tmp_path / "run", UP, config={"total_steps": 4000})
    assert report.main([str(folder), "--out", str(tmp_path / "page.html")]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["page.html", "page.md", "run"]
    capsys.readouterr()
    assert report.main([str(folder), "--json"]) == 0
    assert '"sentence":"Learned: 10 → 400 (random 20)."' in capsys.readouterr().out
    assert not (folder / "report.md").exists()


def test_a_card_of_many_configs_says_of_each_key_who_has_another_value():
    head = ["key", "a", "b", "c", "d", "e"]
    rows = [["lr", "1", "2", "3", "3", "2"], ["clip", "0.2", "0.2", "0.2", "0.2", "0.1"],
            ["sde", "(none)", "(none)", "(none)", "True", "(none)"]]  # fmt: skip
    card = render.card_of(ConfigChanges("Config keys that differ", head, rows))
    assert card.rows == [["lr", "1 in a; 2 in b, e; 3 in c, d"], ["clip", "0.2, but 0.1 in e"],
                         ["sde", "(none), but True in d"]]  # fmt: skip
    few = ConfigChanges("Config against its preset", head[:3], [["lr", "1", "1"]])
    assert render.card_of(few) == few, "nothing of it is cut"
