"""Does relab ask for the packages that it imports, and for no others?"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import syntax
from relab.cli import TRAIN
from relab.lab.checkup import USED_FOR
from where import ROOT

SRC, TESTS = ROOT / "src" / "relab", ROOT / "tests"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GUESTS = {"pandas", "stable-baselines3"}  # used where the user has them: .to_pandas(), the logger's callback
TOOLS = {"pytest-xdist", "ruff", "mypy", "build", "ipykernel", "httpx2"}  # called, not imported
OPTIONAL = PROJECT["optional-dependencies"]
EXTRAS = ("train", "optuna", "mujoco", "mcp", "ray")  # what users may want on top


def named(requirements: list[str]) -> set[str]:
    return {plain(re.match(r"[\w.-]+", text)[0]) for text in requirements}  # type: ignore[index]


def plain(name: str) -> str:
    """As PyPI compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def modules(folder: Path) -> set[str]:
    """Top-level modules of others that the files below a folder import, wherever in a file."""
    names = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(syntax.tree(path)):
            names |= {name.partition(".")[0] for name in imported(node)}
    package = (folder / "__init__.py").exists()  # whose modules are imported by their whole name
    own = set() if package else {path.stem for path in folder.rglob("*")}
    return names - set(sys.stdlib_module_names) - own - {"relab"}


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


@functools.cache
def packages(folder: Path) -> set[str]:
    """The packages that bring these modules; one that is not installed is called like its module."""
    bring = metadata.packages_distributions()
    return {plain(package) for module in modules(folder) for package in bring.get(module, [module])}


def brought(names: set[str]) -> set[str]:
    """These packages and all that they require, as far as they are installed."""
    visited: set[str] = set()
    while names - visited:
        name = min(names - visited)
        visited.add(name)
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        names = names | named([text for text in needs if "extra ==" not in text])
    return visited


@pytest.mark.parametrize("group", ["dependencies", *EXTRAS])
def test_what_is_required_is_imported(group: str) -> None:
    required = named(PROJECT["dependencies"] if group == "dependencies" else OPTIONAL[group])
    assert required - packages(SRC) == set(), f"take them out of {group} in pyproject.toml"


def test_what_is_imported_is_required() -> None:
    required = named([*PROJECT["dependencies"], *(text for extra in EXTRAS for text in OPTIONAL[extra])])
    assert packages(SRC) - required - GUESTS == set(), "add them to pyproject.toml"


def test_what_developers_install_is_used() -> None:
    assert named(OPTIONAL["dev"]) - TOOLS - packages(TESTS) - packages(SRC) == set()


def test_what_is_pinned_is_brought_by_what_is_required() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = named([line for line in lines if not line.startswith("#")])
    required = named([*PROJECT["dependencies"], *(text for group in OPTIONAL.values() for text in group)])
    assert pinned - brought(required) - {"setuptools"} == set(), "take them out of constraints.txt"


def test_each_package_of_training_is_known_to_the_command_line_and_to_the_checkup() -> None:
    required = named(OPTIONAL["train"])
    assert {plain(name) for name in TRAIN} == required, "cli.TRAIN: what is missing is told with the remedy"
    assert {plain(name) for name in USED_FOR} == required, "checkup.USED_FOR"


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    text = "import os, torch.nn\ndef f():\n    from ruamel.yaml import YAML\nfrom .b import c\n"
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "b.py").write_text("import a\n")
    assert modules(tmp_path) == {"torch", "ruamel"}
