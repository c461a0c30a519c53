"""Is what every reading command prints with --json as its schema says, for relab's own runs and for other tools'?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import made_up
from relab import cli
from relab.commands import schemas
from where import fixtures, histories

Words = list[str]

FOREIGN = ("csv", "sb3", "tensorboard", "wandb", "mlflow", "optuna", "rllib", "d3rlpy")
GATES = """
total: 20
every: 5
curriculum: 5:30
gates: {door: {success: [early_death_100 <= 0.1, step_one_count <= 18], failure: [death_p10 < 95], freeze: 3}}
alerts: {tail: {when: tail_left <= 0.6, patience: 5}}
multi_eval: {episodes: 12, agents: 96}
"""


def lab(root: Path) -> Path:
    """A small lab: an answered experiment, a chain of runs with a proposal, a log, a queue."""
    made_up.answered(root / "experiments", "lr", "{low: {lr: 1e-4}, high: {lr: 1e-3}}", (30.0, 80.0))
    made_up.run(root / "runs" / "a", 100.0, {"intent": "try"}, algo__lr=0.001)
    proposed = made_up.proposal({"algo.lr": {"from": 0.001, "to": 0.0005}}, 10.0, -5.0, 20.0)
    made_up.run(root / "runs" / "b", 120.0, {"parent": "a", "proposal": proposed}, algo__lr=0.0005)
    (root / "plan.yaml").write_text(GATES)
    cli.main(["note", str(root / "runs" / "b"), "--into", str(root / "LOG.md")])
    cli.main(["queue", "add", "--queue", str(root / "queue"), "--", "true"])
    return root


# Which schema, and the words of the command; {lab} is the small lab, {sick} relab's runs with planted faults.
OWN: list[tuple[str, str]] = [
    ("examine", "examine {sick} --json"),
    ("examine", "examine {lab}/runs --new --json"),
    ("examine", "examine {lab}/runs --notes {lab}/LOG.md --json"),
    ("compare", "compare {lab}/experiments/lr --json"),
    ("compare", "compare {sick} --leading --json"),
    ("diff", "diff {lab}/runs/a {lab}/runs/b --json"),
    ("runs", "runs {sick} --json"),
    ("runs-by", "runs {lab}/runs --by lr --json"),
    ("runs-disk", "runs disk --runs {lab}/runs --json"),
    ("report", "report {sick}/update-too-large --json"),
    ("report", "report {lab}/experiments/lr --json"),
    ("note", "note {lab}/runs/b --json"),
    ("note", "note {lab}/experiments/lr --json"),
    ("note-search", "note --into {lab}/LOG.md --search eval --json"),
    ("note-digest", "note --into {lab}/LOG.md --digest 5000d --json"),
    ("note-families", "note --into {lab}/LOG.md --families --json"),
    ("note-check", "note {lab}/LOG.md --check --json"),
    ("explain", "explain policy/kl --json"),
    ("explain", "explain policy/kl {sick}/update-too-large --json"),
    ("next", "next {sick}/update-too-large --json"),
    ("next", "next {lab}/experiments/lr --json"),
    ("next-history", "next {lab}/runs --history --json"),
    ("doctor", "doctor {lab}/runs --json"),
    ("queue", "queue --queue {lab}/queue --json"),
    ("gate", "gate lint {lab}/plan.yaml --json"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = lab(tmp_path_factory.mktemp("lab"))
    for name in ("update-too-large", "entropy-collapse", "untrusted-best"):
        shutil.copytree(histories() / "faulty" / name, root / "sick" / name)
    return {"lab": root, "sick": root / "sick"}


def printed(words: Words, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert cli.main(words) in (0, 1), words
    return json.loads(capsys.readouterr().out)


def check(name: str, body: Any) -> None:
    """Every key that is there is in the schema, and every key that the schema asks for is there."""
    jsonschema.Draft202012Validator(schemas.schema(name)).validate(body)
    assert body["schema"] == schemas.schema(name)["properties"]["schema"]["const"]


@pytest.mark.parametrize(("name", "words"), OWN, ids=[words for _, words in OWN])
def test_own_runs(name: str, words: str, places: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    check(name, printed(words.format(**places).split(), capsys))


@pytest.mark.parametrize("tool", FOREIGN)
@pytest.mark.some(3)
def test_runs_of_other_tools(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(fixtures() / tool)
    for name in ("examine", "compare", "runs", "report", "next"):
        check(name, printed([name, folder, "--json"], capsys))


def test_every_schema_is_a_schema_and_is_tested() -> None:
    for name in schemas.names():
        jsonschema.Draft202012Validator.check_schema(schemas.schema(name))
        assert all("description" in part for part in schemas.schema(name)["properties"].values()), name
    assert {name for name, _ in OWN} == set(schemas.names())


def test_a_key_that_the_schema_does_not_know_is_refused() -> None:
    """Else the schemas would say nothing: a new key comes with its description, and a removed one with a new number."""
    body = {"schema": 1, "a": "x", "b": "y", "changes": [{"key": "lr", "a": 1, "b": 2, "size": 1.0}]}
    check("diff", body)
    for wrong in ({**body, "more": 1}, {**body, "changes": [{"key": "lr"}]}, {"schema": 1}, {**body, "schema": 2}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schemas.schema("diff")).validate(wrong)
