"""Does each rule find its planted fault, and keep silent on healthy runs? (make_histories.py makes the histories.)"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import made_up
import where
from relab.health import rule as rules
from relab.health.examine import examine
from relab.record.run_folder import Record
from where import histories

ROOT = histories()
SLUGS = list(rules.all_rules(plugins=False))
HEALTHY = sorted(path.name for path in (ROOT / "healthy").iterdir())


@pytest.mark.parametrize("slug", SLUGS)
def test_a_rule_finds_its_planted_fault(slug):
    assert (ROOT / "faulty" / slug).is_dir(), f"plant a fault that {slug} finds: PLANTED in tests/health/planted.py"
    found = {f.slug: f for f in examine(ROOT / "faulty" / slug).findings}
    assert slug in found, f"{slug} is silent on its fault; found: {sorted(found)}"
    assert found[slug].message
    assert found[slug].suggest


@pytest.mark.parametrize("name", HEALTHY)
def test_all_rules_are_silent_on_a_healthy_run(name):
    report = examine(ROOT / "healthy" / name)
    assert [(f.slug, f.message) for f in report.main] == []
    assert not [gone for gone in report.not_checked if "the rule failed" in gone.missing]
    assert (report.remarks, report.not_read, report.unreadable) == ([], [], [])


def test_healthy_runs_together_are_silent():
    assert [f.slug for f in examine(ROOT / "healthy").main] == []


@pytest.mark.parametrize("slug", SLUGS)
def test_a_rule_gives_its_reasons(slug):
    parts = rules.RULES[slug].parts
    assert list(parts) == list(rules.PARTS)
    assert min(len(text) for text in parts.values()) > 15


def test_a_rule_explains_rules_that_exist():
    unknown = {slug for rule in rules.RULES.values() for slug in rule.explains} - set(rules.RULES)
    assert unknown == set()


def test_each_history_belongs_to_a_rule_and_is_small():
    assert sorted(path.name for path in (ROOT / "faulty").iterdir()) == sorted(SLUGS)
    for meta in ROOT.rglob("meta.json"):
        size = sum(path.stat().st_size for path in meta.parent.rglob("*") if path.is_file())
        assert size < 34_000, f"{meta.parent} has {size} bytes"


@pytest.mark.parametrize("slug", [s for s in SLUGS if rules.RULES[s].needs])
def test_missing_metrics_are_not_checked_rather_than_fine(slug, tmp_path):
    from relab.health import engine
    from relab.health.examine import load_view

    view = load_view(next((ROOT / "faulty" / slug).rglob("meta.json")).parent, "x")
    gone = rules.RULES[slug].needs[0]
    del view.history.columns[gone]
    answer = engine.ask(rules.RULES[slug], view)
    assert isinstance(answer, engine.NotChecked)
    assert gone in answer.missing


@pytest.mark.parametrize(
    ("slug", "cause"),
    [
        ("frozen-parameters", "steps-too-small"),
        ("diverged", "steps-too-large"),
        ("std-exceeds-action-range", "setting-out-of-range"),
        ("critic-not-learning", "setting-out-of-range"),
        ("gradient-always-clipped", "setting-out-of-range"),
        ("unmentioned-config-change", "unmentioned-config-change"),
        ("non-finite", "non-finite"),
    ],
)
def test_the_cause_comes_first(slug, cause):
    assert examine(ROOT / "faulty" / slug).main[0].slug == cause


def test_what_no_rule_decides_is_decided_where_the_page_says():
    source = Path(rules.__file__).resolve().parents[1]
    page = (where.ROOT / "docs" / "health.md").read_text(encoding="utf-8").partition("## What no rule decides")[2]
    places = re.findall(r"\(`([\w/]+\.py)`\)", page)
    assert len(places) >= 5
    assert [name for name in places if not (source / name).exists()] == []


@pytest.mark.parametrize(
    ("levels", "text"),
    [([12.0, 11.0, 13.0, 12.0, 90.0], r"7,168\) is far above the mean of the last 2 \(5\d\.\d+, itself among them\)"),
     ([90.0, 12.0, 60.0, 13.0, 12.0], r"\((89|90)\.\d+ at 3,072\)")],
)  # fmt: skip
def test_the_best_evaluation_may_be_the_last_or_the_first_after_training_began(
    levels: list[float], text: str, tmp_path: Path
) -> None:
    random = {"random": {"return_mean": 5.0, "return_std": 1.0, "n": 100}}
    folder = made_up.run(tmp_path / "run", 10.0, {"spec": random})
    record, rng = Record.open(folder), np.random.default_rng(0)
    for step, level in enumerate(levels, start=3):
        episodes = [{"seed": i, "return": level + x, "length": 1, "success": None, "end": "done"}
                    for i, x in enumerate(rng.normal(size=20))]  # fmt: skip
        record.append_eval({"step": 1024 * step, "mode": "det", "noise": 0.2, "episodes": episodes})
    record.close()
    said = [each.message for each in examine(folder).findings if each.slug == "peak-selection"]
    assert re.search(text, "".join(said)), said
