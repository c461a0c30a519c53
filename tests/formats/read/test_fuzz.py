"""Does any damage to a log, down to the values inside of its messages and tables, break more than the run itself?

Each example takes the fixtures of one format, changes one file as mutations.py can, and examines the folder. A run may
come out empty or with remarks, or be called unreadable with its file named; nothing else may happen.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import damage
from test_conformance import check, files_of, load, place

from relab.base.jsonl import encode
from relab.formats.read import find
from relab.health import render
from relab.health.examine import examine_loaded

FEW, MANY = 12, 400  # examples per format
MAX_BYTES = 300_000  # of a file that is changed: larger ones take long and say no more
QUIET = {"deadline": None, "database": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}
formats = pytest.mark.parametrize("name", list(find.FORMATS))
randoms = st.randoms(use_true_random=False)


@pytest.fixture
def folder(name, tmp_path) -> Path:
    target = tmp_path / "copy"
    shutil.copytree(place(name), target)
    return target


def examined(folder: Path) -> None:
    loaded = load(folder)
    for source, why in loaded.broken:
        assert why.startswith("RecordError: "), f"{source.name}: {why}"
        assert any(path.name in why for path in (source.path, *source.files)), f"no file is named: {why}"
    for run in loaded.runs:
        check_foreign(run)
    report = examine_loaded(loaded, folder)
    shown = render.text(report, verbose=True)
    assert all(c.isprintable() or c == "\n" for c in shown)
    encode(report.to_json())


def check_foreign(run: find.Loaded) -> None:
    if run.history.source != "relab":  # whose reader takes names and axes as they are
        check(run.history)


def one(folder: Path, rng: Random) -> None:
    path = rng.choice([path for path in files_of(folder) if path.stat().st_size < MAX_BYTES])
    whole = path.read_bytes()
    try:
        damage(path, rng)
        top = folder / path.relative_to(folder).parts[0]
        examined(top if top.is_dir() else folder)
    finally:
        path.write_bytes(whole)
        for end in ("-wal", "-journal"):
            Path(f"{path}{end}").unlink(missing_ok=True)


@formats
@pytest.mark.some(5)
def test_a_damaged_log_breaks_nothing_else(name, folder):
    @settings(max_examples=FEW, **QUIET)
    @given(randoms)
    def trial(rng):
        one(folder, rng)

    trial()


@pytest.mark.slow
@formats
def test_many_damaged_logs_break_nothing_else(name, folder):
    """Other examples than above, and others on every call: what fails prints how to repeat it."""

    @settings(max_examples=MANY, **(QUIET | {"derandomize": False, "print_blob": True}))
    @given(randoms)
    def trial(rng):
        one(folder, rng)

    trial()


def test_the_mutations_change_what_they_are_given(tmp_path):
    """A mutation that leaves files alone would test nothing."""
    for name in find.FORMATS:
        target = tmp_path / name
        shutil.copytree(place(name), target)
        for path in [path for path in files_of(target) if path.stat().st_size < MAX_BYTES]:
            changed = 0
            for seed in range(8):
                whole = path.read_bytes()
                damage(path, Random(seed))
                changed += path.read_bytes() != whole
                path.write_bytes(whole)
            assert changed, path
