"""Stable-Baselines3 folders: progress.csv or .json, monitor.csv, evaluations.npz, the plain JSON inside model zips.

Of RL-Zoo also <env>/config.yml and args.yml. Event files beside progress.csv say the same and are left alone; without
it they are part of the run, also where they lie in the only folder of such below. A folder that has nothing but event
files is the tensorboard importer's. Monitor(env, "NAME") writes NAME.monitor.csv: several of these are several runs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from relab import logger
from relab.base.documents import Document, Settings
from relab.formats.read import csv_file, jsonl_file, sb3_files, settings_files, table, tensorboard, tfevents
from relab.formats.read.find import look
from relab.formats.read.source import EVENT_FILES, FOREIGN, Listing, Names, Source, problem, put, set_config, start
from relab.record.clock import CLOCK
from relab.record.history import History, add_evals

DEEP = True
MONITOR = re.compile(r"(?:(?P<name>.+)\.)?monitor\.csv")
EVALUATION = re.compile(r"(?i)(?:.*[-_.])?(?:eval|evaluation|test)(?:[-_.]?(?:env|envs))?\d*")
MARK = b"time/total_timesteps"
ON_POLICY = ("ppo", "a2c")
ROWS = 200  # of episodes from monitor files, where there is no progress.csv to take the steps from

NAMES: Names = logger.SB3
KEYS = {
    **{key: f"algo.{key}" for key in ("gamma", "max_grad_norm", "target_kl")},
    **{"learning_rate": "algo.lr", "n_epochs": "algo.epochs", "n_envs": "algo.envs", "gae_lambda": "algo.lam"},
    **{"clip_range": "algo.clip", "clip_range_vf": "algo.clip_value", "normalize_advantage": "algo.norm_adv"},
    **{"vf_coef": "algo.value_coef", "minibatches": "algo.minibatches", "algo": "algo.name", "env": "env.name"},
    **{"seed": "seed", "total_timesteps": "total_steps"},
}
ON_POLICY_KEYS = {"n_steps": "algo.steps", "ent_coef": "algo.ent_coef"}  # n-step returns and temperature elsewhere


def sniff(listing: Listing) -> bool:
    if _progress(listing) or _monitors(listing) or _is_npz(listing):
        return True
    return bool(_models(listing)) and bool(_events(listing))


def _progress(listing: Listing) -> str:
    """progress.csv, else progress.json, where it is one of SB3's."""
    names = (name for name in ("progress.csv", "progress.json") if name in listing.files)
    return next((name for name in names if MARK in listing.start_of(name, 1 << 15)), "")


def _monitors(listing: Listing) -> list[str]:
    candidates = [name for name in listing.files if MONITOR.fullmatch(name)]
    return [name for name in candidates if listing.start_of(name, 2).startswith(b"#{")]


def _is_npz(listing: Listing) -> bool:
    return "evaluations.npz" in listing.files and listing.start_of("evaluations.npz", 2) == b"PK"


def _models(listing: Listing) -> list[str]:
    """Zips whose first member is `data`, as SB3 saves a model."""
    return [name for name in listing.ending(".zip") if listing.start_of(name, 34)[30:] == b"data"]


def _events(listing: Listing) -> list[Path]:
    """The event files of the run: those right here, else those of the only folder of such not far below."""
    own = [listing.folder / name for name in listing.files if EVENT_FILES in name]
    return own or _only_below(listing)


def _only_below(listing: Listing, levels: int = 2) -> list[Path]:
    """Event files one or two folders down, as tensorboard_log writes them; none where there are several such runs."""
    places, level = [listing.folder / name for name in listing.folders], 1
    groups: list[list[Path]] = []
    while places and level <= levels:
        inner = [look(place) for place in places]
        groups += [[each.folder / n for n in each.files if EVENT_FILES in n] for each in inner]
        places, level = [each.folder / name for each in inner for name in each.folders], level + 1
    filled = [group for group in groups if group]
    return filled[0] if len(filled) == 1 else []


def sources(listing: Listing) -> list[Source]:
    """One run: its files, and monitors and evaluations that were put into folders of their own right below.

    Monitor files with names of their own, and nothing else of a run beside them, are a run each.
    """
    alone = not _progress(listing) and not _is_npz(listing) and not _events(listing)
    named = _named(listing)
    if alone and len(named) == len(_monitors(listing)) and named:
        return [Source("sb3", listing.folder / name, (listing.folder / name,)) for name in named]
    files = _files(listing)
    for name in listing.folders:
        inner = look(listing.folder / name)
        if not _progress(inner) and (_progress(listing) or not (_monitors(inner) and _is_npz(inner))):
            files += _files(inner)
    return [Source("sb3", listing.folder, (*files, *([] if _progress(listing) else _events(listing))))]


def _named(listing: Listing) -> list[str]:
    """Monitor files that are not numbered as those of parallel environments are."""
    matches = [match for name in _monitors(listing) if (match := MONITOR.fullmatch(name))]
    return [match.string for match in matches if match["name"] and not match["name"].isdecimal()]


def _files(listing: Listing) -> list[Path]:
    names = [_progress(listing), *_monitors(listing), "evaluations.npz" if _is_npz(listing) else ""]
    return [listing.folder / name for name in names if name]


def read(source: Source) -> History:
    history = start(source)
    only = MONITOR.sub(r"\g<name>.zip", source.path.name) if source.path.is_file() else "*.zip"
    typed = settings_files.first_of(history, source) | sb3_files.zoo(history, source.folder)
    data = sb3_files.with_model(_as_sb3(typed), sb3_files.model(history, source.folder, only))
    cells, events = _progress_cells(source), [path for path in source.files if EVENT_FILES in path.name]
    algo = str(data.get("algo") or logger.sb3_algo(cells.names if cells else _tags(events))).lower()
    window, trained = data.pop("window", sb3_files.WINDOW), data.pop("trained", 0)
    _use(history, source, data | ({"algo": algo} if algo else {}))
    names = names_for(algo, history.meta.get("spec", {}), window)
    logged = start(source)
    if events:
        tensorboard.read_into(logged, events, events[0].parent, names=names)
    _add_monitors(history, source, _steps(cells, logged))
    if cells:
        table.fill(history, cells, names)
    _join(history, logged)
    for path in source.files:
        if path.name == "evaluations.npz":
            history.evals += sb3_files.evaluations(history, path)
    add_evals(history, "evaluations.npz", "env_steps")
    _mark_finished(history, trained if isinstance(trained, int) else 0)
    return history


def _as_sb3(typed: Settings) -> Settings:
    """A config of the user's own under Stable-Baselines3's names, where it has another for one of them."""
    names = {ours: theirs for theirs, ours in {**KEYS, **ON_POLICY_KEYS}.items()}
    known = {key: names[ours] for key, ours in logger.known_settings(typed).items() if ours in names}
    return {known.get(key, key): value for key, value in typed.items()}


def _mark_finished(history: History, trained: int) -> None:
    """SB3 does not say that a run came to its end, but its last step does, or that of the model it saved."""
    total = history.config.get("total_steps")
    last = max((int(column.steps[-1]) for column in history.columns.values()), default=0)
    last = max(last, trained)
    if isinstance(total, (int, float)) and 0 < total <= last:
        history.meta["status"] = "finished"


def _progress_cells(source: Source) -> table.Table | None:
    path = next((p for p in source.files if p.name.startswith("progress.")), None)
    if path is None:
        return None
    return csv_file.load(path) if path.suffix == ".csv" else jsonl_file.load(path)


def names_for(algo: str, spec: Document, window: Any = sb3_files.WINDOW) -> Names:
    """The translation of one algorithm's names: some of them mean something else in another."""
    names = logger.sb3_names(algo)
    if window != sb3_files.WINDOW:
        names["rollout/ep_rew_mean"] = (FOREIGN + "rollout/ep_rew_mean", 1.0)
    half = _half_range(spec.get("action", {}))
    if half:
        names["train/std"] = ("policy/std_mean", 1 / half)
    return names


def _half_range(action: Document) -> float:
    """Half the action range where it is the same for all components, else 0."""
    widths = {high - low for low, high in zip(action.get("low", []), action.get("high", []), strict=True)}
    return widths.pop() / 2 if len(widths) == 1 and 0 < min(widths) < np.inf else 0.0


def _tags(events: list[Path]) -> set[str]:
    """The names in event files."""
    ends = [tfevents.ends(path) for path in events]
    return {tag for end in ends if end is not None for tag in end.tags}


def _steps(cells: table.Table | None, logged: History) -> np.ndarray:
    """The steps at which the run logged."""
    if cells and cells.lines:
        return table.find_steps(cells).steps
    columns = [c.steps for name, c in logged.columns.items() if logged.axes[name] == "env_steps"]
    return max(columns, key=len, default=np.zeros(0, np.int64))


def _join(history: History, logged: History) -> None:
    """Columns of event files into the run; a metric that the run has from a better source keeps the tool's name."""
    for theirs, ours in logged.mapping.items():
        column, factor = logged.columns[ours], logged.factors.get(ours, 1.0)
        put(history, theirs, column.steps, column.values / factor, logged.axes[ours], {theirs: (ours, factor)})
    history.problems += logged.problems
    history.events += logged.events
    history.meta = logged.meta | history.meta


def _use(history: History, source: Source, data: Settings) -> None:
    """Config, seed and what is known of the environment."""
    spec = data.pop("spec", {})
    monitored, created = sb3_files.monitor_head(source.files)
    env = data.get("env") or monitored
    if created:
        history.meta["created"] = created
    if env:
        data["env"] = spec["env"] = env
    if spec:
        history.meta["spec"] = spec
    on_policy = data.get("algo") in ON_POLICY
    settings = {k: v for k, v in data.items() if v is not None and not logger.is_place(k)}
    set_config(history, settings, KEYS | (ON_POLICY_KEYS if on_policy else {}))
    if isinstance(data.get("seed"), int):
        history.meta["seed"] = data["seed"]
    settings_files.group_by_name(history, source, settings=set(settings) - {"algo", "env", "seed"})


def _add_monitors(history: History, source: Source, logged: np.ndarray) -> None:
    """return/* per logged row from the single episodes, which say more than a mean of the last hundred."""
    paths = _trained(history, [path for path in source.files if MONITOR.fullmatch(path.name)])
    episodes = sb3_files.episodes(history, paths)
    if not len(episodes.steps):
        return
    envs = history.config.get("algo", {}).get("envs")
    envs = max(len(paths), envs if isinstance(envs, int) else 1)  # one file may be of several environments
    reach = episodes.steps[-1] + 2 * episodes.length.max() * float(envs)  # episodes under way are in no file
    if len(logged) and logged.max() > reach:
        message = f"episodes reach step {int(episodes.steps[-1])}, but training {int(logged.max())}; a continued run"
        problem(history, paths[0], f"{message} writes its monitor files anew; they were left out")
        return
    for name, (steps, values) in sb3_files.by_row(episodes, logged, ROWS).items():
        if name != CLOCK or not len(logged):  # what logged its steps logged its time
            put(history, name, steps, values, "env_steps", {name: (name, 1.0)})


def _trained(history: History, paths: list[Path]) -> list[Path]:
    """Monitor files of training: episodes of evaluations count steps of their own."""
    trained = [path for path in paths if not EVALUATION.fullmatch(MONITOR.fullmatch(path.name)["name"] or "")]  # type: ignore[index]
    for path in paths if trained else []:
        if path not in trained:
            problem(history, path, "holds evaluation episodes, whose steps are not those of training; it was left out")
    return trained or paths
