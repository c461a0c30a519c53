"""Is a cause named where a finding and a changed setting meet, and only there?"""

from __future__ import annotations

import pytest

from relab.config.views import MISSING, Change
from relab.health.rule import Finding
from relab.report import sections
from relab.report.changes import change_text, likely
from relab.report.page import Facts
from report.made import write_run

UP, LOST, FLAT = (10.0, 60.0, 150.0, 400.0), (10.0, 200.0, 400.0, 60.0, 25.0), (10.0, 12.0, 11.0, 10.0)


def change(key, a, b):
    return Change(key, a, b, 1.0)


def finding(*advice, slug="update-too-large", run="run", **more):
    return Finding("m", suggest=list(advice), severity=more.pop("severity", "info"), slug=slug, run=run, **more)


@pytest.mark.parametrize(
    ("advice", "changed", "expected"),
    [
        ({"key": "algo.lr", "from": 0.02, "to": 0.002}, change("algo.lr", 0.001, 0.02), "lr x20"),
        ({"key": "algo.lr", "from": 0.02, "to": 0.002}, change("algo.lr", 0.1, 0.02), None),  # it was lowered already
        ({"key": "algo.lr", "from": 0.02, "to": 0.002}, change("algo.clip", 0.1, 0.2), None),
        ({"key": "algo.norm_adv", "from": False, "to": True}, change("algo.norm_adv", True, False),
         "norm_adv True → False"),
        ("lower `lr` or `epochs`.", change("algo.epochs", 4, 40), "epochs x10"),
        ("lower `lr` or `epochs`.", change("algo.epochs", 40, 4), None),
        ("raise `ent_coef`, lower `lr`.", change("algo.ent_coef", 0.01, 0.0005), "ent_coef x0.05"),
        ("raise `ent_coef`, lower `lr`.", change("algo.ent_coef", 0.01, 0.12), None),
        ("cut `ent_coef` tenfold (0 is usual)", change("algo.ent_coef", 0.0, 0.12), "ent_coef 0 → 0.12"),
        ("lower `lr` tenfold, or set `target_kl`", change("algo.target_kl", 0.02, None), "target_kl 0.02 → null"),
        ("lower `lr` tenfold, or set `target_kl`", change("algo.target_kl", None, 0.02), None),  # it is set
        ("check `lr`, and optim/grad_norm.", change("algo.lr", 0.001, 0.02), None),  # no direction: no claim
        ("lower lr", change("algo.lr", 0.001, 0.02), None),  # a word, not a key
        ("lower `lr`", change("algo.lr", MISSING, 0.02), None),
        ("lower `total_steps`", change("total_steps", 10, 100), None),  # no cause of anything
        ("lower `seed`", change("seed", 1, 2), None),
    ],
)  # fmt: skip
def test_a_cause_needs_advice_that_leads_back(advice, changed, expected):
    cause = likely([finding(advice)], [changed])
    assert (cause[0] if cause else None) == expected


def test_causes_come_before_symptoms_and_the_list_of_changes_comes_last():
    changes = [change("algo.clip", 0.2, 0.4), change("algo.lr", 0.001, 0.02)]
    listed = finding({"key": "algo.clip", "from": 0.4, "to": 0.2}, slug="unmentioned-config-change")
    text, one = likely([listed, finding("lower `lr`")], changes)
    assert (text, one.slug) == ("lr x20", "update-too-large")
    assert likely([listed], changes)[0] == "clip x2"
    assert likely([finding("lower `clip`", slug="a"), finding("lower `lr`", slug="b")], changes)[0] == "clip x2"


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [(0.01, 0.12, "k x12"), (0.3, 0.003, "k x0.01"), (0, 1, "k 0 → 1"), (-1, 2, "k -1 → 2"), ("a", None, "k a → null"),
     (True, False, "k True → False")],
)  # fmt: skip
def test_how_a_change_is_told(a, b, text):
    assert change_text(change("algo.k", a, b)) == text


# ---- In the sentence


def pair(tmp_path, evals, lr=0.012):
    write_run(tmp_path / "first", UP)
    return write_run(tmp_path / "run", evals, config={"algo": {"name": "ppo", "lr": lr}}, meta={"parent": "first"})


def test_the_sentence_names_the_cause(tmp_path):
    said = sections.build(pair(tmp_path, LOST), Facts([finding("lower `lr`")])).sentence
    assert said == ("Lost what it had learned, from step 3,000 on (best evaluation 400): 10 → 25 (random 20); "
                    "likely lr x12 against its parent.")  # fmt: skip


def test_without_a_match_it_names_the_finding(tmp_path):
    folder = pair(tmp_path, LOST)
    assert sections.build(folder, Facts([finding("raise `lr`")])).sentence.endswith("; lead finding: update-too-large.")
    assert sections.build(folder, Facts([finding("lower `epochs`")])).sentence.endswith(
        "; lead finding: update-too-large."
    )
    assert sections.build(folder, Facts([])).sentence.endswith("(random 20).")


def test_a_run_that_is_well_has_no_cause(tmp_path):
    folder = pair(tmp_path, UP)
    assert sections.build(folder, Facts([finding("lower `lr`")])).sentence.endswith("10 → 400 (random 20).")
    warned = finding("lower `lr`", severity="warning")
    assert sections.build(folder, Facts([warned])).sentence.endswith("(random 20); lead finding: update-too-large.")


def test_shared_findings_are_no_cause(tmp_path):
    shared = finding("lower `lr`", status="also-in-reference")
    assert sections.build(pair(tmp_path, LOST), Facts([shared])).sentence.endswith("(random 20).")


def test_seeds_are_counted(tmp_path):
    write_run(tmp_path / "first", UP)
    for seed in range(3):
        write_run(tmp_path / f"all/s{seed}", FLAT, seed=seed, config={"algo": {"name": "ppo", "lr": 0.1}})
    findings = [finding("lower `lr`", run=f"s{seed}") for seed in range(2)]
    said = sections.build(tmp_path / "all", Facts(findings), against=tmp_path / "first").sentence
    assert said.endswith("; likely lr x100 against its reference (update-too-large in 2 of 3 runs).")
    assert sections.build(tmp_path / "all", Facts(findings)).sentence.endswith(
        "; lead finding: update-too-large (in 2 of 3 runs)."
    )


def variants(tmp_path, **others):
    for name, evals, algo in (("good", UP, {"lr": 0.001}), ("bad", FLAT, {"lr": 0.1, **others})):
        for seed in range(2):
            write_run(tmp_path / f"{name}-s{seed}", evals, seed=seed, config={"algo": {"name": "ppo", **algo}})
    return [finding("lower `lr`", run=f"{name}-s0") for name in ("good", "bad")]


def test_a_variant_is_held_against_the_best_one(tmp_path):
    said = sections.build(tmp_path, Facts(variants(tmp_path))).sentence
    assert said.endswith(" bad: likely lr x100 against good (update-too-large in 1 of 2 runs).")
    assert said.count("likely") == 1


def test_configs_that_share_little_are_not_held_against_each_other(tmp_path):
    findings = variants(tmp_path, **{f"k{i}": i for i in range(5)})
    assert "likely" not in sections.build(tmp_path, Facts(findings)).sentence
