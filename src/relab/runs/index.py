"""Which runs are below a folder? An index in SQLite, in the user's cache folder: derived, and made anew at any time.

A run of relab's is read again when its folder has changed (its meta.json is always replaced as a whole, which changes
the folder's time), or while it says that it is running; a run of another tool when one of the files has that are read
for it, or one was added. Nothing is written below the folder itself. Several processes may use one index; WAL is not
used, it fails on network mounts.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from relab.base.documents import Settings
from relab.base.places import cache_folder
from relab.runs import glance
from relab.runs.glance import Glance
from relab.runs.labels import foreign_file

if TYPE_CHECKING:
    from relab.formats.read.hints import Hints
    from relab.formats.read.source import Source
    from relab.formats.read.tabular import Splits

SCHEMA = 10  # raised when an older index would be misread: it is then made anew
ARCHIVE, TRASH = b".archive", b".trash"
DEPTH, MAX_FOLDERS = 6, 20_000  # as importers.find has them, for folders that are no runs
SETTLED_NS = 2_000_000_000  # a folder that changed a moment ago may change again within one tick of its clock
MOST = 2**63 - 1  # of an integer in SQLite
BATCH = 5_000  # rows between two commits: a rebuild that is killed goes on where it was
COLUMNS = (
    "path BLOB NOT NULL, key TEXT NOT NULL, stamp NOT NULL, name TEXT, archived INTEGER, format TEXT, id TEXT,"
    " env TEXT, algo TEXT, seed, status TEXT, sign REAL, created REAL, parent TEXT, steps INTEGER, planned REAL, metric TEXT,"
    " verdict TEXT, outcome REAL, error REAL, episodes INTEGER, low REAL, high REAL, size INTEGER, config INTEGER, named INTEGER, tags TEXT, star INTEGER, note TEXT,"
    " renaming TEXT, problem TEXT, shown INTEGER DEFAULT 1, PRIMARY KEY (path, key)"
)
Key = tuple[bytes, str]  # where it lies below the root, and which run where one file holds many
Tell = Callable[[int, int, str], None]
CODE = (b"__pycache__", b"node_modules", b"site-packages")  # as find.CODE: folders of programs


@dataclass
class Walk:
    """What a look through the folders came upon."""

    changed: list[tuple[bytes, int, Any]] = field(default_factory=list)  # relab folders: path, stamp, meta
    foreign: list[Source] = field(default_factory=list)
    trash: list[bytes] = field(default_factory=list)
    cut: bool = False  # there are more folders than are looked into
    splits: Splits | None = None  # which runs the files of other tools hold
    until: float = math.inf  # when to stop, by time.monotonic()


@dataclass(frozen=True)
class Remarks:
    """What there is to know about a folder besides the runs that are listed."""

    runs: int  # all of them
    archived: int
    deleted: int
    renaming: list[tuple[str, str]]  # names, old and new, of renames that were cut short
    broken: list[tuple[str, str]]  # names and what is wrong with these runs


class Index:
    """The runs at or below one folder."""

    def __init__(self, root: str | os.PathLike[str], fresh: bool = False, hints: Hints | None = None):
        self.root, self.hints = Path(root), hints
        self.base = os.fsencode(os.path.realpath(root))
        self.trash: list[Path] = []
        self.cut = False
        self.db = _open(self.file, fresh)

    @property
    def file(self) -> Path:
        return cache_folder() / "index" / f"{hashlib.sha256(self.base).hexdigest()[:24]}.sqlite"

    def refresh(self, tell: Tell | None = None) -> int:
        """Read what is new or has changed, forget what is gone -> how many runs were read."""
        if not os.path.isdir(self.base):
            raise FileNotFoundError(f"{self.root} is no folder; give a folder of runs")
        try:
            return self._refresh(tell)
        except sqlite3.DatabaseError:  # locked for long, damaged, or the disk is full: it is only a cache
            self.db.close()
            self.db = _prepared(sqlite3.connect(":memory:"))
            return self._refresh(tell)

    def _refresh(self, tell: Tell | None) -> int:
        own = dict(self.db.execute("SELECT path, iif(status = 'running', 0, stamp) FROM runs WHERE format = 'relab'"))
        rows = self.db.execute("SELECT path, key, stamp FROM runs WHERE format != 'relab'")
        others = {(path, key): stamp for path, key, stamp in rows}
        with self._names():
            walk = look_through(self.base, own, splits=self._splits)
        self.trash, self.cut = [Path(os.fsdecode(self.base + path)) for path in walk.trash], walk.cut
        done = self._read(walk, own, others, tell)
        self._keep(walk.splits)
        gone = [*((path, "") for path in own), *others]
        if done or gone:
            self.db.executemany("DELETE FROM runs WHERE path = ? AND key = ?", gone)
            self._mark_copies()
            self.db.commit()
        return done

    def _names(self) -> AbstractContextManager[object]:
        """Inside, names of columns that the user has explained tell which files are logs."""
        if self.hints is None and not (self.root / "relab.toml").is_file():
            return nullcontext()  # nothing is imported for it
        from relab.formats.read import common, hints

        return common.also((self.hints or hints.of_folder(self.root)).mapping)

    def _splits(self) -> Splits:
        """Which runs each table of another tool held when it was last read."""
        from relab.formats.read.tabular import Splits

        rows = self.db.execute("SELECT path, size, changed, keys FROM splits")
        return Splits({(os.fsdecode(path), size, changed): json.loads(keys) for path, size, changed, keys in rows})

    def _keep(self, splits: Splits | None) -> None:
        """The same, as it is now; tables that are gone are forgotten."""
        if splits is None or splits.now == splits.before:
            return
        rows = [(os.fsencode(path), *stamp, json.dumps(keys)) for (path, *stamp), keys in splits.now.items()]
        self.db.execute("DELETE FROM splits")
        self.db.executemany("INSERT INTO splits VALUES (?, ?, ?, ?)", rows)
        self.db.commit()

    def _read(self, walk: Walk, own: dict[bytes, int], others: dict[Key, str], tell: Tell | None) -> int:
        """Read the runs that changed; what stays in `own` and `others` is gone from the folder."""
        total = len(walk.changed) + len(walk.foreign)
        configs = dict(self.db.execute("SELECT digest, id FROM configs")) if total else {}
        done = 0
        for path, stamp, meta in walk.changed:
            own.pop(path, None)
            self._put(path, "", stamp, _name(path), glance.own(self.base + path, meta), configs)
            done = self._step(done, total, path, tell)
        if walk.foreign:
            done += self._read_foreign(walk.foreign, others, configs, tell)
        return done

    def _read_foreign(
        self, sources: list[Source], others: dict[Key, str], configs: dict[bytes, int], tell: Tell | None
    ) -> int:
        from relab.formats.read.hints import of_folder

        hints, done = self.hints or of_folder(self.root), 0
        for number, source in enumerate(sources):
            path, stamp = os.fsencode(source.path)[len(self.base) :], _stamp(source, hints)
            if others.pop((path, source.key), "") != stamp:
                if tell is not None:
                    tell(number, len(sources), source.name)
                self._put(path, source.key, stamp, source.name, glance.foreign(source, hints), configs)
                done += 1
        return done

    def _step(self, done: int, total: int, path: bytes, tell: Tell | None) -> int:
        done += 1
        if done % BATCH == 0:
            self.db.commit()
        if tell is not None and done % 50 == 0:
            tell(done, total, _name(path))
        return done

    def _put(self, path: bytes, key: str, stamp: int | str, name: str, g: Glance, configs: dict[bytes, int]) -> None:
        archived = path.rpartition(b"/")[0].endswith(b"/" + ARCHIVE)
        shown = name.encode("utf-8", "replace").decode()
        row = (path, key, stamp, shown, archived, g.format, g.id, g.env, g.algo, g.seed, g.status, g.sign, g.created,
               g.parent, g.steps, g.planned, g.metric, g.verdict, g.outcome, g.error, g.episodes, g.low, g.high, g.size, self._config(g.settings, configs), g.named,
               " ".join(g.labels.tags), g.labels.star, g.labels.note, g.labels.renaming, g.problem, 1)  # fmt: skip
        self.db.execute(f"INSERT OR REPLACE INTO runs VALUES ({','.join('?' * len(row))})", row)

    def _config(self, settings: Settings, configs: dict[bytes, int]) -> int:
        """The number of a set of settings: runs that differ in the seed alone share it."""
        try:
            body = orjson.dumps(settings, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        except TypeError:  # an integer of more than 64 bits, which orjson can read but not write
            body = json.dumps(settings, default=str, sort_keys=True).encode("utf-8", "replace")
        digest = hashlib.blake2b(body, digest_size=12).digest()
        if digest not in configs:
            self.db.execute("INSERT OR IGNORE INTO configs (digest, body) VALUES (?, ?)", (digest, body))
            row = self.db.execute("SELECT id FROM configs WHERE digest = ?", (digest,)).fetchone()
            configs[digest] = int(row[0])
        return configs[digest]

    def _mark_copies(self) -> None:
        """Of runs with one id, start and config, the one that got furthest is shown; the others are its copies."""
        self.db.execute("UPDATE runs SET shown = 1 WHERE shown = 0")
        self.db.execute(
            "UPDATE runs SET shown = 0 WHERE rowid IN (SELECT rowid FROM (SELECT rowid, row_number() OVER (PARTITION BY"
            " id, config, seed, created ORDER BY archived, COALESCE(steps, -1) DESC, sign DESC, length(path), path)"
            " AS place FROM runs"
            " WHERE id IN (SELECT id FROM runs WHERE id != '' GROUP BY id HAVING COUNT(*) > 1)) WHERE place > 1)"
        )

    def settings(self) -> Iterator[tuple[int, Settings]]:
        """Every set of settings that a run has, by its number."""
        used = "SELECT id, body FROM configs WHERE id IN (SELECT config FROM runs)"
        return ((number, orjson.loads(body)) for number, body in self.db.execute(used))

    def remarks(self) -> Remarks:
        (every, archived) = self.db.execute("SELECT COUNT(*), TOTAL(archived) FROM runs").fetchone()
        deleted = sum(len(os.listdir(trash)) for trash in self.trash if trash.is_dir())
        renaming = self.db.execute("SELECT name, renaming FROM runs WHERE renaming != ''").fetchall()
        broken = self.db.execute("SELECT name, problem FROM runs WHERE problem != '' ORDER BY name").fetchall()
        return Remarks(every, int(archived), deleted, renaming, broken)

    def children(self, name: str) -> list[str]:
        """Names of the runs that name this one as their parent."""
        statement = "SELECT name FROM runs WHERE parent = ? AND parent != '' ORDER BY name"
        return [child for (child,) in self.db.execute(statement, (name,))]

    def half_renamed(self) -> list[Path]:
        """Folders of relab's runs whose renaming a kill has cut short."""
        cut = self.db.execute("SELECT path FROM runs WHERE renaming != '' AND format = 'relab'").fetchall()
        return [self.folder(path) for (path,) in cut]

    def folder(self, path: bytes) -> Path:
        return Path(os.fsdecode(self.base + path))

    def close(self) -> None:
        self.db.close()


# ---- The file


def _open(file: Path, fresh: bool) -> sqlite3.Connection:
    """The index of a folder; one that is broken or old is made anew, and without a cache folder it is in memory."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            file.unlink(missing_ok=True)
        return _prepared(sqlite3.connect(file, timeout=30.0))
    except sqlite3.DatabaseError as error:
        if not isinstance(error, sqlite3.OperationalError):  # not a database: whatever it was, it is only a cache
            with suppress(OSError, sqlite3.Error):
                file.unlink(missing_ok=True)
                return _prepared(sqlite3.connect(file, timeout=30.0))
    except OSError:
        pass
    return _prepared(sqlite3.connect(":memory:"))


def _prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    db.row_factory = None
    db.execute("PRAGMA synchronous = OFF")  # a power cut may cost the index, which is then made anew
    if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
        db.execute("BEGIN IMMEDIATE")
        if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:  # nobody else was quicker
            for table in ("runs", "configs", "splits"):
                db.execute(f"DROP TABLE IF EXISTS {table}")
            db.execute(f"CREATE TABLE runs ({COLUMNS})")
            db.execute("CREATE TABLE configs (id INTEGER PRIMARY KEY, digest BLOB UNIQUE, body BLOB)")
            db.execute("CREATE TABLE splits (path BLOB PRIMARY KEY, size INTEGER, changed INTEGER, keys TEXT)")
            db.execute("CREATE INDEX by_id ON runs (id)")
            db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.commit()
    return db


# ---- The folders


def look_through(
    base: bytes, own: dict[bytes, int], until: float = math.inf, splits: Callable[[], Splits] | None = None
) -> Walk:
    """Walk the folders below `base`. Runs of relab's that are as they were are taken out of `own`; others are listed.

    `until`: when to stop, by time.monotonic(); what was not seen by then is told by `cut`. `splits` is asked where
    there are files of other tools.
    """
    walk, now = Walk(until=until), time.time_ns()
    meta = glance.read_meta(base)
    if glance.is_relab(meta):  # the folder is itself a run
        walk.changed.append((b"", 0, meta))
        return walk
    todo, taken = deque([(b"", 0)]), set[bytes]()  # a run may own folders below its own
    visited = 0
    while todo:
        below, depth = todo.popleft()
        visited += 1
        if time.monotonic() > until:
            walk.cut = True
            break
        content = _folders(base, below, own, walk, now)
        if content is None:
            continue
        folders, files = content
        if files and not below.endswith(b"/" + ARCHIVE) and not _claims(base, below, walk, taken, splits):
            continue
        walk.cut = walk.cut or (bool(folders) and visited >= MAX_FOLDERS)
        if depth < DEPTH and visited < MAX_FOLDERS:
            todo += [(path, depth + 1) for path in folders if base + path not in taken]
    if len(walk.foreign) > 1:
        from relab.formats.read import copies

        walk.foreign = copies.without(walk.foreign)[0]
    return walk


def _folders(base: bytes, below: bytes, own: dict[bytes, int], walk: Walk, now: int) -> tuple[list[bytes], bool] | None:
    """The folders in one that are no runs of relab's, and whether there are files; those that are runs go to `walk`,
    or are known and unchanged."""
    folders, files, prefix = [], False, below + b"/"
    try:
        with opened(base + below) as number, os.scandir(number) as entries:  # by number: shorter paths, faster stat
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    files = files or entry.is_file(follow_symlinks=False)
                    continue
                name, stat = os.fsencode(entry.name), entry.stat(follow_symlinks=False)
                path = prefix + name
                stamp = (stat.st_mtime_ns ^ stat.st_ino << 24) & MOST  # another folder in its place is another run
                if own.get(path) == stamp:
                    del own[path]
                elif (name[:1] == b"." and name != ARCHIVE) or name in CODE:
                    walk.trash += [path] if name == TRASH else []
                elif time.monotonic() > walk.until:
                    walk.cut = True
                    break
                elif glance.is_relab(meta := glance.read_meta(base + path)):
                    walk.changed.append((path, stamp if now - stat.st_mtime_ns > SETTLED_NS else 0, meta))
                else:
                    folders.append(path)
    except OSError:  # not readable, or gone meanwhile
        return None
    return sorted(folders), files


@contextmanager
def opened(folder: bytes) -> Iterator[int]:
    """A folder's file descriptor."""
    number = os.open(folder, os.O_RDONLY)
    try:
        yield number
    finally:
        os.close(number)


def _claims(base: bytes, below: bytes, walk: Walk, taken: set[bytes], splits: Callable[[], Splits] | None) -> bool:
    """Add the runs of other tools in a folder that has files; whether to look below it."""
    from relab.formats.read import find, tabular

    folder = Path(os.fsdecode(base + below))
    walk.splits = walk.splits or (splits or tabular.Splits)()
    with tabular.remembering(walk.splits):
        mine, deeper = find.claimed(find.look(folder), Path(os.fsdecode(base)))
    taken |= {os.fsencode(file.parent) for source in mine for file in source.files}
    walk.foreign += [source for source in mine if source.format != "relab"]
    walk.changed += [(below, 0, None) for source in mine if source.format == "relab"]  # its meta.json is broken
    return deeper


def _name(path: bytes) -> str:
    """A run's name as it is shown: its place below the root, without the archive's folder."""
    parts = [part for part in os.fsdecode(path).split("/") if part and part != os.fsdecode(ARCHIVE)]
    return "/".join(parts) or "."


def _stamp(source: Source, hints: Hints) -> str:
    """Changes when a file that is read for the run, its labels or what is known besides does."""
    from relab.formats.read.stamps import stamp_of

    known: list[object] = [hints, stamp_of(source)]
    with suppress(OSError):  # without labels
        stat = os.stat(foreign_file(source.path, source.key))
        known.append((stat.st_mtime_ns, stat.st_size))
    return hashlib.blake2b(repr(known).encode("utf-8", "replace"), digest_size=12).hexdigest()
