"""Which bytes, in the place of a log's, break more than the run itself? Searched with atheris, guided by coverage.

    pip install atheris && python tests/formats/fuzz/fuzz_importers.py FORMAT [seconds] [options of libFuzzer]

The input replaces one file of the format's fixtures, and the folder is read. A run may come out empty, with remarks, or
unreadable with its file named; nothing else may happen. Records with checksums (TensorBoard, W&B, SwanLab) are changed
inside of their frames as well: a wrong byte in a frame ends at its checksum, and no reader of messages would be asked.
What was found before is in tests/formats/read/test_hostile.py.
"""

from __future__ import annotations

import io
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from where import ROOT

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "formats" / "read")]
MAX_BYTES = 12_000  # of a file that starts the search: larger ones take long and say no more
HANG_S, MEMORY_MB = 5, 1024  # one input that takes more is a fault, as a crash is
FRAMED = 128  # a first byte from here on: what follows are records, each behind its length
MEMORY = Path("/dev/shm")  # files that are written for every input are written faster there


def main() -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("skipped: atheris is not installed (pip install atheris; Linux and macOS, up to Python 3.13)")
    name, seconds, *more = [*sys.argv[1:], "60"][:2] + sys.argv[3:]
    with atheris.instrument_imports(include=["relab.formats.read", "relab.base.jsonl", "relab.config"]):
        from relab.formats.read import find

        find.importer(name)  # those of the other formats are asked too, but are not what is searched
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        folder, paths = prepared(name, Path(place))
        corpus = seeds(paths, Path(place) / "corpus")
        options = [f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY_MB}", f"-timeout={HANG_S}", "-len_control=0",
                   "-print_final_stats=1", f"-artifact_prefix={ROOT}/fuzz-{name}-", *more]  # fmt: skip
        atheris.Setup([sys.argv[0], str(corpus), *options], target(folder, paths))
        atheris.Fuzz()


def prepared(name: str, place: Path) -> tuple[Path, list[Path]]:
    """The fixtures and the files that are changed; large files beside them are cut, or most time would go to them."""
    from test_conformance import FIXTURES, OWN

    folder = shutil.copytree(OWN if name == "relab" else FIXTURES / name, place / "runs")
    every = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    small = [path for path in every if path.stat().st_size < MAX_BYTES]
    for path in every[len(small) :] if small else ():
        if not path.read_bytes().startswith(b"SQLite"):
            path.write_bytes(path.read_bytes()[:MAX_BYTES])
    return folder, (small or every[:2])[: FRAMED - 1]


def seeds(paths: list[Path], corpus: Path) -> Path:
    """Each file behind a byte that says which it is; one of frames also as its records."""
    corpus.mkdir()
    for number, path in enumerate(paths):
        whole = path.read_bytes()
        (corpus / str(number)).write_bytes(bytes([number]) + whole)
        if frames := frame_of(path):
            records = b"".join(struct.pack("<H", len(r)) + r for r in frames[0](whole) if len(r) < 1 << 16)
            (corpus / f"{number}-records").write_bytes(bytes([FRAMED + number]) + records)
    return corpus


def frame_of(path: Path) -> tuple[Callable[[bytes], list[bytes]], Callable[[bytes, list[bytes]], bytes]] | None:
    """(the records of a file, the file of given records), for the formats that frame them."""
    from mutations import framed, payloads

    from relab.formats.read import tfrecords, wandb_file

    if path.suffix in (".wandb", ".swanlab"):
        return lambda whole: list(wandb_file.records(whole, [])), framed
    if "tfevents" in path.name:
        return lambda whole: payloads(io.BytesIO(whole)), lambda _, bodies: b"".join(map(tfrecords.pack, bodies))
    return None


def split(data: bytes) -> list[bytes]:
    """Records behind their lengths of two bytes; the last may be shorter than it says."""
    records, at = [], 0
    while at + 2 <= len(data):
        (size,) = struct.unpack_from("<H", data, at)
        records.append(data[at + 2 : at + 2 + size])
        at += 2 + size
    return records


def home(path: Path, root: Path, folders: set[Path]) -> Path:
    """The folder of the run that a file belongs to: the others would be read again for nothing."""
    return next((above for above in path.parents if above in folders), root)


def target(folder: Path, paths: list[Path]) -> Callable[[bytes], None]:
    from relab.formats.read import find

    homes = {path: home(path, folder, {source.folder for source in find.find(folder)}) for path in paths}
    whole = {path: path.read_bytes() for path in paths}
    frames = {path: frame_of(path) for path in paths}
    changed = paths[0]

    def one(data: bytes) -> None:
        nonlocal changed
        number, body = (data[0], data[1:]) if data else (0, b"")
        path = paths[number % FRAMED % len(paths)]
        if number >= FRAMED and (frame := frames[path]):
            body = frame[1](whole[path], split(body))
        if path != changed:
            changed.write_bytes(whole[changed])
        path.write_bytes(body)
        changed = path
        read(homes[path])

    return one


def read(folder: Path) -> None:
    from test_conformance import check

    from relab.base.jsonl import RecordError
    from relab.formats.read import find

    try:
        loaded = find.load_all(folder)
    except RecordError as error:
        assert str(error).startswith("no runs at or below"), error  # noqa: PT017 - any other is a crash
        return
    assert not [gone for gone in loaded.unread if "failed on it" in gone.why], loaded.unread
    for source, why in loaded.broken:
        assert why.startswith("RecordError: "), f"{source.name}: {why}"
    for run in loaded.runs:
        if run.history.source != "relab":
            check(run.history)


if __name__ == "__main__":
    main()
