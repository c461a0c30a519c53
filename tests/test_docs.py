"""Do the documents say what is there? Each command, config key and metric has its entry; links and code blocks hold."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from relab.cli import COMMANDS
from where import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
SHELL = {"", "bash", "sh", "shell", "console", "text"}  # fences that may hold command lines
COMMAND_LINE = re.compile(r"^\s*(?:[$>] )?(?:\S*/bin/)?relab\s+(\S+)")


def parse(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def inline(tokens: list[Token]) -> Iterator[Token]:
    """The tokens inside paragraphs, headings and cells."""
    for token in tokens:
        yield from token.children or []


def headings(text: str, level: int | None = None) -> list[str]:
    """The texts of all headings, or of those of one level, without markup."""
    pairs = [(first, second) for first, second in pairwise(parse(text)) if first.type == "heading_open"]
    return [plain(content) for opening, content in pairs if level is None or opening.tag == f"h{level}"]


def plain(token: Token) -> str:
    return "".join(child.content for child in token.children or [])


@functools.cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page as GitHub makes them, and explicit ones."""
    text = read(page)
    names = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    counts: Counter[str] = Counter()
    for heading in headings(text):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        names.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return names


def links(text: str) -> list[str]:
    """Targets of links and images that stay within the repository."""
    targets = [str(token.attrGet("href") or token.attrGet("src") or "") for token in inline(parse(text))]
    return [target for target in targets if target and not re.match(r"[a-z]+:", target)]


def broken(link: str, page: Path) -> str | None:
    """Why a link does not resolve; None when it does."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{page.name} links to {link}, but there is no {path}"
    lines = re.fullmatch(r"L(\d+)(?:-L(\d+))?", anchor)
    if lines:
        return beyond(link, page, target, [int(number) for number in lines.groups() if number])
    if anchor and anchor not in anchors(target):
        return f"{page.name} links to {link}, but {target.name} has no heading for #{anchor}"
    return None


def beyond(link: str, page: Path, target: Path, lines: list[int]) -> str | None:
    length = len(target.read_text(encoding="utf-8").splitlines())
    if min(lines) >= 1 and max(lines) <= length:
        return None
    return f"{page.name} links to {link}, but {target.name} has {length} lines"


def commands(text: str) -> list[str]:
    """The word after `relab` in fenced command lines and in inline code; options and PLACEHOLDERS are left out."""
    tokens = parse(text)
    code = [token.content for token in inline(tokens) if token.type == "code_inline"]
    for token in tokens:
        if token.type == "fence" and token.info.strip() in SHELL:
            code += token.content.splitlines()
    words = [match[1] for line in code if (match := COMMAND_LINE.match(line))]
    return [word for word in words if re.match(r"[a-z]", word)]


def runnable(text: str) -> list[str]:
    """Python blocks whose first line is `# runnable`."""
    blocks = [token.content for token in parse(text) if token.type == "fence" and token.info.strip() == "python"]
    return [block for block in blocks if block.startswith("# runnable")]


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_each_command_has_a_heading_and_each_heading_a_command():
    documented = headings(read(ROOT / "docs" / "commands.md"), level=2)
    assert sorted(documented) == sorted(COMMANDS), "the second-level headings of docs/commands.md are the commands"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_command_lines_stand_in_fences(page):
    """A fence that is missing turns commands into a paragraph."""
    prose = [token.content.splitlines() for token in parse(read(page)) if token.type == "inline"]
    is_command = re.compile(rf"relab ({'|'.join(COMMANDS)})( |$)").match
    lost = [two for lines in prose for two in pairwise(lines) if all(map(is_command, two))]
    assert lost == []


def test_generated_pages_are_fresh(tmp_path):
    """docs/config.md and docs/metrics.md hold every config key and every metric."""
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, f"run `make docs`\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page):
    problems = [problem for link in links(read(page)) if (problem := broken(link, page))]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page):
    unknown = sorted({word for word in commands(read(page)) if word not in COMMANDS and word != "help"})
    assert not unknown, f"{page.name} names commands that relab does not have: {', '.join(unknown)}"


def test_runnable_blocks_run(tmp_path):
    for page in PAGES:
        for block in runnable(read(page)):
            command = [sys.executable, "-W", "error", "-c", block]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
            assert done.returncode == 0, f"{page.name}:\n{block}\n{done.stderr}"


def test_readme_shows_the_first_commands():
    text = read(ROOT / "README.md").split("\n## ")[0]
    assert [word for word in ("pip install", "make demo", "make test") if word not in text] == []


def test_readme_lists_every_module_and_package():
    tree = read(ROOT / "README.md").split("\nsrc/relab/\n")[1].split("```")[0]
    listed = re.findall(r"^  (\S+)", tree, re.M)
    below = (ROOT / "src" / "relab").iterdir()
    there = [path.name if path.suffix else f"{path.name}/" for path in below if path.suffix == ".py" or path.is_dir()]
    assert sorted(listed) == sorted(name for name in there if not name.startswith("__"))


def test_every_module_says_which_question_it_answers():
    page = read(ROOT / "docs" / "modules.md")
    modules = [path for path in (ROOT / "src" / "relab").rglob("*.py") if path.name != "__init__.py"]
    assert [path.name for path in modules if f"{path.relative_to(ROOT / 'src' / 'relab')})" not in page] == []
    assert [line for line in page.splitlines() if line.endswith("|  |")] == [], "a file without a docstring"


def test_the_walk_passes_files_that_hold_what_it_names_in_the_order_of_the_wings():
    page = read(ROOT / "docs" / "design" / "walk.md")
    rows = re.findall(r"^\| \[(\S+)\]\(\S+\) \| `([^`]+)` \|", page, re.M)
    assert len(rows) == len({file for file, _ in rows}) > 25, "each file once"
    texts = {file: read(ROOT / "src" / "relab" / file) for file, _ in rows}
    assert [(file, name) for file, name in rows if name not in texts[file]] == []
    wings = [line.split("/")[0] for line in read(ROOT / "docs" / "layout.txt").splitlines()]
    walked = re.findall(r"^\| \[(\w+)/", page.partition("## It is told")[2], re.M)
    assert walked == sorted(walked, key=wings.index)


# The helpers, on made-up pages.

PAGE = """# A title

See [code](code.py#L2), [too far](code.py#L3), [none](none.md), [there](#what-it-does-1), [not there](#nowhere), [web](https://a.b/c).

## What `it` does

```
$ relab train ppo env=cartpole
.venv/bin/relab eval RUN
relab --help
relab COMMAND --help
```

## What it does

Call `relab fly` today.

```python
# runnable
x = 1
```

```python
relab = 2
```
"""


def test_broken_links_are_named(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (tmp_path / "code.py").write_text("one\ntwo\n")
    problems = [problem for link in links(PAGE) if (problem := broken(link, page))]
    assert problems == [
        "page.md links to code.py#L3, but code.py has 2 lines",
        "page.md links to none.md, but there is no none.md",
        "page.md links to #nowhere, but page.md has no heading for #nowhere",
    ]


def test_commands_and_blocks_are_found():
    assert sorted(commands(PAGE)) == ["eval", "fly", "train"]
    assert runnable(PAGE) == ["# runnable\nx = 1\n"]
    assert headings(PAGE, level=2) == ["What it does", "What it does"]


def test_no_page_speaks_of_what_its_reader_cannot_see():
    """A study's source is introduced in a sentence, and its data are "the original log"."""
    unseen = re.compile(r"\.\./shared|documents?[ /]\d{3}|\bthe documents?\b", re.IGNORECASE)
    templates = sorted((ROOT / "src" / "relab").rglob("templates/*"))
    texts = {page.name: read(page) for page in [*PAGES, *(each for each in templates if each.is_file())]}
    assert {name: found.group() for name, text in texts.items() if (found := unseen.search(text))} == {}
