"""Is a run still alive, and which runs belong together? Asked by every reading command; nothing is written."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from relab.base import processes, writers
from relab.base.documents import Document
from relab.base.places import GROWING_S, STALE_S, run_state, true_status
from relab.base.text import in_a_line
from relab.config.views import flatten, meaning_hash
from relab.record.history import History

LATE_S = 30.0  # a row may be written so long after the time that it holds
AT_ONCE_S = 5.0  # between the oldest and the newest file of a folder that was copied
KEPT_OPEN = re.compile(r"tfevents|monitor\.csv$|^progress\.(csv|json|txt)$|\.wandb$")  # by their tools, until they end
NO_TOOL = ("csv", "jsonl")  # what these are called says nothing of the program that writes them
MISSED_ROWS = 4.0  # a log that nobody holds open has ended after as long a silence as so many rows take
SLOWEST_S = 900.0  # no silence is waited for any longer
NAMED = "named "  # how the key of a group begins that its runs' names make
SEED_IN_NAME = re.compile(r"(?i)(?:^|(?<=[-_./=]))(?:seed|s|种子|種子|シード|시드)[-_=]?([0-9]{1,18})(?=$|[-_./])")

DIVERGED = re.compile(r"(parameters|the policy's actions) are not finite")
CLEANRL_END = re.compile(r"__(?:seed_?)?(?P<seed>[0-9]{1,18})__[0-9]{9,11}(?=$|/|\.[a-z]+$)")  # of ENV__EXP__SEED__TIME
LOG_END = re.compile(r"(?i)(?<=[-_.=\w])\.(?:csv|tsv|jsonl|ndjson|json|txt|log|npz)$")  # of a run of one file


def state_of(run: History, now: float | None = None) -> str:
    """finished, interrupted, failed, running, stale, ended or unknown: see places.run_state."""
    at = time.time() if now is None else now
    return run_state(status_of(run), run.source == "relab", lambda: at - last_sign(run))


def status_of(run: History) -> str:
    """What the record says; where it says nothing, a log with all of its planned steps is finished.

    A program that was stopped on its way also ends without an error, but is not finished.
    """
    status = run.meta.get("status") or ("finished" if run.source != "relab" and _at_its_end(run) else "")
    if not isinstance(status, str):
        return ""
    whole = run.trained_by_relab or any(event.get("kind") == "stop" for event in run.events)
    return true_status(status, whole, steps_of(run), run.config.get("total_steps"))


def steps_of(run: History) -> int:
    """The last step that anything was logged at."""
    return max((int(column.steps.max()) for column in run.columns.values() if len(column.steps)), default=0)


def would_repeat(run: History) -> bool:
    """Whether a run that failed would come to the same end if it were resumed, as one does that diverged, or whose
    settings were refused once it had begun."""
    error = next((e for e in reversed(run.events) if e.get("kind") == "error"), {})
    message = str(error.get("message", ""))
    by_words = "not finite" in message or message.startswith("ConfigError")  # older runs have the text alone
    return bool(error.get("repeats")) or by_words


def diverged_at(meta: Document) -> int | None:
    """The step at which training ended because its numbers were no longer finite; None of any other end."""
    step, why = meta.get("step"), str(meta.get("why"))
    said = meta.get("diverged") or DIVERGED.match(why)  # older records have the text alone
    return step if meta.get("status") == "failed" and said and type(step) is int else None


def last_sign(run: History) -> float:
    """Seconds of the last heartbeat; of the newest file where there is none. 0: its process is gone, as far as seen."""
    if processes.is_alive(str(run.meta.get("owner"))) is False:
        return 0.0
    try:
        beat = str(run.meta["heartbeat"]).replace("Z", "+00:00")
        return datetime.datetime.fromisoformat(beat).timestamp()
    except (KeyError, ValueError, OverflowError):
        pass
    if run.source == "relab":
        return _newest(run.folder)
    if _at_its_end(run):
        return 0.0
    return _last_growth(run)


def _last_growth(run: History) -> float:
    """When another tool's log last grew. Where the kernel shows who writes to it: 0 if nobody does, though its tool has
    such files open; while somebody does, the next row may take as long as a heartbeat."""
    folder = run.folder if run.folder.is_dir() or not run.files else run.files[0].parent
    beside = [e.path for e in _files(folder)]
    files = run.files or tuple(Path(path) for path in beside)
    newest, made = growing(files, whole=False), _made(folder)
    if time.time() - newest > SLOWEST_S:
        return newest
    writing = writers.written(files)
    if writing:
        return min(newest + max(STALE_S, _patience(run, newest - made)) - GROWING_S, time.time())
    if writing is False and run.source not in NO_TOOL and any(KEPT_OPEN.search(file.name) for file in files):
        return 0.0
    if not growing(beside) and newest - made <= AT_ONCE_S:
        return 0.0  # all at once: a copy
    return min(newest + _patience(run, newest - made) - GROWING_S, time.time(), _last_row(run))


def _patience(run: History, lasted: float) -> float:
    """How long a log may be silent before it is taken for ended: several of its rows, within sensible bounds."""
    return max(GROWING_S, min(MISSED_ROWS * _rhythm(run, lasted), SLOWEST_S))


def _made(folder: Path) -> float:
    """When a file of the folder was last made, renamed or deleted; rows that are added to one change nothing here."""
    with contextlib.suppress(OSError):
        return os.stat(folder).st_mtime
    return math.inf


def _rhythm(run: History, lasted: float) -> float:
    """Seconds between two rows by the log's own clock, else by how long it was written; 0 where nobody can tell."""
    clock = run.columns.get("time/elapsed_s")
    if clock is not None and len(clock.values) > 2:
        gaps = np.diff(clock.values)
        return float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 0.0
    rows = max((len(column.steps) for column in run.columns.values()), default=0)
    return max(lasted, 0.0) / rows if rows else 0.0


def _at_its_end(run: History, most: float = 0.05) -> bool:
    """Whether all planned steps are in the log, as far as rows tell: less is left than lies between two of them."""
    planned = flatten(run.config).get("total_steps")
    columns = [column for name, column in run.columns.items() if run.axes.get(name) in ("env_steps", "agent_steps")]
    if not isinstance(planned, (int, float)) or not planned > 0 or not columns:
        return False
    gaps = [float(np.median(gap[gap > 0])) for column in columns if (gap := np.diff(column.steps)).max(initial=0) > 0]
    left = planned - max(int(column.steps.max(initial=0)) for column in columns)
    return left <= min(max(gaps, default=0.0), most * planned)


def _last_row(run: History) -> float:
    """When the last row was written, by the log itself: a copy of its file is newer. Infinite where it does not say."""
    try:
        began = datetime.datetime.fromisoformat(str(run.meta["started"]).replace("Z", "+00:00")).timestamp()
        return began + float(run.columns["time/elapsed_s"].values.max()) + LATE_S
    except (KeyError, ValueError, OverflowError):
        return math.inf


def growing(paths: Iterable[str | bytes | os.PathLike[Any]], whole: bool = True) -> float:
    """When another tool's log last grew; 0 where the files of a whole folder were written at once, as a copy's are."""
    times = []
    for path in paths:
        try:
            times.append(os.stat(path, follow_symlinks=False).st_mtime)
        except OSError:  # gone, or not for us to look at
            continue
    copied = whole and len(times) > 1 and max(times) - min(times) <= AT_ONCE_S
    return 0.0 if copied else max(times, default=0.0)


def _files(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return [entry for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _newest(folder: Path) -> float:
    try:
        return max((e.stat(follow_symlinks=False).st_mtime for e in os.scandir(folder)), default=0.0)
    except OSError:
        return 0.0


def group_key(run: History, name: str) -> str:
    """Runs that share it differ in the seed alone: the config's hash, else the name without its seed."""
    recorded = run.meta.get("config_hash")
    if isinstance(recorded, str) and recorded:
        return recorded
    return meaning_hash(run.config) if run.config else name_key(name, run.folder)


def name_key(name: str, folder: Path) -> str:
    """The key of runs without settings; a name that is a seed alone says nothing, the folder above it does.

    >>> name_key("bonus-s3", Path("logs/bonus-s3")), name_key("seed0", Path("logs/bonus/seed0"))
    ('named bonus', 'named bonus')
    """
    alone = SEED_IN_NAME.fullmatch(name)
    return NAMED + (folder.resolve().parent.name if alone else seedless(name).rstrip("/"))


def seedless(name: str) -> str:
    """A run's name with its seed taken out, and the time behind it that CleanRL puts there.

    >>> seedless("bonus-s3"), seedless("ant_seed12/tb"), seedless("plain"), seedless("Ant-v4__sac__3__1690000000")
    ('bonus', 'ant/tb', 'plain', 'Ant-v4__sac')
    >>> seedless("倒立摆_种子3"), seedless("logs/ppo_s3.csv"), seedless("logs/ppo.csv")
    ('倒立摆', 'logs/ppo', 'logs/ppo.csv')
    """
    without = SEED_IN_NAME.sub("", CLEANRL_END.sub("", name))
    return re.sub(r"[-_.=]+(?=$|/)", "", LOG_END.sub("", without) if without != name else name) or name


def experiment_name(history: History) -> str:
    """What a setting says that the run is a try of: no choice of the experiment, but a name that somebody gave."""
    places = history.meta.get("places")
    name = places.get("exp_name") if isinstance(places, dict) else None
    return in_a_line(name) if isinstance(name, str) else ""


def seed_of(run: History, name: str = "") -> Any:
    """The run's seed as recorded, else the one in its name: where it was found, then what its tool shows."""
    recorded = run.meta.get("seed", run.config.get("seed"))
    if recorded is None and run.source != "relab":
        names = (name, str(run.meta.get("name") or ""))
        numbers = [
            number for each in names for number in CLEANRL_END.findall(each)[-1:] or SEED_IN_NAME.findall(each)[-1:]
        ]
        return int(numbers[0]) if numbers else None
    return recorded
