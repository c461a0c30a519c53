"""Is there one remedy for a finding: not against its cause's, and the same in `relab examine` and `relab next`?"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

from relab.advise.propose import propose
from relab.cli import main
from relab.health.advice import agree, directions
from relab.health.examine import examine
from relab.health.mend import ANY, UP
from relab.health.remedy import Remedy, known_values
from relab.health.rule import Finding, all_rules
from relab.health.usual import usual_values
from relab.health.view import View
from relab.record.history import Column, History
from where import histories


def test_the_cause_counts_where_two_go_against_each_other():
    cause = Finding("x", slug="cause", suggest=["lower `lr`, or clip less"])
    middle = Finding("x", slug="middle", explained_by="cause", suggest=["look at the critic"])
    symptom = Finding("x", slug="symptom", explained_by="middle", suggest=[{"key": "algo.lr", "from": 0.1, "to": 0.3}])
    agree([symptom, middle, cause])
    assert symptom.suggest == ["mend cause first: it explains this"]
    assert middle.suggest == ["look at the critic"]


def test_what_agrees_stays():
    cause = Finding("x", slug="cause", suggest=["lower `lr`"])
    symptom = Finding("x", slug="symptom", explained_by="cause", suggest=["lower `lr` or `epochs`"])
    agree([cause, symptom])
    assert symptom.suggest == ["lower `lr` or `epochs`"]


def test_of_two_that_go_against_each_other_the_more_important_counts():
    low = Finding("x", slug="remark", severity="info", suggest=[{"key": "algo.lr", "from": 0.1, "to": 0.3}])
    high = Finding("x", slug="warned", severity="warning", suggest=["lower `lr` or `epochs`"])
    agree([low, high])
    assert low.suggest == ["mend warned first"]
    assert high.suggest == ["lower `lr` or `epochs`"]


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.slug)
def test_what_a_rule_says_to_try_is_what_mends_it(rule):
    said = directions([rule.parts.get("Try", "")])
    ways = {key.rpartition(".")[2]: way for key, way in rule.mends.items() if way != ANY}
    assert not [key for key in said.keys() & ways.keys() if said[key] != ways[key]]


def test_rows_that_leave_the_clip_range_ask_for_no_narrower_one():
    assert all_rules()["clip-share-high"].mends["algo.clip"] == UP


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """What is said of every planted fault; each alone in a folder, because `relab next` reads all that lies beside."""
    root = tmp_path_factory.mktemp("planted")
    folders = [shutil.copytree(f, root / f.name / f.name) for f in sorted((histories() / "faulty").iterdir())]
    return {folder: examine(folder) for folder in folders}


def test_no_planted_fault_gets_opposite_advice(planted):
    for folder, report in planted.items():
        findings = report.findings
        for one, other in itertools.combinations((f for f in findings if f.run), 2):
            a, b = directions(one.suggest), directions(other.suggest)
            opposite = [key for key in a.keys() & b.keys() if a[key] != b[key]]
            assert one.run != other.run or not opposite, (folder.name, one.slug, other.slug)


def test_examine_and_next_name_one_remedy(planted):
    """What `relab next` proposes because of a finding is what that finding says to try, with the same reason."""
    proposed = 0
    for folder, report in planted.items():
        proposal = propose(report, folder)
        finding = next((f for f in report.main if f.slug == getattr(proposal, "source", None)), None)
        if finding is None:
            continue
        proposed += 1
        changes = {
            one["key"]: {"from": one["from"], "to": one["to"]} for one in finding.suggest if isinstance(one, dict)
        }
        assert proposal.diff == changes, folder.name
        assert all(one["why"] in proposal.rationale for one in finding.suggest if isinstance(one, dict)), folder.name
    assert proposed > 10


def test_the_remedy_is_printed_with_where_it_is_from(capsys):
    folder = str(histories() / "faulty" / "diverged")
    assert main(["examine", folder]) == 0
    examined = capsys.readouterr().out
    assert main(["next", folder]) == 0
    change, _, because = capsys.readouterr().out.partition(": ")[2].partition("\n")
    assert f"try: {change} (relab's" in examined
    assert "is relab's" in " ".join(because.split())


def test_a_remedy_that_goes_against_its_cause_is_withdrawn():
    cause = Finding("x", slug="cause", suggest=["lower `lr`"])
    symptom = Finding("x", slug="symptom", explained_by="cause", suggest=["raise `lr`"], remedy=Remedy({}, ""))
    agree([cause, symptom])
    assert symptom.remedy is None


def test_another_algorithms_values_are_no_advice():
    """PPO clips gradients at 0.5 and DQN at 10: the word is one, what it does is not."""
    config = {"max_grad_norm": 10.0, "gamma": 0.5}
    dqn = View(History(Path(), config={"algo": {"name": "dqn", **config}}), "dqn")
    ppo = View(History(Path(), config={"algo": {"name": "ppo", **config, "max_grad_norm": 0.5}}), "ppo")
    (_, values), *_ = known_values(dqn, ppo)
    assert "algo.max_grad_norm" not in values
    assert values["algo.gamma"] == 0.5
    twin = View(History(Path(), config={"algo": {"name": "ppo", **config}}), "ppo2")
    assert known_values(twin, ppo)[0][1]["algo.max_grad_norm"] == 0.5


@pytest.mark.parametrize(("state", "interval"), [("running", 4000), ("finished", 100)])
def test_a_default_is_too_long_for_the_steps_that_a_run_will_have(state, interval):
    """At step 5,000 of 200,000 Stable-Baselines3's 10,000 is no tenth of the run, and 100 is no advice."""
    config = {"algo": {"name": "dqn"}, "total_steps": 200_000, "foreign": {"target_update_interval": 10_000_000}}
    columns = {"value/loss": Column(np.array([100, 5000]), np.ones(2))}
    history = History(Path(), config=config, columns=columns, meta={"logger": "relab.logger"})
    values = usual_values(View(history, "dqn", state=state))
    assert {"foreign.target_update_interval": interval} in [each for _, each in values]
