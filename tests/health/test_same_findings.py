"""Do the rules still say the same? Every finding on every log in tests/ and on the real records, held against a list.

A change of the house must leave findings.txt as it is; a change of a rule shows there what it changes, line by line.
`PYTHONPATH=src:tests python tests/health/test_same_findings.py` writes the list anew.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from relab.health.examine import examine
from relab.health.rule import Finding, all_rules
from relab.record import state
from where import ROOT, fixtures, histories

LIST = Path(__file__).with_name("findings.txt")
MONTH_S = 30 * 86_400
LOGS = {"health/histories/faulty": histories() / "faulty", "health/histories/healthy": histories() / "healthy",
        "formats/read/fixtures": fixtures()}  # fmt: skip
CORPUS = ROOT.parent / "shared" / "corpus"
REAL = ("drones", "fish", "torus")


def line(found: Finding) -> str:
    """One finding; its value in four digits, because a sum may depend on the processor."""
    value = "" if found.value is None else f"{found.value:.4g}"
    cells = (found.run or found.group, found.slug, found.severity, found.status, found.onset, value, found.confidence,
             found.explained_by and f"by {found.explained_by}")  # fmt: skip
    return "  ".join("-" if cell in (None, "") else str(cell) for cell in cells)


def findings(folder: Path) -> list[str]:
    """Most important first, as users see them a month later: a file that was written just now might still grow."""
    later = SimpleNamespace(time=lambda: time.time() + MONTH_S)
    with mock.patch.object(state, "time", later):
        return [line(found) for found in examine(folder, rules=all_rules(plugins=False)).findings]


def logs() -> Iterator[tuple[str, Path]]:
    for kind, place in LOGS.items():
        yield from ((f"{kind}/{path.name}", path) for path in sorted(place.iterdir()) if path.is_dir())


def digest(folder: Path) -> str:
    """Real records stay out of the repository, and so do their findings: a count and a sum of all lines."""
    lines = findings(folder)
    return f"{len(lines)} findings {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"


def sections() -> dict[str, list[str]]:
    read: dict[str, list[str]] = {}
    for row in LIST.read_text(encoding="utf-8").splitlines():
        if row.startswith("== "):
            read[row[3:]] = []
        elif row:
            read[next(reversed(read))].append(row)
    return read


@pytest.mark.parametrize(("name", "folder"), [pytest.param(*each, id=each[0]) for each in logs()])
def test_findings_on_every_log(name: str, folder: Path) -> None:
    assert findings(folder) == sections()[name]


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no real run records at {CORPUS}")
@pytest.mark.parametrize("name", REAL)
def test_findings_on_real_records(name: str) -> None:
    assert [digest(CORPUS / name)] == sections()[f"corpus/{name}"]


def test_the_list_names_nothing_that_is_gone() -> None:
    assert set(sections()) == {name for name, _ in logs()} | {f"corpus/{name}" for name in REAL}


def write() -> None:
    found = {name: findings(folder) for name, folder in logs()}
    kept = sections()  # what is told of real records stays where they are not at hand
    for name in REAL:
        key = f"corpus/{name}"
        found[key] = [digest(CORPUS / name)] if CORPUS.is_dir() else kept[key]
    LIST.write_text("\n".join(f"== {name}\n" + "".join(f"{row}\n" for row in rows) for name, rows in found.items()),
                    encoding="utf-8")  # fmt: skip


if __name__ == "__main__":
    sys.exit(write())
