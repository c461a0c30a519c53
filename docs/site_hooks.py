"""How do the repository's pages become a site? README is its start; links out of docs/ become plain text.

mkdocs calls these functions (mkdocs.yml, hooks).
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BESIDE = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changes.md": "CHANGELOG.md"}  # here -> there
LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Pages that lie beside docs/ join those in it."""
    from mkdocs.structure.files import File

    for page, source in BESIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Links as the site needs them; blocks of code are left alone."""
    source = BESIDE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    parts = FENCE.split(text)
    return "".join(part if i % 2 else LINK.sub(lambda m: moved(m, source), part) for i, part in enumerate(parts))


def moved(match: re.Match[str], source: str) -> str:
    """One link of a page of the repository: to the same page of the site, or only its text."""
    image, text, target = match.groups()
    path, _, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return match[0]
    there = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    pages = {beside: page for page, beside in BESIDE.items()}
    inside = pages.get(there) or (there.removeprefix("docs/") if there.startswith("docs/") else None)
    if (
        inside is None or (ROOT / "docs" / inside).is_dir()
    ):  # the source, a result: not part of the site; one that is not there stays for mkdocs to name
        return text if (ROOT / there).exists() else match[0]
    here = posixpath.dirname(
        next((page for page, beside in BESIDE.items() if beside == source), source[len("docs/") :])
    )
    link = posixpath.relpath(inside, here or ".") + (f"#{anchor}" if anchor else "")
    return f"{image}[{text}]({link})"
