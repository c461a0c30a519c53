"""Which bytes, in the place of a log's, break more than the run itself? Searched with atheris, guided by coverage.

    pip install atheris && python tests/fuzz/fuzz_importers.py FORMAT [seconds] [options of libFuzzer]

The input replaces one file of the format's fixtures, and the folder is read. A run may come out empty, with remarks, or
unreadable with its file named; nothing else may happen. What was found before is in tests/importers/test_hostile.py.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "importers")]
MAX_BYTES = 12_000  # of a file that starts the search: larger ones take long and say no more


def main() -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("skipped: atheris is not installed (pip install atheris; Linux and macOS, up to Python 3.13)")
    name, seconds, *more = [*sys.argv[1:], "60"][:2] + sys.argv[3:]
    with atheris.instrument_imports(include=["relab.importers", "relab.jsonl", "relab.configs"]):
        from relab.importers import find

        find.importer(name)  # those of the other formats are asked too, but are not what is searched
    with tempfile.TemporaryDirectory() as place:
        folder, paths = prepared(name, Path(place))
        corpus = seeds(paths, Path(place) / "corpus")
        atheris.Setup([sys.argv[0], str(corpus), f"-max_total_time={seconds}", "-rss_limit_mb=3000", "-timeout=60",
                       f"-artifact_prefix={ROOT}/fuzz-{name}-", *more], target(folder, paths))  # fmt: skip
        atheris.Fuzz()


def prepared(name: str, place: Path) -> tuple[Path, list[Path]]:
    from test_conformance import FIXTURES, OWN

    folder = shutil.copytree(OWN if name == "relab" else FIXTURES / name, place / "runs")
    every = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    small = [path for path in every if path.stat().st_size < MAX_BYTES]
    return folder, (small or every[:2])[:250]


def seeds(paths: list[Path], corpus: Path) -> Path:
    """Each file behind a byte that says which it is."""
    corpus.mkdir()
    for number, path in enumerate(paths):
        (corpus / str(number)).write_bytes(bytes([number]) + path.read_bytes())
    return corpus


def home(path: Path, root: Path, folders: set[Path]) -> Path:
    """The folder of the run that a file belongs to: the others would be read again for nothing."""
    return next((above for above in path.parents if above in folders), root)


def target(folder: Path, paths: list[Path]):
    from test_conformance import check

    from relab.importers import find
    from relab.jsonl import RecordError

    homes = {path: home(path, folder, {source.folder for source in find.find(folder)}) for path in paths}

    def one(data: bytes) -> None:
        path = paths[data[0] % len(paths)] if data else paths[0]
        whole = path.read_bytes()
        path.write_bytes(data[1:])
        try:
            found = find.load_all(homes[path])
            assert not [gone for gone in found.unread if "failed on it" in gone.why], found.unread
            for source, why in found.broken:
                assert why.startswith("RecordError: "), f"{source.name}: {why}"
            for run in found.runs:
                if run.history.source != "relab":
                    check(run.history)
        except RecordError as error:
            assert str(error).startswith("no runs at or below"), error  # noqa: PT017 - any other is a crash
        finally:
            path.write_bytes(whole)

    return one


if __name__ == "__main__":
    main()
