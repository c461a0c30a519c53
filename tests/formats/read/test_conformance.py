"""Does every registered format keep the contract of formats/read/source.py, on its own fixtures and on damaged ones?

The fixtures of a format are the folders in fixtures/<format>; relab's own is a history that its rules are tested on.
"""

from __future__ import annotations

import hashlib
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from relab.base.jsonl import RecordError
from relab.formats.read import find
from relab.formats.read.source import FOREIGN
from relab.record import glossary
from relab.record.history import History
from where import fixtures, histories

FIXTURES = fixtures()
OWN = histories() / "healthy" / "ladder-value"
DAMAGES = 24  # per format


def place(name: str) -> Path:
    folder = OWN if name == "relab" else FIXTURES / name
    assert folder.is_dir(), f"put a small log of the format {name} into tests/formats/read/fixtures/{name}"
    return folder


def copy(name: str, tmp_path: Path) -> Path:
    target = tmp_path / "copy"
    shutil.copytree(place(name), target)
    return target


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def state(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in files_of(folder)
    }


def load(folder: Path) -> find.LoadedRuns:
    """A folder in which nothing is left to recognise is no error of the importer."""
    try:
        return find.load_all(folder)
    except RecordError as error:
        assert str(error).startswith("no runs at or below")  # noqa: PT017 - any other error is a failure
        return find.LoadedRuns()


def check(history: History) -> None:
    for name, column in history.columns.items():
        assert column.steps.dtype == np.int64, name
        assert column.values.dtype == np.float64, name
        assert column.steps.shape == column.values.shape, name
        assert len(column.steps) > 0, name
        assert history.axes[name] in glossary.AXES, name
        if history.source != "relab":  # whose reader takes the rows as they are
            assert glossary.known(name) or name.startswith(FOREIGN), name
            assert (np.diff(column.steps) >= 0).all(), f"{name}: steps go back and were not put in order"
    assert set(history.mapping.values()) <= set(history.columns)


formats = pytest.mark.parametrize("name", list(find.FORMATS))


@formats
def test_its_fixtures_are_its_own(name):
    sources = list(find.find(place(name)))
    assert sources
    assert {source.format for source in sources} == {name}
    assert len({source.name for source in sources}) == len(sources), "two runs have one name"


@formats
def test_its_runs_are_read_whole(name):
    loaded = find.load_all(place(name))
    assert not loaded.broken
    for run in loaded.runs:
        assert run.history.source == name
        assert run.history.columns or run.history.problems, run.name  # nothing there is something to say
        check(run.history)


@formats
def test_reading_writes_nothing(name, tmp_path):
    folder = copy(name, tmp_path)
    before = state(folder)
    find.load_all(folder)
    assert state(folder) == before


@formats
def test_reading_twice_gives_the_same(name):
    first, second = find.load_all(place(name)), find.load_all(place(name))
    assert [run.name for run in first.runs] == [run.name for run in second.runs]
    for a, b in zip(first.runs, second.runs, strict=True):
        assert list(a.history.columns) == list(b.history.columns)
        for name_, column in a.history.columns.items():
            np.testing.assert_array_equal(column.steps, b.history.columns[name_].steps)
            np.testing.assert_array_equal(column.values, b.history.columns[name_].values)
        assert repr((a.history.config, a.history.meta, a.history.problems)) == repr(
            (b.history.config, b.history.meta, b.history.problems)
        )


@formats
def test_links_are_not_followed(name, tmp_path):
    folder = copy(name, tmp_path)
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "link").symlink_to(folder, target_is_directory=True)
    for path in files_of(folder):
        (tmp_path / "given" / path.name).unlink(missing_ok=True)
        (tmp_path / "given" / path.name).symlink_to(path)
    assert load(tmp_path / "given").runs == []


ODD = (b"1e400", b"9" * 400, b"-1", b"NaN", b"", b"[]", b"{}", b'"x"', b"null", b"true", b"-Infinity", b"1e18", b"0.5",
       b"99999999999999999999", b'{"a":1}', b"\xff\xfe", b"\n", b'"')  # fmt: skip
VALUE = re.compile(rb'-?\d+\.?\d*(?:e-?\d+)?|"[^"]*"|true|false|null|NaN')


def with_odd_values(data: bytes, rng: random.Random) -> bytes:
    """Values of text formats, each replaced by one that nobody expects there."""
    matches = list(VALUE.finditer(data))
    for match in sorted(rng.sample(matches, min(len(matches), 3)), key=lambda m: -m.start()):
        data = data[: match.start()] + rng.choice(ODD) + data[match.end() :]
    return data


def damaged(data: bytes, rng: random.Random) -> bytes:
    kind = rng.randrange(8)
    if kind > 4:
        return with_odd_values(data, rng)
    at = rng.randrange(len(data) + 1)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return b"" if rng.random() < 0.3 else data[:at] + rng.randbytes(20) + data[at:]
    if kind == 2:
        return data[:at] + data[min(len(data), at + rng.randrange(1, 200)) :]
    if kind == 3:
        return rng.randbytes(min(len(data), 5000))
    flipped = bytearray(data)
    for _ in range(rng.randrange(1, 10)):
        if flipped:
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


@formats
@pytest.mark.some(8)
def test_damaged_files_never_raise(name, tmp_path):
    folder = copy(name, tmp_path)
    paths = files_of(folder)
    rng = random.Random(f"damage {name}")
    for _ in range(DAMAGES):
        path = rng.choice(paths)
        whole = path.read_bytes()
        path.write_bytes(damaged(whole, rng))
        case = folder / path.relative_to(folder).parts[0]  # the others are as they were
        for run in load(case if case.is_dir() else folder).runs:
            check(run.history)
        path.write_bytes(whole)


def test_a_format_is_listed_once_and_can_be_imported():
    assert set(find.FORMATS) <= set(find.importers())
    for module in find.importers().values():
        assert all(callable(getattr(module, verb)) for verb in ("sniff", "sources", "read"))


def test_a_folder_of_everything_is_read_format_by_format(tmp_path):
    """Formats side by side do not hide each other."""
    for name in find.FORMATS:
        if (FIXTURES / name).is_dir():
            shutil.copytree(FIXTURES / name, tmp_path / name)
    by_format: dict[str, set[str]] = {}
    for run in find.load_all(tmp_path).runs:
        by_format.setdefault(run.source.format, set()).add(run.name.split("/")[0])
    assert by_format == {name: {name} for name in find.FORMATS if (FIXTURES / name).is_dir()}
