"""Which settings lie beside a metric file? Config files by their usual names, Hydra's among them, as relab's keys."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from relab.base import limits
from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, check_regular, inside, revive
from relab.base.numbers import integer
from relab.config.base import ConfigError
from relab.config.views import flatten
from relab.config.yaml_io import parse_yaml
from relab.formats.read.source import Source, problem, set_config
from relab.record.history import History
from relab.record.state import seedless

MAX_BYTES = limits.SETTINGS
FILES = ("config.json", "config.yaml", "config.yml", "params.json", "hparams.yaml", "hparams.json",
         "hyperparameters.json", "args.json", "args.yaml", "flags.json", "variant.json",
         ".hydra/config.yaml", "params/agent.yaml")  # fmt: skip

# relab's key | what others call it, as the last part of a dotted key
SETTINGS = """
algo.lr            | lr learning_rate
algo.gamma         | gamma discount discount_factor
algo.lam           | gae_lambda lam lambda_
algo.clip          | clip clip_range clip_coef clip_param clip_ratio clip_eps ppo_clip_ratio
algo.ent_coef      | ent_coef entropy_coef entropy_coeff entropy_coefficient exploration_loss_coeff
algo.value_coef    | vf_coef value_coef vf_loss_coeff value_loss_coef value_loss_coeff
algo.max_grad_norm | max_grad_norm
algo.epochs        | n_epochs update_epochs num_epochs num_sgd_iter ppo_epochs num_learning_epochs
algo.minibatches   | num_minibatches n_minibatches num_mini_batch num_mini_batches num_batches_per_epoch
algo.envs          | num_envs n_envs num_processes
algo.steps         | num_steps n_steps rollout_length num_steps_per_env rollout
algo.target_kl     | target_kl
algo.norm_adv      | norm_adv normalize_advantage
algo.name          | algo algorithm algo_name algo.name algorithm.name agent.name algorithm.class_name
env.name           | env env_id env_name task task_name env.name env.id task.name
seed               | seed
total_steps        | total_timesteps total_steps max_timesteps total_env_steps num_env_steps train_for_env_steps
"""
# Where a run was written and when: not a setting, and it would put every run into a group of its own.
PLACES = {"logdir", "log_dir", "output_dir", "out_dir", "save_dir", "save_path", "save_folder", "work_dir", "workdir",
          "run_dir", "run_name", "run_id", "exp_name", "experiment_name", "timestamp", "datetime", "hostname", "host",
          "pid", "uuid", "log_path", "checkpoint_path", "job_id", "slurm_job_id", "monitor_dir", "tensorboard_log",
          "wandb_id", "cwd", "commit", "git_commit", "git_hash", "git_repo_name", "train_dir", "command_line",
          "user", "checkpoint_dir", "gpu_id"}  # fmt: skip
PLACES_ALONE = {"name", "id", "date", "time", "path"}  # only as a whole key: `env.name` is a setting


def _read(table: str) -> dict[str, str]:
    rows = [line.split("|") for line in table.strip().splitlines()]
    return {word: ours.strip() for ours, words in rows for word in words.split()}


KEYS = _read(SETTINGS)


def read_settings(path: Path) -> Document:
    """A JSON or YAML file as a mapping; an error says what is wrong with it."""
    check_regular(path)
    data = limits.read_bytes(path, MAX_BYTES)
    if path.suffix == ".json":
        return parse_json(data, path.name)
    return parse_yaml(data.decode("utf-8-sig", errors="strict"), path.name)


def parse_json(data: bytes, name: str) -> Document:
    """A JSON object; NaN without quotes, as Python writes it, is read as well."""
    try:
        value = revive(orjson.loads(data))
    except RecursionError:
        raise RecordError(f"{name} must hold JSON, but is nested too deeply") from None
    except orjson.JSONDecodeError:
        try:
            value = json.loads(data, parse_int=integer)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{name} must hold JSON, but {error}") from None
    if not isinstance(value, dict):
        raise RecordError(f"{name} must hold a JSON object, but holds a {type(value).__name__}")
    return value


def beside(history: History, source: Source, extra: Iterable[str] = ()) -> Settings:
    """The first config file beside a run that can be read, flat; those that cannot are reported."""
    own = [f"{source.files[0].stem}{end}" for end in (".json", ".yaml", ".yml")] if len(source.files) == 1 else []
    for name in (*own, *extra, *FILES):
        if not os.path.lexists(source.folder / name):
            continue
        try:
            path = inside(source.folder, name)
            if path.is_file():
                return flatten(read_settings(path))
        except (RecordError, ConfigError, OSError, UnicodeDecodeError, RecursionError) as error:
            problem(history, name, str(error), getattr(error, "line", None))
    return {}


def use(history: History, source: Source, flat: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> None:
    """Set config, seed and spec from flat settings, and from what the rows themselves say about the run."""
    places = {key: value for key, value in flat.items() if is_place(key)}
    kept = {key: value for key, value in flat.items() if key not in places}
    said = {**kept, **(facts or {})}
    set_config(history, said, ours(said))
    if places:
        history.meta["places"] = places
    name_parts(history)
    group_by_name(history, source, kept)


def group_by_name(history: History, source: Source, settings: Collection[str]) -> None:
    """What a few columns say is no config: without one, runs belong together by their names."""
    if not settings:
        history.meta["config_hash"] = f"named {seedless(source.name).rstrip('/')}"


def is_place(key: str) -> bool:
    return key.lower() in PLACES_ALONE or key.rpartition(".")[2].lower() in PLACES


def ours(flat: Iterable[str]) -> dict[str, str]:
    """Foreign key -> relab's, where no other key of the same config means the same."""
    keys_by_ours: dict[str, list[str]] = {}
    for key in flat:
        dotted = KEYS.get(key.lower()) or KEYS.get(key.rpartition(".")[2].lower())
        if dotted:
            keys_by_ours.setdefault(dotted, []).append(key)
    return {_shortest(keys): dotted for dotted, keys in keys_by_ours.items() if _shortest(keys)}


def _shortest(keys: list[str]) -> str:
    """The key with the fewest parts; none where two are as short (an actor's lr and a critic's)."""
    ranked = sorted(keys, key=lambda key: key.count("."))
    return "" if len(ranked) > 1 and ranked[0].count(".") == ranked[1].count(".") else ranked[0]


def name_parts(history: History) -> None:
    """Seed and environment also where relab's own runs have them; a nested copy of the seed is no setting."""
    seed = history.config.get("seed")
    if isinstance(seed, int) and not isinstance(seed, bool):
        history.meta["seed"] = seed
        foreign = history.config.get("foreign", {})
        for key in [k for k, v in foreign.items() if k.rpartition(".")[2].lower() == "seed" and v == seed]:
            del foreign[key]
    env = history.config.get("env")
    name = env.get("name") if isinstance(env, dict) else None
    if isinstance(name, str) and name:
        history.meta.setdefault("spec", {})["env"] = name
    algo = history.config.get("algo")
    if isinstance(algo, dict) and isinstance(algo.get("name"), str):
        algo["name"] = algo["name"].lower()
