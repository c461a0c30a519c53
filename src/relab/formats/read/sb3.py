"""Stable-Baselines3 folders: progress.csv or .json, monitor.csv, evaluations.npz, the plain JSON inside model zips.

Of RL-Zoo also <env>/config.yml and args.yml. tfevents beside progress.csv say the same and are left alone; a folder
that has nothing but tfevents is the tensorboard importer's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Document, Settings
from relab.formats.read import csv_file, jsonl_file, sb3_files, settings_files, table
from relab.formats.read.find import look
from relab.formats.read.source import FOREIGN, Listing, Names, Source, problem, put, set_config, start
from relab.record.history import History, add_evals

DEEP = True
MONITOR = re.compile(r"(?:\d+\.)?monitor\.csv")
MARK = b"time/total_timesteps"
ON_POLICY = ("ppo", "a2c")
ROWS = 200  # of episodes from monitor files, where there is no progress.csv to take the steps from

# Traps: entropy_loss is minus the entropy; value_loss has no factor 1/2; fps is a mean since the start.
NAMES: Names = {
    "rollout/ep_rew_mean": ("return/mean_100", 1.0),
    "rollout/ep_len_mean": ("return/length", 1.0),
    "rollout/success_rate": ("return/success", 1.0),
    "rollout/exploration_rate": ("policy/exploration", 1.0),
    "eval/mean_reward": ("eval/return_det", 1.0),
    "eval/mean_ep_length": ("eval/length_det", 1.0),
    "eval/success_rate": ("eval/success_det", 1.0),
    "train/entropy_loss": ("policy/entropy", -1.0),
    "train/policy_gradient_loss": ("policy/loss", 1.0),
    "train/policy_loss": ("policy/loss", 1.0),
    "train/value_loss": ("value/loss", 0.5),
    "train/explained_variance": ("value/explained_variance", 1.0),
    "train/approx_kl": ("policy/kl", 1.0),
    "train/clip_fraction": ("policy/clip_share", 1.0),
    "train/learning_rate": ("optim/lr", 1.0),
    "train/actor_loss": ("policy/actor_loss", 1.0),
    "train/critic_loss": ("value/critic_loss", 1.0),
    "train/ent_coef": ("optim/temperature", 1.0),
    "train/ent_coef_loss": ("optim/temperature_loss", 1.0),
    "train/n_updates": ("data/updates", 1.0),
    "time/fps": ("time/sps_mean", 1.0),
    "time/time_elapsed": ("time/elapsed_s", 1.0),
    "time/iterations": ("data/iteration", 1.0),
    "time/episodes": ("data/episodes", 1.0),
}
KEYS = {
    **{key: f"algo.{key}" for key in ("gamma", "max_grad_norm", "target_kl")},
    **{"learning_rate": "algo.lr", "n_epochs": "algo.epochs", "n_envs": "algo.envs", "gae_lambda": "algo.lam"},
    **{"clip_range": "algo.clip", "clip_range_vf": "algo.clip_value", "normalize_advantage": "algo.norm_adv"},
    **{"vf_coef": "algo.value_coef", "minibatches": "algo.minibatches", "algo": "algo.name", "env": "env.name"},
    **{"seed": "seed", "total_timesteps": "total_steps"},
}
ON_POLICY_KEYS = {"n_steps": "algo.steps", "ent_coef": "algo.ent_coef"}  # n-step returns and temperature elsewhere


def sniff(listing: Listing) -> bool:
    return bool(_progress(listing) or _monitors(listing)) or _is_npz(listing)


def _progress(listing: Listing) -> str:
    """progress.csv, else progress.json, where it is one of SB3's."""
    names = (name for name in ("progress.csv", "progress.json") if name in listing.files)
    return next((name for name in names if MARK in listing.start_of(name, 1 << 15)), "")


def _monitors(listing: Listing) -> list[str]:
    candidates = [name for name in listing.files if MONITOR.fullmatch(name)]
    return [name for name in candidates if listing.start_of(name, 2).startswith(b"#{")]


def _is_npz(listing: Listing) -> bool:
    return "evaluations.npz" in listing.files and listing.start_of("evaluations.npz", 2) == b"PK"


def sources(listing: Listing) -> list[Source]:
    """One run: its files, and monitors and evaluations that were put into folders of their own right below."""
    files = _files(listing)
    for name in listing.folders:
        inner = look(listing.folder / name)
        if not _progress(inner) and (_progress(listing) or not (_monitors(inner) and _is_npz(inner))):
            files += _files(inner)
    return [Source("sb3", listing.folder, tuple(files))]


def _files(listing: Listing) -> list[Path]:
    names = [_progress(listing), *_monitors(listing), "evaluations.npz" if _is_npz(listing) else ""]
    return [listing.folder / name for name in names if name]


def read(source: Source) -> History:
    history = start(source)
    data = sb3_files.with_model(sb3_files.zoo(history, source.folder), sb3_files.model(history, source.folder))
    cells = _progress_cells(source)
    algo = str(data.get("algo") or _algo_by_columns(cells)).lower()
    window, trained = data.pop("window", sb3_files.WINDOW), data.pop("trained", 0)
    _use(history, source, data | ({"algo": algo} if algo else {}))
    _add_monitors(history, source, cells)
    if cells:
        table.fill(history, cells, names_for(algo, history.meta.get("spec", {}), window))
    for path in source.files:
        if path.name == "evaluations.npz":
            history.evals += sb3_files.evaluations(history, path)
    add_evals(history, "evaluations.npz", "env_steps")
    _mark_finished(history, trained if isinstance(trained, int) else 0)
    return history


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
    names = dict(NAMES)
    if algo == "ppo":
        names["train/n_updates"] = (FOREIGN + "train/n_updates", 1.0)  # counts passes over the batch, not steps
    if algo == "dqn":
        names["train/loss"] = ("value/critic_loss", 1.0)
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


def _algo_by_columns(cells: table.Table | None) -> str:
    names = set(cells.names if cells else [])
    marks = {"ppo": "train/clip_fraction", "dqn": "rollout/exploration_rate", "sac": "train/ent_coef",
             "a2c": "train/policy_loss", "td3": "train/actor_loss"}  # fmt: skip
    return next((algo for algo, mark in marks.items() if mark in names), "")


def _use(history: History, source: Source, data: Settings) -> None:
    """Config, seed and what is known of the environment."""
    spec = data.pop("spec", {})
    env = data.get("env") or sb3_files.monitor_env(source.files)
    if env:
        data["env"] = spec["env"] = env
    if spec:
        history.meta["spec"] = spec
    on_policy = data.get("algo") in ON_POLICY
    settings = {k: v for k, v in data.items() if v is not None and not settings_files.is_place(k)}
    set_config(history, settings, KEYS | (ON_POLICY_KEYS if on_policy else {}))
    if isinstance(data.get("seed"), int):
        history.meta["seed"] = data["seed"]
    settings_files.group_by_name(history, source, settings=set(settings) - {"algo", "env", "seed"})


def _add_monitors(history: History, source: Source, cells: table.Table | None) -> None:
    """return/* per logged row from the single episodes, which say more than a mean of the last hundred."""
    paths = [path for path in source.files if MONITOR.fullmatch(path.name)]
    episodes = sb3_files.episodes(history, paths)
    if not len(episodes.steps):
        return
    logged = table.find_steps(cells).steps if cells and cells.lines else np.zeros(0, np.int64)
    envs = history.config.get("algo", {}).get("envs")
    envs = max(len(paths), envs if isinstance(envs, int) else 1)  # one file may be of several environments
    reach = episodes.steps[-1] + 2 * episodes.length.max() * float(envs)  # episodes under way are in no file
    if len(logged) and logged.max() > reach:
        message = f"episodes reach step {int(episodes.steps[-1])}, but training {int(logged.max())}; a continued run"
        problem(history, paths[0], f"{message} writes its monitor files anew; they were left out")
        return
    for name, (steps, values) in sb3_files.by_row(episodes, logged, ROWS).items():
        put(history, name, steps, values, "env_steps", {name: (name, 1.0)})
