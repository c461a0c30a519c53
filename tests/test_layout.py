"""Does every module import only what stands above it? The layout is a list, and a failure names the line to move.

Four rules: a wing imports only those above it in docs/layout.txt; modules of one wing import each other without a
cycle; the reading half never reaches torch, numba, mujoco or gymnasium, directly or through another module; a function
fits on a screen.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import syntax
from where import ROOT

SRC = ROOT / "src" / "relab"

# A unit is a wing (a package right below relab) or one of the doors that users come in by. docs/layout.txt lists them
# in the order in which they may import, each only from those above it; README's tree and docs/modules.md come from it.
LAYOUT = SRC.parents[1] / "docs" / "layout.txt"
UNITS = [line.split()[0].rstrip("/").removesuffix(".py") for line in LAYOUT.read_text(encoding="utf-8").splitlines()]
PLACE = {unit: place for place, unit in enumerate(["__init__", *UNITS])}

# Units that must start fast and run without the `train` extra: all that stand above training, and the logger.
READING = {*UNITS[: UNITS.index("train")], "logger", "web", "callbacks", "__init__"}
AT_IMPORT = {"commands", "cli", "api"}  # light when imported; their functions load the rest when called
HEAVY = {"torch", "numba", "mujoco", "gymnasium"}
LAZY = {"matplotlib"}  # the reading half may use it, but only inside a function
LONGEST = 40  # lines of a function, its signature and docstring included
LONGEST_FILE = 450  # lines; past that a second idea hides inside
WHOLE = {"logger.py"}  # one file by design: any program may copy it


@dataclass(frozen=True)
class Import:
    """One name that a module imports."""

    file: Path
    line: int
    target: str  # dotted, e.g. relab.config or torch.nn
    deferred: bool  # inside a function or under TYPE_CHECKING: not run when the module is imported
    typing_only: bool

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


def module_name(file: Path, src: Path) -> str:
    """relab/train/envs/base.py -> relab.train.envs.base; a package is named by its folder."""
    parts = [src.name, *file.relative_to(src).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def unit_of(module: str) -> str:
    """relab.train.envs.base -> envs; relab itself -> __init__."""
    return [*module.split("."), "__init__"][1]


def walk(module: ast.Module, deep: bool) -> Iterator[tuple[ast.AST, bool, bool]]:
    """All statements, and what they are made of if `deep`, with whether they run at import at all."""
    waiting: list[tuple[ast.AST, bool, bool]] = [(module, False, False)]
    while waiting:
        above, deferred, typing_only = waiting.pop()
        inside = isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        typed = above.body if isinstance(above, ast.If) and "TYPE_CHECKING" in ast.dump(above.test) else ()
        below = [
            (child, deferred or inside or child in typed, typing_only or child in typed)
            for child in ast.iter_child_nodes(above)
            if deep or isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))
        ]
        yield from below
        waiting += below


def targets(node: ast.AST, file: Path, src: Path) -> list[str]:
    """The dotted modules that an import statement, or a literal import_module call, names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = absolute(node, file, src)
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module":
        return [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return []


def absolute(node: ast.ImportFrom, file: Path, src: Path) -> str:
    """The module behind `from X import`, relative forms resolved."""
    if node.level == 0:
        return node.module or ""
    folder = file.parent.relative_to(src.parent).parts
    return ".".join([*folder[: len(folder) - node.level + 1], *([node.module] if node.module else [])])


def imports_of(file: Path, src: Path) -> list[Import]:
    """Every import in a file, at any depth; `from relab.config import Layer` is cut to the module relab.config."""
    imports = []
    deep = "import_module" in file.read_text(encoding="utf-8")
    for node, deferred, typing_only in walk(syntax.tree(file), deep):
        for target in targets(node, file, src):
            line = getattr(node, "lineno", 0)
            imports.append(Import(file, line, to_module(target, src), deferred, typing_only))
    return imports


def to_module(target: str, src: Path) -> str:
    """Cut attribute names off a dotted target inside relab, so that a module remains."""
    parts = target.split(".")
    if parts[0] != src.name:
        return target
    while len(parts) > 1 and not is_module(src.parent.joinpath(*parts)):
        parts.pop()
    return ".".join(parts)


def is_module(path: Path) -> bool:
    return path.with_name(path.name + ".py").is_file() or path.is_dir()


def read_tree(src: Path) -> dict[str, list[Import]]:
    return read_once() if src == SRC else parsed(src)


@functools.cache
def read_once() -> dict[str, list[Import]]:
    return parsed(SRC)


def parsed(src: Path) -> dict[str, list[Import]]:
    return {module_name(file, src): imports_of(file, src) for file in sorted(src.rglob("*.py"))}


def ours(imports: list[Import], src: Path) -> list[Import]:
    return [each for each in imports if each.target.split(".")[0] == src.name]


def unplaced(src: Path) -> list[str]:
    """Units that the table does not know."""
    units = {unit_of(module) for module in read_tree(src)}
    advice = "has no place in docs/layout.txt: put it into the wing whose question it answers"
    return [f"{src.name}/{unit} {advice}" for unit in sorted(units - set(PLACE))]


def upward(src: Path) -> list[str]:
    """Imports that point down the list."""
    problems = []
    for module, imports in read_tree(src).items():
        here = unit_of(module)
        for each in ours(imports, src):
            there = unit_of(each.target)
            if here != there and here in PLACE and there in PLACE and PLACE[there] >= PLACE[here]:
                problems.append(describe_upward(each, here, there))
    return problems


def describe_upward(each: Import, here: str, there: str) -> str:
    order = f"{there} stands below {here} in docs/layout.txt"
    return f"{each.where}: {here} imports {each.target}, but {order}. Move what is needed up, or the caller down"


def cycles(src: Path) -> list[str]:
    """Loops among the modules of one package, deferred imports included (types alone do not make a loop)."""
    graph: dict[str, list[Import]] = {
        module: [each for each in ours(imports, src) if not each.typing_only and each.target != module]
        for module, imports in read_tree(src).items()
    }
    problems = []
    for module, imports in graph.items():
        for each in imports:
            back = chain(each.target, {module}, graph, same_unit=unit_of(module))
            if unit_of(each.target) == unit_of(module) and back:
                loop = " -> ".join([module, *(step.target for step in [each, *back])])
                problems.append(f"{each.where}: import cycle {loop}. Move what both need into a module of its own")
    return problems


def chain(
    start: str, goals: set[str], graph: dict[str, list[Import]], same_unit: str | None = None
) -> list[Import] | None:
    """The shortest way of imports from `start` to a goal; None when there is none."""
    visited, ways = {start}, [(start, [])]  # type: ignore[var-annotated]
    for module, way in ways:  # grows while it is read: breadth first
        for each in graph.get(module, []):
            if each.target in goals or each.target.split(".")[0] in goals:
                return [*way, each]
            if each.target not in visited and same_unit in (None, unit_of(each.target)):
                visited.add(each.target)
                ways.append((each.target, [*way, each]))
    return None


def with_parents(imports: list[Import], src: Path) -> list[Import]:
    """Importing relab.train.envs.base runs relab/envs/__init__.py too."""
    packages = [
        replace(each, target=each.target.rpartition(".")[0]) for each in ours(imports, src) if "." in each.target
    ]
    return imports + packages


def heavy(src: Path) -> list[str]:
    """Ways from the reading half to torch and its like."""
    tree = {module: with_parents(imports, src) for module, imports in read_tree(src).items()}
    at_import = {module: [each for each in imports if not each.deferred] for module, imports in tree.items()}
    ever = {module: [each for each in imports if not each.typing_only] for module, imports in tree.items()}
    problems = []
    for module in tree:
        if unit_of(module) in READING:
            problems += describe_heavy(module, chain(module, HEAVY, ever))
        if unit_of(module) in READING | AT_IMPORT:
            problems += describe_heavy(module, chain(module, HEAVY | LAZY, at_import))
    return sorted(set(problems))


def describe_heavy(module: str, way: list[Import] | None) -> list[str]:
    if not way:
        return []
    through = " -> ".join([module, *(each.target for each in way)])
    package = way[-1].target.split(".")[0]
    advice = f"The reading half does without {package}: move the function that needs it to a training module"
    return [f"{way[0].where}: {through}. {advice}"]


def long_functions(src: Path) -> list[str]:
    """Functions that hold more than one idea, by their length."""
    problems = []
    for file in sorted(src.rglob("*.py")):
        for node in ast.walk(syntax.tree(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST:
                    problems.append(f"{file}:{node.lineno}: {node.name} has {lines} lines, {LONGEST} at most: split it")
    return problems


def long_files(src: Path) -> list[str]:
    """Files that hold more than one idea, by their length."""
    sizes = {file: len(file.read_bytes().splitlines()) for file in sorted(src.rglob("*.py")) if file.name not in WHOLE}
    return [f"{file}: {n} lines, {LONGEST_FILE} at most: split it" for file, n in sizes.items() if n > LONGEST_FILE]


def report(problems: list[str]) -> None:
    """One problem a line, all of them."""
    if problems:
        pytest.fail("\n".join(dict.fromkeys(problems)), pytrace=False)


def test_each_module_has_a_place():
    report(unplaced(SRC))


def test_imports_go_down():
    report(upward(SRC))


def test_packages_have_no_cycles():
    report(cycles(SRC))


def test_reading_half_is_light():
    report(heavy(SRC))


def test_functions_fit_on_a_screen():
    report(long_functions(SRC))


def test_files_hold_one_idea():
    report(long_files(SRC))


def test_commands_compute_nothing():
    """They parse, call one function of a wing and print: no arrays, no SQL, no caught faults."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (SRC / "commands").glob("*.py")}
    signs = ("import numpy", ".db.execute(", "except Exception")
    assert [(name, sign) for name, text in texts.items() for sign in signs if sign in text] == []


def test_importing_the_command_line_loads_nothing_heavy():
    code = (
        "import sys, relab.cli, relab.record.history, relab.config.layers, relab.commands.diff, relab.commands.train\n"
        "print(*sorted({'torch', 'numba', 'mujoco', 'gymnasium', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], "loaded by the imports above"


# The checker itself, on made-up trees.


@pytest.fixture
def tree(tmp_path):
    """Write {relative path: text} as a package named relab and return its folder."""

    def write(files: dict[str, str]) -> Path:
        src = tmp_path / "relab"
        for name, text in {"__init__.py": "", **files}.items():
            (src / name).parent.mkdir(parents=True, exist_ok=True)
            (src / name).write_text(text)
        return src

    return write


def test_a_clean_tree_passes(tree):
    files = {
        "base/text.py": "import json",
        "config/layers.py": "from relab.base.text import X",
        "train/loop.py": "import torch\nfrom relab.config import layers",
    }
    src = tree(files)
    assert (unplaced(src), upward(src), cycles(src), heavy(src)) == ([], [], [], [])


def test_an_unknown_wing_is_named(tree):
    (problem,) = unplaced(tree({"gadgets.py": ""}))
    assert "relab/gadgets" in problem
    assert "docs/layout.txt" in problem


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\nfrom relab.train.loop import run",
        "x = 1\nfrom ..train.loop import run",
        "x = 1\nfrom .. import train",
        "x = 1\nimport relab.train.loop",
        "def f():\n    from relab.train import loop",
        "import importlib\nimportlib.import_module('relab.train.loop')",
    ],
)
def test_an_upward_import_is_found_with_its_line(tree, text):
    (problem,) = upward(tree({"config/layers.py": text, "train/loop.py": ""}))
    assert "layers.py:2" in problem
    assert "train stands below config" in problem


def test_a_cycle_inside_a_wing_is_found(tree):
    problems = cycles(tree({"stats/a.py": "from .b import x", "stats/b.py": "def f():\n    from relab.stats import a"}))
    assert any("relab.stats.a -> relab.stats.b -> relab.stats.a" in problem for problem in problems)
    assert cycles(tree({"stats/a.py": "from .b import x", "stats/b.py": ""})) == []


def test_heavy_imports_of_the_reading_half_are_found_through_other_modules(tree):
    files = {"record/history.py": "def f():\n    from relab.train.nets import mlp", "train/nets.py": "import torch.nn"}
    (problem,) = heavy(tree(files))
    assert "history.py:2" in problem
    assert "relab.record.history -> relab.train.nets -> torch.nn" in problem


def test_a_heavy_package_is_found_behind_its_light_module(tree):
    files = {"record/history.py": "import relab.train.base", "train/__init__.py": "import numba", "train/base.py": ""}
    assert "relab.record.history -> relab.train -> numba" in heavy(tree(files))[0]


def test_the_command_line_may_load_heavy_modules_inside_functions_only(tree):
    loop = {"train/loop.py": "import torch"}
    assert heavy(tree({"cli.py": "def f():\n    from relab.train import loop", **loop})) == []
    assert heavy(tree({"cli.py": "from relab.train import loop", **loop})) != []


def test_lazy_packages_and_types_are_allowed_where_they_cost_nothing(tree):
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"
    assert heavy(tree({"record/history.py": typed, "report/render.py": "def f():\n    import matplotlib"})) == []
    assert heavy(tree({"report/render.py": "import matplotlib.pyplot"})) != []


def test_a_long_function_is_found_with_its_length(tree):
    body = "\n".join(["    x = 1"] * LONGEST)
    (problem,) = long_functions(tree({"base/text.py": f"def short():\n    pass\n\n\ndef long():\n{body}"}))
    assert "text.py:5: long has 41 lines" in problem


def test_a_long_file_is_found_with_its_length(tree):
    src = tree({"base/text.py": "x = 1\n" * (LONGEST_FILE + 1), "logger.py": "x = 1\n" * (LONGEST_FILE + 1)})
    (problem,) = long_files(src)
    assert "text.py: 451 lines" in problem
