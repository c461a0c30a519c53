"""Do a finding and the one that explains it ever advise opposite changes?"""

from __future__ import annotations

from relab.health.advice import agree, directions
from relab.health.examine import examine
from relab.health.rule import Finding
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


def test_no_planted_fault_gets_opposite_advice():
    for folder in sorted((histories() / "faulty").iterdir()):
        findings = examine(folder).findings
        for symptom in findings:
            for cause in (f for f in findings if f.run == symptom.run and f.slug == symptom.explained_by):
                a, b = directions(cause.suggest), directions(symptom.suggest)
                assert not [key for key in a.keys() & b.keys() if a[key] != b[key]], (
                    folder.name,
                    cause.slug,
                    symptom.slug,
                )
