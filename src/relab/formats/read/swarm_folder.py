"""Folders of curriculum training with gates: rows per iteration in several JSON files, and TensorBoard files in tb/.

eval_multi_history.jsonl (evaluations), penalty_stage_debug.jsonl (what a gate decided), schedule_trace.json (what the
schedules and stages were), step_one_clusters.jsonl, pre_roll_stats.jsonl (probes of the starts), command.txt.

A folder in which training was begun anew holds several tries: TensorBoard files name the process that wrote them, and
rows carry their time. Each try is a run, `try-1` and so on; the last one has the folder's name alone.
"""

from __future__ import annotations

import datetime
import itertools
import math
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, read_jsonl, read_start
from relab.base.numbers import is_finite, is_number, to_int
from relab.config.views import flatten
from relab.formats.read import cleanrl, settings_files, tb_config, tensorboard
from relab.formats.read.find import look
from relab.formats.read.source import EVENT_FILES, Listing, Source, problem, put, remark, start
from relab.record.history import History
from relab.schedules.evaluated import PROBE, velocity

EVALS, GATES, TRACE = "eval_multi_history.jsonl", "penalty_stage_debug.jsonl", "schedule_trace.json"
CLUSTERS, STARTS, WORST = "step_one_clusters.jsonl", "pre_roll_stats.jsonl", "step_one_worst_seeds.json"
COMMAND, TB = "command.txt", "tb"
FILES = (EVALS, GATES, TRACE, CLUSTERS, STARTS, WORST, COMMAND)
AXIS = "iteration"
NO_TIME = 1e18
EARLY = "early_death_fraction_"
MULTI = {  # the file's number -> what relab's own evaluations call it
    "avg_final_survival_rate": "avg_final", "min_final_survival_rate": "min_final", "median_death_step": "death_p50",
    "p10": "death_p10", "p25": "death_p25", "p75": "death_p75", "p90": "death_p90", "total_fish_samples": "agents",
    "step_one_death_count": "step_one_count", "step_one_death_ratio": "step_one_share", "episodes": "episodes",
}  # fmt: skip
Rows = list[Document]


def sniff(listing: Listing) -> bool:
    return EVALS in listing.files or (GATES in listing.files and TRACE in listing.files)


def sources(listing: Listing) -> list[Source]:
    folder = listing.folder
    own = tuple(folder / name for name in FILES if name in listing.files)
    boards = _boards(folder) if TB in listing.folders else []
    tries = _tries(boards)
    last = len(tries)
    return [
        Source("swarm", folder, own + tuple(files), "" if number == last else f"try-{number}")
        for number, (_, files) in enumerate(tries, 1)
    ]


def _boards(folder: Path) -> list[Path]:
    """Event files in tb/ and one folder below it; none where it is a link."""
    root = folder / TB
    if root.is_symlink():
        return []
    below = [root / name for name in look(root).folders]
    return [file for place in (root, *below) for file in tensorboard.event_files(place)]


def _tries(files: list[Path]) -> list[tuple[float, list[Path]]]:
    """(when it began, its files) of each process in order of time; one without files where there are none."""
    by_process: dict[tuple[str, str], list[tuple[float, Path]]] = {}
    for file in files:
        match = tb_config.FILE_NAME.search(file.name)
        process = (match["host"], match["pid"]) if match else ("", "")
        by_process.setdefault(process, []).append((float(match["unix"]) if match else 0.0, file))
    tries = [(min(time for time, _ in pairs), [file for _, file in pairs]) for pairs in by_process.values()]
    return sorted(tries) or [(0.0, [])]


# ---- Reading


def read(source: Source) -> History:
    history, files = start(source), {path.name: path for path in source.files}
    window = _window(source)
    boards = [path for path in source.files if EVENT_FILES in path.name]
    if boards:
        tensorboard.read_into(history, boards, source.path / TB)
    evaluations, starts = (_rows(history, files.get(name), window) for name in (EVALS, STARTS))
    _evaluations(history, evaluations)
    history.probes += [_multi(row, _samples(starts, row[AXIS])) for row in evaluations]
    _gates(history, _rows(history, files.get(GATES), window))
    _schedule(history, _trace(history, files.get(TRACE)) if not source.key else [])
    _starts(history, _rows(history, files.get(CLUSTERS), window), starts)
    _settings(history, source, files.get(COMMAND))
    _say_end(history, source)
    return history


def _window(source: Source) -> tuple[float, float]:
    """From when to when rows belong to this try."""
    tries = _tries(_boards(source.path) if (source.path / TB).is_dir() else [])
    number = int(source.key.partition("-")[2]) if source.key else len(tries)
    begins = [begin for begin, _ in tries]
    return (begins[number - 1] if number > 1 else -math.inf, begins[number] if number < len(begins) else math.inf)


def _rows(history: History, path: Path | None, window: tuple[float, float]) -> Rows:
    """The rows of a file that belong to this try, with an integer `iteration` each."""
    if path is None:
        return []
    rows, problems = read_jsonl(path)
    history.problems += problems
    good = [row for row in rows if type(row.get(AXIS)) is int]
    if len(good) < len(rows):
        problem(history, path, f"{len(rows) - len(good)} rows have no integer `{AXIS}`; they were left out")
    return [row for row in good if window[0] <= _time(row) < window[1]]


def _time(row: Mapping[str, Any]) -> float:
    """Seconds of a row's time; a row that has none belongs to the last try."""
    try:
        return datetime.datetime.fromisoformat(str(row["timestamp"]).replace("Z", "+00:00")).timestamp()
    except (KeyError, ValueError):
        return NO_TIME


def _trace(history: History, path: Path | None) -> Rows:
    try:
        trace = settings_files.read_settings(path).get("trace") if path else []
    except (RecordError, OSError) as error:
        problem(history, path or TRACE, str(error))
        return []
    rows = trace if isinstance(trace, list) else []
    return [row for row in rows if isinstance(row, dict) and type(row.get(AXIS)) is int]


def _numbers(history: History, rows: Rows, group: str) -> None:
    """Every number of the rows, nested ones included, as a column over iterations."""
    columns: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        for name, value in flatten({k: v for k, v in row.items() if k != AXIS}).items():
            if is_number(value):
                columns.setdefault(name.replace(".", "/"), []).append((row[AXIS], float(value)))
    for name, pairs in columns.items():
        pairs.sort(key=lambda pair: pair[0])
        put(history, f"{group}/{name}", [s for s, _ in pairs], [v for _, v in pairs], AXIS)


def _evaluations(history: History, rows: Rows) -> None:
    """What each evaluation came to, without the lists of single deaths; the pre-roll's summary is a probe's."""
    short = [{k: v for k, v in row.items() if not k.startswith(("pre_roll", "step_one_clusters"))} for row in rows]
    _numbers(history, short, "multi_eval")


# ---- Evaluations as relab's own multi-evaluations


def _multi(row: Mapping[str, Any], samples: list[Mapping[str, Any]]) -> Document:
    """One evaluation in the form of relab's own rows, as far as the file says it."""
    inner = [row[name] for name in ("summary", "death_stats") if isinstance(row.get(name), dict)]
    flat = {name: x for part in (row, *inner) for name, x in part.items() if type(x) in (int, float)}
    values = {ours: float(flat[theirs]) for theirs, ours in MULTI.items() if theirs in flat}
    early = {f"early_death_{name.rpartition('_')[2]}": x for name, x in flat.items() if name.startswith(EARLY)}
    episodes = flat.get("episodes")
    settings = {name: row[name] for name in row if name.endswith(("_coef", "_speed")) and name in flat}
    return {
        "step": row[AXIS], "axis": AXIS, "probe": PROBE, "value": values.get("avg_final"), "noise": None,
        "n": to_int(episodes) or None, "unit": "share", "iteration": row[AXIS], "values": values | early,
        "stage": row.get("tail_stage_label"), "type": row.get("tail_stage_type"), "settings": settings,
        "episodes": _episodes(row, samples, flat.get("multi_eval_num_fish")),
    }  # fmt: skip


def _samples(rows: Rows, iteration: int) -> list[Mapping[str, Any]]:
    """How the danger started in each episode of an evaluation."""
    samples = next((row.get("samples") for row in rows if row[AXIS] == iteration), None)
    return [each for each in samples if isinstance(each, dict)] if isinstance(samples, list) else []


def _episodes(row: Mapping[str, Any], samples: list[Mapping[str, Any]], agents: float | None) -> list[Document]:
    """Seed, start and step-one deaths of each episode; a death belongs to the start that its danger moved like."""
    seeds = row.get("episode_seeds")
    episodes: list[Document] = [{"seed": s, "agents": to_int(agents) or 0, "step_one": 0}
                                      for s in (seeds if isinstance(seeds, list) else [])]  # fmt: skip
    for each, sample in zip(episodes, samples):
        heading, speed = sample.get("final_heading_deg"), sample.get("final_speed")
        each |= {"heading": heading, "speed": speed} if is_finite(heading) and is_finite(speed) else {}
    groups = _by_danger(row.get("step_one_deaths"))
    for i, (_, n) in zip(_in_order([velocity_ for velocity_, _ in groups], episodes), groups):
        episodes[i]["step_one"] = n
    return episodes


def _by_danger(deaths: Any) -> list[tuple[tuple[float, float], int]]:
    """(velocity of the danger, deaths) of each episode with any: deaths of one episode stand together."""
    groups: list[tuple[tuple[float, float], int]] = []
    for death in deaths if isinstance(deaths, list) else []:
        moved = death.get("predator_velocity") if isinstance(death, dict) else None
        if isinstance(moved, list) and len(moved) == 2 and all(map(is_finite, moved)):
            pair, n = (moved[0], moved[1]), groups[-1][1] if groups and groups[-1][0] == tuple(moved) else 0
            groups = [*groups[: len(groups) - (n > 0)], (pair, n + 1)]
    return groups


def _in_order(moved: list[tuple[float, float]], episodes: list[Document]) -> list[int]:
    """Which episode each danger belongs to: rising numbers with the least distance between velocities together.

    The file lists deaths in the order of episodes but not their numbers, and a start is one step before the death.
    """
    if not moved or len(moved) > len(episodes) or not all("heading" in each for each in episodes):
        return []
    best: list[tuple[float, list[int]]] = [(0.0, [])]  # of the first k dangers, over the episodes so far
    best += [(math.inf, [])] * len(moved)
    for i, each in enumerate(episodes):
        for k in range(min(i + 1, len(moved)), 0, -1):
            cost = best[k - 1][0] + math.dist(velocity(each), moved[k - 1])
            best[k] = min(best[k], (cost, [*best[k - 1][1], i]), key=lambda way: way[0])
    return best[-1][1]


def _gates(history: History, rows: Rows) -> None:
    for row in rows:
        event = row.get("event")
        about = dict(event) if isinstance(event, dict) else {}
        decision = about.pop("event", None)
        history.events.append(
            {"kind": "gate", "step": row[AXIS], "axis": AXIS, "t": row.get("timestamp"), "decision": decision, **about}
        )


def _schedule(history: History, rows: Rows) -> None:
    """Schedules as columns; an event `stage` wherever a label changes."""
    _numbers(history, rows, "schedule")
    labels = sorted({name for row in rows for name in row if name.endswith("stage_label")})
    for name in labels:
        before = None
        for row in rows:
            if row.get(name) is not None and row[name] != before:
                before = row[name]
                kind = row.get(name.replace("_label", "_type"))
                history.events.append(
                    {"kind": "stage", "step": row[AXIS], "axis": AXIS, "schedule": name, "stage": before, "type": kind}
                )


def _starts(history: History, clusters: Rows, starts: Rows) -> None:
    """Where episodes ended in their first step, and how the starts were drawn: probes, a row per evaluation."""
    for row in clusters:
        inner = row.get("clusters")
        inner = inner if isinstance(inner, dict) else {}
        parts = inner.get("clusters")
        shares = [c.get("share") for c in parts if isinstance(c, dict)] if isinstance(parts, list) else []
        top = max((s for s in shares if isinstance(s, (int, float))), default=None)
        about = {"step": row[AXIS], "axis": AXIS, "probe": "step_one_clusters"}
        history.probes.append({**about, "value": top, "noise": None, "n": inner.get("total"), "bins": len(shares)})
    for row in starts:
        summary = row.get("summary")
        for name, stats in summary.items() if isinstance(summary, dict) else ():
            if isinstance(stats, dict) and {"mean", "std", "count"} <= stats.keys():
                history.probes.append(_start(row[AXIS], name, stats))


def _start(step: int, name: str, stats: Mapping[str, Any]) -> Document:
    count, std = stats["count"], stats["std"]
    noise = std / math.sqrt(count) if isinstance(count, int) and count > 0 and isinstance(std, (int, float)) else None
    spread = {key: stats[key] for key in ("std", "p10", "p50", "p90", "min", "max") if key in stats}
    about = {"step": step, "axis": AXIS, "probe": f"pre_roll/{name}"}
    return {**about, "value": stats["mean"], "noise": noise, "n": count, **spread}


# ---- Settings


def _settings(history: History, source: Source, path: Path | None) -> None:
    flat: Settings = {}
    if path is not None:
        text = read_start(path, 100_000).decode("utf-8", "replace")
        history.meta["command"] = text.strip()
        try:
            flat = flags(shlex.split(text.replace("\\\n", " ")))
        except ValueError as error:
            problem(history, path, f"the command cannot be split into words: {error}")
    settings_files.use(history, source, flat)


def flags(words: Iterable[str]) -> Settings:
    """The options of a command line; one without a value is True.

    >>> flags("python train.py --lr 2.5e-4 --stages 15:9,20:10 --quick --seed=3 --shift -1".split())
    {'lr': 0.00025, 'stages': '15:9,20:10', 'quick': True, 'seed': 3, 'shift': -1}
    """
    options: Settings = {}
    for word, after in itertools.pairwise([*words, "--"]):
        if word.startswith("--") and len(word) > 2:
            key, equals, value = word[2:].partition("=")
            if not equals and not after.startswith("--"):
                value, equals = after, "="
            options[key] = cleanrl.typed(value) if equals else True
    return options


def _say_end(history: History, source: Source) -> None:
    """Finished when the planned iterations were reached; a try that was begun anew was interrupted."""
    planned, last = flatten(history.config).get("foreign.total_iterations"), _last(history)
    if source.key or (isinstance(planned, int) and last < planned):
        history.meta["status"] = "interrupted"
        remark(history, COMMAND, f"{planned} iterations were planned, but the run ends at {last}")
    elif isinstance(planned, int):
        history.meta["status"] = "finished"


def _last(history: History) -> int:
    """The last iteration: as counted, or by the steps where an iteration's size is known."""
    ends: dict[str, int] = {}
    for name, column in history.columns.items():
        axis = history.axes[name]
        ends[axis] = max(ends.get(axis, 0), int(column.steps.max()) if len(column.steps) else 0)
    flat = flatten(history.config)
    envs, steps = flat.get("algo.envs"), flat.get("algo.steps")
    size = envs * steps if isinstance(envs, int) and isinstance(steps, int) else 0
    return max(ends.get(AXIS, 0), ends.get("env_steps", 0) // size if size > 0 else 0)
