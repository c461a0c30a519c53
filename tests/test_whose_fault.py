"""Is what a user can mend told in one line, and what only a programmer can mend as a fault, with its place?"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from relab import cli
from relab.base import blame
from relab.base.errors import NotFoundError, UserError
from relab.base.jsonl import RecordError
from relab.cli import COMMANDS
from relab.config import layers, registry
from relab.config.base import ConfigError
from relab.formats.read import find
from relab.health import rule
from small_runs import run

ENV = """
from relab.train.envs.cartpole import CartPole as Original

class Broken(Original):
    def step(self, *args):
        raise KeyError("door")
"""
RULE = '''
from relab.health.rule import rule

@rule("of-a-plug-in", about="evidence", algos=())
def check(view):
    """What: nothing. Why: nothing. Refuted by: nothing. Known problems: none. Try: nothing."""
    return {}["gone"]
'''
IMPORTER = """
from relab.formats.read.source import Source

def sniff(listing):
    return "weights.log" in listing.files

def sources(listing):
    return [Source("weightlog", listing.folder, (listing.folder / "weights.log",))]

def read(source):
    return {}["ret"]
"""
POINTS = [
    EntryPoint("mine", "my_rules", rule.ENTRY_POINTS),
    EntryPoint("weightlog", "my_importer", find.ENTRY_POINTS),
]
CACHES = (registry._entry_points, registry._plugin, layers.schema, rule.load_plugins, find._plugins, find.importer)


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Three modules of a user, each with a slip in it."""
    for name, text in (("my_env", ENV), ("my_rules", RULE), ("my_importer", IMPORTER)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    original = importlib.metadata.entry_points
    offered = lambda **keys: [p for p in POINTS if p.group == keys.get("group")] or original(**keys)  # noqa: E731
    monkeypatch.setattr(importlib.metadata, "entry_points", offered)
    monkeypatch.setattr(find, "entry_points", offered)
    clear()
    yield tmp_path
    clear()
    rule.RULES.pop("of-a-plug-in", None)


def clear() -> None:
    for cache in CACHES:
        cache.cache_clear()
    for name in ("my_env", "my_rules", "my_importer"):
        sys.modules.pop(name, None)
        blame.PLUGINS.pop(name, None)


# ---- Plug-ins


def test_a_file_that_an_environment_lacks_is_told_with_its_place(
    plugins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An OSError of relab's own is one line; out of somebody's environment it is as much a slip as a KeyError."""
    path = plugins / "my_env.py"
    path.write_text(path.read_text().replace('raise KeyError("door")', 'open("/no/such/asset")'))
    words = ["train", "ppo", "env=my_env:Broken", "total_steps=64", "algo.envs=2", "algo.steps=8", "minibatches=1"]
    assert cli.main([*words, "--quiet"]) == 70
    assert f"a fault of the plug-in my_env:Broken ({path}:6)" in capsys.readouterr().err


def test_an_environment_that_fails_is_a_traceback_that_names_it(
    plugins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "ppo", "env=my_env:Broken", "total_steps=64", "algo.envs=2", "algo.steps=8", "minibatches=1"]
    assert cli.main([*words, "--quiet"]) == 70
    *trace, last = capsys.readouterr().err.splitlines()
    assert "Traceback (most recent call last):" in trace
    assert trace[-1] == "KeyError: 'door'", trace
    assert last == (
        f"relab: this is a fault of the plug-in my_env:Broken ({plugins / 'my_env.py'}:6) or of relab: please report it"
        " with the lines above"
    )


def test_a_rule_that_fails_is_told_with_its_place_and_the_others_are_asked(
    plugins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(plugins / "run", total_steps="128")
    assert cli.main(["examine", str(plugins / "run"), "--json"]) == 0
    place = f"(a fault of the plug-in mine ({plugins / 'my_rules.py'}:7) or of relab)"
    assert f"the rule failed: KeyError: 'gone' {place}" in capsys.readouterr().out


def test_a_rule_that_fails_is_one_line_without_asking_for_more(
    plugins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(plugins / "run", total_steps="128")
    assert cli.main(["examine", str(plugins / "run")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "failed" in line]
    assert line.startswith(
        "rule of-a-plug-in of my_rules failed on run: KeyError: 'gone' (a fault of the plug-in mine ("
    )


def test_an_importer_that_fails_is_told_with_its_place(plugins: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (plugins / "logs").mkdir()
    (plugins / "logs" / "weights.log").write_text("1\n")
    assert cli.main(["compare", str(plugins / "logs")]) == 2
    place = f"(a fault of the plug-in weightlog ({plugins / 'my_importer.py'}:11) or of relab)"
    assert f"KeyError: 'ret' {place}" in capsys.readouterr().err


# ---- relab itself


@pytest.mark.parametrize("error", [KeyError, LookupError, IndexError, AttributeError, ValueError])
def test_an_error_that_is_no_users_is_a_fault_of_relab(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slip(*_: object) -> str:
        raise error("x")

    monkeypatch.setattr("relab.health.words.hint", slip)
    assert cli.main(["explain", "no-such-word"]) == 70
    *trace, last = capsys.readouterr().err.splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert re.fullmatch(
        r"relab: this is a fault of relab \(relab/health/words.py:\d+\): please report it with the lines above",
        last,
    )


def test_the_cause_of_an_error_is_looked_at_as_well(plugins: Path) -> None:
    blame.note("mine", "my_rules")
    scope: dict[str, Any] = {"__name__": "my_rules"}
    exec(compile("def check():\n    {}['x']", "my_rules.py", "exec"), scope)
    try:
        scope["check"]()
    except KeyError as cause:
        error = RuntimeError("elsewhere")
        error.__cause__ = cause
    assert blame.culprit(error) == "the plug-in mine (my_rules.py:2) or of relab"


def test_what_a_user_can_mend_is_named_without_a_place() -> None:
    assert blame.reason(RecordError("it is empty")) == "RecordError: it is empty"
    assert blame.reason(FileNotFoundError("gone")) == "FileNotFoundError: gone"
    assert blame.reason(KeyError("x")) == "KeyError: 'x' (a fault of relab)"


@pytest.mark.parametrize(
    ("kind", "code"), [(ConfigError, 64), (registry.UntrustedError, 64), (RecordError, 2), (NotFoundError, 2)]
)
def test_each_kind_of_users_error_has_its_exit_code(kind: type[UserError], code: int) -> None:
    assert issubclass(kind, UserError)
    assert kind.exit_code == code


# ---- What users do wrong, for each command

MISTAKES: dict[str, tuple[list[str], int]] = {
    "train": (["ppo", "env=gym:CartPole-v1", 'env.kwargs={"wheels": 4}'], 64),
    "resume": (["nobody"], 2),
    "capture": (["--", "no-such-program"], 64),
    "eval": (["one", "--checkpoint", "nowhere"], 2),
    "video": (["one", "--fps", "0"], 64),
    "experiment": (["plan.yaml"], 64),
    "loop": (["plan.yaml"], 64),
    "sweep": (["plan.yaml"], 64),
    "queue": (["cancel", "nobody"], 2),
    "examine": (["one", "--against", "nobody"], 2),
    "compare": (["one", "--metric", "no/metric"], 2),
    "explain": (["no-such-word"], 2),
    "report": (["nobody"], 2),
    "convert": (["nobody", "--to", "csv", "--out", "out"], 2),
    "note": (["log.md", "--check"], 2),
    "gate": (["replay", "one"], 64),
    "faults": (["--only", "nothing"], 2),
    "probe": (["nobody"], 2),
    "study": (["nothing"], 64),
    "coverage": (["--words"], 64),
    "next": (["nobody"], 2),
    "diff": (["one", "nobody"], 2),
    "runs": (["undo", "nobody"], 2),
    "doctor": (["--words"], 64),
    "completion": (["powershell"], 64),
    "mcp": (["no-such-folder"], 64),
    "serve": (["no-such-folder"], 64),
    "watch": (["nobody"], 2),
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    run(folder / "runs" / "one", total_steps="128")
    (folder / "plan.yaml").write_text("question: why\n")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_a_users_mistake_is_no_traceback(
    name: str, shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shelf)
    words, code = MISTAKES[name]
    assert cli.main([name, *words]) == code
    printed = capsys.readouterr().err
    assert "Traceback" not in printed
    assert printed.startswith("relab: ") or code == 64
