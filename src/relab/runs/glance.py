"""What is this run, at a glance? The heads of a run folder and its last evaluation; the whole log is not read.

A folder of relab's takes a fraction of a millisecond. A run of another tool is read by its importer.
"""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from relab.base.documents import Document, Settings
from relab.base import blame, masks, processes
from relab.base.numbers import is_number
from relab.base.places import true_status
from relab.config.base import ConfigError
from relab.config.coerce import scalar
from relab.record.evaluations import evaluations, outcome_of
from relab.record import glossary
from relab.record.bounds import of_metric
from relab.record.glossary import RETURNS
from relab.runs import labels
from relab.runs.labels import Labels
from relab.runs.values import CRITIC, FIT

if TYPE_CHECKING:
    from relab.record.history import History
    from relab.runs.course import Course
    from relab.formats.read.hints import Hints
    from relab.formats.read.source import Source

TAIL, LONGEST = 1 << 13, 1 << 22  # bytes read from the end of a log at first, and at most
LOOKED_AT = 64  # last rows in which a return may stand: a program may log its losses in rows of their own
LARGEST, PIECE = 1 << 25, 1 << 16  # bytes of a meta.json or config.yaml that are read, and at a time
FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link, and no waiting for a pipe
LINE = re.compile(r"( *)([A-Za-z_][\w.-]*):(?: (.+))?")
PLAIN = re.compile(r"[\w.+-][\w./+-]*(?::[\w./+-]+)*")  # no quote, no comment, nothing that YAML reads in two ways
QUOTED = re.compile(r'"([^"\\]*)"')


@dataclass
class Glance:
    """One run in a line."""

    format: str = "relab"
    id: str = ""
    env: str = ""
    algo: str = ""
    seed: Any = None
    status: str = ""
    sign: float = 0.0  # UTC seconds of the last heartbeat, or of the newest file
    created: float = 0.0
    parent: str = ""
    steps: int | None = None
    planned: float | None = None  # steps it was to take
    metric: str = ""
    verdict: str = ""  # of a run whose whole log was read; empty where its last evaluation alone was
    outcome: float | None = None
    error: float | None = None  # standard error of the outcome over episodes
    episodes: int | None = None
    low: float = -math.inf  # the least and the most that the outcome can be at all
    high: float = math.inf
    size: int = 0
    settings: Settings = field(default_factory=dict)  # dotted keys, without the seed
    named: bool = False  # whether its name, and not its settings, says which runs it belongs to
    labels: Labels = field(default_factory=Labels)
    problem: str = ""


# ---- relab's own folders


def is_relab(meta: Any) -> bool:
    return isinstance(meta, dict) and "schema" in meta and "status" in meta


def read_meta(folder: bytes) -> Any:
    """meta.json as it is; None where there is none that can be read."""
    try:
        return orjson.loads(_bytes(folder + b"/meta.json"))
    except (OSError, ValueError):
        return None


def own(folder: bytes, meta: Any = None) -> Glance:
    """A run folder of relab's."""
    meta = read_meta(folder) if meta is None else meta
    summary = Glance(size=size_of(folder), labels=labels.read(folder + b"/labels.json"))
    if not isinstance(meta, dict):
        meta, summary.problem = {}, "meta.json cannot be read"
    summary.id, summary.parent, summary.status = (_text(meta.get(key)) for key in ("id", "parent", "status"))
    summary.sign, summary.created = utc(meta.get("heartbeat")), utc(meta.get("created"))
    if not summary.sign:
        summary.sign = _newest(folder)
    if summary.status == "running" and processes.is_alive(str(meta.get("owner"))) is False:
        summary.status = "stale"  # killed, on this machine
    _add_settings(summary, folder, meta)
    if summary.algo == CRITIC and not meta.get("logger"):
        _add_fit(summary, folder)
    else:
        _add_outcome(summary, folder, outcome_of(meta))
        _without_diverged(summary, meta)
    _add_bounds(summary, meta.get("spec"))
    whole = not meta.get("logger") or bool(meta.get("stopped"))
    summary.status = true_status(summary.status, whole, summary.steps, summary.planned)
    return summary


def _without_diverged(summary: Glance, meta: Document) -> None:
    """A run whose numbers were no longer finite has none, whatever was measured before."""
    from relab.record.state import diverged_at

    if summary.status == "failed" and diverged_at(meta) is not None and summary.outcome is not None:
        summary.outcome, summary.error = float("nan"), None


def _add_settings(summary: Glance, folder: bytes, meta: Document) -> None:
    seed, flat = None, Settings()
    try:
        seed, flat = seedless(_bytes(folder + b"/config.yaml").decode())
    except (OSError, ValueError, ConfigError) as error:
        summary.problem = summary.problem or f"config.yaml cannot be read: {error}"
    summary.seed = _number(meta.get("seed", seed))
    spec = meta.get("spec")
    env = spec.get("env") if isinstance(spec, dict) else None
    summary.settings, summary.algo = masks.masked(flat), _text(flat.get("algo.name", flat.get("algo")))
    summary.env = _text(flat.get("env.name", flat.get("env"))) or _text(env)
    summary.planned = _planned(flat)


def _add_outcome(summary: Glance, folder: bytes, outcome: str) -> None:
    rows = list(_last_rows(folder + b"/evals.jsonl", 2))
    step = rows[0].get("step") if rows else None
    same = [row for row in rows if row.get("step") == step]
    by = summary.settings.get("eval.by", "det")  # of one step, the one that decides counts
    for row in sorted(same, key=lambda row: row.get("mode") != by):
        for last in evaluations([row], str(row.get("mode")), outcome):
            trained = [_step(row.get("step")) or 0 for row in _last_rows(folder + b"/metrics.jsonl", 1)]
            summary.steps, summary.metric = max(_step(step) or 0, *trained, 0), last.metric
            summary.outcome, summary.error, summary.episodes = last.mean, last.se if last.n > 1 else None, last.n
            return
    rows = list(_last_rows(folder + b"/metrics.jsonl", LOOKED_AT))
    summary.steps = _step(rows[0].get("step")) if rows else None
    if any(row.get(name) is not None for row in rows for name in RETURNS):
        _add_course(summary, folder)


def _add_fit(summary: Glance, folder: bytes) -> None:
    """Of a run in which a critic alone learned: what it explains, not what its policy earns, which never changes."""
    for row in _last_rows(folder + b"/metrics.jsonl", 1):
        explained = row.get(FIT)
        summary.steps, summary.metric = _step(row.get("step")), FIT
        summary.outcome = float(explained) if is_number(explained) else None


def _add_bounds(summary: Glance, spec: Any) -> None:
    """What the outcome can be, for intervals over seeds; a return under another tool's name is a return."""
    ours = summary.metric if glossary.known(summary.metric) else "eval/return_det"
    if summary.metric:
        summary.low, summary.high = of_metric(spec, ours)


def _add_course(summary: Glance, folder: bytes) -> None:
    """The outcome of a run without evaluations: the whole curve is read, for its last row alone is no outcome."""
    from relab.base.jsonl import RecordError
    from relab.record.history import load
    from relab.runs.course import course_of
    from relab.runs.verdict import verdict_of

    try:
        run = load(os.fsdecode(folder))
        course, summary.verdict = course_of(run), verdict_of(run).kind
    except (RecordError, OSError) as error:  # the other runs are still listed
        summary.problem = summary.problem or blame.reason(error)
        return
    _add_end(summary, course)


def _last_rows(path: bytes, most: int) -> Iterator[Document]:
    """The last rows of a JSONL file, newest first; rows that are cut or broken are passed over."""
    try:
        fd = os.open(path, FLAGS)
    except OSError:
        return
    try:
        end, block = os.lseek(fd, 0, os.SEEK_END), TAIL
        while True:
            start = os.lseek(fd, max(end - block, 0), os.SEEK_SET)
            lines = os.read(fd, end - start).split(b"\n")
            whole = lines if start == 0 else lines[1:]  # the first one began before the block
            if start == 0 or block >= LONGEST or len(whole) > most + 1:
                break
            block *= 8
    except OSError:  # a pipe or a device, which has no end to read from
        return
    finally:
        os.close(fd)
    for line in reversed(whole):
        try:
            row = _decoded(line) if line else None
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row
            most -= 1
            if most == 0:
                return


def _decoded(line: bytes) -> Any:
    """One row; numpy, which jsonl needs, is loaded only for a row that orjson refuses: it may hold 1e400."""
    try:
        return orjson.loads(line)
    except ValueError:
        from relab.base.jsonl import loads

        return loads(line)


# ---- Settings without a YAML parser


def seedless(text: str) -> tuple[Any, Settings]:
    """(seed, the other settings) of a config.yaml. Seeds of one config share one dict: do not change it."""
    before, mark, rest = text.partition("\nseed: ")
    line, _, after = rest.partition("\n")
    if mark and "\nseed:" not in f"\n{before}" + f"\n{after}" and PLAIN.fullmatch(line):
        return scalar(line), _shared(f"{before}\n{after}")
    flat = flat_yaml(text)
    return flat.pop("seed", None), flat


@lru_cache(1 << 12)
def _shared(text: str) -> Settings:
    return flat_yaml(text)


def flat_yaml(text: str) -> Settings:
    """Dotted key -> value of a config.yaml. The plain lines that relab writes are read here; all else by the parser.

    >>> flat_yaml("algo:\\n  name: ppo\\n  lr: 3e-4\\nseed: 0\\n")
    {'algo.name': 'ppo', 'algo.lr': 0.0003, 'seed': 0}
    """
    flat: Settings = {}
    above: list[str] = []
    opened = False  # the line before was a bare `key:`
    for line in text.split("\n"):
        if not line:
            continue
        parts = _line(line)
        if parts is None or parts[0] > len(above) or (opened and parts[0] != len(above)):
            return _parsed(text)
        depth, key, value, opened = parts
        del above[depth:]
        dotted = ".".join([*above, key])
        if dotted in flat:
            return _parsed(text)
        if opened:
            above.append(key)
        else:
            flat[dotted] = value
    return _parsed(text) if opened else flat


@lru_cache(1 << 15)
def _line(line: str) -> tuple[int, str, Any, bool] | None:
    """(depth, key, value, whether it opens a mapping); None for what is less plain. Runs share most lines."""
    match = LINE.fullmatch(line)
    if match is None or len(match[1]) % 2:
        return None
    depth, key, text = len(match[1]) // 2, match[2], match[3]
    if text is None:
        return depth, key, None, True
    if quoted := QUOTED.fullmatch(text):
        return depth, key, quoted[1], False
    if PLAIN.fullmatch(text) and text not in ("-", "."):
        return depth, key, scalar(text), False
    items = text[1:-1].split(", ") if text[0] == "[" and text[-1] == "]" else [""]
    if all(PLAIN.fullmatch(item) and item not in ("-", ".") for item in items):
        return depth, key, [scalar(item) for item in items], False
    return None


def _parsed(text: str) -> Settings:
    from relab.config.views import flatten
    from relab.config.yaml_io import parse_yaml

    return flatten(parse_yaml(text, "config.yaml"))


# ---- Runs of other tools


def foreign(source: Source, hints: Hints | None = None) -> Glance:
    """A run that an importer reads; one that cannot be read says why."""
    from relab.formats.read import find
    beside = [p for p in source.folder.iterdir() if p.is_file()] if source.path.is_dir() else []
    files = {*source.files, *beside}  # a model or a second log is of the run too
    summary = Glance(source.format, labels=labels.read(labels.foreign_file(source.path, source.key)))
    summary.size = sum(_size(file) for file in files)
    summary.sign = summary.created = max((_mtime(file) for file in files), default=0.0)
    try:
        _add_history(summary, find.read(source, hints), source.name)
    except Exception as error:  # whatever a stranger's folder holds, the other runs are still listed
        summary.problem = blame.reason(error)
    return summary


def _add_history(summary: Glance, run: History, name: str) -> None:
    from relab.config.views import flatten
    from relab.record.state import NAMED, last_sign, seed_of, status_of, steps_of
    from relab.runs.course import course_of, is_return
    from relab.runs.verdict import verdict_of

    meta, flat, sign = run.meta, flatten(run.config), last_sign(run)
    summary.id, summary.parent = (_text(meta.get(key)) for key in ("id", "parent"))
    summary.status = _text(status_of(run)) or ("" if sign else "ended")
    summary.sign, summary.created = sign or summary.sign, utc(meta.get("created")) or summary.created
    summary.seed = _number(seed_of(run, name))
    spec = meta.get("spec")
    env = flat.get("env.name") or (spec.get("env") if isinstance(spec, dict) else None)
    summary.env, summary.algo = _text(env), _text(flat.get("algo.name"))
    summary.settings = {key: value for key, value in flat.items() if key != "seed"}
    summary.named = str(meta.get("config_hash", "")).startswith(NAMED)
    summary.planned = _planned(flat)
    course = course_of(run)
    if is_return(course.metric):
        summary.steps, summary.verdict = steps_of(run), verdict_of(run).kind
        _add_end(summary, course)
        _add_bounds(summary, spec)


def _add_end(summary: Glance, course: Course) -> None:
    """The run's one outcome; NaN where it diverged."""
    summary.metric = course.metric
    last = course.points[-1] if course.points else None
    if last is not None:
        summary.outcome = float("nan") if course.flaw else last.mean
        summary.error = last.se if last.se == last.se and not course.flaw else None
        summary.episodes = last.n if course.evaluated and last.n else None


# ---- Small things


def size_of(folder: bytes) -> int:
    """Bytes of all files below; links are not followed."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    total += size_of(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    except OSError:  # gone while it was looked at
        pass
    return total


def _bytes(path: bytes) -> bytes:
    """A file of the folder itself: links are not followed, and nothing is read without end."""
    fd, parts, left = os.open(path, FLAGS), [], LARGEST
    try:
        while left > 0 and (part := os.read(fd, PIECE)):
            parts.append(part)
            left -= len(part)
            if len(part) < PIECE:  # of a plain file, this was the end
                break
    finally:
        os.close(fd)
    return b"".join(parts)


def _newest(folder: bytes) -> float:
    try:
        with os.scandir(folder) as entries:
            return max((e.stat(follow_symlinks=False).st_mtime for e in entries), default=0.0)
    except OSError:
        return 0.0


def _size(path: os.PathLike[str]) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _mtime(path: os.PathLike[str]) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def utc(value: Any) -> float:
    """UTC seconds of an ISO time; 0 for anything else."""
    try:
        return datetime.datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _text(value: Any) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _number(value: Any) -> int | float | str | None:
    """A seed as SQLite can hold it."""
    if isinstance(value, bool) or value is None:
        return None
    fits = isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)
    return value if fits else str(value)


def _planned(flat: Settings) -> float | None:
    value = flat.get("total_steps")
    known = is_number(value)
    return float(value) if known and abs(value) < 2**63 else None  # type: ignore[arg-type]


def _step(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < 2**63 else None
